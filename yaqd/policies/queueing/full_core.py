"""Whether containers may wait at nodes where the ResourceManager's core is full: what works is tried both ways.

A container that waits at its node hides how long the ResourceManager takes, and costs it more time than one that does
not. Where its core is full nobody can say from outside which of the two is more. So the other way is tried for some
seconds, and the one stays in which clearly more containers work.
"""

import math
from typing import Final

#: looks are so far apart, s: one slow call is no load
LOOK_S: Final = 3.0
#: of the core's time. Beyond the first it is full, and below the second it has time for queues again
_FULL: Final = 0.93
_FREE: Final = 0.85
#: looks at a full core before a trial: in the first ones slots may fill still
_STEADY: Final = 6
#: looks of each way that count, and those of a trial before them at least, until what waited is over
_COUNTS: Final = 4
_SETTLES: Final = 2
#: a way stays in which so many times as much gets done as in the other
_BETTER: Final = 1.03
#: a core that has time for so many looks is no longer full, whatever was found out
_FREE_LOOKS: Final = 20
#: what a container works counts for no longer than that, s: one end of a long one says nothing of the last seconds
_RAN_MOST_S: Final = 30.0
#: looks after a change, and after trials that found nothing better at most
_RESTS: Final = 40
_RESTS_MOST: Final = 320


class FullCore:
    """Tells whether queues at nodes may form, from how busy the core is and how much gets done."""

    __slots__ = ("_before", "_ended", "_free", "_patience", "_rests", "_seen", "_settles", "_worked_s", "admits")

    def __init__(self) -> None:
        #: containers may wait at nodes
        self.admits = True
        #: of what has ended well since the last look: how many, and how long they had run, s
        self._ended, self._worked_s = 0, 0.0
        #: how many containers worked, mean, at each of the last looks at a full core, or of the trial under way
        self._seen: list[float] = []
        #: the same before the trial under way; None: there is none
        self._before: float | None = None
        #: looks of that trial that do not count
        self._settles = _SETTLES
        #: the last looks at which the core had time
        self._free = 0
        #: looks until something may change, and how many there are after a trial that finds nothing better
        self._rests = 0
        self._patience = _RESTS

    def ran(self, seconds: float) -> None:
        """Note that a container, no master's, ended well that had run so long, s."""
        self._ended += 1
        self._worked_s += min(seconds, _RAN_MOST_S)

    def look(self, busy: float, passed_s: float = LOOK_S) -> bool:
        """Take in which part of its core's time the ResourceManager worked since the last look, 0 to 1.

        Return whether that changes what it admits. `passed_s`: since that look, more than 0.
        """
        before = self.admits
        tasks_s, working = self._worked_s / max(1, self._ended), self._worked_s / passed_s
        self._ended, self._worked_s = 0, 0.0
        self._look(busy, working, tasks_s)
        return self.admits is not before

    def _look(self, busy: float, working: float, tasks_s: float) -> None:
        """`working`: how many containers did, mean. `tasks_s`: how long each ran, mean, s."""
        self._free = self._free + 1 if busy <= _FREE else 0
        if self._before is not None:
            self._try(self._before, working)
            return
        if self._rests:
            self._rests -= 1
        elif busy >= _FULL:
            self._seen.append(working)
            if len(self._seen) == _STEADY:
                self._before, self._seen, self.admits = _mean(self._seen), [], not self.admits
                self._settles = _SETTLES + math.ceil(tasks_s / LOOK_S)  # what ran ends as it would
        else:
            self._seen = []
        if self._free >= _FREE_LOOKS and not self.admits:
            self.admits, self._rests = True, 0

    def _try(self, before: float, working: float) -> None:
        """Take in one look at the other way; with the last one, stay with the better one."""
        self._seen.append(working)
        if len(self._seen) < self._settles + _COUNTS:
            return
        is_better = _mean(self._seen) > before * _BETTER
        self._patience = _RESTS if is_better else min(2 * self._patience, _RESTS_MOST)
        if not is_better:
            self.admits = not self.admits
        self._before, self._seen, self._rests = None, [], self._patience


def _mean(seen: list[float]) -> float:
    return sum(seen[-_COUNTS:]) / _COUNTS
