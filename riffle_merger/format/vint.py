"""Hadoop's variable-length integers (WritableUtils.writeVLong): one byte from -112 to 127, else a length byte and a
big-endian magnitude.
"""

from collections.abc import Callable

from riffle_merger.format.errors import FormatError

_VALUE_BYTES_MAX = 8


def write_vint(value: int) -> bytes:
    """Return the encoding of a 64-bit number."""
    if -112 <= value <= 127:
        return (value & 0xFF).to_bytes(1, "big")
    first = -112
    if value < 0:
        value, first = ~value, -120
    size = (value.bit_length() + 7) // 8
    if size > _VALUE_BYTES_MAX or value >> 63:
        raise ValueError(f"{value} does not fit 64 bits")
    return ((first - size) & 0xFF).to_bytes(1, "big") + value.to_bytes(size, "big")


def read_vint(read: Callable[[int], bytes | memoryview]) -> int:
    """Decode one number; `read(n)` gives exactly n bytes or raises."""
    first = read(1)[0]
    first -= 256 if first > 127 else 0
    if first >= -112:
        return first
    negative = first < -120
    size = -(first + 120) if negative else -(first + 112)
    value = int.from_bytes(read(size), "big")
    if value >> 63:
        raise FormatError(f"variable-length integer of {size} bytes exceeds 64 bits")
    return ~value if negative else value
