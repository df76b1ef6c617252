"""Durations as orders compare them: in steps.

Estimates are means of what was observed, so two jobs of the same work differ by milliseconds of noise. Compared to the
millisecond, the one that happens to be estimated lower passes the other, however much earlier that came, and where
several such wait the first may come last: its completion time grows by the whole of the others. In steps they are
equal, and go one after the other as they came.
"""

from functools import lru_cache
from math import floor, inf, log, log1p
from typing import Final

from yaqd.policies.queueing import limits

#: one step is so much more than the one before, and at least that part of a second
STEP: Final = 0.25
_PER_STEP: Final = 1.0 / log(1.0 + STEP)
#: steps remembered: what is left of a job is compared at each of its nodes, again and again
_STEPS_KEPT: Final = 8192


@lru_cache(maxsize=_STEPS_KEPT)
def step(seconds: float | None) -> float:
    """Return the number of the step that a duration lies in, which grows with it; inf where it says nothing.

    Durations alone decide, so that the ResourceManager and every node see the same.
    """
    known = limits.duration(seconds)
    return floor(log1p(known) * _PER_STEP) if known < inf else inf
