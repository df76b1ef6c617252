"""The small encodings of Hadoop's TFile, and a stream that takes them apart without trusting a length.

TFile has a variable integer of its own (org.apache.hadoop.io.file.tfile.Utils.writeVLong), unlike the one of Writables;
keys and names inside records are Java's writeUTF. A stream hands out as many bytes as were asked for or fails. What is
asked for at once is bounded by the caller before it is asked.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from yaqd.storage.errors import CorruptFile

#: longest key that TFile takes, and longest text that writeUTF does
KEY_BYTES_MAX: Final = 65535
#: (largest distance from zero, offset of the first byte, further bytes)
_SHORT_FORMS: Final = ((5120, 52, 1), (1 << 20, 88, 2), (1 << 27, 112, 3))
_INT64: Final = 1 << 63


class BadTFile(CorruptFile):
    """The bytes are no TFile, or no log records; the text says what is wrong where."""


def encode_tint(value: int) -> bytes:
    """Return a TFile integer in its shortest form. OverflowError beyond 64 bits."""
    if -32 <= value <= 127:
        return struct.pack("b", value)
    for reach, offset, width in _SHORT_FORMS:
        if -reach <= value < reach:
            low = value & ((1 << 8 * width) - 1)
            return struct.pack("b", (value >> 8 * width) - offset) + low.to_bytes(width, "big")
    if not -_INT64 <= value < _INT64:
        raise OverflowError(f"{value} does not fit 64 bits")
    width = next(n for n in range(4, 9) if -(1 << 8 * n - 1) <= value < 1 << 8 * n - 1)
    return struct.pack("b", width - 129) + value.to_bytes(width, "big", signed=True)


def encode_tstr(text: str) -> bytes:
    data = text.encode()
    return encode_tint(len(data)) + data


def encode_utf(text: str) -> bytes:
    """Encode as java.io.DataOutput.writeUTF. OverflowError for texts of more than 65535 bytes."""
    units = text.encode("utf-16-be", "surrogatepass")
    data = b"".join(
        b"\xc0\x80" if unit == 0 else chr(unit).encode("utf-8", "surrogatepass")
        for (unit,) in struct.iter_unpack(">H", units)
    )
    if len(data) > KEY_BYTES_MAX:
        raise OverflowError(f"a text of {len(data)} bytes, at most {KEY_BYTES_MAX} can be written")
    return len(data).to_bytes(2, "big") + data


def decode_utf(data: bytes) -> str:
    """Return the text of writeUTF's bytes, without their two length bytes. Raises BadTFile."""
    try:
        units = data.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
        return units.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "replace")
    except UnicodeDecodeError as error:
        raise BadTFile(f"a text that is not UTF-8: {error.reason}") from None


class ByteStream:
    """Bytes in order, from pieces of any size."""

    def __init__(self, pieces: Iterable[bytes], what: str) -> None:
        """`what` names the stream in errors."""
        self._pieces = iter(pieces)
        self._piece = b""
        self._at = 0
        self._what = what

    def is_at_end(self) -> bool:
        return not self._fill()

    def take(self, count: int) -> bytes:
        """Take exactly `count` bytes, which the caller has bounded. Raises BadTFile where the stream ends before."""
        end = self._at + count
        if end <= len(self._piece):
            data = self._piece[self._at : end]
            self._at = end
            return data
        return b"".join(self.pass_on(count))

    def pass_on(self, count: int) -> Iterator[bytes]:
        """Yield exactly `count` bytes, in pieces as they come. Raises BadTFile where the stream ends before."""
        while count > 0:
            if not self._fill():
                raise BadTFile(f"{self._what} ends {count} bytes too early")
            data = self._piece[self._at : self._at + count]
            self._at += len(data)
            count -= len(data)
            yield data

    def rest(self) -> Iterator[bytes]:
        """Yield everything that is left."""
        while self._fill():
            data = self._piece[self._at :]
            self._at = len(self._piece)
            yield data

    def drain(self) -> None:
        """Pass over everything that is left."""
        while self._fill():
            self._at = len(self._piece)

    def tint(self) -> int:
        first = self.take(1)[0]
        first -= (first & 0x80) << 1
        if first >= -32:
            return first
        if first < -120:
            return self._long_tint(first)
        offset, width = (52, 1) if first >= -72 else (88, 2) if first >= -104 else (112, 3)
        return ((first + offset) << 8 * width) + int.from_bytes(self.take(width), "big")

    def _long_tint(self, first: int) -> int:
        width = first + 129
        if not 4 <= width <= 8:
            raise BadTFile(f"{self._what}: {first} begins no number")
        return int.from_bytes(self.take(width), "big", signed=True)

    def count(self, maximum: int, what: str) -> int:
        """Return a number from 0 to `maximum`. Raises BadTFile for another one."""
        value = self.tint()
        if not 0 <= value <= maximum:
            raise BadTFile(f"{self._what}: {what} is {value}, not 0 to {maximum}")
        return value

    def tstr(self) -> str:
        data = self.take(self.count(KEY_BYTES_MAX, "the length of a text"))
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise BadTFile(f"{self._what}: a text that is not UTF-8: {error.reason}") from None

    def utf(self) -> str:
        return decode_utf(self.take(int.from_bytes(self.take(2), "big")))

    def _fill(self) -> bool:
        while self._at >= len(self._piece):
            piece = next(self._pieces, None)
            if piece is None:
                return False
            self._piece = piece
            self._at = 0
        return True
