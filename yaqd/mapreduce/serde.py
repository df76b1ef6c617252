"""Keys and values as bytes that sort as the values do.

One encoding serves both: a tag byte, then the value. Comparing two encodings as unsigned bytes gives the order of the
values, so sort and merge never decode. It is the order-preserving tuple encoding known from FoundationDB's tuple layer,
with the lengths left out where the end of the record says them. pickle was rejected (runs code, has no order),
JSON too (no bytes, no order of numbers).

Order between types: None < False < True < int < float < bytes < str < tuple < list < dict.
- int: numeric, any size. An int and a float never compare equal: 1 and 1.0 are two keys.
- float: -inf < ... < -0.0 < 0.0 < ... < inf < nan; all nans are one key, -0.0 and 0.0 are two.
- str: order of the UTF-8 bytes, which is that of the code points; bytes carried by surrogateescape sort as those bytes.
- tuple, list: element by element, the shorter first.
- dict: by its items sorted by encoded key; insertion order is not kept.
Subclasses travel as their base type (a namedtuple as a tuple), bytearray and memoryview as bytes, NumPy's numbers as
Python's.
"""

import struct
from collections.abc import Callable, Iterable
from operator import index
from typing import Any, Final

from yaqd.mapreduce.errors import CorruptDataError, UnserializableError, shown

#: what may be a key or a value: None | bool | int | float | bytes | str | tuple | list | dict of these
Value = Any

_END: Final = 0x00
_NONE: Final = 0x01
_FALSE: Final = 0x02
_TRUE: Final = 0x03
#: int 0; a tag n above or below is a number of n bytes, up to 8
_ZERO: Final = 0x20
_BIG_NEGATIVE: Final = 0x17
_BIG_POSITIVE: Final = 0x29
_ONE_BYTE: Final = _ZERO + 1
_FLOAT: Final = 0x40
_BYTES: Final = ord("b")
_STR: Final = ord("s")
_TUPLE: Final = ord("t")
_LIST: Final = ord("u")
_DICT: Final = ord("v")

#: nesting that a key or value may have; a list that contains itself ends here too
DEPTH_MAX: Final = 64
#: bytes of the largest integer accepted from a stream
_INT_BYTES_MAX: Final = 1 << 24
#: of pairs encoded together, what is longer than this is added up, and ends them beyond so many bytes
_LARGE_BYTES: Final = 1024
_LARGE_BYTES_MAX: Final = 8 << 20

_SIGN_BIT: Final = 1 << 63
_ALL_BITS: Final = (1 << 64) - 1
_NAN: Final = bytes([_FLOAT]) + b"\xff" * 8
_pack_double = struct.Struct(">d").pack
_unpack_double = struct.Struct(">d").unpack
_pack_uint64 = struct.Struct(">Q").pack


def _encode_int(value: int) -> bytes:
    if value > 0:
        size = (value.bit_length() + 7) >> 3
        if size <= 8:
            return bytes((_ZERO + size,)) + value.to_bytes(size, "big")
        return bytes((_BIG_POSITIVE,)) + size.to_bytes(4, "big") + value.to_bytes(size, "big")
    if value == 0:
        return bytes((_ZERO,))
    size = ((-value).bit_length() + 7) >> 3
    body = (value + (1 << (8 * size)) - 1).to_bytes(size, "big")
    if size <= 8:
        return bytes((_ZERO - size,)) + body
    return bytes((_BIG_NEGATIVE,)) + (0xFFFFFFFF - size).to_bytes(4, "big") + body


_SMALL_INTS: Final = {number: _encode_int(number) for number in range(-256, 4096)}
_INT_TAGS: Final = {bytes((tag,)) for tag in range(_BIG_NEGATIVE, _BIG_POSITIVE + 1)}
_SMALL_INTS_BACK: Final = {code: number for number, code in _SMALL_INTS.items()}


def encode_key(value: Value) -> bytes:
    """Return the encoding of one key. UnserializableError names the type and the value of one that cannot travel."""
    kind = type(value)
    if kind is str:
        try:
            return b"s" + value.encode()  # type: ignore[no-any-return]
        except UnicodeEncodeError:
            return _encode_escaped(value)
    if kind is int:
        return _SMALL_INTS.get(value) or _encode_int(value)
    if kind is bytes:
        return b"b" + value  # type: ignore[no-any-return]
    if kind is tuple:
        return b"t" + _encode_elements(value, 0)
    return _encode_other(value, 0)


#: values travel in the encoding of keys; the second name is for the reader
encode_value = encode_key


def encode_pairs(pairs: Iterable[tuple[Value, Value]]) -> tuple[list[bytes], list[bytes]]:
    """Return the encodings of keys and of values, each made before the next pair is asked for.

    So a record that its owner changes after handing it on counts as it was; and one loop costs less than several.
    Where large ones among them come to some megabytes, no further pair is asked for.
    """
    keys: list[bytes] = []
    values: list[bytes] = []
    add_key, add_value, small = keys.append, values.append, _SMALL_INTS.get
    large = 0
    for key, value in pairs:
        if type(key) is str:
            try:
                code = b"s" + key.encode()
            except UnicodeEncodeError:
                code = _encode_escaped(key)
        else:
            code = encode_key(key)
        add_key(code)
        if len(code) > _LARGE_BYTES:
            large += len(code)
        if type(value) is int:
            add_value(small(value) or _encode_int(value))
        else:
            if type(value) is str:
                try:
                    code = b"s" + value.encode()
                except UnicodeEncodeError:
                    code = _encode_escaped(value)
            else:
                code = encode_key(value)
            add_value(code)
            if len(code) > _LARGE_BYTES:
                large += len(code)
        if large > _LARGE_BYTES_MAX:
            break
    return keys, values


def _encode_escaped(value: str) -> bytes:
    try:
        return b"s" + value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise UnserializableError(
            f"cannot serialize str {shown.repr(value)}: it holds a lone surrogate, which UTF-8 cannot carry"
        ) from None


def _encode_float(value: float) -> bytes:
    if value != value:
        return _NAN
    bits = int.from_bytes(_pack_double(value), "big")
    return b"\x40" + _pack_uint64(bits ^ _ALL_BITS if bits & _SIGN_BIT else bits | _SIGN_BIT)


def _encode_other(value: Value, depth: int) -> bytes:
    """Any value at the top level, where the end of the record ends it."""
    kind = type(value)
    if value is None:
        return b"\x01"
    if kind is bool:
        return b"\x03" if value else b"\x02"
    if kind is float:
        return _encode_float(value)
    if kind is tuple:
        return b"t" + _encode_elements(value, depth)
    if kind is list:
        return b"u" + _encode_elements(value, depth)
    if kind is dict:
        return b"v" + _encode_items(value, depth)
    return encode_key(_base_value(value))


def _encode_elements(values: Iterable[Value], depth: int) -> bytes:
    if depth >= DEPTH_MAX:
        raise UnserializableError(
            f"cannot serialize a value nested more than {DEPTH_MAX} deep (does a list or dict contain itself?)"
        )
    parts = []
    for value in values:
        kind = type(value)
        if kind is int:
            parts.append(_SMALL_INTS.get(value) or _encode_int(value))
        elif kind is str or kind is bytes:
            code = encode_key(value)
            parts.append(code if b"\x00" not in code else code.replace(b"\x00", b"\x00\xff"))
            parts.append(b"\x00")
        elif kind is tuple or kind is list or kind is dict:
            parts.append(_encode_other(value, depth + 1))
            parts.append(b"\x00")
        elif value is None or kind is bool or kind is float:
            parts.append(_encode_other(value, depth))
        else:
            parts.append(_encode_elements((_base_value(value),), depth))
    return b"".join(parts)


def _encode_items(value: dict[Value, Value], depth: int) -> bytes:
    items = sorted((_encode_elements((key,), depth), _encode_elements((item,), depth)) for key, item in value.items())
    return b"".join(code for item in items for code in item)


#: constructors that make a plain value of a subclass's
_BASES: Final[tuple[Any, ...]] = (float, tuple, list, dict, int, bytes)


def _base_value(value: Value) -> Value:
    """A subclass as its base type; anything else is the job's mistake."""
    if isinstance(value, str):
        return str.__str__(value)
    for base in _BASES:
        if isinstance(value, base):
            return base(value)
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    kind = type(value)
    if kind.__module__ == "numpy" and kind.__name__ == "bool":
        return bool(value)
    try:
        return index(value)
    except TypeError:
        raise UnserializableError(
            f"cannot serialize {kind.__module__}.{kind.__qualname__} {shown.repr(value)}: "
            "keys and values are None, bool, int, float, bytes, str, or tuples, lists and dicts of these"
        ) from None


def decode_key(code: bytes) -> Value:
    """Return the value that `encode_key` encoded. CorruptDataError if `code` is nothing it can have made."""
    tag = code[:1]
    if tag == b"s":
        try:
            return code[1:].decode()
        except UnicodeDecodeError:
            return code[1:].decode("utf-8", "surrogateescape")
    if tag == b"b":
        return code[1:]
    number = _SMALL_INTS_BACK.get(code)
    if number is not None:
        return number
    return _decode_other(code)


decode_value = decode_key


def decode_many(codes: Iterable[bytes]) -> list[Value]:
    """Return `decode_key` of each code; faster per value where all are str, or all small integers."""
    batch = codes if isinstance(codes, list) else list(codes)
    tags = {code[:1] for code in batch}
    if tags == {b"s"}:
        try:
            return [code[1:].decode() for code in batch]
        except UnicodeDecodeError:
            return list(map(decode_key, batch))
    if tags == {b"b"}:
        return [code[1:] for code in batch]
    if not tags <= _INT_TAGS:
        return list(map(decode_key, batch))
    numbers = list(map(_SMALL_INTS_BACK.get, batch))
    return list(map(decode_key, batch)) if None in numbers else numbers


def _decode_other(code: bytes) -> Value:
    if not code:
        raise CorruptDataError("corrupt key or value: no bytes where an encoded value should be")
    try:
        container = _CONTAINERS.get(code[0])
        if container is not None:
            elements, end = _decode_elements(code, 1, 0)
            value = container(elements)
        else:
            value, end = _decode_element(code, 0, 0)
    except (IndexError, struct.error, TypeError, ValueError):
        end = -1
    if end != len(code):
        raise CorruptDataError(f"corrupt key or value: {shown.repr(bytes(code[:64]))} is no encoded value")
    return value


def _decode_elements(code: bytes, at: int, depth: int) -> tuple[list[Value], int]:
    """Elements up to the end mark, or to the end of the code at the top level; and where they end."""
    if depth > DEPTH_MAX:
        raise ValueError("nested too deep")
    values: list[Value] = []
    length = len(code)
    while at < length:
        tag = code[at]
        # the common elements without a call each
        if tag == _STR:
            end = code.find(b"\x00", at)
            if end >= 0 and code[end + 1 : end + 2] != b"\xff":
                values.append(_text(code[at + 1 : end]))
                at = end + 1
                continue
        elif tag == _ONE_BYTE and at + 1 < length:
            values.append(code[at + 1])
            at += 2
            continue
        elif tag == _END:
            if depth == 0:
                raise ValueError("end mark at the top level")
            return values, at + 1
        value, at = _decode_element(code, at, depth)
        values.append(value)
    if depth:
        raise ValueError("no end mark")
    return values, at


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("utf-8", "surrogateescape")


def _decode_element(code: bytes, at: int, depth: int) -> tuple[Value, int]:
    tag = code[at]
    at += 1
    if tag in _SINGLETONS:
        return _SINGLETONS[tag], at
    if _BIG_NEGATIVE <= tag <= _BIG_POSITIVE:
        return _decode_int(code, tag, at)
    if tag == _FLOAT:
        bits = int.from_bytes(code[at : at + 8], "big")
        bits = bits ^ _SIGN_BIT if bits & _SIGN_BIT else bits ^ _ALL_BITS
        if at + 8 > len(code):
            raise ValueError("short float")
        return _unpack_double(_pack_uint64(bits))[0], at + 8
    if tag in (_STR, _BYTES):
        raw, at = _unescape(code, at)
        return raw if tag == _BYTES else _text(raw), at
    container = _CONTAINERS.get(tag)
    if container is None:
        raise ValueError("unknown tag")
    elements, at = _decode_elements(code, at, depth + 1)
    return container(elements), at


def _decode_int(code: bytes, tag: int, at: int) -> tuple[int, int]:
    negative = tag < _ZERO
    size = abs(tag - _ZERO)
    if size > 8:
        size = int.from_bytes(code[at : at + 4], "big")
        size = 0xFFFFFFFF - size if negative else size
        at += 4
    if size > _INT_BYTES_MAX or at + size > len(code):
        raise ValueError("short integer")
    number = int.from_bytes(code[at : at + size], "big")
    return (number - (1 << (8 * size)) + 1 if negative else number), at + size


def _unescape(code: bytes, at: int) -> tuple[bytes, int]:
    """Bytes up to an end mark that no 0xff follows."""
    start = at
    while True:
        at = code.index(b"\x00", at)
        if code[at + 1 : at + 2] != b"\xff":
            return code[start:at].replace(b"\x00\xff", b"\x00"), at + 1
        at += 2


def _dict_of(elements: list[Value]) -> dict[Value, Value]:
    if len(elements) % 2:
        raise ValueError("a key without a value")
    return dict(zip(elements[::2], elements[1::2], strict=True))


_SINGLETONS: Final[dict[int, Value]] = {_NONE: None, _FALSE: False, _TRUE: True}
_CONTAINERS: Final[dict[int, Callable[[list[Value]], Value]]] = {
    _TUPLE: tuple,
    _LIST: lambda elements: elements,
    _DICT: _dict_of,
}
