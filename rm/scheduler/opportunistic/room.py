"""What nodes' queues have room for, of opportunistic containers: as they said, and with what was sent there since."""

import math
from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from rm.scheduler.decisions import NodeQueuePlace
from rm.scheduler.view.node import NodeQueue
from yaqd.model import ApplicationAttemptId, Resource
from yaqd.policies.queueing.place_scores import Load


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

#: steps in which nodes' use is compared
_SHARES: Final = 1000
#: tells whether one resource fits in another
Fits = Callable[[Resource, Resource], bool]


def is_open(queue: NodeQueue, attempt_id: ApplicationAttemptId | None) -> bool:
    """Tell whether the node is held for no other attempt's opportunistic containers. None: for no attempt's."""
    hold = queue.node.opportunistic_hold
    return hold is None or hold.attempt.id == attempt_id


def lets_wait(queue: NodeQueue) -> bool:
    """Tell whether opportunistic containers wait there, by what the node said lately."""
    return queue.opportunistic_max > 0 and not queue.node.is_draining and not queue.is_silent


def backlog(queue: NodeQueue) -> int:
    """Count what waits there: as the node said, and opportunistic containers that were sent there since."""
    return queue.queued + queue.opportunistic_given


def expected_wait(queue: NodeQueue) -> float:
    """Estimate how long a newcomer waits there, s; inf: nobody knows. What was sent there since runs before it."""
    return queue.wait_s + queue.opportunistic_s / (queue.running or 1)


def runs_at_once(queue: NodeQueue) -> int:
    """Count how many run there beside each other; 1 where nobody has seen it."""
    return max(1, queue.slots)


def has_room(queue: NodeQueue) -> bool:
    """Tell whether it would start one of what it usually runs at once."""
    return queue.is_filled and not backlog(queue) and queue.running < runs_at_once(queue)


def starts(queue: NodeQueue, need: Resource, fits: Fits) -> bool:
    """Tell whether a container would start at once, as far as is known here."""
    return not queue.queued and fits(queue.held + need, queue.node.free)


def has_place(queue: NodeQueue, need: Resource, fits: Fits) -> bool:
    """Tell whether a container may be sent there, to start or to wait."""
    return lets_wait(queue) and (starts(queue, need, fits) or backlog(queue) < queue.opportunistic_max)


def takes(queue: NodeQueue, need: Resource, wait_limit_s: float, fits: Fits) -> bool:
    """Tell whether it has room, now or in its queue, and what waits there is known to start within `wait_limit_s`.

    What a node says of its wait while it has room tells nothing of that. What was sent there since runs before it.
    """
    if not has_place(queue, need, fits):
        return False
    if wait_limit_s == math.inf or starts(queue, need, fits):
        return True
    return queue.wait_s > 0.0 and expected_wait(queue) < wait_limit_s


def place_there(queue: NodeQueue, rule: str) -> NodeQueuePlace:
    """Describe the place of a container that is sent to wait now."""
    return NodeQueuePlace(queue.wait_s, backlog(queue), rule)


def left(queue: NodeQueue) -> Resource:
    """Return what containers of neither kind hold, as far as is known here."""
    return (queue.node.free - queue.held).floored()


def used_share(queue: NodeQueue) -> float:
    """Return the part of the node's memory that is in use; inf for a node without memory."""
    total = queue.node.total.memory_mb
    used = total - queue.node.free_mb + queue.held.memory_mb
    return used / total if total > 0 else math.inf


def longer_wait(queue: NodeQueue, least: Resource) -> float:
    """Estimate a newcomer's wait, s: as the node said, longer by what was sent there since, each as long as those that
    wait.

    inf: for ever, or nobody knows. A wait of 0 says that it had room, and nothing once that has been given away or
    others wait. `least`: the smallest container.
    """
    has_given_room = queue.wait_s == 0.0 and (queue.queued or not least.fits_in(left(queue)))
    return math.inf if has_given_room else _longer(queue)


def load(queue: NodeQueue) -> Load:
    """Return what the placement policy goes by, of a container that does not start at once.

    Its wait is longer by what was sent there since. A wait of 0 said that there was room, which is gone.
    """
    return Load(backlog(queue), _longer(queue) if queue.wait_s > 0.0 else math.inf, queue.slots)


def behind(queue: NodeQueue) -> int:
    """Return what decides between nodes that are equal in all else: how many wait, then how much is in use."""
    return _SHARES * backlog(queue) + min(_SHARES - 1, int(_SHARES * min(1.0, used_share(queue))))


def _longer(queue: NodeQueue) -> float:
    waiting = queue.queued + 1
    return queue.wait_s * (waiting + queue.opportunistic_given) / waiting
