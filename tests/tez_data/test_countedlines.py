"""Counted lines reach the combiner as the same sorted lines that sorting each one would have given."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from riffle_merger.format import SpillIndex
from tests.examples import examples
from tez_adapter.data import Columns, CountedLines, MapOutput, ReduceInput, join_lines, split_lines
from tez_adapter.data.lines import BY_TAB


class SummingScript:
    """A combiner that adds up neighbouring lines, and notes what it was fed."""

    def __init__(self) -> None:
        self.fed: list[list[bytes]] = []

    def __call__(self, blocks: Iterator[bytes | memoryview]) -> Iterator[Columns]:
        lines = b"".join(blocks).splitlines()
        self.fed.append(lines)
        sums: Counter[bytes] = Counter()
        for line in lines:
            key, _, value = line.partition(b"\t")
            sums[key] += int(value or 0)
        yield split_lines(b"".join(b"%s\t%d\n" % item for item in sums.items()))

    def batches(self, batches: Iterator[Columns]) -> Iterator[Columns]:
        return self(bytes(join_lines(batch)) for batch in batches)


def run(
    directory: Path, pieces: list[bytes], script: SummingScript, memory_bytes: int
) -> tuple[MapOutput, Counter[bytes]]:
    output = MapOutput(directory, 2, memory_bytes=memory_bytes, combine=script.batches, combine_spills=True)
    lines = CountedLines(output, script, fields=BY_TAB, separator=b"\t", memory_bytes=memory_bytes)
    for piece in pieces:
        lines.feed(piece)
    lines.close()
    files = output.close()
    sums: Counter[bytes] = Counter()
    for entry in SpillIndex.load(files.index):
        with ReduceInput(directory) as reduce_input:
            reduce_input.add_file(files.output, entry.start, entry.part_length)
            for key, values in reduce_input.groups():
                sums[key] += sum(map(int, values))
    return output, sums


def naive(data: bytes) -> Counter[bytes]:
    sums: Counter[bytes] = Counter()
    for line in data.split(b"\n"):
        if line:
            key, _, value = line.partition(b"\t")
            sums[key] += int(value or 0)
    return sums


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=st.lists(st.sampled_from([b"a\t1", b"b\t1", b"a\t2", b"ab\t1", b"c", b"\t3", b"\x00\t1"]), max_size=60),
    ended=st.booleans(),
    cuts=st.lists(st.integers(0, 200), max_size=5),
    memory_bytes=st.sampled_from([100, 1 << 20]),
)
def test_any_lines_in_any_pieces(
    tmp_path: Path, lines: list[bytes], ended: bool, cuts: list[int], memory_bytes: int
) -> None:
    data = b"\n".join(lines) + (b"\n" if ended and lines else b"")
    bounds = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[start:stop] for start, stop in pairwise(bounds)]
    script = SummingScript()
    output, sums = run(tmp_path, pieces, script, memory_bytes)
    assert sums == naive(data)
    assert output.counters.get("MAP_OUTPUT_RECORDS", 0) == len(lines)
    for fed in script.fed:
        keys = [line.partition(b"\t")[0] for line in fed]
        assert keys == sorted(keys)


def test_repeated_lines_reach_the_script_once_each_and_all(tmp_path: Path) -> None:
    pieces = [
        b"".join(b"word%d\t1\n" % (i % 100) for i in range(start, start + 1000)) for start in range(0, 50_000, 1000)
    ]
    script = SummingScript()
    output, sums = run(tmp_path, pieces, script, 1 << 20)
    assert output.counters["COMBINE_INPUT_RECORDS"] == 50_000
    assert output.counters["COMBINE_OUTPUT_RECORDS"] == 100
    assert sums == dict.fromkeys((b"word%d" % i for i in range(100)), 500)
    assert sum(map(len, script.fed)) == 50_000  # nothing was combined twice


def test_what_a_combiner_writes_stays_in_the_partition_of_what_it_read(tmp_path: Path) -> None:
    def renaming(blocks: Iterator[bytes | memoryview]) -> Iterator[Columns]:
        keys = [line.partition(b"\t")[0] for line in b"".join(blocks).splitlines()]
        yield split_lines(b"".join(b"%s:%d\t1\n" % item for item in Counter(keys).items()))

    words = [b"word%d" % i for i in range(40)]
    places: list[list[set[bytes]]] = []
    for combine, memory_bytes in ((SummingScript(), 1 << 20), (renaming, 1 << 20), (renaming, 300)):
        folder = tmp_path / str(len(places))
        output = MapOutput(folder, 3)
        lines = CountedLines(output, combine, fields=BY_TAB, separator=b"\t", memory_bytes=memory_bytes)
        lines.feed(b"".join(b"%s\t1\n" % word for word in words for _ in range(5)))
        lines.close()
        files = output.close()
        places.append([])
        for entry in SpillIndex.load(files.index):
            with ReduceInput(folder) as reduce_input:
                reduce_input.add_file(files.output, entry.start, entry.part_length)
                keys = [key for key, values in reduce_input.groups() for _ in values]
            assert keys == sorted(keys)
            places[-1].append({key.partition(b":")[0] for key in keys})
    assert places[0] == places[1] == places[2] and all(places[0])


def test_lines_that_do_not_repeat_are_no_longer_counted(tmp_path: Path) -> None:
    pieces = [b"".join(b"word%d\t1\n" % i for i in range(start, start + 1000)) for start in range(0, 30_000, 1000)]
    output, sums = run(tmp_path, pieces, SummingScript(), 1 << 20)
    assert len(sums) == 30_000 and set(sums.values()) == {1}
    assert output.counters["MAP_OUTPUT_RECORDS"] == 30_000


def test_a_failing_script_ends_the_task(tmp_path: Path) -> None:
    def fail(blocks: Iterator[bytes | memoryview]) -> Iterator[Columns]:
        raise RuntimeError("script failed")

    lines = CountedLines(MapOutput(tmp_path, 1), fail, fields=BY_TAB, separator=b"\t", memory_bytes=1 << 20)
    lines.feed(b"a\t1\n")
    with pytest.raises(RuntimeError, match="script failed"):
        lines.close()
