"""Whether the ResourceManager's core has time for queues at nodes: how busy it is, and what containers get done."""

import time
from collections.abc import Callable

from yaqd.policies.queueing.full_core import LOOK_S, RAN_MOST_S, FullCore


class CoreTime:
    """Looks from time to time, always in the thread that serves all calls, at that thread's processor time."""

    def __init__(self, used_s: Callable[[], float] = time.thread_time) -> None:
        """`used_s`: the processor time that the calling thread has taken so far, s."""
        self._used_s = used_s
        self._core = FullCore()
        #: at the last look: the time, and what had been used
        self._last: tuple[float, float] | None = None
        #: of what has ended well since then: how many, and how long they had run, s
        self._ended = 0
        self._worked_s = 0.0

    @property
    def is_there(self) -> bool:
        """Has it time for queues?"""
        return self._core.admits

    def ran(self, seconds: float) -> None:
        """Note that a container, no master's, ended well that had run so long, s."""
        self._ended += 1
        self._worked_s += min(seconds, RAN_MOST_S)

    def look(self, now: float) -> bool:
        """Look if it is time to; tell whether that changed anything."""
        if self._last is not None and now - self._last[0] < LOOK_S:
            return False
        last, self._last = self._last, (now, self._used_s())
        ended, worked_s, self._ended, self._worked_s = self._ended, self._worked_s, 0, 0.0
        if last is None:
            return False
        before, passed = self._core.admits, now - last[0]
        busy = min(1.0, max(0.0, (self._last[1] - last[1]) / passed))
        self._core.look(busy, worked_s / passed, worked_s / max(1, ended))
        return self._core.admits != before
