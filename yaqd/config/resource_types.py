"""Countable resources beyond memory and virtual cores: which there are, how they are counted, how much a node has.

As Hadoop's `resource-types.xml` and `node-resources.xml` have them (ResourceUtils).
Inside, and on the wire, an amount is a whole number of single units: `4Gi` of a type counted in `Gi` is 4 x 2^30. What
cannot be counted in whole units (`m` and smaller) is refused. Both files may be missing: their keys may stand in
`yarn-site.xml` as well.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from yaqd.config.configuration import Configuration
from yaqd.config.defaults import QUEUES_FILE
from yaqd.config.errors import ConfigError

TYPES_FILE: Final = "resource-types.xml"
NODE_FILE: Final = "node-resources.xml"
#: sizes of nodes by name, which the ResourceManager reads
SIZES_FILE: Final = "dynamic-resources.xml"
_NAMES: Final = "yarn.resource-types"
_NODE: Final = "yarn.nodemanager.resource-type."
_CALCULATOR: Final = "yarn.scheduler.capacity.resource-calculator"
_MANDATORY: Final = {"memory-mb": "Mi", "vcores": ""}
#: taken for memory by older clients
_FORBIDDEN: Final = ("memory",)
_TYPES_MAX: Final = 64
_AMOUNT_MAX: Final = 2**63 - 1
_AMOUNT: Final = re.compile(r"(\d{1,18}) ?([A-Za-z]*)", re.ASCII)
_NAMESPACE_PART: Final = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_NAME: Final = re.compile(rf"(?:{_NAMESPACE_PART}(?:\.{_NAMESPACE_PART})*/)?[A-Za-z][\w.-]*", re.ASCII)
UNITS: Final[Mapping[str, int]] = {
    "": 1,
    **{unit: 1000**power for power, unit in enumerate("kMGTP", start=1)},
    **{f"{unit}i": 1024**power for power, unit in enumerate("KMGTP", start=1)},
}
_NAME_RULE: Final = (
    "a name begins with a letter, has letters, digits, '.', '_', '-', and may stand behind a name space and a slash"
)


@dataclass(frozen=True, slots=True)
class ResourceType:
    """One type; amounts in single units."""

    name: str
    #: what clients write amounts in
    unit: str
    #: smallest amount a container gets, and the step in which amounts grow; 0: none and single units
    minimum: int
    #: largest amount a container may ask for
    maximum: int


def resource_types(conf: Configuration) -> tuple[ResourceType, ...]:
    """Return the further types, in the order of their definition. Blocking. Raises ConfigError with file and line."""
    types = conf.with_file(TYPES_FILE)
    names = types.get_list(_NAMES, [])
    if len(names) > _TYPES_MAX:
        raise types.error(_NAMES, f"names {len(names)} types", f"name {_TYPES_MAX} at most")
    found: dict[str, ResourceType] = {}
    for name in names:
        if name in found:
            raise types.error(_NAMES, f"names {name} twice", "name each type once")
        if name in _FORBIDDEN or not _NAME.fullmatch(name):
            raise types.error(_NAMES, f"{name} is no name for a resource type", _NAME_RULE)
        if name in _MANDATORY:
            _check_mandatory(types, name)
        else:
            found[name] = _type(types, name)
    _check_strays(types, found)
    return tuple(found.values())


def node_resources(conf: Configuration, types: tuple[ResourceType, ...]) -> dict[str, int]:
    """Return what a node has of each further type, in single units, 0 left out. Blocking. Raises ConfigError."""
    node = conf.with_file(NODE_FILE)
    known = {kind.name: kind for kind in types}
    amounts = {}
    for key, _ in node.items():
        name = key.removeprefix(_NODE)
        if name == key or name in _MANDATORY:
            continue
        if name not in known:
            raise node.error(key, f"{name} is not a resource type", f"name it in {_NAMES}, in {TYPES_FILE}")
        amount = _amount(node, key, known[name].unit)
        if amount:
            amounts[name] = amount
    return amounts


def requested_resources(conf: Configuration, prefix: str, units: Mapping[str, str]) -> dict[str, tuple[str, int]]:
    """Return what keys of the form `prefix + NAME` ask for: key and amount in single units by the name of the type.

    `units` is what a bare number of a type counts in, single units for those that are not in it. Raises ConfigError.
    """
    asked = {}
    for key, _ in conf.items():
        name = key.removeprefix(prefix)
        if name != key:
            if not _NAME.fullmatch(name):
                raise conf.error(key, f"{name} is no name for a resource type", _NAME_RULE)
            asked[name] = (key, _amount(conf, key, units.get(name, "")))
    return asked


def _check_mandatory(types: Configuration, name: str) -> None:
    """Memory and cores may be listed, but not be anything else than they are."""
    for what, expected in (("units", _MANDATORY[name]), ("type", "COUNTABLE")):
        key = f"{_NAMES}.{name}.{what}"
        if key in types and (types.get(key) or "").strip() != expected:
            raise types.error(key, f"{name} is built in and counted in {expected or 'single units'!r}", "leave it out")
    for what, instead in (("minimum-allocation", "minimum"), ("maximum-allocation", "maximum")):
        key = f"{_NAMES}.{name}.{what}"
        if key in types:
            suffix = "mb" if name == "memory-mb" else name
            raise types.error(key, f"{name} is built in", f"set yarn.scheduler.{instead}-allocation-{suffix}")


def _type(types: Configuration, name: str) -> ResourceType:
    key = f"{_NAMES}.{name}"
    unit = (types.get(f"{key}.units") or "").strip()
    if unit not in UNITS:
        shown = ", ".join(u for u in UNITS if u)
        raise types.error(f"{key}.units", "is no unit that can be counted in", f"write nothing or one of {shown}")
    kind = (types.get(f"{key}.type") or "COUNTABLE").strip()
    if kind != "COUNTABLE":
        raise types.error(f"{key}.type", "is no type of resource", "write COUNTABLE")
    minimum = _amount(types, f"{key}.minimum-allocation", unit, default=0)
    maximum = _amount(types, f"{key}.maximum-allocation", unit, default=_AMOUNT_MAX)
    if maximum < minimum:
        raise types.error(f"{key}.maximum-allocation", "is less than the minimum", "raise it")
    return ResourceType(name, unit, minimum, maximum)


def _amount(conf: Configuration, key: str, unit: str, default: int | None = None) -> int:
    """In single units; a bare number counts in the type's own."""
    text = (conf.get(key) or "").strip()
    if not text and default is not None:
        return default
    match = _AMOUNT.fullmatch(text)
    if match is None or match[2] not in UNITS:
        raise conf.error(key, "is no amount", "write a whole number and a unit, for example 4 or 16Gi")
    amount = int(match[1]) * UNITS[match[2] or unit]
    if amount > _AMOUNT_MAX:
        raise conf.error(key, "is more than can be counted", "write less")
    return amount


def _check_strays(types: Configuration, found: Mapping[str, ResourceType]) -> None:
    """Settings of a type that nobody has named would silently do nothing."""
    for key, _ in types.items():
        name, _, what = key.removeprefix(f"{_NAMES}.").rpartition(".")
        if not key.startswith(f"{_NAMES}.") or name in found or name in _MANDATORY:
            continue
        if what in ("units", "type", "minimum-allocation", "maximum-allocation", "tags"):
            raise types.error(key, f"{name} is not a resource type", f"add it to {_NAMES}")


def require_dominant(conf: Configuration, queues: Configuration) -> None:
    """Raise ConfigError, in Hadoop's words, where further types meet the calculator that counts memory alone.

    `queues` is `conf` with the file of queues. Where that leaves the calculator to its default, the line that names the
    types is at fault. Blocking.
    """
    types = resource_types(conf)
    if not types:
        return
    problem = (
        "RM uses DefaultResourceCalculator which used only memory as resource-type but invalid resource-types "
        f"specified {', '.join(kind.name for kind in types)}. Use DominantResourceCalculator instead to make effective "
        "use of these resource-types"
    )
    if (queues.get(_CALCULATOR) or "").strip():
        raise queues.error(_CALCULATOR, problem)
    origin = conf.with_file(TYPES_FILE).origin(_NAMES)
    file, line = (origin.file, origin.line) if origin is not None else (None, None)
    remedy = f"set {_CALCULATOR} in {QUEUES_FILE}"
    raise ConfigError(problem, key=_CALCULATOR, file=file, line=line, remedy=remedy)
