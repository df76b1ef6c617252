"""How busy the ResourceManager's core is, from the processor time of the thread that serves all calls."""

import time
from collections.abc import Callable

from yaqd.policies.queueing.full_core import LOOK_S


class CoreMeter:
    """Looks from time to time, always in the thread that serves."""

    def __init__(self, used_s: Callable[[], float] = time.thread_time) -> None:
        """`used_s`: the processor time that the calling thread has taken so far, s."""
        self._used_s = used_s
        #: at the last look: the time, and what had been used
        self._last: tuple[float, float] | None = None

    def look(self, now: float) -> float | None:
        """Return which part of the time since the last look the thread worked, 0 to 1; None: not yet time to look."""
        if self._last is not None and now - self._last[0] < LOOK_S:
            return None
        last, self._last = self._last, (now, self._used_s())
        if last is None:
            return None
        return min(1.0, max(0.0, (self._last[1] - last[1]) / (now - last[0])))
