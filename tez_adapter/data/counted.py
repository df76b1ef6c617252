"""How often each of many short texts occurred, for maps that yield the same over and over.

A Python dict of a hundred thousand words misses the cache several times per look-up. Here texts wait side by side in
buffers, each ended by a newline, and every million of them Arrow's dictionary finds the distinct ones: two to three
times faster than counting in a dict, in a quarter of the memory.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import cast

import numpy as np
import pyarrow as pa

from riffle_merger.format.columns import I64, U8, array_items, binary_array, offsets_of

_NEWLINE = 10
#: Buffered texts are counted when they fill this much; the distinct ones are looked up again each time.
_ROUND_BYTES = 16 * 1024 * 1024
#: Two offsets, or an offset and a count.
_ITEM_OVERHEAD_BYTES = 16


class CountedItems:
    """Byte strings with their number of occurrences, in order of first appearance."""

    def __init__(self, memory_bytes: int) -> None:
        self._round_bytes = min(_ROUND_BYTES, memory_bytes // 4)
        self._clear()

    @property
    def held_bytes(self) -> int:
        return self._buffered_bytes + self._distinct_bytes

    @property
    def distinct(self) -> int:
        """How many are distinct, of those counted so far."""
        return len(self._counts)

    def add(self, data: U8, offsets: I64) -> bool:
        """Count each item once more; the data is kept until the next round.

        Returns whether a round of counting has just ended.
        """
        self._buffered.append(binary_array(data, offsets))
        self._buffered_bytes += int(offsets[-1] - offsets[0]) + _ITEM_OVERHEAD_BYTES * (len(offsets) - 1)
        if self._buffered_bytes <= self._round_bytes:
            return False
        self._count()
        return True

    def drain(self) -> tuple[U8, I64, I64]:
        """Return data and offsets of the distinct items, and their counts; nothing is held afterwards."""
        self._count()
        distinct, counts = self._distinct, self._counts
        self._clear()
        if distinct is None:
            return np.empty(0, dtype=np.uint8), np.zeros(1, dtype=np.int64), counts
        return *array_items(distinct), counts

    def _clear(self) -> None:
        self._buffered: list[pa.LargeBinaryArray] = []
        self._buffered_bytes = 0
        self._distinct: pa.LargeBinaryArray | None = None
        self._distinct_bytes = 0
        self._counts: I64 = np.empty(0, dtype=np.int64)

    def _count(self) -> None:
        """Make the buffered items part of the distinct ones."""
        if not self._buffered:
            return
        known = len(self._counts)
        parts = self._buffered if self._distinct is None else [self._distinct, *self._buffered]
        encoded = pa.concat_arrays(parts).dictionary_encode()
        # The distinct items come first and are in order, so their codes are 0, 1, 2 ...
        counts = np.bincount(encoded.indices.to_numpy()[known:], minlength=len(encoded.dictionary))
        counts[:known] += self._counts
        self._buffered, self._buffered_bytes = [], 0
        self._distinct, self._counts = encoded.dictionary, counts
        _, offsets = array_items(encoded.dictionary)
        self._distinct_bytes = int(offsets[-1] - offsets[0]) + _ITEM_OVERHEAD_BYTES * len(counts)


class CountedKeys:
    """Keys of one type, str or bytes, with their number of occurrences. A held item is the key's bytes and a
    newline.
    """

    def __init__(self, kind: type[str] | type[bytes], memory_bytes: int) -> None:
        #: Exactly this type: the caller has looked.
        self.kind = kind
        self._is_text = kind is str
        self._items = CountedItems(memory_bytes)

    @property
    def held_bytes(self) -> int:
        return self._items.held_bytes

    def add(self, keys: list[str] | list[bytes]) -> None:
        """Count each key once more. UnicodeEncodeError, before anything is counted, for a str that UTF-8 cannot
        carry.
        """
        buffer = np.frombuffer(self._joined(keys), dtype=np.uint8)
        offsets = line_offsets(buffer)
        if len(offsets) - 1 != len(keys):  # some key has newlines of its own
            lengths = [len(self._encoded(key)) + 1 for key in keys]
            offsets = offsets_of(np.array(lengths, dtype=np.int64))
        self._items.add(buffer, offsets)

    def drain(self) -> Iterator[tuple[str | bytes, int]]:
        """Yield every distinct key with its count; nothing is held afterwards."""
        data, offsets, counts = self._items.drain()
        whole = data.tobytes()
        for (start, stop), count in zip(pairwise(offsets.tolist()), counts.tolist(), strict=True):
            key = whole[start : stop - 1]
            yield (key.decode("utf-8", "surrogateescape") if self._is_text else key), count

    def _joined(self, keys: list[str] | list[bytes]) -> bytes:
        if not self._is_text:
            return b"\n".join(cast(list[bytes], keys)) + b"\n"
        return self._encoded("\n".join(cast(list[str], keys)) + "\n")

    def _encoded(self, key: str | bytes) -> bytes:
        """As keys are serialized: bytes that came in through surrogateescape go out as they were."""
        if isinstance(key, bytes):
            return key
        try:
            return key.encode()
        except UnicodeEncodeError:
            return key.encode("utf-8", "surrogateescape")


def line_offsets(buffer: U8) -> I64:
    """Return the offsets of the lines of a buffer that ends with a newline, newlines included."""
    ends = np.flatnonzero(buffer == _NEWLINE)
    offsets = np.empty(len(ends) + 1, dtype=np.int64)
    offsets[0] = 0
    np.add(ends, 1, out=offsets[1:])
    return offsets
