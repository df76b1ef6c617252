"""Durations in steps: what is nearly equal is, and one job after the other is what comes of it."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policies.policy_facts import facts, few, hostile_s, job_id, queued
from yaqd.policies.queueing import limits
from yaqd.policies.queueing.facts import JobFacts
from yaqd.policies.queueing.job_order import JOB_ORDERS, WaitingJob
from yaqd.policies.queueing.order import Ordering
from yaqd.policies.queueing.steps import STEP, step

seconds = st.floats(0.0, limits.LONGEST_S)
#: what an observed mean is off by
noise = st.floats(-0.01, 0.01)


@few
@given(seconds, seconds)
def test_a_longer_duration_is_never_in_an_earlier_step(one: float, two: float) -> None:
    assert (step(one) <= step(two)) or one > two


@few
@given(seconds)
def test_a_step_up_is_in_another_step_and_a_tenth_of_it_at_most_in_the_next(known: float) -> None:
    longer = known + STEP * (1.0 + known)
    if longer <= limits.LONGEST_S:
        assert step(known) < step(longer * (1 + 1e-9)) <= step(known) + 2
    assert step(min(known * (1 + STEP / 10), limits.LONGEST_S)) <= step(known) + 1


@few
@given(hostile_s)
def test_what_says_nothing_is_last(said: float) -> None:
    assert step(said) >= 0
    assert (step(said) == inf) == (limits.duration(said) == inf)


def test_nothing_known_is_last() -> None:
    assert step(None) == step(nan) == step(-1.0) == inf > step(limits.LONGEST_S)


@pytest.mark.parametrize("name", ["srjf", "sjf", "cpath"])
@few
@given(st.lists(noise, min_size=2, max_size=8))
def test_equal_jobs_go_in_order_of_arrival_whatever_was_observed_of_each(name: str, off: list[float]) -> None:
    work = [960.0 * (1 + part) for part in off]
    assert len({step(w) for w in work}) == 1  # 960 s is in the middle of a step
    jobs = [WaitingJob(job_id(n + 1), float(n), float(n), JobFacts(w, 96, w), w) for n, w in enumerate(work)]
    rank = JOB_ORDERS[name]
    assert len({rank(job) for job in jobs}) == 1
    # one that has done a part of its work stays where it is
    begun = WaitingJob(job_id(1), 0.0, 0.0, JobFacts(work[0] / 2, 48, work[0] / 2), work[0] / 2)
    assert rank(begun) < rank(jobs[1])


@pytest.mark.parametrize("name", ["srjf", "cpath"])
@few
@given(st.lists(noise, min_size=2, max_size=8))
def test_at_a_node_the_one_that_waits_longer_goes_before_its_equals(name: str, off: list[float]) -> None:
    runs = [960.0 * (1 + part) for part in off]
    line = [queued(n, facts(n, estimate=s), since=float(n)) for n, s in enumerate(runs)]
    jobs = {job_id(n): JobFacts(s, 96, s) for n, s in enumerate(runs)}
    ordering = Ordering(name, inf, inf)
    assert ordering.sorted(line[::-1], jobs, 100.0) == line
    assert ordering.pick(line[::-1], jobs, 100.0) is line[0]


@few
@given(st.floats(0.0, 1000.0), st.floats(0.0, 1000.0))
def test_the_starved_pass_whatever_step_they_are_in(small: float, large: float) -> None:
    new, old = queued(1, facts(1), since=90.0), queued(2, facts(2), since=0.0)
    jobs = {job_id(1): JobFacts(small), job_id(2): JobFacts(1000.0 + large)}
    assert Ordering("srjf", starve_s=60.0).pick([new, old], jobs, 100.0) is old
