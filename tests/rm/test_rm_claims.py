"""Preemption where nodes are filled beyond their size: no queue is kept below its guarantee for longer than ST."""

import math
from dataclasses import dataclass, field

import pytest

from rm.scheduler.decisions import Allocate, Preempt, Warn
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
    PreemptionDue,
    PreemptionRefreshed,
    SchedulerEvent,
    TaskTimes,
)
from rm.scheduler.node_queues.spec import QueueingSpec
from rm.scheduler.preemption.spec import PreemptionSpec
from rm.scheduler.queues.spec import PREFIX, parse_capacity_scheduler
from rm.scheduler.scheduler import Scheduler, SchedulerLimits
from rm.scheduler.view.calculators import AllocationBounds
from yaqd.model import ApplicationAttemptId as AttemptId
from yaqd.model import ApplicationId, ContainerId, NodeId, Resource

SLOT = Resource(1024, 1)
NODES, SLOTS = 6, 4
HALVES = {"root.queues": "a,b", "root.a.capacity": "50", "root.b.capacity": "50", "user-limit-factor": "10"}
ST = 20.0
HADOOP = PreemptionSpec(interval_s=3.0, wait_s=15.0)


@dataclass
class Node:
    """Starts what came first when a slot is free."""

    id: NodeId
    line: list[ContainerId] = field(default_factory=list)
    #: until when
    running: dict[ContainerId, float] = field(default_factory=dict)


class Cluster:
    """Heartbeats every second, a look for preemption every three."""

    def __init__(self, *, starve_s: float = ST, preempts: bool = True, fills: bool = True) -> None:
        queueing = QueueingSpec(bound=4, starve_s=starve_s) if fills else None
        limits = SchedulerLimits(AllocationBounds(SLOT, SLOT), queueing=queueing, preemption=HADOOP)
        values = {"maximum-am-resource-percent": "1", **HALVES}
        self.scheduler = Scheduler(parse_capacity_scheduler({PREFIX + n: v for n, v in values.items()}), limits)
        self.nodes = {id: Node(id) for id in (NodeId(f"n{i}", 1) for i in range(NODES))}
        self.seconds: dict[ApplicationId, float] = {}
        self.preempts = preempts
        self.now = 0.0
        self.killed: list[ContainerId] = []
        self.ran_and_killed: list[ContainerId] = []
        self.noticed = 0
        for node in self.nodes:
            self.tell(NodeJoined(node, "/r", SLOT * SLOTS))
            self.tell(NodeQueueReported(node, 0, 0, 0.0))

    def tell(self, event: SchedulerEvent) -> None:
        for decision in self.scheduler.handle(event, self.now):
            if isinstance(decision, Allocate):
                self.nodes[decision.node_id].line.append(decision.container_id)
            elif isinstance(decision, Warn):
                self.noticed += 1
            elif isinstance(decision, Preempt):
                self.killed.append(decision.container_id)
        self.scheduler.validate()

    def app(self, queue: str, tasks: int, seconds: float, *, estimate: float | None) -> ApplicationId:
        app = ApplicationId(1, len(self.seconds) + 1)
        self.seconds[app] = seconds
        self.tell(ApplicationSubmitted(app, queue, "ann", 0))
        self.tell(AttemptStarted(AttemptId(app, 1), ()))
        if estimate is not None:
            self.tell(Estimated(app, 1, estimate))
        self.tell(Asked(AttemptId(app, 1), (AskRow(1, -1, "*", SLOT, tasks),)))
        return app

    def second(self) -> None:
        self.now += 1.0
        for node in self.nodes.values():
            self._beat(node)
        if self.preempts and self.now % 3 == 0:
            self.tell(PreemptionDue())
            for container_id in self.killed:
                for node in self.nodes.values():
                    if node.running.pop(container_id, None) is not None:
                        self.ran_and_killed.append(container_id)
                        self.tell(ContainerEnded(container_id))
                    elif container_id in node.line:
                        node.line.remove(container_id)
                        self.tell(ContainerEnded(container_id))

    def _beat(self, node: Node) -> None:
        over = [c for c, until in node.running.items() if until <= self.now]
        for container_id in over:
            del node.running[container_id]
        while node.line and len(node.running) < SLOTS:
            container_id = node.line.pop(0)
            node.running[container_id] = self.now + self.seconds[container_id.application_id]
        waits = 1.0 if len(node.running) < SLOTS else 5.0 * (len(node.line) + 1)
        waiting, started = frozenset(node.line), frozenset(node.running)
        self.tell(NodeQueueReported(node.id, len(started), len(waiting), waits, waiting, started))
        for container_id in over:
            app = container_id.application_id
            self.tell(TaskTimes(app, 1, 0.0, self.seconds[app], node.id, container_id))
            self.tell(ContainerEnded(container_id))
        self.tell(NodeBeat(node.id))

    def share(self, app: ApplicationId) -> float:
        """Of the slots, what runs for it."""
        held = sum(c.application_id == app for node in self.nodes.values() for c in node.running)
        return held / (NODES * SLOTS)

    def longest_below(self, app: ApplicationId, part: float, seconds: int) -> float:
        """For how long at a stretch it has less than this."""
        longest = below = 0
        for _ in range(seconds):
            self.second()
            below = below + 1 if self.share(app) < part else 0
            longest = max(longest, below)
        return longest


@pytest.mark.parametrize("estimate", [5.0, None])
@pytest.mark.parametrize("starve_s", [ST, 12.0])
def test_no_queue_is_kept_below_its_guarantee_longer_than_st(starve_s: float, estimate: float | None) -> None:
    """Tasks that were to take five seconds never end, and fill the cluster before the other queue comes: its
    containers wait at the nodes behind them, where its asks are answered, or wait at the ResourceManager."""
    cluster = Cluster(starve_s=starve_s)
    cluster.app("b", 60, math.inf, estimate=estimate)
    for _ in range(10):
        cluster.second()
    late = cluster.app("a", 400, 5.0, estimate=estimate)
    # a tenth above its guarantee nobody has to give back (max_ignored_over_capacity)
    assert cluster.longest_below(late, 0.45, 60) <= starve_s
    assert len(cluster.ran_and_killed) <= NODES * SLOTS, "what was given back is not given away again and again"


def test_without_preemption_it_lasts() -> None:
    cluster = Cluster(preempts=False)
    cluster.app("b", 60, math.inf, estimate=5.0)
    late = cluster.app("a", 400, 5.0, estimate=5.0)
    assert cluster.longest_below(late, 0.45, 60) == 60


def test_what_evens_out_by_itself_costs_no_container() -> None:
    cluster = Cluster()
    cluster.app("b", 2000, 5.0, estimate=5.0)
    for _ in range(10):
        cluster.second()
    late = cluster.app("a", 2000, 4.0, estimate=5.0)
    assert cluster.longest_below(late, 0.4, 90) <= ST
    assert not cluster.killed


def test_without_filled_nodes_it_is_hadoops() -> None:
    """A part of what is wanted at a time, each after the whole grace period, whatever ST."""
    cluster = Cluster(fills=False)
    cluster.app("b", 60, math.inf, estimate=5.0)
    cluster.app("a", 400, 5.0, estimate=5.0)
    for _ in range(20):
        cluster.second()
    assert (cluster.noticed, len(cluster.killed)) == (1, 1), "a fifth of a tenth of the cluster, after 18 s"


def test_what_is_taken_back_goes_to_whom_it_was_taken_for_until_preemption_is_turned_off() -> None:
    """Both want more than there is, and tasks of the one never end: what is freed while the other's claim is due is the
    other's, whatever the two hold of nodes' queues."""
    cluster = Cluster()
    cluster.app("b", 60, math.inf, estimate=5.0)
    for _ in range(10):
        cluster.second()
    late = cluster.app("a", 400, 5.0, estimate=5.0)
    while not cluster.killed:
        cluster.second()
    needs = cluster.scheduler.view.shares
    root = cluster.scheduler.view.root
    assert needs is not None
    held = {"root.a": 0.9, "root.b": 0.1}
    assert needs.need(root, held)["root.a"] < needs.need(root, held)["root.b"], cluster.share(late)
    cluster.tell(PreemptionRefreshed(HADOOP, True))
    assert needs.need(root, held)["root.a"] > needs.need(root, held)["root.b"], "nobody takes anything back any more"
