"""Which users may speak which protocol at all: Hadoop's service level authorization.

With `hadoop.security.authorization` true, `hadoop-policy.xml` (or any site file) says for each protocol who may, who
may not, and from which hosts. The decision and its texts are those of Hadoop's ServiceAuthorizationManager.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from yaqd.config import Configuration
from yaqd.config.xmlfile import read_properties
from yaqd.ipc.caller import Caller
from yaqd.ipc.errors import Authorization
from yaqd.security.acl import AccessControlList, GroupsOf
from yaqd.security.impersonation import Machines

_SWITCH: Final = "hadoop.security.authorization"
_POLICY_FILE: Final = "hadoop-policy.xml"
_DEFAULT: Final = "security.service.authorization.default"

#: protocol -> what it is called in the keys (Hadoop's RMPolicyProvider and NMPolicyProvider)
_NAMES: Final[Mapping[str, str]] = {
    "org.apache.hadoop.yarn.server.api.ResourceTrackerPB": "resourcetracker",
    "org.apache.hadoop.yarn.api.ApplicationClientProtocolPB": "applicationclient",
    "org.apache.hadoop.yarn.api.ApplicationMasterProtocolPB": "applicationmaster",
    "org.apache.hadoop.yarn.server.api.ResourceManagerAdministrationProtocolPB": "resourcemanager-administration",
    "org.apache.hadoop.yarn.server.api.DistributedSchedulingAMProtocolPB": "distributedscheduling",
    "org.apache.hadoop.yarn.api.ContainerManagementProtocolPB": "containermanagement",
}


@dataclass(frozen=True, slots=True)
class _Policy:
    allowed: AccessControlList
    blocked: AccessControlList
    hosts: Machines
    blocked_hosts: Machines


class ServiceAcls:
    """Asked at each connection. `refresh` takes the configuration as it is now."""

    def __init__(self, conf: Configuration, groups_of: GroupsOf) -> None:
        """Reads files. Raises ConfigError."""
        self._groups_of = groups_of
        self.enabled = conf.get_bool(_SWITCH)
        self._policies = _read(conf)

    def refresh(self, conf: Configuration) -> None:
        """Reads the lists again; the switch itself stays as it was at the start, as in Hadoop. Blocking; any thread."""
        self._policies = _read(conf)

    def check(self, caller: Caller, protocol: str, served: Collection[str]) -> None:
        """Raises Authorization, also for a protocol that is not `served` here: its list would not be the right one."""
        if not self.enabled:
            return
        policy = self._policies.get(protocol) if protocol in served else None
        if policy is None:
            raise Authorization(f"Protocol interface {protocol[:200]} is not known.")
        if not policy.allowed.allows(caller.user, self._groups_of) or policy.blocked.allows(
            caller.user, self._groups_of
        ):
            raise Authorization(
                f"User {_shown(caller)} is not authorized for protocol interface {protocol}: denied by configured ACL"
            )
        address = caller.address[0]
        if not policy.hosts.include(address) or policy.blocked_hosts.include(address):
            raise Authorization(f"Host {address}:{address} is not authorized for protocol interface {protocol}")


def _shown(caller: Caller) -> str:
    """As Hadoop's UserGroupInformation prints itself."""
    if caller.real_user is not None:
        return f"{caller.user} (auth:PROXY) via {caller.real_user} (auth:{caller.auth})"
    return f"{caller.user} (auth:{caller.auth})"


def _read(conf: Configuration) -> dict[str, _Policy]:
    file = conf.conf_dir / _POLICY_FILE if conf.conf_dir is not None else None
    written = {}
    if file is not None and file.exists():
        written = {found.name: found.value for found in read_properties(file) if found.value is not None}

    def value(key: str, default: str) -> str:
        return written.get(key) or conf.get(key) or default

    acl, hosts = value(f"{_DEFAULT}.acl", "*"), value(f"{_DEFAULT}.hosts", "*")
    blocked, blocked_hosts = value(f"{_DEFAULT}.acl.blocked", " "), value(f"{_DEFAULT}.hosts.blocked", "")
    policies = {}
    for protocol, name in _NAMES.items():
        key, host_key = (".".join(("security", name, end)) for end in ("protocol.acl", "protocol.hosts"))
        policies[protocol] = _Policy(
            AccessControlList.parse(value(key, acl)),
            AccessControlList.parse(value(f"{key}.blocked", blocked)),
            Machines.parse(value(host_key, hosts)),
            Machines.parse(value(f"{host_key}.blocked", blocked_hosts)),
        )
    return policies
