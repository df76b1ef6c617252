"""What users change about their applications while they run: priority, lifetime, queue.

Each change is checked against the queues' configuration, takes effect at once and is then written to the state store;
`ChangeService` answers when it is there.
"""

from rm.applications.life import Applications
from rm.applications.lifetimes import format_iso8601, longest_end, parse_iso8601
from rm.applications.records import Application
from rm.applications.states import AppStage
from rm.cluster import Cluster
from rm.effects import StoreChange
from rm.scheduler.events import ApplicationMoved, PriorityChanged
from yaqd.ipc.errors import YarnError

#: where an application is known to the scheduler
ACTIVE = (AppStage.ACCEPTED, AppStage.RUNNING)


class Changes:
    def __init__(self, cluster: Cluster, applications: Applications) -> None:
        self._cluster = cluster
        self._applications = applications

    def set_priority(self, app: Application, priority: int) -> None:
        """Set the priority, to the cluster's highest at most.

        Once the application is over its priority stays. Raises YarnError while it ends.
        """
        if app.stage not in ACTIVE:
            if app.is_concluded:
                return
            raise YarnError(f"Application in {app.stage.name} state cannot update priority.")
        app.priority = min(priority, self._applications.priority_max)
        self._cluster.schedule(PriorityChanged(app.id, app.priority))
        self._cluster.perform(StoreChange(app))

    def move(self, app: Application, target: str) -> None:
        """Go on in another leaf queue. Raises YarnError with the reason why not."""
        if app.stage not in (AppStage.SUBMITTED, *ACTIVE):
            raise YarnError(f"App in {app.stage.name} state cannot be moved.")
        facts = self._cluster.scheduler.facts
        queue = facts.queue(target)
        if queue is None:
            raise YarnError(f"The specified Queue: {target[:256]} doesn't exist")
        if not queue.is_leaf:
            raise YarnError(f"The specified Queue: {target[:256]} is not a Leaf Queue.")
        if queue.path == app.queue:
            return
        reason = facts.refusal(app.id, queue.path, app.user)
        if reason is not None:
            raise YarnError(f"org.apache.hadoop.security.AccessControlException: {reason}")
        app.queue = queue.path
        self._cluster.schedule(ApplicationMoved(app.id, queue.path))
        self._cluster.perform(StoreChange(app))

    def set_expire_time(self, app: Application, expire_time: str) -> str:
        """Take Hadoop's ISO 8601 time, no later than the queue allows; what was taken. Raises YarnError."""
        if app.stage not in (AppStage.SUBMITTED, *ACTIVE):
            if app.is_concluded:
                return expire_time
            raise YarnError(f"Application is in {app.stage.name} state can not update timeout.")
        now_ms = self._cluster.clock.wall_ms()
        expires_ms = parse_iso8601(expire_time)
        if expires_ms < now_ms:
            raise YarnError(
                f"Expire time is less than current time, current-time={format_iso8601(now_ms)} "
                f"expire-time={format_iso8601(expires_ms)}"
            )
        queue = self._cluster.scheduler.facts.queue(app.queue)
        if queue is not None:
            expires_ms = longest_end(queue.spec, app.submitted_ms, expires_ms)
        self._applications.expire_at(app, expires_ms)
        self._cluster.perform(StoreChange(app))
        return format_iso8601(expires_ms)
