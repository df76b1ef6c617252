"""One node's queue as the ResourceManager counts it (see rm.scheduler.queueing)."""

import math
from itertools import islice
from typing import TYPE_CHECKING, Final

from rm.scheduler.events import NodeQueueReported
from rm.scheduler.nodes import NodeView
from yaqd.model import ContainerId, Resource
from yaqd.model.values import value
from yaqd.policies.queueing.tuning import BoundTuner

#: one for all queues where nothing waits: there are thousands
_NOTHING: Final = Resource()

if TYPE_CHECKING:
    from rm.scheduler.queueing import NodeQueues
    from rm.scheduler.sweep import Sweep
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
        "is_heard",
        "is_listed",
        "is_silent",
        "keeps_room",
        "listed_at",
        "look_at",
        "looked_at",
        "most",
        "name",
        "node",
        "queued",
        "queues",
        "reported_at",
        "room",
        "room_s",
        "running",
        "score",
        "slots",
        "started",
        "sweep",
        "told_waiting",
        "tuner",
        "wait_s",
        "waiting",
        "was_full",
    )

    def __init__(self, node: NodeView, queues: "NodeQueues") -> None:
        self.node = node
        #: those of all nodes
        self.queues = queues
        self.name = str(node.id)
        #: containers that may wait here
        self.bound = 0
        #: the node refuses more; None: it says nothing of it
        self.most: int | None = None
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
        #: which ones, as it said last; None: it did not
        self.told_waiting: frozenset[ContainerId] | None = None
        #: which ones run, as it said last; the same object as long as it says the same
        self.started: frozenset[ContainerId] = frozenset()
        #: a heap of when those are looked at (`Shares.run`), and the first of these times; inf: none
        self.looked_at: list[tuple[float, ContainerId]] = []
        self.look_at = math.inf
        #: nothing has changed since the last report: neither what is charged to the node nor what waits there
        self.is_heard = False
        #: it is to be found where something may wait
        self.is_listed = False
        #: with so many that wait there, such a wait (s) and so many slots; None: to be listed anew
        self.listed_at: tuple[int, float, int] | None = None
        #: how many waited there at its last report, whatever has started since
        self.at_node = 0
        #: containers sent to wait here since then
        self.given = 0
        #: estimated durations of those that the last report cannot have counted, s
        self.added_s = 0.0
        #: what was sent to wait here and should not have started, oldest first
        self.waiting: dict[ContainerId, Waiting] = {}
        #: sum of their resources
        self.excess = _NOTHING
        #: its node keeps room for a master where it is told so
        self.keeps_room = False
        #: what runs leaves so much free by the node's last word, which it keeps for a master; None: it keeps nothing
        self.room: Resource | None = None
        #: until that is enough for them, s; inf: nobody knows when, None: it does not say
        self.room_s: float | None = None
        #: where looks for who waits here next go on; None: with the first ones
        self.sweep: Sweep | None = None

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
        self.added_s = 0.0
        on_their_way = len(self.waiting) - self.at_node
        if on_their_way > 0:
            self.added_s = sum(sent.estimate for sent in islice(reversed(self.waiting.values()), on_their_way))

    def is_told_more(self, event: NodeQueueReported) -> bool:
        """Does the report say anything but what the last one said, its wait aside? Most do not."""
        return (
            self.running != event.running
            or self.queued != event.queued
            or self.told_waiting != event.waiting
            or self.started != event.started
        )

    def tuned(self, tuner: BoundTuner, poll_s: float | None, gap_s: float | None, now: float) -> int:
        """The bound, with one heartbeat more; `poll_s`: in such intervals masters call. `gap_s`: since the node's last
        heartbeat; None: that was its last report."""
        if self.reported_at is not None:
            tuner.heartbeat(now - self.reported_at if gap_s is None else gap_s)
        if poll_s is not None:
            tuner.polls(poll_s)
        return self.within(tuner.bound(self.slots))

    def within(self, bound: int) -> int:
        """What is sent beyond what the node takes would come back."""
        return bound if self.most is None or bound <= self.most else self.most

    def reopened(self) -> None:
        """Hear that its node is held no more."""
        self.queues.enter_again(self)

    def has_room(self, wait_max_s: float | None) -> bool:
        if len(self.waiting) >= self.bound or self.queued + self.given >= self.bound:
            return False
        if self.is_silent or self.node.hold is not None or self.node.is_draining:
            return False
        return self.expected_wait() < (math.inf if wait_max_s is None else wait_max_s)
