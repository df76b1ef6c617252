"""Explorations whose metrics are partly no numbers, and metrics that are turned and so below zero."""

from math import inf, nan

import numpy as np
import pytest

from tests.policies.explore.explore_facts import EPOCHS, run_epochs, terms
from yaqd.policies.curves.reach import LibraryReach
from yaqd.policies.explore.facts import Action, Trials, TrialState
from yaqd.policies.explore.foresight import Predicted
from yaqd.policies.explore.halving import quantile
from yaqd.policies.explore.policies import EXPLORE

REACH = LibraryReach(shapes=50)


@pytest.mark.parametrize("name", EXPLORE.names())
@pytest.mark.parametrize("odd", [nan, inf])
def test_one_that_reports_no_number_ends_nobody_else(name: str, odd: float) -> None:
    """Trial 0 never has a number; the others are losses, turned over. Bandit knows no metrics below zero."""
    low = 1.0 if name == "bandit" else -2.3
    trials = Trials(6, EPOCHS)
    policy = EXPLORE[name](terms(9.0, slots=1), Predicted(REACH))
    losses = {number: [low + 0.02 * number * epoch for epoch in range(1, EPOCHS + 1)] for number in range(1, 6)}
    curves = {0: [odd] * EPOCHS, **losses}
    ran: list[int] = []
    while starts := policy.allocate(trials, 1, 0.0):
        number = starts[0].number
        ran.append(number)
        run_epochs(policy, trials, number, curves[number][int(trials.counts[number]) :])
    assert set(ran) == set(range(6))
    assert np.isfinite(trials.best[1:]).all() and trials.best[0] == -inf
    assert trials.counts[5] >= trials.counts[0]
    whole = name in ("index", "default", "asha-promote", "hyperband", "patience", "bandit")
    assert trials.counts[5] == EPOCHS or not whole


@pytest.mark.parametrize("name", ["bandit", "asha-stop", "median", "earlyterm"])
def test_where_nothing_was_a_number_yet_nobody_ends(name: str) -> None:
    trials = Trials(8, EPOCHS)
    policy = EXPLORE[name](terms(-0.01), Predicted(REACH))
    for number in range(8):
        verdicts = run_epochs(policy, trials, number, [nan] * 5)
        assert {verdict.action for verdict in verdicts} == {Action.CONTINUE}
    assert (trials.states == TrialState.RUNNING).all()


def test_a_quantile_of_what_is_no_number_is_no_number() -> None:
    assert quantile([-inf, -inf, 1.0, 2.0], 0.25) == -inf
    assert quantile([-inf, 1.0, 2.0], 0.75) == 1.5
    assert quantile([-inf, 1.0], 0.75) == -inf
