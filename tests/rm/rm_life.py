"""A scheduler with queues at its nodes, and short words for what happens to it."""

from collections.abc import Iterable

from rm.scheduler.decisions import Outcome
from rm.scheduler.events import (
    Estimated,
)
from rm.scheduler.node_queues.spec import QueueingSpec
from rm.scheduler.preemption.spec import PreemptionSpec
from tests.rm.rm_world import GB, ONE_QUEUE, SLOT, World, given, queues, rows
from yaqd.model import ApplicationAttemptId, NodeId, Resource


class Life(World):
    """One scheduler with node queues; what is given is told by hosts."""

    def __init__(
        self,
        queueing: QueueingSpec | None = None,
        preemption: PreemptionSpec | None = None,
        *,
        lines: dict[str, str] = ONE_QUEUE,
        validates: bool = True,
    ) -> None:
        """Takes `lines` of the queues in full; by default there is one, `default`."""
        super().__init__(
            queues({"maximum-am-resource-percent": "1", **lines}),
            validates=validates,
            queueing=queueing or QueueingSpec(bound=2),
            preemption=preemption or PreemptionSpec(),
        )

    def node(self, host: str, *, gb: int = 4, wait: float | None = 1.0, rack: str = "/r1") -> NodeId:
        """`wait` None: a stock node."""
        node_id = self.join(host, Resource(gb * GB, gb), rack=rack)
        if wait is not None:
            self.report(node_id, wait=wait)
        return node_id

    def report(self, node_id: NodeId, *, queued: int = 0, wait: float = 1.0) -> list[str]:
        """A heartbeat; who is given what."""
        self.reports(node_id, 4, queued, wait)
        return named(self.beats(node_id))

    def app(
        self, queue: str = "default", *, estimate: float | None = 10.0, has_master: bool = False
    ) -> ApplicationAttemptId:
        attempt_id = self.begin(queue, master=SLOT if has_master else None)
        if estimate is not None:
            self.tell(Estimated(attempt_id.application_id, 1, estimate))
        return attempt_id

    def ask(self, attempt: ApplicationAttemptId, count: int, *names: str, gb: int = 1, priority: int = 1) -> list[str]:
        return named(self.asks(attempt, *rows(*names, count=count, size=Resource(gb * GB, 1), priority=priority)))

    def end(self, host: str) -> list[str]:
        """The oldest container there ends."""
        container_id = next(c for c, given in self.live.items() if given.node_id.host == host)
        return named(self.ends(container_id))


def named(decisions: Iterable[Outcome]) -> list[str]:
    """Returns the host of each container given, with a star where it waits."""
    return [one.node_id.host + ("*" if one.queued is not None else "") for one in given(decisions)]
