"""Frames of Hadoop RPC without I/O: bytes in, whole frames out.

After the seven bytes of the preamble each direction is a sequence of `length (4 bytes, big endian, signed)` and
`payload`. Payloads are chains of *delimited* messages: a base-128 varint length, then that many bytes. A length
comes from a stranger: nothing is allocated for it, memory grows only as bytes arrive, and it is refused as soon as
its four bytes are there.
"""

import struct
from typing import Final

from yaqd.ipc.errors import ProtocolViolation

#: ipc.maximum.data.length and ipc.maximum.response.length
FRAME_BYTES_MAX: Final = 128 << 20

_LENGTH: Final = struct.Struct(">i")
_ONE_BYTE: Final = tuple(bytes((n,)) for n in range(128))
_PROTOBUF_VARINT_BYTES_MAX: Final = 5


class FrameDecoder:
    """Splits a byte stream into frames; `max_frame_bytes` may be raised once the peer is known."""

    def __init__(self, max_frame_bytes: int = FRAME_BYTES_MAX) -> None:
        #: a longer frame is a violation; may change between frames
        self.max_frame_bytes = max_frame_bytes
        self._buffer = bytearray()
        self._position = 0

    @property
    def pending_bytes(self) -> int:
        """Bytes received and not yet handed out."""
        return len(self._buffer) - self._position

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        if self._position:
            del self._buffer[: self._position]  # moves a pointer, not the bytes
            self._position = 0
        self._buffer += data

    def peek(self, count: int) -> bytes:
        """Return up to `count` of the next bytes without consuming them (the preamble)."""
        return bytes(self._buffer[self._position : self._position + count])

    def skip(self, count: int) -> None:
        self._position += count

    def next_frame(self) -> bytes | None:
        """Return the next whole payload, or None until more bytes are fed.

        Raises ProtocolViolation when the length is not positive or beyond the bound.
        """
        start = self._position + 4
        available = len(self._buffer) - start
        if available < 0:
            return None
        (length,) = _LENGTH.unpack_from(self._buffer, self._position)
        if not 0 < length <= self.max_frame_bytes:
            raise ProtocolViolation(f"frame length {length} is outside 1..{self.max_frame_bytes}")
        if available < length:
            return None
        self._position = end = start + length
        with memoryview(self._buffer) as view:
            return bytes(view[start:end])


def encode_varint(value: int) -> bytes:
    """Encode a non-negative number in base 128, least significant group first."""
    if value < 128:
        return _ONE_BYTE[value]
    out = bytearray()
    while value > 127:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def delimited(message: bytes) -> bytes:
    return encode_varint(len(message)) + message


def frame(*parts: bytes) -> bytes:
    """Return one frame whose payload is the concatenation of `parts`."""
    payload = b"".join(parts)
    return _LENGTH.pack(len(payload)) + payload


def read_delimited(payload: bytes, position: int) -> tuple[bytes, int]:
    """Return the delimited message at `position` and the position after it.

    Raises ProtocolViolation when the varint or the message does not end inside the payload.
    """
    try:
        length = payload[position]
        position += 1
        if length > 127:
            length, position = _long_varint(payload, position, length & 0x7F)
    except IndexError:
        raise ProtocolViolation("payload ends inside a length") from None
    end = position + length
    if end > len(payload):
        raise ProtocolViolation(f"message of {length} bytes announced, {len(payload) - position} left in the frame")
    return payload[position:end], end


def _long_varint(payload: bytes, position: int, low: int) -> tuple[int, int]:
    value, shift = low, 7
    for _ in range(_PROTOBUF_VARINT_BYTES_MAX - 1):
        byte = payload[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 128:
            return value, position
        shift += 7
    raise ProtocolViolation("length of more than five bytes")
