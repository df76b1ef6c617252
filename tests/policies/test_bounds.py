"""Bounds: the numbers that are known, the formulas against their definitions, utilization against a simulation."""

import random
from heapq import heapify, heapreplace
from math import exp, factorial, inf, log, nan

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.policies.policy_facts import hostile_s
from yaqd.policies.queueing.bounds import (
    BOUNDS,
    aligned_bound,
    chernoff_bound,
    fixed_bound,
    poisson_bound,
    utilization,
    utilization_bound,
)
from yaqd.policies.queueing.limits import LONGEST_QUEUE

slots = st.integers(1, 64)
means = st.floats(0.5, 500)
gaps = st.floats(0.1, 10)
idles = st.floats(0.001, 0.5)


@pytest.mark.parametrize(("mean_s", "exact", "closed"), [(10, 6, 8), (30, 3, 4)])
def test_the_known_numbers(mean_s: float, exact: int, closed: int) -> None:
    assert poisson_bound(10, mean_s, 3, 0.05) == exact
    assert chernoff_bound(10, mean_s, 3, 0.05) == closed


def test_tasks_of_one_duration() -> None:
    assert fixed_bound(10, 5, 3) == 6
    assert fixed_bound(10, 3, 3) == 10
    assert fixed_bound(10, 0.1, 0.3) == 30  # not 31 for 30.000000000000004
    assert aligned_bound(10, 5, 3) == 10
    assert aligned_bound(10, 1, 3) == 30


def tail(served: float, at_least: int) -> float:
    """P[N >= at_least], N Poisson."""
    return 1 - sum(exp(-served) * served**n / factorial(n) for n in range(at_least))


@given(slots, means, gaps, idles)
def test_the_exact_bound_is_the_smallest_that_holds(r: int, mean_s: float, gap_s: float, idle: float) -> None:
    served = r * gap_s / mean_s
    assume(served < 80)
    bound = poisson_bound(r, mean_s, gap_s, idle)
    assert tail(served, bound + 1) <= idle + 1e-9
    assert bound == 0 or tail(served, bound) > idle - 1e-9


@given(slots, means, gaps, idles)
def test_the_closed_bound_is_the_smallest_that_holds_and_asks_for_no_less(
    r: int, mean_s: float, gap_s: float, idle: float
) -> None:
    served = r * gap_s / mean_s
    assume(served < LONGEST_QUEUE / 2)

    def holds(bound: int) -> bool:
        ratio = (bound + 1) / served
        return ratio >= 1 and served * (1 + ratio * (log(ratio) - 1)) >= log(1 / idle) - 1e-9

    bound = chernoff_bound(r, mean_s, gap_s, idle)
    assert holds(bound)
    assert bound == 0 or not holds(bound - 1) or bound - 1 < served - 1
    assert bound >= poisson_bound(r, mean_s, gap_s, idle)


@given(slots, means, gaps, idles)
def test_the_bound_by_utilization_reaches_it_and_asks_for_no_more(
    r: int, mean_s: float, gap_s: float, idle: float
) -> None:
    bound = utilization_bound(r, mean_s, gap_s, idle)
    assert bound <= poisson_bound(r, mean_s, gap_s, idle)
    assert utilization(r, mean_s, gap_s, bound) >= 1 - idle - 1e-9
    assert bound == 0 or utilization(r, mean_s, gap_s, bound - 1) < 1 - idle + 1e-9


def simulated_utilization(r: int, b: int, mean_s: float, gap_s: float, intervals: int, seed: int) -> float:
    """A node filled up to r running and b queued tasks every gap, played through."""
    draw = random.Random(seed)
    ends: list[float] = []
    busy = 0.0
    for interval in range(intervals):
        start = interval * gap_s
        stop = start + gap_s
        ends = [end for end in ends if end > start]
        ends += [start + draw.expovariate(1 / mean_s) for _ in range(r - len(ends))]
        heapify(ends)
        for _ in range(b):
            if ends[0] >= stop:
                break
            heapreplace(ends, ends[0] + draw.expovariate(1 / mean_s))
        # a slot whose last task ended before the refill stood idle from then on
        busy += sum(min(end, stop) - start for end in ends)
    return busy / (r * gap_s * intervals)


@pytest.mark.parametrize(("r", "b", "mean_s", "known"), [(10, 2, 10, 0.963), (8, 4, 5, 0.964)])
def test_utilization_is_what_a_simulation_gives(r: int, b: int, mean_s: float, known: float) -> None:
    computed = utilization(r, mean_s, 3, b)
    assert computed == pytest.approx(known, abs=0.0005)
    assert simulated_utilization(r, b, mean_s, 3, 8000, seed=1) == pytest.approx(computed, abs=0.004)


@given(slots, means, gaps)
def test_without_a_queue_it_is_the_papers_closed_form(r: int, mean_s: float, gap_s: float) -> None:
    x = gap_s / mean_s
    assert utilization(r, mean_s, gap_s, 0) == pytest.approx((1 - exp(-x)) / x, rel=1e-6)


@given(slots, means, gaps, st.integers(0, 200))
def test_each_queue_slot_helps_a_little(r: int, mean_s: float, gap_s: float, b: int) -> None:
    less, more = utilization(r, mean_s, gap_s, b), utilization(r, mean_s, gap_s, b + 1)
    assert 0 <= less <= more + 1e-9
    assert more <= 1


@given(st.sampled_from(BOUNDS.names()), st.integers(-5, 10**12), hostile_s, hostile_s, hostile_s)
def test_hostile_numbers_give_a_bound(name: str, r: int, mean_s: float, gap_s: float, idle: float) -> None:
    assert 0 <= BOUNDS[name](r, mean_s, gap_s, idle) <= LONGEST_QUEUE
    assert 0 <= utilization(r, mean_s, gap_s, 7) <= 1


def test_no_queue_where_nothing_ends_and_a_bounded_one_where_all_ends_at_once() -> None:
    for bound in ("poisson", "chernoff", "utilization", "fixed", "aligned"):
        for never in (nan, inf, -1.0):
            assert BOUNDS[bound](10, never, 3, 0.05) == 0
        assert BOUNDS[bound](10, 0.0, 3, 0.05) == LONGEST_QUEUE
