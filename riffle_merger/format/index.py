"""The index beside every map output: where each partition's segment lies.

The bytes are Hadoop's `SpillRecord`: per partition three big-endian 64-bit numbers (start offset, raw length, part
length), then eight bytes that hold the CRC-32 of everything before. A stock ShuffleHandler reads it, and so does ours.
Node daemons import this module, so it uses the standard library alone. A container may have written anything under an
index's name, and a server reads it in the thread that answers everybody. So nothing here loops over the entries in
Python: a million of them are read and verified in some 10 ms.
"""

import os
import struct
import sys
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import add
from pathlib import Path
from typing import BinaryIO

from riffle_merger.format.checksum import crc32
from riffle_merger.format.errors import CorruptIndex

_ENTRY = struct.Struct(">qqq")
_CHECKSUM = struct.Struct(">Q")

#: Partitions of one output. Hadoop knows no bound; the largest jobs that were ever reported have some 100,000 reduces.
PARTITIONS_MAX = 1_000_000
#: An index larger than this is refused unread: 24 MB.
INDEX_BYTES_MAX = PARTITIONS_MAX * _ENTRY.size + _CHECKSUM.size
#: entries whose numbers are taken apart at a time
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One partition's segment in the output file. All three are bytes, none is negative."""

    #: Where the segment's first byte lies in the output file.
    start: int
    #: Length of the records before compression, without the checksum.
    raw_length: int
    #: Length as stored, the four checksum bytes included.
    part_length: int


class SpillIndex:
    """A verified index; entries are decoded when asked for, since a server needs one of perhaps 100,000."""

    __slots__ = ("_payload",)

    def __init__(self, entries: Iterable[IndexEntry]) -> None:
        self._payload = b"".join(_ENTRY.pack(e.start, e.raw_length, e.part_length) for e in entries)
        self._check()

    @classmethod
    def parse(cls, data: bytes, *, name: str = "index") -> "SpillIndex":
        """Verify and wrap the bytes of an index file; `name` is for the error line."""
        body, rest = divmod(len(data) - _CHECKSUM.size, _ENTRY.size)
        if body < 0 or rest:
            raise CorruptIndex(f"{name}: {len(data)} bytes is not a whole number of index entries and a checksum")
        payload = data[: -_CHECKSUM.size]
        (stored,) = _CHECKSUM.unpack_from(data, len(payload))
        computed = crc32(payload)
        if stored != computed:
            raise CorruptIndex(f"{name}: checksum is {stored:#x}, contents give {computed:#x}")
        index = cls.__new__(cls)
        index._payload = payload
        index._check(name)
        return index

    @classmethod
    def load(cls, path: str | Path) -> "SpillIndex":
        """Read and verify an index file. OSError when it cannot be read, CorruptIndex when it is not an index."""
        with open(path, "rb") as file:
            return cls.read(file, name=str(path))

    @classmethod
    def read(cls, file: BinaryIO, *, name: str) -> "SpillIndex":
        """Read an open file, as `load` does."""
        size = os.fstat(file.fileno()).st_size
        data = file.read(size + 1) if size <= INDEX_BYTES_MAX else b""
        size = max(size, len(data))
        if size > INDEX_BYTES_MAX:
            raise CorruptIndex(
                f"{name}: an index of {size} bytes is refused, at most {INDEX_BYTES_MAX} are read "
                f"({PARTITIONS_MAX} partitions)"
            )
        return cls.parse(data, name=name)

    def to_bytes(self) -> bytes:
        return self._payload + _CHECKSUM.pack(crc32(self._payload))

    @property
    def stored_bytes(self) -> int:
        """The bytes of all segments together. More than the file has where segments lie over each other."""
        return sum(sum(parts) for _, _, parts in self._columns())

    def check_file(self, file_bytes: int, *, name: str = "output file") -> None:
        """Refuse an index whose segments reach past the end of its output file."""
        for first, starts, parts in self._columns():
            if max(map(add, starts, parts)) <= file_bytes:
                continue
            for partition, end in enumerate(map(add, starts, parts), first):
                if end > file_bytes:
                    raise CorruptIndex(f"{name}: partition {partition} ends at {end}, the file has {file_bytes} bytes")

    def __len__(self) -> int:
        return len(self._payload) // _ENTRY.size

    def __getitem__(self, partition: int) -> IndexEntry:
        if not 0 <= partition < len(self):
            raise IndexError(f"partition {partition} of {len(self)}")
        return IndexEntry(*_ENTRY.unpack_from(self._payload, partition * _ENTRY.size))

    def __iter__(self) -> Iterator[IndexEntry]:
        return (IndexEntry(*entry) for entry in _ENTRY.iter_unpack(self._payload))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SpillIndex) and self._payload == other._payload

    def __hash__(self) -> int:
        return hash(self._payload)

    def _columns(self) -> Iterator[tuple[int, "array[int]", "array[int]"]]:
        """Starts and part lengths, chunk by chunk, each with the number of its first partition."""
        view = memoryview(self._payload)
        for first in range(0, len(self), _CHUNK):
            numbers = array("q", view[first * _ENTRY.size : (first + _CHUNK) * _ENTRY.size].tobytes())
            if sys.byteorder == "little":
                numbers.byteswap()
            yield first, numbers[::3], numbers[2::3]

    def _check(self, name: str = "index") -> None:
        try:  # a number is negative when the first bit of its first byte is set, which no ASCII letter has
            self._payload[::8].decode("ascii")
        except UnicodeDecodeError as error:
            partition = error.start // 3
            entry = self[partition]
            raise CorruptIndex(
                f"{name}: partition {partition} has a negative number: "
                f"start {entry.start}, raw length {entry.raw_length}, part length {entry.part_length}"
            ) from None
