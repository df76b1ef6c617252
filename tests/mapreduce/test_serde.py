"""Encodings come back as what they were, and sort as the values do."""

import enum
import math
from collections import namedtuple
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from yaqd.mapreduce import CorruptDataError, JobError, UnserializableError
from yaqd.mapreduce.serde import decode_key, decode_many, encode_key, encode_pairs

# strings whose surrogates all come from undecodable bytes, as text input makes them
text = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape")),
)
integers = st.one_of(st.integers(), st.integers(-(2**70), 2**70), st.integers(-300, 5000))
scalars = st.one_of(st.none(), st.booleans(), integers, st.floats(), st.binary(), text)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.one_of(text, integers, st.binary()), inner, max_size=4),
    ),
    max_leaves=12,
)


def same(left: Any, right: Any) -> bool:
    """Equal in type and value; nan is nan."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        same_sign = math.copysign(1, left) == math.copysign(1, right)
        return (same_sign and left == right) or (left != left and right != right)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return {encode_key(key) for key in left} == {encode_key(key) for key in right} and all(
            same(left[key], right[key]) for key in left
        )
    return bool(left == right)


@given(values)
def test_round_trip(value: Any) -> None:
    assert same(decode_key(encode_key(value)), value)


@given(st.lists(values, max_size=6))
def test_batches_are_the_single_codes(batch: list[Any]) -> None:
    codes = list(map(encode_key, batch))
    assert encode_pairs(zip(batch, reversed(batch), strict=True)) == (codes, codes[::-1])
    assert all(map(same, decode_many(codes), batch))


@given(st.lists(text))
def test_batches_of_text(batch: list[str]) -> None:
    codes = [encode_key(item) for item in batch]
    assert decode_many(codes) == batch
    assert encode_pairs(zip(batch, batch, strict=True)) == (codes, codes)


def test_a_pair_is_encoded_before_the_next_is_asked_for() -> None:
    def pairs() -> Iterator[tuple[Any, Any]]:
        row: dict[str, int] = {}
        for number in range(3):
            row["n"] = number
            yield row, [row]

    rows = [{"n": number} for number in range(3)]
    assert encode_pairs(pairs()) == ([encode_key(row) for row in rows], [encode_key([row]) for row in rows])


def sort_key(value: Any) -> Any:
    """The order that the module promises, spelled out another way."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if isinstance(value, float):
        return (1, 0.0, 0) if value != value else (0, value, math.copysign(1, value))
    if isinstance(value, (tuple, list)):
        return [(RANKS[type(item)], sort_key(item)) for item in value]
    return value


RANKS = {type(None): 0, bool: 1, int: 2, float: 3, bytes: 4, str: 5, tuple: 6, list: 7}
ordered = st.recursive(
    scalars.filter(lambda value: value is not None),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple)),
    max_leaves=6,
)


@given(ordered, ordered)
@example(-1, 0)
@example(255, 256)
@example(-256, -255)
@example(2**64, 2**64 - 1)
@example(-(2**64), -(2**64) + 1)
@example(2**2000, 2**2008)
@example(-(2**2000), -(2**2008))
@example(0.0, -0.0)
@example(float("inf"), float("nan"))
@example(("a",), ("a", None))
@example(("a", "b"), ("a\0", "b"))
@example((b"\x00",), (b"\x00\xff",))
@example((("a",), "b"), (("a", "a"),))
@example("a", "a\0")
def test_bytes_sort_as_values(left: Any, right: Any) -> None:
    wanted = (RANKS[type(left)], sort_key(left)) < (RANKS[type(right)], sort_key(right))
    assert (encode_key(left) < encode_key(right)) == wanted
    assert (encode_key(left) == encode_key(right)) == same(left, right)


@given(st.dictionaries(text, integers, max_size=5))
def test_a_dict_has_one_encoding(value: dict[str, int]) -> None:
    assert encode_key(value) == encode_key(dict(reversed(value.items())))


@given(st.binary(max_size=40))
@example(b"")
@example(b"t\x00")
@example(b"\x29\xff\xff\xff\xff")
@example(b"v\x01")
@example(b"v" + encode_key([])[:1] + b"\x00\x01")
@example(b"\x21")
def test_any_bytes_decode_or_are_called_corrupt(code: bytes) -> None:
    try:
        decode_key(code)
    except CorruptDataError as error:
        assert "corrupt" in str(error) and "\n" not in str(error)


class Colour(enum.IntEnum):
    RED = 3


Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("given_value", "comes_back_as"),
    [
        (Colour.RED, 3),
        (Point(1, 2), (1, 2)),
        ((Colour.RED, Point(1, 2)), (3, (1, 2))),
        (np.int64(7), 7),
        (np.float64(1.5), 1.5),
        (np.str_("x"), "x"),
        (np.bool_(True), True),
        (bytearray(b"x"), b"x"),
        (memoryview(b"x"), b"x"),
    ],
)
def test_subclasses_travel_as_their_base(given_value: Any, comes_back_as: Any) -> None:
    back = decode_key(encode_key(given_value))
    assert back == comes_back_as and type(back) is type(comes_back_as)


def test_what_cannot_travel_is_named_with_its_type_and_value() -> None:
    with pytest.raises(UnserializableError, match=r"builtins\.set \{1\}: keys and values are None, bool"):
        encode_key({1})
    with pytest.raises(TypeError):
        encode_key(object())
    with pytest.raises(JobError) as caught:
        encode_key(("key", {"x" * 10_000}))
    assert len(str(caught.value)) < 400 and "\n" not in str(caught.value)
    with pytest.raises(JobError, match="lone surrogate"):
        encode_key("\ud800")


def test_a_list_that_holds_itself_ends_in_one_line() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(UnserializableError, match="nested more than 64 deep"):
        encode_key(loop)


def test_encodings_are_compact() -> None:
    assert len(encode_key("word")) == 5
    assert len(encode_key(1)) == 2
    assert len(encode_key(("word", 1))) == 9


def test_few_large_pairs_are_encoded_together() -> None:
    asked = []

    def pairs() -> Iterator[tuple[Any, Any]]:
        for number in range(200):
            asked.append(number)
            yield (number, bytes(1 << 20)) if number % 2 else ("k" * (1 << 20), number)

    rest = pairs()
    batches = []
    while batch := encode_pairs(rest)[0]:
        batches.append(len(batch))
        assert len(asked) == sum(batches)
    assert sum(batches) == 200 and max(batches) < 20
