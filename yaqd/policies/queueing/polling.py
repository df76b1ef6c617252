"""How often masters ask for what they were given: part of the gap between two refills of a node (Yaq, section 3.1).

What is placed waits until its master's next call. Each application's gap is observed where it calls; a node serves
many of them, so bounds go by the median, which one master that never sleeps, or hardly ever calls, does not move.
"""

from math import inf
from statistics import median
from typing import Final

from yaqd.model import ApplicationId
from yaqd.policies.queueing.means import RecentMean

#: calls that an application's mean remembers
_CALLS: Final = 16
#: applications looked after
_MOST: Final = 10_000
#: how long a median is kept, s
_KEPT_S: Final = 5.0
#: a longer gap is no polling: the master was gone, or the clock jumped, s
_LONGEST_S: Final = 60.0


class PollGaps:
    def __init__(self) -> None:
        self._gaps: dict[ApplicationId, RecentMean] = {}
        self._called: dict[ApplicationId, float] = {}
        self._median: float | None = None
        self._worked_out_at = -inf

    def called(self, app_id: ApplicationId, now: float) -> None:
        """Note that the application's master calls."""
        before = self._called.get(app_id)
        if before is None:
            if len(self._called) < _MOST:
                self._called[app_id] = now
            return
        self._called[app_id] = now
        if 0.0 < now - before <= _LONGEST_S:
            self._gaps.setdefault(app_id, RecentMean(_CALLS)).add(now - before)

    def forget(self, app_id: ApplicationId) -> None:
        self._gaps.pop(app_id, None)
        self._called.pop(app_id, None)

    def median(self, now: float) -> float | None:
        """Return the median of the applications' mean gaps, s; at most some seconds old, and None until one was
        seen."""
        if not 0.0 <= now - self._worked_out_at < _KEPT_S or self._median is None:
            self._worked_out_at = now
            self._median = median([gap.mean for gap in self._gaps.values()]) if self._gaps else self._median
        return self._median
