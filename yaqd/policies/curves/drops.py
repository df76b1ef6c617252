"""Predicted falls of the loss on a common grid of iterations ahead: what policies reckon with.

A table of few numbers for each job, in place of a fit's parameters, makes every predictor the same to a policy, and a
refit of some jobs a change of their rows.
"""

from typing import Final

import numpy as np

from yaqd.policies.curves.mix import MEMBERS, mixed
from yaqd.policies.curves.predictors import Predictor, damped, exponential, repeated, sublinear
from yaqd.policies.curves.samples import Floats, Ints, Sample

#: iterations ahead; between two of them a drop grows in a straight line, beyond the last not at all
HORIZONS: Final = np.array(
    [0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 130, 160, 200], dtype=np.float64
)

#: classes of convergence that a job may declare
AUTOMATIC: Final = 0
SUBLINEAR: Final = 1
SUPERLINEAR: Final = 2
CLASSES: Final = {"auto": AUTOMATIC, "sublinear": SUBLINEAR, "superlinear": SUPERLINEAR}

PREDICTORS: Final[dict[str, Predictor]] = {
    "mixed": mixed,
    "damped": damped,
    "sublinear": sublinear,
    "exponential": exponential,
    "repeated": repeated,
}


def predicted_drops(sample: Sample, classes: Ints | None = None, predictor: str = "mixed") -> Floats:
    """Return how much each job's loss will have fallen at each of `HORIZONS`, in the job's own unit of loss.

    `classes`: by job; the mixture leaves out the family of the other class. 0 at once, never falling, never NaN.
    """
    ahead = HORIZONS / np.maximum(sample.steps, 1e-9)[:, None]
    if classes is None or predictor != "mixed" or not classes.any():
        return PREDICTORS[predictor](sample, ahead) * sample.scale[:, None]
    drops = np.empty_like(ahead)
    for kind, left_out in ((AUTOMATIC, None), (SUBLINEAR, exponential), (SUPERLINEAR, sublinear)):
        rows = np.flatnonzero(classes == kind)
        if rows.size:
            members = [member for member in MEMBERS if member is not left_out]
            drops[rows] = mixed(sample.rows(rows), ahead[rows], members)
    return drops * sample.scale[:, None]


def drops_at(drops: Floats, ahead: Floats) -> Floats:
    """Return each job's drop at any iterations ahead, (jobs, n), by straight lines between `HORIZONS`."""
    at = np.clip(ahead, 0.0, HORIZONS[-1])
    left = np.minimum(np.searchsorted(HORIZONS, at, side="right") - 1, len(HORIZONS) - 2)
    low = np.take_along_axis(drops, left, axis=1)
    high = np.take_along_axis(drops, left + 1, axis=1)
    part = (at - HORIZONS[left]) / (HORIZONS[left + 1] - HORIZONS[left])
    return np.asarray(low + (high - low) * part)
