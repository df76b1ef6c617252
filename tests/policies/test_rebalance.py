"""Shedding and moving what waits in queues that are too long."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policies.policy_facts import SLOT, facts, few, hostile_s, queues, running, sane_s
from yaqd.model import NodeId
from yaqd.policies.queueing.facts import QueuedTask
from yaqd.policies.queueing.rebalance import NodeQueueLoad, NodeQueueSaid, queue_limit, queue_loads, rebalance
from yaqd.policies.queueing.wait import expected_starts, wait_estimate


def node(number: int) -> NodeId:
    return NodeId(f"n{number}", 1)


def test_hadoops_limit_is_the_mean_and_some_deviations() -> None:
    assert queue_limit([2, 4, 4, 4, 5, 5, 7, 9], 1.0, 0, 100) == 7
    assert queue_limit([2, 4, 4, 4, 5, 5, 7, 9], 0.0, 0, 100) == 5
    assert queue_limit([0, 0, 0], 1.0, 5, 15) == 5
    assert queue_limit([50, 60], 1.0, 5, 15) == 15
    assert queue_limit([nan, inf, -3], 1.0, 5, 15) == 15
    assert queue_limit([nan, 8, 8], 1.0, 5, 15) == 8


@few
@given(queues(sane_s, most=8))
def test_expected_starts_are_what_a_newcomer_would_wait_in_each_place(line: list[QueuedTask]) -> None:
    held = [running(100, facts(estimate=9.0)), running(101, facts(estimate=3.0))]
    total, free = SLOT * 5, SLOT
    starts = expected_starts(total, free, held, line, 0)
    assert starts == [wait_estimate(total, free, held, line[:n], task.resource, 0) for n, task in enumerate(line)]
    assert starts == sorted(starts)


loads = st.lists(
    st.builds(
        NodeQueueLoad,
        node=st.integers(0, 6).map(node),
        wait_s=st.floats(0, 100) | st.just(inf),
        queued=st.integers(0, 9),
        slots=st.integers(1, 8),
        mean_s=st.floats(0.5, 60),
        room=st.integers(0, 9),
    ),
    max_size=7,
    unique_by=lambda load: load.node,
)


@few
@given(loads, st.floats(0, 20), st.integers(0, 50))
def test_moves_shorten_what_was_longest_and_fill_no_queue_over_its_room(
    told: list[NodeQueueLoad], least_gain_s: float, most: int
) -> None:
    moves = rebalance(told, least_gain_s, most)
    by_node = {load.node: load for load in told}
    assert sum(move.tasks for move in moves) <= most
    for number, load in by_node.items():
        assert sum(move.tasks for move in moves if move.source == number) <= load.queued
        assert sum(move.tasks for move in moves if move.target == number) <= load.room
    for move in moves:
        source, target = by_node[move.source], by_node[move.target]
        assert move.gain_s > least_gain_s
        assert source.wait_s > target.wait_s
        assert target.wait_s < inf
    # the last that came to a queue starts earlier than anybody moved would have started where it was
    latest = max((load.wait_s - load.mean_s / load.slots for load in told if load.queued), default=0.0)
    for number, load in by_node.items():
        came = sum(move.tasks for move in moves if move.target == number)
        assert came == 0 or load.wait_s + (came - 1) * load.mean_s / load.slots <= latest + 1e-6


def test_two_queues_by_hand() -> None:
    told = [
        NodeQueueLoad(node(1), wait_s=30, queued=6, slots=2, mean_s=10, room=0),
        NodeQueueLoad(node(2), wait_s=0, queued=0, slots=2, mean_s=10, room=9),
    ]
    # 30 - 5 against 0, then 25 - 5 against 5, then 20 - 5 against 10, then nothing is gained
    (move,) = rebalance(told, least_gain_s=1.0)
    assert (move.source, move.target, move.tasks, move.gain_s) == (node(1), node(2), 3, 5.0)
    assert rebalance(told, least_gain_s=30.0) == []


@pytest.mark.parametrize(("mean_s", "come"), [(0.1, 3), (10, 3), (20, 2)])
def test_what_comes_lasts_as_long_as_where_it_waited_however_short_the_others_there_are(
    mean_s: float, come: int
) -> None:
    told = [
        NodeQueueLoad(node(1), wait_s=30, queued=6, slots=2, mean_s=10, room=0),
        NodeQueueLoad(node(2), wait_s=0, queued=0, slots=2, mean_s=mean_s, room=9),
    ]
    # 30 - 5 against 0, then 25 - 5 against 5, then 20 - 5 against 10; where the others are longer, 10 and 20
    (move,) = rebalance(told, least_gain_s=1.0)
    assert move.tasks == come


def test_a_queue_where_nothing_starts_any_more_gives_all_it_has() -> None:
    stuck = NodeQueueLoad(node(1), wait_s=inf, queued=4, slots=2, mean_s=10, room=9)
    served = NodeQueueLoad(node(2), wait_s=500, queued=0, slots=2, mean_s=10, room=9)
    (move,) = rebalance([stuck, served], least_gain_s=60.0)
    assert (move.source, move.tasks) == (node(1), 4)
    assert rebalance([stuck], least_gain_s=0.0) == []


def test_how_long_tasks_last_is_read_where_they_wait() -> None:
    told = [
        NodeQueueSaid(node(1), wait_s=30, waiting=5, queued=4, slots=2, capacity=20),
        NodeQueueSaid(node(2), wait_s=6, waiting=2, queued=2, slots=4, capacity=None),
        NodeQueueSaid(node(3), wait_s=0.05, waiting=0, queued=0, slots=8, capacity=3),
        NodeQueueSaid(node(4), wait_s=inf, waiting=3, queued=3, slots=1, capacity=10**6),
    ]
    loads = queue_loads(told, most_queued=15, typical_s=60)
    assert [(load.node, load.wait_s, load.queued, load.slots) for load in loads] == [
        (one.node, one.wait_s, one.queued, one.slots) for one in told
    ]
    # 30 x 2 / 6 and 6 x 4 / 3; the others' are as most are
    assert [load.mean_s for load in loads] == [10, 8, 10, 10]
    assert [load.room for load in loads] == [11, 13, 3, 12]
    assert [load.mean_s for load in queue_loads(told[2:], 15, typical_s=60)] == [60, 60]


def test_one_node_that_lies_does_not_say_how_long_all_tasks_last() -> None:
    idle = NodeQueueSaid(node(0), wait_s=0, waiting=0, queued=0, slots=4, capacity=20)
    honest = [NodeQueueSaid(node(n), wait_s=10, waiting=4, queued=4, slots=4, capacity=20) for n in (1, 2)]
    for wait_s, waiting in ((0.001, 10**6), (1e9, 1)):
        liar = NodeQueueSaid(node(3), wait_s, waiting=waiting, queued=waiting, slots=4, capacity=10**6)
        assert queue_loads([idle, *honest, liar], 15, typical_s=60)[0].mean_s == 8


@few
@given(
    st.lists(st.tuples(st.integers(1, 15), st.integers(1, 8), st.floats(0.5, 60)), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 8), st.floats(0, 100), st.integers(0, 10**6)), max_size=4),
    st.floats(0, 20),
)
def test_what_is_moved_never_waits_longer_than_where_it_was(
    full: list[tuple[int, int, float]], others: list[tuple[int, int, float, int]], least_gain_s: float
) -> None:
    """Whatever the others say of their waits and places: what goes there lasts as long as where it comes from."""
    lasts = {node(n): mean_s for n, (_, _, mean_s) in enumerate(full)}
    told = [
        NodeQueueSaid(node(n), mean_s * (waiting + 1) / slots, waiting, waiting, slots, capacity=20)
        for n, (waiting, slots, mean_s) in enumerate(full)
    ]
    told += [
        NodeQueueSaid(node(10 + n), wait_s, waiting, waiting, slots, places)
        for n, (waiting, slots, wait_s, places) in enumerate(others)
    ]
    by_node = {one.node: one for one in told}
    loads = queue_loads(told, most_queued=15, typical_s=10.0)
    moves = [move for move in rebalance(loads, least_gain_s) if move.source in lasts]
    for target in {move.target for move in moves}:
        came = [move for move in moves if move.target == target]
        added_s = sum(move.tasks * lasts[move.source] for move in came)
        last_s = max(lasts[move.source] for move in came)
        would_wait_s = by_node[target].wait_s + (added_s - last_s) / by_node[target].slots
        waits_s = max(by_node[m.source].wait_s - lasts[m.source] / by_node[m.source].slots for m in came)
        assert would_wait_s <= waits_s + 1e-6
        assert sum(move.tasks for move in came) + by_node[target].queued <= 15


@few
@given(
    st.lists(
        st.builds(
            NodeQueueLoad,
            st.integers(0, 3).map(node),
            hostile_s,
            st.integers(),
            st.integers(),
            hostile_s,
            st.integers(),
        ),
        max_size=6,
    ),
    hostile_s,
)
def test_nodes_may_say_anything(told: list[NodeQueueLoad], least_gain_s: float) -> None:
    assert sum(move.tasks for move in rebalance(told, least_gain_s, most_moves=100)) <= 100


@few
@given(
    st.lists(
        st.builds(
            NodeQueueSaid,
            st.integers(0, 3).map(node),
            hostile_s,
            st.integers(),
            st.integers(),
            st.integers(),
            st.none() | st.integers(),
        ),
        max_size=6,
    ),
    st.integers(0, 20),
)
def test_whatever_nodes_say_durations_and_room_are_such(told: list[NodeQueueSaid], most_queued: int) -> None:
    for load in queue_loads(told, most_queued, typical_s=10.0):
        assert load.mean_s >= 0 and 0 <= load.room <= most_queued and load.queued >= 0


def test_a_million_queued_is_a_number_like_another() -> None:
    told = [
        NodeQueueLoad(node(1), wait_s=1e6, queued=10**6, slots=1, mean_s=1, room=0),
        NodeQueueLoad(node(2), wait_s=0, queued=0, slots=1, mean_s=1, room=10**6),
    ]
    assert sum(move.tasks for move in rebalance(told, 1.0)) == pytest.approx(1000)
