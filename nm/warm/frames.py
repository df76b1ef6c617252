"""The wire between a NodeManager and its forkers: frames of a four-byte big-endian length and a JSON object.

The standard library only: forkers import this.
"""

import json
import socket
import struct
from typing import Any

MAX_FRAME_BYTES = 8 << 20
_LENGTH = struct.Struct(">I")


class BadFrame(ValueError):
    pass


def encode(message: dict[str, Any]) -> bytes:
    body = json.dumps(message, separators=(",", ":")).encode("ascii")
    if len(body) > MAX_FRAME_BYTES:
        raise BadFrame(f"frame of {len(body)} bytes, at most {MAX_FRAME_BYTES} fit")
    return _LENGTH.pack(len(body)) + body


def decode_length(head: bytes) -> int:
    length = int(_LENGTH.unpack(head)[0])
    if not 0 < length <= MAX_FRAME_BYTES:
        raise BadFrame(f"frame length {length}")
    return length


def receive(connection: socket.socket) -> dict[str, Any] | None:
    """Receives a frame; None: the other end has closed. Blocking. Raises BadFrame."""
    head = _receive_exactly(connection, _LENGTH.size)
    if head is None:
        return None
    body = _receive_exactly(connection, decode_length(head))
    if body is None:
        return None
    message = json.loads(body)
    if not isinstance(message, dict):
        raise BadFrame("frame holds no object")
    return message


def _receive_exactly(connection: socket.socket, count: int) -> bytes | None:
    chunks = bytearray()
    while len(chunks) < count:
        chunk = connection.recv(min(count - len(chunks), 1 << 20))
        if not chunk:
            return None
        chunks += chunk
    return bytes(chunks)
