"""Map output to reduce input: what goes in comes out sorted, grouped and complete, whatever the memory."""

import random
import resource
import signal
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import GeneratorType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from riffle_merger.format import CorruptSegment, SpillIndex
from tests.examples import examples
from tez_adapter.data import (
    Columns,
    HashPartitioner,
    MapOutput,
    MapOutputFiles,
    RangePartitioner,
    ReduceInput,
    WriteFailed,
)

KEYS = st.one_of(
    st.binary(max_size=3),
    st.binary(max_size=40),
    st.sampled_from([b"", b"\0", b"\0\0", b"same prefix, long", b"same prefix, long\0", b"same prefix, longer"]),
)
PAIRS = st.lists(st.tuples(KEYS, st.binary(max_size=20)), max_size=200)


def segments(files: MapOutputFiles) -> list[bytes]:
    data, index = files.output.read_bytes(), SpillIndex.load(files.index)
    index.check_file(len(data))
    return [data[entry.start : entry.start + entry.part_length] for entry in index]


def reduce_groups(directory: Path, parts: list[bytes], memory_bytes: int = 1 << 20) -> list[tuple[bytes, list[bytes]]]:
    with ReduceInput(directory, memory_bytes=memory_bytes) as reduce_input:
        for part in parts:
            reduce_input.add_segment(part)
        return [(key, list(values)) for key, values in reduce_input.groups()]


def naive_groups(pairs: list[tuple[bytes, bytes]]) -> list[tuple[bytes, list[bytes]]]:
    groups = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return sorted(groups.items())


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pairs=PAIRS, partitions=st.integers(1, 5), codec=st.sampled_from(["lz4", "none", "snappy", "zstd"]))
def test_groups_equal_a_dict_of_lists(
    tmp_path: Path, pairs: list[tuple[bytes, bytes]], partitions: int, codec: str
) -> None:
    counters: dict[str, int] = {}
    output = MapOutput(tmp_path, partitions, codec=codec, counters=counters)
    for key, value in pairs:
        output.collect(key, value)
    parts = segments(output.close())
    assert counters.get("MAP_OUTPUT_RECORDS", 0) == len(pairs)
    for partition, part in enumerate(parts):
        mine = [(k, v) for k, v in pairs if zlib.crc32(k) % partitions == partition]
        assert reduce_groups(tmp_path, [part]) == naive_groups(mine)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pairs=st.lists(st.tuples(st.binary(max_size=12), st.binary(max_size=3000)), max_size=300),
    maps=st.integers(1, 4),
)
def test_tiny_memory_spills_and_loses_nothing(tmp_path: Path, pairs: list[tuple[bytes, bytes]], maps: int) -> None:
    parts: list[list[bytes]] = []
    for i in range(maps):
        output = MapOutput(tmp_path / str(i), 2, memory_bytes=1)
        output.collect_batch(Columns.from_pairs(pairs[i::maps]))
        parts.append(segments(output.close()))
        assert sorted(p.name for p in (tmp_path / str(i)).iterdir()) == ["file.out", "file.out.index"]
    got = reduce_groups(tmp_path, [p[0] for p in parts], 1) + reduce_groups(tmp_path, [p[1] for p in parts], 1)
    assert sorted((key, sorted(values)) for key, values in got) == [(k, sorted(v)) for k, v in naive_groups(pairs)]


@pytest.mark.parametrize("partitioner", [HashPartitioner(), RangePartitioner([b"m"])])
def test_an_empty_map_output_has_every_partition(tmp_path: Path, partitioner: HashPartitioner) -> None:
    files = MapOutput(tmp_path, 2, partitioner).close()
    assert files.partition_bytes == [4, 4]
    assert reduce_groups(tmp_path, segments(files)) == []


@given(st.data())
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_segment_is_refused(tmp_path: Path, data: st.DataObject) -> None:
    output = MapOutput(tmp_path, 1)
    for i in range(50):
        output.collect(b"key%d" % i, b"value" * i)
    segment = bytearray(segments(output.close())[0])
    at = data.draw(st.integers(0, len(segment) - 1))
    damaged = segment[:at]
    if data.draw(st.booleans()):
        segment[at] ^= data.draw(st.integers(1, 255))
        damaged = segment
    with pytest.raises(CorruptSegment):
        reduce_groups(tmp_path, [bytes(damaged)])


def test_values_need_not_be_read_and_a_group_may_span_many_slices(tmp_path: Path) -> None:
    output = MapOutput(tmp_path, 1)
    for key, count in ((b"a", 1), (b"b", 50_000), (b"c", 3), (b"d", 20_000)):
        output.collect_batch(Columns.from_lists([key] * count, [b"v"] * count))
    files = output.close()

    def read(reader: Callable[[bytes, Iterator[bytes]], int]) -> dict[bytes, int]:
        with ReduceInput(tmp_path) as reduce_input:
            reduce_input.add_file(files.output, 0, files.partition_bytes[0])
            result = {key: reader(key, values) for key, values in reduce_input.groups()}
            assert reduce_input.counters["REDUCE_INPUT_RECORDS"] == 70_004
            assert reduce_input.progress() == 1.0
            return result

    def abandon(values: Iterator[bytes]) -> int:
        next(values)
        if isinstance(values, GeneratorType):
            values.close()
        return 1

    assert read(lambda key, values: sum(1 for _ in values)) == {b"a": 1, b"b": 50_000, b"c": 3, b"d": 20_000}
    assert read(lambda key, values: 0) == dict.fromkeys((b"a", b"b", b"c", b"d"), 0)
    assert read(lambda key, values: abandon(values)) == dict.fromkeys((b"a", b"b", b"c", b"d"), 1)


def test_groups_are_counted_where_nobody_asks_for_them(tmp_path: Path) -> None:
    output = MapOutput(tmp_path, 1)
    for key, count in ((b"", 2), (b"a", 1), (b"b", 150_000), (b"b" * 20, 3), (b"d", 20_000)):
        output.collect_batch(Columns.from_lists([key] * count, [b"v"] * count))
    files = output.close()
    with ReduceInput(tmp_path, memory_bytes=1 << 20) as reduce_input:
        reduce_input.add_file(files.output, 0, files.partition_bytes[0])
        assert sum(1 for batch in reduce_input.batches()) > 1
        assert reduce_input.counters["REDUCE_INPUT_GROUPS"] == 5


def test_an_input_larger_than_its_memory_merges_in_passes_and_in_order(tmp_path: Path) -> None:
    rng = random.Random(7)
    pairs = [(rng.randbytes(rng.randrange(1, 12)), rng.randbytes(1000)) for _ in range(6000)]
    with ReduceInput(tmp_path / "r", memory_bytes=1 << 20) as reduce_input:
        for i in range(12):
            output = MapOutput(tmp_path / str(i), 1, codec="none")
            output.collect_batch(Columns.from_pairs(pairs[i::12]))
            reduce_input.add_segment(segments(output.close())[0])
        assert reduce_input.disk_bytes > 5_000_000
        merged: list[tuple[bytes, bytes]] = []
        for batch in reduce_input.batches():
            assert batch.nbytes < 1 << 20
            merged.extend(batch.pairs())
    assert [key for key, _ in merged] == sorted(key for key, _ in pairs)
    assert sorted(merged) == sorted(pairs)
    assert list((tmp_path / "r").iterdir()) == []


def test_a_combiner_runs_on_every_spill_and_its_order_is_mended(tmp_path: Path) -> None:
    def last_first(batches: Iterator[Columns]) -> Iterator[Columns]:
        """Sums per batch, given in the wrong order, as a script with a dict of its own may."""
        for batch in batches:
            sums: dict[bytes, int] = {}
            for key, value in batch.pairs():
                sums[key] = sums.get(key, 0) + int(value)
            yield Columns.from_pairs([(key, b"%d" % n) for key, n in reversed(sums.items())])

    output = MapOutput(tmp_path, 2, memory_bytes=1, combine=last_first, combine_spills=True)
    for i in range(20_000):
        output.collect(b"%d" % (i % 300), b"1")
    parts = segments(output.close())
    assert sum(map(len, parts)) < 20_000
    groups = reduce_groups(tmp_path, [parts[0]]) + reduce_groups(tmp_path, [parts[1]])
    sums = {key: sum(map(int, values)) for key, values in groups}
    assert sums == {b"%d" % key: 20_000 // 300 + (key < 20_000 % 300) for key in range(300)}


def test_many_partitions_cost_no_more_than_their_records(tmp_path: Path) -> None:
    output = MapOutput(tmp_path, 100_000)
    output.collect_batch(Columns.from_lists([b"%d" % i for i in range(1000)], [b""] * 1000))
    files = output.close()
    assert len(files.partition_bytes) == 100_000
    assert sum(size > 4 for size in files.partition_bytes) > 900


def test_a_disk_that_refuses_leaves_nothing_behind(tmp_path: Path) -> None:
    """A file size limit stands in for the full disk: the same errors at the same calls."""
    output = MapOutput(tmp_path / "out", 1, codec="none", memory_bytes=8 << 20)
    old_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    old_handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, old_limit[1]))
        with pytest.raises(WriteFailed, match="cannot write map output"):
            for _ in range(40):
                output.collect_batch(Columns.from_lists([b"k"] * 1000, [bytes(1000)] * 1000))
            output.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old_limit)
        signal.signal(signal.SIGXFSZ, old_handler)
        output.abandon()
    assert list((tmp_path / "out").iterdir()) == []


def test_values_come_in_the_order_of_their_maps(tmp_path: Path) -> None:
    parts = []
    for i in range(3):
        output = MapOutput(tmp_path / str(i), 1)
        output.collect_batch(Columns.from_lists([b"k", b"k"], [b"%d first" % i, b"%d second" % i]))
        parts.append(segments(output.close())[0])
    with ReduceInput(tmp_path / "r") as reduce_input:
        for i in (2, 0, 1):
            reduce_input.add_segment(parts[i], name=f"attempt_1_0001_m_{i:06d}_0")
        (group,) = ((key, list(values)) for key, values in reduce_input.groups())
    assert group == (b"k", [b"%d %s" % (i, which) for i in range(3) for which in (b"first", b"second")])
