"""The index of a merged file: map outputs of one node put together, partition by partition.

The merged file itself is nothing but the stored segments of its inputs as they stand in each `file.out`, checksum
included: first all maps' segments of partition 0 in the order of the index's names, then those of partition 1, and so
on without gaps. So one sequential read gives a reducer its part of all these maps. Any single map's segment can still
be given alone, to a stock reducer for one.

Version 2, numbers big-endian:

    index     = header, names, partitions, segments, crc32
    header    = "YQM" 0x02, u32 maps (> 0), u32 partitions, u32 bytes of the names
    names     = per map: u16 length, UTF-8 name of the map attempt
    partition = i64 offset in the merged file, i64 length
    segment   = i64 raw length, i64 part length, u32 checksum    (partitions times maps of them)

A segment's checksum is the one at its end, 0 of an empty one: so it is known of any part of a partition whether these
are the segments of these maps. That holds even where two as long stand in each other's place, and a merge has to run
over the data only once. Where a segment lies follows from the lengths before it. Version 1 had the offset instead, and
one checksum for a partition.

Node daemons import this module, so it uses the standard library alone; an index is kept as its bytes and decoded
where it is asked, since a server needs one partition of perhaps thousands.
"""

import os
import struct
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from operator import eq
from pathlib import Path
from typing import NamedTuple

from riffle_merger.format.checksum import crc32
from riffle_merger.format.errors import CorruptIndex, CorruptSegment
from riffle_merger.format.index import PARTITIONS_MAX, IndexEntry

MAGIC = b"YQM\x02"
_HEADER = struct.Struct(">4sIII")
_NAME_LENGTH = struct.Struct(">H")
_PARTITION = struct.Struct(">qq")
#: one column each of the table of partitions
_OFFSET, _LENGTH = struct.Struct(">q8x"), struct.Struct(">8xq")
_SEGMENT = struct.Struct(">qqI")
_CHECKSUM = struct.Struct(">I")
CHECKSUM_BYTES = _CHECKSUM.size

#: Bounds of what is accepted, above any merge that makes sense: the index then has some 100 MB. A merge keeps its
#: inputs open, and whoever serves from the file holds all names.
MAPS_MAX = 1000
SEGMENTS_MAX = 4_000_000
NAME_BYTES_MAX = 255
#: what an index takes in memory beside its bytes, about
_COST_PER_MAP, _COST = 330, 500
#: of a map attempt's name, as MapReduce and we make them, at most
_USUAL_NAME_BYTES = 70
INDEX_BYTES_MAX = (
    _HEADER.size
    + MAPS_MAX * (_NAME_LENGTH.size + NAME_BYTES_MAX)
    + PARTITIONS_MAX * _PARTITION.size
    + SEGMENTS_MAX * _SEGMENT.size
    + CHECKSUM_BYTES
)

#: Files of a merge called NAME in an application's folder: `riffle/NAME.out` and `riffle/NAME.out.index`.
MERGED_FOLDER = "riffle"
DATA_SUFFIX = ".out"
INDEX_SUFFIX = ".out.index"


@dataclass(frozen=True, slots=True)
class MergedPartition:
    """One reducer's part of the merged file, bytes."""

    offset: int
    length: int


class SegmentColumns(NamedTuple):
    """One partition's segments in the order of the index's maps; bytes, as in IndexEntry."""

    starts: Sequence[int]
    raw_lengths: Sequence[int]
    part_lengths: Sequence[int]
    #: at their ends
    checksums: Sequence[int]

    def packed(self) -> "SegmentColumns":
        """Return the same in a fifth of the memory, for whoever keeps it."""
        starts, raw_lengths, part_lengths, checksums = self
        return SegmentColumns(
            array("q", starts), array("q", raw_lengths), array("q", part_lengths), array("I", checksums)
        )


def maps_possible(partitions: int) -> int:
    """Return how many map outputs of so many partitions an index may have at all."""
    return min(MAPS_MAX, SEGMENTS_MAX // max(1, partitions))


def maps_within(cost_max: int, partitions: int) -> int:
    """Return how many map outputs an index may have that takes at most `cost_max` bytes in memory."""
    for_all = _COST + _HEADER.size + partitions * _PARTITION.size + CHECKSUM_BYTES
    for_each = _COST_PER_MAP + _NAME_LENGTH.size + _USUAL_NAME_BYTES + partitions * _SEGMENT.size
    return max(0, min(maps_possible(partitions), (cost_max - for_all) // for_each))


def is_safe_name(name: str) -> bool:
    """Return whether a map attempt's or a merge's name may become part of a path."""
    return (
        0 < len(name.encode("utf-8", "surrogatepass")) <= NAME_BYTES_MAX
        and "/" not in name
        and not name.startswith(".")
        and name.isprintable()
    )


class MergedIndex:
    """A verified index: checksum, bounds and the table of partitions when it is parsed; a partition's segments when
    they are asked for, or all with `check`."""

    __slots__ = ("_data", "_last", "_numbers", "_partitions_at", "_segments_at", "maps", "name", "partitions")

    def __init__(self, data: bytes, *, name: str) -> None:
        """`parse` and `build` are the ways here. `data` ends with its checksum."""
        self._data = data
        #: for error lines
        self.name = name
        maps, self.partitions, names_bytes = self._read_header()
        #: names of the map attempts in their order inside each partition
        self.maps: tuple[str, ...] = self._read_names(maps, names_bytes)
        self._numbers = {map_name: number for number, map_name in enumerate(self.maps)}
        if len(self._numbers) != maps:
            raise CorruptIndex(f"{name}: a map is named twice")
        self._partitions_at = _HEADER.size + names_bytes
        self._segments_at = self._partitions_at + self.partitions * _PARTITION.size
        self._check_partitions()
        #: of the partition that was asked for last: a reducer that asks for a part of it goes on with the rest
        self._last: tuple[int, SegmentColumns] | None = None

    @classmethod
    def parse(cls, data: bytes, *, name: str = "merged index") -> "MergedIndex":
        """Verify and wrap the bytes of an index file. CorruptIndex when they are not one."""
        if len(data) < _HEADER.size + CHECKSUM_BYTES or len(data) > INDEX_BYTES_MAX:
            raise CorruptIndex(f"{name}: {len(data)} bytes are not a merged index")
        (stored,) = _CHECKSUM.unpack_from(data, len(data) - CHECKSUM_BYTES)
        computed = crc32(memoryview(data)[:-CHECKSUM_BYTES])
        if stored != computed:
            raise CorruptIndex(f"{name}: checksum is {stored:#010x}, contents give {computed:#010x}")
        return cls(data, name=name)

    @classmethod
    def load(cls, path: str | Path, *, bytes_max: int = INDEX_BYTES_MAX) -> "MergedIndex":
        """Read and verify an index file, following no link. OSError when it cannot be read, else as `parse`."""
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            size = os.fstat(descriptor).st_size
            data = file.read(size + 1) if size <= bytes_max else b""
        if size > bytes_max or len(data) > bytes_max:
            raise CorruptIndex(f"{path}: larger than {bytes_max} bytes")
        return cls.parse(data, name=str(path))

    @classmethod
    def build(
        cls,
        maps: Sequence[str],
        lengths: Iterable[Iterable[tuple[int, int]]],
        checksums: Sequence[Sequence[int]],
        *,
        name: str = "merged index",
    ) -> "MergedIndex":
        """Build the index of a file that was just written. Raises CorruptIndex when it cannot be one.

        `lengths` has (raw length, part length) of each map, partition by partition; `checksums` likewise, as described
        above.
        """
        names = [map_name.encode("utf-8") for map_name in maps]
        encoded = b"".join(_NAME_LENGTH.pack(len(text)) + text for text in names)
        head = _HEADER.pack(MAGIC, len(maps), len(checksums), len(encoded)) + encoded
        part_at, offset = len(head), 0
        at = part_at + len(checksums) * _PARTITION.size
        body = bytearray(at + len(checksums) * len(maps) * _SEGMENT.size + CHECKSUM_BYTES)
        body[: len(head)] = head
        for segments, their_checksums in zip(lengths, checksums, strict=True):
            start = offset
            if len(their_checksums) != len(maps):
                raise CorruptIndex(f"{name}: {len(their_checksums)} segments of {len(maps)} maps")
            for (raw_length, part_length), checksum in zip(segments, their_checksums, strict=True):
                _SEGMENT.pack_into(body, at, raw_length, part_length, checksum)
                at += _SEGMENT.size
                offset += part_length
            _PARTITION.pack_into(body, part_at, start, offset - start)
            part_at += _PARTITION.size
        _CHECKSUM.pack_into(body, at, crc32(memoryview(body)[:at]))
        data = bytes(body)
        del body  # there is memory for two of it
        index = cls(data, name=name)
        index.check()
        return index

    def to_bytes(self) -> bytes:
        return self._data

    @property
    def file_bytes(self) -> int:
        """Length that the merged file has to have."""
        if not self.partitions:
            return 0
        last = self.partition(self.partitions - 1)
        return last.offset + last.length

    @property
    def cost_bytes(self) -> int:
        """About what this object takes in memory."""
        return len(self._data) + _COST_PER_MAP * len(self.maps) + _COST

    def check_file(self, file_bytes: int, *, name: str = "merged file") -> None:
        """Refuse an index whose lengths do not add up to its file's."""
        if file_bytes != self.file_bytes:
            raise CorruptIndex(f"{name}: has {file_bytes} bytes, its index describes {self.file_bytes}")

    def check(self) -> None:
        """Refuse an index in which the segments of any partition are not as long as it."""
        for partition in range(self.partitions):
            self._columns(partition)

    def map_number(self, map_name: str) -> int | None:
        """Return the place of a map attempt in each partition, None when it is not in this file."""
        return self._numbers.get(map_name)

    def partition(self, partition: int) -> MergedPartition:
        """Raises IndexError."""
        self._check_number(partition)
        return MergedPartition(*_PARTITION.unpack_from(self._data, self._partitions_at + partition * _PARTITION.size))

    def segments(self, partition: int) -> list[IndexEntry]:
        """Return where in the merged file each map's segment lies, in the order of `maps`.

        Raises IndexError, CorruptIndex.
        """
        starts, raw_lengths, part_lengths, _ = self.columns(partition)
        return list(map(IndexEntry, starts, raw_lengths, part_lengths))

    def columns(self, partition: int) -> SegmentColumns:
        """Return what `segments` does, for servers: without a Python step for each segment."""
        last = self._last
        if last is not None and last[0] == partition:
            return last[1]
        columns = self._columns(partition)
        self._last = partition, columns
        return columns

    def checksum(self, partition: int) -> int:
        """Return one checksum for all of a partition, to compare merged files by. Raises IndexError, CorruptIndex.

        It is the CRC-32 over its segments' checksums, as they stand in the index.
        """
        checksums = self._columns(partition).checksums
        return crc32(struct.pack(f">{len(checksums)}I", *checksums))

    def verify(self, partition: int, data: bytes | bytearray | memoryview) -> None:
        """Check the bytes of a whole partition: CorruptSegment names the first map whose segment is damaged, or not the
        one that was merged."""
        whole = self.partition(partition)
        if len(data) != whole.length:
            raise CorruptSegment(f"{self.name}: partition {partition} has {len(data)} bytes, not {whole.length}")
        starts, _, part_lengths, checksums = self._columns(partition)
        view = memoryview(data)
        for map_name, at, length, checksum in zip(self.maps, starts, part_lengths, checksums, strict=True):
            segment = view[at - whole.offset : at - whole.offset + length]
            check_segment(segment, checksum, f"{self.name.removesuffix('.index')}: partition {partition} of {map_name}")

    def _read_header(self) -> tuple[int, int, int]:
        magic, maps, partitions, names_bytes = _HEADER.unpack_from(self._data)
        if magic != MAGIC:
            raise CorruptIndex(f"{self.name}: begins with {magic!r}, not {MAGIC!r}")
        if not 0 < maps <= MAPS_MAX or partitions > PARTITIONS_MAX or maps * partitions > SEGMENTS_MAX:
            raise CorruptIndex(f"{self.name}: {maps} maps and {partitions} partitions are out of bounds")
        needed = _HEADER.size + names_bytes + partitions * (_PARTITION.size + maps * _SEGMENT.size) + CHECKSUM_BYTES
        if needed != len(self._data):
            raise CorruptIndex(f"{self.name}: {len(self._data)} bytes, {needed} are needed for what it describes")
        return maps, partitions, names_bytes

    def _read_names(self, maps: int, names_bytes: int) -> tuple[str, ...]:
        names, position, end = [], _HEADER.size, _HEADER.size + names_bytes
        for _ in range(maps):
            start = position + _NAME_LENGTH.size
            if start > end:
                break
            (length,) = _NAME_LENGTH.unpack_from(self._data, position)
            position = start + length
            try:
                name = self._data[start : min(position, end)].decode("utf-8")
            except UnicodeDecodeError:
                name = ""
            if not is_safe_name(name):
                raise CorruptIndex(f"{self.name}: {name[:80]!r} is no name of a map attempt")
            names.append(name)
        if len(names) != maps or position != end:
            raise CorruptIndex(f"{self.name}: the names do not fill their {names_bytes} bytes")
        return tuple(names)

    def _check_partitions(self) -> None:
        """There may be a million: they are compared without a Python step for each, which only a lie is worth."""
        table = memoryview(self._data)[self._partitions_at : self._segments_at]
        offsets = chain.from_iterable(_OFFSET.iter_unpack(table))
        lengths = chain.from_iterable(_LENGTH.iter_unpack(table))
        if table[8 :: _PARTITION.size].tobytes().isascii() and all(map(eq, offsets, accumulate(lengths, initial=0))):
            return  # no length is negative: none begins with a bit that is set
        expected = 0
        for partition, (offset, length) in enumerate(_PARTITION.iter_unpack(table)):
            if offset != expected or length < 0:
                raise CorruptIndex(
                    f"{self.name}: partition {partition} lies at {offset} with length {length}, "
                    f"the one before ends at {expected}"
                )
            expected = offset + length

    def _check_number(self, partition: int) -> None:
        if not 0 <= partition < self.partitions:
            raise IndexError(f"partition {partition} of {self.partitions}")

    def _row(self, partition: int) -> memoryview:
        length = len(self.maps) * _SEGMENT.size
        start = self._segments_at + partition * length
        return memoryview(self._data)[start : start + length]

    def _columns(self, partition: int) -> SegmentColumns:
        whole = self.partition(partition)
        raw_lengths, part_lengths, checksums = zip(*_SEGMENT.iter_unpack(self._row(partition)), strict=True)
        *starts, end = accumulate(part_lengths, initial=whole.offset)
        if min(raw_lengths) < 0 or min(part_lengths) < 0:
            raise CorruptIndex(f"{self.name}: a segment of partition {partition} has a negative length")
        if end != whole.offset + whole.length:
            raise CorruptIndex(f"{self.name}: partition {partition} has {whole.length} bytes, not its segments' sum")
        return SegmentColumns(tuple(starts), raw_lengths, part_lengths, checksums)


def checked_trailer(segment: memoryview, name: str) -> memoryview:
    """Return the four bytes at the end of a whole segment, once they have proved right; none for an empty one."""
    if not len(segment):
        return segment
    if len(segment) < CHECKSUM_BYTES:
        raise CorruptSegment(f"{name}: {len(segment)} bytes cannot hold a checksum")
    trailer = segment[-CHECKSUM_BYTES:]
    computed = crc32(segment[:-CHECKSUM_BYTES])
    (stored,) = _CHECKSUM.unpack(trailer)
    if stored != computed:
        raise CorruptSegment(f"{name}: checksum is {stored:#010x}, contents give {computed:#010x}")
    return trailer


def check_segment(segment: memoryview, checksum: int, name: str) -> None:
    """Refuse a whole segment that is damaged, or another than the index says: CorruptSegment."""
    trailer = checked_trailer(segment, name)
    if int.from_bytes(trailer, "big") != checksum:
        raise CorruptSegment(f"{name}: is not the segment that was merged")


def check_segments(segments: memoryview, lengths: Sequence[int], checksums: Sequence[int], name: str) -> None:
    """Check segments side by side, one after the other, as `check_segment` does."""
    ends = list(accumulate(lengths))
    if min(lengths, default=CHECKSUM_BYTES) >= CHECKSUM_BYTES:
        trailers = b"".join([segments[end - CHECKSUM_BYTES : end] for end in ends])
        starts = chain((0,), ends)
        computed = [crc32(segments[start : end - CHECKSUM_BYTES]) for start, end in zip(starts, ends, strict=False)]
        if trailers == struct.pack(f">{len(computed)}I", *computed) and computed == list(checksums):
            return
    for length, end, checksum in zip(lengths, ends, checksums, strict=True):  # one is empty, or wrong and named
        check_segment(segments[end - length : end], checksum, name)
