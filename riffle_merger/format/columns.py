"""A batch of encoded key/value pairs as four arrays, the unit in which the data path works.

Python spends about a hundred nanoseconds on each object it touches; numpy and Arrow move the same bytes in one to ten.
So pairs are kept as two byte buffers and two arrays of offsets (Arrow's large_binary layout). They stay so from the
moment they are encoded until a reducer asks for one. Offsets need not start at zero: a slice is a view.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]

_NO_BYTES: U8 = np.empty(0, dtype=np.uint8)
_NO_OFFSETS: I64 = np.zeros(1, dtype=np.int64)


def offsets_of(lengths: npt.NDArray[np.integer]) -> I64:
    """Return the offsets (one more than lengths, from zero) of consecutive items of these lengths."""
    offsets = np.empty(len(lengths) + 1, dtype=np.int64)
    offsets[0] = 0
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def fixed_offsets(count: int, width: int) -> I64:
    """Return the offsets of `count` items of `width` bytes each."""
    return np.arange(count + 1, dtype=np.int64) * width


@dataclass(slots=True, eq=False)
class Columns:
    """`count` pairs: key i is `keys[key_offsets[i]:key_offsets[i + 1]]`, values likewise. Treated as immutable."""

    keys: U8
    key_offsets: I64
    values: U8
    value_offsets: I64

    def __len__(self) -> int:
        return len(self.key_offsets) - 1

    @property
    def key_bytes(self) -> int:
        return int(self.key_offsets[-1] - self.key_offsets[0])

    @property
    def value_bytes(self) -> int:
        return int(self.value_offsets[-1] - self.value_offsets[0])

    @property
    def nbytes(self) -> int:
        """Memory that this batch stands for, offsets included."""
        return self.key_bytes + self.value_bytes + 16 * len(self)

    @classmethod
    def empty(cls) -> "Columns":
        return cls(_NO_BYTES, _NO_OFFSETS, _NO_BYTES, _NO_OFFSETS)

    @classmethod
    def from_lists(cls, keys: Sequence[bytes], values: Sequence[bytes]) -> "Columns":
        """Make pairs from two lists of equal length."""
        if len(keys) != len(values):
            raise ValueError(f"{len(keys)} keys and {len(values)} values")
        return cls(*_pack(keys), *_pack(values))

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[bytes, bytes]]) -> "Columns":
        listed = list(pairs)
        return cls.from_lists([key for key, _ in listed], [value for _, value in listed])

    @classmethod
    def from_rows(cls, rows: U8, key_width: int) -> "Columns":
        """Make pairs from fixed-width records, one a row: the first `key_width` bytes are the key."""
        count, width = rows.shape
        return cls(
            np.ascontiguousarray(rows[:, :key_width]).reshape(-1),
            fixed_offsets(count, key_width),
            np.ascontiguousarray(rows[:, key_width:]).reshape(-1),
            fixed_offsets(count, width - key_width),
        )

    def slice(self, start: int, stop: int) -> "Columns":
        """Return pairs `start` to `stop` (exclusive) as a view."""
        return Columns(self.keys, self.key_offsets[start : stop + 1], self.values, self.value_offsets[start : stop + 1])

    def take(self, order: I64) -> "Columns":
        """Copy the pairs in the given order."""
        keys, key_offsets = ItemTaker(self.keys, self.key_offsets).take(order)
        values, value_offsets = ItemTaker(self.values, self.value_offsets).take(order)
        return Columns(keys, key_offsets, values, value_offsets)

    @classmethod
    def concat(cls, parts: Sequence["Columns"]) -> "Columns":
        parts = [part for part in parts if len(part)]
        if not parts:
            return cls.empty()
        if len(parts) == 1:
            return parts[0]
        return cls(
            *_join([(p.keys, p.key_offsets) for p in parts]),
            *_join([(p.values, p.value_offsets) for p in parts]),
        )

    def key(self, i: int) -> bytes:
        return self.keys[self.key_offsets[i] : self.key_offsets[i + 1]].tobytes()

    def value(self, i: int) -> bytes:
        return self.values[self.value_offsets[i] : self.value_offsets[i + 1]].tobytes()

    def key_list(self) -> list[bytes]:
        return item_list(self.keys, self.key_offsets)

    def value_list(self) -> list[bytes]:
        return item_list(self.values, self.value_offsets)

    def pairs(self) -> Iterator[tuple[bytes, bytes]]:
        return zip(self.key_list(), self.value_list(), strict=True)


def trimmed(data: U8, offsets: I64) -> tuple[U8, I64]:
    """Return the bytes that the offsets cover, and offsets that start at zero. Views where possible."""
    first = int(offsets[0])
    data = data[first : int(offsets[-1])]
    return (data, offsets) if first == 0 else (data, offsets - first)


def common_width(offsets: I64) -> int | None:
    """Return the width that all items share, or None."""
    count = len(offsets) - 1
    if count <= 0:
        return None
    width, rest = divmod(int(offsets[-1] - offsets[0]), count)
    if rest or int(offsets[1] - offsets[0]) != width:
        return None
    return width if bool((np.diff(offsets) == width).all()) else None


class ItemTaker:
    """Copies items in any order: by rows where all have one width, else by Arrow's `take`. Prepared once, used per
    block.
    """

    __slots__ = ("_array", "_rows", "width")

    def __init__(self, data: U8, offsets: I64) -> None:
        #: The width that all items share, or None.
        self.width = common_width(offsets)
        self._rows: U8 | None = None
        self._array: pa.LargeBinaryArray | None = None
        if self.width:
            self._rows = trimmed(data, offsets)[0].reshape(-1, self.width)
        elif self.width is None:
            self._array = binary_array(data, offsets)

    def take(self, order: I64) -> tuple[U8, I64]:
        if self._rows is not None:
            return np.take(self._rows, order, axis=0).reshape(-1), fixed_offsets(len(order), self.width or 0)
        if self._array is None:
            return _NO_BYTES, fixed_offsets(len(order), 0)
        return array_items(self._array.take(pa.array(order)))


def binary_array(data: U8, offsets: I64) -> pa.LargeBinaryArray:
    """Return the items as an Arrow array, without a copy."""
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets)), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)


def array_items(array: pa.LargeBinaryArray) -> tuple[U8, I64]:
    """Return data and offsets, as the inverse of `binary_array`; the array has no nulls."""
    _, offsets_buffer, data_buffer = array.buffers()
    offsets = np.frombuffer(offsets_buffer, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    data = np.frombuffer(data_buffer, dtype=np.uint8) if data_buffer is not None else _NO_BYTES
    return data, offsets


def item_list(data: U8, offsets: I64) -> list[bytes]:
    data, offsets = trimmed(data, offsets)
    whole = data.tobytes()
    return [whole[start:stop] for start, stop in pairwise(offsets.tolist())]


def _pack(items: Sequence[bytes]) -> tuple[U8, I64]:
    lengths = np.fromiter(map(len, items), dtype=np.int64, count=len(items))
    return np.frombuffer(b"".join(items), dtype=np.uint8), offsets_of(lengths)


def _join(parts: list[tuple[U8, I64]]) -> tuple[U8, I64]:
    pieces, offsets, base = [], [_NO_OFFSETS], 0
    for data, part_offsets in parts:
        first = int(part_offsets[0])
        pieces.append(data[first : int(part_offsets[-1])])
        offsets.append(part_offsets[1:] + (base - first))
        base += len(pieces[-1])
    return np.concatenate(pieces), np.concatenate(offsets)
