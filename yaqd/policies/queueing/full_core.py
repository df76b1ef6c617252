"""Whether containers may wait at nodes where the ResourceManager's core is full: what works is tried both ways.

A container that waits at its node hides how long the ResourceManager takes, and costs it more time than one that does
not. Where its core is full nobody can say from outside which of the two is more. So the other way is tried for some
seconds, and the one stays in which clearly more containers work.
"""

from typing import Final

#: looks are so far apart, s: one slow call is no load
LOOK_S: Final = 3.0
#: of the core's time. Beyond the first it is full, and below the second it has time for queues again
_FULL: Final = 0.93
_FREE: Final = 0.85
#: looks at a full core before a trial: in the first ones slots may fill still
_STEADY: Final = 5
#: looks of each way that count, and those of a trial before them, until what waited is over
_COUNTS: Final = 2
_SETTLES: Final = 2
#: a way stays in which so many times as much gets done as in the other
_BETTER: Final = 1.03
#: looks after a change, and after trials that found nothing better at most
_RESTS: Final = 40
_RESTS_MOST: Final = 320


class FullCore:
    """Tells whether queues at nodes may form, from how busy the core is and how much gets done."""

    __slots__ = ("_before", "_patience", "_rests", "_seen", "admits")

    def __init__(self) -> None:
        #: containers may wait at nodes
        self.admits = True
        #: how many containers worked, mean, at each of the last looks at a full core, or of the trial under way
        self._seen: list[float] = []
        #: the same before the trial under way; None: there is none
        self._before: float | None = None
        #: looks until something may change, and how many there are after a trial that finds nothing better
        self._rests = 0
        self._patience = _RESTS

    def look(self, busy: float, working: float) -> None:
        """Take in which part of its core's time the ResourceManager worked since the last look, 0 to 1.

        `working`: how many containers did, mean.
        """
        if self._before is not None:
            self._try(self._before, working)
        elif self._rests:
            self._rests -= 1
        elif busy >= _FULL:
            self._seen.append(working)
            if len(self._seen) == _STEADY:
                self._before, self._seen, self.admits = _mean(self._seen), [], not self.admits
        else:
            self._seen = []
            self.admits = self.admits or busy <= _FREE

    def _try(self, before: float, working: float) -> None:
        """Take in one look at the other way; with the last one, stay with the better one."""
        self._seen.append(working)
        if len(self._seen) < _SETTLES + _COUNTS:
            return
        is_better = _mean(self._seen) > before * _BETTER
        self._patience = _RESTS if is_better else min(2 * self._patience, _RESTS_MOST)
        if not is_better:
            self.admits = not self.admits
        self._before, self._seen, self._rests = None, [], self._patience


def _mean(seen: list[float]) -> float:
    return sum(seen[-_COUNTS:]) / _COUNTS
