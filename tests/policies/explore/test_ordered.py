"""Policies that suspend nobody, each on a case that can be worked out by hand."""

import pytest

from tests.policies.explore.explore_facts import GivenForesight, actions, run_epochs, terms
from yaqd.policies.explore.facts import Action, Trials, Why
from yaqd.policies.explore.ordered import Bandit, Default, EarlyTerm, Median, Patience

NOBODY = GivenForesight({})
ON, END = Action.CONTINUE, Action.TERMINATE


def test_default_runs_each_to_its_end_in_order() -> None:
    trials, policy = Trials(3, 10), Default(terms(), NOBODY)
    assert [start.number for start in policy.allocate(trials, 2, 0.0)] == [0, 1]
    verdicts = run_epochs(policy, trials, 0, [0.0] * 10)
    assert actions(verdicts) == [ON] * 9 + [END]
    assert (verdicts[-1].why, verdicts[-1].value) == (Why.DONE, 10)


def test_bandit_goes_on_while_one_and_a_half_times_its_best_is_above_the_best() -> None:
    """Section 7.6: jobBest * (1 + 0.5) > globalBest, at a boundary. 0.39 * 1.5 is not above 0.6, 0.41 * 1.5 is."""
    trials, policy = Trials(3, 10), Bandit(terms(), NOBODY)
    run_epochs(policy, trials, 0, [0.6])
    ended = run_epochs(policy, trials, 1, [0.39, 0.1, 0.1, 0.1, 0.1, 0.1])
    assert actions(ended) == [ON] * 4 + [END]
    assert (ended[-1].why, ended[-1].bound) == (Why.FAR_FROM_BEST, 0.6)
    goes_on = run_epochs(policy, trials, 2, [0.41, 0.1, 0.1, 0.1, 0.1, 0.1])
    assert actions(goes_on) == [ON] * 6
    assert goes_on[4].value == pytest.approx(0.615)


def test_bandit_keeps_what_is_near_the_best_of_metrics_below_zero_too() -> None:
    trials, policy = Trials(3, 10), Bandit(terms(), NOBODY)
    assert actions(run_epochs(policy, trials, 0, [-1.0] * 5)) == [ON] * 5
    assert actions(run_epochs(policy, trials, 1, [-1.9] * 5)) == [ON] * 5
    assert actions(run_epochs(policy, trials, 2, [-2.1] * 5)) == [ON] * 4 + [END]


@pytest.mark.parametrize(("chance", "action"), [(0.049, END), (0.05, ON)])
def test_earlyterm_ends_whose_last_metric_will_hardly_be_the_best(chance: float, action: Action) -> None:
    """Section 7.6: at a boundary, if P(y(last) > globalBest) < 0.05."""
    trials, policy = Trials(1, 10), EarlyTerm(terms(), GivenForesight({0: chance}))
    verdicts = run_epochs(policy, trials, 0, [0.5] * 5)
    assert actions(verdicts) == [ON] * 4 + [action]
    assert (verdicts[-1].value, verdicts[-1].bound) == (chance, 0.05)


def test_median_ends_who_is_below_the_median_of_the_others_running_means() -> None:
    """Running means after two epochs are 0.1, 0.2, 0.3, 0.4 and 0.5: their median is 0.3."""
    trials, policy = Trials(7, 10), Median(terms(), NOBODY, grace=2, least=5)
    for number, mean in enumerate((0.1, 0.2, 0.3, 0.4, 0.5)):
        run_epochs(policy, trials, number, [mean - 0.05, mean + 0.05])
    below = run_epochs(policy, trials, 5, [0.2, 0.29])
    assert (below[-1].action, below[-1].why) == (END, Why.BELOW_MEDIAN)
    assert below[-1].bound == pytest.approx(0.3)
    # with the sixth's mean of 0.245 the median of the others is (0.245 + 0.3) / 2
    above = run_epochs(policy, trials, 6, [0.2, 0.28])
    assert (above[-1].action, above[-1].bound) == (ON, pytest.approx(0.2725))


def test_patience_ends_who_has_not_risen_for_so_long() -> None:
    trials, policy = Trials(1, 10), Patience(terms(), NOBODY, patience=3, rise=0.01)
    verdicts = run_epochs(policy, trials, 0, [0.1, 0.2, 0.205, 0.22, 0.1, 0.22, 0.225, 0.5])
    assert actions(verdicts) == [ON] * 6 + [END]
    assert verdicts[-1].why == Why.STALLED
