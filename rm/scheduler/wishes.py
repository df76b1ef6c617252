"""At which nodes one of the opportunistic containers that an attempt was not given might start."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from itertools import islice
from typing import TYPE_CHECKING

from rm.scheduler.asks import Ask
from rm.scheduler.events import BoundWish
from yaqd.model import ANY_HOST, Resource

if TYPE_CHECKING:
    from rm.scheduler.node_load import NodeLoad

#: those that insist on places and are told apart; of further ones no place is known
_BOUND_MAX = 1000


class Wishes:
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

    def may_start(self, load: "NodeLoad") -> bool:
        """One of them, once what is in the way has ended?"""
        node = load.node
        if self._anywhere and (not self._sizes or any(size.fits_in(node.total) for size in self._sizes)):
            return True
        wanted = (size for place in (node.id.host, node.rack) for size in self._at.get(place, ()))
        return any(size is None or size.fits_in(node.total) for size in wanted)


def wishes_of(asks: Iterable[Ask]) -> Wishes:
    """What is pending, as a master that has no proxy asks for it."""
    number, sizes, bound = 0, set[Resource](), list[Ask]()
    for ask in asks:
        number += ask.pending
        if ask.allows(ANY_HOST):
            sizes.add(ask.capability)
        elif ask.pending:
            bound.append(ask)
    wishes = [BoundWish(ask.pending, ask.capability, _places(ask)) for ask in islice(bound, _BOUND_MAX)]
    wishes.append(BoundWish(sum(ask.pending for ask in bound[_BOUND_MAX:]), None, frozenset()))
    return Wishes(number, sizes, wishes)


def _places(ask: Ask) -> frozenset[str]:
    return frozenset(name for name in ask.counts if name != ANY_HOST and (name[0] != "/" or ask.allows(name)))
