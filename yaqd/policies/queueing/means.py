"""A mean of what was observed lately: two numbers, whatever was observed.

All count alike until `memory` of them are in, later ones push the earlier out exponentially. One absurd value, from a
clock that jumped or a node that lies, moves it no more than a value `LEAP` times as large as the mean would.
"""

from typing import Final

from yaqd.policies.queueing import limits

#: how many times the mean one observation may count for, once there are a few
LEAP: Final = 10.0
_FEW: Final = 3
#: so that a mean that was 0 can grow again, s
_LEAST: Final = 0.01


class RecentMean:
    __slots__ = ("count", "mean", "memory")

    def __init__(self, memory: int, *, count: int = 0, mean: float = 0.0) -> None:
        self.memory = max(1, memory)
        #: observations taken in, at most `memory`
        self.count = max(0, min(count, self.memory))
        #: inf where nothing is known yet
        self.mean = limits.duration(mean)

    def another(self) -> "RecentMean":
        """Return a mean with the same values behind it, which goes its own way from here on."""
        return RecentMean(self.memory, count=self.count, mean=self.mean)

    def add(self, seconds: float) -> bool:
        """Take a value in; return False when it says nothing and was left out."""
        if not 0.0 <= seconds <= limits.LONGEST_S:  # also refuses NaN
            return False
        mean, count = self.mean, self.count
        if seconds == mean and count == self.memory:
            return True  # neither moves
        if count >= _FEW and seconds > LEAP * mean:
            seconds = min(seconds, LEAP * max(mean, _LEAST))
        if count < self.memory:
            self.count = count = count + 1
        # what was there before the first one was a guess
        self.mean = seconds if count == 1 else mean + (seconds - mean) / count
        return True
