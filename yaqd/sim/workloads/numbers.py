"""Random numbers with published means: samples that have exactly the mean (and spread) that a paper states.

A workload of 185 jobs drawn plainly misses its published mean by a fifth from one seed to the next. A stage's tasks are
alike and a few large jobs carry most of the work; then the seeds differ in load more than the policies in anything. So
what is drawn is fitted: shape and order are the seed's, mean and spread the publication's.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
_STEPS = 80
#: powers tried when a sample is given its spread; 1 leaves it as it is
_POWER_MAX = 6.0


def lognormal(rng: np.random.Generator, size: int, mean: float, cv: float) -> Floats:
    """Draw `size` positive numbers of that mean and coefficient of variation (std / mean)."""
    variance = np.log1p(cv * cv)
    return np.asarray(rng.lognormal(np.log(mean) - variance / 2, np.sqrt(variance), size), dtype=np.float64)


def fitted(values: Floats, mean: float, std: float) -> Floats:
    """Raise the numbers to one power and scale them, so that the sample has this mean and standard deviation.

    The order stays. A sample without spread only gets the mean.
    """
    if values.size < 2 or float(values.max()) == float(values.min()):
        return np.full(values.size, mean)
    wanted = std / mean
    logs = np.log(values)
    low, high = 0.0, _POWER_MAX
    for _ in range(_STEPS):
        middle = (low + high) / 2
        powered = np.exp(middle * (logs - logs.max()))
        if powered.std() / powered.mean() < wanted:
            low = middle
        else:
            high = middle
    powered = np.exp(low * (logs - logs.max()))
    return np.asarray(powered * (mean / powered.mean()), dtype=np.float64)


def fitted_counts(values: Floats, total: int, least: int = 1) -> Counts:
    """Return whole numbers in proportion to `values`, none under `least`.

    They add up to `total` (or to size * least).
    """
    size = values.size
    spare = max(0, total - least * size)
    if not size:
        return np.zeros(0, dtype=np.int64)
    exact = values * (spare / values.sum())
    counts = np.floor(exact).astype(np.int64)
    short = spare - int(counts.sum())
    counts[np.argsort(counts - exact, kind="stable")[:short]] += 1
    return np.asarray(counts + least, dtype=np.int64)
