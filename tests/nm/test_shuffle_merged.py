"""Shuffle service out of merged files: the same bytes as from the originals, in fewer reads, whatever goes wrong."""

import contextlib
import hashlib
import os
import random
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nm.shuffle.jobs import ShuffleJobs
from nm.shuffle.limits import MergedLimits, ShuffleLimits
from nm.shuffle.merged.kept import KeptSegments
from nm.shuffle.request import MAX_MAP_IDS
from tests.nm.nm_merged_served import (
    DAMAGE,
    KEPT_BYTES,
    LENGTHS,
    MAPS,
    REDUCES,
    serving,
    truncate,
    write,
)
from tests.nm.nm_shuffle_served import (
    APPLICATION,
    JOB,
    USER,
    Served,
    fetch,
    job_token,
    segments,
    settle,
    stalled_client,
)
from yaqd.model import ApplicationId

#: what the index of a file with all maps takes; two with half of them each take more
INDEX_BYTES = 5600


@pytest.fixture
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    """Parameter: how many seconds what nobody asks for is kept; as the time-out, by itself more than a test takes."""
    with serving(tmp_path, kept_s=getattr(request, "param", 60)) as served:
        yield served


@pytest.mark.parametrize("length", LENGTHS)
def test_merged_files_give_the_same_bytes(served: Served, length: int) -> None:
    write(served, length)
    asked = [MAPS[:7], MAPS[5:], MAPS[::-1], [MAPS[3]], [MAPS[3]], MAPS[10:]]
    before = {(r, n): fetch(served, r, maps) for r in range(REDUCES) for n, maps in enumerate(asked)}
    settle(served)
    assert served.service.statistics.reads.merged_segments == 0
    served.service.merged.index_cache_bytes = INDEX_BYTES
    served.merge("one", MAPS[:6])
    served.merge("two", MAPS[6:11])  # the last one stays by itself
    after = {(r, n): fetch(served, r, maps) for r in range(REDUCES) for n, maps in enumerate(asked)}
    assert after == before
    settle(served)
    counts = served.service.statistics.reads
    assert counts.merged_segments == REDUCES * (sum(map(len, asked)) - 3) and counts.fallbacks == 0


def test_a_partition_is_read_once_for_a_reducers_requests(served: Served) -> None:
    write(served, 20_000)
    served.merge("all", MAPS)
    for reduce in range(REDUCES):
        for start in range(0, len(MAPS), 3):
            fetch(served, reduce, MAPS[start : start + 3])
    settle(served)
    counts = served.service.statistics.reads
    assert (counts.reads, counts.merged_reads, counts.merged_segments) == (REDUCES, REDUCES, REDUCES * len(MAPS))
    assert counts.read_bytes == sum(20_004 + reduce for reduce in range(REDUCES)) * len(MAPS)
    assert served.service.merged.kept_bytes == 0  # all of it was asked for


@pytest.mark.parametrize("served", [0.3], indirect=True)
def test_what_is_kept_goes_after_a_while(served: Served) -> None:
    write(served, 20_000)
    served.merge("all", MAPS)
    fetch(served, 0, MAPS[:3])
    assert served.service.merged.kept_bytes == 20_004 * len(MAPS)
    deadline = time.monotonic() + 10
    while served.service.merged.kept_bytes and time.monotonic() < deadline:
        time.sleep(0.01)
    assert served.service.merged.kept_bytes == 0


def test_long_partitions_are_read_in_runs_of_what_is_asked_for(served: Served) -> None:
    write(served, 120_000)  # more than a quarter of what may be kept; two are a sixteenth at most
    asked = [MAPS[start : start + 6] for start in range(0, len(MAPS), 6)]
    # backwards, and every other map: two that lie side by side are still one read
    asked += [MAPS[:4][::-1], MAPS[4:12:2], [*MAPS[7:9], MAPS[2]]]
    before = [fetch(served, reduce, maps) for reduce in range(REDUCES) for maps in asked]
    settle(served)
    unmerged = served.service.statistics.reads
    assert unmerged.reads >= REDUCES * 23
    bytes_before = unmerged.read_bytes
    served.merge("all", MAPS)
    runs = (3, 3, 2, 4, 2)
    for reduce in range(REDUCES):
        for number, maps in enumerate(asked):
            reads = served.service.statistics.reads.merged_reads
            assert fetch(served, reduce, maps) == before[len(asked) * reduce + number]
            settle(served)
            assert served.service.statistics.reads.merged_reads - reads == runs[number], maps
    counts = served.service.statistics.reads
    assert counts.read_bytes == 2 * bytes_before
    assert (counts.merged_segments, counts.fallbacks) == (REDUCES * 23, 0)
    assert served.service.merged.kept_bytes == 0


def test_a_segment_longer_than_a_run_is_counted_as_of_a_merged_file(served: Served) -> None:
    length = 300_000
    write(served, length)
    before = [fetch(served, reduce, MAPS) for reduce in range(REDUCES)]
    settle(served)
    bytes_before = served.service.statistics.reads.read_bytes
    served.merge("all", MAPS)
    reads = served.service.statistics.reads.reads
    assert [fetch(served, reduce, MAPS) for reduce in range(REDUCES)] == before
    settle(served)
    counts = served.service.statistics.reads
    assert counts.merged_reads == counts.reads - reads >= 2 * REDUCES * len(MAPS)
    assert counts.read_bytes == 3 * bytes_before  # to check them, and to send them


def test_more_reducers_than_there_is_room_for_read_nothing_twice(served: Served) -> None:
    reducers, length = 12, 80_000
    for map_id in MAPS:
        served.write(map_id, [os.urandom(length) for _ in range(reducers)])
    file = served.merge("all", MAPS)
    served.service.merged._kept._now = lambda: 0.0  # as fast as can be
    before = [fetch(served, reduce, MAPS) for reduce in range(reducers)]
    settle(served)
    start = served.service.statistics.reads.read_bytes
    for at in range(0, len(MAPS), 3):  # all reducers take turns
        for reduce in range(reducers):
            fetch(served, reduce, MAPS[at : at + 3])
            assert served.service.merged.kept_bytes <= KEPT_BYTES
    settle(served)
    assert served.service.statistics.reads.read_bytes - start == file.path.stat().st_size
    assert [fetch(served, reduce, MAPS) for reduce in range(reducers)] == before


def test_what_nobody_has_asked_for_lately_gives_way() -> None:
    now = 0.0
    kept = KeptSegments(bytes_max=1600, age_max_s=10, now=lambda: now)

    def read(key: str, length: int) -> bool:
        if not (kept.reserve_partition(key, length) if length > 100 else kept.reserve_run(length, length)):
            return False
        kept.release(key, kept.keep(key, bytes(length), 0, 2))
        return True

    assert [read(key, 400) for key in "abcd"] == [True, True, True, False]  # a quarter is left to runs
    assert [read(key, 100) for key in "efghi"] == [True] * 4 + [False]
    assert not kept.reserve_partition("j", 401) and not kept.reserve_run(101, 101)
    now = 0.5
    sent_from = kept.use("a")
    now = 1.2
    assert not read("d", 400)  # it goes on in runs
    assert read("k", 400) and kept.held_bytes == 1200
    assert (kept.use("a"), kept.use("b"), kept.use("c")) == (sent_from, None, None)
    now = 12.0
    kept.sweep()
    assert kept.held_bytes == 400  # what is sent from
    assert read("d", 400)


def test_a_run_leaves_room_for_those_of_others() -> None:
    kept = KeptSegments(bytes_max=1600, age_max_s=10, now=lambda: 0.0)
    for key in "abc":
        assert kept.reserve_partition(key, 400)
    granted = [kept.reserve_run(100, 10) for _ in range(20)]
    assert granted[0] == 100 and sum(map(bool, granted)) >= 12, "never the whole rest"
    assert all(one >= next_one for one, next_one in pairwise(granted)) and sum(granted) == kept.held_bytes - 1200
    assert kept.held_bytes <= 1600 and not kept.reserve_run(1000, 500), "longer than a run may be"


@pytest.mark.parametrize("stalled", [0, 8, 32])
def test_however_many_take_nothing_others_read_less_than_without_merging(served: Served, stalled: int) -> None:
    length = 40_000
    for map_id in MAPS:
        served.write(map_id, [os.urandom(length) for _ in range(stalled + 4)])
    others = range(stalled, stalled + 4)
    before = [fetch(served, reduce, MAPS) for reduce in others]
    settle(served)
    counts = served.service.statistics.reads
    unmerged, unmerged_bytes = counts.reads, counts.read_bytes
    served.merge("all", MAPS)
    with contextlib.ExitStack() as stack:
        for reduce in range(stalled):
            stack.enter_context(stalled_client(served, MAPS, reduce))
        assert [fetch(served, reduce, MAPS) for reduce in others] == before
        while served.service.statistics.connections > stalled:
            time.sleep(0.001)
        reads, read_bytes = counts.reads - unmerged, counts.read_bytes - unmerged_bytes
    assert unmerged == len(others) * len(MAPS) and counts.fallbacks == 0
    assert reads <= {0: len(others), 32: unmerged}.get(stalled, unmerged / 2)
    assert read_bytes == unmerged_bytes, "nothing is read twice"


@pytest.mark.parametrize("served", [0.3], indirect=True)
def test_readers_that_take_nothing_do_not_make_memory_grow(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nm.shuffle.merged.kept._SENT_S", 60)  # in a second they would be sent to from the file
    length = KEPT_BYTES // 4 // len(MAPS) - 100  # a partition is just short enough to be kept
    for map_id in MAPS:
        served.write(map_id, [os.urandom(length) for _ in range(20)])
    before = [fetch(served, reduce, MAPS) for reduce in range(20)]
    served.merge("all", MAPS)
    partition = (length + 4) * len(MAPS)
    stalled = []
    for reduce in range(20):
        client = stalled_client(served, MAPS, reduce)
        stalled.append(client)
        assert served.service.merged.kept_bytes <= KEPT_BYTES
    assert [fetch(served, reduce, MAPS) for reduce in range(20)] == before
    # those that came first are being sent from still, and there is no room for more
    assert KEPT_BYTES - partition < served.service.merged.kept_bytes <= KEPT_BYTES
    assert served.service.statistics.connections >= len(stalled)
    for client in stalled:
        client.close()
    settle(served)
    deadline = time.monotonic() + 10
    while served.service.merged.kept_bytes and time.monotonic() < deadline:
        time.sleep(0.01)
    assert served.service.merged.kept_bytes == 0


def test_many_reducers_at_once(served: Served) -> None:
    write(served, 40_000)
    before = [fetch(served, reduce, MAPS) for reduce in range(REDUCES)]
    served.merge("one", MAPS[:6])
    served.merge("two", MAPS[6:])
    wrong: list[int] = []

    def ask(number: int) -> None:
        for _ in range(5):
            if fetch(served, number % REDUCES, MAPS) != before[number % REDUCES]:
                wrong.append(number)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_forgotten_jobs_files_are_closed(served: Served) -> None:
    write(served, 40_000)
    file = served.merge("all", MAPS)
    fetch(served, 0, MAPS[:2])
    assert served.service.merged.kept_bytes
    served.service.forget_job(JOB)
    while served.service.merged.memory_bytes:
        time.sleep(0.001)
    links = [str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if os.path.lexists(entry)]
    assert str(file.path) not in links


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 1 << 32))
def test_any_mix_of_merged_and_not(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    rng = random.Random(seed)
    jobs = ShuffleJobs()
    jobs.add(APPLICATION, USER, job_token())
    limits = ShuffleLimits(100, False, 0.4)
    kept = rng.choice([0, 1000, 100_000, 10_000_000])
    served = Served(tmp_path_factory.mktemp("mix"), jobs, limits, 4096, MergedLimits(kept, 5, INDEX_BYTES))
    try:
        maps = MAPS[: rng.randint(1, len(MAPS))]
        for map_id in maps:
            served.write(map_id, [rng.randbytes(rng.choice([0, 10, 300, 17_000, 70_000])) for _ in range(REDUCES)])
        asked = [rng.sample(maps, rng.randint(1, len(maps))) for _ in range(4)]
        before = [fetch(served, reduce, some) for reduce in range(REDUCES) for some in asked]
        for number in range(3):
            file = served.merge(f"m{number}", rng.sample(maps, rng.randint(1, len(maps))))
            if rng.random() < 0.3:
                rng.choice(DAMAGE)(file)
        assert [fetch(served, reduce, some) for reduce in range(REDUCES) for some in asked] == before
    finally:
        served.service.stop()


def test_as_many_ids_as_one_request_may_have_are_read_once(served: Served) -> None:
    maps = [f"attempt_1_0001_m_{number:06d}_0" for number in range(MAX_MAP_IDS)]
    write(served, 200, maps)
    before = fetch(served, 1, maps)
    settle(served)
    unmerged = served.service.statistics.reads.reads
    served.merge("all", maps)
    assert fetch(served, 1, maps) == before
    settle(served)
    reads = served.service.statistics.reads
    assert unmerged == len(maps) and reads.merged_segments == unmerged
    assert reads.merged_reads == 1
    assert served.service.merged.kept_bytes == 0
    response, body = served.get(served.target([*maps[1:], "attempt_1_0001_m_999999_0"], 1))
    assert response.status == 200
    assert [row[0] for row in segments(body)] == [*maps[1:], "attempt_1_0001_m_999999_0"]
    assert segments(body)[-1][1:] == (-1, -1, 1, b"")


def test_a_merged_file_that_the_client_names_is_served_before_the_node_has_looked(served: Served) -> None:
    write(served, 200)
    before = fetch(served, 1, MAPS)
    served.write_merged("news", MAPS)
    settle(served)
    reads = served.service.statistics.reads.reads
    for _ in range(2):
        _, body = served.get(served.target(MAPS, 1, "&merged=news"))
        assert hashlib.sha256(body).hexdigest() == before
    settle(served)
    counts = served.service.statistics.reads
    assert (counts.reads - reads, counts.merged_segments) == (2, 2 * len(MAPS))


@pytest.mark.parametrize("name", ["none", "..", "../riffle/all", "%2e%2e/riffle/all", "a" * 900, "%00", "%ff", "bad"])
def test_names_of_no_merged_file_are_answered_by_the_originals(served: Served, name: str) -> None:
    write(served, 200)
    before = fetch(served, 1, MAPS)
    served.write_merged("all", MAPS)
    truncate(served.write_merged("bad", MAPS))
    for _ in range(2):
        response, body = served.get(served.target(MAPS, 1, f"&merged={name}"))
        assert (response.status, hashlib.sha256(body).hexdigest()) == (200, before)
    settle(served)
    assert served.service.statistics.reads.merged_segments == 0
    response, _ = served.get(served.target(MAPS, 1, "&merged=all").replace(JOB, "job_1_0002"))
    assert response.status == 401


def test_a_foreign_jobs_maps_are_not_found_in_merged_files(served: Served) -> None:
    write(served, 200)
    served.merge("all", MAPS)
    other = ApplicationId(1, 2)
    served.service.jobs.add(other, USER, job_token())
    target = served.target(MAPS, 1).replace(JOB, "job_1_0002")
    response, _ = served.get(target)
    assert response.status == 500
