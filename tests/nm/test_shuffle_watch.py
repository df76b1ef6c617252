"""What becomes one merged file, and when: the decision, and the looks at folders that feed it."""

import asyncio
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nm.shuffle.jobs import ShuffleJob, ShuffleJobs
from nm.shuffle.limits import ShuffleLimits
from nm.shuffle.merged.merging import OutputMerging
from nm.shuffle.merged.scan import FolderScan
from nm.shuffle.merged.watch import JobWatch, Output, WatchSettings
from riffle_merger.format.merged import MergedIndex
from riffle_merger.merger.disk import DiskFacts
from riffle_merger.merger.diskshape import KnownDisk
from riffle_merger.plan.automatic import DiskShape
from riffle_merger.plan.policy import MergePolicy
from tests.nm.nm_shuffle_served import APPLICATION, JOB, USER, Served, job_token
from yaqd.proto import riffle_pb2 as pb

MB = 1 << 20
SETTINGS = WatchSettings(MergePolicy(files=5), MB, quiet_min_s=2, quiet_max_s=30, index_bytes_max=16 * MB)


def outputs(first: int, count: int, size: int = 100, partitions: int = 4) -> list[Output]:
    return [Output(f"m{number}", size, partitions) for number in range(first, first + count)]


@given(
    st.lists(st.tuples(st.integers(0, 9), st.floats(0, 100), st.booleans()), max_size=30), st.integers(2, 12), st.data()
)
def test_every_output_is_merged_at_most_once_and_in_its_order(
    steps: list[tuple[int, float, bool]], files: int, data: st.DataObject
) -> None:
    watch = JobWatch(WatchSettings(MergePolicy(files=files), MB, 1, 30, 16 * MB, outstanding_max=3), 0.0)
    now, count = 0.0, 0
    merged: list[str] = []
    outstanding: list[str] = []
    for appear, passed, some_end in [*steps, (0, 1000.0, True), (0, 1.0, True)]:
        now += passed
        watch.appeared(outputs(count, appear), now)
        count += appear
        for merge in watch.decide(now):
            merged += merge.map_ids
            outstanding.append(merge.merge_id)
            assert 2 <= len(merge.map_ids) <= files
        assert len(outstanding) == watch.outstanding <= 3
        if some_end and outstanding:
            watch.over(outstanding.pop(data.draw(st.integers(0, len(outstanding) - 1))))
    while outstanding:
        watch.over(outstanding.pop())
        for merge in watch.decide(now + 1000):
            merged += merge.map_ids
            outstanding.append(merge.merge_id)
    assert merged == [f"m{number}" for number in range(len(merged))]
    assert count - len(merged) == watch.waiting <= 1  # one alone stays as it is


def test_waves_are_told_from_the_end_of_the_stage() -> None:
    watch = JobWatch(SETTINGS, -8.0)
    for wave in range(4):  # four maps at a time, 8 s each
        watch.appeared(outputs(4 * wave, 4), 8.0 * wave)
        merges = watch.decide(8.0 * wave)
        assert [len(merge.map_ids) for merge in merges] == ([] if wave == 0 else [5])
        assert not watch.decide(8.0 * wave + 7.9)
    assert watch.waiting == 1
    watch.appeared(outputs(16, 2), 32.0)
    assert [len(merge.map_ids) for merge in watch.decide(32.0 + 30)] == [3]


def test_quick_stages_end_quickly() -> None:
    watch = JobWatch(SETTINGS, 0.0)
    for number in range(3):
        watch.appeared(outputs(number, 1), 0.2 * number)
    assert not watch.decide(2.0)
    assert [merge.map_ids for merge in watch.decide(2.5)] == [("m0", "m1", "m2")]


def test_large_blocks_and_odd_shapes_are_left_alone() -> None:
    watch = JobWatch(SETTINGS, 0.0)
    watch.appeared([*outputs(0, 2, size=4 * MB), *outputs(2, 4), *outputs(6, 2, partitions=3)], 0)
    watch.appeared([Output("none", 0, 0)], 0)
    assert [merge.map_ids for merge in watch.decide(100)] == [("m2", "m3", "m4", "m5")]


def test_what_reducers_have_read_is_not_merged() -> None:
    watch = JobWatch(SETTINGS, 0.0)
    watch.appeared(outputs(0, 20), 0)
    assert not watch.decide(0, fetched=0.9)
    assert not watch.decide(100)
    watch.appeared(outputs(20, 5), 100)
    assert len(watch.decide(100, fetched=0.1)) == 1


def test_blocks_are_merged_to_a_size() -> None:
    watch = JobWatch(WatchSettings(MergePolicy(block_bytes=1000), MB, 2, 30, 16 * MB), 0.0)
    watch.appeared(outputs(0, 8, size=1600), 0)  # blocks of 400
    assert [len(merge.map_ids) for merge in watch.decide(0)] == [3, 3]


SLOW = DiskShape()  # a turning disk, and no memory
FAST = DiskShape(seek_s=1e-4, bytes_per_s=500e6, cache_bytes=4e9)


@pytest.mark.parametrize("partitions", [1, 3000, 15_000])
def test_a_merge_has_no_more_outputs_than_its_index_may_take_memory_for(partitions: int) -> None:
    settings = replace(SETTINGS, policy=MergePolicy(files=200), index_bytes_max=MB)
    watch = JobWatch(settings, 0.0)
    watch.appeared(outputs(0, 200, partitions=partitions), 0.0)
    merges = watch.decide(1000.0)
    sizes = [len(merge.map_ids) for merge in merges]
    assert sizes[:1] == {1: [200], 3000: [16], 15_000: [2]}[partitions]
    maps = [f"attempt_1700000000000_0001_m_{number:06d}_0" for number in range(sizes[0] + 1)]

    def cost_bytes(count: int) -> int:
        lengths = [[(1, 5)] * count] * partitions
        return MergedIndex.build(maps[:count], lengths, [[0] * count] * partitions).cost_bytes

    assert cost_bytes(sizes[0]) <= MB
    assert sizes[0] == 200 or cost_bytes(sizes[0] + 1) > MB


def test_outputs_of_which_no_two_have_room_in_an_index_are_left_alone() -> None:
    watch = JobWatch(replace(SETTINGS, index_bytes_max=MB), 0.0)
    watch.appeared(outputs(0, 200, partitions=30_000), 0.0)
    assert watch.decide(1000.0) == [] and watch.left_alone == 200
    assert watch.without_index == 200


AUTO = WatchSettings(None, MB, quiet_min_s=2, quiet_max_s=30, index_bytes_max=16 * MB)


def one_by_one(watch: JobWatch, sizes: list[int], disk: DiskShape, partitions: int = 100) -> list[list[str]]:
    """The merges as outputs appear, and once none has come for long."""
    merged = []
    for number, size in enumerate(sizes):
        watch.appeared([Output(f"m{number}", size, partitions)], 0.1 * number)
        merged += watch.decide(0.1 * number, disk=disk)
    merged += watch.decide(0.1 * len(sizes) + 30, disk=disk)
    for merge in merged:
        watch.over(merge.merge_id)
    return [list(merge.map_ids) for merge in merged]


def test_automatic_merging_begins_when_what_has_come_pays_and_grows_with_it() -> None:
    watch = JobWatch(replace(AUTO, outstanding_max=100), 0.0)
    merged = one_by_one(watch, [100 * 64_000] * 200, SLOW)
    assert [len(files) for files in merged] == [5, 20, 40, 40, 40, 40, 15]
    assert [name for files in merged for name in files] == [f"m{number}" for number in range(200)]
    assert watch.choice is not None and watch.choice.policy == MergePolicy(files=40)


def test_automatic_merging_leaves_small_jobs_and_quick_disks_alone() -> None:
    assert one_by_one(JobWatch(AUTO, 0.0), [100 * 64_000] * 200, FAST) == []
    assert one_by_one(JobWatch(AUTO, 0.0), [1000] * 20, SLOW, partitions=2) == []
    unknown = JobWatch(AUTO, 0.0)
    unknown.appeared(outputs(0, 50), 0)
    assert not unknown.decide(100)


def test_large_outputs_among_small_ones_do_not_hold_automatic_merging_up() -> None:
    watch = JobWatch(replace(AUTO, block_bytes_max=64 * MB, outstanding_max=100), 0.0)
    merged = one_by_one(watch, [100 * 30 * MB, *[100 * 16_000] * 400], SLOW)
    assert sum(map(len, merged)) >= 400


@dataclass
class FakeMerger:
    """Takes what it is asked for."""

    disk: DiskFacts | None = None
    port: int | None = 1
    asked: list[str] = field(default_factory=list)

    async def merge(self, job_id: str, merge_id: str, map_ids: Sequence[str], *, timeout_s: float) -> pb.MergeResponse:
        self.asked += map_ids
        return pb.MergeResponse()


async def test_the_node_goes_by_what_its_merger_found_of_the_disk(place: Served) -> None:
    jobs = ShuffleJobs()
    jobs.add(APPLICATION, USER, job_token())
    merger = FakeMerger()
    with ThreadPoolExecutor(1) as io:
        merging = OutputMerging(
            WatchSettings(None, MB, quiet_min_s=0, quiet_max_s=0, index_bytes_max=16 * MB),
            disk=KnownDisk(FAST),
            jobs=jobs,
            outputs=place.outputs,
            directories=place.directories,
            service=place.service,
            merger=merger,
            io=io,
        )
        for number in range(5):
            place.write(f"m{number}", [b"zero", b"one"])
        for merger.disk in (None, DiskFacts(100, 10**9, 10**10)):
            await merging.look()
            assert merger.asked == []
        merger.disk = DiskFacts(1_000_000, 10**9, 0)  # a second for each seek
        await merging.look()
        await asyncio.sleep(0)
        assert sorted(merger.asked) == [f"m{number}" for number in range(5)]
    place.service.stop()


@pytest.fixture
def place(tmp_path: Path) -> "Served":
    jobs = ShuffleJobs()
    jobs.add(APPLICATION, USER, job_token())
    return Served(tmp_path, jobs, ShuffleLimits(10, False, 5), 1 << 20)


def folder_scan(place: Served) -> FolderScan:
    job = ShuffleJob(APPLICATION, USER, b"secret")
    return FolderScan([place.output_dir.parent], lambda map_id: place.outputs.load(job, map_id))


def test_what_appears_is_found_once_and_whole(place: Served) -> None:
    scan = folder_scan(place)
    try:
        assert scan.scan().outputs == []
        place.write("m0", [b"zero", b"one"])
        (place.output_dir / "m1").mkdir()
        (place.output_dir / "m1" / "file.out.index").write_bytes(b"\0" * 30)
        (place.output_dir / "m2").mkdir()
        os.mkfifo(place.output_dir / "m2" / "file.out.index")
        assert scan.scan().outputs == [Output("m0", 15, 2)]
        assert scan.scan().outputs == []
        place.write("m3", [b"zero", b"one"])
        for name in ("file.out", "file.out.index"):
            (place.output_dir / "m3" / name).replace(place.output_dir / "m1" / name)
        assert scan.scan().outputs == [Output("m1", 15, 2)]
        place.merge("one", ["m0", "m1"])
        (place.output_dir.parent / "riffle" / ".two.out.index").write_bytes(b"")
        (place.output_dir.parent / "riffle" / "three.out.index").write_bytes(b"half")
        (found,) = scan.scan().merged
        assert (found.path.name, found.maps) == ("one.out", ("m0", "m1"))
        assert not scan.scan().merged
    finally:
        place.service.stop()


def test_what_one_look_finds_is_in_the_order_in_which_it_was_done(place: Served) -> None:
    """Reducers ask in that order, and what they ask for lies side by side then."""
    names = [f"attempt_1_0001_m_{number * 7 % 20:06d}_0" for number in range(20)]
    try:
        for at, name in enumerate(names):
            place.write(name, [b"zero"])
            os.utime(place.output_dir / name, ns=(0, 1_700_000_000_000_000_000 + at))
        assert [output.map_id for output in folder_scan(place).scan().outputs] == names
    finally:
        place.service.stop()


def lie(data: Path, index: Path, place: Served) -> None:
    data.write_bytes(data.read_bytes() + b"x")


def link(data: Path, index: Path, place: Served) -> None:
    data.replace(place.output_dir / "there")
    data.symlink_to(place.output_dir / "there")


def pipe(data: Path, index: Path, place: Served) -> None:
    index.unlink()
    os.mkfifo(index)


@pytest.mark.parametrize("change", [lie, link, pipe])
def test_merged_files_that_lie_are_not_found(place: Served, change: Callable[[Path, Path, Served], None]) -> None:
    try:
        place.write("m0", [b"zero", b"one"])
        file = place.merge("one", ["m0"])
        change(file.path, file.index_path, place)
        assert folder_scan(place).scan().merged == []
    finally:
        place.service.stop()


def test_a_job_whose_master_plans_is_known_by_its_environment() -> None:
    jobs = ShuffleJobs()
    jobs.add(APPLICATION, USER, job_token(), plans_merges=True)
    assert [job.plans_merges for job in jobs.all().values()] == [True] and JOB in jobs.all()
