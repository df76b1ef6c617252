"""What one call of a master finds out while nodes are looked for for its opportunistic containers, and how far it goes.

An attempt may want a hundred thousand containers, each somewhere else, of which no node takes any. What was found full
is not looked at again. After so many nodes or so many asks in vain the call is answered. The master's next call goes on
there, so that what cannot be placed hides nothing for long.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from operator import attrgetter
from typing import Final

from rm.scheduler.view.node import NodeQueue
from yaqd.model import ANY_HOST, Resource
from yaqd.policies.asks.rows import Locality
from yaqd.policies.asks.table import Ask

#: asks that may find no node, each for something else, in one call
_MISSES_MAX: Final = 1000
#: nodes, and names without one, that are looked at in one call; what an ask finds with its last looks it gets
_LOOKS_MAX: Final = 100_000


class Search:
    """Within one call nodes only fill, so what takes nothing now takes nothing of it later."""

    def __init__(
        self, at: Callable[[str], Iterable[NodeQueue]], takes: Callable[[NodeQueue, Resource, float], bool]
    ) -> None:
        """`at`: the nodes of a host or rack; `takes`: may one so large that may wait for so long, s, go there?"""
        self._at = at
        self._takes = takes
        self._looks = 0
        self._missed: set[Hashable] = set()
        #: hosts and racks where nothing takes one so large that may wait for so long, s
        self._full: set[tuple[str, Resource, float]] = set()
        #: no node at all takes anything: all would be looked at each time to find that out
        self._all_full = False

    @property
    def is_over(self) -> bool:
        return len(self._missed) >= _MISSES_MAX or self._looks >= _LOOKS_MAX

    def is_new(self, ask: Ask, wait_limit_s: float) -> bool:
        """Tell whether no ask for the same has found nothing yet. There may be a hundred thousand of them."""
        return _wish(ask, wait_limit_s) not in self._missed

    def missed(self, ask: Ask, wait_limit_s: float) -> None:
        self._missed.add(_wish(ask, wait_limit_s))

    def takers(
        self, ask: Ask, wait_limit_s: float, least_loaded: Callable[[], Iterable[NodeQueue]]
    ) -> Iterator[tuple[Locality, list[NodeQueue]]]:
        """Yield the nodes that take one: on its hosts, then in its racks, each in the order in which they joined.

        Those of the least loaded ones come last, if the ask allows them.
        """
        hosts = [name for name in ask.counts if name != ANY_HOST and name[0] != "/"]
        racks = [name for name in ask.counts if name[0] == "/" and ask.allows(name)]
        for locality, names in ((Locality.NODE, hosts), (Locality.RACK, racks)):
            if names:
                here = (load for name in names for load in self._takers_at(name, ask, wait_limit_s))
                yield locality, sorted(here, key=_number)
        if ask.allows(ANY_HOST):
            away = Locality.OFF_SWITCH if ask.prefers_places else Locality.NONE
            loads = [] if self._all_full else list(least_loaded())
            self._all_full = not loads
            yield away, self._those(loads, ask, wait_limit_s)

    def _takers_at(self, name: str, ask: Ask, wait_limit_s: float) -> list[NodeQueue]:
        key = (name, ask.capability, wait_limit_s)
        taking = self._those(self._at(name) if key not in self._full else (), ask, wait_limit_s)
        if not taking:
            self._full.add(key)
        return taking

    def _those(self, loads: Iterable[NodeQueue], ask: Ask, wait_limit_s: float) -> list[NodeQueue]:
        loads = list(loads)
        self._looks += 1 + len(loads)
        return [load for load in loads if self._takes(load, ask.capability, wait_limit_s)]


_number: Callable[[NodeQueue], int] = attrgetter("node.number")


def _wish(ask: Ask, wait_limit_s: float) -> Hashable:
    return ask.capability, frozenset(ask.counts), frozenset(ask.strict), wait_limit_s
