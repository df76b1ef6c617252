"""Compression of one block whose raw length is known to both sides.

Blocks carry their own header and length, so the bare LZ4 and Snappy block formats are used, not their framed streams:
frames would add a second header per block, and concatenated LZ4 frames silently decode to the first one only. Zstandard
has no other form than its frame; a block is one of them, decoded straight into memory of the raw length. So neither the
length nor the window that its own header claims is ever allocated.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import lz4.block

from riffle_merger.format.errors import CorruptSegment

#: One stored byte of a block stands for no more than these, whatever its codec: LZ4's bound. Snappy's is 22;
#: Zstandard's would be 32768, but what it makes smaller than 1/255 is stored as LZ4.
MAX_EXPANSION = 255

NONE, LZ4, SNAPPY, ZSTD = 0, 1, 2, 3
#: Hadoop's is 3; the fastest costs few bytes here, and a map waits for it.
_ZSTD_LEVEL = 1


@dataclass(frozen=True, slots=True)
class Codec:
    """A named block codec. `number` is what the block header carries."""

    name: str
    number: int
    _compress: Callable[[bytes], bytes]
    _decompress: Callable[[bytes | memoryview, int], bytes | memoryview]

    def compress(self, raw: bytes) -> tuple[int, bytes]:
        """Return the number of the codec that was used, and the stored bytes.

        Incompressible blocks are stored as they are.
        """
        stored = self._compress(raw)
        if len(stored) * MAX_EXPANSION < len(raw):  # its reader would take it for a lie
            return _CODECS[LZ4].compress(raw)
        return (self.number, stored) if len(stored) < len(raw) else (NONE, raw)

    def decompress(self, stored: bytes | memoryview, raw_length: int, name: str) -> bytes | memoryview:
        """Return exactly `raw_length` bytes. Raises CorruptSegment."""
        try:
            raw = self._decompress(stored, raw_length)
        except (lz4.block.LZ4BlockError, ValueError, RuntimeError, OverflowError, OSError) as error:
            raise CorruptSegment(
                f"{name}: {self.name} block of {len(stored)} bytes does not decode: {error}"
            ) from error
        if len(raw) != raw_length:
            raise CorruptSegment(f"{name}: {self.name} block decodes to {len(raw)} bytes instead of {raw_length}")
        return raw


def _lz4_compress(raw: bytes) -> bytes:
    return bytes(lz4.block.compress(raw, store_size=False))


def _lz4_decompress(stored: bytes | memoryview, raw_length: int) -> bytes:
    return bytes(lz4.block.decompress(stored, uncompressed_size=raw_length))


@cache
def _arrow(name: str, level: int | None = None) -> Any:
    import pyarrow

    return pyarrow.Codec(name, compression_level=level)


def _snappy_compress(raw: bytes) -> bytes:
    return bytes(_arrow("snappy").compress(raw, asbytes=True))


def _snappy_decompress(stored: bytes | memoryview, raw_length: int) -> bytes:
    # The block's own preamble says how much it unpacks to: a varint that must not exceed what the header allows.
    claimed, shift = 0, 0
    for byte in bytes(stored[:5]):
        claimed |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if claimed != raw_length:
        raise ValueError(f"preamble says {claimed} bytes")
    return bytes(_arrow("snappy").decompress(stored, decompressed_size=raw_length, asbytes=True))


def _zstd_compress(raw: bytes) -> bytes:
    return bytes(_arrow("zstd", _ZSTD_LEVEL).compress(raw, asbytes=True))


def _zstd_decompress(stored: bytes | memoryview, raw_length: int) -> bytes:
    # a frame that is shorter, longer or cut off is an OSError
    return bytes(_arrow("zstd", _ZSTD_LEVEL).decompress(stored, decompressed_size=raw_length, asbytes=True))


_CODECS = (
    Codec("none", NONE, lambda raw: raw, lambda stored, _: stored),
    Codec("lz4", LZ4, _lz4_compress, _lz4_decompress),
    Codec("snappy", SNAPPY, _snappy_compress, _snappy_decompress),
    Codec("zstd", ZSTD, _zstd_compress, _zstd_decompress),
)


def codec_by_number(number: int, name: str) -> Codec:
    if number >= len(_CODECS):
        raise CorruptSegment(f"{name}: unknown codec number {number}")
    return _CODECS[number]


def codec_by_name(name: str) -> Codec:
    """Return the codec of that name; ValueError lists the known ones."""
    for codec in _CODECS:
        if codec.name == name:
            return codec
    known = ", ".join(codec.name for codec in _CODECS)
    raise ValueError(f"unknown map output codec {name!r}; known: {known}")
