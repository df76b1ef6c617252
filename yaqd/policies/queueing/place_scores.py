"""What a node is worth to a task that would wait there: affinity / load (Yaq, section 3.2, queuingScore).

Affinity falls from the task's own host to its rack to anywhere, and with the number of its like there that fight for
the same resource (interference). Load is what a strategy measures.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, Protocol, TypeVar

from yaqd.model.values import value
from yaqd.policies.asks.rows import Locality
from yaqd.policies.registry import NUMBERS, PolicyTable

N = TypeVar("N")


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


@value()
class Load:
    """The same as a value."""

    queued: int
    wait_s: float
    slots: int


@value()
class Contender(Generic[N]):
    """A node that takes the task."""

    node: N
    #: the node to what the task's master asked for
    near: Locality
    #: tasks of the same stage that are there
    alike: int
    load: NodeLoad
    #: the task would start there at once
    starts: bool
    #: among equal nodes the one with the least of this is chosen
    behind: int


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


def _guarded(what: str, strategy: Any, instead: PlaceStrategy) -> PlaceStrategy:
    if not isinstance(strategy, PlaceStrategy):
        raise TypeError("it is no PlaceStrategy")
    if strategy.draws is not None and not (isinstance(strategy.draws, int) and strategy.draws > 0):
        raise TypeError("it draws no number of nodes")
    return replace(strategy, load=NUMBERS(what, strategy.load, instead.load))


PLACES: Final[PolicyTable[PlaceStrategy]] = PolicyTable(
    "place",
    {
        "wait": PlaceStrategy(_wait),
        "length": PlaceStrategy(_length),
        "length-per-slot": PlaceStrategy(_length_per_slot),
        "two-choices": PlaceStrategy(_wait, draws=2),
        "random": PlaceStrategy(_wait, draws=1),
    },
    instead="wait",
    guard=_guarded,
)


@dataclass(frozen=True, slots=True)
class Affinity:
    """How suitable a node is apart from its load, in (0, 1]: 1 where the task's data is."""

    #: for a node of the right rack, and for one elsewhere
    rack: float = 0.7
    elsewhere: float = 0.5
    #: how much each task of the same kind per slot takes away: 1 halves the score of a node full of them, 0 none
    interference: float = 0.0

    def worth(self, near: Locality, alike: int, slots: int) -> float:
        """Return the affinity of a node so near that has so many tasks of the task's kind on so many slots."""
        found = self.rack if near is Locality.RACK else self.elsewhere if near is Locality.OFF_SWITCH else 1.0
        return self.fought_for(found, alike, slots) if self.interference > 0.0 else found

    def fought_for(self, affinity: float, alike: int, slots: int) -> float:
        """Return the same, with so many tasks of the task's kind on so many slots: they fight for the same resource."""
        return affinity / (1.0 + self.interference * max(0, alike) / max(1, slots))
