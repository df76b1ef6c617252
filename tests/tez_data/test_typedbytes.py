"""Typed and raw bytes in pieces of any size, their bounds, and the text that Java makes of them."""

import random
import struct

import numpy as np
import pytest

from tez_adapter.streaming.javatext import float_text, valid_utf8
from tez_adapter.streaming.rawbytes import RawBytesReader
from tez_adapter.streaming.typedbytes import DEPTH_MAX, VALUE_BYTES_MAX, BadRecord, TypedBytesReader, shown

Value = object


def sized(code: int, data: bytes) -> bytes:
    return bytes([code]) + struct.pack(">i", len(data)) + data


def typed(value: Value) -> bytes:
    """Typed bytes of a Python value: tuples are vectors, lists lists."""
    if isinstance(value, bool):
        return bytes([2, value])
    if isinstance(value, int):
        return b"\3" + struct.pack(">i", value)
    if isinstance(value, float):
        return b"\6" + struct.pack(">d", value)
    if isinstance(value, bytes):
        return sized(0, value)
    if isinstance(value, str):
        return sized(7, value.encode())
    if isinstance(value, tuple):
        return b"\x08" + struct.pack(">i", len(value)) + b"".join(map(typed, value))
    if isinstance(value, list):
        return b"\x09" + b"".join(map(typed, value)) + b"\xff"
    assert isinstance(value, dict)
    pairs = b"".join(typed(key) + typed(item) for key, item in value.items())
    return b"\x0a" + struct.pack(">i", len(value)) + pairs


VALUES: list[Value] = [
    (1, "a", (), [[], (2.5, {"k": [True]})]),
    {"b": 1, "a": {}},
    "",
    [],
    b"\0\xff",
    "x" * 700,
    -1,
    [[[["deep"]]]],
]


@pytest.mark.parametrize("piece", [1, 2, 3, 5, 64, 1000, 1 << 20])
def test_pairs_arrive_whole_from_pieces_of_any_size(piece: int) -> None:
    draw = random.Random(piece)
    pairs = [(typed(draw.choice(VALUES)), typed(draw.choice(VALUES))) for _ in range(200)]
    data = b"".join(key + value for key, value in pairs)
    reader = TypedBytesReader()
    found = [pair for at in range(0, len(data), piece) for pair in reader.feed(data[at : at + piece]).pairs()]
    reader.finish()
    assert found == pairs


@pytest.mark.parametrize("piece", [1, 3, 4, 100])
def test_raw_pairs_arrive_whole_from_pieces_of_any_size(piece: int) -> None:
    pairs = [(b"k" * (n % 7), b"v" * (n % 11)) for n in range(100)]
    data = b"".join(struct.pack(">i", len(item)) + item for pair in pairs for item in pair)
    reader = RawBytesReader()
    found = [pair for at in range(0, len(data), piece) for pair in reader.feed(data[at : at + piece]).pairs()]
    reader.finish()
    assert found == pairs


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (b"\x07" + struct.pack(">i", VALUE_BYTES_MAX), "more than"),
        (b"\x07\x7f\xff\xff\xff", "more than"),
        (b"\x08" + struct.pack(">i", VALUE_BYTES_MAX), "more than"),
        (b"\x0a\x7f\xff\xff\xff", "more than"),
        (b"\x07\xff\xff\xff\xff", "a length of -1"),
        (b"\x08\x80\0\0\0", "a length of -2147483648"),
        (b"key\tvalue\n", "107 is more|107 is no type|more than"),
        (b"\x0b", "11 is no type"),
        (b"\xff", "end of a list where"),
        (b"\x08\0\0\0\1\xff", "end of a list where"),
        (b"\x09" * (DEPTH_MAX + 1), "deep"),
    ],
)
def test_what_is_no_typed_bytes_is_refused_at_once(written: bytes, said: str) -> None:
    with pytest.raises(BadRecord, match=said):
        TypedBytesReader().feed(written)


@pytest.mark.parametrize("length", [-1, VALUE_BYTES_MAX + 1, (1 << 31) - 1])
def test_raw_lengths_that_cannot_be_are_refused_at_once(length: int) -> None:
    with pytest.raises(BadRecord, match=f"of {length} bytes"):
        RawBytesReader().feed(struct.pack(">i", length))


def test_a_stream_that_ends_within_a_pair_is_an_error() -> None:
    for rest in (typed("key"), typed("key") + b"\x07\0\0", typed("key") + b"\x09" + typed(1)):
        reader = TypedBytesReader()
        reader.feed(typed(1) + typed(2) + rest)
        with pytest.raises(BadRecord, match="ends within"):
            reader.finish()
    raw = RawBytesReader()
    raw.feed(b"\0\0\0\1k")
    with pytest.raises(BadRecord, match="ends within"):
        raw.finish()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (typed((1, "a", [2.0, True])), "[1, a, [2.0, true]]"),
        (typed({"b": 1, "a": {}}), "{a={}, b=1}"),
        (
            b"\x0a\0\0\0\4" + b"".join(typed(n) + typed(0) for n in (2.0, 0.0, float("nan"), -0.0)),
            "{-0.0=0, 0.0=0, 2.0=0, NaN=0}",
        ),
        (b"\x0a\0\0\0\2" + (typed("k") + typed(1)) + (typed("k") + typed(2)), "{k=2}"),
        (typed({"\U0001f600": 1, "\uff5e": 2}), "{\U0001f600=1, \uff5e=2}"),  # UTF-16 units compare
        (b"\1\xff", "-1"),
        (b"\4" + struct.pack(">q", -(1 << 63)), "-9223372036854775808"),
        (b"\5" + struct.pack(">f", 0.1), "0.1"),
        (sized(77, b"\1\xab"), "01ab"),
        (b"\2\7", "true"),
    ],
)
def test_text_is_as_java_writes_it(value: bytes, text: str) -> None:
    assert shown(value).decode() == text


def test_maps_whose_keys_do_not_compare_have_no_text() -> None:
    for value in ({(): 1}, {1: 1, "a": 2}):
        with pytest.raises(BadRecord, match="do not compare"):
            shown(typed(value))


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (-123.456, "-123.456"),
        (1.5e300, "1.5E300"),
        (5e-324, "4.9E-324"),
        (float("-inf"), "-Infinity"),
        (-0.0, "-0.0"),
        (100.0, "100.0"),
    ],
)
def test_numbers_are_as_java_writes_them(number: float, text: str) -> None:
    assert float_text(np.float64(number)) == text


def test_bytes_that_are_no_utf8_become_what_java_makes_of_them() -> None:
    mark = "\ufffd".encode()
    assert valid_utf8(b"a\xffb") == b"a" + mark + b"b"
    assert valid_utf8(b"\xed\xa0\x80x") == mark + b"x"  # a surrogate is one
    assert valid_utf8(b"\xe0\x80\x80") == mark * 3
    assert valid_utf8(b"\xe2\x82") == mark
    assert valid_utf8("ä".encode()) == "ä".encode()
