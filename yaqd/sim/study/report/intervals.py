"""Intervals of 95 % over seeds, by Student's t.

Ratios are paired: both systems have run the same jobs of a seed, so the spread of the seeds themselves falls out. The
logarithm of a ratio is what is averaged, so that twice as fast and twice as slow weigh the same.
"""

import math
from collections.abc import Sequence
from typing import Final

from yaqd.model.values import value

#: quantile 0.975 of Student's t, for 1 to 30 degrees of freedom
_T975: Final = (
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
    2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
    2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
)  # fmt: skip
#: the same of the normal distribution
_Z975: Final = 1.959964


@value()
class Interval:
    """A mean over seeds with the ends of its interval; with one seed both ends are NaN."""

    mid: float
    low: float
    high: float

    @property
    def half(self) -> float:
        return (self.high - self.low) / 2.0


def t975(freedom: int) -> float:
    """Return the quantile 0.975 of Student's t with so many degrees of freedom; beyond 30 to a thousandth."""
    if freedom <= len(_T975):
        return _T975[freedom - 1]
    z = _Z975
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def interval(values: Sequence[float]) -> Interval:
    """Return the mean of one value a seed, with its interval. Raises ValueError for no value."""
    if not values:
        raise ValueError("an interval of no value")
    count = len(values)
    mid = math.fsum(values) / count
    if count == 1:
        return Interval(mid, math.nan, math.nan)
    deviation = math.sqrt(math.fsum((one - mid) ** 2 for one in values) / (count - 1))
    half = t975(count - 1) * deviation / math.sqrt(count)
    return Interval(mid, mid - half, mid + half)


def ratio(above: Sequence[float], below: Sequence[float]) -> Interval:
    """Return how many times larger `above` is, seed by seed: the geometric mean. Raises ValueError unless all are
    above 0 and as many."""
    logs = [math.log(one) - math.log(other) for one, other in zip(above, below, strict=True)]
    return times(interval(logs))


def times(logs: Interval) -> Interval:
    """Return the interval of a ratio from that of its logarithm."""
    return Interval(math.exp(logs.mid), math.exp(logs.low), math.exp(logs.high))
