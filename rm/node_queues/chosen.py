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


def why(queues: Iterable[NodeQueue], core_share: float) -> str | None:
    """Return at how many nodes containers may wait, and what that follows from. None: of no node it finds itself.

    `core_share`: the part of them that the ResourceManager has time for, 0 to 1.
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
    if core_share < 1.0 and any(tuner.may_be_none for _, tuner in tuned):
        said += f". The ResourceManager's core was full of late: {core_share:.0%} of the nodes may hold any"
    return said


class ChosenBounds:
    """Notes in the log that nodes hold containers ready from now on, or do so no more, and for want of what."""

    def __init__(self) -> None:
        #: containers may wait somewhere, and at all nodes as far as the ResourceManager's core goes
        self._told = False, True
        self._told_at = -inf

    def look(self, places: int, core_share: float, queues: Callable[[], Iterable[NodeQueue]], now: float) -> None:
        """Look after a report. `places`: the sum of all bounds. `queues` is asked only where something begins or
        ends."""
        found = places > 0, core_share >= 1.0
        if found == self._told or now - self._told_at < _QUIET_S:
            return
        said = why(queues(), core_share)
        if said is not None:
            self._told, self._told_at = found, now
            log.info("queues at nodes: %s", said)
