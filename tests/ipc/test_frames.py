"""Framing: any split into reads gives the same frames, and no length is believed before its bytes are there."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yaqd.ipc.errors import ProtocolViolation
from yaqd.ipc.frames import FrameDecoder, delimited, encode_varint, frame, read_delimited

payloads = st.lists(st.binary(min_size=1, max_size=300), max_size=12)


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    """Cut `data` into pieces of the given sizes, used over and over."""
    pieces, at, turn = [], 0, 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        pieces.append(data[at : at + size])
        at, turn = at + size, turn + 1
    return pieces


def drain(decoder: FrameDecoder) -> list[bytes]:
    frames = []
    while (payload := decoder.next_frame()) is not None:
        frames.append(payload)
    return frames


@given(payloads, st.lists(st.integers(1, 200), min_size=1, max_size=20))
def test_any_split_gives_the_same_frames(expected: list[bytes], sizes: list[int]) -> None:
    stream = b"".join(frame(payload) for payload in expected)
    decoder = FrameDecoder()
    frames = []
    for piece in cut(stream, sizes):
        decoder.feed(piece)
        frames += drain(decoder)
    assert frames == expected
    assert decoder.pending_bytes == 0


def test_a_frame_of_many_reads_arrives_whole() -> None:
    payload = bytes(range(256)) * 4096
    decoder = FrameDecoder()
    for piece in cut(frame(payload) + frame(b"next"), [65536]):
        decoder.feed(memoryview(piece))
    assert drain(decoder) == [payload, b"next"]


@pytest.mark.parametrize("length", [b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x80\0\0\0", b"\x08\0\0\1"])
def test_impossible_lengths_are_refused_at_once(length: bytes) -> None:
    decoder = FrameDecoder()
    decoder.feed(length)
    with pytest.raises(ProtocolViolation, match="outside 1"):
        decoder.next_frame()


def test_a_length_that_lies_allocates_nothing() -> None:
    tracemalloc.start()
    decoder = FrameDecoder()
    decoder.feed((100 << 20).to_bytes(4, "big") + b"x" * 1000)
    assert decoder.next_frame() is None
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000


@given(st.binary(max_size=400))
def test_delimited_round_trip(message: bytes) -> None:
    payload = b"head" + delimited(message) + b"tail"
    assert read_delimited(payload, 4) == (message, len(payload) - 4)


@given(st.integers(0, 2**32 - 1))
def test_varints_are_protobufs(value: int) -> None:
    from google.protobuf.internal.encoder import _VarintBytes  # type: ignore[attr-defined]

    assert encode_varint(value) == _VarintBytes(value)


@given(st.binary(max_size=30), st.integers(0, 30))
def test_delimited_from_anywhere_in_any_bytes_is_right_or_refused(payload: bytes, position: int) -> None:
    try:
        message, end = read_delimited(payload, position)
    except ProtocolViolation:
        return
    assert end <= len(payload)
    assert payload[end - len(message) : end] == message
