"""Combining by hash gives what combining a plain list would, and never mixes up keys that Python finds equal."""

import itertools
import tracemalloc
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from riffle_merger.format import SpillIndex
from tests.examples import examples
from tez_adapter.data import HashCombiner, MapOutput, ReduceInput, encoded_combiner
from tez_adapter.data.counted import CountedKeys
from yaqd.mapreduce.errors import JobError
from yaqd.mapreduce.serde import decode_key, decode_value, encode_key

KEYS = st.one_of(
    st.sampled_from(
        [1, 1.0, True, 0, 0.0, -0.0, False, None, "1", b"1", ("1",), (b"1",), (1,), (1.0,), (True,), [1], ""]
    ),
    st.text(max_size=3),
    st.integers(-3, 3),
)


def collect_sums(values: Iterator[Any]) -> list[Any]:
    """The multiset of all values, as sorted encodings; combines associatively."""
    return sorted((part for value in values for part in value), key=encode_key)


def combine(key: Any, values: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
    yield key, collect_sums(values)


def run(directory: Path, pairs: Iterable[tuple[Any, Any]], combine: Any, memory_bytes: int) -> dict[bytes, Any]:
    counters: dict[str, int] = {}
    given = itertools.count()
    output = MapOutput(directory, 2, memory_bytes=memory_bytes, combine=encoded_combiner(combine), counters=counters)
    combiner = HashCombiner(output, combine, memory_bytes=memory_bytes)
    combiner.collect_all(pair for pair, _ in zip(pairs, given, strict=False))
    combiner.close()
    files = output.close()
    assert counters.get("MAP_OUTPUT_RECORDS", 0) == next(given)
    result: dict[bytes, Any] = {}
    for entry in SpillIndex.load(files.index):
        with ReduceInput(directory) as reduce_input:
            reduce_input.add_file(files.output, entry.start, entry.part_length)
            for key, values in reduce_input.groups():
                for _, value in combine(decode_key(key), map(decode_value, values)):
                    result[key] = value
    return result


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pairs=st.lists(st.tuples(KEYS, st.lists(KEYS, max_size=2)), max_size=80))
def test_every_distinct_encoding_keeps_its_own_values(tmp_path: Path, pairs: list[tuple[Any, Any]]) -> None:
    naive: dict[bytes, list[Any]] = {}
    for key, value in pairs:
        naive.setdefault(encode_key(key), []).append(value)
    expected = {key: collect_sums(iter(values)) for key, values in naive.items()}
    got = run(tmp_path, pairs, combine, 1 << 20)
    assert {k: encode_key(v) for k, v in got.items()} == {k: encode_key(v) for k, v in expected.items()}


@pytest.mark.slow
def test_counting_survives_flushes_and_spills(tmp_path: Path) -> None:
    words = [f"word{i * i % 9973}" for i in range(60_000)]
    pairs = [(word, 1 if i % 3 else 2) for i, word in enumerate(words)]
    expected: dict[bytes, int] = {}
    for word, count in pairs:
        expected[encode_key(word)] = expected.get(encode_key(word), 0) + count

    def total(key: str, values: Iterator[int]) -> Iterator[tuple[str, int]]:
        yield key, sum(values)

    assert run(tmp_path, pairs, total, 1) == expected


@settings(max_examples=examples(60), deadline=None)
@given(
    chunks=st.lists(st.lists(st.text(st.sampled_from("a\nb\u00e9\udc80"), max_size=3), max_size=20), max_size=6),
    is_text=st.booleans(),
)
def test_counted_keys_count_like_a_dict(chunks: list[list[str]], is_text: bool) -> None:
    counted = CountedKeys(str if is_text else bytes, memory_bytes=400)
    expected: Counter[str | bytes] = Counter()
    for chunk in chunks:
        keys: list[Any] = chunk if is_text else [key.encode("utf-8", "surrogateescape") for key in chunk]
        counted.add(keys)
        expected.update(keys)
    assert dict(counted.drain()) == expected
    assert counted.held_bytes == 0 and list(counted.drain()) == []


def test_a_lone_surrogate_is_the_users_error_not_a_crash(tmp_path: Path) -> None:
    combiner = HashCombiner(MapOutput(tmp_path, 1), lambda key, values: [(key, 1)], memory_bytes=1 << 20)
    combiner.collect_all([("a", 1)] * 10_000 + [("\ud800", 1)])
    with pytest.raises(JobError, match="lone surrogate"):
        combiner.close()


@pytest.mark.parametrize("pair", [7, ("only one",), ("three", 1, 1)])
def test_what_is_no_pair_is_named(tmp_path: Path, pair: Any) -> None:
    combiner = HashCombiner(MapOutput(tmp_path, 1), combine, memory_bytes=1 << 20)
    with pytest.raises(JobError, match="must yield pairs of key and value"):
        combiner.collect_all([("a", 1), pair])


def test_an_error_inside_the_users_map_stays_as_it_is(tmp_path: Path) -> None:
    def pairs() -> Iterator[tuple[str, int]]:
        yield "a", 1
        yield "b", int("no number")

    combiner = HashCombiner(MapOutput(tmp_path, 1), combine, memory_bytes=1 << 20)
    with pytest.raises(ValueError, match="invalid literal"):
        combiner.collect_all(pairs())


@pytest.mark.parametrize("constants", [0, 20_000])
def test_a_value_changed_after_it_was_yielded_is_kept_as_it_was(tmp_path: Path, constants: int) -> None:
    """Also where a map that seemed to count begins to yield other values."""
    shared: list[int] = []

    def pairs() -> Iterator[tuple[str, Any]]:
        yield from [("other", "")] * constants
        for i in range(3):
            shared[:] = [i]
            yield "k", shared

    output = MapOutput(tmp_path, 1)
    combiner = HashCombiner(output, combine, memory_bytes=1 << 20)
    combiner.collect_all(pairs())
    combiner.close()
    files = output.close()
    with ReduceInput(tmp_path) as reduce_input:
        reduce_input.add_file(files.output, 0, files.partition_bytes[0])
        groups = {decode_key(key): list(map(decode_value, values)) for key, values in reduce_input.groups()}
        assert groups["k"] == [[0, 1, 2]]


@pytest.mark.parametrize("out_key", ["other", 1.0, True])
def test_a_combiner_that_changes_the_key_is_refused(tmp_path: Path, out_key: Any) -> None:
    combiner = HashCombiner(MapOutput(tmp_path, 1), lambda key, values: [(out_key, 1)], memory_bytes=1 << 20)
    combiner.collect_all([(1, 1)])
    with pytest.raises(JobError, match="keep the key"):
        combiner.close()


@pytest.mark.parametrize("keys", [(1, 2), ("a", "b"), ((1, "a"), (2, "b"))], ids=["numbers", "constant", "encoded"])
def test_large_values_are_held_within_bounds(tmp_path: Path, keys: tuple[Any, Any]) -> None:
    def pairs() -> Iterator[tuple[Any, Any]]:
        for number in range(1000):
            yield keys[number % 2], 1
            yield keys[number % 2], str(number).zfill(100_000)

    def longest(key: Any, values: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
        yield key, max(map(str, values))

    tracemalloc.start()
    try:
        got = run(tmp_path, pairs(), longest, 4 << 20)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert set(got) == set(map(encode_key, keys))
    assert peak < 40 << 20
