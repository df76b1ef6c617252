"""Who may act for whom: Hadoop's proxy users.

`hadoop.proxyuser.<name>.users`, `.groups` and `.hosts` say whom the user `<name>` may act for and from which addresses
(Hadoop's DefaultImpersonationProvider); `yarn.resourcemanager.proxyuser.<name>.*` does the same for the ResourceManager
and wins. The decision and its texts are Hadoop's.
"""

import ipaddress
import logging
import socket
from dataclasses import dataclass
from typing import Final, Self

from yaqd.config import Configuration
from yaqd.ipc.caller import Caller
from yaqd.ipc.errors import Authorization
from yaqd.security.acl import AccessControlList, GroupsOf

log = logging.getLogger(__name__)

_PREFIX: Final = "hadoop.proxyuser."
_RM_PREFIX: Final = "yarn.resourcemanager.proxyuser."

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Machines:
    """Hosts by address, network (`10.0.0.0/8`) or name; `*` is any (Hadoop's MachineList)."""

    anywhere: bool = False
    networks: tuple[_Network, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses the machines; names are resolved here and now. Blocking."""
        networks: list[_Network] = []
        words = [word.strip() for word in text.split(",") if word.strip()]
        for word in words:
            try:
                networks.append(ipaddress.ip_network(word, strict=False))
            except ValueError:
                networks += _addresses(word) if word != "*" else []
        return cls("*" in words, tuple(networks))

    def include(self, address: str) -> bool:
        if self.anywhere:
            return True
        try:
            where = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(where in network for network in self.networks)


def _addresses(name: str) -> list[_Network]:
    try:
        found = socket.getaddrinfo(name, None, proto=socket.IPPROTO_TCP)
        return [ipaddress.ip_network(str(entry[4][0]).partition("%")[0]) for entry in found]
    except (OSError, ValueError, UnicodeError) as error:
        log.warning("host %s is in a list of hosts and cannot be resolved: %s", name, error)
        return []


@dataclass(frozen=True, slots=True)
class ProxyUser:
    """What one user may do in others' names."""

    acl: AccessControlList | None = None
    hosts: Machines = Machines()


class ProxyUsers:
    """Decides on each connection whose context names a real user. `refresh` takes the configuration as it is now."""

    def __init__(self, conf: Configuration, groups_of: GroupsOf) -> None:
        """Resolves host names. Blocking."""
        self._groups_of = groups_of
        self._users = _read(conf)

    def refresh(self, conf: Configuration) -> None:
        """Resolves host names. Blocking; any thread."""
        self._users = _read(conf)

    def check(self, caller: Caller) -> None:
        """Raises Authorization. A token speaks for itself: whoever made it has checked."""
        if caller.real_user is None or caller.auth == "TOKEN":
            return
        proxy = self._users.get(caller.real_user)
        if proxy is None or proxy.acl is None or not proxy.acl.allows(caller.user, self._groups_of):
            raise Authorization(f"User: {caller.real_user} is not allowed to impersonate {caller.user}")
        if not proxy.hosts.include(caller.address[0]):
            raise Authorization(
                f"Unauthorized connection for super-user: {caller.real_user} from IP {caller.address[0]}"
            )


def _read(conf: Configuration) -> dict[str, ProxyUser]:
    found: dict[str, dict[str, str]] = {}
    for prefix in (_PREFIX, _RM_PREFIX):  # the second wins
        for key in [key for key in conf.changed_keys() if key.startswith(prefix)]:
            user, _, what = key[len(prefix) :].rpartition(".")
            if user and what in ("users", "groups", "hosts"):
                found.setdefault(user, {})[what] = conf.get(key) or ""
    users = {}
    for user, said in found.items():
        has_list = "users" in said or "groups" in said
        acl = AccessControlList.of(said.get("users", ""), said.get("groups", "")) if has_list else None
        users[user] = ProxyUser(acl, Machines.parse(said.get("hosts", "")))
    return users
