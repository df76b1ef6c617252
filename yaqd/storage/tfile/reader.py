"""Reads a TFile as a stream of records, in constant memory, from bytes that nobody vouches for.

The file is opened from its end: trailer, index of the meta blocks, index of the data blocks. Each region must lie
within the file before it is read, each table is bounded, compressed data is inflated in bounded pieces. The records of
a block are walked until the block is used up; their number must be the one that the file states.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import Final, Protocol

from yaqd.storage.filesystem import FileSystem
from yaqd.storage.tfile.primitives import KEY_BYTES_MAX, BadTFile, ByteStream
from yaqd.storage.tfile.writer import DATA_INDEX, MAGIC, META_PREFIX, TFILE_META, Region

_TRAILER: Final = struct.Struct(">qhh16s")
_META_INDEX_BYTES_MAX: Final = 64 << 10
#: inflated size of an index: a quarter of a terabyte in blocks of 256 KiB
_INDEX_BYTES_MAX: Final = 16 << 20
_INFLATED_PIECE_BYTES: Final = 256 << 10
_API_VERSION: Final = 1
_INT64_MAX: Final = (1 << 63) - 1


class ByteSource(Protocol):
    """A file that can be read from anywhere. Errors are StorageErrors."""

    name: str
    size: int

    def pieces(self, offset: int, length: int) -> Iterator[bytes]: ...


class StoredFile:
    """A file of a file system, at the size that it has now. Raises StorageError."""

    def __init__(self, filesystem: FileSystem, path: str) -> None:
        self._fs = filesystem
        self._path = path
        self.name = path
        self.size = filesystem.status(path).length

    def pieces(self, offset: int, length: int) -> Iterator[bytes]:
        return self._fs.open_range(self._path, offset, length)


class TFileReader:
    def __init__(self, source: ByteSource) -> None:
        """Reads the indexes. Raises BadTFile, or StorageError where the file cannot be read."""
        self._source = source
        blocks = self._read_meta_index(self._read_trailer())
        self.records_stated = self._read_meta(blocks)
        index = self._meta_block(blocks, DATA_INDEX)
        self.compression = index.tstr()
        #: the rest of the index as it is stored: its regions are not believed, nor made, before they are needed
        self._data_index = b"".join(index.rest())

    def records(self) -> Iterator[tuple[bytes, ByteStream]]:
        """Yield key and value of each record. Raises BadTFile.

        A value is gone once the next record is asked for.
        """
        seen = 0
        index = ByteStream([self._data_index], DATA_INDEX)
        for number in range(index.count(len(self._data_index), "the number of blocks")):
            what = f"data block {number}"
            block = ByteStream(self._inflated(self._region(index), self.compression, what), what)
            while not block.is_at_end():
                key = block.take(block.count(KEY_BYTES_MAX + 1, "the length of a key"))
                value = ByteStream(_chunks(block), f"the value of {key[:80]!r}")
                yield key, value
                value.drain()
                seen += 1
        if seen != self.records_stated:
            raise self._bad(f"it has {seen} records, not the {self.records_stated} that it states")

    # From the end -----------------------------------------------------------------------------------------------------

    def _read_trailer(self) -> tuple[int, int]:
        """The meta index' offset and length."""
        size = self._source.size
        if size < len(MAGIC) + _TRAILER.size:
            raise self._bad(f"a file of {size} bytes is too short")
        start = self._read(0, len(MAGIC))
        offset, major, _, magic = _TRAILER.unpack(self._read(size - _TRAILER.size, _TRAILER.size))
        if start != MAGIC or magic != MAGIC:
            raise self._bad("it does not begin and end as a TFile: it is another format, or cut short")
        if major != _API_VERSION:
            raise self._bad(f"BCFile version {major} is not supported, only {_API_VERSION}")
        length = size - _TRAILER.size - offset
        if offset < len(MAGIC) or not 0 <= length <= _META_INDEX_BYTES_MAX:
            raise self._bad(f"its index cannot be at byte {offset} of {size}")
        return offset, length

    def _read_meta_index(self, place: tuple[int, int]) -> dict[str, tuple[str, Region]]:
        index = ByteStream([self._read(*place)], "the meta index")
        blocks = {}
        for _ in range(index.count(place[1], "the number of meta blocks")):
            name = index.tstr()
            compression = index.tstr()
            blocks[name] = (compression, self._region(index))
        return blocks

    def _read_meta(self, blocks: dict[str, tuple[str, Region]]) -> int:
        """The number of records."""
        meta = self._meta_block(blocks, TFILE_META)
        major, _ = struct.unpack(">hh", meta.take(4))
        if major != _API_VERSION:
            raise self._bad(f"TFile version {major} is not supported, only {_API_VERSION}")
        records = meta.count(_INT64_MAX, "the number of records")
        meta.tstr()  # the comparator: the order is nothing to us
        return records

    def _meta_block(self, blocks: dict[str, tuple[str, Region]], name: str) -> ByteStream:
        found = blocks.get(META_PREFIX + name)
        if found is None:
            raise self._bad(f"it has no block {name}")
        compression, region = found
        return ByteStream(self._bounded(self._inflated(region, compression, name), name), name)

    def _bounded(self, pieces: Iterator[bytes], name: str) -> Iterator[bytes]:
        total = 0
        for piece in pieces:
            total += len(piece)
            if total > _INDEX_BYTES_MAX:
                raise self._bad(f"{name} has more than {_INDEX_BYTES_MAX} bytes")
            yield piece

    # Blocks -----------------------------------------------------------------------------------------------------------

    def _region(self, index: ByteStream) -> Region:
        region = Region(index.tint(), index.tint(), index.tint())
        end = self._source.size - _TRAILER.size
        if region.offset < len(MAGIC) or region.stored < 0 or region.raw < 0 or region.offset + region.stored > end:
            raise self._bad(f"a block of {region.stored} bytes at {region.offset} is not within the file")
        return region

    def _inflated(self, region: Region, compression: str, what: str) -> Iterator[bytes]:
        stored = ByteStream(self._source.pieces(region.offset, region.stored), what).pass_on(region.stored)
        if compression == "none":
            return stored
        if compression == "gz":
            return _inflate(stored, what)
        raise self._bad(f"compression {compression[:40]!r} of {what} is not supported, only none and gz")

    def _read(self, offset: int, length: int) -> bytes:
        return ByteStream(self._source.pieces(offset, length), self._source.name).take(length)

    def _bad(self, problem: str) -> BadTFile:
        return BadTFile(f"{self._source.name}: {problem}", path=self._source.name)


def _inflate(stored: Iterator[bytes], what: str) -> Iterator[bytes]:
    """One zlib stream, which must end where its bytes do."""
    inflate = zlib.decompressobj()
    try:
        for piece in stored:
            rest = piece
            while rest:
                if inflate.eof:
                    raise BadTFile(f"{what} goes on behind the end of its compressed data")
                yield inflate.decompress(rest, _INFLATED_PIECE_BYTES)
                rest = inflate.unconsumed_tail or inflate.unused_data
        while not inflate.eof:
            data = inflate.decompress(b"", _INFLATED_PIECE_BYTES)
            if not data and not inflate.eof:
                raise BadTFile(f"{what}: its compressed data is cut short")
            yield data
    except zlib.error as error:
        raise BadTFile(f"{what} cannot be inflated: {error}") from None


def _chunks(block: ByteStream) -> Iterator[bytes]:
    """The bytes of one value: chunks with a negative length, then one without."""
    while True:
        length = block.tint()
        yield from block.pass_on(abs(length))
        if length >= 0:
            return
