"""Scenarios of the scheduler, each a few events with the decisions they must lead to."""

from typing import Any

import pytest

from rm.scheduler.decisions import Allocate, Outcome, RefuseApplication, Reserve, Unreserve
from rm.scheduler.events import (
    ApplicationEnded,
    ApplicationSubmitted,
    Asked,
    AttemptEnded,
    AttemptStarted,
    ContainerEnded,
    NodeBeat,
    NodeLeft,
    PriorityChanged,
    QueuesRefreshed,
)
from rm.scheduler.queues.spec import QueueConfigError, SchedulerSpec
from tests.rm.rm_world import DOMINANT, GB, ONE_QUEUE, World, given, queues
from yaqd.model import ApplicationAttemptId, ApplicationId, NodeId, Resource
from yaqd.policies.asks.rows import AskRow, Locality
from yaqd.policies.asks.table import TooManyAsks


def spec(**values: str) -> SchedulerSpec:
    return queues({**ONE_QUEUE, "resource-calculator": DOMINANT}, **values)


class Cluster(World):
    """Nodes by their size in GB."""

    def __init__(self, tree: SchedulerSpec | None = None, **limits: Any) -> None:
        super().__init__(tree or spec(), **limits)

    def node(self, host: str, gb: int = 4, vcores: int = 8, rack: str = "/r1", port: int = 1) -> NodeId:
        return self.join(host, Resource(gb * GB, vcores), rack=rack, port=port)


def row(name: str, count: int, gb: int = 1, priority: int = 1, relax: bool = True, request_id: int = -1) -> AskRow:
    return AskRow(priority, request_id, name, Resource(gb * GB, 1), count, relax)


def test_ask_is_served_at_once_and_spread_over_the_emptiest_nodes() -> None:
    c = Cluster()
    a, b = c.node("a"), c.node("b")
    decisions = c.asks(c.begin(), row("*", 4))
    assert [d.node_id for d in decisions] == [a, b, a, b]
    assert {d.locality for d in decisions} == {Locality.NONE}


def test_counts_are_lowered_at_each_level_as_masters_do() -> None:
    c = Cluster()
    c.node("a", gb=1)
    app = c.begin()
    (first,) = c.asks(app, row("a", 2), row("/r1", 2), row("*", 2))
    assert first.locality is Locality.NODE
    attempt = c.scheduler.view.attempt(app)
    assert attempt is not None
    ask = attempt.asks.get((1, -1))
    assert ask is not None and ask.counts == {"a": 1, "/r1": 1, "*": 1}
    assert c.asks(app, row("a", 1), row("/r1", 1), row("*", 1)) == []
    assert c.asks(app, row("*", 0)) == []
    assert c.tell(ContainerEnded(first.container_id)) == [], "cancelled: the freed room goes to nobody"


def test_local_ask_waits_as_many_offers_as_there_are_nodes_then_takes_the_rack() -> None:
    c = Cluster(spec(node_locality_delay="40"))
    busy, other = c.node("busy", gb=1), c.node("other")
    c.asks(c.begin(), row("busy", 1), row("*", 1, relax=False))
    waiting = c.begin()
    assert c.asks(waiting, row("busy", 1), row("/r1", 1), row("*", 1)) == []
    assert c.beats(other) == []
    assert c.beats(other) == []
    (late,) = c.beats(other)
    assert (late.node_id, late.locality) == (other, Locality.RACK)
    assert c.beats(busy) == []


def test_strict_ask_never_leaves_its_host() -> None:
    c = Cluster(spec(node_locality_delay="0"))
    a, b = c.node("a", gb=1), c.node("b")
    app = c.begin()
    (first,) = c.asks(app, row("a", 2), row("/r1", 2, relax=False), row("*", 2, relax=False))
    for _ in range(5):
        assert c.beats(b) == []
    (second,) = given(c.tell(ContainerEnded(first.container_id)))
    assert second.node_id == a


def test_preferred_places_that_are_not_in_the_cluster_are_not_waited_for() -> None:
    c = Cluster()
    a = c.node("a")
    (one,) = c.asks(c.begin(), row("datanode7", 1), row("/dc2", 1), row("*", 1))
    assert (one.node_id, one.locality) == (a, Locality.OFF_SWITCH)


def test_blacklisted_hosts_and_racks_are_avoided() -> None:
    c = Cluster()
    c.node("a", rack="/r1")
    b = c.node("b", rack="/r2", gb=1)
    app = c.begin()
    c.tell(Asked(app, (), ("a",)))
    (only,) = c.asks(app, row("*", 2))
    assert only.node_id == b
    (now,) = given(c.tell(Asked(app, (row("*", 1),), (), ("a",))))
    assert now.node_id.host == "a"


def test_lower_priority_numbers_first_and_what_does_not_fit_blocks_nobody() -> None:
    c = Cluster()
    a = c.node("a", gb=4)
    app = c.begin()
    filler = c.asks(app, row("*", 4, priority=9))
    c.asks(app, row("*", 1, gb=3, priority=1), row("*", 1, priority=2), row("*", 1, priority=3))
    assert [d.priority for d in given(c.tell(ContainerEnded(filler[0].container_id)))] == [2]
    assert [d.priority for d in given(c.tell(ContainerEnded(filler[1].container_id)))] == [3]
    assert a


@pytest.mark.parametrize(("ordering", "order"), [("fifo", [1, 1, 1, 2]), ("fair", [1, 2, 1, 2])])
def test_ordering_policies(ordering: str, order: list[int]) -> None:
    c = Cluster(spec(root__default__ordering_policy=ordering))
    hog = c.begin()
    c.node("a", gb=4)
    held = c.asks(hog, row("*", 4))
    first, second = c.begin(), c.begin()
    c.asks(first, row("*", 3))
    c.asks(second, row("*", 3))
    got = [given(c.tell(ContainerEnded(d.container_id)))[0].container_id.application_id.id - 1 for d in held]
    assert got == order


def test_higher_application_priority_goes_first_also_when_changed() -> None:
    c = Cluster()
    c.node("a", gb=1)
    (held,) = c.asks(c.begin(), row("*", 1))
    low, high = c.begin(priority=1), c.begin(priority=5)
    c.asks(low, row("*", 1))
    c.asks(high, row("*", 2))
    (next_one,) = given(c.tell(ContainerEnded(held.container_id)))
    assert next_one.container_id.attempt_id == high
    c.tell(PriorityChanged(low.application_id, 9))
    (after,) = given(c.tell(ContainerEnded(next_one.container_id)))
    assert after.container_id.attempt_id == low


#: one user may take all that a queue may grow to
TWO = {"root__queues": "a,b", "root__a__capacity": "75", "root__b__capacity": "25", "user_limit_factor": "-1"}


def test_queue_furthest_below_its_guarantee_goes_first_and_none_above_its_maximum() -> None:
    c = Cluster(spec(**TWO, root__b__maximum_capacity="50"))
    c.node("n", gb=8)
    in_b = c.begin("b")
    held = c.asks(in_b, row("*", 8))
    assert len(held) == 4, "b stops at half of the cluster though nobody else wants it"
    in_a = c.begin("a")
    assert len(c.asks(in_a, row("*", 9))) == 4
    for container in held:
        (freed,) = given(c.tell(ContainerEnded(container.container_id)))
        share = c.scheduler.view.queues["root.b"].used.memory_mb
        expected = in_b if share == 2 * GB and freed.container_id.attempt_id == in_b else in_a
        assert freed.container_id.attempt_id == expected


def test_masters_share_keeps_room_for_tasks_and_admits_in_order() -> None:
    c = Cluster(spec(maximum_am_resource_percent="0.5"))
    c.node("n", gb=4)

    def start(number: int) -> list[Outcome]:
        app_id = ApplicationId(2, number)
        c.tell(ApplicationSubmitted(app_id, "default", "user", 0))
        return c.tell(AttemptStarted(ApplicationAttemptId(app_id, 1), (row("*", 1, priority=0),)))

    assert [len(given(start(n))) for n in (1, 2, 3, 4)] == [1, 1, 0, 0]
    c.tell(AttemptEnded(ApplicationAttemptId(ApplicationId(2, 4), 1)))
    admitted = given(c.tell(AttemptEnded(ApplicationAttemptId(ApplicationId(2, 1), 1))))
    assert [d.container_id.application_id.id for d in admitted] == [3]
    assert admitted[0].is_master


def test_first_master_starts_whatever_its_share() -> None:
    c = Cluster(spec(maximum_am_resource_percent="0.01"))
    c.node("n")
    app_id = ApplicationId(2, 1)
    c.tell(ApplicationSubmitted(app_id, "default", "user", 0))
    assert len(given(c.tell(AttemptStarted(ApplicationAttemptId(app_id, 1), (row("*", 1),))))) == 1


def test_large_ask_gets_a_node_reserved_and_is_not_starved_by_small_ones() -> None:
    c = Cluster(reserve_after_s=5.0, reservation_s=60.0)
    node = c.node("n", gb=4)
    small, large = c.begin(), c.begin()
    held = c.asks(small, row("*", 40))
    c.asks(large, row("*", 1, gb=4))
    c.now = 3.0
    assert len(given(c.tell(ContainerEnded(held[0].container_id)))) == 1, "too early to reserve"
    c.now = 6.0
    (reserved,) = c.tell(ContainerEnded(held[1].container_id))
    assert isinstance(reserved, Reserve) and reserved.node_id == node
    rest = list(c.scheduler.view.containers)
    for container_id in rest[:-1]:
        assert c.tell(ContainerEnded(container_id)) == [], "kept for the large one"
    allocated, *others = c.tell(ContainerEnded(rest[-1]))
    assert isinstance(allocated, Allocate) and allocated.resource.memory_mb == 4 * GB
    assert [type(d) for d in others] == [Unreserve]


@pytest.mark.parametrize("why", ["same application", "another", "blacklist"])
def test_who_never_takes_the_node_keeps_it_from_no_large_ask_behind_him(why: str) -> None:
    c = Cluster(reserve_after_s=5.0, reservation_s=60.0)
    node = c.node("n", gb=4)
    small, first, large = c.begin(), c.begin(), c.begin()
    if why == "same application":
        large = first
    held = c.asks(small, row("*", 40))
    if why == "blacklist":
        c.tell(Asked(first, (row("*", 1, gb=4),), ("n",)))
    else:
        pinned = [row("gone", 1, gb=4, request_id=5), row("/r1", 1, gb=4, relax=False, request_id=5)]
        c.asks(first, *pinned, row("*", 1, gb=4, relax=False, request_id=5))
    c.asks(large, row("*", 1, gb=4, request_id=6))
    c.now = 6.0
    (reserved,) = c.tell(ContainerEnded(held[0].container_id))
    assert isinstance(reserved, Reserve) and reserved.node_id == node
    allocated, unreserved, *_ = (d for container in held[1:4] for d in c.tell(ContainerEnded(container.container_id)))
    assert isinstance(allocated, Allocate) and allocated.container_id.attempt_id == large
    assert allocated.resource.memory_mb == 4 * GB and isinstance(unreserved, Unreserve)


def test_reservation_ends_with_its_ask_or_its_time() -> None:
    c = Cluster(reserve_after_s=1.0, reservation_s=10.0)
    node = c.node("n", gb=4)
    small, large = c.begin(), c.begin()
    held = c.asks(small, row("*", 40))
    c.asks(large, row("*", 1, gb=4))
    c.now = 2.0
    c.tell(ContainerEnded(held[0].container_id))
    decisions = c.tell(Asked(large, (row("*", 0, gb=4),)))
    assert [type(d) for d in decisions] == [Unreserve, Allocate], "the room goes to the small one at once"
    c.asks(large, row("*", 1, gb=4))
    c.now = 4.0
    assert isinstance(c.tell(ContainerEnded(held[1].container_id))[0], Reserve)
    c.now = 15.0
    decisions = c.tell(NodeBeat(node))
    assert [type(d) for d in decisions] == [Unreserve, Allocate]
    c.now = 30.0
    c.tell(ContainerEnded(held[2].container_id))
    assert c.scheduler.view.holds.reserved
    assert isinstance(c.tell(NodeLeft(node))[0], Unreserve)


def test_container_ids_carry_the_epoch_and_count_up() -> None:
    c = Cluster()
    c.node("n")
    app_id = ApplicationId(1, 50)
    c.tell(ApplicationSubmitted(app_id, "default", "user", 0))
    attempt = ApplicationAttemptId(app_id, 1)
    (master,) = given(c.tell(AttemptStarted(attempt, (row("*", 1),), epoch=7)))
    assert str(master.container_id) == "container_e07_1_0050_01_000001"
    assert [d.container_id.sequence for d in c.asks(attempt, row("*", 2))] == [2, 3]


def test_headroom_is_what_the_queue_and_the_cluster_still_have() -> None:
    c = Cluster(spec(**TWO, root__b__maximum_capacity="50"))
    c.node("n", gb=8, vcores=8)
    app = c.begin("b")
    c.asks(app, row("*", 1))
    attempt = c.scheduler.view.attempt(app)
    assert attempt is not None
    assert c.scheduler.view.headroom(attempt) == Resource(3 * GB, 3)
    c.asks(c.begin("a"), row("*", 6))
    assert c.scheduler.view.headroom(attempt) == Resource(1 * GB, 1)


def test_refusals_say_why() -> None:
    c = Cluster(spec(**TWO, root__b__state="STOPPED", root__a__maximum_applications="1"))
    c.begin("a")
    for queue, why in {
        "a": "already has 1",
        "b": "STOPPED",
        "root": "non-leaf queue",
        "zz": "unknown queue: zz (queues: root.a, root.b)",
        "root.aa": "unknown queue: root.aa; did you mean root.a? (queues: root.a, root.b)",
        "b" * 100_000: "bbb (queues: root.a, root.b)",
    }.items():
        (refused,) = c.tell(ApplicationSubmitted(ApplicationId(3, 1), queue, "user", 0))
        assert isinstance(refused, RefuseApplication) and why in refused.reason


def test_too_many_rows_change_nothing() -> None:
    c = Cluster(ask_rows_max=3)
    c.node("n")
    app = c.begin()
    with pytest.raises(TooManyAsks):
        c.asks(app, *(row(f"h{n}", 1) for n in range(4)))
    c.scheduler.validate()
    assert len(c.asks(app, row("*", 1))) == 1


def test_refreshed_queues_keep_their_applications() -> None:
    c = Cluster(spec(**TWO))
    c.node("n", gb=8)
    app = c.begin("b")
    c.asks(app, row("*", 9))
    with pytest.raises(QueueConfigError, match=r"root\.b.*still has applications"):
        c.tell(QueuesRefreshed(spec()))
    three = {**TWO, "root__queues": "a,b,c", "root__b__capacity": "20", "root__c__capacity": "5"}
    c.tell(QueuesRefreshed(spec(**three)))
    assert c.scheduler.view.queues["root.b"].used.memory_mb == 8 * GB
    new = c.begin("c")
    c.asks(new, row("*", 1))
    held = next(iter(c.scheduler.view.containers))
    assert given(c.tell(ContainerEnded(held)))[0].container_id.attempt_id == new
    for container_id in list(c.scheduler.view.containers):
        c.tell(ContainerEnded(container_id))
    c.tell(ApplicationEnded(app.application_id))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"root__default__capacity": "90"}, r"root\.queues.*add up to 90"),
        ({"root__default__capacity": "3w"}, r"root\.default\.capacity.*weights"),
        ({"root__default__capacity": "-2"}, "between 0 and 100"),
        ({"root__default__state": "GONE"}, "RUNNING or STOPPED"),
        ({"root__default__ordering_policy": "lifo"}, "fifo, fair"),
        ({"root__queues": "default,default"}, "stands there twice"),
        ({"root__default__maximum_capacity": "50"}, "below the queue's capacity"),
        ({"resource_calculator": "org.example.Mine"}, "DominantResourceCalculator"),
        ({"maximum_am_resource_percent": "50"}, "between 0 and 1"),
        ({"node_locality_delay": "often"}, "whole number"),
        ({"root__default__minimum_user_limit_percent": "abc"}, "write a number between 0 and 100"),
    ],
)
def test_bad_queue_lines_name_key_and_remedy(values: dict[str, str], message: str) -> None:
    with pytest.raises(QueueConfigError, match=message):
        spec(**values)


def test_decisions_are_logged_with_event_and_reason() -> None:
    c = Cluster(decision_log_entries=3)
    c.node("n", gb=8)
    c.asks(c.begin(), row("*", 5))
    assert [(e.event, type(e.decision).__name__) for e in c.scheduler.log] == [("Asked", "Allocate")] * 3
    assert c.scheduler.log.count == 6
