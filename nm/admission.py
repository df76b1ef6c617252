"""Who may speak to this node's container service at all, where `hadoop.security.authorization` is on.

Callers prove an NMToken, so that the user whom a list names is an application attempt, as in Hadoop: lists of hosts
are the useful ones here. Hadoop's nodes read them at their start and never again, and so do ours.
"""

from yaqd.config import Configuration
from yaqd.ipc.caller import Caller
from yaqd.ipc.server_connection import ServiceAcl
from yaqd.proto.protocols import ContainerManagementProtocol
from yaqd.security.group_lookups import GroupLookups
from yaqd.security.groups import Groups, unix_groups
from yaqd.security.service_acls import ServiceAcls


def admission(conf: Configuration, protocol: str = ContainerManagementProtocol.NAME) -> ServiceAcl | None:
    """Returns what that protocol's server asks of each connection, or None where it asks nothing. Reads files. Raises
    ConfigError."""
    acls = ServiceAcls(conf, GroupLookups(Groups.read(conf), unix_groups))

    def admit(caller: Caller, asked: str) -> None:
        acls.check(caller, asked, (protocol,))

    return admit if acls.enabled else None
