"""Predicted falls of the loss on a common grid of iterations ahead: what policies reckon with.

A table of few numbers for each job, in place of a fit's parameters, makes every predictor the same to a policy, and a
refit of some jobs a change of their rows.
"""

from typing import Final

import numpy as np

from yaqd.policies.curves.mix import AUTOMATIC, SUBLINEAR, SUPERLINEAR, mixed
from yaqd.policies.curves.predictors import Predictor, damped, exponential, repeated, sublinear
from yaqd.policies.curves.samples import Floats, Ints, Sample, picked

#: iterations ahead; between two of them a drop grows in a straight line, beyond the last not at all
HORIZONS: Final = np.array(
    [0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 130, 160, 200], dtype=np.float64
)

#: classes of convergence by the names that users write
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
    found = mixed(sample, ahead, classes) if predictor == "mixed" else PREDICTORS[predictor](sample, ahead)
    return found * sample.scale[:, None]


def drops_at(drops: Floats, ahead: Floats) -> Floats:
    """Return each job's drop at any iterations ahead, (jobs, n), by straight lines between `HORIZONS`."""
    at = np.clip(ahead, 0.0, HORIZONS[-1])
    left = np.minimum(np.searchsorted(HORIZONS, at, side="right") - 1, len(HORIZONS) - 2)
    low = picked(drops, left)
    high = picked(drops, left + 1)
    part = (at - HORIZONS[left]) / (HORIZONS[left + 1] - HORIZONS[left])
    return np.asarray(low + (high - low) * part)
