"""Map output to reduce input: what goes in comes out sorted, grouped and complete, whatever the memory."""

import zlib
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from riffle_merger.format import CorruptSegment, SpillIndex
from tez_adapter.data import Columns, HashPartitioner, MapOutput, MapOutputFiles, RangePartitioner, ReduceInput

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


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pairs=PAIRS, partitions=st.integers(1, 5), codec=st.sampled_from(["lz4", "none", "snappy"]))
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
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
