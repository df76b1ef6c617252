"""The index beside every map output: where each partition's segment lies.

The bytes are Hadoop's `SpillRecord`: per partition three big-endian 64-bit numbers (start offset, raw length, part
length), then eight bytes that hold the CRC-32 of everything before. A stock ShuffleHandler reads it, and so does ours.
Node daemons import this module, so it uses the standard library alone.
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from riffle_merger.format.checksum import crc32
from riffle_merger.format.errors import CorruptIndex

_ENTRY = struct.Struct(">qqq")
_CHECKSUM = struct.Struct(">Q")

#: An index larger than this is refused unread: 4 million partitions, far above any job we accept.
INDEX_BYTES_MAX = 4_000_000 * _ENTRY.size + _CHECKSUM.size


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
            data = file.read(INDEX_BYTES_MAX + 1)
        if len(data) > INDEX_BYTES_MAX:
            raise CorruptIndex(f"{path}: larger than {INDEX_BYTES_MAX} bytes")
        return cls.parse(data, name=str(path))

    def to_bytes(self) -> bytes:
        return self._payload + _CHECKSUM.pack(crc32(self._payload))

    def check_file(self, file_bytes: int, *, name: str = "output file") -> None:
        """Refuse an index whose segments reach past the end of its output file."""
        for partition, entry in enumerate(self):
            if entry.start + entry.part_length > file_bytes:
                raise CorruptIndex(
                    f"{name}: partition {partition} ends at {entry.start + entry.part_length}, "
                    f"the file has {file_bytes} bytes"
                )

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

    def _check(self, name: str = "index") -> None:
        for partition, (start, raw_length, part_length) in enumerate(_ENTRY.iter_unpack(self._payload)):
            if start < 0 or raw_length < 0 or part_length < 0:
                raise CorruptIndex(
                    f"{name}: partition {partition} has a negative number: "
                    f"start {start}, raw length {raw_length}, part length {part_length}"
                )
