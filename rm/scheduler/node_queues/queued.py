"""Which of a node's containers count as waiting there: what its node says, and what is charged beyond its size.

What waits is charged to its node and its application, and to user and queues only once it counts as started.
"""

from collections.abc import Callable, Mapping

from rm.scheduler.view.calculators import Calculator
from rm.scheduler.view.held import Held, QueuedAtNode
from rm.scheduler.view.node import NodeQueue, NodeView
from rm.scheduler.view.records import AppView
from yaqd.model import ContainerId, Resource


class QueuedContainers:
    def __init__(
        self,
        calculator: Calculator,
        charged: Mapping[ContainerId, Held],
        count: Callable[[AppView, Resource, int], None],
    ) -> None:
        """As NodeQueues has them."""
        self._calculator = calculator
        self._charged = charged
        self._count = count

    def as_told(self, queue: NodeQueue, waiting: frozenset[ContainerId], started: frozenset[ContainerId]) -> None:
        """Take in which containers wait and which run, as their node says. Of those that it does not name, the last
        ones are on their way, and the first ones have started for which there is room.

        Costs what has changed and what waits, however many run there.
        """
        node, known = queue.node, queue.waiting
        if known:
            # sets keep the hashes of what is in them: an id is a tuple of tuples, and hashing it is most of a look
            begun = started.intersection(frozenset(known)) - waiting
            for container_id in [c for c in known if c in begun] if begun else ():
                self.start(queue, container_id)
        new = waiting.difference(known)
        if new and (found := [c for c in waiting if c in new and c in node.containers]):
            for container_id in found:
                self._found_waiting(queue, container_id)
            queue.waiting = {c: known[c] for c in node.containers if c in known}
        over = _beyond(node)
        if not self._calculator.fits(over, queue.excess):
            for container_id in reversed(node.containers):
                if container_id not in started and container_id not in queue.waiting:
                    self._found_waiting(queue, container_id)
                    if self._calculator.fits(over, queue.excess):
                        break

    def _found_waiting(self, queue: NodeQueue, container_id: ContainerId) -> None:
        """Count a container as waiting that was not known to wait."""
        held = self._charged[container_id]
        if not held.is_master:
            self.wait(queue, container_id, QueuedAtNode(held.application, held.resource, 0.0))

    def resized(self, queue: NodeQueue) -> None:
        """Note that what a node holds, or its size, changed at once. The last containers beyond its size are what waits
        there."""
        node = queue.node
        queue.is_heard = False
        over = _beyond(node)
        if self._calculator.fits(over, queue.excess):
            self._trim(queue, over)
            return
        waiting, queue.waiting = queue.waiting, {}
        for container_id, resource in reversed(node.containers.items()):
            if container_id not in waiting and not self._calculator.fits(over, queue.excess):
                held = self._charged[container_id]
                if not held.is_master:
                    self.wait(queue, container_id, QueuedAtNode(held.application, resource, 0.0))
        queue.waiting = {**waiting, **dict(reversed(queue.waiting.items()))}
        self._trim(queue, over)

    def wait(self, queue: NodeQueue, container_id: ContainerId, sent: QueuedAtNode) -> None:
        queue.is_heard, queue.score, queue.ends_in = False, None, None
        queue.waiting[container_id] = sent
        queue.excess = queue.excess + sent.resource
        self._count(sent.app, sent.resource, 1)

    def start(self, queue: NodeQueue, container_id: ContainerId) -> None:
        queue.is_heard, queue.score, queue.ends_in = False, None, None
        sent = queue.waiting.pop(container_id)
        queue.excess = queue.excess - sent.resource
        self._count(sent.app, sent.resource, -1)

    def trim(self, queue: NodeQueue) -> None:
        """Take those for started, oldest first, that what is charged beyond the node's size leaves room for."""
        if queue.waiting:
            self._trim(queue, _beyond(queue.node))

    def _trim(self, queue: NodeQueue, over: Resource) -> None:
        """Do that; `over`: what is charged beyond the node's size."""
        if queue.room is not None:  # room that a master is to have: the node says who starts
            return
        fits = self._calculator.fits_among
        for container_id, sent in list(queue.waiting.items()):
            excess, size = queue.excess, sent.resource
            extras = (excess - size).extras if excess.extras else excess.extras
            if not fits(over, excess.memory_mb - size.memory_mb, excess.vcores - size.vcores, extras):
                return
            self.start(queue, container_id)
            if queue.given:
                queue.given -= 1
            elif queue.queued:
                queue.queued -= 1


def _beyond(node: NodeView) -> Resource:
    """Return what is charged to the node beyond its size."""
    if node.free_extras:
        return (node.free * -1).floored()
    return Resource(max(0, -node.free_mb), max(0, -node.free_cores))
