"""At which nodes room comes soonest, for what must not wait in their queues.

A node whose queue is filled never shows room: some node has to be kept for a master, or for what has no end that is
known. What runs on one may end in a second, on another in an hour, or never as far as anybody knows. Whoever beats
first is no choice: kept at a node where nothing ends, an ask starts later than where there are no queues at all.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Final

from yaqd.model import NodeId

if TYPE_CHECKING:
    from rm.scheduler.asks import Ask
    from rm.scheduler.node_queue import NodeQueue
    from rm.scheduler.nodes import NodeView
    from rm.scheduler.view import AttemptView

#: an order of nodes is believed for so long, s: reports are as old
_BELIEVED_S: Final = 1.0
#: a wait is as good as the shortest one if it is at most so many times as long, and so many seconds
_AS_GOOD: Final = 2.0
_AS_GOOD_S: Final = 5.0
#: who has waited so long takes any node where something ends, s
_PATIENCE_S: Final = 10.0
#: nodes looked at for one that suits
_LOOKED_AT_MAX: Final = 64


class Soonest:
    def __init__(self, queues: "Mapping[NodeId, NodeQueue]") -> None:
        self._queues = queues
        self._ordered_at = -math.inf
        #: with the time until something ends there, the shortest first, s
        self._order: list[tuple[float, str, NodeQueue]] = []

    def is_good(
        self, attempt: "AttemptView", ask: "Ask", node: "NodeView", suits: "Callable[[NodeView], bool]", now: float
    ) -> bool:
        """May the node be kept for the ask, or comes room much sooner elsewhere? `suits`: the ask takes that node."""
        if node.queue is None:
            return True
        wait_s = _next_end(node.queue)
        least_s = self._least(attempt, ask, suits, now)
        if least_s is None or wait_s <= _AS_GOOD * least_s + _AS_GOOD_S:
            return True
        return wait_s < math.inf and now - ask.waiting_since >= _PATIENCE_S

    def _least(
        self, attempt: "AttemptView", ask: "Ask", suits: "Callable[[NodeView], bool]", now: float
    ) -> float | None:
        """The shortest time until something ends at a node that is kept for nobody else, s; None: none suits."""
        whose = (attempt.id, ask.key)
        for wait_s, _, queue in islice(self._by_wait(now), _LOOKED_AT_MAX):
            node = queue.node
            if queue.is_silent or node.queue is not queue or node.is_draining:
                continue
            if queue.held_for not in (None, whose) or node.reserved_for not in (None, attempt.reservation):
                continue
            if suits(node):
                return wait_s
        return None

    def _by_wait(self, now: float) -> "Iterable[tuple[float, str, NodeQueue]]":
        if not self._ordered_at <= now < self._ordered_at + _BELIEVED_S:
            self._ordered_at = now
            self._order = sorted((_next_end(queue), queue.name, queue) for queue in self._queues.values())
        return self._order


def _next_end(queue: "NodeQueue") -> float:
    """Until something ends there, s, roughly: a newcomer waits for one end more than others wait before it."""
    return queue.expected_wait() / (queue.length + 1)
