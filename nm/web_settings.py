"""What the node's web server is told by the configuration."""

import getpass
from dataclasses import dataclass
from typing import Self

from yaqd.config import Configuration
from yaqd.security.acl import AccessControlList, GroupsOf
from yaqd.security.groups import Groups
from yaqd.web.server import HttpLimits


@dataclass(frozen=True, slots=True)
class NodeWebSettings:
    limits: HttpLimits
    #: who asks without saying who
    static_user: str
    #: whether access lists are asked at all
    acls: bool
    administrators: AccessControlList
    #: whoever runs the daemon may see what it holds
    daemon_user: str
    groups_of: GroupsOf

    @classmethod
    def read(cls, conf: Configuration) -> Self:
        """Raises ConfigError."""
        return cls(
            limits=HttpLimits(
                connections_max=conf.get_int("yaq.web.connections-max", minimum=1),
                idle_timeout_s=conf.get_duration_ms("hadoop.http.idle_timeout.ms", minimum=1) / 1000,
            ),
            static_user=(conf.get("hadoop.http.staticuser.user") or "").strip() or "dr.who",
            acls=conf.get_bool("yarn.acl.enable"),
            administrators=AccessControlList.parse(conf.get("yarn.admin.acl") or ""),
            daemon_user=getpass.getuser(),
            groups_of=Groups.read(conf),
        )
