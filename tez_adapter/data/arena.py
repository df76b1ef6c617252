"""A bounded buffer of pairs in columns: where a map task's output waits for its sort.

The arrays are reserved at full size but their pages are only taken when first written, so a small task stays small;
they are reused after each spill. Sorted output is gathered block by block, so that no second copy of the data is ever
made.
"""

from collections.abc import Iterator

import numpy as np

from riffle_merger.format.columns import I64, U8, Columns, ItemTaker
from riffle_merger.format.segment import BLOCK_BYTES, block_bounds

#: What a pair costs beyond its bytes: two offsets here; while sorting, two words, two orders and two partition numbers.
RECORD_OVERHEAD_BYTES = 64


class Arena:
    """Pairs appended in batches until `memory_bytes` are used up."""

    def __init__(self, memory_bytes: int) -> None:
        self.memory_bytes = memory_bytes
        capacity = memory_bytes // RECORD_OVERHEAD_BYTES + 1
        self._keys = np.empty(memory_bytes, dtype=np.uint8)
        self._values = np.empty(memory_bytes, dtype=np.uint8)
        self._key_offsets = np.zeros(capacity + 1, dtype=np.int64)
        self._value_offsets = np.zeros(capacity + 1, dtype=np.int64)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def used_bytes(self) -> int:
        data = int(self._key_offsets[self._count] + self._value_offsets[self._count])
        return data + self._count * RECORD_OVERHEAD_BYTES

    def append(self, batch: Columns, start: int) -> int:
        """Copy pairs from `start` on, as many as fit; the position of the first that did not."""
        free = self.memory_bytes - self.used_bytes
        stop = _fitting(batch, start, free)
        if stop == start:
            return start
        self._copy(batch.keys, batch.key_offsets[start : stop + 1], self._keys, self._key_offsets)
        self._copy(batch.values, batch.value_offsets[start : stop + 1], self._values, self._value_offsets)
        self._count += stop - start
        return stop

    def columns(self) -> Columns:
        """Return all pairs in order of arrival, as views that the next `clear` invalidates."""
        key_offsets = self._key_offsets[: self._count + 1]
        value_offsets = self._value_offsets[: self._count + 1]
        return Columns(
            self._keys[: int(key_offsets[-1])], key_offsets, self._values[: int(value_offsets[-1])], value_offsets
        )

    def clear(self) -> None:
        self._count = 0

    def _copy(self, data: U8, offsets: I64, into: U8, into_offsets: I64) -> None:
        first, last = int(offsets[0]), int(offsets[-1])
        base = int(into_offsets[self._count])
        into[base : base + last - first] = data[first:last]
        np.add(offsets[1:], base - first, out=into_offsets[self._count + 1 : self._count + len(offsets)])


class Gatherer:
    """Copies pairs in any order, in blocks ready to be written. Prepared once for all partitions of a batch."""

    def __init__(self, columns: Columns, block_bytes: int = BLOCK_BYTES) -> None:
        self._keys = ItemTaker(columns.keys, columns.key_offsets)
        self._values = ItemTaker(columns.values, columns.value_offsets)
        self._block_bytes = block_bytes
        self._pair_bytes: int | None = None
        self._sizes: I64 | None = None
        if self._keys.width is not None and self._values.width is not None:
            self._pair_bytes = self._keys.width + self._values.width
        else:
            self._sizes = np.diff(columns.key_offsets) + np.diff(columns.value_offsets)

    def blocks(self, order: I64) -> Iterator[Columns]:
        """Yield the pairs in the given order, in blocks."""
        if self._sizes is not None:
            sizes = self._sizes[order]
        else:
            sizes = np.full(len(order), self._pair_bytes, dtype=np.int64)
        for start, stop in block_bounds(sizes, self._block_bytes):
            part = order[start:stop]
            yield Columns(*self._keys.take(part), *self._values.take(part))


def _fitting(batch: Columns, start: int, free: int) -> int:
    """The largest `stop` such that pairs `start` to `stop` cost at most `free` bytes."""

    def cost(stop: int) -> int:
        data = (batch.key_offsets[stop] - batch.key_offsets[start]) + (
            batch.value_offsets[stop] - batch.value_offsets[start]
        )
        return int(data) + (stop - start) * RECORD_OVERHEAD_BYTES

    low, high = start, len(batch)
    if cost(high) <= free:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if cost(middle) <= free:
            low = middle
        else:
            high = middle - 1
    return low
