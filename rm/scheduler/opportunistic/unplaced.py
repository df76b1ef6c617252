"""What attempts want of opportunistic containers and have not been given."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from rm.scheduler.events import BoundWish
from rm.scheduler.view.node import NodeView
from rm.scheduler.view.records import AttemptView
from yaqd.model import ANY_HOST, NodeId, Resource
from yaqd.policies.asks.table import Ask

#: asks with strict places that are kept apart; the places of further ones are not kept
_BOUND_MAX: Final = 1000


class Unplaced:
    """An attempt's opportunistic containers that found no node."""

    def __init__(self, number: int, sizes: Collection[Resource], bound: Collection[BoundWish]) -> None:
        """`number`: of all; `sizes`: of those that take any place, none: not known; `bound`: the others."""
        self._anywhere = max(0, number - sum(wish.count for wish in bound))
        self._sizes = sizes
        #: by host and rack, None: of any size
        self._at: defaultdict[str, set[Resource | None]] = defaultdict(set)
        for wish in bound:
            for place in wish.places:
                self._at[place].add(wish.size)
        #: how many can be given a node at all
        self.number = self._anywhere + sum(wish.count for wish in bound if wish.places)

    @classmethod
    def of(cls, asks: Iterable[Ask]) -> "Unplaced":
        """Count what is pending, as a master that has no proxy asks for it."""
        number, sizes, bound = 0, set[Resource](), list[Ask]()
        for ask in asks:
            number += ask.pending
            if ask.allows(ANY_HOST):
                sizes.add(ask.capability)
            elif ask.pending:
                bound.append(ask)
        found = [BoundWish(ask.pending, ask.capability, ask.places()) for ask in islice(bound, _BOUND_MAX)]
        found.append(BoundWish(sum(ask.pending for ask in bound[_BOUND_MAX:]), None, frozenset()))
        return cls(number, sizes, found)

    def may_start(self, node: NodeView) -> bool:
        """Tell whether one of them may start there, once what is in the way has ended."""
        if self._anywhere and (not self._sizes or any(size.fits_in(node.total) for size in self._sizes)):
            return True
        wanted = (size for place in (node.id.host, node.rack) for size in self._at.get(place, ()))
        return any(size is None or size.fits_in(node.total) for size in wanted)


@dataclass(slots=True, eq=False)
class Want:
    """What an attempt has not been given."""

    attempt: AttemptView
    unplaced: Unplaced
    #: when the attempt got its last container; before the first one, when it first asked
    since: float
    #: nodes that were held for it since then, and whose queues have not become short in time
    in_vain: set[NodeId] = field(default_factory=set)
