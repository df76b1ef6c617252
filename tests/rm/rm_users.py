"""One node and the users of its queues."""

from rm.scheduler.decisions import Allocate, Decision
from rm.scheduler.events import (
    ApplicationSubmitted,
    Asked,
    AskRow,
    AttemptStarted,
    NodeJoined,
    SchedulerEvent,
)
from rm.scheduler.queues.admission import why_inactive
from rm.scheduler.queues.spec import PREFIX, SchedulerSpec, parse_capacity_scheduler
from rm.scheduler.scheduler import Scheduler, SchedulerLimits
from rm.scheduler.view.calculators import AllocationBounds
from yaqd.model import ApplicationAttemptId, ApplicationId, NodeId, Resource

GB = 1024
NODE = NodeId("n", 1)


def spec(**values: str) -> SchedulerSpec:
    base = {"root.queues": "default", "root.default.capacity": "100", "maximum-am-resource-percent": "1"}
    named = {name.replace("__", ".").replace("_", "-"): value for name, value in values.items()}
    return parse_capacity_scheduler({PREFIX + n: v for n, v in {**base, **named}.items()})


class Queue:
    """One node and users who submit to the queues on it; every event is followed by a recount."""

    def __init__(self, queues: SchedulerSpec, gb: int = 12) -> None:
        self.scheduler = Scheduler(queues, SchedulerLimits(AllocationBounds(Resource(GB, 1), Resource(8 * GB, 4))))
        self.apps = 0
        self.tell(NodeJoined(NODE, "/r", Resource(gb * GB, 64)))

    def tell(self, event: SchedulerEvent) -> list[Decision]:
        decisions = self.scheduler.handle(event, 0.0)
        self.scheduler.validate()
        return decisions

    def submit(self, user: str, queue: str = "default", priority: int = 0) -> tuple[ApplicationId, Decision]:
        self.apps += 1
        app_id = ApplicationId(1, self.apps)
        return app_id, self.tell(ApplicationSubmitted(app_id, queue, user, priority))[0]

    def app(self, user: str, queue: str = "default") -> ApplicationAttemptId:
        """Its master runs outside."""
        attempt_id = ApplicationAttemptId(self.submit(user, queue)[0], 1)
        self.tell(AttemptStarted(attempt_id, ()))
        return attempt_id

    def start(self, user: str, gb: int = 1, priority: int = 0) -> tuple[ApplicationAttemptId, bool]:
        """An application with a master; whether that one got its container."""
        attempt_id = ApplicationAttemptId(self.submit(user, priority=priority)[0], 1)
        row = AskRow(0, -1, "*", Resource(gb * GB, 1), 1)
        return attempt_id, bool(given(self.tell(AttemptStarted(attempt_id, (row,)))))

    def why(self, attempt_id: ApplicationAttemptId) -> str | None:
        attempt = self.scheduler.view.attempt(attempt_id)
        assert attempt is not None
        return why_inactive(self.scheduler.view, attempt) if attempt.master is None else None

    def ask(self, attempt: ApplicationAttemptId, count: int, gb: int = 1) -> list[Allocate]:
        return given(self.tell(Asked(attempt, (AskRow(1, -1, "*", Resource(gb * GB, 1), count),))))


def given(decisions: list[Decision]) -> list[Allocate]:
    return [d for d in decisions if isinstance(d, Allocate)]
