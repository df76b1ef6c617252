"""Intervals hold the mean as often as they say."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yaqd.sim.study.report.intervals import interval, ratio, t975

NUMBERS = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=12)
POSITIVE = st.lists(st.tuples(st.floats(0.01, 1e3), st.floats(0.01, 1e3)), min_size=2, max_size=12)


@pytest.mark.parametrize("count", [2, 5, 40])
def test_nineteen_of_twenty_intervals_hold_the_mean(count: int) -> None:
    draws = np.random.default_rng(7).normal(3.0, 2.0, (4000, count))
    held = [found.low <= 3.0 <= found.high for found in (interval([float(x) for x in row]) for row in draws)]
    assert 0.94 < sum(held) / len(held) < 0.96


def test_quantiles_are_those_of_the_tables_and_fall() -> None:
    known = {1: 12.706, 4: 2.776, 10: 2.228, 30: 2.042, 40: 2.021, 60: 2.000, 120: 1.980}
    assert {freedom: round(t975(freedom), 3) for freedom in known} == known
    found = [t975(freedom) for freedom in range(1, 200)]
    assert found == sorted(found, reverse=True)


@given(NUMBERS, st.floats(-100, 100), st.floats(0.1, 10))
def test_an_interval_moves_and_stretches_with_its_values(values: list[float], by: float, times: float) -> None:
    plain, changed = interval(values), interval([times * one + by for one in values])
    for one, other in ((plain.mid, changed.mid), (plain.low, changed.low), (plain.high, changed.high)):
        assert math.isclose(times * one + by, other, rel_tol=1e-6, abs_tol=1e-6)
    assert plain.low <= plain.mid <= plain.high


@given(POSITIVE)
def test_a_ratio_turned_round_is_its_inverse(pairs: list[tuple[float, float]]) -> None:
    above, below = [one for one, _ in pairs], [other for _, other in pairs]
    there, back = ratio(above, below), ratio(below, above)
    assert math.isclose(there.mid * back.mid, 1.0, rel_tol=1e-9)
    assert math.isclose(there.mid, math.prod(a / b for a, b in pairs) ** (1 / len(pairs)), rel_tol=1e-9)
    if there.high < 1e100:
        assert math.isclose(there.low * back.high, 1.0, rel_tol=1e-6)


def test_the_same_ratio_in_every_seed_is_certain() -> None:
    found = ratio([2.0, 20.0, 400.0], [1.0, 10.0, 200.0])
    assert (round(found.low, 9), round(found.mid, 9), round(found.high, 9)) == (2.0, 2.0, 2.0)


def test_one_seed_has_no_interval_and_none_has_no_mean() -> None:
    assert math.isnan(interval([1.0]).low)
    with pytest.raises(ValueError, match="no value"):
        interval([])
