"""Whom an address can be reached by: this machine alone, or the network. And the line in which a daemon says so."""

import socket
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Final

from yaqd.config.configuration import Configuration
from yaqd.config.errors import ConfigError
from yaqd.config.folders import lacks_files

WILDCARDS: Final = ("0.0.0.0", "::", "")
_HOST_KEY: Final = "yarn.resourcemanager.hostname"
#: any of these names a cluster to a client
_NAMING: Final = (
    _HOST_KEY,
    *(f"yarn.resourcemanager.{name}" for name in ("address", "admin.address", "webapp.address")),
)
_ALONE: Final = "reachable from this machine alone"
_OPEN: Final = "open to the network"


def is_loopback(host: str) -> bool:
    """Return whether all addresses of that name lead back to this machine. Looks names up: blocking."""
    if host in WILDCARDS:
        return False
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
    except (OSError, UnicodeError):
        return False
    return all(ip_address(address.partition("%")[0]).is_loopback for address in found)


def is_set(conf: Configuration, *keys: str) -> bool:
    """Return whether a file, -D or the program sets one of these."""
    origins = [conf.origin(key) for key in keys]
    return any(origin is not None and not origin.is_default for origin in origins)


def require_cluster(conf: Configuration) -> None:
    """Raise ConfigError where nothing says which cluster is meant: the default port could be anybody's. Blocking."""
    folder = conf.conf_dir
    lack = "HADOOP_CONF_DIR is not set" if folder is None else lacks_files(folder)
    if lack is None or is_set(conf, *_NAMING):
        return
    raise ConfigError(
        f"no cluster is named: {lack}",
        remedy="export HADOOP_CONF_DIR=DIR/conf, as `yaq cluster start --dir DIR` prints it, or give --conf DIR/conf "
        f"or -D {_HOST_KEY}=HOST",
    )


def reach_line(daemon: str, listening: Sequence[tuple[str, str, int]], who: str) -> str:
    """Say in one line where a daemon listens, who reaches it there, and what `who` says that they may do.

    `listening`: what for, the bound address, the port.
    """
    ports: dict[str, list[str]] = {}
    for what, host, port in listening:
        ports.setdefault(host, []).append(f"{port or 'any free one'} ({what})")
    places = [f"{host}, ports {', '.join(named)}: {_reached(host)}" for host, named in ports.items()]
    return f"{daemon} listens on {'; on '.join(places)}. {who}"


def _reached(host: str) -> str:
    return _ALONE if is_loopback(host) else _OPEN
