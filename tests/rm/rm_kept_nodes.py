"""Full nodes with long node queues, and masters whose containers must not wait."""

import math
from itertools import count

from rm.scheduler.events import (
    BoundWish,
    ContainerEnded,
    Elapsed,
    NodeJoined,
    ProxyPlaced,
    WantedElsewhere,
)
from rm.scheduler.node_queues.spec import QueueingSpec
from rm.scheduler.opportunistic.placing import OpportunisticLimits
from rm.scheduler.view.calculators import AllocationBounds
from tests.rm.rm_world import World, row
from yaqd.model import ApplicationAttemptId, ContainerId, ExecutionType, NodeId, Resource

ONE = Resource(1024, 1)
SPARE = ExecutionType.OPPORTUNISTIC
STARVE_S = 20.0
SPEC = QueueingSpec(unaware_wait_s=2.0, starve_s=STARVE_S)


class Life(World):
    """Nodes of two slots, all full and with node queues of some length."""

    def __init__(self, nodes: int, spec: QueueingSpec = SPEC) -> None:
        super().__init__(
            bounds=AllocationBounds(ONE, Resource(8192, 8)),
            opportunistic=OpportunisticLimits(choice_s=0.0),
            queueing=spec,
        )
        self._numbers = count(1)
        self.nodes = [NodeId(f"n{number}", 1) for number in range(nodes)]
        others = self.app(tolerates_waiting=True)
        for number, node in enumerate(self.nodes):
            self.tell(NodeJoined(node, "/r", ONE * 2))
            self.report(node, queued=5, wait_s=10.0 + number)
            assert self.place(others, node) and self.place(others, node)
            self.report(node, queued=5, wait_s=10.0 + number)

    def report(self, node: NodeId, *, queued: int, wait_s: float, running: int = 2) -> None:
        self.reports(node, running, queued, wait_s)
        wait_ms = round(wait_s * 1000) if wait_s < math.inf else -1
        self.reports_opportunistic(node, queued, wait_ms, 10)

    def end(self, node: NodeId, number: int) -> None:
        """So many of those that were sent there."""
        there = [c for c, placed in self.scheduler.opportunistic.containers.items() if placed.node_id == node]
        for container_id in there[:number]:
            self.tell(ContainerEnded(container_id))

    def app(self, *, tolerates_waiting: bool = False) -> ApplicationAttemptId:
        return self.begin(tolerates_waiting=tolerates_waiting)

    def want(
        self,
        attempt: ApplicationAttemptId,
        number: int,
        *,
        after_s: float = 0.0,
        sizes: frozenset[Resource] = frozenset(),
        bound: tuple[BoundWish, ...] = (),
    ) -> None:
        """Its proxy calls, with so many that no node takes."""
        self.now += after_s
        self.tell(WantedElsewhere(attempt.application_id, ((1, number),), sizes, bound))

    def ask(self, attempt: ApplicationAttemptId, number: int, size: Resource = ONE) -> list[NodeId]:
        """The same without a proxy."""
        return [one.node_id for one in self.asks(attempt, row(count=number, size=size, kind=SPARE))]

    def held(self, attempt: ApplicationAttemptId) -> list[NodeId]:
        """The nodes that are held for its opportunistic containers."""
        return [hold.node.id for hold in self.scheduler.view.holds.opportunistic_of(attempt)]

    def published(self, attempt: ApplicationAttemptId) -> list[NodeId]:
        self.tell(Elapsed())
        return [load.node.id for load in self.scheduler.opportunistic.ranked(attempt)]

    def place(self, attempt: ApplicationAttemptId, node: NodeId) -> bool:
        """Its proxy sends one there, if it may."""
        if not self.scheduler.opportunistic.may_go(self.attempt_of(attempt), node, ONE):
            return False
        self.tell(ProxyPlaced(ContainerId(attempt, -next(self._numbers)), node, ONE, 1, -1))
        return True
