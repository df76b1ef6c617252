"""A file of map outputs on a shared file system: stored segments with their index behind them, in one file.

One map's output and a merge of many have the same form. Segments come partition by partition, and in each map by map,
without gaps, as in merged files on local disks; one sequential read gives a reducer its part of all maps in the file.
The index stands at the end, since such file systems only append. It is in the same file, so that one rename publishes
both and one look-up opens both. A reducer needs its own row of it alone. Numbers are big-endian:

    file   = segments, rows, names, footer
    row    = u64 offset of the partition, per map u64 bytes of its segment, per map u32 the checksum at that one's end
             (0 of an empty one), u32 CRC-32 of the partition's number and these
    names  = per map: u16 length, UTF-8 name of the map attempt
    footer = "YAQPACK2", u32 maps, u32 partitions, u32 bytes of the names, u32 CRC-32 of the names and these

With the checksums a reader knows of each segment that it is this map's for this partition. It is not another as long
that stands in its place.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Self

from riffle_merger.format.checksum import crc32
from riffle_merger.format.errors import CorruptIndex
from riffle_merger.format.index import PARTITIONS_MAX
from riffle_merger.format.merged import NAME_BYTES_MAX, SEGMENTS_MAX, is_safe_name

MAGIC: Final = b"YAQPACK2"
#: bound of what is accepted: only whoever reads the file holds its names, and as long as it reads
MAPS_MAX: Final = 10_000
_FOOTER: Final = struct.Struct(">8sIIII")
FOOTER_BYTES: Final = _FOOTER.size
_NAME_LENGTH: Final = struct.Struct(">H")
_NUMBER: Final = struct.Struct(">I")
_ROW_OWN_BYTES: Final = 8 + 4
_SEGMENT_BYTES: Final = 8 + 4


def row_bytes(maps: int) -> int:
    return _ROW_OWN_BYTES + _SEGMENT_BYTES * maps


def index_bytes(maps: int, partitions: int) -> int:
    """Return the bytes of a file's index with names of the usual length.

    It is enough to guess how much of the file's end to read.
    """
    return FOOTER_BYTES + partitions * row_bytes(maps) + 64 * maps


@dataclass(frozen=True, slots=True)
class Row:
    """One partition: where it begins in the file, how long each map's segment is, and the checksum at its end."""

    offset: int
    lengths: tuple[int, ...]
    checksums: tuple[int, ...]

    @property
    def length(self) -> int:
        return sum(self.lengths)


def index_of(names: Sequence[str], lengths: Iterable[Sequence[int]], checksums: Iterable[Sequence[int]]) -> bytes:
    """Return what goes behind the segments. Raises CorruptIndex.

    `lengths` and `checksums`: per partition, per map in the order of the names.
    """
    if not 0 < len(names) <= MAPS_MAX or len(set(names)) != len(names) or not all(map(is_safe_name, names)):
        raise CorruptIndex(f"{len(names)} names of map attempts, of which some are none or come twice")
    layout = _row_layout(len(names))
    parts, offset, partitions = [], 0, 0
    for of_maps, their_checksums in zip(lengths, checksums, strict=True):
        row = layout.pack(offset, *of_maps, *their_checksums)
        parts.append(row)
        parts.append(_NUMBER.pack(_row_checksum(partitions, row)))
        offset += sum(of_maps)
        partitions += 1
    encoded = [name.encode("utf-8") for name in names]
    named = b"".join(_NAME_LENGTH.pack(len(name)) + name for name in encoded)
    fields = _FOOTER.pack(MAGIC, len(names), partitions, len(named), 0)[: -_NUMBER.size]
    return b"".join((*parts, named, fields, _NUMBER.pack(crc32(fields, crc32(named)))))


def _row_layout(maps: int) -> struct.Struct:
    """Of a row without its own checksum."""
    return struct.Struct(f">Q{maps}Q{maps}I")


def _row_checksum(partition: int, row: bytes | memoryview) -> int:
    return crc32(row, crc32(_NUMBER.pack(partition)))


@dataclass(frozen=True, slots=True)
class Footer:
    """Where in a file what stands; verified against the file's length, so nothing of it leads out of the file."""

    #: for error lines
    name: str
    maps: int
    partitions: int
    names_bytes: int
    checksum: int
    #: bytes of the file
    file_bytes: int

    @classmethod
    def parse(cls, data: bytes | memoryview, file_bytes: int, *, name: str) -> Self:
        """Parse the last FOOTER_BYTES of a file of so many bytes. Raises CorruptIndex."""
        if len(data) != FOOTER_BYTES:
            raise CorruptIndex(f"{name}: {file_bytes} bytes are no file of map outputs")
        magic, maps, partitions, names_bytes, checksum = _FOOTER.unpack(data)
        if magic != MAGIC:
            raise CorruptIndex(f"{name}: ends with {magic!r}, not {MAGIC!r}")
        is_bounded = 0 < maps <= MAPS_MAX and partitions <= PARTITIONS_MAX and maps * partitions <= SEGMENTS_MAX
        if not is_bounded or names_bytes > maps * (_NAME_LENGTH.size + NAME_BYTES_MAX):
            raise CorruptIndex(f"{name}: {maps} maps and {partitions} partitions are out of bounds")
        footer = cls(name, maps, partitions, names_bytes, checksum, file_bytes)
        if footer.rows_at < 0:
            raise CorruptIndex(f"{name}: {file_bytes} bytes cannot hold the index that it describes")
        return footer

    @property
    def names_at(self) -> int:
        return self.file_bytes - FOOTER_BYTES - self.names_bytes

    @property
    def rows_at(self) -> int:
        """And where the segments end."""
        return self.names_at - self.partitions * row_bytes(self.maps)

    def row_at(self, partition: int) -> int:
        """Return the row's place in the file. Raises IndexError."""
        if not 0 <= partition < self.partitions:
            raise IndexError(f"{self.name}: partition {partition} of {self.partitions}")
        return self.rows_at + partition * row_bytes(self.maps)

    def parse_names(self, data: bytes | memoryview) -> tuple[str, ...]:
        """Parse the names and the footer, in `data`. Raises CorruptIndex."""
        own = bytes(data)
        if crc32(own[: -_NUMBER.size]) != self.checksum or len(own) != self.names_bytes + FOOTER_BYTES:
            raise CorruptIndex(f"{self.name}: the checksum of its names is wrong")
        names, position = [], 0
        while position + _NAME_LENGTH.size <= self.names_bytes:
            (length,) = _NAME_LENGTH.unpack_from(own, position)
            position += _NAME_LENGTH.size + length
            names.append(own[position - length : min(position, self.names_bytes)].decode("utf-8", "replace"))
        if position != self.names_bytes or len(names) != self.maps or not all(map(is_safe_name, names)):
            raise CorruptIndex(f"{self.name}: its names are not those of {self.maps} map attempts")
        if len(set(names)) != len(names):
            raise CorruptIndex(f"{self.name}: a map is named twice")
        return tuple(names)

    def parse_row(self, partition: int, data: bytes | memoryview) -> Row:
        """Parse a row. Raises CorruptIndex where it is damaged, or leads out of the segments."""
        if len(data) != row_bytes(self.maps):
            raise CorruptIndex(f"{self.name}: row {partition} has {len(data)} bytes")
        own = memoryview(data)[: -_NUMBER.size]
        (stored,) = _NUMBER.unpack_from(data, len(own))
        if stored != _row_checksum(partition, own):
            raise CorruptIndex(f"{self.name}: the checksum of row {partition} is wrong")
        offset, *fields = _row_layout(self.maps).unpack(own)
        lengths = fields[: self.maps]
        if offset + sum(lengths) > self.rows_at:
            raise CorruptIndex(f"{self.name}: partition {partition} ends at {offset + sum(lengths)}, beyond the data")
        return Row(offset, tuple(lengths), tuple(fields[self.maps :]))

    def parse_rows(self, data: bytes | memoryview) -> Iterator[Row]:
        """Yield all rows, which must follow each other without gaps. Raises CorruptIndex."""
        view, size, expected = memoryview(data), row_bytes(self.maps), 0
        for partition in range(self.partitions):
            row = self.parse_row(partition, view[partition * size : (partition + 1) * size])
            if row.offset != expected:
                raise CorruptIndex(f"{self.name}: partition {partition} is at {row.offset}, {expected} was expected")
            expected = row.offset + row.length
            yield row
        if expected != self.rows_at:
            raise CorruptIndex(f"{self.name}: its partitions end at {expected}, not where its index begins")
