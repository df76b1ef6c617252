"""Predictions of recorded curves, each made once: what a prefix of a row promises does not depend on the order."""

from typing import Final

import numpy as np

from yaqd.policies.curves.outlook import Outlook, Reach
from yaqd.policies.curves.samples import Floats, Ints
from yaqd.policies.explore.facts import Trials
from yaqd.sim.workloads.exploration import Recorded

#: rows that are predicted together with one that is asked for
_BATCH: Final = 64
#: targets whose predictions are kept; one that rises has many
_TARGETS: Final = 4


class Cached:
    """Predictions of the rows of one set by one predictor."""

    def __init__(self, recorded: Recorded, reach: Reach) -> None:
        self._recorded = recorded
        self._reach = reach
        self._best = np.maximum.accumulate(recorded.values, axis=1)
        #: by target, then by (row, epochs seen)
        self._reached: dict[float, dict[tuple[int, int], Floats]] = {}
        #: by (row, epochs seen), of rows whose last metric was asked for
        self._outlooks: dict[tuple[int, int], Outlook] = {}

    def reached(self, row: int, count: int, target: float) -> Floats:
        """Return the chance that the row reaches the target by each epoch."""
        known = self._reached.get(target)
        if known is None:
            if len(self._reached) >= _TARGETS:
                self._reached.pop(next(iter(self._reached)))
            known = self._reached[target] = {}
        found = known.get((row, count))
        if found is None:
            self._predict(row, count, target, known)
            found = known[row, count]
        return found

    def _predict(self, row: int, count: int, target: float, known: dict[tuple[int, int], Floats]) -> None:
        """Predict the row, and with it those that look at least as good after as many epochs."""
        best = self._best[:, count - 1]
        like = np.flatnonzero(best >= best[row])
        like = like[np.argsort(best[like], kind="stable")]
        rows = [int(one) for one in like if (int(one), count) not in known and one != row][: _BATCH - 1]
        batch = np.array([row, *rows], dtype=np.int64)
        counts = np.full(len(batch), count)
        outlook = self._reach.outlook(self._recorded.values[batch, :count], counts, self._recorded.epochs)
        for one, chances in zip(batch.tolist(), outlook.reached(target), strict=True):
            known[one, count] = chances

    def ends_above(self, row: int, count: int, target: float) -> float:
        """Return the chance that the row's metric is above the target after the last epoch."""
        epochs = self._recorded.epochs
        found = self._outlooks.get((row, count))
        if found is None:
            found = self._reach.outlook(self._recorded.values[[row], :count], np.array([count]), epochs)
            self._outlooks[row, count] = found
        return float(found.at(epochs, target)[0])


class InOrder:
    """Foresight of an exploration whose trial n is row `order[n]`."""

    def __init__(self, cached: Cached, order: Ints) -> None:
        self._cached = cached
        self._rows = [int(row) for row in order]

    def reached(self, trials: Trials, numbers: Ints, target: float) -> Floats:
        """Return the chance that each trial has reached the target by each epoch."""
        rows, counts = self._rows, trials.counts
        return np.array([self._cached.reached(rows[int(one)], int(counts[one]), target) for one in numbers])

    def prime(self, trials: Trials, numbers: Ints, metrics: Floats) -> None:
        """Predict nothing: what is predicted is kept anyway."""

    def ends_above(self, trials: Trials, numbers: Ints, target: float) -> Floats:
        """Return the chance that each trial's metric is above the target after the last epoch."""
        rows, counts = self._rows, trials.counts
        return np.array([self._cached.ends_above(rows[int(one)], int(counts[one]), target) for one in numbers])
