"""What an iteration of a training job costs, by the processor time that nodes tell."""

from typing import Final

#: iterations that are remembered, and what part is at most forgotten at once: news that is late by a second must not
#: be half of what is remembered
_REMEMBERED: Final = 20.0
_FORGOTTEN_MAX: Final = 0.1
#: an iteration costs no less and no more than this, core-seconds, whatever is told
_LEAST_S: Final = 1e-4
_MOST_S: Final = 1e7
#: by then a job that goes on from a checkpoint has told what it had done before, s: that cost nothing here
_TOLD_S: Final = 3.0


class IterationCost:
    """Sums over the newest iterations: of processor time, of time, and of the time that its cores were busy.

    Nodes tell of processor time a second late, and iterations are whole, so what is counted between two looks is off by
    an iteration or so. In sums the next look sets it right; a mean of quotients would keep it.
    """

    __slots__ = (
        *("_at", "_busy_s", "_iteration", "_iterations", "_ordered_at", "_ordered_s", "_passed_s"),
        *("_since", "_told_s", "_used_s", "fixed_s", "is_known", "work_s"),
    )

    def __init__(self, now: float) -> None:
        self.is_known = False
        #: core-seconds that cores share, and seconds that none shortens
        self.work_s, self.fixed_s = 1.0, 0.0
        self._since = now
        #: when was looked last, and the processor time and iteration then
        self._at, self._told_s, self._iteration = now, 0.0, -1
        #: core-seconds that were ordered since then, by this time
        self._ordered_s, self._ordered_at = 0.0, now
        self._iterations = self._used_s = self._passed_s = self._busy_s = 0.0

    def ordered(self, milli: int, now: float) -> None:
        """Count that thousandths of a core were ordered until now."""
        self._ordered_s += max(0.0, now - self._ordered_at) * milli / 1000
        self._ordered_at = now

    def look(self, told_s: float, iteration: int, usable: float, now: float) -> bool:
        """Take in the processor time that nodes have told by now, s; return whether that changed the cost.

        `usable`: cores that the job can use at most. What it could not have of its order, as others were in the way,
        looks as if no core shortened it.
        """
        if now - self._since < _TOLD_S or self._iteration < 0:
            self._begin(told_s, iteration, now)  # from its first iteration on
            return False
        iterations, passed_s, used_s = iteration - self._iteration, now - self._at, told_s - self._told_s
        if iterations <= 0 or passed_s <= 0.0 or used_s <= 0.0 or self._ordered_s <= 0.0:
            return False
        kept = 1.0 - min(_FORGOTTEN_MAX, iterations / _REMEMBERED)
        self._iterations = kept * self._iterations + iterations
        self._used_s = kept * self._used_s + used_s
        self._passed_s = kept * self._passed_s + passed_s
        self._busy_s = kept * self._busy_s + used_s / min(self._ordered_s / passed_s, usable)
        self.work_s = min(_MOST_S, max(_LEAST_S, self._used_s / self._iterations))
        self.fixed_s = max(0.0, (self._passed_s - self._busy_s) / self._iterations)
        self._begin(told_s, iteration, now)
        self.is_known = True
        return True

    def _begin(self, told_s: float, iteration: int, now: float) -> None:
        """Count from now on."""
        self._at, self._told_s, self._iteration, self._ordered_s = now, told_s, iteration, 0.0
