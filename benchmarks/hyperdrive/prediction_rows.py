"""How fast and how well rising curves are predicted, beside the paper's walkers.

Row `prediction`: processor time from one curve to the chance of the target by every epoch (51 epochs, of which 5, 10 or
20 are known), `prediction-batch` per curve of 100. Theirs: 100 walkers x 700 samples of the eleven families, all
walkers one array. Rows `calibration` (Brier score of P(y(51) >= target)) and `coverage` (part of the true last values
in the 90 % interval) ask about real curves (`taskset.py`); beside them stands the expected calibration error.

The settings are those of `yaq sim run hyperdrive-taskset`. The temper and the part of late shapes were chosen on the
rows with even numbers, the temper also on drawn curves. The rows with odd numbers are what is reported.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from benchmarks.hyperdrive.taskset import PREFIXES, TARGETS, Cases, cases
from benchmarks.options import Options, progress
from benchmarks.report import Row, make_row
from yaqd.policies.curves.reach import LibraryReach, Outlook, Reach, WalkersReach
from yaqd.policies.curves.samples import Floats, Ints
from yaqd.sim.experiments.exploring import reach_of
from yaqd.sim.workloads.drawn import WorkloadError

#: and what must hold
ROWS: Final = {
    "prediction": "1,000x; walkers at most 900 ms",
    "prediction-batch": "3,000x",
    "calibration": "1.2x, each file 0.9x",
    "coverage": "85-97 %, expected calibration error under 0.1",
}
_EPOCHS: Final = 51
_BATCH: Final = 100
_REPEATS: Final = 40
_TARGET: Final = 0.5
_INTERVAL: Final = 0.9
_BINS: Final = 10
#: rows of the taskset that are reported, by what is left of their number modulo 2
_REPORTED: Final = 1


def measure(options: Options) -> tuple[list[Row], dict[str, Mapping[str, Any]]]:
    """Return the rows asked for, and what belongs beside each."""
    rows: list[Row] = []
    beside: dict[str, Mapping[str, Any]] = {}
    if options.wants("prediction") or options.wants("prediction-batch"):
        _times(options, rows, beside)
    if options.wants("calibration") or options.wants("coverage"):
        try:
            asked = cases(_REPORTED)
        except WorkloadError as missing:
            progress(f"calibration and coverage do not run here: {missing}")
            return rows, beside
        _truth(options, asked, rows, beside)
    return rows, beside


# ---------------------------------------------------------------------------------------------- time


def _curves(many: int) -> tuple[Floats, Ints]:
    """Return drawn curves with noise, and how much of each is known."""
    rng = np.random.default_rng(5)
    rise, speed = rng.uniform(0.2, 0.6, (many, 1)), rng.uniform(3.0, 30.0, (many, 1))
    values = 0.1 + rise * (1.0 - np.exp(-np.arange(_EPOCHS) / speed)) + rng.normal(0.0, 0.005, (many, _EPOCHS))
    return values, np.resize(np.array(PREFIXES), many)


def _times(options: Options, rows: list[Row], beside: dict[str, Mapping[str, Any]]) -> None:
    values, counts = _curves(_BATCH)
    ours, theirs = LibraryReach(), WalkersReach()

    def one(predictor: Reach, at: int) -> None:
        predictor.outlook(values[at : at + 1], counts[at : at + 1], _EPOCHS).reached(_TARGET)

    def all_at_once() -> None:
        ours.outlook(values, counts, _EPOCHS).reached(_TARGET)

    all_at_once()
    few = len(PREFIXES)
    of_one = [1e3 * _seconds(lambda at: one(ours, at % few), _REPEATS * few) for _ in range(options.runs)]
    of_batch = [1e3 * _seconds(lambda _: all_at_once(), _REPEATS) / _BATCH for _ in range(options.runs)]
    walked = [1e3 * _seconds(lambda at: one(theirs, at), few) for _ in range(options.runs)] if options.theirs else None
    for row_id, taken in (("prediction", of_one), ("prediction-batch", of_batch)):
        if options.wants(row_id):
            rows.append(make_row(row_id, taken, walked, "ms", higher_is_better=False))
            beside[row_id] = {"at least": ROWS[row_id], "settings": f"{_EPOCHS} epochs, known: {PREFIXES}"}


def _seconds(call: Callable[[int], None], times: int) -> float:
    """Return the mean processor time of a call."""
    began = time.process_time()
    for at in range(times):
        call(at)
    return (time.process_time() - began) / times


# ---------------------------------------------------------------------------------------------- truth


class Answers:
    """What one predictor said of all cases."""

    def __init__(self, predictor: Reach, asked: Cases) -> None:
        outlook: Outlook = predictor.outlook(asked.values, asked.counts, asked.epochs)
        truth = asked.values[:, -1]
        self.chances = np.stack([outlook.at(asked.epochs, target) for target in TARGETS], axis=1)
        self.came = truth[:, None] >= np.array(TARGETS)
        low, high = outlook.interval(asked.epochs, _INTERVAL)
        self.inside = (low <= truth) & (truth <= high)

    def briers(self) -> Floats:
        """Return the mean squared error of each case's chances."""
        return np.asarray(np.square(self.chances - self.came).mean(axis=1))

    def calibration_error(self) -> float:
        """Return by how much chances and what came of them differ, over ten bins, weighted by their numbers."""
        bins = np.minimum((self.chances * _BINS).astype(np.int64), _BINS - 1).ravel()
        size = np.bincount(bins, minlength=_BINS)
        off = np.bincount(bins, (self.chances - self.came).ravel(), minlength=_BINS)
        return float(np.abs(off).sum() / size.sum())


def _truth(options: Options, asked: Cases, rows: list[Row], beside: dict[str, Mapping[str, Any]]) -> None:
    if options.scale < 1:
        asked = asked.some(np.arange(0, len(asked), round(1 / options.scale)))
    ours = Answers(reach_of("taskset", "library"), asked)
    theirs = None
    if options.theirs:
        progress(f"walkers on {len(asked)} cases, most of a second each")
        theirs = Answers(WalkersReach(), asked)
    if options.wants("calibration"):
        rows.append(_row("calibration", ours.briers().mean(), None if theirs is None else theirs.briers().mean(), ""))
        beside["calibration"] = {
            "at least": ROWS["calibration"],
            "cases": len(asked),
            "by file": _by(asked.file, ours, theirs),
            "by known epochs": _by(asked.counts, ours, theirs),
        }
    if options.wants("coverage"):
        inside = None if theirs is None else 100 * theirs.inside.mean()
        rows.append(_row("coverage", 100 * ours.inside.mean(), inside, "%"))
        beside["coverage"] = {
            "must be": ROWS["coverage"],
            "calibration error": f"{ours.calibration_error():.3f}"
            + ("" if theirs is None else f", walkers {theirs.calibration_error():.3f}"),
        }


def _row(row_id: str, ours: float, theirs: float | None, unit: str) -> Row:
    ratio = None if theirs is None or unit else float(theirs / ours)
    return Row(row_id, float(ours), None if theirs is None else float(theirs), unit, ratio, 0.0, 1)


def _by(kinds: Ints, ours: Answers, theirs: Answers | None) -> Mapping[str, str]:
    """Return the Brier scores of each kind of case: ours, theirs, their ratio."""
    found = {}
    for kind in np.unique(kinds).tolist():
        mine = float(ours.briers()[kinds == kind].mean())
        found[str(kind)] = f"{mine:.4f}"
        if theirs is not None:
            other = float(theirs.briers()[kinds == kind].mean())
            found[str(kind)] += f" / {other:.4f} = {other / mine:.2f}x"
    return found
