"""Jobs with their losses and curves, kept as arrays: what a scheduler needs between two divisions.

A job that reported is refitted at the next division, and no other. The owner says when; nothing here knows the time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from yaqd.model.training import WINDOW
from yaqd.policies.curves.drops import HORIZONS, predicted_drops
from yaqd.policies.curves.losses import LossWindows
from yaqd.policies.curves.mix import AUTOMATIC
from yaqd.policies.curves.samples import Floats, Ints
from yaqd.policies.quality.facts import MILLI, TrainingJobs
from yaqd.policies.quality.worth import concave

#: what a job is taken for until it has reported two losses: falls fast, each change this part of the one before it
_NEW_PART: Final = 0.6
_NEW_DROPS: Final = (1.0 - _NEW_PART**HORIZONS) / (1.0 - _NEW_PART)
#: arrays by row, with what a row has before a job takes it
_FIELDS: Final = ("weight", "work_s", "fixed_s", "iterations", "attained_s", "target", "move_s")


@dataclass(frozen=True, slots=True)
class JobSpec:
    """What a job says of itself when it comes."""

    weight: float = 1.0
    #: thousandths of a core
    floor: int = MILLI
    cap: int = MILLI
    #: core-seconds of an iteration that cores share, and seconds that none shortens
    work_s: float = 1.0
    fixed_s: float = 0.0
    #: how many there will be; inf where nobody knows
    iterations: float = float("inf")
    #: `AUTOMATIC`, `SUBLINEAR` or `SUPERLINEAR`
    kind: int = AUTOMATIC
    #: loss that the user waits for; None: none was said
    target: float | None = None
    #: for how long a core that it gains computes nothing, s
    move_s: float = 0.0


class Forecasts:
    """Rows of jobs; `add` gives a row, `forget` takes it back."""

    def __init__(self, predictor: str = "mixed", window: int = WINDOW) -> None:
        self._predictor: Final = predictor
        self.windows: Final = LossWindows(window)
        self._floats: dict[str, Floats] = {name: np.zeros(0) for name in _FIELDS}
        self._ints: dict[str, Ints] = {
            name: np.zeros(0, dtype=np.int64) for name in ("floor", "cap", "current", "kind", "usable")
        }
        self.drops: Floats = np.zeros((0, len(HORIZONS)))
        self._stale: set[int] = set()

    def add(self, spec: JobSpec) -> int:
        """Return the row of a new job."""
        row = self.windows.add()
        self._grow(len(self.windows))
        target = np.nan if spec.target is None else spec.target
        values = (spec.weight, spec.work_s, spec.fixed_s, spec.iterations, 0.0, target, spec.move_s)
        for name, number in zip(_FIELDS, values, strict=True):
            self._floats[name][row] = number
        counts = {"floor": spec.floor, "cap": spec.cap, "current": 0, "kind": spec.kind, "usable": spec.cap}
        for name, count in counts.items():
            self._ints[name][row] = count
        self.drops[row] = _NEW_DROPS
        return row

    def _grow(self, rows: int) -> None:
        more = rows - len(self.drops)
        if more > 0:
            for name, kept in self._floats.items():
                self._floats[name] = np.concatenate((kept, np.zeros(more)))
            for name, counts in self._ints.items():
                self._ints[name] = np.concatenate((counts, np.zeros(more, dtype=np.int64)))
            self.drops = np.concatenate((self.drops, np.zeros((more, len(HORIZONS)))))

    def forget(self, row: int) -> None:
        """Take the row of a job that is gone."""
        self.windows.forget(row)
        self._stale.discard(row)

    def report(self, row: int, first_iteration: float, losses: Sequence[Any] | Floats) -> int:
        """Take in losses of consecutive iterations; return how many were news."""
        many = self.windows.report(row, first_iteration, losses)
        if many:
            self._stale.add(row)
        return many

    def ran(self, rows: Ints | int, core_s: Floats | float) -> None:
        """Book core-seconds that a job, or each of several, had as the nodes count them."""
        self._floats["attained_s"][rows] += core_s

    def timed(self, row: int, work_s: float, fixed_s: float) -> None:
        """Note what an iteration takes: core-seconds that cores share, and seconds that none shortens."""
        self._floats["work_s"][row] = work_s
        self._floats["fixed_s"][row] = fixed_s

    def uses(self, row: int, milli: int) -> None:
        """Note how many thousandths of a core a job is seen to use at most."""
        self._ints["usable"][row] = milli

    def given(self, rows: Ints, milli: Ints) -> None:
        """Note what the jobs have from now on, thousandths of a core."""
        self._ints["current"][rows] = milli

    def refit(self) -> int:
        """Predict anew the curves of all jobs that reported since; return how many."""
        rows = np.array(sorted(self._stale), dtype=np.int64)
        self._stale.clear()
        if rows.size:
            rows = rows[self.windows.counts[rows] > 1]
        if rows.size:
            found = predicted_drops(self.windows.sample(rows), self._ints["kind"][rows], self._predictor)
            # a loss that will fall faster later is worth on the way what the way brings in the mean
            self.drops[rows] = concave(np.broadcast_to(HORIZONS, found.shape), self._hinted(rows, found))
        return int(rows.size)

    def _hinted(self, rows: Ints, drops: Floats) -> Floats:
        """Return drops that end at the user's target, and lead there where the curve alone does not say so.

        A loss that is not convex may stand still for long before it falls on. As far as it has come on its way to the
        target, at that rate it is expected to go on.
        """
        target = self._floats["target"][rows]
        hinted = np.flatnonzero(np.isfinite(target))
        if not hinted.size:
            return drops
        at = rows[hinted]
        newest, done = self.windows.losses[at, -1], np.maximum(self.windows.iterations[at, -1], 1.0)
        left = np.maximum(newest - target[hinted], 0.0)
        way = np.maximum(self.windows.first[at] - target[hinted], left)
        rate = np.log(np.maximum(way, 1e-300) / np.maximum(left, np.maximum(way, 1e-300) * 1e-6)) / done
        led = left[:, None] * -np.expm1(-rate[:, None] * HORIZONS)
        drops[hinted] = np.minimum(np.maximum(drops[hinted], led), left[:, None])
        return drops

    def jobs(self, rows: Ints) -> TrainingJobs:
        """Return what a policy is given of these rows. Call `refit` before."""
        windows, floats, ints = self.windows, self._floats, self._ints
        counts = windows.counts[rows]
        is_known = counts > 1
        newest = windows.losses[rows, -1]
        done = np.where(counts > 0, windows.iterations[rows, -1], 0.0)
        # a job that goes on beyond what it said is taken to be half way, again and again
        left = floats["iterations"][rows] - done
        largest = np.where(is_known, windows.largest[rows], 1.0)
        return TrainingJobs(
            weight=floats["weight"][rows],
            floor=ints["floor"][rows],
            cap=ints["cap"][rows],
            work_s=floats["work_s"][rows],
            fixed_s=floats["fixed_s"][rows],
            left=np.where(left > 0.0, left, np.maximum(done, 1.0)),
            attained_s=floats["attained_s"][rows],
            drops=self.drops[rows],
            fallen=np.where(is_known, windows.first[rows] - newest, 0.0),
            largest=np.where(largest > 0.0, largest, 1.0),
            is_known=is_known,
            current=ints["current"][rows],
            move_s=floats["move_s"][rows],
            usable=np.minimum(ints["usable"][rows], ints["cap"][rows]),
        )
