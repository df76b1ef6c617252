"""Which reducer gets a key. Fixed functions of the key's bytes, so that every process agrees (`hash()` would not)."""

import zlib
from bisect import bisect_right
from collections.abc import Callable, Sequence
from operator import index
from typing import Protocol

import numpy as np
import numpy.typing as npt

from riffle_merger.format.columns import I64, U8, item_list
from tez_adapter.data.order import prefixes

Partitions = npt.NDArray[np.int64]
I8 = npt.NDArray[np.int8]

#: Keys up to this length are hashed together, a byte at a time; longer ones key by key.
_COLUMN_WIDTH_MAX = 24
#: Bytes of keys that TextPartitioner hashes together, and then of each longer one at once.
_COLUMNS_MAX = 4096
_POWERS_MAX = 4096
_SLICE_KEYS = 16 * 1024


class Partitioner(Protocol):
    def partition(self, data: U8, offsets: I64, partitions: int) -> Partitions:
        """Return the partition, 0 to `partitions` - 1, of each key."""
        ...


class HashPartitioner:
    """CRC-32 of the key, modulo the number of partitions."""

    def partition(self, data: U8, offsets: I64, partitions: int) -> Partitions:
        if partitions == 1:
            return np.zeros(len(offsets) - 1, dtype=np.int64)
        return (_crc32(data, offsets) % np.uint32(partitions)).astype(np.int64)


class TextPartitioner:
    """Hadoop's HashPartitioner for Text keys: where Hadoop Streaming sends the same bytes."""

    def partition(self, data: U8, offsets: I64, partitions: int) -> Partitions:
        if partitions == 1:
            return np.zeros(len(offsets) - 1, dtype=np.int64)
        return (_text_hashes(data, offsets) & np.int32(0x7FFFFFFF)).astype(np.int64) % partitions


class RangePartitioner:
    """Total order: partition i holds the keys below boundary i that are not below boundary i - 1."""

    def __init__(self, boundaries: Sequence[bytes]) -> None:
        self.boundaries = list(boundaries)
        if any(low > high for low, high in zip(self.boundaries, self.boundaries[1:], strict=False)):
            raise ValueError("range boundaries must ascend")
        words = [int.from_bytes(key[:8].ljust(8, b"\0"), "big") for key in self.boundaries]
        self._words = np.array(words, dtype=np.uint64)

    def partition(self, data: U8, offsets: I64, partitions: int) -> Partitions:
        if len(self.boundaries) >= partitions:
            raise ValueError(f"{len(self.boundaries)} boundaries make more than {partitions} partitions")
        words = prefixes(data, offsets)
        low = np.searchsorted(self._words, words, side="left").astype(np.int64)
        high = np.searchsorted(self._words, words, side="right")
        for i in np.flatnonzero(low != high).tolist():
            low[i] = bisect_right(self.boundaries, data[offsets[i] : offsets[i + 1]].tobytes())
        return low


class KeyPartitioner:
    """A user's function of one encoded key; `partition(key, partitions) -> int`."""

    def __init__(self, function: Callable[[bytes, int], int]) -> None:
        self._function = function

    def partition(self, data: U8, offsets: I64, partitions: int) -> Partitions:
        function = self._function
        chosen = [function(key, partitions) for key in item_list(data, offsets)]
        if not {int, bool}.issuperset(map(type, chosen)):
            chosen = [_whole_number(number) for number in chosen]
        result = np.array(chosen, dtype=np.int64) if chosen else np.empty(0, dtype=np.int64)
        if len(result) and (int(result.min()) < 0 or int(result.max()) >= partitions):
            wrong = int(result.min()) if int(result.min()) < 0 else int(result.max())
            raise ValueError(
                f"partition() returned {wrong}; with {partitions} reduces it must return 0 to {partitions - 1}"
            )
        return result


def _whole_number(number: object) -> int:
    try:
        return index(number)  # type: ignore[arg-type]
    except TypeError as error:
        raise ValueError(f"partition() returned {number!r}, which is not a whole number") from error


def boundaries_from_sample(keys: Sequence[bytes], partitions: int) -> list[bytes]:
    """Return `partitions` - 1 ascending boundaries that cut the sampled keys into equal parts.

    There are fewer where keys are few.
    """
    ordered = sorted(keys)
    if not ordered:
        return []
    cuts = [ordered[len(ordered) * i // partitions] for i in range(1, partitions)]
    return list(dict.fromkeys(cuts))


def _crc32(data: U8, offsets: I64) -> npt.NDArray[np.uint32]:
    """The CRC-32 of each key, in slices whose temporary arrays stay in the cache."""
    count = len(offsets) - 1
    result = np.empty(count, dtype=np.uint32)
    for first in range(0, count, _SLICE_KEYS):
        part = offsets[first : first + _SLICE_KEYS + 1]
        lengths = np.diff(part)
        if int(lengths.max()) <= _COLUMN_WIDTH_MAX:
            crc = _crc32_by_column(data, part[:-1], lengths)
        else:
            crc = np.fromiter(map(zlib.crc32, item_list(data, part)), dtype=np.uint32, count=len(lengths))
        result[first : first + len(crc)] = crc
    return result


def _crc32_by_column(data: U8, starts: I64, lengths: I64) -> npt.NDArray[np.uint32]:
    crc = np.full(len(starts), 0xFFFFFFFF, dtype=np.uint32)
    shortest = int(lengths.min())
    for column in range(int(lengths.max())):
        at = starts + column
        if column < shortest:
            crc = _CRC_TABLE[(crc & np.uint32(0xFF)) ^ data[at]] ^ (crc >> np.uint32(8))
        else:
            has_byte = lengths > column
            byte = data[np.where(has_byte, at, 0)]
            crc = np.where(has_byte, _CRC_TABLE[(crc & np.uint32(0xFF)) ^ byte] ^ (crc >> np.uint32(8)), crc)
    return crc ^ np.uint32(0xFFFFFFFF)


def _crc_table() -> npt.NDArray[np.uint32]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> np.uint32(1)) ^ np.uint32(0xEDB88320), table >> np.uint32(1))
    return table.astype(np.uint32)


_CRC_TABLE = _crc_table()


def _text_hashes(data: U8, offsets: I64) -> npt.NDArray[np.int32]:
    """Text.hashCode of each key: h = 31 * h + signed byte, from 1, in 32 bits that wrap."""
    signed = data.view(np.int8)
    hashes = np.empty(len(offsets) - 1, dtype=np.int32)
    for first in range(0, len(hashes), _SLICE_KEYS):
        part = offsets[first : first + _SLICE_KEYS + 1]
        lengths = np.diff(part)
        hashes[first : first + len(lengths)] = _text_hashes_by_column(signed, part[:-1], lengths)
    return hashes


def _text_hashes_by_column(signed: I8, starts: I64, lengths: I64) -> npt.NDArray[np.int32]:
    """All keys take their next byte together; the longest, once they are few, go on one by one."""
    narrow = np.minimum(lengths, _COLUMNS_MAX).astype(np.uint16)
    # Longest first, so that those with a next byte stand at the front; 16-bit numbers are radix-sorted.
    order = np.argsort(_COLUMNS_MAX - narrow, kind="stable")
    at, ends = starts[order], (starts + lengths)[order]
    with_byte = len(starts) - np.cumsum(np.bincount(narrow))[:-1]
    # A key by itself costs about as much as a step with few keys.
    few = np.flatnonzero(with_byte <= np.arange(len(with_byte), 0, -1))
    steps = int(few[0]) if len(few) else len(with_byte)
    found = np.ones(len(starts), dtype=np.int32)
    for count in with_byte[:steps].tolist():
        hashes = found[:count]
        hashes *= np.int32(31)
        hashes += signed[at[:count]]
        at += 1
    for i in range(int(np.count_nonzero(lengths > steps))):
        found[i : i + 1] = _text_hash(signed[at[i] : ends[i]], found[i : i + 1])
    result = np.empty_like(found)
    result[order] = found
    return result


def _text_hash(rest: I8, begun: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Goes on with one key, in blocks: each byte counts times the power of 31 for the bytes after it."""
    for start in range(0, len(rest), _POWERS_MAX):
        block = rest[start : start + _POWERS_MAX].astype(np.int32)
        begun = begun * _POWERS[len(block)] + np.dot(block, _POWERS[len(block) - 1 :: -1])
    return begun


#: 31 to the power of 0 and so on, in 32 bits
_POWERS = np.cumprod(np.array([1] + [31] * _POWERS_MAX, dtype=np.int32), dtype=np.int32)
