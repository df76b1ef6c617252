"""What trials promise to people who look: chances, times, and who deserves a slot."""

import math

import numpy as np
import pytest

from yaqd.policies.curves.reach import LibraryReach
from yaqd.policies.explore.facts import Action, Terms, Trials, TrialState, Verdict, Why
from yaqd.policies.explore.promise import promises, reach_of

REACH = LibraryReach(shapes=200)


def trials_with(*curves: list[float], epochs: int = 20) -> Trials:
    trials = Trials(len(curves) + 1, epochs)
    for number, values in enumerate(curves):
        trials.start(number)
        for value in values:
            trials.report(number, value, 2.0)
    return trials


def rising(last: float, epochs: int) -> list[float]:
    return [last * (1 - 0.75**epoch) for epoch in range(1, epochs + 1)]


def test_a_better_curve_promises_more_and_sooner() -> None:
    trials = trials_with(rising(0.9, 8), rising(0.4, 8), [0.1] * 8)
    found = promises(trials, Terms(0.85, 20, 2, math.inf), REACH, 0.0)
    good, poor, flat = found.chance[:3]
    assert good > poor >= flat and good > 0.5
    assert math.isnan(found.chance[3])  # it has not begun
    assert 0 < found.expected_s[0] <= 12 * 2.0
    assert found.is_promising(0) and not found.is_promising(2)
    assert found.slots <= 2


def test_what_was_reached_is_certain_and_what_has_ended_promises_nothing() -> None:
    trials = trials_with(rising(0.9, 8), rising(0.95, 8))
    trials.settle(1, Verdict(Action.TERMINATE, Why.DONE))
    found = promises(trials, Terms(0.8, 20, 1, math.inf), REACH, 0.0)
    assert found.chance[0] == 1.0
    assert math.isnan(found.chance[1]) and trials.states[1] == TrialState.ENDED


def test_little_time_leaves_little_chance() -> None:
    trials = trials_with(rising(0.9, 8))
    much = promises(trials, Terms(0.85, 20, 1, 1000.0), REACH, 0.0).chance[0]
    little = promises(trials, Terms(0.85, 20, 1, 1000.0), REACH, 999.0).chance[0]
    assert little < much


def test_without_a_target_there_is_a_little_above_the_best() -> None:
    trials = trials_with(rising(0.9, 8), rising(0.3, 8))
    found = promises(trials, Terms(None, 20, 1, math.inf), REACH, 0.0)
    assert 0 < found.chance[0] <= 1 and found.chance[0] > found.chance[1]


def test_nothing_promises_nothing() -> None:
    found = promises(Trials(3, 5), Terms(0.5, 5, 2, math.inf), REACH, 0.0)
    assert np.isnan(found.chance).all() and found.slots == 0.0 and not found.is_promising(0)


def test_a_level_is_four_numbers() -> None:
    curve = np.array([[0.2, 0.3]])
    shy = reach_of("0.1, 0.05, 0.1, 0.05").outlook(curve, np.array([2]), 10).at(10, 0.6)
    bold = reach_of("0.1 0.05 0.6 0.3").outlook(curve, np.array([2]), 10).at(10, 0.6)
    assert bold[0] > shy[0]
    for text in ("1 2 3", "a b c d", "0.1 0 0.1 0.1", "nan 1 1 1"):
        with pytest.raises(ValueError, match=r"level|above 0"):
            reach_of(text)
