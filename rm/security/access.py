"""Who may see, change, submit and administrate: `yarn.acl.enable`, `yarn.admin.acl`, queue and application lists.

The order and the texts are those of Hadoop's ClientRMService and ApplicationACLsManager; clients show the texts. With
`yarn.acl.enable` false everybody may see, change and submit; administration always asks `yarn.admin.acl`.
"""

from rm.applications.records import Application
from rm.scheduler.facts import Facts, QueueView
from rm.scheduler.queues.admission import may_administer, may_submit
from yaqd.ipc import Caller
from yaqd.ipc.errors import RemoteIOError, YarnError
from yaqd.security.acl import AccessControlList, GroupsOf

#: what the cause of a refusal is called in the message; clients see the message
_DENIED = "java.security.AccessControlException: "
_ADMIN_DENIED = "org.apache.hadoop.security.AccessControlException: "


class Access:
    """One for the whole daemon; `set_administrators` is the only change."""

    def __init__(
        self,
        facts: Facts,
        *,
        enabled: bool,
        administrators: str,
        daemon_user: str,
        groups_of: GroupsOf,
    ) -> None:
        self._facts = facts
        self.enabled = enabled
        #: whoever runs the daemon always administrates it
        self.daemon_user = daemon_user
        self.groups_of = groups_of
        self._administrators = AccessControlList.parse(administrators)

    def set_administrators(self, administrators: str) -> None:
        self._administrators = AccessControlList.parse(administrators)

    @property
    def administrators(self) -> str:
        """For people."""
        listed = self._administrators
        if listed.everybody:
            return "everybody"
        users = sorted({self.daemon_user, *listed.users})
        return ", ".join([*users, *(f"group {group}" for group in sorted(listed.groups))])

    # ---- questions

    def is_administrator(self, user: str) -> bool:
        return user == self.daemon_user or self._administrators.allows(user, self.groups_of)

    def may_view(self, user: str, app: Application) -> bool:
        return not self.enabled or self._owns(user, app) or self._is_granted(app.view_acl, user, app)

    def may_modify(self, user: str, app: Application) -> bool:
        return not self.enabled or self._owns(user, app) or self._is_granted(app.modify_acl, user, app)

    def may_submit(self, user: str, leaf: QueueView) -> bool:
        """Return whether the user may submit to this queue.

        Administrators of the cluster are not asked: only the queues' own lists count, as in Hadoop.
        """
        return not self.enabled or may_submit(leaf, user, self.groups_of)

    def _owns(self, user: str, app: Application) -> bool:
        return user == app.user or self.is_administrator(user)

    def _is_granted(self, acl: AccessControlList, user: str, app: Application) -> bool:
        if acl.allows(user, self.groups_of):
            return True
        queue = self._facts.queue(app.queue)
        return queue is not None and may_administer(queue, user, self.groups_of)

    # ---- the same as checks that raise what Hadoop raises

    def check_view(self, caller: Caller, app: Application, what: str = "") -> None:
        if not self.may_view(caller.user, app):
            subject = what or f"application {app.id}"
            raise YarnError(f"User {caller.user} does not have privilege to see this {subject}")

    def check_modify(self, caller: Caller, app: Application) -> None:
        if not self.may_modify(caller.user, app):
            raise YarnError(f"{_DENIED}User {caller.user} cannot perform operation MODIFY_APP on {app.id}")

    def check_target(self, caller: Caller, app: Application, target: str) -> None:
        """Check that the caller may move something to this queue. Raises YarnError."""
        if not self.enabled:
            return
        queue = self._facts.queue(target)
        if queue is None or not may_submit(queue, caller.user, self.groups_of):
            raise YarnError(
                f"{_DENIED}User {caller.user} cannot submit applications to target queue or the target queue "
                f"doesn't exist: {target[:256]} while moving {app.id}"
            )

    def check_administrator(self, caller: Caller, operation: str) -> None:
        if not self.is_administrator(caller.user):
            raise YarnError(f"{_ADMIN_DENIED}User {caller.user} doesn't have permission to call '{operation}'")

    def check_groups_reader(self, caller: Caller) -> None:
        """Check the one method of the administrator whose refusal is an IOException. Raises RemoteIOError."""
        try:
            self.check_administrator(caller, "getGroupsForUser")
        except YarnError as error:
            raise RemoteIOError(f"{YarnError.JAVA_CLASS}: {error.message}") from None


def submission_denied(user: str, app_id: object, queue: str) -> YarnError:
    return YarnError(f"{_ADMIN_DENIED}User {user} does not have permission to submit {app_id} to queue {queue[:256]}")
