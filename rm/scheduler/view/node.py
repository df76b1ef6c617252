"""One node as the scheduler sees it: what it has free, for whom it is held, what waits in its queue.

These records name each other. `rm.scheduler.view.node_table`, `rm.scheduler.holds.table` and
`rm.scheduler.node_queues.table` keep them right.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import islice
from typing import Final, Protocol

from rm.scheduler.assign.sweep import Sweep
from rm.scheduler.events import NodeQueueReported
from rm.scheduler.node_queues.refusals import NoRoom
from rm.scheduler.view.held import QueuedAtNode
from rm.scheduler.view.records import AttemptView
from yaqd.model import ContainerId, NodeId, Resource
from yaqd.model.resources import NO_EXTRAS
from yaqd.policies.asks.table import Ask
from yaqd.policies.queueing.tuning import BoundTuner

#: of a queue where nothing waits, and may not, a report is read as often as that, s
_HEEDED_S: Final = 2.0
#: one for all queues where nothing waits: there are thousands
_NOTHING: Final = Resource()


class HoldKind(Enum):
    #: what becomes free on the node is kept for the ask, until that is enough
    RESERVED = auto()
    #: nothing more is sent to wait in the node's queue, so that it drains, or leaves room for a master
    QUEUE = auto()
    #: nobody else's opportunistic containers are sent to the node
    OPPORTUNISTIC = auto()


@dataclass(slots=True, eq=False)
class _Hold:
    """A node that is held for an attempt; times in scheduler's seconds."""

    node: "NodeView"
    attempt: AttemptView
    kind: HoldKind
    since: float
    #: when it is given up, unless something changes before
    until: float = field(default=math.inf, kw_only=True)


@dataclass(slots=True, eq=False)
class AskHold(_Hold):
    """For a container of this ask: room that is reserved, or a queue that drains."""

    ask: Ask
    #: the most that has been free on the node since it was reserved, MB, and how often that became more
    free_mb: int = 0
    grown: int = 0

    @property
    def size(self) -> Resource:
        return self.ask.capability

    @property
    def is_wanted(self) -> bool:
        """Tell whether the attempt still wants a container of the ask."""
        return self.ask.pending > 0 and self.attempt.asks.get(self.ask.key) is self.ask

    def is_for(self, attempt: AttemptView, ask: Ask) -> bool:
        return self.attempt.id == attempt.id and self.ask.key == ask.key


@dataclass(slots=True, eq=False)
class OpportunisticHold(_Hold):
    """For opportunistic containers of an attempt whose master takes what it has started for running."""

    #: so many containers more
    left: int
    #: since when the attempt had been given none when the hold began
    starved_since: float
    #: since when the node would start one at once; inf: it would not
    room_since: float = math.inf


Hold = AskHold | OpportunisticHold


class NodeQueue:
    """One node's queue: what its node said last, and what was sent there since."""

    __slots__ = (
        "added_s",
        "at_node",
        "bound",
        "counted",
        "ends_in",
        "excess",
        "foresee",
        "given",
        "held",
        "is_filled",
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
        "opportunistic_given",
        "opportunistic_max",
        "opportunistic_s",
        "queued",
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

    def __init__(self, node: "NodeView") -> None:
        self.node = node
        self.name = str(node.id)
        #: guaranteed containers may be sent to wait here, beyond the node's size
        self.is_filled = False
        #: opportunistic containers that may wait here, as the node said last; inf: it sets no bound
        self.opportunistic_max = 0.0
        #: what opportunistic containers were granted of the node
        self.held = _NOTHING
        #: how many of these were sent to wait here since its last report, and how long they run, s: the node keeps a
        #: line for them, behind the one of guaranteed containers
        self.opportunistic_given = 0
        self.opportunistic_s = 0.0
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
        #: where that is 0, until something ends there where the room is given by now, s; None: to be worked out
        self.ends_in: float | None = None
        #: which does that; None: nobody
        self.foresee: Callable[[NodeQueue], float] | None = None
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
        self.waiting: dict[ContainerId, QueuedAtNode] = {}
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
        """Return how long a newcomer would wait, s: as its node said, and what was sent there since runs before it.

        What was given the room that the node said it had is on its way: a newcomer waits for an end.
        """
        return (self.wait_s or self._next_end()) + self.added_s / (self.running or 1)

    def _next_end(self) -> float:
        found = self.ends_in
        if found is None:
            found = self.ends_in = self.foresee(self) if self.foresee is not None else 0.0
        return found

    def count_added(self) -> None:
        """Add up the estimates of what the node cannot have counted: the last ones, beyond as many as waited there."""
        on_their_way = len(self.waiting) - self.at_node
        if on_their_way > 0:
            self.added_s = sum([sent.estimate for sent in islice(reversed(self.waiting.values()), on_their_way)])
        else:
            self.added_s = 0.0

    def is_told_more(self, event: NodeQueueReported) -> bool:
        """Tell whether the report says anything but what the last one said, its wait aside. Most do not."""
        return (
            self.running != event.running
            or self.queued != event.queued
            or (self.told_waiting is not event.waiting and self.told_waiting != event.waiting)
            or (self.started is not event.started and self.started != event.started)
        )

    @property
    def is_quiet(self) -> bool:
        """Tell whether nothing waits here, and nothing may.

        Where all queues are quiet they should cost next to nothing, at each heartbeat and each end of a container.
        """
        return not (self.bound or self.waiting or self.queued or self.is_silent or self.node.hold is not None)

    def is_heeded(self, now: float) -> bool:
        """Tell whether what the node says of its queue is to be read. Of a quiet one a word now and then will do."""
        if not self.is_quiet:
            return True
        return self.reported_at is None or not 0.0 <= now - self.reported_at < _HEEDED_S

    def tuned(self, tuner: BoundTuner, poll_s: float | None, said: NodeQueueReported, now: float) -> int:
        """Return the bound, with one report more.

        `poll_s`: intervals in which masters call, s.
        """
        if said.tells_ends:
            tuner.told(said.refill_s, at_once=True)
        elif self.reported_at is not None:
            tuner.told(said.refill_s + (now - self.reported_at if said.gap_s is None else said.gap_s))
        if poll_s is not None:
            tuner.polls(poll_s)
        bound = tuner.bound(self.slots)
        return bound if self.most is None else self.within(bound)

    def within(self, bound: int) -> int:
        """Return the bound, or what the node takes if that is less. What is sent beyond that would come back."""
        return bound if self.most is None or bound <= self.most else self.most

    def no_room(self, wait_max_s: float | None) -> NoRoom | None:
        """Return why nothing more is sent to wait here; None: something may be. `wait_max_s`: what may wait longest."""
        if len(self.waiting) >= self.bound or self.queued + self.given >= self.bound:
            return NoRoom.FULL
        if self.is_silent or self.reported_at is None:
            return NoRoom.SILENT
        if self.node.hold is not None:
            return NoRoom.HELD
        if self.node.is_draining:
            return NoRoom.DRAINING
        return None if self.expected_wait() < self.longest_wait(wait_max_s) else NoRoom.LONG

    def longest_wait(self, wait_max_s: float | None) -> float:
        """Return how long a newcomer may be expected to wait here, s: what is said, or what gains something if less."""
        longest_s = math.inf if wait_max_s is None else wait_max_s
        tuner = self.tuner
        return tuner.wait_max_s if tuner is not None and tuner.wait_max_s < longest_s else longest_s


class Index(Protocol):
    """Nodes by what they have free."""

    def add(self, node: "NodeView", cell: tuple[int, int]) -> None: ...
    def remove(self, node: "NodeView", cell: tuple[int, int]) -> None: ...
    def move(self, node: "NodeView", old: tuple[int, int], new: tuple[int, int]) -> None: ...


class NodeView:
    """One usable node."""

    __slots__ = (
        "cell",
        "containers",
        "free_cores",
        "free_extras",
        "free_mb",
        "hold",
        "id",
        "indexes",
        "is_draining",
        "masters",
        "number",
        "opportunistic_hold",
        "queue",
        "rack",
        "sweep",
        "total",
    )

    def __init__(self, node_id: NodeId, rack: str, total: Resource) -> None:
        self.id = node_id
        #: higher than those of the nodes that joined before
        self.number = 0
        self.rack = rack
        self.total = total
        self.free_mb = 0
        self.free_cores = 0
        self.free_extras: Mapping[str, int] = NO_EXTRAS
        self.free = total
        self.containers: dict[ContainerId, Resource] = {}
        #: what application masters of these hold: it is not free before they end, and nobody knows when that is
        self.masters = Resource()
        #: for whom what becomes free here is kept, or the queue drains
        self.hold: AskHold | None = None
        #: for whom alone opportunistic containers are sent here
        self.opportunistic_hold: OpportunisticHold | None = None
        #: takes no containers: `total` is what it holds
        self.is_draining = False
        #: where the index keeps it: memory steps, cores
        self.cell: tuple[int, int] | None = None
        #: those that keep it, while it has a cell
        self.indexes: tuple[Index, ...] = ()
        #: what waits here
        self.queue = NodeQueue(self)
        #: where looks for who takes what is free go on; None: with the first ones
        self.sweep: Sweep | None = None

    @property
    def reserved(self) -> AskHold | None:
        """Return the hold of one for whom room is reserved here; such a node is not in the index."""
        return self.hold if self.hold is not None and self.hold.kind is HoldKind.RESERVED else None

    @property
    def free(self) -> Resource:
        """Total less what `containers` hold; may be negative after the node shrank, or where some of them wait."""
        return Resource(self.free_mb, self.free_cores, self.free_extras)

    @free.setter
    def free(self, free: Resource) -> None:
        self.free_mb, self.free_cores, self.free_extras = free.memory_mb, free.vcores, free.extras
