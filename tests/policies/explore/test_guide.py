"""The forest that orders fresh trials."""

import numpy as np

from yaqd.policies.explore.facts import Trials
from yaqd.policies.explore.guide import ForestGuide, grow


def test_a_forest_finds_the_one_hyperparameter_that_matters() -> None:
    rng = np.random.default_rng(1)
    params = rng.random((300, 6))
    scores = np.where(params[:, 2] > 0.7, 1.0, 0.0) + rng.normal(0, 0.1, 300)
    unseen = rng.random((200, 6))
    predicted = grow(params, scores, seed=1).predict(unseen)
    good = unseen[:, 2] > 0.75
    assert predicted[good].mean() > 0.8
    assert predicted[unseen[:, 2] < 0.65].mean() < 0.2


def test_a_forest_is_the_same_for_the_same_seed_and_stays_within_the_scores() -> None:
    rng = np.random.default_rng(2)
    params, scores = rng.random((50, 3)), rng.random(50)
    predicted = grow(params, scores, seed=1).predict(params)
    assert np.array_equal(predicted, grow(params, scores, seed=1).predict(params))
    assert not np.array_equal(predicted, grow(params, scores, seed=2).predict(params))
    assert scores.min() <= predicted.min() <= predicted.max() <= scores.max()


def test_equal_rows_and_a_single_one_are_no_trouble() -> None:
    assert grow(np.zeros((5, 2)), np.arange(5.0), seed=1).predict(np.zeros((1, 2))).tolist() == [2.0]
    assert grow(np.zeros((1, 1)), np.array([3.0]), seed=1).predict(np.ones((2, 1))).tolist() == [3.0, 3.0]


def test_fresh_trials_come_in_order_until_enough_were_seen_then_the_best_first() -> None:
    params = np.linspace(0, 1, 100)[:, None]
    trials = Trials(100, 5, ForestGuide(params, start=10))
    assert trials.fresh(3) == [0, 1, 2]
    for number in range(0, 100, 9):
        trials.start(number)
        trials.report(number, float(params[number, 0]), 1.0)
    best = trials.fresh(5)
    assert min(best) > 80
    assert all(trials.counts[number] == 0 for number in best)


def test_trials_without_hyperparameters_come_in_order() -> None:
    trials = Trials(30, 5, ForestGuide(np.zeros((30, 0)), start=2))
    for number in range(5):
        trials.start(number)
        trials.report(number, 0.1, 1.0)
    assert trials.fresh(2) == [5, 6]


def test_where_nothing_was_a_number_trials_come_in_order_and_such_a_place_is_left() -> None:
    params = np.linspace(0, 1, 100)[:, None]
    trials = Trials(100, 5, ForestGuide(params, start=10))
    for number in range(0, 100, 9):
        trials.start(number)
        trials.report(number, np.nan, 1.0)
    assert trials.fresh(2) == [1, 2]
    for number in range(0, 54, 9):
        trials.report(number, -1.0 - number, 1.0)
    # from 54 on there was no number
    assert max(trials.fresh(20)) < 40
