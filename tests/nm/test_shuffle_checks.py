"""What is looked at before a byte of a merged file goes out: each check with the damage that it alone finds."""

import http.client
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nm.shuffle.answer import COPY_BYTES, GATHER_BYTES, ReadCounts
from nm.shuffle.jobs import ShuffleJobs
from nm.shuffle.limits import MergedLimits, ShuffleLimits
from nm.shuffle.merged.segment import MergedFile
from nm.shuffle.request import ShuffleRequest
from riffle_merger.format.merged import MergedIndex
from tests.nm.nm_shuffle_served import (
    APPLICATION,
    JOB,
    USER,
    Served,
    fetch,
    job_token,
    settle,
    stalled_client,
    write_output,
)

MAPS = [f"attempt_1_0001_m_{number:06d}_0" for number in range(12)]
#: whose part is damaged, and of how many
REDUCE, REDUCES = 1, 3


@pytest.fixture
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    """Parameter: how many bytes of merged files are kept."""
    jobs = ShuffleJobs()
    jobs.add(APPLICATION, USER, job_token())
    limits = ShuffleLimits(connections_max=100, keep_alive=False, keep_alive_timeout_s=0.4, stall_timeout_s=60)
    merging = MergedLimits(getattr(request, "param", 4 << 20), 60, 64 << 10)
    served = Served(tmp_path, jobs, limits, 1 << 20, merging)
    yield served
    served.service.stop()


def write(served: Served, length: int) -> str:
    """All maps' outputs; check sum of the reduce's part of them."""
    for map_id in MAPS:
        served.write(map_id, [os.urandom(length) for _ in range(REDUCES)])
    before = fetch(served, REDUCE, MAPS)
    settle(served)
    return before


def replace(served: Served, map_id: str, length: int | None) -> None:
    """Another output under its name, or none."""
    served.outputs.forget_job(JOB)
    shutil.rmtree(served.output_dir / map_id)
    if length is not None:
        served.write(map_id, [os.urandom(length) for _ in range(REDUCES)])


def flip(file: MergedFile, number: int) -> None:
    start = MergedIndex.load(file.index_path).segments(REDUCE)[number].start
    content = bytearray(file.path.read_bytes())
    content[start + 100] ^= 1
    file.path.write_bytes(content)


@pytest.mark.parametrize("served", [0], indirect=True)
def test_a_segment_that_there_is_no_room_to_read_with_others_is_checked_by_itself(served: Served) -> None:
    before = write(served, 5000)
    flip(served.merge("all", MAPS), 7)
    assert fetch(served, REDUCE, MAPS) == before
    settle(served)
    counts = served.service.statistics.reads
    assert (counts.merged_segments, counts.fallbacks) == (7, len(MAPS) - 7)


@pytest.mark.parametrize("length", [5000, 120_000])
def test_a_damaged_copy_is_not_sent_in_place_of_a_lost_original(served: Served, length: int) -> None:
    write(served, length)
    flip(served.merge("all", MAPS), 4)
    replace(served, MAPS[4], None)
    others = [map_id for map_id in MAPS if map_id != MAPS[4]]
    for _ in range(2):
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            fetch(served, REDUCE, MAPS)
        assert fetch(served, REDUCE, others)


@pytest.mark.parametrize("length", [5000, 120_000])
def test_an_original_that_is_no_longer_what_was_merged_is_not_sent_in_its_place(served: Served, length: int) -> None:
    """The client was told the length of what was merged."""
    before = write(served, length)
    flip(served.merge("all", MAPS), 2)
    replace(served, MAPS[4], length - 7)
    assert fetch(served, REDUCE, MAPS) == before


#: what is kept, in bytes, and a segment's length: a segment is read by itself, with others, or in place
@pytest.mark.parametrize(("served", "length"), [(0, 5000), (1 << 20, 30_000), (1 << 20, 100_000)], indirect=["served"])
def test_a_part_of_segments_in_each_others_place_is_not_sent(served: Served, length: int) -> None:
    """A reducer asks for twenty at a time: what is wrong is noticed where the partition is not read whole."""
    write(served, length)
    before = fetch(served, REDUCE, MAPS[:2])
    swap_first(served.merge("all", MAPS))
    assert fetch(served, REDUCE, MAPS[:2]) == before
    settle(served)
    counts = served.service.statistics.reads
    assert (counts.fallbacks, counts.merged_segments) == (2, 0)


def swap_first(file: MergedFile) -> None:
    first, second = MergedIndex.load(file.index_path).segments(REDUCE)[:2]
    content = bytearray(file.path.read_bytes())
    of_first = content[first.start : second.start]
    content[first.start : second.start] = content[second.start : second.start + second.part_length]
    content[second.start : second.start + second.part_length] = of_first
    file.path.write_bytes(content)


def test_segments_that_are_right_in_themselves_and_of_other_maps_are_not_sent(served: Served) -> None:
    before = write(served, 5000)
    swap_first(served.merge("all", MAPS))
    assert fetch(served, REDUCE, MAPS) == before
    settle(served)
    assert served.service.statistics.reads.fallbacks == len(MAPS)


def test_a_file_that_was_replaced_by_one_of_the_same_maps_in_another_order_is_left_alone(served: Served) -> None:
    before = write(served, 5000)
    served.merge("all", MAPS)
    served.write_merged("all", MAPS[::-1])
    assert fetch(served, REDUCE, MAPS) == before
    settle(served)
    assert served.service.statistics.reads.merged_segments == 0


def test_what_is_gathered_for_one_call_is_bounded_however_long_what_is_kept(served: Served) -> None:
    maps = [f"attempt_1_0001_m_{number:06d}_0" for number in range(100)]
    for map_id in maps:
        served.write(map_id, [os.urandom(9000)])
    served.merge("all", maps)
    assert fetch(served, 0, maps)  # after which it is known
    job = served.service.jobs.get(JOB)
    assert job is not None
    request = ShuffleRequest(job, JOB, tuple(maps), 0, "", wants_keep_alive=False, reply_hash="")
    found = served.service.merged.find(request, 0, {})
    assert found is not None
    stretch, counts, total = found[0], ReadCounts(), 0
    while not stretch.is_over:
        gathered = bytearray()
        assert stretch.take(gathered, counts) is None
        assert 0 < len(gathered) <= GATHER_BYTES + COPY_BYTES
        total += len(gathered)
    assert (total, counts.merged_segments, counts.reads) == (stretch.length, len(maps), 1)


def forget_kept(served: Served) -> None:
    """As after a while."""
    settle(served)
    served.service.merged._kept.forget_where(lambda key, kept: True)
    assert not served.service.merged.kept_bytes


def cut(file: MergedFile, number: int) -> None:
    os.truncate(file.path, MergedIndex.load(file.index_path).segments(REDUCE)[number].start + 100)


#: read whole with others, and by themselves
LONG = [120_000, 400_000]


@pytest.mark.parametrize("length", LONG)
def test_what_is_damaged_after_it_was_found_right_is_not_sent_for_a_lost_original(served: Served, length: int) -> None:
    before = write(served, length)
    file = served.merge("all", MAPS)
    assert fetch(served, REDUCE, MAPS) == before
    forget_kept(served)
    flip(file, 4)
    replace(served, MAPS[4], None)
    others = [map_id for map_id in MAPS if map_id != MAPS[4]]
    for _ in range(2):
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            fetch(served, REDUCE, MAPS)
    assert file.bad_partitions == {REDUCE}
    assert fetch(served, REDUCE, others)


@pytest.mark.parametrize("damage", [flip, cut])
@pytest.mark.parametrize("length", LONG)
def test_what_is_damaged_after_it_was_found_right_is_left_for_the_originals(
    served: Served, length: int, damage: Callable[[MergedFile, int], None]
) -> None:
    before = write(served, length)
    file = served.merge("all", MAPS)
    assert fetch(served, REDUCE, MAPS) == before
    forget_kept(served)
    damage(file, 4)
    assert [fetch(served, REDUCE, MAPS) for _ in range(2)] == [before] * 2
    settle(served)
    assert served.service.statistics.reads.fallbacks


@pytest.mark.parametrize("length", LONG)
def test_a_file_that_is_cut_while_it_is_sent_is_left_alone(served: Served, length: int) -> None:
    """Who has got a part of it asks again."""
    before = write(served, length)
    file = served.merge("all", MAPS)
    served.service.merged._kept._now = lambda: 0.0
    with stalled_client(served, MAPS, REDUCE) as client:
        served.service.merged._kept._now = lambda: 2.0
        done = threading.Event()
        served.service.loop.call_soon_threadsafe(lambda: (served.service._sweep(), done.set()))
        assert done.wait(20)
        cut(file, 0)
        data = b""
        while chunk := client.recv(1 << 20):
            data += chunk
        assert len(data) < length
    settle(served)
    assert file.is_bad
    assert fetch(served, REDUCE, MAPS) == before


@pytest.mark.parametrize("map_id", [".", ".."])
def test_folders_that_are_no_maps_are_not_served(served: Served, map_id: str) -> None:
    """Containers may put there what looks like an output."""
    write(served, 100)
    write_output(served.output_dir.parent / "planted", [b"planted"] * REDUCES)
    for folder in (served.output_dir, served.output_dir.parent):
        for name in ("file.out", "file.out.index"):
            shutil.copy(served.output_dir.parent / "planted" / name, folder)
    response, body = served.get(served.target([map_id], REDUCE))
    assert response.status == 500 and b"planted" not in body
