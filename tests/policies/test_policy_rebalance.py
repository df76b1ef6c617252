"""Shedding and moving what waits in queues that are too long."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_facts import SLOT, facts, few, hostile_s, queues, running, sane_s

from yaqd.model import NodeId
from yaqd.policies.queueing.rebalance import QueueLoad, queue_limit, rebalance
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
def test_expected_starts_are_what_a_newcomer_would_wait_in_each_place(line) -> None:
    held = [running(100, facts(estimate=9.0)), running(101, facts(estimate=3.0))]
    total, free = SLOT * 5, SLOT
    starts = expected_starts(total, free, held, line, 0)
    assert starts == [wait_estimate(total, free, held, line[:n], task.resource, 0) for n, task in enumerate(line)]
    assert starts == sorted(starts)


loads = st.lists(
    st.builds(
        QueueLoad,
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
def test_moves_shorten_what_was_longest_and_fill_no_queue_over_its_room(told, least_gain_s, most) -> None:
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
        QueueLoad(node(1), wait_s=30, queued=6, slots=2, mean_s=10, room=0),
        QueueLoad(node(2), wait_s=0, queued=0, slots=2, mean_s=10, room=9),
    ]
    # 30 - 5 against 0, then 25 - 5 against 5, then 20 - 5 against 10, then nothing is gained
    (move,) = rebalance(told, least_gain_s=1.0)
    assert (move.source, move.target, move.tasks, move.gain_s) == (node(1), node(2), 3, 5.0)
    assert rebalance(told, least_gain_s=30.0) == []


def test_a_queue_where_nothing_starts_any_more_gives_all_it_has() -> None:
    stuck = QueueLoad(node(1), wait_s=inf, queued=4, slots=2, mean_s=10, room=9)
    served = QueueLoad(node(2), wait_s=500, queued=0, slots=2, mean_s=10, room=9)
    (move,) = rebalance([stuck, served], least_gain_s=60.0)
    assert (move.source, move.tasks) == (node(1), 4)
    assert rebalance([stuck], least_gain_s=0.0) == []


@few
@given(
    st.lists(
        st.builds(
            QueueLoad, st.integers(0, 3).map(node), hostile_s, st.integers(), st.integers(), hostile_s, st.integers()
        ),
        max_size=6,
    ),
    hostile_s,
)
def test_nodes_may_say_anything(told, least_gain_s) -> None:
    assert sum(move.tasks for move in rebalance(told, least_gain_s, most_moves=100)) <= 100


def test_a_million_queued_is_a_number_like_another() -> None:
    told = [
        QueueLoad(node(1), wait_s=1e6, queued=10**6, slots=1, mean_s=1, room=0),
        QueueLoad(node(2), wait_s=0, queued=0, slots=1, mean_s=1, room=10**6),
    ]
    assert sum(move.tasks for move in rebalance(told, 1.0)) == pytest.approx(1000)
