"""Keys by some of their fields: codes and partitions against a plain model of what Hadoop compares and hashes."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riffle_merger.format.columns import Columns
from riffle_merger.format.index import SpillIndex
from tez_adapter.data import MapOutput, ReduceInput
from tez_adapter.streaming.keyfields import (
    BadKeyOptions,
    KeyFields,
    KeyOrder,
    KeySpec,
    PlainKeyPartitioner,
    key_field_partitioner,
    plain_keys,
    sort_code,
)

NUMBERS = st.decimals(-9999, 9999, allow_nan=False, places=2).map(lambda n: str(n).encode())
WORDS = st.text("ab\0\xff.", max_size=3).map(str.encode)
POSITIONS = st.tuples(st.integers(1, 4), st.sampled_from(["", ".1", ".2", ".4"])).map(lambda p: f"{p[0]}{p[1]}")
SPECS = st.tuples(POSITIONS, st.sampled_from(["", "r"]), st.one_of(st.just(""), POSITIONS.map(",{}".format)))


def sign(first: object, second: object) -> int:
    return (first > second) - (first < second)  # type: ignore[operator]


def part(key: bytes, spec: KeySpec) -> bytes | int | None:
    """The bytes that count of a key with TABs between its fields, None where it does not reach so far; the number of
    them that lack where the end lies before the start."""
    fields = key.split(b"\t")
    at = [sum(map(len, fields[:n])) + n for n in range(len(fields))]
    if spec.begin_field > len(fields) or at[spec.begin_field - 1] + spec.begin_char > len(key):
        return None
    start, end = at[spec.begin_field - 1] + spec.begin_char - 1, len(key)
    if 0 < spec.end_field <= len(fields):
        end = min(end, at[spec.end_field - 1] + (spec.end_char or len(fields[spec.end_field - 1])))
    return key[start:end] if start <= end else end - start


def compared(first: bytes, second: bytes, fields: KeyFields) -> int:
    for spec in fields.specs:
        one, other = part(first, spec), part(second, spec)
        if one == other:
            continue
        ranks = [(0, b"") if p is None else (1, p) if isinstance(p, int) else (2, p) for p in (one, other)]
        if found := sign(*ranks):
            return -found if spec.is_reversed else found
    return 0


@given(st.lists(st.lists(WORDS, max_size=4).map(b"\t".join), min_size=2, max_size=2), st.lists(SPECS, min_size=1))
def test_codes_compare_as_the_fields_do(keys: list[bytes], specs: list[tuple[str, str, str]]) -> None:
    fields = KeyFields.parse(" ".join(f"-k{first}{flag}{last}" for first, flag, last in specs))
    first, second = keys
    assert sign(sort_code(fields, first), sort_code(fields, second)) == compared(first, second, fields)


@given(NUMBERS, NUMBERS, st.booleans())
def test_numbers_compare_by_value(first: bytes, second: bytes, is_reversed: bool) -> None:
    fields = KeyFields.parse("-k2,2n" + "r" * is_reversed)
    codes = [sort_code(fields, b"x\t%s\ty" % number) for number in (first, second)]
    expected = sign(float(first), float(second))
    assert sign(*codes) == (-expected if is_reversed else expected)


@pytest.mark.parametrize(
    ("smaller", "larger"),
    [("-5", "abc"), ("abc", "5"), ("12", "12a"), ("12 x", "12"), ("012", "12"), ("-12a", "-12"), ("1.49z", "1.5")],
)
def test_what_is_no_number_has_hadoops_place(smaller: str, larger: str) -> None:
    fields = KeyFields.parse("-n")
    assert sort_code(fields, smaller.encode()) < sort_code(fields, larger.encode())


@pytest.mark.parametrize(
    ("first", "second"), [("0", "-0"), ("1.50", "1.5"), ("7.", "7"), ("0.0", "-.0"), (".5", "0.5")]
)
def test_numbers_of_one_value_are_the_same(first: str, second: str) -> None:
    fields = KeyFields.parse("-n")
    assert sort_code(fields, first.encode()) == sort_code(fields, second.encode())


def test_options_are_hadoops() -> None:
    assert KeyFields.parse("-k 2.3nr,4.1 -k1 -n").specs == (
        KeySpec(2, 3, 4, 1, is_numeric=True, is_reversed=True),
        KeySpec(1, is_numeric=True),
    )
    assert KeyFields.parse("-nr").specs == (KeySpec(is_numeric=True, is_reversed=True),)
    assert KeyFields.parse(" ").specs == ()


@pytest.mark.parametrize("options", ["-kx", "-k1,", "-k0", "-k1.0", "-k1;2", "-k 99999999999"])
def test_options_that_name_no_key_are_refused(options: str) -> None:
    with pytest.raises(BadKeyOptions, match="-k "):
        KeyFields.parse(options)


@pytest.mark.parametrize(
    ("options", "key", "expected"),
    [
        ("", "\u00e4\tx", (228 * 31 + 9) * 31 + 120),
        ("-n", "ab", 97 * 31 + 98),
        ("-k2,2", "ab\tcd\tx", 99 * 31 + 100),
        ("-k2.2,2 -k1,1.1", "ab\tcd\tx", 100 * 31 + 97),
        ("-k9", "ab", 0),
        ("-k1,2", "", 0),
    ],
)
def test_partitions_are_javas_hash_of_the_fields(options: str, key: str, expected: int) -> None:
    pairs = Columns.from_lists([key.encode()], [b""])
    partitioner = key_field_partitioner(KeyFields.parse(options))
    assert partitioner.partition(pairs.keys, pairs.key_offsets, 7).tolist() == [expected % 7]


def test_the_first_fields_are_parted_with_a_separator_of_any_length() -> None:
    pairs = Columns.from_lists([b"a::b::c", b"a::b::d"], [b"", b""])
    chosen = key_field_partitioner(KeyFields.first(2, b"::")).partition(pairs.keys, pairs.key_offsets, 1000)
    assert len(set(chosen.tolist())) == 1


def test_pairs_come_out_in_the_wanted_order_with_their_own_keys(tmp_path: Path) -> None:
    order = KeyOrder(KeyFields.parse("-k2,2nr -k1,1"))
    pairs = [(b"%c\t%d" % (97 + n % 3, n * 37 % 100), b"%d" % n) for n in range(300)]
    output = MapOutput(tmp_path / "out", 2, PlainKeyPartitioner(key_field_partitioner(KeyFields.parse("-k1,1"))))
    for start in range(0, 300, 100):
        output.collect_batch(order.coded(Columns.from_pairs(pairs[start : start + 100])))
    files = output.close()
    found = []
    for entry in SpillIndex.load(files.index):
        with ReduceInput(tmp_path) as source:
            source.add_file(files.output, entry.start, entry.part_length)
            got = [pair for batch in source.batches() for pair in order.plain(batch).pairs()]
        assert [key for key, _ in got] == sorted(
            (key for key, _ in got), key=lambda key: (-int(key.split(b"\t")[1]), key.split(b"\t")[0])
        )
        found += got
    assert sorted(found) == sorted(pairs)
    empty = Columns.empty()
    assert len(plain_keys(empty.keys, empty.key_offsets)[1]) == 1
