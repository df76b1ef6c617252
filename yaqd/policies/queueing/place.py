"""Which node a task goes to, to start there or to wait: Yaq, section 3.2, Algorithm 1.

As long as more than `rf_min` of the cluster is free a task goes where it starts at once. Beyond that, or where it does
not fit, it goes to the node with the highest affinity / load; one with load 0 comes before any other.

A node is scored when it reports or is given something, not per task. A placement looks at the task's own hosts and at
the few least loaded nodes of its racks and of the cluster, so that its cost does not grow with the cluster; what it
places counts at once, or every task until the next report would go to the same node.
"""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from math import inf
from typing import Final

from yaqd.model import NodeId, Resource
from yaqd.model.values import value
from yaqd.policies.queueing import limits
from yaqd.policies.queueing.place_scores import (
    PLACES,
    Affinity,
    NodeReport,
    NodeView,
    Wanted,
    queueing_score,
    view,
)
from yaqd.policies.queueing.wait import wait_after_placing

#: the pool of all nodes; the others are named after their racks, whose names begin with a slash
_ALL: Final = ""
#: nodes looked at in each pool: more than one, because the best may have no room for this task, or be full of its like
_LOOKS: Final = 8


@value()
class Placement:
    node: NodeId
    #: False when it starts at once
    queues: bool
    #: what it will wait as far as anyone knows, s
    wait_s: float
    #: why there: `free` or the strategy's name
    rule: str


#: (load, - free memory, version, node)
_Entry = tuple[float, int, int, NodeId]


class _Pool:
    """Nodes by load: a heap in which a node's older entries are stale and dropped when they are met."""

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: list[_Entry] = []

    def least(self, count: int, versions: dict[NodeId, int]) -> list[NodeId]:
        kept: list[_Entry] = []
        while self.entries and len(kept) < count:
            entry = heappop(self.entries)
            if versions.get(entry[3]) == entry[2]:
                kept.append(entry)
        for entry in kept:
            heappush(self.entries, entry)
        return [entry[3] for entry in kept]

    def add(self, entry: _Entry, versions: dict[NodeId, int]) -> None:
        heappush(self.entries, entry)
        if len(self.entries) > 4 * len(versions) + 64:
            self.entries = [entry for entry in self.entries if versions.get(entry[3]) == entry[2]]
            heapify(self.entries)


class Placer:
    """The cluster as its nodes last described it, and where the next task goes."""

    def __init__(
        self,
        strategy: str = "wait",
        rf_min: float = 0.05,
        *,
        most_wait_s: float = inf,
        default_s: float = 30.0,
        affinity: Affinity | None = None,
    ) -> None:
        """`strategy` names one of PLACES (UnknownPolicy otherwise). No task is sent to a queue where it would wait
        `most_wait_s` or longer (WT_max); tasks without an estimate count for `default_s` while they wait."""
        self.strategy = strategy
        self._load, self._draws = PLACES[strategy].load, PLACES[strategy].draws
        self._rf_min = limits.fraction(rf_min, 0.05)
        self._most_wait_s = limits.threshold(most_wait_s)
        self._default_s = default_s
        self._affinity = affinity or Affinity()
        self._nodes: dict[NodeId, NodeView] = {}
        #: as scored last
        self._loads: dict[NodeId, float] = {}
        self._versions: dict[NodeId, int] = {}
        self._version = 0
        self._pools: dict[str, _Pool] = {_ALL: _Pool()}
        #: the nodes in a list to draw from, and each one's place in it
        self._listed: list[NodeId] = []
        self._places: dict[NodeId, int] = {}
        self._total = Resource()
        self._free = Resource()

    def __len__(self) -> int:
        return len(self._nodes)

    def __getitem__(self, node_id: NodeId) -> NodeView:
        return self._nodes[node_id]

    # What nodes say ---------------------------------------------------------------------------------------------------

    def report(self, report: NodeReport) -> None:
        """A node is there, or describes itself anew: what was placed on it before this is in the report."""
        before = self._nodes.get(report.node)
        if before is None:
            self._places[report.node] = len(self._listed)
            self._listed.append(report.node)
        else:
            self._total -= before.total
            self._free -= before.free
        node = self._nodes[report.node] = view(report, with_kinds=self._affinity.interference > 0.0)
        self._total += node.total
        self._free += node.free
        self._score(node)

    def remove(self, node_id: NodeId) -> None:
        node = self._nodes.pop(node_id, None)
        if node is None:
            return
        self._total -= node.total
        self._free -= node.free
        del self._versions[node_id], self._loads[node_id]
        last, place = self._listed.pop(), self._places.pop(node_id)
        if last != node_id:
            self._listed[place] = last
            self._places[last] = place

    def refresh(self) -> None:
        """Scores every node afresh; once in an interval, for strategies whose loads change between reports."""
        for pool in self._pools.values():
            pool.entries.clear()
        for node in self._nodes.values():
            self._score(node)

    def _score(self, node: NodeView) -> None:
        self._version += 1
        self._versions[node.node] = self._version
        load = self._loads[node.node] = max(0.0, limits.rank(self._load(node)))
        if self.may_queue(node) or (node.queued == 0 and node.free.memory_mb > 0):
            entry = (load, -node.free.memory_mb, self._version, node.node)
            self._pools[_ALL].add(entry, self._versions)
            self._pools.setdefault(node.rack, _Pool()).add(entry, self._versions)

    # Placing ----------------------------------------------------------------------------------------------------------

    @property
    def free_share(self) -> float:
        """The part of the cluster that is free, of memory or of cores, whichever is scarcer."""
        free, total = self._free, self._total
        pairs = ((free.memory_mb, total.memory_mb), (free.vcores, total.vcores))
        return min((part / whole for part, whole in pairs if whole > 0), default=0.0)

    def may_queue(self, node: NodeView) -> bool:
        """The bounds by length and by delay; and nothing waits where only what never ends could make room."""
        return node.queued < node.bound and node.wait_s < self._most_wait_s

    def place(self, wanted: Wanted, randrange: Callable[[int], int]) -> Placement | None:
        """The task's node, where it counts from now on; None when it starts nowhere and no queue takes it.

        `randrange(n)` draws from 0..n-1; only strategies that draw use it.
        """
        needed, affinity = wanted.resource, self._affinity
        near = self._near(wanted)
        if self.free_share > self._rf_min:
            free = [node for node in near if node.starts(needed)]
            if free:
                return self._put(max(free, key=lambda node: affinity.of(node, wanted)), wanted)
        nodes = near if self._draws is None else self._drawn(self._draws, needed, randrange)
        nodes = [node for node in nodes if self._takes(node, needed)]
        if not nodes:
            return None

        def score(node: NodeView) -> tuple[float, bool, float]:
            suits = affinity.of(node, wanted)
            return queueing_score(suits, self._loads[node.node]), node.starts(needed), suits

        return self._put(max(nodes, key=score), wanted)

    def _takes(self, node: NodeView, needed: Resource) -> bool:
        return node.starts(needed) or (self.may_queue(node) and needed.fits_in(node.total))

    def _near(self, wanted: Wanted) -> list[NodeView]:
        """The task's own hosts, and the least loaded of its racks and of all; each once, in this order."""
        found = dict.fromkeys(host for host in wanted.hosts if host in self._nodes)
        for name in (*wanted.racks, _ALL):
            pool = self._pools.get(name)
            if pool is not None:
                found.update(dict.fromkeys(pool.least(_LOOKS, self._versions)))
        return [self._nodes[node_id] for node_id in found]

    def _drawn(self, draws: int, needed: Resource, randrange: Callable[[int], int]) -> list[NodeView]:
        """So many different nodes that take the task, in so few tries that a full cluster costs no more."""
        drawn: dict[NodeId, NodeView] = {}
        for _ in range(_LOOKS * draws if self._listed else 0):
            node = self._nodes[self._listed[randrange(len(self._listed))]]
            if self._takes(node, needed):
                drawn[node.node] = node
                if len(drawn) == draws:
                    break
        return list(drawn.values())

    def _put(self, node: NodeView, wanted: Wanted) -> Placement:
        queues, waits = not node.starts(wanted.resource), 0.0
        if queues:
            waits = node.wait_s
            node.queued += 1
            node.wait_s = wait_after_placing(node.wait_s, wanted.estimate, self._default_s, node.slots)
        else:
            node.free -= wanted.resource
            self._free -= wanted.resource
        if wanted.kind:
            node.kinds[wanted.kind] += 1
        self._score(node)
        return Placement(node.node, queues, waits, self.strategy if queues else "free")
