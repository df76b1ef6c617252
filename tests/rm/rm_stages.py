"""Leaf queues that decide by stages: one node, and masters outside that tell of their stages."""

from typing import Any

from rm.scheduler.decisions import Allocate, Outcome, StagesOrdered
from rm.scheduler.events import (
    LeftTold,
    NodeJoined,
)
from rm.scheduler.queues.spec import SchedulerSpec
from rm.scheduler.stages.sketch import Sketch
from rm.scheduler.stages.spec import StagesSpec
from rm.scheduler.view.calculators import AllocationBounds
from tests.rm.rm_world import SLOT, World, queues, row
from yaqd.model import ApplicationAttemptId, ContainerId, NodeId
from yaqd.model.stages import StagesOrder
from yaqd.policies.queueing.left import StageLeft

NODE = NodeId("a", 1)
MAP, REDUCE = 20, 10


def spec(ordering: str = "clotho", other: str = "fifo") -> SchedulerSpec:
    values = {
        "root.queues": "jobs,rest",
        "root.jobs.capacity": "60",
        "root.rest.capacity": "40",
        "root.jobs.maximum-capacity": "100",
        "root.rest.maximum-capacity": "100",
        "root.jobs.user-limit-factor": "10",
        "root.rest.user-limit-factor": "10",
        "root.jobs.ordering-policy": ordering,
        "root.rest.ordering-policy": other,
        "maximum-am-resource-percent": "1.0",
    }
    return queues(values)


class Cluster(World):
    """One node of a few slots. Masters run outside."""

    def __init__(self, policy: str = "shortest", slots: int = 4, *, interval_s: float = 0.0, **more: Any) -> None:
        super().__init__(
            spec(),
            bounds=AllocationBounds(SLOT, SLOT * 4),
            stages=StagesSpec(policy, interval_s=interval_s),
            **more,
        )
        #: by attempt, the newest
        self.orders: dict[ApplicationAttemptId, StagesOrder] = {}
        self.given: list[tuple[ApplicationAttemptId, int]] = []
        if slots:
            self.tell(NodeJoined(NODE, "/r", SLOT * slots))

    def follow(self, decision: Outcome) -> None:
        super().follow(decision)
        if isinstance(decision, StagesOrdered):
            before = self.orders.get(decision.attempt_id)
            assert before is None or decision.order.sequence > before.sequence
            self.orders[decision.attempt_id] = decision.order
        if isinstance(decision, Allocate):
            self.given.append((decision.container_id.attempt_id, decision.priority))

    def told(self, attempt: ApplicationAttemptId, *stages: StageLeft, idle: int = 0) -> list[Outcome]:
        self.now += 0.1
        return self.tell(LeftTold(attempt, stages, idle))

    def ask(self, attempt: ApplicationAttemptId, tasks: int, priority: int = MAP) -> list[Allocate]:
        self.now += 0.1
        return self.asks(attempt, row(count=tasks, priority=priority))

    def job(self, tasks: int, task_s: float, *, queue: str = "jobs") -> ApplicationAttemptId:
        """A job of one stage that tells of it and asks for all its tasks."""
        attempt = self.begin(queue)
        self.told(attempt, StageLeft(MAP, tasks, task_s=task_s))
        self.ask(attempt, tasks)
        return attempt

    def of(self, attempt: ApplicationAttemptId) -> list[ContainerId]:
        return [container for container in self.live if container.attempt_id == attempt]

    def stands(self, attempt: ApplicationAttemptId) -> Sketch:
        """Return how an application of the queue stands."""
        app = self.scheduler.facts.application(attempt.application_id)
        found = self.scheduler.facts.stages_of(app.leaf) if app is not None else None
        assert found is not None
        return next(one for one in found[1].sketches if one.app is app)

    def end_one(self, attempt: ApplicationAttemptId) -> list[Allocate]:
        self.now += 0.1
        return self.ends(self.of(attempt)[0])
