"""The scheduler with a clock around it: what a ResourceManager's decisions cost."""

from collections.abc import Callable
from typing import Any, Final

from rm.scheduler.decisions import Outcome
from rm.scheduler.facts import Facts
from rm.scheduler.scheduler import Scheduler


class TimedScheduler:
    """A scheduler whose `handle` is timed. What is asked of its facts costs too, and is not counted."""

    def __init__(self, scheduler: Scheduler, clock: Callable[[], int]) -> None:
        """`clock` tells the time, ns."""
        self._scheduler: Final = scheduler
        self._clock: Final = clock
        self.facts: Final[Facts] = scheduler.facts
        #: in decisions so far, ns
        self.spent_ns = 0

    @property
    def has_waiting(self) -> bool:
        return self._scheduler.has_waiting

    def handle(self, event: Any, now: float) -> list[Outcome]:
        """Hand the event on, and count what that took."""
        since = self._clock()
        try:
            return self._scheduler.handle(event, now)
        finally:
            self.spent_ns += self._clock() - since
