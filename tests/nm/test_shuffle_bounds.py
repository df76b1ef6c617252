"""What the service holds of merged files stays within bounds, though a job's containers may write such files."""

import hashlib
import logging
import os
import struct
import tracemalloc
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from nm.shuffle.jobs import ShuffleJob, ShuffleJobs
from nm.shuffle.limits import MergedLimits, ShuffleLimits
from nm.shuffle.merged.outputs import PUBLISHED_MAPS_MAX
from nm.shuffle.merged.scan import FolderScan
from nm.shuffle.merged.segment import MergedFile
from nm.shuffle.request import ShuffleRequest
from riffle_merger.format.merged import DATA_SUFFIX, INDEX_SUFFIX, MERGED_FOLDER, MergedIndex, SegmentColumns
from tests.nm.nm_shuffle_served import APPLICATION, JOB, USER, Served, fetch, job_token, settle

MAPS = [f"attempt_1_0001_m_{number:06d}_0" for number in range(12)]
#: map outputs in one merge, at most
INPUTS_MAX = 1000
INDEX_CACHE_BYTES = 512 << 10


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    jobs = ShuffleJobs()
    jobs.add(APPLICATION, USER, job_token())
    limits = ShuffleLimits(connections_max=100, keep_alive=False, keep_alive_timeout_s=0.4)
    served = Served(tmp_path, jobs, limits, 1 << 20, MergedLimits(4 << 20, 60, INDEX_CACHE_BYTES))
    yield served
    served.service.stop()


def folder_scan(served: Served) -> FolderScan:
    job = ShuffleJob(APPLICATION, USER, b"secret")
    return FolderScan(
        [served.output_dir.parent],
        lambda map_id: served.outputs.load(job, map_id),
        index_bytes_max=INDEX_CACHE_BYTES,
    )


def forge(served: Served, name: str, maps: list[str], partitions: int = 1, length: int = 0) -> tuple[Path, Path]:
    """As a container may: a file of holes, and an index of it whose checksum is right. `length`: of a segment."""
    folder = served.output_dir.parent / MERGED_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    names = b"".join(struct.pack(">H", len(map_id)) + map_id.encode() for map_id in maps)
    head = struct.pack(">4sIII", b"YQM\x02", len(maps), partitions, len(names))
    whole = len(maps) * length
    table = b"".join(struct.pack(">qq", whole * partition, whole) for partition in range(partitions))
    body = head + names + table + struct.pack(">qqI", length, length, 1 << 31) * (len(maps) * partitions)
    data, index = folder / f"{name}{DATA_SUFFIX}", folder / f"{name}{INDEX_SUFFIX}"
    data.write_bytes(b"")
    os.truncate(data, whole * partitions)
    index.write_bytes(body + struct.pack(">I", zlib.crc32(body)))
    return data, index


def attempts(first: int, count: int) -> list[str]:
    return [f"attempt_1_0001_m_{number:06d}_9" for number in range(first, first + count)]


def note_parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of indexes that are parsed from now on."""
    parsed: list[str] = []
    parse = MergedIndex.parse

    def noted(data: bytes, *, name: str) -> MergedIndex:
        parsed.append(name)
        return parse(data, name=name)

    monkeypatch.setattr(MergedIndex, "parse", noted)
    return parsed


def in_service(served: Served) -> None:
    """Returns when the service has done what it was told."""
    settle(served)
    served.get(served.target(MAPS[:1]))
    settle(served)


@pytest.mark.parametrize(("maps", "partitions"), [(INPUTS_MAX + 1, 1), (2, 0)])
def test_an_index_that_no_merge_can_have_made_is_not_used(served: Served, maps: int, partitions: int) -> None:
    served.write(MAPS[0], [b"here"])
    forge(served, "good", attempts(0, INPUTS_MAX))
    forge(served, "bad", attempts(INPUTS_MAX, maps), partitions)
    assert [file.path.stem for file in folder_scan(served).scan().merged] == ["good"]
    for name, known in (("bad", 0), ("good", INPUTS_MAX)):
        response, _ = served.get(served.target(MAPS[:1], 0, f"&merged={name}"))
        assert (response.status, served.service.merged.maps) == (200, known)


@pytest.mark.parametrize("is_named", [False, True], ids=["found", "named-by-a-client"])
def test_only_so_many_maps_of_a_job_are_known_from_merged_files(
    served: Served, caplog: pytest.LogCaptureFixture, is_named: bool
) -> None:
    served.write(MAPS[0], [b"here"])
    before = fetch(served, 0, MAPS[:1])
    files = PUBLISHED_MAPS_MAX // INPUTS_MAX + 3
    for number in range(files):  # each with a map of its own is enough for all its names to be held
        forge(served, f"f{number}", [*attempts(0, INPUTS_MAX - 1), *attempts(INPUTS_MAX + number, 1)])
    scan = folder_scan(served)
    found = scan.scan().merged
    assert len(found) == files - 2, "one too many, for the service to see"
    assert scan.scan().merged == []
    caplog.set_level(logging.WARNING)
    if is_named:
        for number in range(files):
            _, body = served.get(served.target(MAPS[:1], 0, f"&merged=f{number}"))
            assert hashlib.sha256(body).hexdigest() == before
    else:
        for file in [
            file for file in found for _ in range(2)
        ]:  # as one that a client has named, and the node then finds
            served.service.publish(JOB, file)
        in_service(served)
    assert served.service.merged.maps == INPUTS_MAX - 1 + files - 3
    assert sum("the originals of" in record.message for record in caplog.records) == 1
    held = served.service.merged.memory_bytes
    assert 300 * PUBLISHED_MAPS_MAX < held < 600 * PUBLISHED_MAPS_MAX
    served.service.forget_job(JOB)
    in_service(served)
    forge(served, "next", attempts(0, 1))
    served.get(served.target(MAPS[:1], 0, "&merged=next"))
    assert served.service.merged.maps == 1


def test_indexes_are_kept_within_their_memory(served: Served) -> None:
    served.write(MAPS[0], [b"here"] * 2)
    merged, held = served.service.merged, 0
    for number in range(8):
        forge(served, f"f{number}", attempts(400 * number, 400), partitions=2)
        served.get(served.target(MAPS[:1], 0, f"&merged=f{number}"))
        assert (merged.maps, merged.index_bytes <= INDEX_CACHE_BYTES) == (400 * (number + 1), True)
        held = max(held, merged.index_bytes)
    assert held > INDEX_CACHE_BYTES / 2


@pytest.mark.parametrize("size", [INDEX_CACHE_BYTES + 1, INDEX_CACHE_BYTES - 10_000], ids=["file", "memory"])
def test_an_index_that_takes_more_than_there_is_for_all_is_not_used(
    served: Served, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.write(MAPS[0], [b"here"])
    before = fetch(served, 0, MAPS[:1])
    data, index = forge(served, "large", attempts(0, 100), size // (16 + 20 * 100))
    parsed = note_parsed(monkeypatch)
    if size > INDEX_CACHE_BYTES:
        with index.open("ab") as file:
            file.truncate(size)
    assert folder_scan(served).scan().merged == []
    for _ in range(2):
        response, body = served.get(served.target(MAPS[:1], 0, "&merged=large"))
        assert (response.status, hashlib.sha256(body).hexdigest()) == (200, before)
    settle(served)
    served.service.publish(JOB, MergedFile(data, index, (MAPS[0],)))  # it was smaller when the node looked
    assert fetch(served, 0, MAPS[:1]) == before
    merged = served.service.merged
    assert (merged.maps, merged.index_bytes) == (1, 0)
    assert bool(parsed) == (size < INDEX_CACHE_BYTES), "not even read"


def test_an_index_that_cannot_be_used_is_read_again_when_something_changed(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = note_parsed(monkeypatch)
    data, index = forge(served, "late", attempts(0, 2))
    whole = index.read_bytes()
    index.write_bytes(whole[:-1])
    data.unlink()
    scan = folder_scan(served)
    reads = []
    for change in (None, None, lambda: data.write_bytes(b"x"), None, lambda: index.write_bytes(whole), None):
        if change is not None:
            change()
        assert scan.scan().merged == []
        reads.append(len(parsed))
    assert reads == [0, 0, 1, 1, 2, 2]
    data.write_bytes(b"")
    assert [file.path for file in scan.scan().merged] == [data]


def test_a_row_that_lies_costs_the_look_at_the_folder_nothing_and_is_not_served(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    maps = MAPS[:2]
    for map_id in maps:
        served.write(map_id, [b"zero", b"one", b"two"])
    before = [fetch(served, reduce, maps) for reduce in range(3)]
    file = served.write_merged("all", maps)
    content = bytearray(file.index_path.read_bytes())
    struct.pack_into(">q", content, len(content) - 4 - 20 + 8, 1)  # the last segment's length
    content[-4:] = struct.pack(">I", zlib.crc32(content[:-4]))
    file.index_path.write_bytes(content)
    rows: list[int] = []
    columns = MergedIndex._columns

    def noted(index: MergedIndex, row: int) -> SegmentColumns:
        rows.append(row)
        return columns(index, row)

    monkeypatch.setattr(MergedIndex, "_columns", noted)
    (found,) = folder_scan(served).scan().merged
    assert rows == []
    served.publish(found)
    assert [fetch(served, reduce, maps) for reduce in range(3)] == before
    settle(served)
    assert found.is_bad and rows == [0, 1, 2]
    counts = served.service.statistics.reads
    assert counts.merged_segments == 4
    assert [fetch(served, reduce, maps) for reduce in range(3)] == before


def test_who_asks_for_little_of_a_file_and_takes_nothing_has_little_held(served: Served) -> None:
    maps, partitions = attempts(0, INPUTS_MAX), 20
    merged = served.service.merged
    merged.index_cache_bytes = 1 << 20
    data, index = forge(served, "wide", maps, partitions, length=1000)
    merged.publish(JOB, MergedFile(data, index, tuple(maps)))
    job = served.service.jobs.get(JOB)
    assert job is not None

    def answer(reduce: int) -> object:
        request = ShuffleRequest(job, JOB, tuple(maps[:2]), reduce, "", wants_keep_alive=False, reply_hash="")
        found = merged.find(request, 0, {})
        assert found is not None
        return found

    held = [answer(0)]  # after which the index is kept
    tracemalloc.start()
    try:
        held += [answer(reduce) for reduce in range(1, partitions)]
        answer(0)
        assert tracemalloc.get_traced_memory()[0] < 40 * INPUTS_MAX * partitions
    finally:
        tracemalloc.stop()


def test_names_that_come_and_go_are_not_remembered_without_bound(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nm.shuffle.merged.scan.NAMES_MAX", 20)
    scan = folder_scan(served)
    for turn in range(10):
        paths = forge(served, f"lies-{turn}", MAPS[:1], partitions=0)
        names = [served.output_dir / f"attempt_1_0001_m_{turn:06d}_{number}" for number in range(5)]
        for name in names:
            name.mkdir(parents=True)
        assert scan.scan().merged == []
        for path in paths:
            path.unlink()
        for name in names:
            name.rmdir()
    assert scan.scan().outputs == [] and scan.remembered == 0, "none was whole, and none is there"
    for turn in range(30):
        forge(served, f"whole-{turn}", MAPS[:1])
    assert len(scan.scan().merged) == scan.remembered == 20
