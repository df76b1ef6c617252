"""Nodes' queues by how long a newcomer would wait there: the best few are found at one cost however many there are.

A heap in which a queue's older entries are stale: they are skipped when they are met, and dropped when there are more
of them than of the others.
"""

import heapq
from collections.abc import Callable
from typing import Final

from rm.scheduler.node_queue import NodeQueue

#: queues refused (full, their node blacklisted or too small) before a search gives up
_REFUSALS_MAX: Final = 64
#: stale entries that are no reason to look for them
_STALE_MAX: Final = 64

#: load, length, node, turn (an entry with another turn than its queue's is stale), and whose it is
Entry = tuple[float, int, str, int, NodeQueue]


class QueuePool:
    __slots__ = ("_entries", "_most")

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._most = _STALE_MAX

    def add(self, entry: Entry) -> None:
        if len(self._entries) > self._most:
            self._entries = [entry for entry in self._entries if entry[3] == entry[4].turn]
            heapq.heapify(self._entries)
            self._most = _STALE_MAX + 4 * len(self._entries)
        heapq.heappush(self._entries, entry)

    def clear(self) -> None:
        self._entries.clear()

    def best(self, accepts: Callable[[NodeQueue], bool], most: int) -> list[NodeQueue]:
        """Up to so many that are accepted, the least load first."""
        entries = self._entries
        found: list[NodeQueue] = []
        seen: list[Entry] = []
        while entries and len(found) < most and len(seen) < most + _REFUSALS_MAX:
            entry = heapq.heappop(entries)
            queue = entry[4]
            if entry[3] == queue.turn:
                seen.append(entry)
                if accepts(queue):
                    found.append(queue)
        for entry in seen:
            heapq.heappush(entries, entry)
        return found

    def entered(self, queue: NodeQueue) -> int:
        """Its entries that are not stale."""
        return sum(1 for entry in self._entries if entry[4] is queue and entry[3] == queue.turn)
