"""What is known afterwards of decisions at a time: a rollout's return from then on, less the mean of all rollouts.

The return is minus the integral of the number of jobs in the system, so it follows from when jobs end. Rollouts of one
sequence see the same arrivals. Their mean at the same time is the baseline, and arrivals cancel out.
"""

from dataclasses import dataclass, field, replace
from math import inf

import numpy as np

from yaqd.policies.curves.samples import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Advantages:
    """Of the rollouts of one sequence, from each time on."""

    #: (times,), s
    times: Floats = field(repr=False)
    #: (rollouts, times): what the integral grows by a second until the next time, and the advantage
    falls: Floats = field(repr=False)
    worth: Floats = field(repr=False)
    horizon_s: float = inf

    def scaled(self, by: float) -> "Advantages":
        """Return them in another unit."""
        return replace(self, falls=self.falls * by, worth=self.worth * by)

    @property
    def mean_square(self) -> float:
        """Their mean square over times and rollouts."""
        return float((self.worth**2).mean())


def advantages(
    ends_s: Floats, arrive_s: Floats, makespan: bool = False, differential: bool = False, horizon_s: float = inf
) -> Advantages:
    """Return what the rollouts of one sequence came to.

    `ends_s`: (rollouts, jobs), when each job ended, or the episode. `makespan`: the last job alone counts.
    `differential`: returns are against the mean number of jobs, as long as there are jobs.
    """
    last_s = ends_s.max(axis=1)
    counted = np.sort(last_s[:, None] if makespan else ends_s, axis=1)
    times = np.unique(np.append(counted, 0.0))
    open_jobs = np.array([counted.shape[1] - np.searchsorted(row, times, side="right") for row in counted], dtype=float)
    if differential:
        usual = float((ends_s - arrive_s).clip(min=0.0).sum(axis=1).mean() / max(last_s.mean(), 1e-9))
        open_jobs -= (1.0 if makespan else usual) * (times < last_s[:, None])
    falls = open_jobs - open_jobs.mean(axis=0)
    gaps = np.diff(times)
    keeps = np.exp(-gaps / horizon_s)
    spans = gaps if horizon_s == inf else horizon_s * -np.expm1(-gaps / horizon_s)
    worth = np.zeros_like(falls)
    for at in range(len(times) - 2, -1, -1):
        worth[:, at] = keeps[at] * worth[:, at + 1] - falls[:, at] * spans[at]
    return Advantages(times, falls, worth, horizon_s)
