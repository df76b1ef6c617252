"""One node and the users of its queues."""

from rm.scheduler.decisions import Allocate, Outcome
from rm.scheduler.events import (
    NodeJoined,
)
from rm.scheduler.queues.admission import why_inactive
from rm.scheduler.queues.spec import SchedulerSpec
from tests.rm.rm_world import GB, ONE_QUEUE, World, queues, row
from yaqd.model import ApplicationAttemptId, ApplicationId, NodeId, Resource

NODE = NodeId("n", 1)


def spec(**values: str) -> SchedulerSpec:
    return queues({**ONE_QUEUE, "maximum-am-resource-percent": "1"}, **values)


class Queue(World):
    """One node and users who submit to the queues on it."""

    def __init__(self, tree: SchedulerSpec, gb: int = 12) -> None:
        super().__init__(tree)
        self.tell(NodeJoined(NODE, "/r", Resource(gb * GB, 64)))

    def submit(self, user: str, queue: str = "default", priority: int = 0) -> tuple[ApplicationId, Outcome]:
        app_id, decisions = self.submits(queue, user, priority=priority)
        return app_id, decisions[0]

    def app(self, user: str, queue: str = "default") -> ApplicationAttemptId:
        """Starts an application whose master runs outside."""
        return self.begin(queue, user)

    def start(self, user: str, gb: int = 1, priority: int = 0) -> tuple[ApplicationAttemptId, bool]:
        """Starts an application with a master; returns whether that one got its container."""
        attempt_id = self.begin(user=user, priority=priority, master=Resource(gb * GB, 1))
        return attempt_id, any(container_id.attempt_id == attempt_id for container_id in self.live)

    def why(self, attempt_id: ApplicationAttemptId) -> str | None:
        attempt = self.attempt_of(attempt_id)
        return why_inactive(self.scheduler.view, attempt) if attempt.master is None else None

    def ask(self, attempt_id: ApplicationAttemptId, count: int, gb: int = 1) -> list[Allocate]:
        return self.asks(attempt_id, row(count=count, size=Resource(gb * GB, 1)))
