"""What is left of a job whose master says so."""

from dataclasses import replace
from itertools import permutations
from math import isclose, isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policies.policy_facts import few, hostile_s
from yaqd.policies.queueing.facts import JobFacts
from yaqd.policies.queueing.left import STAGES_MAX, StageLeft, bounded, facts_of, told
from yaqd.proto import yarn_common_pb2 as pb

#: two sources of a join, and what reads it: the longest chain goes through the second one
PLAN = (
    StageLeft(1, 4, task_s=10.0, work_s=35.0, longest_s=5.0),
    StageLeft(2, 3, task_s=20.0),
    StageLeft(3, 2, after=(1, 2)),
)


def stages(seconds: st.SearchStrategy[float], priorities: st.SearchStrategy[int]) -> st.SearchStrategy[StageLeft]:
    some_s = st.none() | seconds
    after = st.lists(priorities, max_size=4).map(tuple)
    return st.builds(StageLeft, priorities, st.integers(-5, 50), some_s, some_s, some_s, after)


def nobody(_: int) -> None:
    return None


@pytest.mark.parametrize("order", list(permutations(PLAN)))
def test_what_the_master_has_not_seen_is_filled_in(order: tuple[StageLeft, ...]) -> None:
    assert facts_of(order, {3: 7.0}.get) == JobFacts(35.0 + 60.0 + 14.0, 9, 20.0 + 7.0)
    assert facts_of(order, nobody) == JobFacts(35.0 + 60.0 + 30.0, 9, 20.0 + 15.0), "the others' mean"


def test_where_nobody_has_seen_anything_tasks_are_counted() -> None:
    assert facts_of((StageLeft(1, 4), StageLeft(2, 2, after=(1,))), nobody) == JobFacts(None, 6, None)
    assert facts_of((), nobody) == JobFacts(0.0, 0, 0.0)


def test_a_circle_waits_for_nothing() -> None:
    round_trip = [StageLeft(p, 1, task_s=float(p), after=(p % 3 + 1,)) for p in (1, 2, 3)]
    tail = StageLeft(4, 1, task_s=10.0)
    assert facts_of([*round_trip, tail], nobody) == JobFacts(16.0, 4, 10.0)


@few
@given(st.lists(stages(hostile_s, st.integers(-9, 9)), max_size=8))
def test_whatever_a_master_says_is_some_number(said: list[StageLeft]) -> None:
    facts = facts_of(bounded(said), nobody)
    assert facts.remaining_tasks is not None and facts.remaining_tasks >= 0
    for seconds in (facts.remaining_work, facts.critical_path):
        assert seconds is None or (isfinite(seconds) and seconds >= 0)


@few
@given(st.lists(stages(st.floats(0, 1e4), st.integers(1, 9)), min_size=1, max_size=8, unique_by=lambda s: s.priority))
def test_the_longest_chain(said: list[StageLeft]) -> None:
    """Against the definition: each stage begins when the last of those before it is over."""
    forward = [replace(s, after=tuple(p for p in s.after if p < s.priority), longest_s=s.task_s) for s in bounded(said)]
    known = {s.priority: s.task_s for s in forward if s.tasks and s.task_s is not None}
    mean = sum(known.values()) / len(known) if known else 0.0
    ends: dict[int, float] = {}
    for one in sorted(forward, key=lambda s: s.priority):
        if one.tasks:
            begins = max((ends[p] for p in one.after if p in ends), default=0.0)
            ends[one.priority] = begins + known.get(one.priority, mean)
    found = facts_of(forward, nobody).critical_path
    assert found is None if ends and not known else isclose(found or 0.0, max(ends.values(), default=0.0))


def test_no_more_is_kept_than_a_job_can_have() -> None:
    kept = bounded(StageLeft(p, 1, after=tuple(range(100))) for p in range(3 * STAGES_MAX))
    assert len(kept) == STAGES_MAX
    assert sum(len(stage.after) for stage in kept) <= 4 * STAGES_MAX
    assert bounded([StageLeft(1, 2), StageLeft(1, 3)]) == (StageLeft(1, 3),)
    assert [bounded([StageLeft(1, 2, running=many)])[0].running for many in (-1, 1, 9)] == [0, 1, 2]
    assert told(pb.StageLeft(priority=1, tasks=3, running=2)) == StageLeft(1, 3, running=2)
