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
#: why there are none where they might gain something
CORE_FULL: Final = "the ResourceManager's core is full, and more gets done, or may, where nothing waits at nodes"


def why(queues: Iterable[NodeQueue], *, has_core_time: bool = True) -> str | None:
    """Return at how many nodes containers may wait, and what that follows from. None: of no node it finds itself.

    `has_core_time`: the ResourceManager has time for them.
    """
    if not has_core_time:
        return CORE_FULL
    tuned = [(queue.bound, queue.tuner) for queue in queues if queue.tuner is not None]
    if not tuned:
        return None
    filled = sum(1 for bound, _ in tuned if bound)
    most = max(bound for bound, _ in tuned)
    found = "no node holds more containers ready than fit"
    if filled:
        found = f"{filled} of {len(tuned)} nodes hold up to {most} container{'s' * (most != 1)} more ready than fit"
    return f"{found}: {how_soon([tuner for _, tuner in tuned])}"


class ChosenBounds:
    """Notes in the log that nodes hold containers ready from now on, or do so no more."""

    def __init__(self) -> None:
        self._is_filled = False
        self._told_at = -inf

    def look(self, places: int, queues: Callable[[], Iterable[NodeQueue]], now: float) -> None:
        """Look after a report. `places`: the sum of all bounds. `queues` is asked only where that begins or ends."""
        if (places > 0) is self._is_filled or now - self._told_at < _QUIET_S:
            return
        said = why(queues())
        if said is not None:
            self._is_filled, self._told_at = places > 0, now
            log.info("queues at nodes: %s", said)
