"""Writable primitives against known bytes, themselves, and strangers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yaqd.security.writable import BadWritable, WritableReader, encode_text, encode_vint, encode_vlong


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (127, "7f"),
        (-1, "ff"),
        (-112, "90"),
        (128, "8f80"),
        (1000, "8e03e8"),
        (-113, "8770"),
        (-256, "87ff"),
        (-257, "860100"),
        (2**31 - 1, "8c7fffffff"),
        (2**63 - 1, "887fffffffffffffff"),
        (-(2**63), "807fffffffffffffff"),
    ],
)
def test_numbers_are_javas_bytes(value: int, encoded: str) -> None:
    assert encode_vlong(value).hex() == encoded
    assert WritableReader(bytes.fromhex(encoded)).vlong() == value


@given(st.integers(-(2**63), 2**63 - 1), st.text())
def test_round_trip(number: int, text: str) -> None:
    reader = WritableReader(encode_vlong(number) + encode_text(text))
    assert (reader.vlong(), reader.text(), reader.remaining) == (number, text, 0)


@pytest.mark.parametrize("encode", [encode_vint, encode_vlong])
def test_numbers_that_do_not_fit(encode: object) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        encode(2**63)  # type: ignore[operator]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x8e\x03",
        b"\x88" + b"\xff" * 8,
        encode_vlong(2**31),
        encode_vint(-1),
        encode_vint(5) + b"four",
        b"\1\xff",
    ],
)
def test_lies_and_torn_ends_are_refused(data: bytes) -> None:
    with pytest.raises(BadWritable):
        WritableReader(data).text()


@given(st.binary(max_size=40))
def test_any_bytes_read_or_are_refused(data: bytes) -> None:
    reader = WritableReader(data)
    try:
        while True:
            reader.text()
    except BadWritable:
        assert 0 <= reader.position <= len(data)
