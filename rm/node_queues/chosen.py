"""How many containers nodes hold ready, and why, in a sentence: for `explain`, and for the log when that changes.

Where `yaq.queue.bound` is unset each node's bound finds itself (`yaqd.policies.queueing.tuning`), and may be 0.
"""

import logging
from collections.abc import Callable, Iterable
from math import inf
from typing import Final

from rm.scheduler.facts import NodeQueue
from rm.scheduler.why.refill import how_soon

log = logging.getLogger(__name__)

#: a word in the log is worth as much as what it says lasts, s
_QUIET_S: Final = 60.0


def why(queues: Iterable[NodeQueue], *, has_core_time: bool) -> str | None:
    """Return at how many nodes containers may wait, and what that follows from. None: of no node it finds itself.

    `has_core_time`: the ResourceManager has time for them.
    """
    tuned = [(queue.bound, queue.tuner) for queue in queues if queue.tuner is not None]
    if not tuned:
        return None
    filled = sum(1 for bound, _ in tuned if bound)
    most = max(bound for bound, _ in tuned)
    found = "no node holds more containers ready than fit"
    if filled:
        found = f"{filled} of {len(tuned)} nodes hold up to {most} container{'s' * (most != 1)} more ready than fit"
    said = f"{found}: {how_soon([tuner for _, tuner in tuned])}"
    if not has_core_time and any(tuner.may_be_none for _, tuner in tuned):
        said += ". The ResourceManager's core is full, and more slots work where nothing waits at nodes"
    return said


class ChosenBounds:
    """Notes in the log that nodes hold containers ready from now on, or do so no more, and for want of what."""

    def __init__(self) -> None:
        #: containers may wait somewhere, and the ResourceManager has time for that
        self._told = False, True
        self._told_at = -inf

    def look(self, places: int, has_core_time: bool, queues: Callable[[], Iterable[NodeQueue]], now: float) -> None:
        """Look after a report. `places`: the sum of all bounds. `queues` is asked only where something begins or
        ends."""
        found = places > 0, has_core_time
        if found == self._told or now - self._told_at < _QUIET_S:
            return
        said = why(queues(), has_core_time=has_core_time)
        if said is not None:
            self._told, self._told_at = found, now
            log.info("queues at nodes: %s", said)
