"""The credentials stream: both forms, Spark's trailing bytes, and strangers."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yaqd.security import BadCredentials, Credentials, Token

texts = st.text(max_size=20)
tokens = st.builds(Token, st.binary(max_size=50), st.binary(max_size=20), texts, texts)
credentials = st.builds(
    Credentials, st.dictionaries(texts, tokens, max_size=4), st.dictionaries(texts, st.binary(max_size=30), max_size=4)
)


@given(credentials, st.integers(0, 64))
def test_round_trip_with_trailing_zeros(value: Credentials, zeros: int) -> None:
    for encoded in (value.write(), value.write_protobuf()):
        read = Credentials.read(encoded + bytes(zeros))
        assert read == value
        assert list(read.tokens) == list(value.tokens)  # the order of the file


def test_the_bytes_hadoop_writes() -> None:
    token = Token(b"id", b"pw", "NMToken", "127.0.0.1:8041")
    stream = b"HDTS\0\1\x05alias\2id\2pw\7NMToken\x0e127.0.0.1:8041" + b"\1\1s\3key"
    assert Credentials({"alias": token}, {"s": b"key"}).write() == stream
    assert Credentials.read(stream) == Credentials({"alias": token}, {"s": b"key"})
    assert Credentials().write() == b"HDTS\0\0\0"


def test_no_bytes_are_no_credentials() -> None:
    assert Credentials.read(b"") == Credentials()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"HDT", "damaged"),
        (b"JUNK\0\0\0", "does not begin with HDTS"),
        (b"HDTS\2\0\0", "format 2"),
        (b"HDTS\0\x8c\x7f\xff\xff\xff", "2147483647 entries"),
        (b"HDTS\0\xff\0", "-1 entries"),
        (b"HDTS\0\1\x8c\x7f\xff\xff\xff", "2147483647 bytes"),
        (b"HDTS\0\0", "damaged"),
        (b"HDTS\1\xff\xff\xff\xff\x7f", "bytes announced"),
        (b"HDTS\1\xff\xff\xff\xff\xff\xff", "more than five bytes"),
        (b"HDTS\1\2\x0a\x00", "required fields"),
        (b"HDTS\1\1\x0a", "damaged"),
    ],
)
def test_damage_is_named(data: bytes, why: str) -> None:
    with pytest.raises(BadCredentials, match=why):
        Credentials.read(data)


@given(credentials, st.lists(st.tuples(st.integers(0, 300), st.integers(0, 255)), max_size=4), st.integers(0, 300))
def test_mutated_streams_read_or_are_refused(value: Credentials, changes: list[tuple[int, int]], length: int) -> None:
    for encoded in (value.write(), value.write_protobuf()):
        damaged = bytearray(encoded)
        for at, byte in changes:
            damaged[at % len(damaged)] = byte
        try:
            Credentials.read(bytes(damaged[:length]))
        except BadCredentials:
            pass


def test_adding_a_token_keeps_everything_else() -> None:
    before = Credentials({"hdfs": Token(b"1", b"2", "HDFS_DELEGATION_TOKEN", "h")}, {"s": b"x"})
    after = before.with_token("", Token(b"a", b"b", "YARN_AM_RM_TOKEN", ""))
    assert list(after.tokens) == ["hdfs", ""] and after.secrets == {"s": b"x"}
    assert list(before.tokens) == ["hdfs"]
    assert after.token_of_kind("YARN_AM_RM_TOKEN") == Token(b"a", b"b", "YARN_AM_RM_TOKEN", "")
    assert after.token_of_kind("NMToken") is None


def test_a_file_names_itself_when_damaged(tmp_path: Path) -> None:
    path = tmp_path / "container_tokens"
    path.write_bytes(Credentials({}, {"s": b"x"}).write())
    assert Credentials.load(path).secrets == {"s": b"x"}
    path.write_bytes(b"HDTS\7")
    with pytest.raises(BadCredentials, match=r"container_tokens: .*format 7"):
        Credentials.load(path)


def test_nothing_prints_a_secret() -> None:
    token = Token(b"id", b"password", "NMToken", "")
    shown = repr(Credentials({"": token}, {"s": b"hidden"})) + repr(token)
    assert "password" not in shown and "hidden" not in shown
