"""At which nodes room comes soonest, for what must not wait in their queues.

A node whose queue is filled never shows room: some node has to be kept for a master, or for what has no end that is
known. What runs on one may end in a second, on another in an hour, or never as far as anybody knows. Whoever beats
first is no choice: kept at a node where nothing ends, an ask starts later than where there are no queues at all.

What is known changes: a task runs on beyond its estimate, or its job turns out to be a long one. So a node is given up
where room comes much later than elsewhere by then. Each time that happens to an attempt that was given nothing since,
the next node is kept for twice as long at least: estimates that jump make nobody wander for ever.
"""

import math
from collections.abc import Callable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Final

from yaqd.model import ApplicationId, ContainerId, NodeId, Resource

if TYPE_CHECKING:
    from rm.scheduler.asks import Ask
    from rm.scheduler.node_queue import NodeQueue
    from rm.scheduler.nodes import NodeView
    from rm.scheduler.view import AttemptView, Held

#: an order of nodes is believed for so long, s: reports are as old
_BELIEVED_S: Final = 1.0
#: a wait is as good as the shortest one if it is at most so many times as long, and so many seconds
_AS_GOOD: Final = 2.0
_AS_GOOD_S: Final = 5.0
#: so many times longer than what is as good is much later
_MUCH_LATER: Final = 2.0
#: who has waited so long takes any node where something ends, s
_PATIENCE_S: Final = 10.0
#: how long a node is kept at least, s, and how often that doubles
_KEPT_AT_LEAST_S: Final = 1.0
_DOUBLED_MAX: Final = 6
#: nodes looked at for one that suits
_LOOKED_AT_MAX: Final = 64


class Soonest:
    def __init__(
        self,
        queues: "Mapping[NodeId, NodeQueue]",
        charged: "Mapping[ContainerId, Held]",
        estimate: Callable[[ApplicationId, int], float | None],
    ) -> None:
        """`charged`: all containers; `estimate`: how long those of a priority run, s; None: for ever."""
        self._queues = queues
        self._charged = charged
        self._estimate = estimate
        self._ordered_at = -math.inf
        #: with the time until something ends there, the shortest first, s
        self._order: list[tuple[float, str, NodeQueue]] = []
        #: what is taken for good at those that were asked for since
        self._endless: dict[NodeQueue, Resource] = {}
        #: what was found for each size since
        self._has_queue: dict[Resource, bool] = {}

    def is_good(
        self, attempt: "AttemptView", ask: "Ask", node: "NodeView", suits: "Callable[[NodeView], bool]", now: float
    ) -> bool:
        """May the node be kept for the ask, or comes room much sooner elsewhere? `suits`: the ask takes that node, once
        what may end there has ended."""
        if node.queue is None:
            return True
        self._refresh(now)
        is_kept = node.queue.held_for == (attempt.id, ask.key)
        wait_s = _room_comes(node.queue, is_kept=is_kept) if suits(node) else math.inf
        least_s = self._least(attempt, ask, node.queue, suits)
        if least_s is None or wait_s <= _as_good_as(least_s):
            return True
        return wait_s < math.inf and now - max(ask.waiting_since, attempt.moved_at) >= _PATIENCE_S

    def is_lost(
        self,
        attempt: "AttemptView",
        ask: "Ask",
        node: "NodeView",
        since: float,
        suits: "Callable[[NodeView], bool]",
        now: float,
    ) -> bool:
        """Comes room so much sooner elsewhere that the node, kept for the ask since then, is to be given up?"""
        if node.queue is None or now - since < _kept_at_least(attempt, ask):
            return False
        self._refresh(now)
        wait_s = _room_comes(node.queue, is_kept=True) if suits(node) else math.inf
        if wait_s <= _MUCH_LATER * _as_good_as(0.0):
            return False
        least_s = self._least(attempt, ask, node.queue, suits)
        return least_s is not None and wait_s > _MUCH_LATER * _as_good_as(least_s)

    def has_queue(self, shape: Resource, fits: Callable[[Resource, Resource], bool], now: float) -> bool:
        """Is there a queue, full or not, where one of this size waits for something that ends? As it was a second ago.
        `fits`: the first within the second."""
        self._refresh(now)
        found = self._has_queue.get(shape)
        if found is None:
            queues = (queue for _, _, queue in self._order if queue.bound > 0 and not queue.is_silent)
            found = any(fits(shape, queue.node.total) and queue.expected_wait() < math.inf for queue in queues)
            self._has_queue[shape] = found
        return found

    def endless(self, queue: "NodeQueue") -> Resource:
        """What masters hold of the node, and what runs there that has no end as far as anybody knows."""
        found = self._endless.get(queue)
        if found is None:
            found = Resource()
            for container_id, size in queue.node.containers.items():
                if container_id not in queue.waiting and self._has_no_end(self._charged[container_id]):
                    found += size
            self._endless[queue] = found
        return found

    def _has_no_end(self, held: "Held") -> bool:
        return held.is_master or self._estimate(held.application.id, held.priority) is None

    def _least(
        self,
        attempt: "AttemptView",
        ask: "Ask",
        here: "NodeQueue",
        suits: "Callable[[NodeView], bool]",
    ) -> float | None:
        """The shortest time until something ends at another node that is kept for nobody else, s; None: none suits."""
        whose = (attempt.id, ask.key)
        for wait_s, _, queue in islice(self._order, _LOOKED_AT_MAX):
            node = queue.node
            if queue is here or queue.is_silent or node.queue is not queue or node.is_draining:
                continue
            if queue.held_for not in (None, whose) or node.reserved_for not in (None, attempt.reservation):
                continue
            if suits(node):
                return wait_s
        return None

    def _refresh(self, now: float) -> None:
        if not self._ordered_at <= now < self._ordered_at + _BELIEVED_S:
            self._ordered_at = now
            self._order = sorted((_next_end(queue), queue.name, queue) for queue in self._queues.values())
            self._endless.clear()
            self._has_queue.clear()


def _as_good_as(least_s: float) -> float:
    return _AS_GOOD * least_s + _AS_GOOD_S


def _kept_at_least(attempt: "AttemptView", ask: "Ask") -> float:
    """How long a node is kept for the ask, s. One that wants many containers has many nodes kept."""
    return _KEPT_AT_LEAST_S * 2.0 ** min(_DOUBLED_MAX, attempt.moved // max(1, ask.pending))


def _room_comes(queue: "NodeQueue", *, is_kept: bool) -> float:
    """Until room comes there for an ask, s, roughly; inf: nobody knows when. `is_kept`: it is kept for the ask.

    A node that keeps room for a master says that itself. What it says of a newcomer is of one behind the master then,
    which may be never.
    """
    if is_kept and queue.room is not None:
        return queue.room_s if queue.room_s is not None else 0.0
    return _next_end(queue)


def _next_end(queue: "NodeQueue") -> float:
    """Until something ends there, s, roughly: a newcomer waits for one end more than others wait before it."""
    return queue.expected_wait() / (queue.length + 1)
