"""One merge: the right bytes whatever the sizes, nothing at all when anything is wrong."""

import mmap
import os
import tempfile
import threading
import tracemalloc
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riffle_merger.format import IndexEntry, MergedIndex, SpillIndex
from riffle_merger.merger.errors import Cancelled, MergeError, NotMergeable
from riffle_merger.merger.files import Output, clear_temporaries, survey
from riffle_merger.merger.merge import READERS, Merged, MergeOrder, buffers_for, memory_for, merge
from riffle_merger.merger.pool import BufferPool
from riffle_merger.merger.requests import MergerRequests
from riffle_merger.merger.window import Counts
from riffle_merger.plan.buffers import read_bytes
from riffle_merger.plan.counts import ReadCounter, Unit
from riffle_merger.plan.decisions import MapOutput, Publish
from tests.examples import examples
from tests.riffle_merger.map_outputs import write_output

MB = 1 << 20
BODIES = st.integers(1, 5).flatmap(
    lambda maps: st.lists(
        st.lists(st.none() | st.binary(max_size=60), min_size=maps, max_size=maps), min_size=0, max_size=6
    ).map(lambda rows: (maps, rows))
)


def run(
    app_dir: Path, maps: list[str], *, pool: BufferPool | None = None, name: str = "1", cancelled: bool = False
) -> Merged:
    pool = pool or BufferPool(1 << 20, buffer_bytes=1 << 16)
    with ThreadPoolExecutor(1) as reader:
        order = MergeOrder(name, (app_dir,), tuple(maps))
        count = buffers_for(len(maps), 1 << 20, pool)
        return merge(order, pool, count, reader=reader, is_cancelled=lambda: cancelled)


def visible(app_dir: Path) -> list[str]:
    return sorted(path.name for path in (app_dir / "riffle").iterdir()) if (app_dir / "riffle").exists() else []


@settings(max_examples=examples(60), deadline=None)
@given(BODIES, st.integers(1, 70), st.integers(4, 8), st.sampled_from([0, 3]))
def test_segments_come_out_partition_by_partition(
    shape: tuple[int, list[list[bytes | None]]], buffer_bytes: int, buffers: int, gap: int
) -> None:
    maps, rows = shape
    names = [f"attempt_{number}" for number in range(maps)]
    with tempfile.TemporaryDirectory() as folder:
        app_dir = Path(folder)
        outputs = [
            write_output(app_dir, name, [row[number] for row in rows], gap=gap) for number, name in enumerate(names)
        ]
        pool = BufferPool(buffers * buffer_bytes, buffer_bytes=buffer_bytes)
        merged = run(app_dir, names, pool=pool)
        data = merged.path.read_bytes()
        assert data == b"".join(output[partition] for partition in range(len(rows)) for output in outputs)
        index = MergedIndex.load(f"{merged.path}.index")
        index.check_file(len(data))
        assert index.maps == tuple(names)
        for partition in range(len(rows)):
            whole = index.partition(partition)
            index.verify(partition, data[whole.offset : whole.offset + whole.length])
            for number, output in enumerate(outputs):
                entry = index.segments(partition)[number]
                assert entry.raw_length == 3 * len(output[partition])
                assert data[entry.start : entry.start + entry.part_length] == output[partition]
        assert pool.used == 0
        assert visible(app_dir) == ["1.out", "1.out.index"]


def test_requests_to_the_disk_are_few_and_large(tmp_path: Path) -> None:
    names = [f"attempt_{number}" for number in range(8)]
    for name in names:
        write_output(tmp_path, name, [os.urandom(1020) for _ in range(256)])
    pool = BufferPool(20 * (64 << 10), buffer_bytes=64 << 10)
    merged = run(tmp_path, names, pool=pool)
    # 2 MB through windows of 10 buffers: 640 KB each, so 4 windows of 8 reads, beside 8 indexes
    assert (merged.bytes, merged.reads, merged.writes) == (8 * 256 * 1024, 4 * 8 + 8, 4 + 1)


def as_ever(inputs: int, data_bytes: int, pool: BufferPool) -> int:
    """A buffer per input and those to write from, which is what a merge waits for."""
    return max(2, min(inputs + 5, 2 * -(-data_bytes // (4 * MB)), pool.count))


@given(st.integers(1, 1000), st.integers(0, 20_000), st.integers(16, 20_000), st.integers(1, 64))
def test_a_merge_takes_four_buffers_an_input_where_its_share_has_them(
    inputs: int, data_mb: int, budget_mb: int, at_once: int
) -> None:
    pool, data_bytes = BufferPool(budget_mb * MB), data_mb * MB
    share = pool.count // at_once
    found, before = buffers_for(inputs, data_bytes, pool, share), as_ever(inputs, data_bytes, pool)
    assert before <= found <= min(pool.count, 4 * inputs + 5)
    if found > before:  # nobody else waits longer for that
        assert found <= share
    if share >= 4 * inputs + 5:
        assert found == max(2, min(4 * inputs + 5, 2 * -(-data_mb // 4)))


@pytest.mark.parametrize(("inputs", "buffers"), [(5, 25), (20, 64), (40, 64), (70, 75), (200, 128)])
def test_buffers_with_the_budget_that_is_shipped(inputs: int, buffers: int) -> None:
    assert buffers_for(inputs, 1 << 40, BufferPool(512 * MB), 64) == buffers


@pytest.mark.parametrize(
    ("maps", "partitions", "body", "budget_kb", "at_once"),
    [
        (8, 256, 1020, 1 << 10, 1),  # several windows
        (8, 256, 1020, 1 << 10, 3),  # a share of the budget
        (3, 4000, 1, 4 << 10, 1),  # more pieces than one system call takes
        (2, 4, 3 * MB - 4, 16 << 10, 1),  # segments longer than a window, and several writes each
        (3, 64, 4092, 208, 1),  # eleven buffers: windows of two lengths, in turn
        (40, 3, 20, 64, 2),  # all fits in two buffers
        (5, 7, 0, 64, 1),
    ],
)
def test_what_a_merge_asks_of_the_disk_is_known_before(
    tmp_path: Path, maps: int, partitions: int, body: int, budget_kb: int, at_once: int
) -> None:
    buffer_bytes = 16 << 10
    expected = MergerRequests(budget_kb << 10, at_once, buffer_bytes=buffer_bytes)
    counter = ReadCounter(partitions, expected, Unit())
    outputs = [MapOutput(number, f"m{number}", "n", partitions * (body + 4)) for number in range(maps)]
    for output in outputs:
        write_output(tmp_path, output.attempt, [b"x" * body] * partitions)
    found = survey([tmp_path], [output.attempt for output in outputs])
    pool = BufferPool(budget_kb << 10, buffer_bytes=buffer_bytes)
    memory = memory_for(maps, found.data_bytes, found.index_bytes, pool, budget_kb << 10, at_once)
    with ThreadPoolExecutor(READERS) as reader:
        order = MergeOrder("1", (tmp_path,), tuple(output.attempt for output in outputs))
        merged = merge(order, pool, memory.buffers, reader=reader, is_cancelled=lambda: False)
    counter.add([Publish("n", tuple(outputs), 1)])
    assert (merged.reads, merged.writes) == (counter.merge_reads, counter.merge_writes)
    assert merged.bytes == counter.merged_size == counter.size


@pytest.mark.slow
@pytest.mark.parametrize(("maps", "partitions"), [(1, 8000), (4, 2000)])
def test_indexes_take_no_more_memory_than_is_counted_for_them(
    tmp_path: Path, maps: int, partitions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("riffle_merger.merger.window._PIECES_MAX", 256)  # they are not counted
    names = tuple(f"m{number}" for number in range(maps))
    for name in names:
        write_output(tmp_path, name, [None] * partitions)
    found = survey([tmp_path], names)
    pool = BufferPool(64 * MB)
    memory = memory_for(maps, found.data_bytes, found.index_bytes, pool, 64 * MB, 1)
    with ThreadPoolExecutor(READERS) as reader:
        tracemalloc.start()
        try:
            order = MergeOrder("1", (tmp_path,), names)
            merge(order, pool, memory.buffers, reader=reader, is_cancelled=lambda: False)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    counted = memory.bytes - memory.buffers * pool.buffer_bytes
    assert 0.8 * counted < peak < counted + (64 << 10), (peak, counted)


def test_a_merge_whose_index_cannot_be_is_refused_before_it_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("riffle_merger.format.merged.SEGMENTS_MAX", 7)
    for name in ("a", "b"):
        write_output(tmp_path, name, [b"x"] * 4)
    pool, counts = BufferPool(MB, buffer_bytes=4096), Counts()
    with ThreadPoolExecutor(READERS) as reader, pytest.raises(NotMergeable, match="too much for an index"):
        order = MergeOrder("1", (tmp_path,), ("a", "b"))
        merge(order, pool, 4, reader=reader, is_cancelled=lambda: False, counts=counts)
    assert (counts.reads, counts.writes) == (2, 0), "the inputs' indexes"


@pytest.mark.slow
def test_reads_are_as_long_as_the_choice_of_a_policy_takes_them_to_be() -> None:
    for files, memory, at_once in ((20, 512, 2), (40, 512, 2), (5, 512, 2), (41, 8192, 10)):
        each = 512 * MB
        reads, writes = MergerRequests(memory * MB, at_once).of_merge([each] * files, 2000)
        assert each * files / reads == pytest.approx(read_bytes(files, 2000, memory * MB / at_once), rel=0.1)
        assert each * files / writes > 16 * MB


@pytest.mark.parametrize("damage", ["flipped", "truncated", "index", "missing", "partitions", "link", "index link"])
def test_a_damaged_input_is_named_and_nothing_appears(tmp_path: Path, damage: str) -> None:
    write_output(tmp_path, "good", [b"a" * 100, b"b" * 100])
    write_output(tmp_path, "bad", [b"c" * 100, b"d" * 100])
    data, index = tmp_path / "output/bad/file.out", tmp_path / "output/bad/file.out.index"
    match damage:
        case "flipped":
            data.write_bytes(data.read_bytes().replace(b"d", b"e", 1))
        case "truncated":
            os.truncate(data, 150)
        case "index":
            index.write_bytes(index.read_bytes()[:-1] + b"?")
        case "missing":
            index.unlink()
        case "partitions":
            data.unlink(), index.unlink(), data.parent.rmdir()
            write_output(tmp_path, "bad", [b"c" * 100])
        case "link":
            data.rename(tmp_path / "elsewhere")
            data.symlink_to(tmp_path / "elsewhere")
        case "index link":
            data.parent.rename(tmp_path / "elsewhere")
            data.parent.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotMergeable, match="partitions" if damage == "partitions" else "bad"):
        run(tmp_path, ["good", "bad"])
    assert visible(tmp_path) == []


def test_a_file_that_shrinks_meanwhile_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_output(tmp_path, "a", [b"a" * 1000, b"b" * 1000])
    real = os.posix_fallocate

    def shrink(descriptor: int, offset: int, length: int) -> None:
        os.truncate(tmp_path / "output/a/file.out", 1500)
        real(descriptor, offset, length)

    monkeypatch.setattr(os, "posix_fallocate", shrink)
    with pytest.raises(NotMergeable, match="ends at byte 1500"):
        run(tmp_path, ["a"])
    assert visible(tmp_path) == []


def test_segments_that_lie_over_each_other_are_not_multiplied(tmp_path: Path) -> None:
    write_output(tmp_path, "good", [b"a" * 100] * 3)
    write_output(tmp_path, "bad", [b"b" * 196, b"", b""])
    entries = [IndexEntry(0, 200, 200), IndexEntry(0, 200, 8), IndexEntry(0, 0, 0)]
    index = tmp_path / "output/bad/file.out.index"
    index.write_bytes(SpillIndex(entries).to_bytes())
    run(tmp_path, ["good"], name="alone")
    os.truncate(tmp_path / "output/bad/file.out", 207)
    with pytest.raises(NotMergeable, match=r"bad: .*lie over each other: the index names 208 bytes, the file has 207"):
        run(tmp_path, ["good", "bad"])
    assert visible(tmp_path) == ["alone.out", "alone.out.index"]


@pytest.mark.parametrize("file_bytes", [0, 1007, 1009])
def test_a_merged_file_of_another_length_than_was_written_never_appears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file_bytes: int
) -> None:
    write_output(tmp_path, "a", [b"a" * 500, b"b" * 500])
    real = Output.publish

    def cut_first(output: Output, index: MergedIndex, counts: Counts, *, sync: bool) -> None:
        os.ftruncate(output.descriptor, file_bytes)
        real(output, index, counts, sync=sync)

    monkeypatch.setattr(Output, "publish", cut_first)
    with pytest.raises(MergeError, match=f"1.out: has {file_bytes} bytes, its index describes 1008"):
        run(tmp_path, ["a"])
    assert visible(tmp_path) == []


def test_an_index_appears_only_where_its_file_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_output(tmp_path, "a", [b"a" * 500, b"b" * 500])
    real = Output.publish

    def taken_first(output: Output, index: MergedIndex, counts: Counts, *, sync: bool) -> None:
        output.path.mkdir()  # containers may write there
        real(output, index, counts, sync=sync)

    monkeypatch.setattr(Output, "publish", taken_first)
    with pytest.raises(MergeError, match=r"1.out: Is a directory"):
        run(tmp_path, ["a"])
    assert visible(tmp_path) == ["1.out"]


@pytest.mark.parametrize("where", ["before", "among"])
def test_no_buffer_is_given_back_while_somebody_reads_into_it(tmp_path: Path, where: str) -> None:
    """A merge fails while a window is read: for what was found in the window before it, or for the input that another
    thread reads. Whoever had that buffer next would have this merge's bytes in it."""
    names = ["slow", "bad"]
    for name in names:
        write_output(tmp_path, name, [os.urandom(1020)] * 64)
    bad = tmp_path / "output/bad/file.out"
    given, is_early = threading.Event(), list[bool]()

    class Pool(BufferPool):
        def give_back(self, buffers: list[mmap.mmap]) -> None:
            given.set()
            super().give_back(buffers)

    class Reader(ThreadPoolExecutor):
        """Holds back who reads `slow` of that window until buffers are given back, or would have been."""

        count = 0

        def submit(self, work: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            number, self.count = self.count, self.count + 1

            def held() -> Any:
                if where == "among" and number == 1:
                    os.truncate(bad, 0)
                if number == (0 if where == "among" else READERS):
                    is_early.append(given.wait(0.2))
                return work(*args, **kwargs)

            return super().submit(held)

    if where == "before":
        whole = bad.read_bytes()
        bad.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    order = MergeOrder("1", (tmp_path,), tuple(names))
    pool = Pool(64 << 10, buffer_bytes=16 << 10)
    with Reader(2 * READERS) as reader, pytest.raises(NotMergeable, match="bad"):
        merge(order, pool, 4, reader=reader, is_cancelled=lambda: False)
    assert is_early == [False] and pool.used == 0


def test_cancelled_or_a_full_disk_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_output(tmp_path, "a", [b"a" * 1000])
    with pytest.raises(Cancelled):
        run(tmp_path, ["a"], cancelled=True)
    assert visible(tmp_path) == []

    def full(_descriptor: int, _offset: int, _length: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(MergeError, match="No space left on device; free space there or name other"):
        run(tmp_path, ["a"])
    assert visible(tmp_path) == []


def test_no_merge_fills_a_disk_beyond_what_its_node_bears(tmp_path: Path) -> None:
    write_output(tmp_path, "a", [b"a" * 1000])
    order = MergeOrder("1", (tmp_path,), ("a",), disk_max_percent=0.0)
    with ThreadPoolExecutor(1) as reader, pytest.raises(MergeError, match="fuller than 0%"):
        merge(order, BufferPool(1 << 20), 2, reader=reader, is_cancelled=lambda: False)
    assert visible(tmp_path) == []


@pytest.mark.parametrize("maps", [[], ["a", "a"], ["../a"], ["a/b"], [".."], ["a" * 256], ["m"] * 1001])
def test_impossible_requests_are_refused(tmp_path: Path, maps: list[str]) -> None:
    with pytest.raises(NotMergeable):
        run(tmp_path, maps)


def test_a_name_is_never_used_twice(tmp_path: Path) -> None:
    write_output(tmp_path, "a", [b"a"])
    (tmp_path / "riffle").mkdir()
    (tmp_path / "riffle/.1.out").write_bytes(b"left by a merger that was killed")
    with pytest.raises(MergeError, match="File exists"):
        run(tmp_path, ["a"])
    (tmp_path / "riffle/2.out").write_bytes(b"killed between the two renames")
    assert clear_temporaries([tmp_path, tmp_path / "none"]) == 2
    run(tmp_path, ["a"])
    assert visible(tmp_path) == ["1.out", "1.out.index"]
    assert clear_temporaries([tmp_path]) == 0


def test_a_link_in_place_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    write_output(tmp_path / "app", "a", [b"a"])
    (tmp_path / "victim").mkdir()
    (tmp_path / "app/riffle").symlink_to(tmp_path / "victim")
    with pytest.raises(MergeError):
        run(tmp_path / "app", ["a"])
    assert list((tmp_path / "victim").iterdir()) == []


def test_the_pool_keeps_its_budget() -> None:
    pool = BufferPool(10 << 10, buffer_bytes=1 << 10)
    taken = pool.take(7)
    with pytest.raises(MemoryError):
        pool.take(4)
    pool.give_back(taken)
    assert (pool.allocated, pool.used, pool.used_max) == (7, 0, 7)
    again = pool.take(3)
    assert all(buffer in taken for buffer in again)
    pool.give_back(again)
    pool.trim()
    assert pool.allocated == 0
