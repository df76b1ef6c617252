"""POP on the paper's own equations, and on explorations that can be worked out by hand."""

import numpy as np
import pytest

from tests.policies.explore.explore_facts import GivenForesight, actions, run_epochs, terms
from yaqd.policies.explore.facts import Action, Trials, TrialState, Why
from yaqd.policies.explore.pop import Pop, remaining, threshold

EVER = np.ones(4, dtype=bool)


def test_expected_remaining_time_is_that_of_equations_7_1_to_7_3() -> None:
    """p_1 = 0.2, p_2 = 0.3: x = 1 * 0.2 + 2 * 0.3 = 0.8 epochs of 10 s."""
    reached = np.array([[0.0, 0.0, 0.2, 0.5, 0.5]])
    confidence, expected = remaining(reached, np.array([2]), np.array([10.0]), 100.0)
    assert (confidence[0], expected[0]) == (pytest.approx(0.5), pytest.approx(8.0))


def test_the_sum_stops_where_the_time_that_is_left_is_over() -> None:
    """After one epoch the sum is 2 s, after two it would be 8 s of 5."""
    reached = np.array([[0.0, 0.0, 0.2, 0.5, 0.5]])
    confidence, expected = remaining(reached, np.array([2]), np.array([10.0]), 5.0)
    assert (confidence[0], expected[0]) == (pytest.approx(0.2), 5.0)


def test_the_threshold_is_where_desired_and_deserved_slots_cross() -> None:
    """Ten slots. p = 0.9: one desired. 0.5: two. 0.3: three, and three deserved. 0.1: four, but one deserved."""
    assert threshold(np.array([0.1, 0.9, 0.3, 0.5]), EVER, 10) == (0.3, pytest.approx(3.0))
    assert threshold(np.array([0.1, 0.9, 0.3, 0.5]), EVER, 2) == (0.9, pytest.approx(1.0))
    assert threshold(np.zeros(4), EVER, 10) == (np.inf, 0.0)


def test_poor_trials_end_at_a_boundary() -> None:
    policy = Pop(terms(kill=0.15), GivenForesight({0: 0.9, 1: 0.04, 2: 0.9}))
    trials = Trials(3, 10)
    below = run_epochs(policy, trials, 0, [0.14] * 5)
    assert actions(below) == [Action.CONTINUE] * 4 + [Action.TERMINATE]
    assert (below[-1].why, below[-1].bound) == (Why.NOT_LEARNING, 0.15)
    unlikely = run_epochs(policy, trials, 1, [0.5] * 5)
    assert (unlikely[-1].action, unlikely[-1].why) == (Action.TERMINATE, Why.UNLIKELY)
    likely = run_epochs(policy, trials, 2, [0.5] * 5)
    assert (likely[-1].action, likely[-1].why, likely[-1].priority) == (Action.CONTINUE, Why.PROMISING, 0.9)


def test_opportunistic_trials_take_turns_and_promising_ones_go_first() -> None:
    """Two slots: trial 0 with 0.8 makes 0.8 the threshold, so trial 1 with 0.1 is suspended for a fresh one."""
    policy = Pop(terms(), GivenForesight({0: 0.8, 1: 0.1, 2: 0.1, 3: 0.1}))
    trials = Trials(4, 20)
    run_epochs(policy, trials, 0, [0.5] * 5)
    waits = run_epochs(policy, trials, 1, [0.5] * 5)[-1]
    assert (waits.action, waits.why, waits.bound) == (Action.PARK, Why.OPPORTUNISTIC, 0.8)
    for number in (2, 3):
        assert [start.number for start in policy.allocate(trials, 1, 0.0)] == [number]
        run_epochs(policy, trials, number, [0.5] * 5)
    assert [start.number for start in policy.allocate(trials, 3, 0.0)] == [1, 2, 3]
    assert trials.states[1] == TrialState.PARKED
