"""Successive halving as its papers have it, on cases that can be worked out by hand."""

import numpy as np
import pytest

from tests.policies.explore.explore_facts import GivenForesight, actions, run_epochs, terms
from yaqd.policies.explore.facts import Action, Trials, TrialState, Why
from yaqd.policies.explore.halving import AshaPromote, AshaStop, Hyperband, quantile, rungs

NOBODY = GivenForesight({})


def test_rungs_are_the_grace_times_powers_of_eta() -> None:
    assert rungs(51, 1, 4) == [1, 4, 16]
    assert rungs(51, 3, 3) == [3, 9, 27]
    assert rungs(9, 3, 3) == [3]
    with pytest.raises(ValueError, match="grace 0"):
        rungs(9, 0, 3)


@pytest.mark.parametrize("many", [1, 2, 3, 4, 7])
def test_a_quantile_is_numpy_s(many: int) -> None:
    values = sorted(np.random.default_rng(many).random(many).tolist())
    assert quantile(values, 0.75) == pytest.approx(np.quantile(values, 0.75))


def test_asha_by_stopping_lets_the_best_quarter_of_those_before_pass() -> None:
    """The cut-off of 0.1, 0.2, 0.3, 0.4, 0.5 is 0.4; the first at a rung always passes."""
    trials, policy = Trials(8, 10), AshaStop(terms(), NOBODY, grace=1, eta=4)
    for number, metric in enumerate((0.1, 0.2, 0.3, 0.4, 0.5)):
        assert actions(run_epochs(policy, trials, number, [metric])) == [Action.CONTINUE]
    (ended,) = run_epochs(policy, trials, 5, [0.39])
    assert (ended.action, ended.why, ended.bound) == (Action.TERMINATE, Why.BELOW_CUT, pytest.approx(0.4))
    # the next rung has seen nobody yet
    assert actions(run_epochs(policy, trials, 0, [0.0, 0.0, 0.0])) == [Action.CONTINUE] * 3


def test_asha_by_promoting_promotes_the_best_third_of_a_rung_and_the_highest_rung_first() -> None:
    trials, policy = Trials(9, 30), AshaPromote(terms(epochs=30), NOBODY, grace=1, eta=3)
    for number, metric in enumerate((0.1, 0.3)):
        (verdict,) = run_epochs(policy, trials, number, [metric])
        assert (verdict.action, verdict.why) == (Action.PARK, Why.AT_RUNG)
    # a third of two is nobody
    assert [start.number for start in policy.allocate(trials, 1, 0.0)] == [2]
    run_epochs(policy, trials, 2, [0.2])
    assert [start.number for start in policy.allocate(trials, 2, 0.0)] == [1, 3]
    assert actions(run_epochs(policy, trials, 1, [0.3, 0.3])) == [Action.CONTINUE, Action.PARK]
    # promoted once is promoted
    assert [start.number for start in policy.allocate(trials, 1, 0.0)] == [3]


def test_asha_promotes_a_trial_that_later_ones_have_made_the_best_third() -> None:
    trials, policy = Trials(9, 30), AshaPromote(terms(epochs=30), NOBODY, grace=1, eta=3)
    for number, metric in enumerate((0.5, 0.4, 0.3, 0.2, 0.1)):
        run_epochs(policy, trials, number, [metric])
    assert [start.number for start in policy.allocate(trials, 1, 0.0)] == [0]
    run_epochs(policy, trials, 5, [0.0])
    assert [start.number for start in policy.allocate(trials, 1, 0.0)] == [1]


def test_asha_starts_no_trial_twice_that_went_past_a_rung_without_being_promoted() -> None:
    trials, policy = Trials(4, 30), AshaPromote(terms(epochs=30), NOBODY, grace=1, eta=2)
    for number in range(4):
        run_epochs(policy, trials, number, [0.1 * number])
    for number in (2, 3):  # as leftovers: both are among the best half of the first rung, and 3 of the second
        run_epochs(policy, trials, number, [0.1 * number])
    starts = [(start.number, start.why) for start in policy.allocate(trials, 4, 0.0)]
    assert starts == [(3, Why.ABOVE_CUT), (2, Why.ROOM), (1, Why.ROOM), (0, Why.ROOM)]


def test_hyperband_s_brackets_are_those_of_its_table() -> None:
    """R = 81, eta = 3 (JMLR 2018, Table 1): 81 with 1 epoch, 34 with 3, 15 with 9, 8 with 27, 5 with 81."""
    trials, policy = Trials(200, 81), Hyperband(terms(epochs=81), NOBODY)
    sizes = []
    for many in (81, 34, 15, 8, 5):
        starts = policy.allocate(trials, many, 0.0)
        for start in starts:
            trials.start(start.number)
        sizes.append(len(starts))
    assert sizes == [81, 34, 15, 8, 5]
    first = run_epochs(policy, trials, 0, [0.5])
    assert (first[0].action, first[0].bound) == (Action.PARK, 1)
    second = run_epochs(policy, trials, 81, [0.5] * 3)
    assert actions(second) == [Action.CONTINUE] * 2 + [Action.PARK]


def test_a_rung_of_hyperband_ends_when_all_came_and_the_best_third_goes_on() -> None:
    """9 epochs: 9 trials with 1, of which 3 get 3, of which 1 gets 9. Slots that are left go to the best others."""
    trials, policy = Trials(9, 9), Hyperband(terms(epochs=9), NOBODY)
    assert len(policy.allocate(trials, 9, 0.0)) == 9
    for number in range(9):
        assert not [start for start in policy.allocate(trials, 9, 0.0) if start.number < number]
        run_epochs(policy, trials, number, [number / 10])
    assert [start.number for start in policy.allocate(trials, 3, 0.0)] == [8, 7, 6]
    assert [start.number for start in policy.allocate(trials, 2, 0.0)] == [5, 4]
    for number in (6, 7, 8):
        verdicts = run_epochs(policy, trials, number, [0.9 - number / 10] * 2)
        assert actions(verdicts) == [Action.CONTINUE, Action.PARK]
    assert [start.number for start in policy.allocate(trials, 1, 0.0)] == [6]
    assert actions(run_epochs(policy, trials, 6, [0.5] * 6))[-1] == Action.TERMINATE
    assert [start.number for start in policy.allocate(trials, 9, 0.0)] == [8, 7, 5, 4, 3, 2, 1, 0]
    assert trials.states.tolist().count(TrialState.PARKED) == 8


def test_a_rung_of_hyperband_does_not_wait_for_trials_that_failed() -> None:
    """Trial 0 fails before a report, 8 after it came to its rung: 7 and 6 go on of the 8 that came, 8 / 3 rounded."""
    trials, policy = Trials(9, 9), Hyperband(terms(epochs=9), NOBODY)
    for start in policy.allocate(trials, 9, 0.0):
        trials.start(start.number)
    for number in range(1, 9):
        run_epochs(policy, trials, number, [number / 10])
    trials.states[0] = trials.states[8] = TrialState.ENDED
    starts = policy.allocate(trials, 2, 0.0)
    assert [start.number for start in starts] == [7, 6]
    for start in starts:
        trials.start(start.number)
    trials.states[[6, 7]] = TrialState.ENDED
    # nobody is left of the bracket, so the slots go to the best others
    assert [start.number for start in policy.allocate(trials, 2, 0.0)] == [5, 4]


def test_trials_that_a_generator_has_no_values_for_are_not_begun() -> None:
    trials, policy = Trials(9, 9), Hyperband(terms(epochs=9), NOBODY)
    (first,) = policy.allocate(trials, 1, 0.0)
    trials.start(first.number)
    trials.states[1:] = TrialState.ENDED
    assert policy.allocate(trials, 1, 0.0) == []
    run_epochs(policy, trials, 0, [0.5])
    assert [start.number for start in policy.allocate(trials, 1, 0.0)] == [0]


def test_one_that_goes_on_though_its_rung_said_wait_is_counted_and_started_once() -> None:
    """As the winner of an exploration that is resumed with a higher target does."""
    trials, policy = Trials(9, 9), Hyperband(terms(epochs=9), NOBODY)
    for start in policy.allocate(trials, 9, 0.0):
        trials.start(start.number)
    trials.report(0, 0.95, 1.0)
    assert policy.iterated(trials, 0, 0.0).action is Action.PARK
    trials.report(0, 0.96, 1.0)
    assert policy.iterated(trials, 0, 0.0).action is Action.CONTINUE
    for number in range(1, 9):
        run_epochs(policy, trials, number, [number / 10])
    assert [start.number for start in policy.allocate(trials, 9, 0.0)] == [8, 7, 6, 5, 4, 3, 2, 1]
    assert actions(run_epochs(policy, trials, 0, [0.97])) == [Action.PARK]
