"""State and partials as bytes: arrays, numbers, texts, and dicts, lists and tuples of these. No pickle.

A frame is `YAQA`, a version byte and one value. A value is a tag byte and:

    N T F                nothing: None, True, False
    i length:u8 bytes    integer, two's complement
    d f64
    s length:u64 UTF-8   b length:u64 bytes
    l count:u32 values   t count:u32 values: list, tuple
    m count:u32 pairs    dict: of each pair a text and a value, in the dict's order
    a dtype ndim:u8 dimensions:u64... zeros to a multiple of 64 from the frame's begin, data in C order

All numbers are little-endian. `from_bytes` makes no copy of an array: it is a read-only view of the frame. Nothing is
allocated on the word of a length: each is checked against the bytes that are left.
"""

import math
import struct
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from yaqd.mapreduce.errors import CorruptDataError, UnserializableError, shown

_MAGIC: Final = b"YAQA\x01"
_ALIGNMENT: Final = 64
#: what allocators give at least
_MEMORY_ALIGNMENT: Final = 16
#: nested dicts, lists and tuples
DEPTH_MAX: Final = 32
#: values of all lists, tuples and dicts of a frame
VALUES_MAX: Final = 1 << 20
_DIMENSIONS_MAX: Final = 32
_DIMENSION_MAX: Final = 1 << 48
_INTEGER_BYTES_MAX: Final = 255
#: what an array may hold: truth values, integers, floats, complex numbers
_KINDS: Final = "biufc"
_U32: Final = struct.Struct("<I")
_U64: Final = struct.Struct("<Q")
_F64: Final = struct.Struct("<d")


def to_bytes(value: Any) -> bytes:
    """Return the frame of a value. The same value gives the same bytes. UnserializableError: it holds other things."""
    parts = _Parts()
    parts.add(_MAGIC)
    _put(parts, value, 0)
    return b"".join(parts.pieces)


def from_bytes(data: bytes | memoryview) -> Any:
    """Return the value of a frame; arrays are read-only, and views of `data`. CorruptDataError: it is none."""
    frame = _Frame(data)
    if frame.take(len(_MAGIC)) != _MAGIC:
        raise CorruptDataError("no frame of arrays: it begins with other bytes")
    value = _get(frame, 0)
    if frame.position != len(data):
        raise CorruptDataError(f"a frame of arrays has {len(data) - frame.position} bytes too many")
    return value


class _Parts:
    def __init__(self) -> None:
        self.pieces: list[bytes | memoryview] = []
        self.length = 0
        self.values = 0

    def add(self, *pieces: bytes | memoryview) -> None:
        self.pieces += pieces
        self.length += sum(map(len, pieces))

    def count(self, values: int) -> bytes:
        self.values += values
        if self.values > VALUES_MAX:
            raise UnserializableError(f"more than {VALUES_MAX:,} values: put numbers into an array")
        return _U32.pack(values)


def _put(parts: _Parts, value: Any, depth: int) -> None:
    if depth > DEPTH_MAX:
        raise UnserializableError(f"nested more than {DEPTH_MAX} deep")
    if isinstance(value, np.ndarray):
        _put_array(parts, value)
    elif value is None or isinstance(value, bool | np.bool_):
        parts.add(b"N" if value is None else b"T" if value else b"F")
    elif isinstance(value, int | np.integer):
        number = int(value)
        raw = number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True)
        if len(raw) > _INTEGER_BYTES_MAX:
            raise UnserializableError(f"an integer of {number.bit_length()} bits")
        parts.add(b"i", bytes((len(raw),)), raw)
    elif isinstance(value, float | np.floating):
        parts.add(b"d", _F64.pack(float(value)))
    elif isinstance(value, str | bytes):
        _put_text(parts, value)
    elif isinstance(value, list | tuple):
        parts.add(b"l" if isinstance(value, list) else b"t", parts.count(len(value)))
        for item in value:
            _put(parts, item, depth + 1)
    elif isinstance(value, dict):
        parts.add(b"m", parts.count(len(value)))
        for key, item in value.items():
            if not isinstance(key, str):
                raise UnserializableError(f"a dict with the key {shown.repr(key)}: keys are texts")
            _put_text(parts, key)
            _put(parts, item, depth + 1)
    else:
        raise UnserializableError(
            f"a {type(value).__name__}: return arrays, numbers, texts, or dicts, lists and tuples of these"
        )


def _put_text(parts: _Parts, value: str | bytes) -> None:
    try:
        raw = value.encode() if isinstance(value, str) else value
    except UnicodeEncodeError as error:
        raise UnserializableError(f"a text that is no Unicode: {error}") from None
    parts.add(b"s" if isinstance(value, str) else b"b", _U64.pack(len(raw)), raw)


def _put_array(parts: _Parts, array: np.ndarray[Any, Any]) -> None:
    if array.dtype.kind not in _KINDS:
        raise UnserializableError(f"an array of {array.dtype}: its elements must be numbers")
    plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(array.shape)
    name = plain.dtype.str.encode()
    parts.add(b"a", bytes((len(name),)), name, bytes((array.ndim,)))
    parts.add(*map(_U64.pack, array.shape))
    parts.add(bytes(-parts.length % _ALIGNMENT))
    if plain.size:
        parts.add(plain.reshape(-1).view(np.uint8).data)


class _Frame:
    def __init__(self, data: bytes | memoryview) -> None:
        self.data = data if isinstance(data, bytes) else data.cast("B")
        self.position = 0
        self.values = 0

    def take(self, count: int) -> bytes:
        return bytes(self.data[self.skip(count) : self.position])

    def skip(self, count: int) -> int:
        """Go on behind the next bytes; return where they begin."""
        begin = self.position
        if count > len(self.data) - begin:
            raise CorruptDataError(f"a frame of arrays ends in byte {len(self.data)}, where {count} more are announced")
        self.position = begin + count
        return begin

    def number(self, layout: struct.Struct) -> int:
        (value,) = layout.unpack(self.take(layout.size))
        return int(value)

    def count(self) -> int:
        count = self.number(_U32)
        self.values += count
        if self.values > VALUES_MAX:
            raise CorruptDataError(f"a frame of arrays has more than {VALUES_MAX:,} values")
        return count


def _get(frame: _Frame, depth: int) -> Any:
    tag = frame.take(1)
    if depth > DEPTH_MAX or tag not in _READERS:
        raise CorruptDataError(f"a frame of arrays has {tag!r} in byte {frame.position - 1}, {depth} deep")
    return _READERS[tag](frame, depth)


def _get_text(frame: _Frame, depth: int = 0) -> str:
    try:
        return frame.take(frame.number(_U64)).decode()
    except UnicodeDecodeError as error:
        raise CorruptDataError(f"a frame of arrays has a text that is no UTF-8: {error}") from None


def _get_list(frame: _Frame, depth: int) -> list[Any]:
    return [_get(frame, depth + 1) for _ in range(frame.count())]


def _get_dict(frame: _Frame, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(frame.count()):
        if frame.take(1) != b"s":
            raise CorruptDataError(f"a frame of arrays has a key that is no text in byte {frame.position - 1}")
        key = _get_text(frame)
        if key in found:
            raise CorruptDataError(f"a frame of arrays has the key {shown.repr(key)} twice")
        found[key] = _get(frame, depth + 1)
    return found


def _get_array(frame: _Frame, depth: int) -> np.ndarray[Any, Any]:
    dtype = _dtype(frame.take(frame.take(1)[0]))
    dimensions = frame.take(1)[0]
    if dimensions > _DIMENSIONS_MAX:
        raise CorruptDataError(f"a frame of arrays has an array of {dimensions} dimensions")
    shape = tuple(frame.number(_U64) for _ in range(dimensions))
    if any(length > _DIMENSION_MAX for length in shape) or math.prod(filter(None, shape)) > _DIMENSION_MAX:
        raise CorruptDataError(f"a frame of arrays has an array of the shape {shape}")
    frame.skip(-frame.position % _ALIGNMENT)
    size = math.prod(shape)
    begin = frame.skip(size * dtype.itemsize)
    if not size:
        return _read_only(np.empty(shape, dtype))
    array = np.frombuffer(frame.data, dtype, size, begin).reshape(shape)
    if dtype.kind == "b" and array.view(np.uint8).max() > 1:
        raise CorruptDataError("a frame of arrays has truth values other than 0 and 1")
    # where the frame itself begins is chance; sums must not depend on it
    return _read_only(array.copy() if array.ctypes.data % _MEMORY_ALIGNMENT else array)


def _dtype(name: bytes) -> "np.dtype[Any]":
    if len(name) in (3, 4) and name[:1] in b"<|" and chr(name[1]) in _KINDS and name[2:].isdigit():
        try:
            return np.dtype(name.decode())
        except (TypeError, ValueError):
            pass
    raise CorruptDataError(f"a frame of arrays has an array of {name!r}")


def _read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    array.flags.writeable = False
    return array


_READERS: Final[dict[bytes, Callable[[_Frame, int], Any]]] = {
    b"N": lambda frame, depth: None,
    b"T": lambda frame, depth: True,
    b"F": lambda frame, depth: False,
    b"i": lambda frame, depth: int.from_bytes(frame.take(frame.take(1)[0]), "little", signed=True),
    b"d": lambda frame, depth: _F64.unpack(frame.take(8))[0],
    b"s": _get_text,
    b"b": lambda frame, depth: frame.take(frame.number(_U64)),
    b"l": _get_list,
    b"t": lambda frame, depth: tuple(_get_list(frame, depth)),
    b"m": _get_dict,
    b"a": _get_array,
}
