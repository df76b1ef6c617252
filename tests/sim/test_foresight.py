"""Predictions of recorded curves are made once, and are those of the prefix alone."""

import numpy as np

from yaqd.policies.curves.reach import LibraryReach, Outlook
from yaqd.policies.curves.samples import Floats, Ints
from yaqd.policies.explore.facts import Trials
from yaqd.policies.explore.foresight import Predicted
from yaqd.sim.exploration import Cached, InOrder
from yaqd.sim.workloads.exploration import draw_cifar

REACH = LibraryReach()


class _Counting:
    def __init__(self) -> None:
        self.asked = 0

    def outlook(self, values: Floats, counts: Ints, epochs: int) -> Outlook:
        self.asked += len(counts)
        return REACH.outlook(values, counts, epochs)


def test_cached_predictions_are_those_of_the_trials() -> None:
    recorded = draw_cifar(1)
    order = np.random.default_rng(1).permutation(len(recorded))
    trials = Trials(len(recorded), recorded.epochs)
    for number, count in ((0, 3), (1, 7), (2, 40)):
        trials.start(number)
        for metric in recorded.values[order[number], :count]:
            trials.report(number, float(metric), 1.0)
    numbers = np.arange(3)
    cached, plain = InOrder(Cached(recorded, REACH), order), Predicted(REACH)
    assert np.allclose(cached.reached(trials, numbers, 0.7), plain.reached(trials, numbers, 0.7))
    assert np.allclose(cached.ends_above(trials, numbers, 0.3), plain.ends_above(trials, numbers, 0.3))


def test_what_was_predicted_is_not_predicted_again() -> None:
    recorded, counting = draw_cifar(1), _Counting()
    cached = Cached(recorded, counting)
    for row in range(len(recorded)):
        cached.reached(row, 5, 0.7)
    assert counting.asked == len(recorded)
    cached.ends_above(3, 30, 0.5)
    cached.ends_above(3, 30, 0.5)
    assert counting.asked == len(recorded) + 1
