"""Records in batches: what a reader yields, as lists for a job's own map and as columns for the identity.

A batch keeps the bytes as they were read. Lists and columns are made on demand, whole, by functions that work on all of
a batch at once; a loop over lines in Python would cost more than the rest of the reader.
"""

from collections.abc import Iterator
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from yaqd.mapreduce.formats import InputFormat
from yaqd.mapreduce.serde import encode_key
from yaqd.storage.columns import I64, U8, ColumnBatch

_LF: Final = 10
_CR: Final = 13
_BYTES_TAG: Final = encode_key(b"")[0]
_STR_TAG: Final = encode_key("")[0]
#: what encodings of the integers 1 to 2**64 - 1 begin with: this plus their number of bytes
_INT_TAG: Final = encode_key(0)[0]


class RecordBatch(Protocol):
    """Some consecutive records of a split."""

    #: bytes of input that it stands for
    input_bytes: int

    def __len__(self) -> int: ...
    def keys(self) -> list[Any]: ...
    def values(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[tuple[Any, Any]]: ...
    def columns(self) -> ColumnBatch: ...


class LineBatch:
    """Whole lines of a text file. Keys are offsets; values are lines without their ends, as str or bytes."""

    def __init__(self, offset: int, block: bytes, *, as_text: bool, skipped: int = 0) -> None:
        """`skipped` bytes at the start of the block belong to the first record but not to its value (a BOM)."""
        self.input_bytes = len(block)
        self._offset = offset
        self._skipped = skipped
        self._has_cr = b"\r" in block
        self._block = block[skipped:] if skipped else block
        self._as_text = as_text
        self._starts: I64 | None = None

    def __len__(self) -> int:
        return len(self._line_starts())

    def keys(self) -> list[int]:
        offsets = self._line_starts() + (self._offset + self._skipped)
        if self._skipped:
            offsets[:1] = self._offset
        keys: list[int] = offsets.tolist()
        return keys

    def values(self) -> list[Any]:
        if not self._as_text:
            return self._block.splitlines() if self._has_cr else _without_last_empty(self._block.split(b"\n"))
        try:
            text = self._block.decode()
        except UnicodeDecodeError:
            text = self._block.decode("utf-8", "surrogateescape")
        if self._has_cr:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        return _without_last_empty(text.split("\n"))

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        return zip(self.keys(), self.values(), strict=True)

    def columns(self) -> ColumnBatch:
        keys, key_offsets = encode_offsets(np.array(self.keys(), dtype=np.int64))
        values, value_offsets = self._encoded_lines()
        return ColumnBatch(keys, key_offsets, values, value_offsets)

    def without_longer(self, line_bytes_max: int) -> "LineBatch | ListBatch":
        """Return the batch without lines longer than that."""
        lines = self._block.splitlines()
        if max(map(len, lines), default=0) <= line_bytes_max:
            return self
        kept = [index for index, line in enumerate(lines) if len(line) <= line_bytes_max]
        keys, values = self.keys(), self.values()
        return ListBatch([keys[index] for index in kept], [values[index] for index in kept], self.input_bytes)

    def _line_starts(self) -> I64:
        if self._starts is None:
            block = np.frombuffer(self._block, dtype=np.uint8)
            ends = _line_ends_with_cr(block) if self._has_cr else np.flatnonzero(block == _LF) + 1
            starts = np.empty(len(ends) + 1, dtype=np.int64)
            starts[0] = 0
            starts[1:] = ends
            # the last end is the start of a line only where the file goes on without a line end
            self._starts = starts[:-1] if starts[-1] == len(block) and len(ends) else starts
        return self._starts

    def _encoded_lines(self) -> tuple[U8, I64]:
        """Tag and line for each line: the tag takes the place of the line end before it."""
        tag = _STR_TAG if self._as_text else _BYTES_TAG
        block = self._block
        if self._has_cr:
            block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        body = block.removesuffix(b"\n")
        data = np.empty(len(body) + 1, dtype=np.uint8)
        data[0] = tag
        data[1:] = np.frombuffer(body, dtype=np.uint8)
        starts = np.flatnonzero(data[1:] == _LF) + 1
        data[starts] = tag
        offsets = np.empty(len(starts) + 2, dtype=np.int64)
        offsets[0], offsets[-1] = 0, len(data)
        offsets[1:-1] = starts
        return data, offsets


class FixedBatch:
    """Records of one length. Keys are their first bytes, or their offsets; values are the rest."""

    def __init__(self, offset: int, block: bytes, record: InputFormat) -> None:
        """`block` holds whole records."""
        self.input_bytes = len(block)
        self._offset = offset
        self._block = block
        self._record = record

    def __len__(self) -> int:
        return self.input_bytes // self._record.record_bytes

    def keys(self) -> list[Any]:
        size, width = self._record.record_bytes, self._record.key_bytes
        if width == 0:
            return list(range(self._offset, self._offset + self.input_bytes, size))
        block = self._block
        return [block[at : at + width] for at in range(0, self.input_bytes, size)]

    def values(self) -> list[bytes]:
        size, width, block = self._record.record_bytes, self._record.key_bytes, self._block
        return [block[at + width : at + size] for at in range(0, self.input_bytes, size)]

    def __iter__(self) -> Iterator[tuple[Any, bytes]]:
        return zip(self.keys(), self.values(), strict=True)

    def columns(self) -> ColumnBatch:
        width = self._record.key_bytes
        records = np.frombuffer(self._block, dtype=np.uint8).reshape(-1, self._record.record_bytes)
        values, value_offsets = _tagged(records[:, width:])
        if width:
            keys, key_offsets = _tagged(records[:, :width])
        else:
            starts = np.arange(len(records), dtype=np.int64) * self._record.record_bytes + self._offset
            keys, key_offsets = encode_offsets(starts)
        return ColumnBatch(keys, key_offsets, values, value_offsets)


class ListBatch:
    """Records that were picked one by one."""

    def __init__(self, keys: list[Any], values: list[Any], input_bytes: int) -> None:
        self.input_bytes = input_bytes
        self._keys = keys
        self._values = values

    def __len__(self) -> int:
        return len(self._keys)

    def keys(self) -> list[Any]:
        return self._keys

    def values(self) -> list[Any]:
        return self._values

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return zip(self._keys, self._values, strict=True)

    def columns(self) -> ColumnBatch:
        return ColumnBatch(*_joined(self._keys), *_joined(self._values))


def encode_offsets(numbers: I64) -> tuple[U8, I64]:
    """Return the encodings of ascending integers from 0 on, as `encode_key` makes them, and where each begins."""
    bounds = np.searchsorted(numbers, [1 << (8 * size) for size in range(8)]).tolist()
    pieces: list[U8] = []
    lengths = np.empty(len(numbers), dtype=np.int64)
    for size in range(9):
        # numbers of `size` bytes: from 256 ** (size - 1) to below 256 ** size; zero has no byte beyond its tag
        first = 0 if size == 0 else bounds[size - 1]
        last = bounds[size] if size < len(bounds) else len(numbers)
        if first == last:
            continue
        codes = np.empty((last - first, size + 1), dtype=np.uint8)
        codes[:, 0] = _INT_TAG + size
        big_endian = numbers[first:last].astype(">u8").view(np.uint8).reshape(-1, 8)
        codes[:, 1:] = big_endian[:, 8 - size :]
        pieces.append(codes.reshape(-1))
        lengths[first:last] = size + 1
    return (np.concatenate(pieces) if pieces else np.empty(0, dtype=np.uint8)), _offsets(lengths)


def _tagged(rows: npt.NDArray[np.uint8]) -> tuple[U8, I64]:
    """Rows of bytes, each behind the tag of bytes."""
    count, width = rows.shape
    data = np.empty((count, width + 1), dtype=np.uint8)
    data[:, 0] = _BYTES_TAG
    data[:, 1:] = rows
    return data.reshape(-1), np.arange(count + 1, dtype=np.int64) * (width + 1)


def _joined(items: list[Any]) -> tuple[U8, I64]:
    codes = list(map(encode_key, items))
    return np.frombuffer(b"".join(codes), dtype=np.uint8), _offsets(np.array(list(map(len, codes)), dtype=np.int64))


def _offsets(lengths: I64) -> I64:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _line_ends_with_cr(block: U8) -> npt.NDArray[np.int64]:
    """Ends of lines where CR LF and lone CRs end some."""
    is_end = (block == _LF) | (block == _CR)
    # a CR before LF ends nothing: the line ends after its LF
    is_end[:-1] &= ~((block[:-1] == _CR) & (block[1:] == _LF))
    return np.flatnonzero(is_end) + 1


def _without_last_empty(lines: list[Any]) -> list[Any]:
    """What split makes of text that ends in a line end has one empty string too many."""
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    return lines
