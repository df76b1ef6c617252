"""A node that is kept for what must not wait is given up once it is no place any more where something ends soon."""

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nm.node_queue import JobReport, JobsReported, NodeQueue, NodeQueueSettings
from rm.scheduler.decisions import Reserve, Unreserve
from rm.scheduler.events import (
    ApplicationSubmitted,
    Asked,
    AttemptStarted,
    Estimated,
    NodeBeat,
    NodeJoined,
    NodeQueueReported,
    NodeSilent,
    WaitingTolerated,
)
from rm.scheduler.node_queues.spec import QueueingSpec
from tests.examples import examples
from tests.rm.rm_life import Life
from tests.rm.rm_newcomers import BOUND, LONG_S, SLOTS, Cluster
from tests.rm.rm_world import SLOT
from yaqd.model import ApplicationAttemptId, ApplicationId, NodeId
from yaqd.policies.asks.rows import AskRow
from yaqd.policies.queueing.facts import JobFacts
from yaqd.policies.queueing.order import Ordering

PHASES = [0.0, 3.75, 4.25, 5.5]


def full_slots(cluster: Cluster, host: str, told_s: float | None, runs_s: float, tasks: int = SLOTS) -> ApplicationId:
    """Tasks of an application of their own that go to a node alone, said to run for so long (None: nobody knows)."""
    app_id = ApplicationId(1, 100 + len(cluster.tasks))
    cluster.tasks[app_id], cluster.accepted[app_id] = (tasks, runs_s), 0.0
    attempt_id = ApplicationAttemptId(app_id, 1)
    cluster.tell(ApplicationSubmitted(app_id, "q", "ann", 0))
    cluster.tell(AttemptStarted(attempt_id, ()))
    if told_s is not None:
        cluster.tell(Estimated(app_id, 1, told_s))
    cluster.tell(WaitingTolerated(attempt_id))
    places = ((host, True), ("/r", False), ("*", False))
    cluster.tell(Asked(attempt_id, tuple(AskRow(1, -1, name, SLOT, tasks, relaxed) for name, relaxed in places)))
    cluster.run(1.0)
    assert len(cluster.running[NodeId(host, 1)]) == SLOTS
    return app_id


@pytest.mark.slow
@pytest.mark.parametrize("phase_s", PHASES)
@pytest.mark.parametrize("endless", ["a", "b"])
@pytest.mark.parametrize("keeps_room", [True, False])
def test_a_node_whose_tasks_run_on_for_ever_is_given_up(endless: str, phase_s: float, keeps_room: bool) -> None:
    """They are past an estimate of 3 s, about to end by all that is known, until nobody believes that any more."""
    cluster = Cluster(keeps_room=keeps_room)
    full_slots(cluster, endless, 3.0, 1e6)
    full_slots(cluster, "b" if endless == "a" else "a", 30.0, 30.0, 300)
    cluster.run(phase_s)
    zeta = cluster.app(1, 2.0)
    cluster.run(5.5)
    assert kept(cluster, zeta) == {endless} and cluster.scheduler.view.holds.reserved
    cluster.run(60.0)
    ends = 1 if keeps_room else math.ceil((BOUND + 1) / SLOTS)
    assert cluster.masters.get(zeta, math.inf) <= ends * 30.0 - phase_s, "as soon as what runs there has ended"


def test_a_node_whose_tasks_turn_out_to_be_long_is_given_up() -> None:
    cluster = Cluster(keeps_room=True)
    slow = full_slots(cluster, "a", 20.0, 1000.0)
    full_slots(cluster, "b", 40.0, 40.0, 300)
    cluster.run(13.0)
    zeta = cluster.app(1, 2.0)
    cluster.run(6.0)
    assert kept(cluster, zeta) == {"a"} and cluster.scheduler.view.holds.reserved
    cluster.tell(Estimated(slow, 1, 1000.0))
    report = JobReport(slow, JobFacts(), arrival=None, estimates={1: 1000.0})
    cluster.at_node(NodeId("a", 1), cluster.queues[NodeId("a", 1)].handle(JobsReported((report,)), cluster.now))
    cluster.run(3.0)
    assert kept(cluster, zeta) == {"b"}
    cluster.run(40.0)
    assert cluster.masters[zeta] <= 27.0


@pytest.mark.parametrize("phase_s", PHASES)
def test_room_for_a_master_is_kept_beside_others_whatever_a_newcomer_would_wait_there(phase_s: float) -> None:
    """Behind the masters that run there and the one to come a newcomer never starts, but that one does."""
    cluster = Cluster(keeps_room=True)
    for _ in "ab":
        cluster.app(20, LONG_S, estimate=LONG_S)
    cluster.run(8.0 + phase_s)
    zeta = cluster.app(4, 2.0)
    held: set[str] = set()
    for _ in range(9):
        cluster.run(0.5)
        held |= {str(name) for name in kept(cluster, zeta)}
    assert len(held) == 1, "told to one node, and to no other before a reservation is due"
    cluster.run(5.0)
    assert cluster.masters.get(zeta, math.inf) <= LONG_S + 0.5


def kept(cluster: Cluster, app_id: ApplicationId) -> set[str]:
    """Nodes that are kept for the application."""
    nodes = cluster.scheduler.view.nodes.all()
    return {node.id.host for node in nodes if node.hold is not None and node.hold.attempt.app.id == app_id}


# ---- what the scheduler is told


class TwoNodes(Life):
    """Of four slots each, full, with queues that take nothing; a task of which nobody knows the end wants a place."""

    def __init__(self, *, gb: int = 1, wait_b: float = 8.0) -> None:
        super().__init__(QueueingSpec(bound=0))
        self.a, self.b = self.node("a"), self.node("b")
        self.known = self.app()
        assert self.ask(self.known, 3, "a", "/r1") == ["a"] * 3
        self.unknown = self.app(estimate=None)
        assert self.ask(self.unknown, 1, "a", "/r1") == ["a"]
        assert self.ask(self.known, 4, "b", "/r1") == ["b"] * 4
        self.zeta = self.app(estimate=None)
        assert self.ask(self.zeta, 1, gb=gb) == []
        self.now += 6.0
        self.says(1.0, wait_b)

    def says(self, wait_a: float, wait_b: float) -> list[type]:
        """Both nodes beat; what is decided about reservations."""
        for node, wait in ((self.a, wait_a), (self.b, wait_b)):
            self.tell(NodeQueueReported(node, 4, 0, wait))
        decided = [d for node in (self.a, self.b) for d in self.tell(NodeBeat(node))]
        return [type(d) for d in decided if isinstance(d, Reserve | Unreserve)]

    @property
    def reserved(self) -> list[str]:
        return [node.host for node in self.scheduler.view.holds.reserved]


def test_a_reservation_goes_where_an_end_is_known_once_none_is() -> None:
    life = TwoNodes()
    assert life.reserved == ["a"], "where something ends in a second"
    life.now += 2.0
    assert life.says(math.inf, 8.0) == [Unreserve, Reserve] and life.reserved == ["b"]


@pytest.mark.parametrize(("wait_a", "wait_b", "is_given_up"), [(40.0, 8.0, False), (43.0, 8.0, True), (1e6, 1e5, True)])
def test_a_reservation_stays_where_room_does_not_come_much_later(
    wait_a: float, wait_b: float, is_given_up: bool
) -> None:
    life = TwoNodes()
    life.now += 2.0
    assert life.says(wait_a, wait_b) == ([Unreserve, Reserve] if is_given_up else [])


def test_a_reservation_stays_where_nobody_knows_an_end_elsewhere_either() -> None:
    life = TwoNodes()
    life.now += 2.0
    assert life.says(math.inf, math.inf) == []


def test_a_container_larger_than_all_that_ends_there_is_given_no_room_there() -> None:
    """A newcomer of the usual size would start at once beside what has no end; this one never would."""
    life = TwoNodes(gb=4)
    assert life.reserved == ["b"], "a container of which nobody knows the end holds a quarter of the other node"


def test_of_estimates_that_jump_the_next_node_is_kept_twice_as_long() -> None:
    life = TwoNodes()
    moves, since, began = [], life.now, life.now
    while life.now < began + 300.0:
        life.now += 0.5
        at = life.reserved
        decided = life.says(*((math.inf, 8.0) if at == ["a"] else (8.0, math.inf)))
        if Reserve in decided and life.reserved != at:
            moves.append(life.now - since)
            since = life.now
    assert [math.floor(one) for one in moves] == [1, 2, 4, 8, 16, 32, 64, 64, 64]


def test_a_reservation_at_a_node_that_is_not_heard_of_is_given_up() -> None:
    life = TwoNodes()
    assert [type(d) for d in life.tell(NodeSilent(life.a))] == [Unreserve]
    life.tell(NodeQueueReported(life.b, 4, 0, 8.0))
    assert [type(d) for d in life.tell(NodeBeat(life.b))] == [Reserve]


def test_nor_is_its_queue_held_any_longer() -> None:
    life = Life(QueueingSpec(bound=1))
    first, second = life.node("a"), life.node("b")
    assert life.ask(life.app(), 9) == ["a", "b"] * 4 + ["a*"]
    life.app(has_master=True)
    for node in (first, second):
        life.tell(NodeQueueReported(node, 4, 1, 5.0, None, frozenset(), None, True))
    life.tell(NodeBeat(first))
    queue = life.scheduler.node_queues.get(first)
    assert queue is not None and queue.node.hold is not None
    life.tell(NodeSilent(first))
    assert queue.node.hold is None
    life.tell(NodeBeat(second))
    other = life.scheduler.node_queues.get(second)
    assert other is not None and other.node.hold is not None


# ---- whatever estimates say

LIES = st.tuples(st.sampled_from([None, 0.5, 2.0, 6.0, 15.0, 40.0]), st.sampled_from([3.0, 9.0, 50.0, 1e6]))


class Larger(Cluster):
    """With nodes c and d."""

    def __init__(self) -> None:
        super().__init__(keeps_room=True)
        for host in "cd":
            node_id = NodeId(host, 1)
            ordering = NodeQueueSettings(True, 3, Ordering("srjf"), 60.0)
            self.queues[node_id] = NodeQueue(SLOT * SLOTS, max_length=100, settings=ordering)
            self.running[node_id] = {}
            self.tell(NodeJoined(node_id, "/r", SLOT * SLOTS))
            self.tell(NodeQueueReported(node_id, 0, 0, 0.0))


@pytest.mark.slow
@settings(max_examples=examples(50), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(LIES, min_size=3, max_size=3), st.integers(0, 23), st.booleans())
def test_whatever_is_said_of_other_nodes_it_starts_soon_as_tasks_end_at_one(
    lies: list[tuple[float | None, float]], phase: int, is_master: bool
) -> None:
    cluster = Larger()
    believed_s = 0.0
    for host, (told_s, runs_s) in zip("abd", lies, strict=True):
        full_slots(cluster, host, told_s, runs_s)
        if told_s is not None:
            believed_s = max(believed_s, cluster.now + max(3.0 * told_s, told_s + 10.0))
    cluster.app(1000, LONG_S, estimate=LONG_S, master=False)
    cluster.run(phase * 0.25)
    zeta, accepted_s = cluster.app(1, 2.0, master=is_master), cluster.now
    places, changes = frozenset[str](), 0
    while cluster.now < max(believed_s, accepted_s) + 40.0:
        cluster.run(0.5)
        if cluster.masters.get(zeta) if is_master else cluster.started[zeta]:
            break
        now = frozenset(kept(cluster, zeta))
        changes += bool(now - places) and bool(places)
        places = now
    else:
        pytest.fail(f"not started after {cluster.now - accepted_s:.0f} s, kept at {set(places)}")
    assert changes <= 5, "one reservation beside what was begun, and once for each node that nobody believes any more"
