"""The search for the largest marginal worths gives what the paper's greedy gives, both ways of finding it."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policies.quality.quality_cases import greedy, training_jobs
from yaqd.policies.curves.drops import HORIZONS
from yaqd.policies.curves.samples import Floats, Ints
from yaqd.policies.quality import greedy as searched
from yaqd.policies.quality.facts import TrainingJobs
from yaqd.policies.quality.greedy import Greedy
from yaqd.policies.quality.worth import concave, rates_of, worth_of


def _totals(
    jobs: TrainingJobs, end: float, unit: float, free: int, caps: int, few: int, has: Ints, gaining: float
) -> tuple[float, float, int]:
    """Return the totals that we and the greedy reach, and how many units we gave."""
    worth, rates = worth_of(jobs, jobs.largest, end), rates_of(jobs, 1.0)
    base, most = np.ones(len(jobs), dtype=np.int64), np.full(len(jobs), caps)
    made = Greedy(worth, rates, unit, has, np.full(len(jobs), gaining))
    with patch.object(searched, "_FEW", few):
        ours = made.fill(base, most, free)
    theirs = greedy(worth, rates, unit, base, most, free, has, gaining)
    assert np.all(ours >= base)
    assert np.all(ours <= most)

    def total(units: Ints) -> float:
        gained = made.gains(units) - made.gains(np.minimum(units, np.maximum(has, base)))
        return float((made.gains(units) + (gaining - 1.0) * gained).sum())

    return total(ours), total(theirs), int((ours - base).sum())


@pytest.mark.slow
@pytest.mark.parametrize("few", [0, 10**9], ids=["by price", "among all"])
@given(
    many=st.integers(1, 30),
    seed=st.integers(0, 1000),
    end=st.sampled_from([0.0, 0.01, 1.0]),
    unit=st.sampled_from([1.0, 0.05]),
    free=st.integers(0, 400),
    caps=st.integers(1, 700),
    is_fixed=st.booleans(),
    gaining=st.sampled_from([1.0, 0.9, 0.3]),
)
def test_the_total_is_the_greedy_s(
    few: int, many: int, seed: int, end: float, unit: float, free: int, caps: int, is_fixed: bool, gaining: float
) -> None:
    jobs = training_jobs(many, seed, fixed_s=np.full(many, 0.05 if is_fixed else 0.0))
    has = np.random.default_rng(seed).integers(0, 60, many)
    ours, theirs, given_ = _totals(jobs, end, unit, free, caps, few, has, gaining)
    assert ours == pytest.approx(theirs, rel=1e-9)
    assert given_ == min(free, many * (caps - 1))


@pytest.mark.slow
@pytest.mark.parametrize("gaining", [1.0, 0.8])
def test_the_total_is_the_greedy_s_with_many_jobs(gaining: float) -> None:
    has = np.random.default_rng(1).integers(0, 12, 2000)
    ours, theirs, given_ = _totals(training_jobs(2000), 0.0, 1.0, 8000, 64, 60_000, has, gaining)
    assert ours == pytest.approx(theirs, rel=1e-12)
    assert given_ == 8000


@pytest.mark.parametrize("few", [0, 10**9])
def test_jobs_that_are_equal_get_about_as_much(few: int) -> None:
    one = training_jobs(1)
    many = 40
    same = TrainingJobs(*(np.repeat(getattr(one, name), many, axis=0) for name in TrainingJobs.__slots__))
    ours, theirs, given_ = _totals(same, 0.0, 1.0, 500, 64, few, np.zeros(many, dtype=np.int64), 1.0)
    assert ours == pytest.approx(theirs, rel=1e-9)
    assert given_ == 500


@given(st.lists(st.floats(0, 10), min_size=21, max_size=21), st.floats(0, 300))
def test_the_hull_is_the_least_concave_function_above(rises: list[float], left: float) -> None:
    drops = concave(HORIZONS[None], np.concatenate(([0.0], np.cumsum(rises)))[None])
    jobs = training_jobs(1, drops=drops, left=np.array([left]), largest=np.ones(1))
    worth = worth_of(jobs, np.ones(1), 0.5)
    ahead, found = worth.ahead[0], worth.worth[0]
    wide = np.diff(ahead) > 0
    slopes = np.diff(found)[wide] / np.diff(ahead)[wide]
    assert np.all(np.diff(slopes) <= 1e-9 * (1 + abs(slopes[:-1])))
    assert np.all(np.diff(found) >= -1e-12)
    assert found[0] == pytest.approx(0.0, abs=1e-9)
    end = 0.5 if left > 1e-6 else 0.0
    assert found[-1] == pytest.approx(np.interp(ahead[-1], HORIZONS, drops[0]) + end)
    assert np.all(found[:-1][wide] >= np.interp(ahead[:-1][wide], HORIZONS, drops[0]) - 1e-9)


@given(st.lists(st.floats(-5, 5), min_size=3, max_size=12))
def test_a_concave_function_is_its_own_hull(values: list[float]) -> None:
    ahead: Floats = np.arange(float(len(values)))[None]
    falling = np.sort(np.array(values))[::-1]
    curve: Floats = np.cumsum(np.maximum(falling, 0.0))[None]
    assert concave(ahead, curve) == pytest.approx(curve)


def test_a_hull_of_a_late_fall_is_a_straight_line() -> None:
    ahead = np.array([[0.0, 1.0, 2.0, 4.0]])
    assert concave(ahead, np.array([[0.0, 0.0, 0.0, 8.0]]))[0] == pytest.approx([0, 2, 4, 8])
