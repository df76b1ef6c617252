"""Trials predicted by a predictor of rising curves."""

import numpy as np

from yaqd.policies.curves.outlook import Reach
from yaqd.policies.curves.samples import Floats, Ints
from yaqd.policies.explore.facts import Trials


class Predicted:
    """Foresight by a predictor, asked anew each time."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    def reached(self, trials: Trials, numbers: Ints, target: float) -> Floats:
        """Return the chance that each trial has reached the target by each epoch."""
        return self._reach.outlook(*_seen(trials, numbers), trials.epochs).reached(target)

    def ends_above(self, trials: Trials, numbers: Ints, target: float) -> Floats:
        """Return the chance that each trial's metric is above the target after the last epoch."""
        return self._reach.outlook(*_seen(trials, numbers), trials.epochs).at(trials.epochs, target)


def _seen(trials: Trials, numbers: Ints) -> tuple[Floats, Ints]:
    counts = trials.counts[numbers]
    longest = int(counts.max(initial=0))
    return np.where(np.arange(longest) < counts[:, None], trials.values[numbers, :longest], 0.0), counts
