"""A scheduler with queues at its nodes, and short words for what happens to it."""

from rm.scheduler.decisions import Allocate, Decision
from rm.scheduler.events import (
    ApplicationSubmitted,
    Asked,
    AskRow,
    AttemptStarted,
    ContainerEnded,
    Estimated,
    NodeBeat,
    NodeJoined,
    NodeQueueReported,
    SchedulerEvent,
)
from rm.scheduler.node_queues.spec import QueueingSpec
from rm.scheduler.preemption.spec import PreemptionSpec
from rm.scheduler.queues.spec import PREFIX, parse_capacity_scheduler
from rm.scheduler.scheduler import Scheduler, SchedulerLimits
from rm.scheduler.view.calculators import AllocationBounds
from rm.scheduler.why.reasons import why_waits
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId, NodeId, Resource

GB = 1024


class Life:
    """A scheduler and short words for events; recounted after each."""

    def __init__(
        self, queueing: QueueingSpec | None = None, preemption: PreemptionSpec | None = None, **queues: str
    ) -> None:
        values = queues or {"root.queues": "default", "root.default.capacity": "100"}
        tree = parse_capacity_scheduler(
            {PREFIX + n: v for n, v in {"maximum-am-resource-percent": "1", **values}.items()}
        )
        bounds = AllocationBounds(Resource(GB, 1), Resource(8 * GB, 4))
        queues_of_nodes = queueing or QueueingSpec(bound=2)
        limits = SchedulerLimits(bounds, queueing=queues_of_nodes, preemption=preemption or PreemptionSpec())
        self.scheduler = Scheduler(tree, limits)
        self.now = 0.0
        self.apps = 0
        #: live, in the order in which they were given
        self.live: dict[ContainerId, Allocate] = {}

    def tell(self, event: SchedulerEvent) -> list[Decision]:
        decisions = self.scheduler.handle(event, self.now)
        self.scheduler.validate()
        self.live.update((d.container_id, d) for d in decisions if isinstance(d, Allocate))
        return decisions

    def node(self, host: str, *, gb: int = 4, wait: float | None = 1.0, rack: str = "/r1") -> NodeId:
        """`wait` None: a stock node."""
        node_id = NodeId(host, 1)
        self.tell(NodeJoined(node_id, rack, Resource(gb * GB, gb)))
        if wait is not None:
            self.report(node_id, wait=wait)
        return node_id

    def report(self, node_id: NodeId, *, queued: int = 0, wait: float = 1.0) -> list[str]:
        """A heartbeat; who is given what."""
        self.tell(NodeQueueReported(node_id, 4, queued, wait))
        return named(self.tell(NodeBeat(node_id)))

    def app(
        self, queue: str = "default", *, estimate: float | None = 10.0, has_master: bool = False
    ) -> ApplicationAttemptId:
        self.apps += 1
        app_id = ApplicationId(1, self.apps)
        self.tell(ApplicationSubmitted(app_id, queue, "user", 0))
        attempt_id = ApplicationAttemptId(app_id, 1)
        self.tell(AttemptStarted(attempt_id, (AskRow(0, -1, "*", Resource(GB, 1), 1),) if has_master else ()))
        if estimate is not None:
            self.tell(Estimated(app_id, 1, estimate))
        return attempt_id

    def ask(self, attempt: ApplicationAttemptId, count: int, *names: str, gb: int = 1, priority: int = 1) -> list[str]:
        rows = tuple(AskRow(priority, -1, n, Resource(gb * GB, 1), count) for n in (*names, "*"))
        return named(self.tell(Asked(attempt, rows)))

    def why(self, attempt_id: ApplicationAttemptId) -> str:
        """What is said of the first ask of the attempt."""
        attempt = self.scheduler.view.attempt(attempt_id)
        assert attempt is not None
        return why_waits(self.scheduler.view, attempt, next(iter(attempt.asks))).reason

    def end(self, host: str) -> list[str]:
        """The oldest container there ends."""
        container_id = next(c for c, given in self.live.items() if given.node_id.host == host)
        del self.live[container_id]
        return named(self.tell(ContainerEnded(container_id)))


def named(decisions: list[Decision]) -> list[str]:
    """The host of each container given, with a star where it waits."""
    given = [d for d in decisions if isinstance(d, Allocate)]
    return [d.node_id.host + ("*" if d.queued is not None else "") for d in given]
