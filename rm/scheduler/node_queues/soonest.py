"""At which nodes room comes soonest, for what must not wait in their queues.

A node whose queue is filled never shows room. So some node has to be held for a master, or for what has no end that is
known. What runs on one may end in a second, on another in an hour, or never as far as anybody knows. The node that
beats first is no choice: where nothing ends, an ask starts later than where there are no queues at all.
"""

import math
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Final

from rm.scheduler.view.held import Held
from rm.scheduler.view.node import AskHold, NodeQueue, NodeView
from yaqd.model import ApplicationId, ContainerId, NodeId, Resource

#: an order of nodes is believed for so long, s: reports are as old
_BELIEVED_S: Final = 1.0
#: a wait is as good as the shortest one if it is at most so many times as long, and so many seconds
_AS_GOOD: Final = 2.0
_AS_GOOD_S: Final = 5.0
#: nodes looked at for one that suits
_LOOKED_AT_MAX: Final = 64


class Soonest:
    def __init__(
        self,
        queues: Mapping[NodeId, NodeQueue],
        charged: Mapping[ContainerId, Held],
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

    def has_queue(self, shape: Resource, fits: Callable[[Resource, Resource], bool], now: float) -> bool:
        """Tell whether there is a queue, full or not, where one of this size waits for something that ends.

        The answer is as old as a second. Within that second the `fits` of the first call for a size counts.
        """
        self.refresh(now)
        found = self._has_queue.get(shape)
        if found is None:
            found = any(
                queue.bound > 0
                and not queue.is_silent
                and fits(shape, queue.node.total)
                and queue.expected_wait() < queue.longest_wait(None)
                for _, _, queue in self._order
            )
            self._has_queue[shape] = found
        return found

    def endless(self, queue: NodeQueue) -> Resource:
        """Add up what masters hold of the node, and what runs there that has no end as far as anybody knows."""
        found = self._endless.get(queue)
        if found is None:
            found = Resource()
            for container_id, size in queue.node.containers.items():
                if container_id not in queue.waiting and self._has_no_end(self._charged[container_id]):
                    found += size
            self._endless[queue] = found
        return found

    def _has_no_end(self, held: Held) -> bool:
        return held.is_master or self._estimate(held.application.id, held.priority) is None

    def elsewhere(self, hold: AskHold, suits: Callable[[NodeView], bool]) -> float | None:
        """Find the shortest time until something ends at another node that is held for nobody else, s; None: none
        suits."""
        for wait_s, _, queue in islice(self._order, _LOOKED_AT_MAX):
            node = queue.node
            if node is hold.node or queue.is_silent or not queue.is_filled or node.is_draining:
                continue
            other, own = node.hold, hold.attempt.reserved_at
            if other is not None and other.node.id != own and not other.is_for(hold.attempt, hold.ask):
                continue
            if suits(node):
                return wait_s
        return None

    def refresh(self, now: float) -> None:
        if not self._ordered_at <= now < self._ordered_at + _BELIEVED_S:
            self._ordered_at = now
            self._order = sorted((_next_end(queue), queue.name, queue) for queue in self._queues.values())
            self._endless.clear()
            self._has_queue.clear()


def as_good_as(least_s: float) -> float:
    """Return the longest wait that is as good as this one, s."""
    return _AS_GOOD * least_s + _AS_GOOD_S


def room_comes(queue: NodeQueue, *, is_held: bool) -> float:
    """Estimate how soon room comes there for an ask, s; inf: nobody knows. `is_held`: the node is held for it.

    A node that keeps room for a master says that itself. What it says of a newcomer is of one behind the master then,
    which may be never.
    """
    if is_held and queue.room is not None:
        return queue.room_s if queue.room_s is not None else 0.0
    return _next_end(queue)


def _next_end(queue: NodeQueue) -> float:
    """Estimate how soon something ends there, s, roughly: a newcomer waits for one end more than others wait before
    it."""
    return queue.expected_wait() / (queue.length + 1)
