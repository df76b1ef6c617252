"""What a merger asks of its disk for a merge: its windows planned as it plans them, and nothing read.

Outputs are taken to have blocks of one size, as far as that goes; then these are the numbers that the merge itself will
count (`Merged.reads`, `Merged.writes`), indexes included.
"""

import mmap
from collections.abc import Sequence
from itertools import pairwise

from riffle_merger.format.index import IndexEntry, SpillIndex
from riffle_merger.merger.merge import halves, memory_for
from riffle_merger.merger.pool import BufferPool
from riffle_merger.merger.window import Counts, Input, Windows, requests_of
from riffle_merger.plan.buffers import BUFFER_BYTES


class MergerRequests:
    """What a merger with this budget, for as many merges at one time, asks of its disk."""

    def __init__(self, budget_bytes: int, at_once: int, *, buffer_bytes: int = BUFFER_BYTES) -> None:
        self._budget_bytes, self._at_once = budget_bytes, at_once
        self._pool = BufferPool(budget_bytes, buffer_bytes=buffer_bytes)
        self._known: dict[tuple[tuple[int, ...], int], tuple[int, int]] = {}

    def of_merge(self, sizes: Sequence[int], partitions: int) -> tuple[int, int]:
        """Reads and writes of a merge of outputs that have so many stored bytes. Merges of one kind are planned once.
        Raises NotMergeable."""
        kind = (tuple(sizes), partitions)
        if kind not in self._known:
            self._known[kind] = self._planned(*kind)
        return self._known[kind]

    def buffers(self, sizes: Sequence[int], partitions: int) -> int:
        """Returns how many buffers a merge takes. Raises NotMergeable."""
        index_bytes = len(sizes) * len(uniform_index(0, partitions).to_bytes())
        return memory_for(len(sizes), sum(sizes), index_bytes, self._pool, self._budget_bytes, self._at_once).buffers

    def _planned(self, sizes: tuple[int, ...], partitions: int) -> tuple[int, int]:
        indexes = {size: uniform_index(size, partitions) for size in set(sizes)}
        windows = Windows([Input("", -1, indexes[size]) for size in sizes], Counts())
        # they are not touched, so there is no memory behind them
        both = halves([mmap.mmap(-1, self._pool.buffer_bytes) for _ in range(self.buffers(sizes, partitions))])
        reads, writes, turn = len(sizes), 1, 0  # the indexes are read, and the merged one is written
        while (window := windows.plan(both[turn])) is not None:
            of_window = requests_of(window)
            reads, writes, turn = reads + of_window[0], writes + of_window[1], 1 - turn
        return reads, writes


def uniform_index(size: int, partitions: int) -> SpillIndex:
    """Makes the index of an output with blocks as equal as whole bytes can be."""
    bounds = [size * number // partitions for number in range(partitions + 1)]
    return SpillIndex(IndexEntry(at, end - at, end - at) for at, end in pairwise(bounds))
