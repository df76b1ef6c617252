"""Opportunistic containers in the ResourceManager: where they go, what they do not take, what nodes are told."""

import math

import pytest

from rm.scheduler.decisions import Allocate
from rm.scheduler.events import (
    Asked,
    AttemptEnded,
    ContainerEnded,
    Elapsed,
    Estimated,
    NodeDraining,
    NodeJoined,
    NodeLeft,
    NodeResized,
    NodeSilent,
    PlaceLost,
    UpdateAsked,
    WaitingTolerated,
)
from rm.scheduler.node_queues.spec import QueueingSpec
from rm.scheduler.opportunistic import placing, search
from rm.scheduler.opportunistic.placing import OpportunisticLimits
from rm.scheduler.opportunistic.room import Fits, LoadOrder, takes
from rm.scheduler.view.node import NodeQueue
from tests.rm.rm_world import GB, World, hosts
from yaqd.model import ExecutionType, NodeId, Resource
from yaqd.policies.asks.rows import AskRow, Locality
from yaqd.policies.queueing.place_scores import Affinity

SPARE = ExecutionType.OPPORTUNISTIC
ENABLED = {"yarn.resourcemanager.opportunistic-container-allocation.enabled": "true"}


class Life(World):
    """One application, whose asks are for opportunistic containers."""

    def __init__(self, limits: OpportunisticLimits | None, queueing: QueueingSpec | None = None) -> None:
        super().__init__(opportunistic=limits, queueing=queueing)
        self.attempt = self.begin()

    def node(
        self,
        host: str,
        *,
        length: int = 0,
        capacity: float = 10,
        rack: str = "/r1",
        gb: int = 4,
        wait_ms: int = -1,
    ) -> NodeId:
        node = self.join(host, Resource(gb * GB, 8), rack=rack)
        self.reports_opportunistic(node, length, wait_ms, capacity)
        return node

    def ask(self, count: int, *names: str, gb: int = 1, kind: ExecutionType = SPARE, strict: bool = False) -> list[str]:
        """The hosts given for so many containers, preferring these names."""
        relax = not strict
        rows = tuple(AskRow(1, -1, n, Resource(gb * GB, 1), count, True, kind) for n in names)
        rows += (AskRow(1, -1, "*", Resource(gb * GB, 1), count, relax, kind),)
        return hosts(self.asks(self.attempt, *rows))

    def ranked(self) -> list[NodeId]:
        """As its proxy hears of them."""
        self.tell(Elapsed())
        return [load.node.id for load in self.scheduler.opportunistic.ranked()]

    def beat(self) -> list[Allocate]:
        """The master's next heartbeat, without asks."""
        return self.asks(self.attempt)


def test_takes_nobodys_room() -> None:
    life = Life(OpportunisticLimits())
    life.node("a")
    assert life.ask(6) == ["a"] * 6  # 4 GB: more than fit
    assert life.scheduler.view.root.used == Resource() and life.scheduler.view.nodes.all()[0].free.memory_mb == 4 * GB
    assert life.ask(4, kind=ExecutionType.GUARANTEED) == ["a"] * 4


def test_goes_to_the_shortest_queue_and_counts_what_it_has_sent() -> None:
    life = Life(OpportunisticLimits())
    life.node("a", length=3)
    life.node("b", length=1)
    # b until as many wait there as on a, then in turn
    assert life.ask(5) == ["b", "b", "a", "b", "a"]


@pytest.mark.parametrize("queueing", [None, QueueingSpec()])
def test_of_a_storm_who_want_the_same_look_for_a_node_once(
    monkeypatch: pytest.MonkeyPatch, queueing: QueueingSpec | None
) -> None:
    life = Life(OpportunisticLimits(), queueing)
    node = life.node("a", length=10)
    looks = []
    find = life.scheduler.opportunistic._find
    monkeypatch.setattr(life.scheduler.opportunistic, "_find", lambda *given: looks.append(1) or find(*given))
    rows = [AskRow(1, number, "*", Resource((1 + number % 2) * GB, 1), 1, True, SPARE) for number in range(3000)]
    assert life.tell(Asked(life.attempt, tuple(rows))) == [] == life.beat()
    assert len(looks) == 4, "two sizes, twice"
    life.reports_opportunistic(node, 7, 0, 10)
    assert len(life.beat()) == 3, "none is forgotten"


def insisting(number: int, host: str, rack: str = "/r1") -> tuple[AskRow, ...]:
    """Rows of an ask for one container on this host; `number`: of the request."""
    size = Resource(GB, 1)
    return tuple(AskRow(1, number, name, size, 1, name == host, SPARE) for name in (host, rack, "*"))


@pytest.mark.parametrize("queueing", [None, QueueingSpec()])
def test_asks_that_insist_on_hosts_that_take_nothing_hide_no_others(queueing: QueueingSpec | None) -> None:
    life = Life(OpportunisticLimits(), queueing)
    life.node("a")
    rows = [row for number in range(1500) for row in insisting(number, f"gone-{number}")]
    rows.append(AskRow(1, 1500, "*", Resource(GB, 1), 3, True, SPARE))
    assert life.tell(Asked(life.attempt, tuple(rows))) == []
    assert [d.allocation_request_id for d in life.beat()] == [1500] * 3
    life.tell(Asked(life.attempt, insisting(0, "a")))
    assert [d.allocation_request_id for d in life.beat()] == [0], "the first are looked at again after the last"


@pytest.mark.parametrize("queueing", [None, QueueingSpec()])
def test_a_call_looks_at_so_many_nodes_and_the_next_one_goes_on_there(
    monkeypatch: pytest.MonkeyPatch, queueing: QueueingSpec | None
) -> None:
    monkeypatch.setattr(search, "_LOOKS_MAX", 60)
    looked: list[str] = []

    def seen(queue: NodeQueue, need: Resource, most_s: float, fits: Fits) -> bool:
        looked.append(queue.node.id.host)
        return takes(queue, need, most_s, fits)

    monkeypatch.setattr(placing, "takes", seen)
    life = Life(OpportunisticLimits(), queueing)
    hosts = [f"h{number:02}" for number in range(50)]
    for host in hosts:
        life.node(host, length=10, rack="/r" + host[1])
    rows = tuple(row for number, host in enumerate(hosts) for row in insisting(number, host, "/r" + host[1]))
    life.tell(Asked(life.attempt, rows))
    assert looked == hosts[:30], "those that somebody wanted, and none else"
    life.beat()
    assert looked == [*hosts, *hosts[:10]], "from there on, and begins again"
    looked.clear()
    life.scheduler.opportunistic.attempt_ended(life.attempt)
    rows = tuple(row for number, host in enumerate(hosts) for row in insisting(number, "/r0", host))
    life.tell(Asked(life.attempt, rows))
    assert looked.count("h09") <= 2, "a rack that takes nothing is looked at once a call"


def test_what_its_master_takes_for_running_goes_where_it_starts_soon() -> None:
    unaware = QueueingSpec(unaware_wait_s=2.0)
    for spec in (unaware, QueueingSpec()):
        life = Life(OpportunisticLimits(), spec)
        for host, wait_ms in (("late", 3000), ("never", -1), ("unknown", 0), ("short", 1900)):
            life.node(host, length=1, wait_ms=wait_ms)
        assert life.ask(1) == ["short"], "a wait of 0 says that there was room, which is gone where others wait"
    life = Life(OpportunisticLimits(), unaware)
    node = life.node("a", length=1, wait_ms=1200)
    life.tell(Estimated(life.attempt.application_id, 1, 0.5))
    assert life.ask(3) == ["a", "a"], "each makes the next one wait longer"
    assert life.beat() == []
    life.reports_opportunistic(node, 0, 0, 10)
    assert len(life.beat()) == 1, "there is room"
    life.tell(WaitingTolerated(life.attempt))
    life.reports_opportunistic(node, 9, 90_000, 10)
    assert life.ask(1) == ["a"]


def test_a_node_that_is_silent_gets_nothing_and_is_published_to_nobody() -> None:
    life = Life(OpportunisticLimits(choice_s=1e9), QueueingSpec())
    silent, other = life.node("a", length=1, wait_ms=1000), life.node("b", length=5, wait_ms=9000)
    assert life.ranked() == [silent, other]
    life.tell(NodeSilent(silent))
    assert life.ask(1) == ["b"] and life.ask(1, "a", strict=True) == []
    assert life.ranked() == [other]
    life.reports_opportunistic(silent, 1, 1000, 10)
    assert [d.node_id for d in life.beat()] == [silent]


def test_what_came_back_late_waits_nowhere_for_as_long_again() -> None:
    life = Life(OpportunisticLimits(), QueueingSpec(unaware_wait_s=2.0))
    life.node("a", length=1, wait_ms=1000)
    (first,) = life.tell(Asked(life.attempt, (AskRow(1, -1, "*", Resource(GB, 1), 1, True, SPARE),)))
    assert isinstance(first, Allocate)
    life.now = 6.0
    life.tell(PlaceLost(life.attempt.application_id, 1, 0.0))
    life.tell(ContainerEnded(first.container_id))
    life.reports_opportunistic(first.node_id, 1, 1000, 10)
    assert life.ask(1) == []
    life.now = 12.0
    (again,) = life.beat()
    assert again.waits_since == 0.0


def test_where_nodes_are_filled_they_wait_by_the_rule_of_all_that_waits() -> None:
    queues = ("near", 2, 9000), ("long", 3, 1000), ("short", 1, 3000)
    for spec, given_to in ((None, ["near"]), (QueueingSpec(), ["long"])):
        life = Life(OpportunisticLimits(), spec)
        for host, length, wait_ms in queues:
            life.node(host, length=length, wait_ms=wait_ms)
        assert life.ask(1, "near") == given_to, "Hadoop's goes to a wanted host however long it waits there"
    for interference, given_to in ((0.0, ["long"] * 2), (2.0, ["long", "short"])):
        life = Life(OpportunisticLimits(), QueueingSpec(affinity=Affinity(interference=interference)))
        for host, length, wait_ms in queues[1:]:
            life.node(host, length=length, wait_ms=wait_ms)
        assert life.ask(2) == given_to
    life = Life(OpportunisticLimits(), QueueingSpec())
    for host in "abc":
        life.node(host)
    assert life.ask(6) == ["a", "b", "c", "a", "b", "c"]


def test_idle_nodes_are_filled_evenly() -> None:
    life = Life(OpportunisticLimits())
    for host in "abc":
        life.node(host)
    assert life.ask(6) == ["a", "b", "c", "a", "b", "c"]


def test_full_silent_and_unwilling_nodes_are_left_out_until_they_have_room() -> None:
    life = Life(OpportunisticLimits(choice_s=0.0))
    full = life.node("full", length=2, capacity=2)
    life.node("unwilling", capacity=0)
    life.tell(NodeJoined(NodeId("silent", 1), "/r1", Resource(4 * GB, 8)))
    assert life.ask(1) == []
    assert life.scheduler.opportunistic.waits(life.attempt)
    life.reports_opportunistic(full, 1, -1, 2)
    (given,) = life.beat()
    assert (
        given.node_id == full and given.execution_type is SPARE and not life.scheduler.opportunistic.waits(life.attempt)
    )


def test_nodes_that_are_about_to_go_get_none() -> None:
    life = Life(OpportunisticLimits())
    going = life.node("a")
    life.node("b", length=5)
    life.tell(NodeDraining(going))
    assert life.ask(2) == ["b", "b"]
    life.tell(NodeResized(going, Resource(4 * GB, 8)))  # it stays after all
    life.now += 1
    assert life.ask(1) == ["a"]


def test_prefers_hosts_then_racks_then_anything() -> None:
    life = Life(OpportunisticLimits())
    life.node("a", length=5, rack="/r1")
    life.node("b", length=0, rack="/r2")
    decisions = life.tell(
        Asked(life.attempt, tuple(AskRow(1, -1, n, Resource(GB, 1), 1, True, SPARE) for n in ("a", "/r1", "*")))
    )
    assert [(d.node_id.host, d.locality) for d in decisions if isinstance(d, Allocate)] == [("a", Locality.NODE)]
    assert life.ask(1, "elsewhere", "/r2") == ["b"]
    assert life.ask(1, "elsewhere", "/nowhere", strict=True) == []


def test_bounded_per_heartbeat_and_to_the_best_nodes() -> None:
    life = Life(OpportunisticLimits(nodes_used=1, per_heartbeat=2))
    life.node("a", length=1, capacity=math.inf)
    life.node("b")
    assert life.ask(5) == ["b", "b"]
    assert [len(life.beat()) for _ in range(3)] == [2, 1, 0]


def test_by_wait_time_leaves_out_nodes_that_do_not_know_theirs() -> None:
    life = Life(OpportunisticLimits(order=LoadOrder.QUEUE_WAIT_TIME))
    life.node("a")
    slow = life.node("b")
    life.reports_opportunistic(slow, 0, 5000, 10)
    assert life.ask(1) == ["b"]


def test_what_ended_or_left_is_forgotten() -> None:
    life = Life(OpportunisticLimits())
    node = life.node("a")
    life.ask(2)
    first, second = life.scheduler.opportunistic.containers
    life.tell(ContainerEnded(first))
    life.tell(NodeLeft(node))
    life.tell(NodeJoined(node, "/r1", Resource(4 * GB, 8), (second,)))
    assert list(life.scheduler.opportunistic.containers) == [second]
    life.reports_opportunistic(node, 20, -1, 10)
    life.ask(3)
    assert life.scheduler.opportunistic.waits(life.attempt)
    life.tell(AttemptEnded(life.attempt))
    assert not life.scheduler.opportunistic.waits(life.attempt)


def test_promoted_when_there_is_room_and_demoted_at_once() -> None:
    life = Life(OpportunisticLimits())
    life.node("a")
    life.ask(4, kind=ExecutionType.GUARANTEED)
    guaranteed = list(life.scheduler.view.containers)
    life.ask(1)
    (spare,) = life.scheduler.opportunistic.containers
    assert life.tell(UpdateAsked(spare, Resource(GB, 1), ExecutionType.GUARANTEED)) == []
    updates = life.tell(UpdateAsked(guaranteed[0], Resource(GB, 1), SPARE))
    # the demoted one's room goes to the one that has waited
    assert [(d.container_id, d.execution_type) for d in updates] == [  # type: ignore[union-attr]
        (guaranteed[0], SPARE),
        (spare, ExecutionType.GUARANTEED),
    ]
    assert set(life.scheduler.opportunistic.containers) == {guaranteed[0]}
    assert spare in life.scheduler.view.containers


def test_without_the_switch_everything_is_guaranteed() -> None:
    life = Life(None)
    life.node("a", gb=2)
    decisions = life.tell(Asked(life.attempt, (AskRow(1, -1, "*", Resource(GB, 1), 3, True, SPARE),)))
    assert [d.execution_type for d in decisions if isinstance(d, Allocate)] == [ExecutionType.GUARANTEED] * 2


@pytest.mark.parametrize(("lengths", "limit"), [([0, 0], 5), ([10, 10], 10), ([0, 20], 15), ([4, 8], 8)])
def test_queue_limit_is_the_mean_and_a_deviation_within_bounds(lengths: list[int], limit: int) -> None:
    life = Life(OpportunisticLimits())
    assert life.scheduler.opportunistic.queue_limit == 15, "nothing was heard yet"
    for number, length in enumerate(lengths):
        life.now += 1.0
        life.node(f"n{number}", length=length)
    assert life.scheduler.opportunistic.queue_limit == limit


def test_queue_limit_is_worked_out_once_in_an_interval() -> None:
    life = Life(OpportunisticLimits(choice_s=2.0))

    def limit_at(now: float, host: str, length: int) -> int:
        life.now = now
        life.node(host, length=length)
        return life.scheduler.opportunistic.queue_limit

    assert limit_at(50.0, "a", 0) == 5
    assert limit_at(51.9, "b", 20) == 5
    assert limit_at(52.0, "c", 20) == 15
    assert limit_at(10.0, "d", 0) == 15, "the clock was set back: as good as an interval"
