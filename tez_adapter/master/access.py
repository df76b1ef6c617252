"""Who may follow a job at its job manager, and end it there, where `yarn.acl.enable` is true.

The answers are the ResourceManager's for the same application, as far as the job's configuration tells: the owner,
administrators (`yarn.admin.acl`) and whom the job's own lists name. With `yarn.acl.enable` false everybody sees a job,
and its owner alone ends it here; the ResourceManager ends it for others.
"""

import getpass
from collections.abc import Callable
from typing import Any, Final

from tez_adapter.client.terms import MODIFY_KEY, VIEW_KEY
from yaqd.config import Configuration
from yaqd.ipc import Caller
from yaqd.ipc.errors import Authorization
from yaqd.security.acl import AccessControlList, GroupsOf
from yaqd.security.group_lookups import GroupLookups
from yaqd.security.groups import Groups, unix_groups

_ADMIN_KEY: Final = "yarn.admin.acl"


class JobAccess:
    """Both checks raise Authorization, and NotYetKnown while a caller's groups are looked up."""

    def __init__(self, conf: Configuration, owner: str, groups_of: GroupsOf | None = None) -> None:
        """Raises ConfigError."""
        self._owner = owner
        self._enabled = conf.get_bool("yarn.acl.enable")
        self._groups_of = groups_of or GroupLookups(Groups.read(conf), unix_groups)
        self._administrators = AccessControlList.parse(conf.get(_ADMIN_KEY) or "")
        self._viewers = AccessControlList.parse(conf.get(VIEW_KEY) or " ")
        self._modifiers = AccessControlList.parse(conf.get(MODIFY_KEY) or " ")
        #: whoever runs the daemons administrates them
        self._daemon_user = getpass.getuser()

    def check_view(self, caller: Caller) -> None:
        if self._enabled and not self._is_granted(caller.user, self._viewers):
            raise Authorization(f"user {caller.user} may not see the job of {self._owner}")

    def check_kill(self, caller: Caller) -> None:
        if caller.user == self._owner or (self._enabled and self._is_granted(caller.user, self._modifiers)):
            return
        raise Authorization(f"user {caller.user} may not kill the job of {self._owner}")

    def _is_granted(self, user: str, listed: AccessControlList) -> bool:
        groups_of = self._groups_of
        return (
            user in (self._owner, self._daemon_user)
            or listed.allows(user, groups_of)
            or self._administrators.allows(user, groups_of)
        )


def for_tasks(handler: Callable[[Any], Any]) -> Callable[[Any, Caller], Any]:
    """Return the handler for holders of the job's token: whoever has not proved it is no task of the job."""

    def checked(request: Any, caller: Caller) -> Any:
        if caller.auth != "TOKEN":
            raise Authorization(f"{caller.user} has no token of this job")
        return handler(request)

    return checked
