"""One node's queue as the ResourceManager counts it (see rm.scheduler.queueing)."""

import math
from itertools import islice
from typing import TYPE_CHECKING

from rm.scheduler.nodes import NodeView
from yaqd.model import ApplicationAttemptId, ContainerId, Resource
from yaqd.model.values import value
from yaqd.policies.queueing.tuning import BoundTuner

if TYPE_CHECKING:
    from rm.scheduler.asks import AskKey
    from rm.scheduler.view import AppView


@value()
class Waiting:
    """A container that was sent to wait."""

    app: "AppView"
    resource: Resource
    #: s
    estimate: float


class NodeQueue:
    """One node's queue; there from its first report."""

    __slots__ = (
        "added_s",
        "at_node",
        "bound",
        "counted",
        "excess",
        "given",
        "heard",
        "held_for",
        "is_silent",
        "name",
        "node",
        "queued",
        "reported_at",
        "running",
        "score",
        "slots",
        "tuner",
        "wait_s",
        "waiting",
        "was_full",
    )

    def __init__(self, node: NodeView) -> None:
        self.node = node
        self.name = str(node.id)
        #: containers that may wait here
        self.bound = 0
        #: the bound as it is in the sum over all queues
        self.counted = 0
        #: finds the bound; None where it is fixed
        self.tuner: BoundTuner | None = None
        #: how many run here when all is full, as far as has been seen
        self.slots = 0
        #: something has waited here: until then more may fit than has been seen
        self.was_full = False
        #: scheduler's seconds
        self.reported_at: float | None = None
        #: its last report is too old to be believed
        self.is_silent = False
        #: as the node said last: containers that run, that wait, and how long a newcomer would (inf: for ever), s
        self.running = 0
        self.queued = 0
        self.wait_s = math.inf
        #: its load by the placement policy; None: to be worked out
        self.score: float | None = None
        #: the last report but for its wait, and what was charged to the node then; None: something has changed since
        self.heard: tuple[object, ...] | None = None
        #: how many waited there at its last report, whatever has started since
        self.at_node = 0
        #: containers sent to wait here since then
        self.given = 0
        #: estimated durations of those that the last report cannot have counted, s
        self.added_s = 0.0
        #: what was sent to wait here and should not have started, oldest first
        self.waiting: dict[ContainerId, Waiting] = {}
        #: sum of their resources
        self.excess = Resource()
        #: what must not wait and has its turn here: the queue is left to drain
        self.held_for: tuple[ApplicationAttemptId, AskKey] | None = None

    @property
    def length(self) -> int:
        """How many wait, the more cautious count."""
        sent, told = len(self.waiting), self.queued + self.given
        return sent if sent > told else told

    def expected_wait(self) -> float:
        """How long a newcomer would wait, s."""
        return self.wait_s + self.added_s / (self.running or 1)

    def count_added(self) -> None:
        """What the node cannot have counted are the last ones, beyond as many as waited there."""
        on_their_way = len(self.waiting) - self.at_node
        self.added_s = 0.0
        if on_their_way > 0:
            self.added_s = sum(sent.estimate for sent in islice(reversed(self.waiting.values()), on_their_way))

    def has_room(self, wait_max_s: float | None) -> bool:
        node = self.node
        if self.is_silent or self.held_for is not None or node.is_draining or node.reserved_for is not None:
            return False
        if len(self.waiting) >= self.bound or self.queued + self.given >= self.bound:
            return False
        return self.expected_wait() < (math.inf if wait_max_s is None else wait_max_s)
