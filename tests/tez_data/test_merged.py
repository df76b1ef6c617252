"""Reduces that read merged files: one request for all of them, in place where they lie on their own node."""

import os
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from riffle_merger.format.index import SpillIndex
from riffle_merger.format.merged import DATA_SUFFIX, INDEX_SUFFIX, MERGED_FOLDER, MergedIndex
from tez_adapter.data import MapOutput, ReduceInput, localmerged
from tez_adapter.data.fetch import Fetcher, FetchFailure
from tez_adapter.data.fetchplan import FetchPlan, FetchSettings, MapLocation


def at(index: int, merged: str = "", host: str = "a") -> MapLocation:
    return MapLocation(index, f"m_{index}_0", host, 1, merged)


def test_outputs_of_one_merged_file_are_asked_for_together_in_their_order() -> None:
    plan = FetchPlan(100, FetchSettings(maps_per_request=3))
    order = [*range(40, 80), 7, 3, 2, 1]
    for index in order[:20]:
        plan.add(at(index, "x"))
    plan.add(at(0))
    for index in order[20:40]:
        plan.add(at(index, "x"))
    for index in order[40:]:
        plan.add(at(index, "y"))
    batches = []
    while (batch := plan.next_batch(0)) is not None:
        batches.append([location.map_index for location in batch.locations])
        for location in batch.locations:
            plan.succeeded(location)
        plan.finished(batch, 0, failed=False)
    assert batches == [order[:40], [0], order[40:]]


def test_a_merged_file_of_very_many_is_read_in_parts() -> None:
    plan = FetchPlan(300, FetchSettings(merged_per_request=200))
    for index in range(300):
        plan.add(at(index, "x"))
    first = plan.next_batch(0)
    assert first is not None
    assert len(first.locations) == 200


def write_maps(folder: Path, count: int) -> list[str]:
    names = [f"attempt_1_0001_m_{index:06d}_0" for index in range(count)]
    for index, name in enumerate(names):
        output = MapOutput(folder / "output" / name, 2, codec=("lz4", "snappy", "zstd", "none")[index % 4])
        for i in range(50):
            output.collect(b"key%d" % i, b"map%d" % index)
        output.close()
    return names


def merge(folder: Path, names: list[str], name: str = "one") -> None:
    """What a merger leaves: all maps' segments of a partition side by side."""
    indexes = [SpillIndex.load(folder / "output" / n / "file.out.index") for n in names]
    files = [(folder / "output" / n / "file.out").read_bytes() for n in names]
    data, lengths, checksums = b"", [], []
    for partition in range(2):
        entries = [index[partition] for index in indexes]
        parts = [f[e.start : e.start + e.part_length] for f, e in zip(files, entries, strict=True)]
        data += b"".join(parts)
        lengths.append([(e.raw_length, e.part_length) for e in entries])
        checksums.append([int.from_bytes(part[-4:], "big") for part in parts])
    place = folder / MERGED_FOLDER
    place.mkdir()
    (place / f"{name}{DATA_SUFFIX}").write_bytes(data)
    (place / f"{name}{INDEX_SUFFIX}").write_bytes(MergedIndex.build(names, lengths, checksums).to_bytes())


def fetch(tmp_path: Path, folder: Path, names: list[str], **options: Any) -> tuple[dict[bytes, list[bytes]], int]:
    """The reduce's groups, read with nobody listening on the wire."""
    failures: list[FetchFailure] = []
    with ReduceInput(tmp_path / "reduce", memory_bytes=1 << 20) as sink:
        fetcher = Fetcher(
            sink,
            job_id="job_1_0001",
            partition=1,
            maps=len(names),
            secret=b"secret",
            on_failure=failures.append,
            local_dirs=[str(tmp_path / "none"), str(folder)],
            settings=FetchSettings(tries_max=1, connect_timeout_s=1),
        )
        try:
            for index, name in enumerate(names):
                fetcher.add(MapLocation(index, name, "127.0.0.1", 1, options.get("merged", "one")))
            assert fetcher.wait(20)
        finally:
            fetcher.close()
        return {key: sorted(values) for key, values in sink.groups()}, len(failures)


def expected(count: int) -> dict[bytes, list[bytes]]:
    keys = sorted(k for k in (b"key%d" % i for i in range(50)) if zlib.crc32(k) % 2 == 1)
    return {key: sorted(b"map%d" % index for index in range(count)) for key in keys}


def test_a_merged_file_of_this_node_is_read_in_place_and_its_order_restored(tmp_path: Path) -> None:
    names = write_maps(tmp_path / "node", 12)
    merge(tmp_path / "node", names)
    for name in names:
        (tmp_path / "node" / "output" / name / "file.out").unlink()  # nothing but the merged file is left
    assert fetch(tmp_path, tmp_path / "node", names) == (expected(12), 0)


@pytest.mark.parametrize("stretch", [None, 700])
def test_the_disk_is_told_of_a_reducers_part_in_stretches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stretch: int | None
) -> None:
    told: list[tuple[int, int]] = []

    def advise(_: int, offset: int, length: int, advice: int) -> None:
        if advice == os.POSIX_FADV_WILLNEED:
            told.append((offset, offset + length))

    monkeypatch.setattr(os, "posix_fadvise", advise)
    if stretch is not None:
        monkeypatch.setattr(localmerged, "_STRETCH_BYTES", stretch)
    names = write_maps(tmp_path / "node", 12)
    merge(tmp_path / "node", names)
    assert fetch(tmp_path, tmp_path / "node", names) == (expected(12), 0)
    entries = MergedIndex.load(tmp_path / "node" / MERGED_FOLDER / f"one{INDEX_SUFFIX}").segments(1)
    starts = {entry.start for entry in entries}
    ends = {entry.start + entry.part_length for entry in entries}
    assert told[0][0] == min(starts) and told[-1][1] == max(ends)
    # no byte between two of them is left out, and a segment that lies in one is not told again
    assert all(second[0] <= first[1] < second[1] for first, second in pairwise(told))
    assert all(begin in starts for begin, _ in told)
    assert len(told) == 1 if stretch is None else 2 <= len(told) < len(names)


@pytest.mark.parametrize(
    "spoiled",
    ["flipped bit", "segment of another", "truncated", "no index", "index of others", "no file", "bad name"],
)
def test_a_damaged_merged_file_is_replaced_by_the_originals(tmp_path: Path, spoiled: str) -> None:
    folder = tmp_path / "node"
    names = write_maps(folder, 5)
    merge(folder, names[:3] if spoiled == "index of others" else names)
    data, index = (folder / MERGED_FOLDER / f"one{suffix}" for suffix in (DATA_SUFFIX, INDEX_SUFFIX))
    whole = data.read_bytes()
    if spoiled == "flipped bit":
        data.write_bytes(whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:])
    elif spoiled == "segment of another":  # as long, and whole
        entries = MergedIndex.load(index).segments(1)
        (start, length), (other, other_length) = (
            (entries[number].start, entries[number].part_length) for number in (0, 4)
        )
        assert length == other_length
        data.write_bytes(whole[:start] + whole[other : other + length] + whole[start + length :])
    elif spoiled == "truncated":
        data.write_bytes(whole[:-1])
    elif spoiled == "no index":
        index.unlink()
    elif spoiled == "no file":
        data.unlink()
    merged = "../riffle/one" if spoiled == "bad name" else "one"
    assert fetch(tmp_path, folder, names, merged=merged) == (expected(5), 0)
