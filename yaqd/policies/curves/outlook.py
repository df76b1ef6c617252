"""What a predictor of rising curves says: chances that a trial reaches a target, and when.

Metrics are oriented to rise. What was observed already is a fact: it is never asked of the draws.
"""

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from yaqd.policies.curves.samples import Bools, Floats, Ints, picked

#: epochs that a curve may have; where a trial has more, a caller reports every n-th
EPOCHS_MAX: Final = 1000
#: what lies beyond counts as this: squares and sums of it stay finite
_VALUE_MAX: Final = 1e12


class Outlook(Protocol):
    """What is known of the future of many curves, one a row."""

    def reached(self, target: float) -> Floats:
        """Return the chance that the target is reached at or before epoch m, (curves, epochs), in column m - 1.

        It never falls along a row. It is 1 from the epoch on at which the target was seen, and 0 before the first
        epoch that is still to come where it was not seen.
        """
        ...

    def at(self, epoch: int, target: float) -> Floats:
        """Return the chance that the metric of this epoch is at least the target, (curves,)."""
        ...

    def interval(self, epoch: int, part: float) -> tuple[Floats, Floats]:
        """Return the bounds between which the metric of this epoch lies with the chance `part`, (curves,) each."""
        ...

    def spread(self) -> Floats:
        """Return the standard deviation of the metric at the last epoch, (curves,): the paper's prediction accuracy."""
        ...


class Reach(Protocol):
    """A predictor of rising curves; others plug in as entry points `yaqd.reach`."""

    def outlook(self, values: Floats, counts: Ints, epochs: int) -> Outlook:
        """Return the future of each curve.

        `values`: (curves, epochs seen at most), the metric oriented to rise. `counts`: values known of each row; the
        newest is in column counts - 1, and what is beyond is ignored. `epochs`: the last epoch that a curve may have.
        A value that is no number counts as the one before it; a row without numbers, as one without values.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What was observed, made fit for arithmetic: `values` is (curves, epochs), finite, 0 beyond `counts`."""

    values: Floats
    counts: Ints
    epochs: int

    def reached(self, target: float) -> Bools:
        """Return by which epochs the target was seen, (curves, epochs)."""
        hits = (self.values >= target) & (np.arange(self.epochs) < self.counts[:, None])
        return np.asarray(np.logical_or.accumulate(hits, axis=1))


def seen(values: Floats, counts: Ints, epochs: int) -> Seen:
    """Return the observed values in order. Raises ValueError for sizes that do not fit together."""
    if not 1 <= epochs <= EPOCHS_MAX:
        raise ValueError(f"{epochs} epochs; a curve has 1 to {EPOCHS_MAX}: report every n-th epoch of longer ones")
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 2 or len(found) != len(counts):
        raise ValueError(f"values of shape {found.shape} and {len(counts)} counts: one row for each count is needed")
    width = min(found.shape[1], epochs)
    kept = np.minimum(np.maximum(np.asarray(counts, dtype=np.int64), 0), width)
    clean = np.zeros((len(found), epochs))
    clean[:, :width] = found[:, :width]
    clean[np.arange(epochs) >= kept[:, None]] = 0.0
    if not (np.abs(clean) <= _VALUE_MAX).all():  # NaN is not either
        kept = _mended(clean, kept)
        np.clip(clean, -_VALUE_MAX, _VALUE_MAX, out=clean)
    return Seen(clean, kept, epochs)


def _mended(clean: Floats, counts: Ints) -> Ints:
    """Put the value before it in the place of each that is no number; the first number in the place of those before."""
    for row in np.flatnonzero(~np.isfinite(clean).all(axis=1)):
        known = clean[row, : counts[row]]
        good = np.flatnonzero(np.isfinite(known))
        if good.size:
            last = np.maximum.accumulate(np.where(np.isfinite(known), np.arange(len(known)), good[0]))
            clean[row, : counts[row]] = known[last]
        else:
            clean[row] = 0.0
            counts[row] = 0
    return counts


@dataclass(frozen=True, slots=True, eq=False)
class DrawnOutlook:
    """Curves drawn from each curve's future: `draws` is (curves, samples, epochs), all samples of one weight."""

    draws: Floats
    seen: Seen

    def reached(self, target: float) -> Floats:
        """Return the chance that the target is reached by each epoch (`Outlook.reached`)."""
        future = np.arange(self.seen.epochs) >= self.seen.counts[:, None]
        hits = np.logical_or.accumulate((self.draws >= target) & future[:, None], axis=2)
        return np.asarray(np.where(self.seen.reached(target), 1.0, hits.mean(axis=1)))

    def at(self, epoch: int, target: float) -> Floats:
        """Return the chance that this epoch's metric is at least the target (`Outlook.at`)."""
        known, value = observed(self.seen, epoch)
        return np.asarray(np.where(known, value >= target, (self.draws[:, :, epoch - 1] >= target).mean(axis=1)))

    def interval(self, epoch: int, part: float) -> tuple[Floats, Floats]:
        """Return bounds of this epoch's metric (`Outlook.interval`)."""
        return bounds(self.draws[:, :, epoch - 1], self.seen, epoch, part)

    def spread(self) -> Floats:
        """Return the standard deviation of the last epoch's metric (`Outlook.spread`)."""
        return np.where(self.seen.counts >= self.seen.epochs, 0.0, self.draws[:, :, -1].std(axis=1))


def observed(seen: Seen, epoch: int) -> tuple[Bools, Floats]:
    """Return where this epoch was observed, and its value there. Raises ValueError for an epoch that no curve has."""
    if not 1 <= epoch <= seen.epochs:
        raise ValueError(f"epoch {epoch}; the curves have epochs 1 to {seen.epochs}")
    return seen.counts >= epoch, seen.values[:, epoch - 1]


def bounds(drawn: Floats, seen: Seen, epoch: int, part: float) -> tuple[Floats, Floats]:
    """Return the bounds of the middle `part` of the draws, (curves, samples), or twice what was observed."""
    if not 0.0 <= part <= 1.0:
        raise ValueError(f"an interval of the part {part}; it must be 0 to 1")
    known, value = observed(seen, epoch)
    ordered = np.sort(drawn, axis=1)
    # the draw j stands for the part (j + 1/2) / samples
    places = np.clip(np.array([0.5 - part / 2, 0.5 + part / 2]) * drawn.shape[1] - 0.5, 0.0, drawn.shape[1] - 1.0)
    left = np.minimum(places.astype(np.int64), max(drawn.shape[1] - 2, 0))
    right = np.minimum(left + 1, drawn.shape[1] - 1)
    columns = np.broadcast_to(np.stack((left, right)), (len(drawn), 2, 2)).reshape(len(drawn), 4)
    found = picked(ordered, columns)
    inner = found[:, :2] + (found[:, 2:] - found[:, :2]) * (places - left)
    return np.where(known, value, inner[:, 0]), np.where(known, value, inner[:, 1])
