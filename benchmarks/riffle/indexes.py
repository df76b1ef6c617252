"""Requests of nodes' shuffle services for indexes, where the indexes of a job may have no room in their caches.

Every reducer needs the index of each file that it reads from. An output's index and a merged file's have a cache each,
both of which forget what was used longest ago. Reducers come to a node's files in no common order: a cache hits for the
share of the indexes that it holds. The rest are read again, whole. What is longer than the longest read that counts as
one of a merger's counts for several.

Where a node has a merger it looks at what appears, and reads each index once for that too. It does so for jobs that are
left alone as well.
"""

from dataclasses import dataclass
from typing import Final

from riffle_merger.merger.requests import uniform_index
from riffle_merger.plan.buffers import BUFFER_BYTES
from riffle_merger.plan.counts import ReadCounter

#: as mergers read, at most: half of an input's buffers
READ_BYTES: Final = 2 * BUFFER_BYTES
#: of a partition in a merged index, its own and for each output, as stored; in memory, an output's more
_PARTITION_BYTES: Final = 16
_SEGMENT_BYTES: Final = 20
_MERGED_COST: Final = 330
#: in memory, of an output's index more
_COST: Final = 512


@dataclass(frozen=True, slots=True)
class IndexMemory:
    """Of a node, bytes, as shipped: `mapreduce.reduce.shuffle.indexcache.mb`, `yaq.riffle.shuffle.index-memory`."""

    outputs: int = 10 << 20
    merged: int = 16 << 20


#: every index is kept once it was read
ALL_AT_HAND: Final = IndexMemory(1 << 62, 1 << 62)


@dataclass(frozen=True, slots=True)
class _Indexes:
    """Of one kind, those of all nodes."""

    files: int
    #: of one
    stored_bytes: int
    cost_bytes: int

    @property
    def requests_each(self) -> int:
        return max(1, -(-self.stored_bytes // READ_BYTES))

    def served(self, reducers: int, nodes: int, memory_bytes: int) -> int:
        """Returns the requests while each reducer needs each of them."""
        needed = self.files / nodes * self.cost_bytes
        missed = max(0.0, 1 - memory_bytes / needed) if needed else 0.0
        return round(self.files * (1 + (reducers - 1) * missed)) * self.requests_each


def merged_index_bytes(outputs: int, partitions: int) -> tuple[int, int]:
    """Return how long a merged file's index is, without its names, and what it takes of a node's memory."""
    stored = partitions * (_PARTITION_BYTES + outputs * _SEGMENT_BYTES)
    return stored, stored + outputs * _MERGED_COST


def index_requests(counted: ReadCounter, nodes: int, *, looks: bool, memory: IndexMemory | None = None) -> int:
    """Return the requests beside the mergers' own. `looks`: nodes have mergers. Merged files are taken as equal."""
    kept, partitions = memory or IndexMemory(), counted.partitions
    stored = len(uniform_index(0, partitions).to_bytes())
    each = -(-(counted.outputs - counted.left_alone) // max(1, counted.merged_files))
    outputs = _Indexes(counted.left_alone, stored, stored + _COST)
    merged = _Indexes(counted.merged_files, *merged_index_bytes(each, partitions))
    served = outputs.served(partitions, nodes, kept.outputs) + merged.served(partitions, nodes, kept.merged)
    if not looks:
        return served
    return served + counted.outputs * outputs.requests_each + counted.merged_files * merged.requests_each
