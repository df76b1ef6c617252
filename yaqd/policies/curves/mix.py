"""A mixture of the predictors, each weighted by how well it would have predicted what the job has reported since.

Nothing is kept between calls: each predictor is asked once more as of a few values ago, and held to those values.
"""

from typing import Final

import numpy as np

from yaqd.policies.curves.predictors import Predictor, damped, exponential, sublinear
from yaqd.policies.curves.samples import Floats, Ints, Sample, picked

#: values that a predictor is held to, and the part of a short window that they may be
_BACK: Final = 10
_PART: Final = 3
#: a predictor that was off by less, in units of the window's fall, is not told from a perfect one
_LEAST: Final = 1e-4
#: losses from which on a family is fitted, and the error that keeps it out before
_FITTED: Final = 4
_NEVER: Final = np.inf
#: weights go with the error to this power
_POWER: Final = -2.0

#: classes of convergence that a job may declare
AUTOMATIC: Final = 0
SUBLINEAR: Final = 1
SUPERLINEAR: Final = 2
#: each with the class that it is not asked for; -1: none
MEMBERS: Final[tuple[tuple[Predictor, int], ...]] = (
    (damped, -1),
    (exponential, SUBLINEAR),
    (sublinear, SUPERLINEAR),
)


def mixed(sample: Sample, ahead: Floats, kinds: Ints | None = None) -> Floats:
    """Return the members' drops, weighted by their errors on the newest values of each row.

    `kinds`: the class that each job declared; the family of the other class is left out.
    """
    back = np.minimum(_BACK, sample.counts // _PART)
    both = sample.with_rows(sample.before(back))
    tested = np.minimum(np.arange(1.0, ahead.shape[1] + 1.0), back[:, None])
    at = np.concatenate((ahead, tested))
    happened = _happened(sample, back, tested)
    rows = len(sample)
    drops, scores = [], []
    for member, other in MEMBERS:
        found = member(both, at)
        drops.append(found[:rows])
        score = np.abs(found[rows:] - happened).mean(axis=1)
        # two families of three parameters fit any three losses: a trend alone speaks before there are more
        if other >= 0:
            is_out = sample.counts < _FITTED if kinds is None else (sample.counts < _FITTED) | (kinds == other)
            score = np.where(is_out, _NEVER, score)
        scores.append(score)
    weights = (np.array(scores) + _LEAST) ** _POWER
    weights /= weights.sum(axis=0)
    return np.asarray(np.einsum("mj,mjh->jh", weights, np.array(drops)))


def _happened(sample: Sample, back: Ints, tested: Floats) -> Floats:
    columns = (sample.window - 1 - back[:, None] + tested).astype(np.int64)
    start = picked(sample.values, (sample.window - 1 - back)[:, None])
    return start - picked(sample.values, columns)
