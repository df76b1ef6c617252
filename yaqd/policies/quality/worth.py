"""What cores are worth to each job in one epoch: a concave function of the iterations done, so of the cores.

An iteration takes work / cores + fixed seconds (SLAQ, section 3.3.2), so n cores do
epoch * n / (work + fixed * n) iterations.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from yaqd.policies.curves.drops import HORIZONS, drops_at
from yaqd.policies.curves.samples import Floats, Ints, picked
from yaqd.policies.quality.facts import TrainingJobs

#: core-seconds of an iteration at least, so that nothing is divided by 0
_WORK_MIN: Final = 1e-6
_NEVER: Final = 1e15
#: with fewer iterations left a job has ended
_NEAR_END: Final = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Worth:
    """By job the worth of iterations: straight between nodes, growing, concave."""

    #: (jobs, nodes): iterations ahead; the last one is the job's end
    ahead: Floats
    #: (jobs, nodes)
    worth: Floats

    def at(self, done: Floats, rows: Ints | None = None) -> Floats:
        """Return what `done` iterations are worth: (jobs, n), or one number for each of `rows`."""
        last = len(HORIZONS) - 1
        at = np.minimum(np.searchsorted(HORIZONS, done, side="right") - 1, last)
        if rows is None:
            x, x2 = (picked(self.ahead, at + more) for more in (0, 1))
            y, y2 = (picked(self.worth, at + more) for more in (0, 1))
        else:
            x, x2 = self.ahead[rows, at], self.ahead[rows, at + 1]
            y, y2 = self.worth[rows, at], self.worth[rows, at + 1]
        wide = x2 - x
        part = np.where(wide > 0.0, np.clip((done - x) / np.where(wide > 0.0, wide, 1.0), 0.0, 1.0), 1.0)
        return np.asarray(y + (y2 - y) * part)


def worth_of(jobs: TrainingJobs, scale: Floats, end: float = 0.0) -> Worth:
    """Return the worth of each job's iterations: weight * (fall / scale), and `end` more at the job's end.

    The least concave function above that: a job that is near its end is worth on the way what the way brings in the
    mean. Nothing is worth anything beyond the end.
    """
    left = np.where(jobs.left > _NEAR_END, jobs.left, 0.0)
    last = np.where(np.isfinite(left), left, HORIZONS[-1])
    ahead = np.concatenate((np.minimum(HORIZONS, last[:, None]), last[:, None]), axis=1)
    at_end = drops_at(jobs.drops, last[:, None])
    before = ahead[:, :-1] < last[:, None]
    fall = np.concatenate((np.where(before, jobs.drops, at_end), at_end), axis=1) / scale[:, None]
    if end > 0.0:
        fall = _with_end(ahead, fall, np.where(np.isfinite(left) & (left > 0.0), end, 0.0))
    return Worth(ahead, fall * jobs.weight[:, None])


def _with_end(ahead: Floats, fall: Floats, end: Floats) -> Floats:
    """Return the concave hull of a concave function that jumps by `end` at its last node."""
    top = fall[:, -1:] + end[:, None]
    way = ahead[:, -1:] - ahead
    chord = np.where(way > 0.0, (top - fall) / np.where(way > 0.0, way, 1.0), np.inf)
    leaves = np.argmin(chord, axis=1)[:, None]
    slope = picked(chord, leaves)
    slope = np.where(np.isfinite(slope), slope, 0.0)
    straight = np.maximum(top - slope * way, fall)
    return np.where(ahead >= picked(ahead, leaves), straight, fall)


def concave(ahead: Floats, values: Floats) -> Floats:
    """Return the least concave functions above the rows of `values`; nodes of no width keep the larger value."""
    wide = np.diff(ahead, axis=1)
    slopes = np.where(wide > 0.0, np.diff(values, axis=1) / np.where(wide > 0.0, wide, 1.0), 0.0)
    rises = (np.diff(slopes, axis=1) > 1e-12 * np.abs(slopes[:, :1]) + 1e-300) & (wide[:, 1:] > 0.0)
    bent = np.flatnonzero(rises.any(axis=1))
    if bent.size:
        values = values.copy()
        values[bent] = _hulls(ahead[bent], values[bent])
    return values


def _hulls(ahead: Floats, values: Floats) -> Floats:
    """Walk from each hull's vertex to the next, the one that the steepest chord leads to, all rows at once."""
    rows, nodes = values.shape
    found = values.copy()
    at = np.zeros(rows, dtype=np.int64)
    every = np.arange(rows)
    column = np.arange(nodes)
    for _ in range(nodes - 1):
        x, y = ahead[every, at][:, None], values[every, at][:, None]
        way = ahead - x
        ok = (column > at[:, None]) & (way > 0.0)
        chord = np.where(ok, (values - y) / np.where(ok, way, 1.0), -np.inf)
        # of equal chords the farthest, so that a straight piece is one step
        far = nodes - 1 - np.argmax(chord[:, ::-1], axis=1)
        goes = np.isfinite(chord[every, far])
        if not goes.any():
            break
        line = y + np.where(goes, chord[every, far], 0.0)[:, None] * way
        between = goes[:, None] & (column > at[:, None]) & (column <= far[:, None])
        found = np.where(between, np.maximum(line, found), found)
        at = np.where(goes, far, at)
    return np.maximum.accumulate(found, axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class IterationRates:
    """How fast each job runs on so many cores."""

    work_s: Floats
    fixed_s: Floats
    epoch_s: float

    def done(self, cores: Floats, rows: Ints | None = None) -> Floats:
        """Return iterations in an epoch: `cores` is (jobs, n), or a number for each of `rows`."""
        work = self.work_s[:, None] if rows is None else self.work_s[rows]
        fixed = self.fixed_s[:, None] if rows is None else self.fixed_s[rows]
        return np.asarray(self.epoch_s * cores / (work + fixed * cores))

    def cores(self, done: Floats) -> Floats:
        """Return the cores that do so many iterations in an epoch, by job; very many where none do."""
        rest = self.epoch_s - self.fixed_s * done
        return np.asarray(np.where(rest > 0.0, self.work_s * done / np.where(rest > 0.0, rest, 1.0), _NEVER))


def rates_of(jobs: TrainingJobs, epoch_s: float) -> IterationRates:
    """Return the jobs' rates in an epoch of `epoch_s` seconds."""
    return IterationRates(np.maximum(jobs.work_s, _WORK_MIN), np.maximum(jobs.fixed_s, 0.0), epoch_s)
