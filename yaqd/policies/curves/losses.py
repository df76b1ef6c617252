"""What jobs have reported: the newest losses of each, and what else a normalization needs of them.

Every report passes `LossWindows.report`, which is the one place that refuses what no fit could live with: losses that
are no finite numbers or beyond `LOSS_MAX`, and iterations that do not go on. An iteration that was there already counts
nothing, so a batch that comes twice, and a job that goes on from a checkpoint, change nothing.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from yaqd.model.training import ITERATION_MAX, LOSS_MAX, WINDOW
from yaqd.policies.curves.samples import WINDOW_MAX, Bools, Floats, Ints, Sample, sample

_GROWN: Final = 2


def numbers(values: Sequence[Any] | Floats, most: int = WINDOW_MAX) -> Floats:
    """Return the last `most` values as floats; what is no number is NaN."""
    last = values[-most:]
    try:
        return np.asarray(last, dtype=np.float64).reshape(len(last))
    except (TypeError, ValueError, OverflowError):
        return np.array([_number(value) for value in last], dtype=np.float64)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


class LossWindows:
    """The newest losses of many jobs, a row for each; `add` gives a row, `forget` takes it back."""

    def __init__(self, window: int = WINDOW) -> None:
        if not 2 <= window <= WINDOW_MAX:
            raise ValueError(f"a window of {window} losses; it must have 2 to {WINDOW_MAX}")
        self.window: Final = window
        self._free: list[int] = []
        self.iterations: Floats = np.zeros((0, window))
        self.losses: Floats = np.zeros((0, window))
        self.counts: Ints = np.zeros(0, dtype=np.int64)
        #: the first loss reported; the largest fall in one iteration, 0 before there was one
        self.first: Floats = np.zeros(0)
        self.largest: Floats = np.zeros(0)

    def __len__(self) -> int:
        """Return the number of rows there are, those that nobody uses included."""
        return len(self.counts)

    def add(self) -> int:
        """Return a row without losses."""
        if not self._free:
            self._grow(max(16, len(self) * _GROWN))
        return self._free.pop()

    def _grow(self, rows: int) -> None:
        more = rows - len(self)
        self._free += range(rows - 1, len(self) - 1, -1)
        self.iterations = np.concatenate((self.iterations, np.zeros((more, self.window))))
        self.losses = np.concatenate((self.losses, np.zeros((more, self.window))))
        self.counts = np.concatenate((self.counts, np.zeros(more, dtype=np.int64)))
        self.first = np.concatenate((self.first, np.zeros(more)))
        self.largest = np.concatenate((self.largest, np.zeros(more)))

    def forget(self, row: int) -> None:
        """Take a row back; its losses are gone."""
        self.counts[row] = 0
        self.first[row] = self.largest[row] = 0.0
        self._free.append(row)

    def newest(self, row: int) -> float:
        """Return the iteration of the newest loss, -1 before there is one."""
        return float(self.iterations[row, -1]) if self.counts[row] else -1.0

    def report(self, row: int, first_iteration: float, losses: Sequence[Any] | Floats) -> int:
        """Take in the losses of consecutive iterations from `first_iteration` on; return how many were news.

        Of a long batch only the newest `window` are read.
        """
        if len(losses) == 1:
            return self._report_one(row, first_iteration, _number(losses[0]))
        skipped = max(0, len(losses) - self.window)
        found = numbers(losses, self.window)
        iterations = first_iteration + skipped + np.arange(float(len(found)))
        sound = np.abs(found) <= LOSS_MAX  # also refuses NaN
        sound &= (iterations > self.newest(row)) & (iterations <= ITERATION_MAX)
        found, iterations = found[sound], iterations[sound]
        many = len(found)
        if many:
            self._take(row, iterations, found, many)
        return many

    def _report_one(self, row: int, iteration: float, loss: float) -> int:
        """Do the same with one loss, the most frequent case, at a fifth of the cost."""
        known = int(self.counts[row])
        iterations, losses = self.iterations[row], self.losses[row]
        if not abs(loss) <= LOSS_MAX or not iteration <= ITERATION_MAX or (known and not iteration > iterations[-1]):
            return 0
        if known:
            fall = (float(losses[-1]) - loss) / max(iteration - float(iterations[-1]), 1.0)
            if fall > self.largest[row]:
                self.largest[row] = fall
            iterations[:-1] = iterations[1:]
            losses[:-1] = losses[1:]
        else:
            if not iteration > -1.0:
                return 0
            self.first[row] = loss
        iterations[-1], losses[-1] = iteration, loss
        self.counts[row] = min(self.window, known + 1)
        return 1

    def _take(self, row: int, iterations: Floats, found: Floats, many: int) -> None:
        kept = self.window - many
        if not self.counts[row]:
            self.first[row] = found[0]
        before = self.losses[row, -1:] if self.counts[row] else found[:1]
        at = self.iterations[row, -1:] if self.counts[row] else iterations[:1]
        falls = -np.diff(found, prepend=before) / np.maximum(np.diff(iterations, prepend=at), 1.0)
        self.largest[row] = max(float(self.largest[row]), float(falls.max()))
        for kind, new in ((self.iterations, iterations), (self.losses, found)):
            kind[row, :kept] = kind[row, many:].copy()
            kind[row, kept:] = new
        self.counts[row] = min(self.window, int(self.counts[row]) + many)

    def sample(self, rows: Ints) -> Sample:
        """Return the windows of these rows as predictors take them."""
        return sample(self.iterations[rows], self.losses[rows], self.counts[rows])

    def has_losses(self, rows: Ints) -> Bools:
        """Return which rows have at least two losses, so that their curve can be predicted."""
        return np.asarray(self.counts[rows] > 1)
