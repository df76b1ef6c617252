"""Which hosts may be nodes: the include and exclude files, in the two forms that Hadoop's HostsFileReader reads.

A text file has host names or addresses between blanks, and `#` begins a comment. A file whose name ends in `.xml` has
`<hosts><host><name>a,b</name><timeout>600</timeout></host></hosts>`; the time-out is how long a graceful
decommission of that host may take.
"""

import ipaddress
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from yaqd.config import Configuration

_FILE_BYTES_MAX = 64 * 1024 * 1024

#: host or address in lower case -> its own time-out of a graceful decommission in s, None without one
Hosts = Mapping[str, int | None]


@dataclass(frozen=True, slots=True)
class HostLists:
    """Both lists as they were when read. Every question takes a host's name and its address ("" if not known)."""

    included: Hosts = field(default_factory=dict)
    excluded: Hosts = field(default_factory=dict)

    def admits(self, host: str, address: str = "") -> bool:
        if self.is_excluded(host, address):
            return False
        return not self.included or _is_in(self.included, host, address)

    def is_excluded(self, host: str, address: str = "") -> bool:
        return _is_in(self.excluded, host, address)

    def is_untracked(self, host: str, address: str = "") -> bool:
        """Return whether the host is neither to be let in nor sent away on purpose.

        Somebody took it from the include file.
        """
        both = {**self.included, **self.excluded}
        return bool(self.included) and not _is_in(both, host, address)

    def timeout_s(self, host: str, default: int) -> int:
        """Return how long a graceful decommission of this host may take, s; negative: for ever."""
        own = self.excluded.get(host.lower())
        return default if own is None else own

    @property
    def name_addresses(self) -> bool:
        """False when no look-up of an address can change an answer."""
        return any(_is_address(name) for names in (self.included, self.excluded) for name in names)


def _is_in(names: Hosts, host: str, address: str) -> bool:
    return host.lower() in names or (bool(address) and address in names)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def address_of(host: str) -> str:
    """Return the host's IPv4 address, "" when nobody knows it. Blocking."""
    try:
        return socket.gethostbyname(host)
    except (OSError, UnicodeError):
        return ""


def read_host_lists(conf: Configuration) -> HostLists:
    """Read both lists. Blocking. Raises ConfigError for a file that cannot be read or understood."""
    return HostLists(
        _read(conf, "yarn.resourcemanager.nodes.include-path"), _read(conf, "yarn.resourcemanager.nodes.exclude-path")
    )


def _read(conf: Configuration, key: str) -> Hosts:
    path = (conf.get(key) or "").strip()
    if not path:
        return {}
    try:
        with Path(path).open("rb") as file:
            content = file.read(_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise conf.error(key, f"cannot be read: {error.strerror or error}", "name a readable file") from None
    if len(content) > _FILE_BYTES_MAX:
        raise conf.error(key, f"is larger than {_FILE_BYTES_MAX} bytes", "name a file of host names")
    if not path.lower().endswith(".xml"):
        lines = content.decode("utf-8", "replace").splitlines()
        return {word.lower(): None for line in lines for word in line.partition("#")[0].split()}
    try:
        return _from_xml(content)
    except (ElementTree.ParseError, ValueError) as error:
        remedy = "write <hosts><host><name>HOST</name><timeout>SECONDS</timeout></host></hosts>"
        raise conf.error(key, f"cannot be understood: {error}", remedy) from None


def _from_xml(content: bytes) -> Hosts:
    hosts: dict[str, int | None] = {}
    for element in ElementTree.fromstring(content).iter("host"):
        timeout = (element.findtext("timeout") or "").strip()
        for name in (element.findtext("name") or "").split(","):
            if name.strip():
                hosts[name.strip().lower()] = int(timeout) if timeout else None
    return hosts
