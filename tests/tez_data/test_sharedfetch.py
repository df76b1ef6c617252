"""Segments out of files on a shared file system: merged ones in one read, and their originals where they fail."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from riffle_merger.format import CorruptSegment, SpillIndex
from riffle_merger.format.packed import index_of
from riffle_merger.remote.merge import Progress, RemoteOrder, merge_remote
from riffle_merger.remote.reader import PackedFile
from tez_adapter.data import MapOutput, ReduceInput
from tez_adapter.data.fetch import FetchFailed, FetchFailure
from tez_adapter.data.fetchplan import FetchSettings, MapLocation
from tez_adapter.data.sharedfetch import READS, OpenFiles, SharedFetcher
from yaqd.config import Configuration
from yaqd.storage import FileSystem, PositionedReader, StorageUnavailable, get_filesystem

PARTITIONS = 3


@pytest.fixture
def files() -> FileSystem:
    return get_filesystem("file:///", Configuration.load(None, environ={}))


@pytest.fixture
def folder(tmp_path: Path, files: FileSystem) -> Path:
    """Outputs of six maps, of which the first four are also merged."""
    shared = tmp_path / "shared"
    shared.mkdir()
    for number in range(6):
        output = MapOutput(tmp_path / "local" / str(number), PARTITIONS)
        for key in range(40):
            output.collect(b"k%d" % key, b"%d" % number)
        made = output.close()
        index = SpillIndex.load(made.index)
        data = made.output.read_bytes()
        ends = [entry.start + entry.part_length for entry in index]
        checksums = [[int.from_bytes(data[end - 4 : end], "big")] for end in ends]
        tail = index_of([f"m{number}"], ((entry.part_length,) for entry in index), checksums)
        (shared / f"m{number}").write_bytes(data + tail)
    merge_remote(files, RemoteOrder(f"file://{shared}", "merged", ("m0", "m1", "m2", "m3"), 1 << 20), Progress())
    return shared


def fetched(
    files: FileSystem,
    folder: Path,
    partition: int,
    failures: list[FetchFailure],
    kept: OpenFiles,
    wanted: Sequence[int] = range(6),
    patience_s: float = 10.0,
) -> tuple[list[tuple[bytes, list[bytes]]], int]:
    """Groups of the partition, and how many reads they took."""
    with ReduceInput(folder.parent / "reduce", memory_bytes=1 << 20) as sink:
        fetcher = SharedFetcher(
            sink,
            files=files,
            folder=f"file://{folder}",
            partition=partition,
            partitions=PARTITIONS,
            maps=len(wanted),
            on_failure=failures.append,
            settings=FetchSettings(parallel_copies=2, retry_delay_s=0.001, tries_max=3),
            open_files=kept,
            patience_s=patience_s,
        )
        try:
            fetcher.add(*(MapLocation(n, f"m{n}", "node", 1, "merged" if n < 4 else "") for n in wanted))
            assert fetcher.wait(30)
        finally:
            fetcher.close()
        return [(key, sorted(values)) for key, values in sink.groups()], sink.counters[READS]


def keys_of(groups: list[tuple[bytes, list[bytes]]]) -> set[bytes]:
    return {key for key, _ in groups}


def test_a_merged_file_is_one_read_and_its_index_is_read_once(files: FileSystem, folder: Path) -> None:
    kept, seen = OpenFiles(), set[bytes]()
    for partition in range(PARTITIONS):
        groups, reads = fetched(files, folder, partition, [], kept)
        assert all(sorted(values) == [b"%d" % n for n in range(6)] for _, values in groups)
        assert keys_of(groups) == {k for k in keys_of(groups) if k not in seen}
        seen |= keys_of(groups)
        assert reads <= (6 if partition == 0 else 3)
    assert len(seen) == 40


def test_of_a_merged_file_only_what_is_wanted(files: FileSystem, folder: Path) -> None:
    groups, _ = fetched(files, folder, 0, [], OpenFiles(), wanted=(1, 3, 5))
    assert groups and all(sorted(values) == [b"1", b"3", b"5"] for _, values in groups)


@pytest.mark.parametrize("spoil", ["flip", "truncate", "unlink"])
@pytest.mark.parametrize("is_open", [False, True])
def test_a_spoiled_merged_file_costs_its_originals_and_no_report(
    files: FileSystem, folder: Path, spoil: str, is_open: bool
) -> None:
    kept, failures = OpenFiles(), list[FetchFailure]()
    expected, _ = fetched(files, folder, 1, failures, kept)
    if not is_open:
        kept = OpenFiles()
    path = folder / "merged"
    data = bytearray(path.read_bytes())
    path.unlink()
    if spoil != "unlink":
        data[len(data) // 4] ^= 1
        path.write_bytes(data if spoil == "flip" else data[: len(data) // 3])
    for partition in range(PARTITIONS):
        groups, _ = fetched(files, folder, partition, failures, kept)
        assert partition != 1 or groups == expected
    assert failures == []


def test_another_segment_as_long_in_its_place_is_not_taken(files: FileSystem, folder: Path) -> None:
    path = folder / "merged"
    file = PackedFile(files, f"file://{path}", maps=4, partitions=PARTITIONS)
    row = file.row(1)
    file.close()
    first, second = row.lengths[:2]
    assert first == second
    data = bytearray(path.read_bytes())
    middle, end = row.offset + first, row.offset + 2 * first
    data[row.offset : end] = data[middle:end] + data[row.offset : middle]
    path.write_bytes(data)
    failures: list[FetchFailure] = []
    groups, _ = fetched(files, folder, 1, failures, OpenFiles(), wanted=(0,))
    assert groups and all(values == [b"0"] for _, values in groups) and failures == []
    # nor to disk, where a segment has no room in memory
    with ReduceInput(folder.parent / "reduce", memory_bytes=1) as sink, pytest.raises(CorruptSegment, match="another"):
        sink.receive("m0", first, io.BytesIO(data[row.offset : middle]), checksum=row.checksums[0])


def test_a_lost_output_is_reported_and_the_others_are_taken(files: FileSystem, folder: Path) -> None:
    failures: list[FetchFailure] = []
    (folder / "m5").unlink()
    with pytest.raises(FetchFailed, match="m5"):
        fetched(files, folder, 0, failures, OpenFiles())
    assert {failure.location.attempt for failure in failures} == {"m5"}


class Away:
    """A file system whose files cannot be opened so many times, as when the DataNode that has them is away."""

    def __init__(self, files: FileSystem, times: int) -> None:
        self._files, self.left = files, times

    def open_at(self, path: str) -> PositionedReader:
        if self.left:
            self.left -= 1
            raise StorageUnavailable(f"{path}: HDFS does not answer")
        return self._files.open_at(path)


def test_what_is_only_away_is_waited_for_and_reported_after_a_while(files: FileSystem, folder: Path) -> None:
    failures: list[FetchFailure] = []
    expected, _ = fetched(files, folder, 0, [], OpenFiles())
    away = Away(files, 30)
    groups, _ = fetched(cast(FileSystem, away), folder, 0, failures, OpenFiles())
    assert (groups, failures, away.left) == (expected, [], 0)
    with pytest.raises(FetchFailed):
        fetched(cast(FileSystem, Away(files, 1 << 30)), folder, 0, failures, OpenFiles(), patience_s=0.05)
    assert {failure.location.attempt for failure in failures} >= {"m4"} and len(failures) >= 3


def test_files_kept_open_are_bounded(files: FileSystem, folder: Path) -> None:
    kept = OpenFiles(bytes_max=1)
    fetched(files, folder, 0, [], kept)
    assert all(kept.take(f"file://{folder}/{name}") is None for name in ("merged", "m4", "m5"))
