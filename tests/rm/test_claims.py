"""Preemption where nodes are filled beyond their size: no queue is kept below its guarantee for longer than ST."""

import math
from dataclasses import dataclass, field

import pytest

from rm.scheduler.decisions import Allocate, Outcome, Preempt, Warn
from rm.scheduler.events import (
    ContainerEnded,
    Estimated,
    NodeJoined,
    NodeQueueReported,
    PreemptionDue,
    PreemptionRefreshed,
    TaskTimes,
)
from rm.scheduler.node_queues.spec import QueueingSpec
from rm.scheduler.preemption.spec import PreemptionSpec
from rm.scheduler.view.calculators import AllocationBounds
from tests.rm.rm_world import HALVES, SLOT, World, queues, row
from yaqd.model import ApplicationId, ContainerId, NodeId

NODES, SLOTS = 6, 4
ST = 20.0
HADOOP = PreemptionSpec(interval_s=3.0, wait_s=15.0)


@dataclass
class Node:
    """Starts what came first when a slot is free."""

    id: NodeId
    line: list[ContainerId] = field(default_factory=list)
    #: until when
    running: dict[ContainerId, float] = field(default_factory=dict)


class Cluster(World):
    """Heartbeats every second, a look for preemption every three."""

    def __init__(self, *, starve_s: float = ST, preempts: bool = True, fills: bool = True) -> None:
        queueing = QueueingSpec(bound=4, starve_s=starve_s) if fills else None
        tree = queues(HALVES, maximum_am_resource_percent="1", user_limit_factor="10")
        super().__init__(tree, bounds=AllocationBounds(SLOT, SLOT), queueing=queueing, preemption=HADOOP)
        self.nodes = {id: Node(id) for id in (NodeId(f"n{i}", 1) for i in range(NODES))}
        self.seconds: dict[ApplicationId, float] = {}
        self.preempts = preempts
        self.killed: list[ContainerId] = []
        self.ran_and_killed: list[ContainerId] = []
        self.noticed = 0
        for node in self.nodes:
            self.tell(NodeJoined(node, "/r", SLOT * SLOTS))
            self.reports(node, 0, 0, 0.0)

    def follow(self, decision: Outcome) -> None:
        super().follow(decision)
        if isinstance(decision, Allocate):
            self.nodes[decision.node_id].line.append(decision.container_id)
        elif isinstance(decision, Warn):
            self.noticed += 1
        elif isinstance(decision, Preempt):
            self.killed.append(decision.container_id)

    def app(self, queue: str, tasks: int, seconds: float, *, estimate: float | None) -> ApplicationId:
        attempt_id = self.begin(queue, "ann")
        app = attempt_id.application_id
        self.seconds[app] = seconds
        if estimate is not None:
            self.tell(Estimated(app, 1, estimate))
        self.asks(attempt_id, row(count=tasks))
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
        self.beats(node.id)

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


@pytest.mark.slow
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


@pytest.mark.slow
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
    held = {"root.a": 0.9, "root.b": 0.1}
    assert needs.need(root, held)["root.a"] < needs.need(root, held)["root.b"], cluster.share(late)
    cluster.tell(PreemptionRefreshed(HADOOP, True))
    assert needs.need(root, held)["root.a"] > needs.need(root, held)["root.b"], "nobody takes anything back any more"
