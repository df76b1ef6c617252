"""Hadoop XML configuration: defaults, site files, variables, final, XInclude, typed getters."""

from yaqd.config.configuration import Configuration, Origin
from yaqd.config.defaults import shipped_dir
from yaqd.config.errors import ConfigError
from yaqd.config.xmlfile import Property, read_properties, write_properties

__all__ = [
    "ConfigError",
    "Configuration",
    "Origin",
    "Property",
    "read_properties",
    "shipped_dir",
    "write_properties",
]
