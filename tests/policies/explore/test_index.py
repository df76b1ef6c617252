"""Our index: its arithmetic, who waits for whom, and that nobody is lost."""

import numpy as np
import pytest

from tests.policies.explore.explore_facts import GivenForesight, actions, run_epochs, terms
from yaqd.policies.curves.samples import Floats, Ints
from yaqd.policies.explore.facts import Action, Trials, TrialState, Why
from yaqd.policies.explore.index import Index, indices, reservation

ON, PARK = Action.CONTINUE, Action.PARK


def test_the_index_is_the_best_chance_per_second_over_all_horizons() -> None:
    """One epoch: 0.5 / 1. Two: 1 / (1 + 0.5), as the second is run by half. A target far away: 0.9 / 4."""
    reached = np.array([[0.0, 0.5, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0, 0.9]])
    rates, chances = indices(reached, np.array([1, 1]), np.array([2.0, 1.0]))
    assert rates.tolist() == pytest.approx([1 / 1.5 / 2, 0.9 / 4])
    assert chances.tolist() == [1.0, 0.9]


def test_what_was_reached_before_counts_nothing() -> None:
    reached = np.array([[0.0, 0.5, 1.0]])
    rates, _ = indices(reached, np.array([3]), np.array([1.0]))
    assert rates.tolist() == [0.0]


def test_a_fresh_trial_is_worth_looks_and_then_the_best_of_those_seen() -> None:
    """Four looks of 3 s. The best alone: 0.5 / (12 + 10). The second lowers it."""
    chances, costs_s = np.array([0.1, 0.5, 0.4]), np.array([50.0, 10.0, 20.0])
    assert reservation(chances, costs_s, 4, 3.0) == pytest.approx(0.5 / 22)
    assert reservation(chances, costs_s, 40, 3.0) == pytest.approx(0.9 / 150)
    assert reservation(np.zeros(0), np.zeros(0), 4, 3.0) == 0.0


def test_a_trial_is_left_alone_until_the_first_look() -> None:
    policy, trials = Index(terms(), GivenForesight({0: 0.0}), first=3), Trials(9, 10)
    verdicts = run_epochs(policy, trials, 0, [0.5] * 3)
    assert actions(verdicts) == [ON, ON, PARK]
    assert [verdict.why for verdict in verdicts] == [Why.EARLY, Why.EARLY, Why.WORTH_LESS]


def test_a_promising_trial_keeps_its_slot_and_a_poor_one_waits_for_fresh_ones() -> None:
    """Of the prior 0.5 in 2.5 epochs, of this one 0.9 in one: together 1.4 / (21 * 3 + 3.5)."""
    policy = Index(terms(), GivenForesight({0: 0.9, 1: 0.001}), first=3, prior_trials=20, prior_hits=0.5)
    trials = Trials(9, 10)
    good = run_epochs(policy, trials, 0, [0.5] * 3)[-1]
    assert (good.action, good.why, good.priority) == (ON, Why.WORTH_MOST, pytest.approx(0.9))
    assert good.bound == pytest.approx(1.4 / (21 * 3 + 2.5 + 1.0))
    poor = run_epochs(policy, trials, 1, [0.5] * 3)[-1]
    assert (poor.action, poor.why) == (PARK, Why.WORTH_LESS)
    assert [start.number for start in policy.allocate(trials, 1, 0.0)] == [2]


def test_a_trial_that_has_learnt_nothing_comes_back_when_nothing_better_waits() -> None:
    policy = Index(terms(kill=0.2), GivenForesight({0: 0.5, 1: 0.001, 2: 0.9}), first=3)
    trials = Trials(3, 10)
    dull = run_epochs(policy, trials, 0, [0.1] * 3)[-1]
    assert (dull.action, dull.why, dull.bound) == (PARK, Why.NOT_LEARNING, 0.2)
    run_epochs(policy, trials, 1, [0.3] * 3)
    assert [start.number for start in policy.allocate(trials, 1, 0.0)] == [2]
    assert actions(run_epochs(policy, trials, 2, [0.3] * 10))[-1] == Action.TERMINATE
    # the one that learns first, though its chance is small
    assert [start.number for start in policy.allocate(trials, 2, 0.0)] == [1, 0]
    assert actions(run_epochs(policy, trials, 0, [0.1])) == [PARK]
    assert actions(run_epochs(policy, trials, 0, [0.3])) == [ON]


def test_many_at_once_are_judged_as_one_by_one() -> None:
    rng = np.random.default_rng(3)
    chances = dict(enumerate(rng.random(40)))
    found = []
    for at_once in (False, True):
        policy, trials = Index(terms(kill=0.1), GivenForesight(chances)), Trials(60, 10)
        numbers = list(range(40))
        last = [0.05 * (number % 7) for number in numbers]
        for number in numbers:
            trials.start(number)
            for metric in (0.1, 0.2):
                trials.report(number, metric, 1.0)
        if at_once:
            policy.foresee(trials, np.array(numbers), np.array(last))
        for number in numbers:
            trials.report(number, last[number], 1.0)
        for number in numbers:
            policy.iterated(trials, number, 0.0)
        # judged a second time all have seen all, whatever the order was
        said = [policy.iterated(trials, number, 0.0) for number in numbers]
        for number, verdict in zip(numbers, said, strict=True):
            trials.settle(number, verdict)
        found.append((actions(said), [start.number for start in policy.allocate(trials, 5, 0.0)]))
    assert found[0] == found[1]
    assert set(found[0][0]) == {ON, PARK}


def test_where_no_target_is_said_all_are_looked_at_again_when_the_best_rises() -> None:
    asked: list[tuple[int, float]] = []

    class Watched(GivenForesight):
        def reached(self, trials: Trials, numbers: Ints, target: float) -> Floats:
            asked.append((len(numbers), target))
            return super().reached(trials, numbers, target)

    policy, trials = Index(terms(None), Watched({0: 0.5, 1: 0.5})), Trials(5, 10)
    run_epochs(policy, trials, 0, [0.1] * 3)
    run_epochs(policy, trials, 1, [0.2] * 3)
    before = asked[-1][1]
    run_epochs(policy, trials, 1 if trials.states[1] == TrialState.RUNNING else 2, [0.4] * 3)
    assert asked[-1][1] > before
    assert max(many for many, _ in asked) >= 2


def test_a_trial_stays_where_its_suspension_takes_longer_than_what_is_left_of_it() -> None:
    found = []
    for took_s in (0.0, 0.1, 20.0):
        policy, trials = Index(terms(), GivenForesight({0: 0.3, 1: 0.9}), first=3), Trials(2, 10)
        trials.suspended(took_s)
        run_epochs(policy, trials, 1, [0.5] * 3)
        trials.states[1] = TrialState.PARKED
        found.append(actions(run_epochs(policy, trials, 0, [0.5] * 3))[-1])
    assert found == [PARK, PARK, ON]


def test_trials_without_a_chance_do_not_take_turns() -> None:
    policy, trials = Index(terms(), GivenForesight({}), first=3), Trials(3, 10)
    for number, metric in ((0, 0.1), (1, 0.3), (2, 0.2)):
        last = run_epochs(policy, trials, number, [metric] * 3)[-1]
        if number < 2:
            assert last.action == PARK, "fresh ones are worth more"
    # the last one goes on to its end, though others have fewer epochs or a better metric
    assert trials.states[2] == TrialState.RUNNING and last.why == Why.ROOM
    assert actions(run_epochs(policy, trials, 2, [0.2] * 7)) == [ON] * 6 + [Action.TERMINATE]
    assert [start.number for start in policy.allocate(trials, 2, 0.0)] == [1, 0], "the better one first"


def test_a_trial_stays_unless_another_is_clearly_better() -> None:
    policy, trials = Index(terms(), GivenForesight({0: 0.50, 1: 0.52}), first=3), Trials(2, 10)
    run_epochs(policy, trials, 1, [0.5] * 3)
    trials.states[1] = TrialState.PARKED
    assert run_epochs(policy, trials, 0, [0.5] * 4)[-1].action == ON
    policy.foresight.chances[1] = 0.9  # type: ignore[attr-defined]
    trials.start(1)
    trials.report(1, 0.5, 1.0)
    policy.iterated(trials, 1, 0.0)
    trials.states[1] = TrialState.PARKED
    assert run_epochs(policy, trials, 0, [0.5])[-1].action == PARK
