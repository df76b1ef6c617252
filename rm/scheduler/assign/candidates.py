"""Queues that an ask may wait in, found once for all its containers.

An ask that prefers places names hosts, and the queue of each is looked at. Of its racks and of all nodes the least
loaded queue is known (`rm.scheduler.node_queues.table`). While containers of the ask are sent to wait, only those
queues change that got one. So only these are looked at again, and racks and all nodes when a row is used up.
"""

from collections.abc import Callable
from itertools import islice
from typing import Final

from rm.scheduler.node_queues.table import NodeQueues
from rm.scheduler.view.node import NodeQueue, NodeView
from rm.scheduler.view.node_table import NodeTable
from yaqd.model import ANY_HOST, ApplicationId
from yaqd.policies.asks.rows import Locality
from yaqd.policies.asks.table import Ask

#: how many racks, nodes of a host, and least loaded of all nodes (where what runs there counts) are looked at
_COMPARED: Final = 8
_HOSTS_LOOKED_AT: Final = 16

#: queue, affinity, load, how many wait
Candidate = tuple[NodeQueue, float, float, int]
_Key = NodeQueue | str | int


class Candidates:
    def __init__(
        self, nodes: NodeTable, queues: NodeQueues, app_id: ApplicationId, ask: Ask, accepts: Callable[[NodeView], bool]
    ) -> None:
        self._nodes = nodes
        self._queues = queues
        self._app_id = app_id
        self._ask = ask
        self._accepts = accepts
        #: of nodes that differ by nothing but how near they are
        self._affinity = queues.nearness
        #: rows of the ask when they were looked at
        self._rows = -1
        #: by preferred host's queue, by rack, and for all nodes by number; those where nothing may wait are None
        self._found: dict[_Key, Candidate | None] = {}
        # Where nodes differ by nothing but load, the least loaded of all is the best that no preferred place is.
        self._of_all = range(_COMPARED if self._affinity is None else 1)

    def all(self) -> list[Candidate]:
        """List all candidates, preferred hosts first, then racks."""
        if len(self._ask.counts) != self._rows:
            self._look()
        return [candidate for candidate in self._found.values() if candidate is not None]

    def changed(self, queue: NodeQueue) -> None:
        """Look again at the queue and the others of its host. One more waits in it, and the ask may want nothing more
        on the host."""
        host, found = queue.node.id.host, self._found
        there = [k for k, one in found.items() if one is not None and (one[0] is queue or one[0].node.id.host == host)]
        for key in there:
            found[key] = self._find(key)

    def _look(self) -> None:
        """Look at what the ask names; at its hosts as far as they were not looked at before."""
        ask, nodes, before = self._ask, self._nodes, self._found
        counts = ask.counts
        self._rows = len(counts)
        keys: list[_Key] = []
        if ask.prefers_places:
            for host in islice(filter(_is_host, counts), _HOSTS_LOOKED_AT):
                keys += [node.queue for node in islice(nodes.at(host), _COMPARED) if node.queue.is_filled]
            racks = islice(filter(lambda n: n[0] == "/" and n not in ask.strict, counts), _COMPARED)
            keys += [rack for rack in racks if nodes.has_place(rack)]
        if ask.allows(ANY_HOST):
            keys += self._of_all
        # another node's worth may have depended on a row that is used up
        self._found = {
            key: before[key] if isinstance(key, NodeQueue) and key in before else self._find(key) for key in keys
        }

    def _find(self, key: _Key) -> Candidate | None:
        queue: NodeQueue | None = None
        if isinstance(key, NodeQueue):
            queue = key if self._queues.open.has_room(key) and self._accepts(key.node) else None
        elif isinstance(key, str):
            queue = self._queues.open.best_of(key, self._nodes.at(key), self._accepts)
        else:
            best = self._queues.open.best(self._accepts, len(self._of_all))
            queue = best[key] if key < len(best) else None
        return self._candidate(queue) if queue is not None else None

    def _candidate(self, queue: NodeQueue) -> Candidate:
        node, queues = queue.node, self._queues
        near = self._ask.locality(node.id.host, node.rack) or Locality.NONE
        if self._affinity is not None:
            affinity = self._affinity.worth(near, 0, 0)
        else:
            affinity = queues.affinity(queue, near, self._app_id, self._ask.key[0])
        load = queue.score
        return queue, affinity, load if load is not None else queues.open.load(queue), queue.length


def _is_host(name: str) -> bool:
    return name[0] != "/" and name != ANY_HOST
