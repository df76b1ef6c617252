"""Placement: Algorithm 1 against a look at every node, bounds, the cost of a placement."""

import random
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_facts import SLOT, few, hostile_s, sizes

from yaqd.model import NodeId, Resource
from yaqd.policies.queueing.place import Placer
from yaqd.policies.queueing.place_scores import Affinity, NodeReport, NodeView, Wanted, queueing_score
from yaqd.policies.queueing.registry import UnknownPolicy

WHOLE = SLOT * 8
names = st.sampled_from(["wait", "length", "length-per-slot", "two-choices", "random"])


def node(number: int) -> NodeId:
    return NodeId(f"n{number:05d}", 1)


def report(
    number: int, *, free: Resource = SLOT * 0, queued: int = 0, wait_s: float = 0.0, bound: int = 5, rack: str = "/r1"
) -> NodeReport:
    return NodeReport(node(number), rack, WHOLE, free, queued, wait_s, bound, slots=8)


reports = st.builds(
    NodeReport,
    node=st.integers(0, 5).map(node),
    rack=st.sampled_from(["/r1", "/r2"]),
    total=st.just(WHOLE),
    free=st.integers(0, 8).map(lambda slots: SLOT * slots),
    queued=st.integers(0, 6),
    wait_s=st.sampled_from([0.0, 1.0, 2.5, 9.0, inf]),
    bound=st.integers(0, 6),
    slots=st.just(8),
)
wanteds = st.builds(
    Wanted,
    resource=sizes,
    estimate=st.none() | st.floats(0, 100),
    hosts=st.lists(st.integers(0, 6).map(node), max_size=3),
    racks=st.lists(st.sampled_from(["/r1", "/r2", "/r3"]), max_size=2),
)


def never(count: int) -> int:
    raise AssertionError("nothing to draw for")


@few
@given(st.lists(reports, max_size=6), wanteds, st.sampled_from([0.0, 0.3, 1.0]))
def test_it_is_algorithm_1_over_all_nodes(told, wanted, rf_min) -> None:
    placer = Placer("wait", rf_min, most_wait_s=9.0)
    for one in told:
        placer.report(one)
    nodes = [placer[node_id] for node_id in {one.node for one in told}]
    affinity = Affinity()
    fits = [n for n in nodes if n.starts(wanted.resource)]
    queues = [n for n in nodes if n.queued < n.bound and n.wait_s < 9.0 and n not in fits]
    best = max((queueing_score(affinity.of(n, wanted), n.wait_s) for n in fits + queues), default=None)
    nearest = max((affinity.of(n, wanted) for n in fits), default=None)
    share = placer.free_share
    before = {n.node: (n.wait_s, n in fits) for n in nodes}
    placed = placer.place(wanted, never)
    if placed is None:
        assert best is None
        return
    chosen = placer[placed.node]
    wait_s, starts = before[placed.node]
    assert placed.queues is not starts
    assert placed.wait_s == (0.0 if starts else wait_s)
    if share > rf_min and fits:
        assert placed.rule == "free"
        assert affinity.of(chosen, wanted) == nearest
    else:
        assert queueing_score(affinity.of(chosen, wanted), wait_s) == best


@few
@given(names, st.lists(reports, max_size=8), st.lists(wanteds, max_size=40), st.randoms(use_true_random=False))
def test_no_queue_grows_beyond_its_bound_and_nothing_free_is_given_twice(name, told, wanted, draw) -> None:
    placer = Placer(name, 0.1, most_wait_s=50.0)
    for one in told:
        placer.report(one)
    for task in wanted:
        placed = placer.place(task, draw.randrange)
        if placed is not None:
            chosen = placer[placed.node]
            assert chosen.free == chosen.free.floored()
            assert not placed.queues or (chosen.queued <= chosen.bound and placed.wait_s < 50.0)
    assert placer.free_share >= 0.0


@few
@given(
    names,
    st.lists(
        st.builds(report, st.integers(0, 3), queued=st.integers(-9, 10**9), wait_s=hostile_s, bound=st.integers())
    ),
    st.lists(st.builds(Wanted, sizes, hostile_s), max_size=5),
)
def test_nodes_may_say_anything(name, told, wanted) -> None:
    placer = Placer(name, nan, most_wait_s=nan, default_s=nan)
    for one in told:
        placer.report(one)
    for task in wanted:
        placer.place(task, random.Random(1).randrange)
    for one in told:
        placer.remove(one.node)
    assert len(placer) == 0
    assert placer.place(Wanted(SLOT), random.Random(1).randrange) is None
    assert placer.free_share == 0.0


def test_tasks_of_one_moment_spread_over_the_queues() -> None:
    placer = Placer("wait", 0.05)
    for number, wait_s in enumerate((4.0, 1.0, 2.0)):
        placer.report(report(number, wait_s=wait_s, queued=1))
    # each adds 8 s / 8 slots to its node's wait
    placements = [placer.place(Wanted(SLOT, 8.0), never) for _ in range(6)]
    assert [(p.node, p.wait_s) for p in placements if p] == [
        (node(1), 1.0),
        (node(2), 2.0),  # of two equal ones the one that was given nothing for longer
        (node(1), 2.0),
        (node(2), 3.0),
        (node(1), 3.0),
        (node(0), 4.0),
    ]


def test_a_node_without_load_comes_before_the_tasks_own_host() -> None:
    placer = Placer("wait", 0.5)
    placer.report(report(1, wait_s=0.1, queued=1))
    placer.report(report(2, free=SLOT, wait_s=0.0, rack="/r2"))
    placed = placer.place(Wanted(SLOT, 10.0, hosts=[node(1)]), never)
    assert placed is not None and (placed.node, placed.queues) == (node(2), False)


def test_the_own_host_is_worth_twice_the_wait_elsewhere() -> None:
    for wait_there, chosen in ((1.9, 1), (2.1, 2)):
        placer = Placer("wait", 0.05)
        placer.report(report(1, wait_s=wait_there, queued=1))
        placer.report(report(2, wait_s=1.0, queued=1, rack="/r2"))
        placed = placer.place(Wanted(SLOT, 10.0, hosts=[node(1)], racks=["/r1"]), never)
        assert placed is not None and placed.node == node(chosen)


def test_length_takes_the_shorter_queue_however_long_its_tasks_are() -> None:
    for name, chosen in (("length", 1), ("wait", 2)):
        placer = Placer(name, 0.05)
        placer.report(report(1, queued=2, wait_s=500.0))
        placer.report(report(2, queued=4, wait_s=10.0))
        placed = placer.place(Wanted(SLOT, 10.0), never)
        assert placed is not None and placed.node == node(chosen)


def test_two_choices_take_the_better_of_two_drawn() -> None:
    placer = Placer("two-choices", 0.05)
    for number, wait_s in enumerate((1.0, 5.0, 9.0)):
        placer.report(report(number, wait_s=wait_s, queued=1))
    drawn = iter([2, 1])
    placed = placer.place(Wanted(SLOT, 10.0), lambda count: next(drawn))
    assert placed is not None and (placed.node, placed.rule) == (node(1), "two-choices")


def test_tasks_of_one_kind_avoid_each_other() -> None:
    placer = Placer("wait", 0.05, affinity=Affinity(interference=4.0))
    for number, mine in ((1, 6), (2, 0)):
        kinds = {"shuffle": mine, "scan": 6 - mine}
        placer.report(NodeReport(node(number), "/r1", WHOLE, SLOT * 0, 1, 2.0, 5, 8, kinds))
    for kind, chosen in (("shuffle", 2), ("scan", 1)):
        placed = placer.place(Wanted(SLOT, 0.0, kind=kind), never)
        assert placed is not None and placed.node == node(chosen)


def test_nothing_waits_where_only_what_never_ends_runs() -> None:
    placer = Placer("length", 0.05)
    placer.report(report(1, queued=0, wait_s=inf))
    assert placer.place(Wanted(SLOT, 10.0), never) is None


def test_a_placement_costs_no_more_on_a_large_cluster() -> None:
    """Counted in nodes looked at, not in time."""
    looked = 0

    class Counting(Affinity):
        def of(self, node: NodeView, wanted: Wanted) -> float:
            nonlocal looked
            looked += 1
            return Affinity.of(self, node, wanted)

    costs = []
    for size in (100, 5000):
        placer = Placer("wait", 0.05, affinity=Counting())
        for number in range(size):
            placer.report(report(number, wait_s=1.0 + number % 7, queued=1, rack=f"/r{number % 10}"))
        looked = 0
        for number in range(50):
            assert placer.place(Wanted(SLOT, 5.0, hosts=[node(number)], racks=["/r3"]), never)
        costs.append(looked)
    assert max(costs) <= 50 * 17


def test_a_name_that_is_none() -> None:
    with pytest.raises(UnknownPolicy, match=r"'best'.*wait, length"):
        Placer("best")
