"""What a node is worth to a task that would wait there: affinity / load (Yaq, section 3.2, queuingScore).

Affinity falls from the task's own host to its rack to anywhere, and with the number of its like there that fight for
the same resource (interference). Load is what a strategy measures.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from types import MappingProxyType
from typing import Final, Protocol

from yaqd.model import NodeId, Resource
from yaqd.model.values import value
from yaqd.policies.queueing import limits
from yaqd.policies.queueing.registry import PolicyTable

_NO_KINDS: Final[Mapping[str, int]] = MappingProxyType({})


@value()
class NodeReport:
    """A node as it describes itself."""

    node: NodeId
    rack: str
    total: Resource
    free: Resource
    #: tasks that wait there
    queued: int = 0
    #: until one more would start, s; inf never
    wait_s: float = 0.0
    #: tasks that may wait there
    bound: int = 0
    #: tasks that run there at once, to spread one more task's duration over
    slots: int = 1
    #: tasks there, waiting or running, by kind; for interference
    kinds: Mapping[str, int] = field(default_factory=lambda: _NO_KINDS, hash=False)


@dataclass(slots=True)
class NodeView:
    """The same, made harmless, and with what was placed there since; only the placer changes it."""

    node: NodeId
    rack: str
    total: Resource
    free: Resource
    queued: int
    wait_s: float
    bound: int
    slots: int
    kinds: Counter[str] = field(default_factory=Counter)

    def starts(self, needed: Resource) -> bool:
        """Would such a task start here at once?"""
        return self.queued == 0 and needed.fits_in(self.free)


@value()
class Wanted:
    """A task that needs a node."""

    resource: Resource
    #: how long it will run, s
    estimate: float | None = None
    #: where its data is
    hosts: Sequence[NodeId] = ()
    racks: Sequence[str] = ()
    #: tasks of one kind fight for the same resource of a node; empty for none
    kind: str = ""


class NodeLoad(Protocol):
    """What a load is measured by: whoever keeps nodes may hand in its own kind of them."""

    @property
    def queued(self) -> int:
        """Tasks that wait there."""
        ...

    @property
    def wait_s(self) -> float:
        """Until one more would start, s."""
        ...

    @property
    def slots(self) -> int:
        """Tasks that run there at once; 0 as long as none has been seen."""
        ...


@dataclass(frozen=True, slots=True)
class PlaceStrategy:
    """How to choose among nodes that would all make the task wait."""

    #: a node's load, 0 for none; the least is best, NaN counts as inf, and inf comes last
    load: Callable[[NodeLoad], float]
    #: how many nodes, drawn at random, are looked at; None for the least loaded of all
    draws: int | None = None


def _wait(node: NodeLoad) -> float:
    return node.wait_s


def _length(node: NodeLoad) -> float:
    return node.queued


def _length_per_slot(node: NodeLoad) -> float:
    return node.queued / max(1, node.slots)


PLACES: Final[PolicyTable[PlaceStrategy]] = PolicyTable(
    "place",
    {
        "wait": PlaceStrategy(_wait),
        "length": PlaceStrategy(_length),
        "length-per-slot": PlaceStrategy(_length_per_slot),
        "two-choices": PlaceStrategy(_wait, draws=2),
        "random": PlaceStrategy(_wait, draws=1),
    },
)


@dataclass(frozen=True, slots=True)
class Affinity:
    """How suitable a node is apart from its load, in (0, 1]."""

    #: for a node of the right rack, and for one elsewhere
    rack: float = 0.75
    elsewhere: float = 0.5
    #: how much each task of the same kind per slot takes away: 1 halves the score of a node full of them, 0 none
    interference: float = 0.0

    def of(self, node: NodeView, wanted: Wanted) -> float:
        if (not wanted.hosts and not wanted.racks) or node.node in wanted.hosts:
            score = 1.0
        else:
            score = self.rack if node.rack in wanted.racks else self.elsewhere
        if self.interference > 0.0 and wanted.kind:
            score /= 1.0 + self.interference * node.kinds[wanted.kind] / node.slots
        return score


def queueing_score(affinity: float, load: float) -> float:
    """Algorithm 1: affinity x 1/load, the higher the better; inf for a node without load."""
    return affinity / load if load > 0 else inf


def view(report: NodeReport, *, with_kinds: bool) -> NodeView:
    """The report with every number in its range, whatever the node says."""
    kinds = Counter({kind: max(0, count) for kind, count in report.kinds.items()}) if with_kinds else Counter()
    return NodeView(
        report.node,
        report.rack,
        report.total,
        report.free.smaller(report.total).floored(),
        max(0, report.queued),
        limits.duration(report.wait_s),
        limits.queue_length(report.bound),
        max(1, limits.slots(report.slots)),
        kinds,
    )
