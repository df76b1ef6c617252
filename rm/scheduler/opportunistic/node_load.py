"""What the nodes' own queues hold, as they reported it and with what was sent there since."""

import math
from enum import Enum, auto
from typing import Final

from rm.scheduler.decisions import NodeQueuePlace
from rm.scheduler.view.calculators import Calculator
from rm.scheduler.view.node import NodeView
from yaqd.model import ApplicationAttemptId, Resource


class LoadOrder(Enum):
    """What makes a node's load (`yarn.resourcemanager.nm-container-queuing.load-comparator`)."""

    QUEUE_LENGTH = auto()
    #: the shorter queue, among equal ones the node with more room
    QUEUE_LENGTH_THEN_RESOURCES = auto()
    QUEUE_WAIT_TIME = auto()


#: why a container waits at its node
RULES: Final = {
    LoadOrder.QUEUE_LENGTH: "its node's queue is among the shortest",
    LoadOrder.QUEUE_LENGTH_THEN_RESOURCES: "its node's queue is among the shortest, and it has most room",
    LoadOrder.QUEUE_WAIT_TIME: "at its node the wait is among the shortest",
}


class NodeLoad:
    """What a node reported of its queue, and what it has been given."""

    __slots__ = (
        "_calculator",
        "added_s",
        "capacity",
        "given",
        "held",
        "is_silent",
        "length",
        "node",
        "number",
        "wait_ms",
    )

    def __init__(self, node: NodeView, calculator: Calculator, number: int) -> None:
        self.node = node
        #: higher than those of the nodes that joined before
        self.number = number
        self._calculator = calculator
        #: containers that wait there; None until the node has said so
        self.length: int | None = None
        #: how many may wait; None: it did not say
        self.capacity: int | None = None
        #: -1: it does not know
        self.wait_ms = -1
        #: its last report is too old to be believed
        self.is_silent = False
        #: containers sent to wait there since its last report
        self.given = 0
        #: how long they run as far as is known, together, s
        self.added_s = 0.0
        #: what opportunistic containers there were granted
        self.held = Resource()

    def fits(self, need: Resource) -> bool:
        """Would it start at once, as far as is known here?"""
        return not self.length and self._calculator.fits(self.held + need, self.node.free)

    def is_open(self, attempt_id: ApplicationAttemptId | None) -> bool:
        """Tell whether the node is held for no other attempt's opportunistic containers. None: for no attempt's."""
        hold = self.node.opportunistic_hold
        return hold is None or hold.attempt.id == attempt_id

    @property
    def lets_wait(self) -> bool:
        """Tell whether opportunistic containers wait there, by what the node said lately."""
        return self.length is not None and self.capacity != 0 and not self.node.is_draining and not self.is_silent

    @property
    def slots(self) -> int:
        """Count how many run there at once; 1 where nobody has seen it."""
        queue = self.node.queue
        return max(1, queue.slots) if queue is not None else 1

    @property
    def has_room(self) -> bool:
        """Tell whether it would start one of what it usually runs at once."""
        queue = self.node.queue
        return not self.queued and queue is not None and queue.running < self.slots

    def takes(self, need: Resource) -> bool:
        return self.lets_wait and (self.fits(need) or self.capacity is None or self.queued < self.capacity)

    def place(self, rule: str) -> NodeQueuePlace:
        """Of a container that is sent to wait now."""
        wait_s = self.wait_ms / 1000 if self.wait_ms >= 0 else math.inf
        return NodeQueuePlace(wait_s, self.queued, rule)

    @property
    def left(self) -> Resource:
        """What containers of neither kind hold, as far as is known here."""
        return (self.node.free - self.held).floored()

    @property
    def queued(self) -> int:
        return (self.length or 0) + self.given

    def expected_wait(self) -> float:
        """As the node said it, and what was sent there since runs before; inf: not known, s."""
        queue = self.node.queue
        running = queue.running if queue is not None else 0
        return self.wait_ms / 1000 + self.added_s / max(1, running) if self.wait_ms >= 0 else math.inf

    def share(self) -> float:
        total = self.node.total
        used = total.memory_mb - self.node.free.memory_mb + self.held.memory_mb
        return used / total.memory_mb if total.memory_mb > 0 else math.inf


def longer_wait_ms(said_ms: int, queued: int, given: int, *, has_room: bool) -> int:
    """A node's own estimate of a newcomer's wait, longer by what was sent there since, each as long as those that wait.

    -1: for ever. So is what it said when it had room, once that has been given away, until it says more.
    """
    if said_ms < 0 or (said_ms == 0 and not has_room):
        return -1
    waiting = max(0, queued) + 1
    return said_ms * (waiting + given) // waiting
