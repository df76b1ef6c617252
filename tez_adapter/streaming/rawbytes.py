"""Raw bytes as Hadoop Streaming's scripts speak them: keys and values by turns, each with its length in front."""

import struct
from typing import Final

from riffle_merger.format.columns import Columns
from tez_adapter.streaming.typedbytes import VALUE_BYTES_MAX, BadRecord, pairs_of

_LENGTH: Final = struct.Struct(">i")


class RawBytesReader:
    """A stream of such keys and values that arrives in pieces, as pairs without the lengths."""

    def __init__(self) -> None:
        self._data = bytearray()
        #: bytes that must be there before another item is whole
        self._needed = _LENGTH.size

    def feed(self, piece: bytes) -> Columns:
        """Return the pairs that end in this piece. Raises BadRecord."""
        self._data += piece
        if len(self._data) < self._needed:
            return Columns.empty()
        items: list[tuple[int, int]] = []
        at = 0
        while (end := self._end(at)) >= 0:
            items.append((at + _LENGTH.size, end))
            at = end
        whole = items[: len(items) - len(items) % 2]
        taken = whole[-1][1] if whole else 0
        with memoryview(self._data) as view:
            held = [bytes(view[start:stop]) for start, stop in whole]
        del self._data[:taken]
        self._needed -= taken
        return _pairs(held)

    def finish(self) -> Columns:
        """Return no pair. Raises BadRecord where the stream ends within one."""
        if self._data:
            raise BadRecord("the output ends within a key or value, or after a key: raw bytes come in pairs")
        return Columns.empty()

    def _end(self, at: int) -> int:
        """The end of the item whose length stands there, -1 if it has not come."""
        self._needed = at + _LENGTH.size
        if self._needed > len(self._data):
            return -1
        count: int = _LENGTH.unpack_from(self._data, at)[0]
        if count < 0 or count > VALUE_BYTES_MAX:
            raise BadRecord(
                f"a key or value of {count} bytes: 0 to {VALUE_BYTES_MAX} are taken; "
                "does the script write a length of four bytes, the highest first, before each?"
            )
        self._needed += count
        return self._needed if self._needed <= len(self._data) else -1


def _pairs(items: list[bytes]) -> Columns:
    bounds = [0]
    for item in items:
        bounds.append(bounds[-1] + len(item))
    return pairs_of(b"".join(items), bounds)


def with_length(data: bytes) -> bytes:
    return _LENGTH.pack(len(data)) + data
