"""Hadoop's typed bytes: a byte that says the type, then the value; containers hold typed bytes again.

Of what a script writes only the ends of keys and values are looked for: they are sorted and handed on as they are.
Text is made of them in the output files alone. Nothing is kept ready for a length before its bytes have come.
"""

import struct
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from riffle_merger.format.columns import Columns, array_items, binary_array
from tez_adapter.streaming.javatext import float_text, valid_utf8

BYTES: Final = 0
LONG: Final = 4
STRING: Final = 7
_BYTE, _BOOL, _INT, _FLOAT, _DOUBLE, _VECTOR, _LIST, _MAP, _MARK = 1, 2, 3, 5, 6, 8, 9, 10, 255
#: bytes of types of one size, with the type's own
_FIXED: Final = {_BYTE: 2, _BOOL: 2, _INT: 5, LONG: 9, _FLOAT: 5, _DOUBLE: 9}
#: bytes with a length in front: Hadoop's two, and the types that applications may use
_SIZED: Final = frozenset((BYTES, STRING, *range(50, 201)))
_NUMBERS: Final = {_BYTE: ">b", _BOOL: ">?", _INT: ">i", LONG: ">q", _FLOAT: ">f", _DOUBLE: ">d"}
#: a key or value that says it is longer is refused: it would have to be held whole
VALUE_BYTES_MAX: Final = 256 << 20
#: containers within containers
DEPTH_MAX: Final = 100
_UNTIL_MARK: Final = -1


class BadRecord(ValueError):
    """A script wrote what is no key and value of the format that it was told to write."""


class _Extent:
    """Looks for the end of one value, whose bytes come bit by bit."""

    def __init__(self) -> None:
        #: values that are still to come in each open container
        self._open: list[int] = []
        self._start = 0
        #: end of what was looked at; a value's first byte where one is open
        self.at = 0
        #: bytes that must be there before looking on is of use
        self.needed = 1

    def begin(self, start: int) -> None:
        self._start = self.at = start
        self.needed = start + 1

    def moved(self, by: int) -> None:
        self._start -= by
        self.at -= by
        self.needed -= by

    def end(self, data: bytearray) -> int:
        """The value's end, -1 if it has not come yet. Raises BadRecord."""
        while True:
            if (stop := self._step(data)) < 0:
                return -1
            if stop - self._start > VALUE_BYTES_MAX:
                raise BadRecord(
                    f"a key or value of {stop - self._start} bytes: more than {VALUE_BYTES_MAX} are not taken; "
                    "does the script write what it means?"
                )
            if stop > len(data):
                self.needed = stop
                return -1
            is_open = self._entered(data, stop)
            self.at = stop
            if not is_open and self._is_whole():
                return stop
            self.needed = stop + 1

    def _step(self, data: bytearray) -> int:
        """Where the next value, or what a container begins with, ends; -1 if that has not come."""
        if self.at >= len(data):
            self.needed = self.at + 1
            return -1
        code = data[self.at]
        if size := _FIXED.get(code):
            return self.at + size
        if code in (_LIST, _MARK):
            return self.at + 1
        if code not in _SIZED and code not in (_VECTOR, _MAP):
            raise BadRecord(f"{code} is no type of typed bytes: does the script write another format?")
        if self.at + 5 > len(data):
            self.needed = self.at + 5
            return -1
        count: int = struct.unpack_from(">i", data, self.at + 1)[0]
        if count < 0:
            raise BadRecord(f"a length of {count} in typed bytes")
        return self.at + 5 + (count if code in _SIZED else 0)

    def _entered(self, data: bytearray, stop: int) -> bool:
        """Whether a container has begun of which more is to come; its end is a value's."""
        code = data[self.at]
        if code == _MARK:
            if not self._open or self._open[-1] != _UNTIL_MARK:
                raise BadRecord("the end of a list where a value should be in typed bytes")
            self._open.pop()
            return False
        if code not in (_VECTOR, _LIST, _MAP):
            return False
        count = _UNTIL_MARK
        if code != _LIST:
            count = struct.unpack_from(">i", data, self.at + 1)[0] * (2 if code == _MAP else 1)
            if 2 * count > VALUE_BYTES_MAX:
                raise BadRecord(f"{count} values in one: more than {VALUE_BYTES_MAX} bytes are not taken")
        if not count:
            return False
        if len(self._open) >= DEPTH_MAX:
            raise BadRecord(f"containers more than {DEPTH_MAX} deep in typed bytes")
        self._open.append(count)
        return True

    def _is_whole(self) -> bool:
        """After a value: whether it was the last one of all containers."""
        while self._open and self._open[-1] != _UNTIL_MARK:
            self._open[-1] -= 1
            if self._open[-1]:
                return False
            self._open.pop()
        return not self._open


class TypedBytesReader:
    """A stream of typed keys and values that arrives in pieces, as pairs."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._extent = _Extent()
        #: of values that are found and not handed on
        self._ends: list[int] = []

    def feed(self, piece: bytes) -> Columns:
        """Return the pairs that end in this piece. Raises BadRecord."""
        self._data += piece
        if len(self._data) < self._extent.needed:
            return Columns.empty()
        end = self._extent.end(self._data)
        while end >= 0:
            self._ends.append(end)
            self._extent.begin(_plain_ends(self._data, end, self._ends))
            end = self._extent.end(self._data)
        return self._taken()

    def finish(self) -> Columns:
        """Return no pair. Raises BadRecord where the stream ends within one."""
        if self._data:
            raise BadRecord("the output ends within a key or value, or after a key: typed bytes come in pairs")
        return Columns.empty()

    def _taken(self) -> Columns:
        key_alone = self._ends[-1:] if len(self._ends) % 2 else []
        bounds = [0, *self._ends[: len(self._ends) - len(key_alone)]]
        whole = bounds[-1]
        with memoryview(self._data) as view:
            columns = pairs_of(bytes(view[:whole]), bounds)
        del self._data[:whole]
        self._extent.moved(whole)
        self._ends = [end - whole for end in key_alone]
        return columns


def _plain_ends(data: bytearray, at: int, ends: list[int]) -> int:
    """Add the ends of values that are whole and no containers, and give the last one: most values are such."""
    size = len(data)
    while at < size:
        code = data[at]
        stop = at + _FIXED.get(code, 0)
        if stop == at:
            if code not in _SIZED:
                break
            stop += 5 + int.from_bytes(data[at + 1 : at + 5], "big")
            if stop - at > VALUE_BYTES_MAX or at + 5 > size:
                break
        if stop > size:
            break
        ends.append(stop)
        at = stop
    return at


def pairs_of(data: bytes, bounds: list[int]) -> Columns:
    """Cut keys and values by turns, from one bound to the next."""
    if len(bounds) == 1:
        return Columns.empty()
    items = binary_array(np.frombuffer(data, dtype=np.uint8), np.array(bounds, dtype=np.int64))
    at = np.arange(0, len(bounds) - 1, 2, dtype=np.int64)
    return Columns(*array_items(items.take(pa.array(at))), *array_items(items.take(pa.array(at + 1))))


# ---- text


@dataclass(frozen=True, slots=True)
class _Value:
    #: of keys in a map: those of one kind compare by `order`; containers do not compare
    kind: str
    order: Any
    text: bytes


def shown(data: bytes) -> bytes:
    """Return the text of whole typed bytes, as Java's objects of them write it. Raises BadRecord."""
    return _Reading(data).value().text


class _Reading:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def value(self) -> _Value:
        code = self._data[self._at]
        self._at += 1
        if code in _NUMBERS:
            return self._number(code)
        if code in _SIZED:
            held = self._bytes()
            if code == STRING:
                text = valid_utf8(held)
                return _Value("string", text.decode().encode("utf-16-be"), text)
            return _Value("bytes", held, held.hex().encode())
        if code == _MAP:
            return _Value("map", None, self._map())
        return _Value("list", None, b"[" + b", ".join(self._items(code)) + b"]")

    def _number(self, code: int) -> _Value:
        number = struct.unpack_from(_NUMBERS[code], self._data, self._at)[0]
        self._at += _FIXED[code] - 1
        if code == _BOOL:
            return _Value("bool", number, b"true" if number else b"false")
        if code not in (_FLOAT, _DOUBLE):
            return _Value(_NUMBERS[code], number, b"%d" % number)
        text = float_text(np.float32(number) if code == _FLOAT else np.float64(number)).encode()
        order = (number != number, 0.0 if number != number else number, text[:1] != b"-")  # -0.0 before 0.0, NaN last
        return _Value(_NUMBERS[code], order, text)

    def _items(self, code: int) -> list[bytes]:
        texts = []
        if code == _VECTOR:
            for _ in range(self._count()):
                texts.append(self.value().text)
            return texts
        while self._data[self._at] != _MARK:
            texts.append(self.value().text)
        self._at += 1
        return texts

    def _map(self) -> bytes:
        entries: dict[Any, tuple[bytes, bytes]] = {}
        kinds = set()
        for _ in range(self._count()):
            key, text = self.value(), self.value().text
            kinds.add(key.kind)
            if key.kind in ("list", "map") or len(kinds) > 1:
                raise BadRecord("a map in typed bytes whose keys do not compare: its text has no order")
            first, _ = entries.get(key.order, (key.text, b""))
            entries[key.order] = (first, text)
        return b"{" + b", ".join(key + b"=" + text for _, (key, text) in sorted(entries.items())) + b"}"

    def _count(self) -> int:
        count: int = struct.unpack_from(">i", self._data, self._at)[0]
        self._at += 4
        return count

    def _bytes(self) -> bytes:
        count = self._count()
        self._at += count
        return self._data[self._at - count : self._at]
