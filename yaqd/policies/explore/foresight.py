"""Trials predicted by a predictor of rising curves."""

from dataclasses import dataclass, field

import numpy as np

from yaqd.policies.curves.outlook import Outlook, Reach
from yaqd.policies.curves.samples import Floats, Ints
from yaqd.policies.explore.facts import Trials


@dataclass(slots=True, eq=False)
class _Ahead:
    """Trials that were predicted together, as they are once they have reported."""

    #: by trial: its row
    rows: dict[int, int]
    values: Floats
    counts: Ints
    outlook: Outlook
    #: by target: chances of all rows
    reached: dict[float, Floats] = field(default_factory=dict)

    def row(self, trials: Trials, number: int) -> int | None:
        """Return the row of a trial whose curve is the one that was predicted."""
        row, count = self.rows.get(number), int(trials.counts[number])
        if row is None or count != self.counts[row]:
            return None
        return row if np.array_equal(trials.values[number, :count], self.values[row, :count]) else None


class Predicted:
    """Foresight by a predictor, asked anew each time but for what was predicted together."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._ahead: _Ahead | None = None

    def reached(self, trials: Trials, numbers: Ints, target: float) -> Floats:
        """Return the chance that each trial has reached the target by each epoch."""
        ahead = self._ahead
        if ahead is not None and len(numbers) == 1:
            row = ahead.row(trials, int(numbers[0]))
            if row is not None:
                if target not in ahead.reached:
                    ahead.reached = {target: ahead.outlook.reached(target)}
                return ahead.reached[target][row : row + 1]
        return self._reach.outlook(*_seen(trials, numbers), trials.epochs).reached(target)

    def ends_above(self, trials: Trials, numbers: Ints, target: float) -> Floats:
        """Return the chance that each trial's metric is above the target after the last epoch."""
        return self._reach.outlook(*_seen(trials, numbers), trials.epochs).at(trials.epochs, target)

    def prime(self, trials: Trials, numbers: Ints, metrics: Floats) -> None:
        """Predict at once what will be asked when these trials have reported these metrics."""
        known, counts = _seen(trials, numbers)
        values = np.pad(known, ((0, 0), (0, 1)))
        values[np.arange(len(numbers)), counts] = metrics
        rows = {number: row for row, number in enumerate(numbers.tolist())}
        outlook = self._reach.outlook(values, counts + 1, trials.epochs)
        self._ahead = _Ahead(rows, values, counts + 1, outlook)


def _seen(trials: Trials, numbers: Ints) -> tuple[Floats, Ints]:
    counts = trials.counts[numbers]
    longest = int(counts.max(initial=0))
    return np.where(np.arange(longest) < counts[:, None], trials.values[numbers, :longest], 0.0), counts
