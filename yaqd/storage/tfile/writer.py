"""Writes a TFile: records into blocks that are compressed one by one, then the indexes and the trailer.

Everything goes out in order through one `write`, so that it may be a file on HDFS. Only the index is kept in memory: a
few dozen bytes for each block of a quarter of a megabyte.
"""

import struct
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from yaqd.storage.tfile.primitives import KEY_BYTES_MAX, encode_tint, encode_tstr

MAGIC: Final = bytes.fromhex("d111d36891b5d7b639df414092bae150")
VERSION: Final = struct.pack(">hh", 1, 0)
COMPRESSIONS: Final = ("none", "gz")
DATA_INDEX: Final = "BCFile.index"
TFILE_INDEX: Final = "TFile.index"
TFILE_META: Final = "TFile.meta"
META_PREFIX: Final = "data:"
#: bytes stored in a block from which the next record begins another one; what a stock NodeManager writes
_BLOCK_BYTES: Final = 256 << 10


@dataclass(frozen=True, slots=True)
class Region:
    """Where a block lies and how long it is, in bytes."""

    offset: int
    stored: int
    raw: int

    def encode(self) -> bytes:
        return encode_tint(self.offset) + encode_tint(self.stored) + encode_tint(self.raw)


class _Block:
    def __init__(self, write: Callable[[bytes], None], compression: str) -> None:
        self._write = write
        self._deflate = zlib.compressobj() if compression == "gz" else None
        self.stored = 0
        self.raw = 0

    def add(self, data: bytes) -> None:
        self.raw += len(data)
        self._store(data if self._deflate is None else self._deflate.compress(data))

    def end(self) -> None:
        if self._deflate is not None:
            self._store(self._deflate.flush())

    def _store(self, data: bytes) -> None:
        if data:
            self.stored += len(data)
            self._write(data)


class TFileWriter:
    """An unsorted TFile. `close` completes it; a file without that is none."""

    def __init__(
        self, write: Callable[[bytes], None], *, compression: str = "none", block_bytes: int = _BLOCK_BYTES
    ) -> None:
        if compression not in COMPRESSIONS:
            raise ValueError(f"compression {compression!r} is none of {', '.join(COMPRESSIONS)}")
        self._write = write
        self._compression = compression
        self._block_bytes = block_bytes
        self._offset = 0
        self._block: _Block | None = None
        self._first_key = b""
        self._last_key = b""
        self._block_records = 0
        self._records = 0
        self._regions: list[Region] = []
        #: TFile.index entries of the blocks that are complete
        self._index: list[bytes] = []
        self._put(MAGIC)

    def append(self, key: bytes, value: Iterable[bytes]) -> None:
        """Append one record; the value's pieces become its chunks.

        Raises ValueError for a key longer than TFile takes.
        """
        if len(key) > KEY_BYTES_MAX:
            raise ValueError(f"a key of {len(key)} bytes, at most {KEY_BYTES_MAX} can be written")
        if self._block is None:
            self._block = _Block(self._put, self._compression)
        block = self._block
        block.add(encode_tint(len(key)) + key)
        last = b""  # held back, because only the last chunk has a length that is not negative
        for piece in value:
            if last and piece:
                block.add(encode_tint(-len(last)))
                block.add(last)
            last = piece or last
        block.add(encode_tint(len(last)))
        block.add(last)
        self._note_record(key)
        if block.stored >= self._block_bytes:
            self._end_block()

    def _note_record(self, key: bytes) -> None:
        if not self._records:
            self._first_key = key
        self._last_key = key
        self._block_records += 1
        self._records += 1

    def close(self) -> None:
        """Write what makes it a TFile. The caller closes the file."""
        self._end_block()
        meta = VERSION + encode_tint(self._records) + encode_tstr("")
        regions = {TFILE_META: ("none", self._store_block(meta, "none"))}
        regions[TFILE_INDEX] = (self._compression, self._store_block(self._encode_index(), self._compression))
        data_index = encode_tstr(self._compression) + encode_tint(len(self._regions))
        data_index += b"".join(region.encode() for region in self._regions)
        regions[DATA_INDEX] = (self._compression, self._store_block(data_index, self._compression))
        at = self._offset
        self._put(encode_tint(len(regions)))
        for name, (compression, region) in sorted(regions.items()):
            self._put(encode_tstr(META_PREFIX + name) + encode_tstr(compression) + region.encode())
        self._put(struct.pack(">q", at) + VERSION + MAGIC)

    def _encode_index(self) -> bytes:
        if not self._records:
            return b"\0"
        return _framed(encode_tint(len(self._first_key)) + self._first_key) + b"".join(self._index)

    def _end_block(self) -> None:
        block = self._block
        if block is None:
            return
        block.end()
        self._regions.append(Region(self._offset - block.stored, block.stored, block.raw))
        key = self._last_key
        self._index.append(_framed(encode_tint(len(key)) + key + encode_tint(self._block_records)))
        self._block = None
        self._block_records = 0

    def _store_block(self, data: bytes, compression: str) -> Region:
        block = _Block(self._put, compression)
        at = self._offset
        block.add(data)
        block.end()
        return Region(at, block.stored, block.raw)

    def _put(self, data: bytes) -> None:
        self._offset += len(data)
        self._write(data)


def _framed(data: bytes) -> bytes:
    return encode_tint(len(data)) + data
