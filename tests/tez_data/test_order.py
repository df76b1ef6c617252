"""Orders, partitions and lines against naive twins."""

import random
import zlib
from bisect import bisect_right
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tez_adapter.data import (
    Columns,
    Fields,
    HashPartitioner,
    KeyPartitioner,
    LineReader,
    LineTooLong,
    RangePartitioner,
    TextPartitioner,
    boundaries_from_sample,
    join_lines,
    split_lines,
)
from tez_adapter.data.order import RepeatedKeys, count_up_to, prefixes, repeated_keys, same_as_previous, sort_order

#: Few byte values and lengths around the eight-byte words, so that ties, prefixes and trailing zeros are common.
TRICKY = st.builds(
    lambda prefix, rest: prefix + bytes(rest),
    st.sampled_from([b"", b"p" * 8, b"p" * 31, b"p" * 40]),
    st.one_of(*(st.lists(st.sampled_from([0, 1, 255]), min_size=n, max_size=n) for n in (0, 1, 7, 8, 9, 17))),
)
KEYS = st.lists(TRICKY, max_size=40)


def columns_of(keys: list[bytes]) -> Columns:
    """With something in front, so that offsets do not start at zero."""
    return Columns.from_lists([b"front", *keys], [b""] * (len(keys) + 1)).slice(1, len(keys) + 1)


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(KEYS)
def test_sort_order_is_pythons_stable_order(keys: list[bytes]) -> None:
    columns = columns_of(keys)
    expected = sorted(range(len(keys)), key=keys.__getitem__)
    assert sort_order(columns.keys, columns.key_offsets).tolist() == expected


@settings(max_examples=examples(100), deadline=None)
@given(KEYS, st.integers(1, 3))
def test_order_through_distinct_keys_is_the_same(keys: list[bytes], partitions: int) -> None:
    distinct = list(dict.fromkeys(keys))
    columns = columns_of(distinct)
    codes = np.array([distinct.index(key) for key in keys], dtype=np.int32)
    repeated = RepeatedKeys(columns.keys, columns.key_offsets, codes)
    chosen = np.array([zlib.crc32(key) % partitions for key in distinct], dtype=np.int64)
    expected = sorted(range(len(keys)), key=lambda i: (zlib.crc32(keys[i]) % partitions, keys[i]))
    assert repeated.order(repeated.ranks(chosen)).tolist() == expected


@pytest.mark.parametrize("distinct", [300, 70_000])
def test_large_batches_with_repetitions_are_recognized_and_sorted(distinct: int) -> None:
    rng = random.Random(distinct)
    keys = [b"a rather long key %d" % rng.randrange(distinct) for _ in range(200_000)]
    columns = columns_of(keys)
    assert repeated_keys(columns.keys, columns.key_offsets) is not None
    order = sort_order(columns.keys, columns.key_offsets).tolist()
    assert order == sorted(range(len(keys)), key=keys.__getitem__)


def test_large_batches_without_repetitions_are_left_alone() -> None:
    keys = [b"%07d" % i for i in random.Random(1).sample(range(10_000_000), 20_000)]
    columns = columns_of(keys)
    assert repeated_keys(columns.keys, columns.key_offsets) is None


@settings(max_examples=examples(200), deadline=None)
@given(KEYS, TRICKY)
def test_sorted_keys_are_compared_and_counted_rightly(keys: list[bytes], limit: bytes) -> None:
    keys = sorted(keys)
    columns = columns_of(keys)
    data, offsets = columns.keys, columns.key_offsets
    assert same_as_previous(data, offsets).tolist() == [a == b for a, b in pairwise(keys)]
    words = prefixes(data, offsets)
    assert count_up_to(data, offsets, words, limit) == sum(key <= limit for key in keys)


@settings(max_examples=examples(100), deadline=None)
@given(st.one_of(KEYS, st.lists(st.binary(min_size=4, max_size=4))), st.integers(1, 7))
def test_hash_partitions_are_crc32(keys: list[bytes], partitions: int) -> None:
    columns = columns_of(keys)
    chosen = HashPartitioner().partition(columns.keys, columns.key_offsets, partitions)
    assert chosen.tolist() == [zlib.crc32(key) % partitions for key in keys]


def text_hash(key: bytes) -> int:
    """Text.hashCode, byte by byte."""
    found = 1
    for byte in key:
        found = (31 * found + (byte - 256 if byte > 127 else byte)) & 0xFFFFFFFF
    return found


@settings(max_examples=examples(100), deadline=None)
@given(st.one_of(KEYS, st.lists(st.binary(min_size=4, max_size=4))), st.integers(1, 7))
def test_text_partitions_are_those_of_hadoop_streaming(keys: list[bytes], partitions: int) -> None:
    columns = columns_of(keys)
    chosen = TextPartitioner().partition(columns.keys, columns.key_offsets, partitions)
    assert chosen.tolist() == [(text_hash(key) & 0x7FFFFFFF) % partitions for key in keys]


def test_text_partitions_of_long_keys() -> None:
    rng = random.Random(2)
    keys = [rng.randbytes(rng.choice((0, 3, 30, 90, 4096, 4097, 20_000))) for _ in range(300)]
    columns = columns_of(keys)
    chosen = TextPartitioner().partition(columns.keys, columns.key_offsets, 1009)
    assert chosen.tolist() == [(text_hash(key) & 0x7FFFFFFF) % 1009 for key in keys]
    alike = columns_of([rng.randbytes(5000) for _ in range(5000)])
    chosen = TextPartitioner().partition(alike.keys, alike.key_offsets, 7)
    assert chosen.tolist()[::100] == [(text_hash(key) & 0x7FFFFFFF) % 7 for key in list(alike.key_list())[::100]]
    # As Hadoop 3.4.2 spreads them over two reduces.
    columns = columns_of([b"w0", b"w11", b"x1", b"w1", b"w10", b"x0"])
    assert TextPartitioner().partition(columns.keys, columns.key_offsets, 2).tolist() == [0, 0, 0, 1, 1, 1]


@settings(max_examples=examples(100), deadline=None)
@given(KEYS, st.lists(TRICKY, max_size=4))
def test_range_partitions_follow_the_boundaries(keys: list[bytes], boundaries: list[bytes]) -> None:
    boundaries = sorted(boundaries)
    columns = columns_of(keys)
    chosen = RangePartitioner(boundaries).partition(columns.keys, columns.key_offsets, 5)
    assert chosen.tolist() == [bisect_right(boundaries, key) for key in keys]


def test_bad_partitioners_are_refused() -> None:
    columns = columns_of([b"a"])
    with pytest.raises(ValueError, match="must ascend"):
        RangePartitioner([b"b", b"a"])
    with pytest.raises(ValueError, match="2 boundaries make more than 2 partitions"):
        RangePartitioner([b"a", b"b"]).partition(columns.keys, columns.key_offsets, 2)
    with pytest.raises(ValueError, match=r"partition\(\) returned -1; with 2 reduces it must return 0 to 1"):
        KeyPartitioner(lambda key, partitions: -1).partition(columns.keys, columns.key_offsets, 2)
    with pytest.raises(ValueError, match=r"partition\(\) returned 0.5, which is not a whole number"):
        KeyPartitioner(lambda *_: 0.5).partition(columns.keys, columns.key_offsets, 2)  # type: ignore


@given(st.lists(st.binary(max_size=4), max_size=50), st.integers(1, 8))
def test_sampled_boundaries_ascend_strictly_and_are_few_enough(keys: list[bytes], partitions: int) -> None:
    boundaries = boundaries_from_sample(keys, partitions)
    assert len(boundaries) < partitions or (partitions == 1 and not boundaries)
    assert boundaries == sorted(set(boundaries))


LINES = st.lists(
    st.lists(st.sampled_from([b"a", b"b\r", b"\t", b"\t\t", b"\0", b"xyz"]), max_size=5).map(b"".join), max_size=20
)


@given(LINES)
def test_lines_split_at_the_first_tab(lines: list[bytes]) -> None:
    data = b"".join(line + b"\n" for line in lines)
    expected = [(line.partition(b"\t")[0], line.partition(b"\t")[2]) for line in lines]
    columns = split_lines(data)
    assert list(columns.pairs()) == expected
    assert bytes(join_lines(columns)) == b"".join(key + b"\t" + value + b"\n" for key, value in expected)


@given(LINES, st.booleans(), st.lists(st.integers(0, 100), max_size=10))
def test_lines_in_any_pieces_are_the_same_lines(lines: list[bytes], ended: bool, cuts: list[int]) -> None:
    data = b"\n".join(lines) + (b"\n" if ended and lines else b"")
    reader = LineReader()
    parts = []
    position = 0
    for cut in [*sorted(cuts), len(data)]:
        parts.append(reader.feed(data[position:cut]))
        position = max(position, cut)
    parts.append(reader.finish())
    # bytes.splitlines has the line ends that scripts' lines have
    expected = [(line.partition(b"\t")[0], line.partition(b"\t")[2]) for line in data.splitlines()]
    assert list(Columns.concat(parts).pairs()) == expected


@given(LINES, st.sampled_from([b"\t", b"\t\t", b"a", b"yz", b""]), st.integers(0, 3))
def test_keys_of_any_fields(lines: list[bytes], separator: bytes, count: int) -> None:
    expected = []
    for line in lines:
        fields = [line] if not separator else line.split(separator, max(1, count))
        key = b"" if not separator else separator.join(fields[: max(1, count)])
        expected.append((key, line[len(key) + len(separator) :]))
    data = b"".join(line + b"\n" for line in lines)
    assert list(split_lines(data, Fields(separator, count)).pairs()) == expected


def test_a_line_without_end_is_refused() -> None:
    reader = LineReader(line_bytes_max=10)
    reader.feed(b"x" * 10)
    with pytest.raises(LineTooLong, match="more than 10 bytes"):
        reader.feed(b"x")
