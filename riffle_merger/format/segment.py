"""What our own jobs put inside a segment: sorted runs of columnar blocks.

The container around it is Hadoop's (`index`): a segment is `part_length` bytes of which the last four are the
big-endian CRC-32 of those before. Inside, version 1, numbers big-endian unless said otherwise:

    segment  = run* crc32
    run      = "YQR" 0x01, block*, end            keys ascend (as bytes) within a run
    block    = header, stored payload
    header   = u32 records (> 0), u32 key bytes, u32 value bytes, u32 stored length,
               u8 codec, u8 key width, u8 value width, u8 0
    end      = u32 0
    payload  = key lengths, value lengths, key bytes, value bytes; compressed by itself with the header's codec

A width of 0 says that all keys (values) of the block have the same length, and no lengths are stored; 1, 2 or 4 is
the size of each little-endian length. The payload's raw length follows from the header, so nobody can claim another;
it is checked against what the stored bytes could possibly expand to before memory is taken. Blocks hold a bounded
number of bytes (one record at least), so that a merge needs one block per run in memory.

Concatenated runs are again a segment once the checksum is renewed: a map output of several spills is merged by the
reader, and a merged file's partition is a list of such segments. Columns instead of Hadoop's record stream (IFile)
because a block of a thousand records then decodes in a handful of array operations.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from riffle_merger.format.checksum import crc32
from riffle_merger.format.codec import MAX_EXPANSION, Codec, codec_by_number
from riffle_merger.format.columns import I64, U8, Columns, common_width, fixed_offsets, offsets_of, trimmed
from riffle_merger.format.errors import CorruptSegment

RUN_MAGIC = b"YQR\x01"
RUN_END = b"\0\0\0\0"
_HEADER = struct.Struct(">IIIIBBBB")
_CHECKSUM = struct.Struct(">I")
CHECKSUM_BYTES = _CHECKSUM.size

#: Raw bytes of one block, lengths aside. Small enough to stay in the second-level cache while it is coded.
BLOCK_BYTES = 256 * 1024
#: What a record counts for beyond its bytes when blocks are cut, so that empty records are bounded too.
_RECORD_OVERHEAD = 4
BLOCK_BYTES_MAX = 1024 * 1024
#: Records without any byte cost nothing to store; a block has no more of them than the largest allowed block.
EMPTY_RECORDS_MAX = BLOCK_BYTES_MAX // _RECORD_OVERHEAD
#: A record has to fit the header's 32-bit numbers.
RECORD_BYTES_MAX = 2**31 - 1
#: How much is read at once when a segment's checksum is verified.
_VERIFY_BYTES = 1024 * 1024

_WIDTH_DTYPES: dict[int, np.dtype[np.unsignedinteger]] = {1: np.dtype("u1"), 2: np.dtype("<u2"), 4: np.dtype("<u4")}


class Source(Protocol):
    """Where a segment's stored bytes are: memory or a range of a file."""

    #: For error lines: the map attempt or file.
    name: str
    #: Bytes in all, the checksum included.
    length: int

    def read(self, offset: int, length: int) -> bytes | memoryview:
        """Return exactly these bytes. Raises CorruptSegment when they are not there."""
        ...


class MemorySource:
    """A segment that was fetched into memory."""

    __slots__ = ("_view", "length", "name")

    def __init__(self, data: bytes | bytearray | memoryview, *, name: str = "segment") -> None:
        self._view = memoryview(data)
        self.length = len(self._view)
        self.name = name

    def read(self, offset: int, length: int) -> memoryview:
        if offset < 0 or length < 0 or offset + length > self.length:
            raise CorruptSegment(f"{self.name}: truncated: {self.length} bytes, {offset + length} needed")
        return self._view[offset : offset + length]


# Writing


def encode_block(columns: Columns, codec: Codec) -> tuple[bytes, bytes | memoryview, int]:
    """Return header, stored payload and raw length of one block.

    The pairs must be sorted by key and not none.
    """
    keys, key_offsets = trimmed(columns.keys, columns.key_offsets)
    values, value_offsets = trimmed(columns.values, columns.value_offsets)
    if max(len(keys), len(values)) > RECORD_BYTES_MAX:
        raise ValueError(f"a block of {len(keys)} key and {len(values)} value bytes; one record may have 2 GB")
    key_width, key_lengths = _encode_lengths(key_offsets)
    value_width, value_lengths = _encode_lengths(value_offsets)
    raw = b"".join((key_lengths, value_lengths, keys.data, values.data))
    number, stored = codec.compress(raw)
    header = _HEADER.pack(len(columns), len(keys), len(values), len(stored), number, key_width, value_width, 0)
    return header, stored, len(raw)


def block_bounds(sizes: I64, block_bytes: int) -> Iterator[tuple[int, int]]:
    """Cut records of these sizes into blocks of at most `block_bytes`, or one record."""
    if not len(sizes):
        return
    ends = np.cumsum(sizes + _RECORD_OVERHEAD)
    start, written = 0, 0
    while start < len(ends):
        stop = max(start + 1, int(np.searchsorted(ends, written + block_bytes, side="right")))
        yield start, stop
        start, written = stop, int(ends[stop - 1])


def _encode_lengths(offsets: I64) -> tuple[int, bytes]:
    if common_width(offsets) is not None:
        return 0, b""
    lengths = np.diff(offsets)
    longest = int(lengths.max())
    width = 1 if longest < 1 << 8 else 2 if longest < 1 << 16 else 4
    return width, lengths.astype(_WIDTH_DTYPES[width]).tobytes()


# Reading


@dataclass(frozen=True, slots=True)
class BlockHeader:
    records: int
    key_bytes: int
    value_bytes: int
    stored_length: int
    codec: int
    key_width: int
    value_width: int

    @property
    def raw_length(self) -> int:
        return self.records * (self.key_width + self.value_width) + self.key_bytes + self.value_bytes


@dataclass(frozen=True, slots=True)
class Run:
    """A sorted run inside a verified segment: the bytes from its first block header to its end mark."""

    source: Source
    start: int
    stop: int
    records: int
    raw_length: int

    def blocks(self) -> Iterator[Columns]:
        """Decode block after block; only one is held here at a time."""
        position = self.start
        while position < self.stop:
            header = read_header(self.source, position)
            position += _HEADER.size
            stored = self.source.read(position, header.stored_length)
            position += header.stored_length
            yield decode_block(header, stored, self.source.name)


def verify(source: Source, checksum: int | None = None) -> None:
    """Check the segment's checksum, and that it is this one; CorruptSegment names what was found."""
    body = source.length - CHECKSUM_BYTES
    if body < 0:
        raise CorruptSegment(f"{source.name}: {source.length} bytes cannot hold a checksum")
    computed = 0
    for offset in range(0, body, _VERIFY_BYTES):
        computed = crc32(source.read(offset, min(_VERIFY_BYTES, body - offset)), computed)
    (stored,) = _CHECKSUM.unpack(source.read(body, CHECKSUM_BYTES))
    if stored != computed:
        raise CorruptSegment(f"{source.name}: checksum is {stored:#010x}, contents give {computed:#010x}")
    if checksum is not None and stored != checksum:
        raise CorruptSegment(f"{source.name}: is another segment, with checksum {stored:#010x}, not {checksum:#010x}")


def find_runs(source: Source) -> list[Run]:
    """Walk a segment's headers, refusing what cannot be, and return its runs. The checksum is `verify`'s affair."""
    body = source.length - CHECKSUM_BYTES
    runs, position = [], 0
    while position < body:
        magic = bytes(source.read(position, len(RUN_MAGIC)))
        if magic != RUN_MAGIC:
            raise CorruptSegment(f"{source.name}: at byte {position} a run should begin, not {magic!r}")
        start = position = position + len(RUN_MAGIC)
        records = raw_length = 0
        while bytes(source.read(position, len(RUN_END))) != RUN_END:
            header = read_header(source, position)
            records += header.records
            raw_length += header.raw_length
            position += _HEADER.size + header.stored_length
            if position + len(RUN_END) > body:
                raise CorruptSegment(f"{source.name}: a block ends at byte {position} of {body}")
        runs.append(Run(source, start, position, records, raw_length))
        position += len(RUN_END)
    return runs


def read_header(source: Source, position: int) -> BlockHeader:
    *numbers, reserved = _HEADER.unpack(source.read(position, _HEADER.size))
    header = BlockHeader(*numbers)
    where = f"{source.name}: block at byte {position}"
    if not header.records or reserved:
        raise CorruptSegment(f"{where}: {header.records} records, reserved byte {reserved}")
    for width, length in ((header.key_width, header.key_bytes), (header.value_width, header.value_bytes)):
        if width not in (0, 1, 2, 4):
            raise CorruptSegment(f"{where}: width {width} is not 0, 1, 2 or 4")
        if width == 0 and length % header.records:
            raise CorruptSegment(f"{where}: {length} bytes are not {header.records} items of one width")
    if header.raw_length > header.stored_length * MAX_EXPANSION:
        raise CorruptSegment(f"{where}: {header.stored_length} bytes cannot hold {header.raw_length}")
    if position + _HEADER.size + header.stored_length > source.length - CHECKSUM_BYTES:
        raise CorruptSegment(f"{where}: {header.stored_length} bytes reach past the segment's end")
    if not header.raw_length and header.records > EMPTY_RECORDS_MAX:
        raise CorruptSegment(f"{where}: {header.records} records without bytes")
    return header


def decode_block(header: BlockHeader, stored: bytes | memoryview, name: str) -> Columns:
    """Return the block's pairs as views of one decompressed buffer."""
    raw = codec_by_number(header.codec, name).decompress(stored, header.raw_length, name)
    data: U8 = np.frombuffer(raw, dtype=np.uint8)
    values_at = header.records * header.key_width
    keys_at = values_at + header.records * header.value_width
    key_offsets = _decode_lengths(data[:values_at], header.key_width, header.records, header.key_bytes, name)
    value_offsets = _decode_lengths(
        data[values_at:keys_at], header.value_width, header.records, header.value_bytes, name
    )
    middle = keys_at + header.key_bytes
    return Columns(data[keys_at:middle], key_offsets, data[middle:], value_offsets)


def _decode_lengths(data: U8, width: int, records: int, total: int, name: str) -> I64:
    if width == 0:
        return fixed_offsets(records, total // records)
    offsets = offsets_of(data.view(_WIDTH_DTYPES[width]))
    if int(offsets[-1]) != total:
        raise CorruptSegment(f"{name}: lengths add up to {int(offsets[-1])}, the block has {total} bytes")
    return offsets


def seal(parts: Sequence[bytes]) -> bytes:
    """Return a whole segment in memory: these bytes and their checksum."""
    body = b"".join(parts)
    return body + _CHECKSUM.pack(crc32(body))
