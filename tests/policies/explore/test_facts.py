"""Trials as they are booked: states, hostile metrics, targets that rise."""

import math
from math import inf, nan

import pytest

from tests.policies.explore.explore_facts import terms
from yaqd.policies.explore.facts import Action, Trials, TrialState, Verdict, Why, aim

GO_ON = Verdict(Action.CONTINUE, Why.NEXT)


def test_a_trial_runs_once_at_a_time_and_ends_for_good() -> None:
    trials = Trials(2, 3)
    trials.start(0)
    with pytest.raises(ValueError, match="trial 0 is RUNNING"):
        trials.start(0)
    trials.report(0, 0.5, 2.0)
    assert trials.settle(0, Verdict(Action.PARK, Why.AT_RUNG)) == TrialState.PARKED
    with pytest.raises(ValueError, match="does not run"):
        trials.report(0, 0.5, 2.0)
    trials.start(0)
    trials.report(0, 0.6, 4.0)
    assert trials.settle(0, Verdict(Action.TERMINATE, Why.BELOW_CUT)) == TrialState.ENDED
    with pytest.raises(ValueError, match="trial 0 is ENDED"):
        trials.start(0)
    assert trials.epoch_s(0) == 3.0
    assert trials.epoch_s(1) == 3.0


def test_the_last_epoch_ends_a_trial_whatever_is_decided() -> None:
    trials = Trials(1, 2)
    trials.start(0)
    for state in (TrialState.RUNNING, TrialState.ENDED):
        trials.report(0, 0.1, 1.0)
        assert trials.settle(0, GO_ON) == state


@pytest.mark.parametrize("odd", [nan, inf, -inf])
def test_what_is_no_number_has_the_lowest_metric_of_all_and_is_nobody_s_best(odd: float) -> None:
    trials = Trials(3, 4)
    for number in range(3):
        trials.start(number)
    trials.report(0, odd, 1.0)
    assert math.isnan(trials.values[0, 0]) and trials.score(0) == trials.metric(0) == -inf
    trials.report(1, -0.4, 1.0)
    trials.report(0, odd, 1.0)
    trials.report(1, -2.3, 1.0)
    trials.report(1, odd, 1.0)
    # also those that were reported before there was a lower one
    assert trials.values[0, :2].tolist() == [-2.3, -2.3]
    assert trials.values[1, :3].tolist() == [-0.4, -2.3, -2.3]
    assert trials.best.tolist() == [-inf, -0.4, -inf] and trials.best_of_all == -0.4
    assert [trials.score(number) for number in range(3)] == [-2.3, -0.4, -inf]
    assert (trials.metric(0), trials.metric(1)) == (-inf, -inf)
    trials.report(1, -0.3, 1.0)
    assert trials.metric(1) == -0.3


def test_fresh_trials_come_in_order_and_stay_until_they_start() -> None:
    trials = Trials(4, 3)
    assert trials.fresh(2) == [0, 1]
    assert trials.fresh() == [0]
    trials.start(1)
    assert trials.fresh(9) == [0, 2, 3]
    for number in (0, 2, 3):
        trials.start(number)
    assert not trials.has_fresh
    assert trials.fresh(2) == []


def test_a_target_that_nobody_said_rises_with_the_best() -> None:
    trials = Trials(3, 3)
    assert aim(terms(0.7), trials) == 0.7
    assert aim(terms(None), trials) == inf
    for number, metric in ((0, 0.1), (1, 0.6)):
        trials.start(number)
        trials.report(number, metric, 1.0)
    trials.start(2)
    trials.report(2, nan, 1.0)
    assert aim(terms(None), trials, rise=0.1) == pytest.approx(0.65)
