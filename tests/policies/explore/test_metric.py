"""Metrics turned so that they rise, limits, and conditions."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yaqd.policies.explore.facts import Why
from yaqd.policies.explore.metric import Limit, Metric, Solved
from yaqd.policies.explore.wording import worded


@given(st.sampled_from(("max", "min")), st.floats(-500, 300))
def test_a_metric_within_its_bounds_comes_back(mode: str, value: float) -> None:
    for metric in (Metric(mode), Metric(mode, -500, 300), Metric(mode, lower=-500), Metric(mode, upper=300)):
        assert metric.shown(metric.risen(value)) == pytest.approx(value, abs=1e-9)


def test_better_is_higher_whatever_the_mode() -> None:
    assert Metric("min").risen(0.1) > Metric("min").risen(0.2)
    assert Metric("min", 0, 2).risen(0.5) == 0.75
    assert Metric("max", -500, 300).risen(200) == 0.875


def test_what_is_worse_than_a_bound_counts_as_the_bound_and_what_is_better_as_no_number() -> None:
    metric = Metric("max", -500, 300)
    assert metric.risen(-501) == metric.risen(-math.inf) == 0.0
    assert math.isnan(metric.risen(301)) and math.isnan(metric.risen(math.inf))
    assert metric.risen(300.0000001) == 1.0
    assert math.isnan(metric.risen(math.nan))
    loss = Metric("min", lower=0.0)
    assert math.isnan(loss.risen(-0.1)) and loss.risen(1e9) == -1e9
    assert [metric.is_within(value) for value in (-501, -500, 300, 301, math.nan)] == [False, True, True, False, False]


@pytest.mark.parametrize("made", [("best", None, None), ("max", 1.0, 1.0), ("max", 2.0, 1.0), ("min", math.nan, 1.0)])
def test_a_metric_that_makes_no_sense_is_refused(made: tuple[str, float | None, float | None]) -> None:
    with pytest.raises(ValueError, match=r"mode|bounds"):
        Metric(*made)


def test_a_limit_holds_or_not() -> None:
    limit = Limit.parse("memory_mb<=512")
    assert limit == Limit("memory_mb", "<=", 512.0)
    assert limit.holds({"memory_mb": 512.0})
    assert not limit.holds({"memory_mb": 513.0})
    assert not limit.holds({"memory_mb": math.nan})
    assert not limit.holds({})
    for text in ("memory_mb", "memory_mb < 3", "<= 3", "a <= b", "a <= inf"):
        with pytest.raises(ValueError, match="limit"):
            Limit.parse(text)


def test_a_condition_looks_back() -> None:
    solved = Solved.parse("mean(3) >= 200")
    assert not solved.holds([300.0, 300.0])
    assert solved.holds([0.0, 300.0, 100.0, 200.0])
    assert not solved.holds([300.0, math.nan, 300.0])
    assert Solved.parse("last <= 0.5").holds([9.0, 0.5])
    assert Solved.parse("min(2) >= 1").holds([0.0, 1.0, 2.0])
    assert not Solved.parse("max(2)<=1").holds([0.0, 1.0, 2.0])
    assert str(solved) == "mean(3) >= 200"
    for text in ("", "mean >= 3", "mean(0) >= 3", "last(2) >= 3", "sum(2) >= 3", "mean(2) = 3", "mean(2) >= x"):
        with pytest.raises(ValueError, match="condition"):
            Solved.parse(text)


@pytest.mark.parametrize("why", list(Why))
@pytest.mark.parametrize("facts", [(math.nan, math.nan), (0.5, 0.25), (math.inf, -math.inf), (3.0, 10.0)])
def test_every_reason_has_words(why: Why, facts: tuple[float, float]) -> None:
    text = worded(why, *facts)
    assert text and "\n" not in text and "nan" not in text and "inf" not in text


def test_reasons_show_metrics_as_the_user_has_them() -> None:
    metric = Metric("min", 0.0, 4.0)
    text = worded(Why.NOT_LEARNING, metric.risen(2.5), metric.risen(2.0), metric)
    assert text == "it has learnt nothing: its best 2.5 is above the kill threshold 2"
    assert worded(Why.UNLIKELY, 0.01, 0.05) == "will hardly get there: chance 0.010 of 0.050 asked"
    assert worded(Why.WORTH_LESS, 1 / 3600, 2 / 3600) == "its slot is worth more elsewhere: 1/h, elsewhere 2/h"
