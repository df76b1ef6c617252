"""Which node a task goes to that has to wait: Yaq, section 3.2, Algorithm 1.

To the node with the highest affinity / load; one with load 0 comes before any other. `choose` says so of any nodes, and
`Placer` finds those worth a look among many: a node is scored when something about it changes, not per task, and kept
in a heap by load (or in a list to draw from), so that a placement costs the same however large the cluster is.

Whoever keeps nodes hands in its own kind of them: the scheduler's node queues, the nodes that a ResourceManager
published, or a test's.
"""

from collections.abc import Callable, Hashable, Iterable
from heapq import heapify, heappop, heappush
from math import inf
from typing import Final, Generic, TypeVar

from yaqd.policies.queueing import limits
from yaqd.policies.queueing.place_scores import PLACES, Affinity, Contender, NodeLoad, PlaceStrategy

N = TypeVar("N", bound=Hashable)
#: load, length, name, number, node
_Entry = tuple[float, int, str, int, N]

#: nodes refused (blacklisted, too small) before a search gives up
_REFUSALS_MAX: Final = 64
#: tries for each node to be drawn, so that a full cluster costs no more than an empty one
_TRIES: Final = 8
#: Knuth's linear congruential generator: who is told the same decides the same
_FACTOR: Final = 6364136223846793005
_STEP: Final = 1442695040888963407
_MASK: Final = (1 << 64) - 1


def load_of(strategy: PlaceStrategy, node: NodeLoad) -> float:
    """Return a node's load, 0 for none; what says nothing counts as inf."""
    return max(0.0, limits.rank(strategy.load(node)))


def choose(nodes: Iterable[tuple[N, float, float, int]]) -> N | None:
    """Algorithm 1 over nodes that would all take the task, each with its affinity in (0, 1], its load, and how many
    tasks wait there: the highest affinity / load, then affinity, then the shorter queue, then the first."""
    best: N | None = None
    best_score, best_affinity, best_queued = -1.0, 0.0, 0
    for node, affinity, load, queued in nodes:
        score = affinity / load if load > 0 else inf
        if score < best_score:
            continue
        if score > best_score or (affinity, -queued) > (best_affinity, -best_queued):
            best, best_score, best_affinity, best_queued = node, score, affinity, queued
    return best


def best_place(strategy: PlaceStrategy, affinity: Affinity, nodes: Iterable[Contender[N]]) -> Contender[N] | None:
    """Return where a task waits least, nearness and its likes weighed in; None: nowhere, there are no nodes."""
    return choose(
        [
            (
                one,
                affinity.worth(one.near, one.alike, one.load.slots),
                0.0 if one.starts else load_of(strategy, one.load),
                one.behind,
            )
            for one in nodes
        ]
    )


class Placer(Generic[N]):
    """The nodes where something may wait, as they were scored last."""

    def __init__(self, strategy: str = "wait") -> None:
        """`strategy` names one of PLACES; UnknownPolicy otherwise."""
        self.strategy: Final = strategy
        self._policy: Final = PLACES[strategy]
        #: a heap; an entry that is not its node's any more is dropped when it is met
        self._entries: list[_Entry[N]] = []
        #: each node's own
        self._current: dict[N, _Entry[N]] = {}
        self._number = 0
        #: the same nodes in a list to draw from, and each one's place in it, where the strategy draws
        self._listed: list[N] = []
        self._places: dict[N, int] = {}
        self._state = 1

    def __contains__(self, node: N) -> bool:
        return node in self._current

    def load(self, node: NodeLoad) -> float:
        return load_of(self._policy, node)

    def put(self, node: N, name: str, load: NodeLoad) -> None:
        """Note that the node takes tasks, and is as loaded as this from now on; of equal ones the first by name goes
        first."""
        self.put_scored(node, name, self.load(load) if self._policy.draws is None else 0.0, load.queued)

    def put_scored(self, node: N, name: str, score: float, queued: int) -> None:
        """Do the same where `load` has said how loaded the node is."""
        known = self._current.get(node)
        if self._policy.draws is not None:
            if known is None:
                self._current[node] = (0.0, 0, name, 0, node)
                self._places[node] = len(self._listed)
                self._listed.append(node)
            return
        if known is not None and known[0] == score and known[1] == queued:
            return  # it has its place already
        self._number += 1
        entry = self._current[node] = (score, queued, name, self._number, node)
        if len(self._entries) > 64 + 4 * len(self._current):
            self._entries = [one for one in self._entries if self._is_current(one)]
            heapify(self._entries)
        heappush(self._entries, entry)

    def remove(self, node: N) -> None:
        """Note that the node takes nothing, for now or for good."""
        if self._current.pop(node, None) is None or self._policy.draws is None:
            return
        last, place = self._listed.pop(), self._places.pop(node)
        if last != node:
            self._listed[place] = last
            self._places[last] = place

    def candidates(self, accepts: Callable[[N], bool], most: int) -> list[N]:
        """Return those to choose among: up to `most` with the least load, least first, or as many as the strategy
        draws."""
        draws = self._policy.draws
        return self._least(accepts, most) if draws is None else self._drawn(accepts, draws)

    def _least(self, accepts: Callable[[N], bool], most: int) -> list[N]:
        while most == 1 and self._entries:
            entry = self._entries[0]
            if not self._is_current(entry):
                heappop(self._entries)
            elif accepts(entry[4]):
                return [entry[4]]
            else:
                break
        found: list[N] = []
        seen: list[tuple[float, int, str, int, N]] = []
        while self._entries and len(found) < most and len(seen) < most + _REFUSALS_MAX:
            entry = heappop(self._entries)
            if not self._is_current(entry):
                continue
            seen.append(entry)
            if accepts(entry[4]):
                found.append(entry[4])
        for entry in seen:
            heappush(self._entries, entry)
        return found

    def _is_current(self, entry: _Entry[N]) -> bool:
        """Tell whether the node still stands where this entry has it."""
        known = self._current.get(entry[4])
        return known is not None and known[3] == entry[3]

    def _drawn(self, accepts: Callable[[N], bool], draws: int) -> list[N]:
        found: dict[N, None] = {}
        for _ in range(_TRIES * draws if self._listed else 0):
            self._state = (self._state * _FACTOR + _STEP) & _MASK
            node = self._listed[(self._state >> 33) % len(self._listed)]
            if accepts(node):
                found[node] = None
                if len(found) == draws:
                    break
        return list(found)

    def validate(self) -> None:
        """Assert every invariant."""
        if self._policy.draws is None:
            found = [entry[4] for entry in self._entries if self._is_current(entry)]
            assert len(found) == len(self._current)
            return
        assert sorted(self._places.values()) == list(range(len(self._listed)))
        assert all(self._listed[place] == node for node, place in self._places.items())
        assert self._current.keys() == self._places.keys()
