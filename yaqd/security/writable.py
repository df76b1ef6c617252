"""Hadoop's Writable primitives, as far as tokens and credentials need them.

VInt/VLong: -112..127 in one byte; otherwise a first byte that gives sign and count, then the magnitude big endian
(of the one's complement for negatives). Text: VInt length and UTF-8. Readers take bytes from strangers: every length
is checked against what is left before anything is sliced.
"""

from typing import Final


class BadWritable(ValueError):
    """Bytes that are not the Writable they should be."""


_INT_MAX: Final = (1 << 31) - 1
_LONG_MAX: Final = (1 << 63) - 1
#: numbers up to 127 as they stand, and first bytes of positive numbers that are so many bytes long
_SMALL: Final = tuple(bytes((value,)) for value in range(128))
_POSITIVE: Final = tuple(bytes((0x90 - count,)) for count in range(9))


def encode_vlong(value: int) -> bytes:
    """Encode a signed 64-bit number."""
    if 127 < value <= _LONG_MAX:
        count = (value.bit_length() + 7) >> 3
        return _POSITIVE[count] + value.to_bytes(count, "big")
    if -112 <= value <= 127:
        return bytes((value & 0xFF,))
    if not -_LONG_MAX - 1 <= value <= _LONG_MAX:
        raise ValueError(f"{value} does not fit in 64 bits")
    count = ((~value).bit_length() + 7) // 8
    return bytes(((-120 - count) & 0xFF,)) + (~value).to_bytes(count, "big")


def encode_vint(value: int) -> bytes:
    """Encode a signed 32-bit number; the same bytes as a VLong."""
    if not -_INT_MAX - 1 <= value <= _INT_MAX:
        raise ValueError(f"{value} does not fit in 32 bits")
    return encode_vlong(value)


def encode_bytes(value: bytes) -> bytes:
    return encode_vint(len(value)) + value


def encode_text(value: str) -> bytes:
    text = value.encode()
    return _SMALL[len(text)] + text if len(text) <= 127 else encode_bytes(text)


class WritableReader:
    """Reads primitives one after the other. Every method raises BadWritable when the bytes do not hold one."""

    def __init__(self, data: bytes | memoryview, position: int = 0) -> None:
        self._data = bytes(data)
        self.position = position

    @property
    def remaining(self) -> int:
        return len(self._data) - self.position

    def raw(self, count: int) -> bytes:
        if count < 0 or count > self.remaining:
            raise BadWritable(f"{count} bytes announced at offset {self.position}, {self.remaining} left")
        start = self.position
        self.position += count
        return self._data[start : self.position]

    def vlong(self) -> int:
        first = self.raw(1)[0]
        if first < 128:
            return first
        first -= 256
        if first >= -112:
            return first
        negative = first < -120
        count = -(first + 120) if negative else -(first + 112)
        magnitude = int.from_bytes(self.raw(count), "big")
        if magnitude > _LONG_MAX:
            raise BadWritable(f"number beyond 64 bits at offset {self.position}")
        return ~magnitude if negative else magnitude

    def vint(self) -> int:
        value = self.vlong()
        if not -_INT_MAX - 1 <= value <= _INT_MAX:
            raise BadWritable(f"{value} is not a 32-bit number")
        return value

    def byte_string(self) -> bytes:
        return self.raw(self.vint())

    def text(self) -> str:
        try:
            return self.byte_string().decode()
        except UnicodeDecodeError:
            raise BadWritable(f"text before offset {self.position} is not UTF-8") from None
