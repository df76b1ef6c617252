"""Whether the ResourceManager's core has time for queues at nodes: how busy it is, and what containers get done."""

import time
from collections.abc import Callable

from yaqd.policies.queueing.full_core import LOOK_S, FullCore


class CoreTime:
    """Looks from time to time, always in the thread that serves all calls, at that thread's processor time."""

    def __init__(self, used_s: Callable[[], float] = time.thread_time) -> None:
        """`used_s`: the processor time that the calling thread has taken so far, s."""
        self._used_s = used_s
        self._core = FullCore()
        #: hears how long containers ran that ended well, s, but for masters'
        self.ran = self._core.ran
        #: at the last look: the time, and what had been used
        self._last: tuple[float, float] | None = None

    @property
    def is_there(self) -> bool:
        """Has it time for queues?"""
        return self._core.admits

    def look(self, now: float) -> bool:
        """Look if it is time to; tell whether that changed anything."""
        if self._last is not None and now - self._last[0] < LOOK_S:
            return False
        last, self._last = self._last, (now, self._used_s())
        if last is None:
            return False
        passed_s = now - last[0]
        return self._core.look(min(1.0, max(0.0, (self._last[1] - last[1]) / passed_s)), passed_s)
