"""What a trial's process and its exploration say to each other over a pair of sockets.

A frame is two lengths (u32, of JSON and of bytes), a JSON object and bytes.
"""

import json
import socket
import struct
from typing import Any, Final

_HEAD: Final = struct.Struct("<II")
_JSON_MAX: Final = 16 << 20


class Wire:
    """One end; blocking, for one thread."""

    def __init__(self, end: socket.socket, *, bytes_max: int) -> None:
        """`bytes_max`: of a frame that is received."""
        self._end, self._bytes_max = end, bytes_max

    def fileno(self) -> int:
        """Return the descriptor, so that a selector can wait for it."""
        return self._end.fileno()

    def send(self, message: dict[str, Any], data: bytes = b"") -> None:
        """Send a frame. Raises OSError: the other end is gone."""
        head = json.dumps(message).encode()
        self._end.sendall(_HEAD.pack(len(head), len(data)) + head)
        if data:
            self._end.sendall(data)

    def receive(self) -> tuple[dict[str, Any], bytes]:
        """Return the next frame. Raises OSError: the other end is gone; ValueError: it sent no frame."""
        head, data = _HEAD.unpack(self._take(_HEAD.size))
        if head > _JSON_MAX or data > self._bytes_max:
            raise ValueError(f"a frame of {head} and {data} bytes")
        message = json.loads(self._take(head))
        if not isinstance(message, dict):
            raise ValueError("a frame without an object")
        return message, self._take(data)

    def close(self) -> None:
        """Close this end."""
        self._end.close()

    def _take(self, count: int) -> bytes:
        found = bytearray()
        while len(found) < count:
            more = self._end.recv(min(count - len(found), 1 << 20))
            if not more:
                raise ConnectionError("the other end is closed")
            found += more
        return bytes(found)
