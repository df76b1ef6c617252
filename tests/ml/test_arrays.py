"""State and partials as bytes: what goes in comes out, read-only, and no bytes at all do harm."""

import math
import os
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.examples import examples
from yaqd.mapreduce import CorruptDataError, UnserializableError
from yaqd.ml.arrays import DEPTH_MAX, from_bytes, to_bytes

_arrays = hnp.arrays(
    st.one_of(hnp.boolean_dtypes(), hnp.integer_dtypes(), hnp.floating_dtypes(), hnp.complex_number_dtypes()),
    hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5),
)
_leaves = st.one_of(
    _arrays, st.floats(), st.integers(-(2**200), 2**200), st.booleans(), st.none(), st.text(), st.binary()
)
values = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.text(max_size=5), inner, max_size=4),
    ),
    max_leaves=12,
)


def is_same(one: Any, other: Any) -> bool:
    """To the bit, types and order included."""
    if isinstance(one, np.ndarray):
        plain = one.astype(one.dtype.newbyteorder("<"))
        return (
            isinstance(other, np.ndarray)
            and other.dtype == plain.dtype
            and other.shape == one.shape
            and other.tobytes() == plain.tobytes()
        )
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(is_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(is_same, one, other))
    return bool(one == other)


@pytest.mark.slow
@given(values)
def test_what_goes_in_comes_out(value: Any) -> None:
    frame = to_bytes(value)
    assert is_same(value, from_bytes(frame))
    assert to_bytes(from_bytes(frame)) == frame
    assert is_same(value, from_bytes(memoryview(bytearray(b"x" + frame))[1:]))


@pytest.mark.slow
@given(values, st.data())
@settings(max_examples=examples(300))
def test_damaged_frames_are_refused_or_give_another_value(value: Any, data: st.DataObject) -> None:
    """Whatever the damage, nothing but CorruptDataError comes of it, and memory stays within the frame's size."""
    frame = bytearray(to_bytes(value))
    for _ in range(data.draw(st.integers(1, 3))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    try:
        to_bytes(from_bytes(bytes(frame)))
    except (CorruptDataError, UnserializableError):
        pass


@given(values)
def test_a_frame_that_is_cut_short_or_too_long_is_refused(value: Any) -> None:
    frame = to_bytes(value)
    for cut in {0, 1, len(frame) // 2, len(frame) - 1}:
        with pytest.raises(CorruptDataError):
            from_bytes(frame[:cut])
    with pytest.raises(CorruptDataError):
        from_bytes(frame + b"\0")


@given(st.binary(max_size=200))
def test_any_bytes_behind_the_magic_do_no_harm(data: bytes) -> None:
    try:
        from_bytes(b"YAQA\x01" + data)
    except CorruptDataError:
        pass


def _array_frame(dtype: bytes, *shape: int) -> bytes:
    head = b"YAQA\x01a" + bytes((len(dtype),)) + dtype + bytes((len(shape),))
    return head + b"".join(length.to_bytes(8, "little") for length in shape)


@pytest.mark.parametrize(
    "frame",
    (
        _array_frame(b"|O8", 1) + bytes(200),
        _array_frame(b"<f8", 2**40, 2**40) + bytes(200),
        _array_frame(b"<f8", 2**63, 0) + bytes(200),
        _array_frame(b"<f8", 2**47) + bytes(200),
        _array_frame(b"|V8", 1) + bytes(200),
        _array_frame(b">f8", 1) + bytes(200),
        b"YAQA\x01" + b"l\x01\0\0\0" * (DEPTH_MAX + 2) + b"N",
        b"YAQA\x01l\xff\xff\xff\xff",
        b"YAQA\x01s" + b"\xff" * 8,
        b"YAQA\x01m\x02\0\0\0" + (b"s\x01" + bytes(7) + b"aN") * 2,
        b"YAQA\x02N",
        b"\x80\x05N.",  # a pickle
    ),
)
def test_hostile_frames_are_refused(frame: bytes) -> None:
    with pytest.raises(CorruptDataError):
        from_bytes(frame)


def test_truth_values_are_0_or_1() -> None:
    frame = bytearray(to_bytes(np.array([True, False])))
    frame[-1] = 2
    with pytest.raises(CorruptDataError, match="truth values"):
        from_bytes(bytes(frame))


def test_arrays_are_read_only_and_no_copies() -> None:
    frame = to_bytes({"w": np.arange(1000.0)})
    array = from_bytes(frame)["w"]
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
    assert np.shares_memory(array, np.frombuffer(frame, np.uint8))
    assert array.ctypes.data % 16 == 0


def test_sums_do_not_depend_on_where_a_frame_lies() -> None:
    numbers = np.random.default_rng(3).normal(size=10_001)
    frame = to_bytes(numbers)
    found = set()
    for offset in range(16):
        buffer = bytearray(len(frame) + offset)
        buffer[offset:] = frame
        array = from_bytes(memoryview(buffer)[offset:])
        found.add((float(array.sum()), float(array @ array)))
    assert len(found) == 1


@pytest.mark.parametrize("value", ({1: 2.0}, {"a": {1, 2}}, object(), np.array([object()]), "\ud800", os, [print]))
def test_what_cannot_travel_is_refused(value: Any) -> None:
    with pytest.raises(UnserializableError):
        to_bytes(value)


def test_nesting_without_end_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(UnserializableError, match="deep"):
        to_bytes(endless)


def test_orders_in_memory_do_not_matter() -> None:
    array = np.arange(12.0).reshape(3, 4)
    assert to_bytes(np.asfortranarray(array)) == to_bytes(array) == to_bytes(array[::-1][::-1])
    assert to_bytes(array.astype(">f8")) == to_bytes(array)
