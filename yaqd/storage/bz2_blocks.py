"""Blocks of a bzip2 file, found by the marks that they begin with, so that such a file is read from its middle too.

A block begins at any bit and is compressed for itself. It belongs to the piece of the file in which its mark begins. So
pieces own each block exactly once wherever the file is cut (as with Hadoop's BZip2Codec).
"""

import bz2
from collections.abc import Iterable, Iterator
from typing import Final

from yaqd.storage.errors import CorruptFile

_BLOCK: Final = 0x314159265359
_END: Final = 0x177245385090
_MARK_BITS: Final = 48
_CRC_BITS: Final = 32
#: bytes that a mark may touch
_MARK_BYTES: Final = 7
#: no compressed block is longer
_BLOCK_BYTES_MAX: Final = 2 << 20


class Piece:
    """The contents of a piece of a file, and on beyond it as far as they are asked for."""

    def __init__(self, chunks: Iterable[bytes], path: str, start: int, length: int) -> None:
        """`chunks` are the file's bytes from `start` on."""
        self._chunks = chunks
        self._path = path
        self._start = start
        self._bytes_end = start + length
        self._end: int | None = None

    def end(self) -> int | None:
        """Return where its contents end, counted from `start` on; None as long as that is not reached."""
        return self._end

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        try:
            for at, data in blocks_from(self._chunks, self._start):
                if at >= self._bytes_end and self._end is None:
                    self._end = self._start + size
                size += len(data)
                yield data
        except (OSError, EOFError, ValueError) as error:
            raise CorruptFile(f"{self._path} is no whole bzip2 file: {error}", path=self._path) from None


def blocks_from(chunks: Iterable[bytes], start: int) -> Iterator[tuple[int, bytes]]:
    """Return the contents of each block whose mark begins at byte `start` or later, with the byte in which it begins;
    `chunks` are the file's bytes from there on. OSError, EOFError or ValueError where the file is damaged or ends
    early."""
    held, at = b"", start  # bytes, and where in the file they stand
    begin: int | None = None  # of the block that is not complete, in bits of the file
    seen = -1
    for chunk in chunks:
        fresh = max(0, len(held) - _MARK_BYTES)
        held += chunk
        for mark, is_block in _marks(held, fresh):
            position = 8 * at + mark
            if position <= seen:
                continue
            seen = position
            if begin is not None:
                yield begin // 8, _unpacked(held, begin - 8 * at, mark)
            begin = position if is_block else None
        keep = max(0, len(held) - _MARK_BYTES) if begin is None else begin // 8 - at
        held, at = held[keep:], at + keep
        if len(held) > _BLOCK_BYTES_MAX + len(chunk):
            raise ValueError("a block has no end")
    if begin is not None:
        raise EOFError("it ends early")


def _marks(data: bytes, start: int) -> list[tuple[int, bool]]:
    """Positions in bits, in order; whether a block begins there, or else a member ends."""
    found = [(bit, True) for bit in _finds(data, start, _BLOCK)]
    found += [(bit, False) for bit in _finds(data, start, _END)]
    return sorted(found)


def _finds(data: bytes, start: int, mark: int) -> Iterator[int]:
    for shift in range(8):
        pattern = (mark << (8 - shift)).to_bytes(_MARK_BYTES)
        # between its first and its last byte, of which it has some bits alone, the pattern is bytes
        inner, last = pattern[1:6], 0xFF00 >> shift & 0xFF
        at = data.find(inner, start + 1)
        while 0 < at < len(data) - len(inner) + (shift == 0):
            ends = shift == 0 or data[at + 5] & last == pattern[6]
            if ends and data[at - 1] & 0xFF >> shift == pattern[0]:
                yield 8 * (at - 1) + shift
            at = data.find(inner, at + 1)


def _unpacked(data: bytes, begin: int, end: int) -> bytes:
    """The block between two bits, as a bzip2 file of its own."""
    first, behind = begin // 8, (end + 7) // 8
    bits = end - begin
    value = int.from_bytes(data[first:behind]) >> (8 * behind - end) & ((1 << bits) - 1)
    crc = value >> (bits - _MARK_BITS - _CRC_BITS) & 0xFFFFFFFF
    value = (value << _MARK_BITS | _END) << _CRC_BITS | crc
    bits += _MARK_BITS + _CRC_BITS
    padding = -bits % 8
    return bz2.decompress(b"BZh9" + (value << padding).to_bytes((bits + padding) // 8))
