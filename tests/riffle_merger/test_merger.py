"""The merger as one object: its queue under load, cancelling, and answers that are remembered."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from riffle_merger.merger import merger as module
from riffle_merger.merger.errors import Cancelled, MergeError, NotMergeable
from riffle_merger.merger.merge import Merged, MergeOrder
from riffle_merger.merger.merger import Merger, MergerSettings
from tests.riffle_merger.map_outputs import write_output

KB = 1 << 10
SETTINGS = MergerSettings(64 * KB, running_max=2, waiting_max=100, buffer_bytes=8 * KB)


@pytest.fixture
async def merger() -> AsyncIterator[Merger]:
    merger = Merger(SETTINGS)
    yield merger
    await merger.close()
    assert merger.queue.used_bytes == merger.pool.used == merger.queue.waiting == 0


async def test_a_hundred_requests_of_three_jobs_stay_in_the_budget(merger: Merger, tmp_path: Path) -> None:
    jobs = [f"job_{number}" for number in range(3)]
    ends: list[str] = []
    for job in jobs:
        merger.add_job(job, [tmp_path / job])
        for number in range(34):
            write_output(tmp_path / job, f"m{number}", [os.urandom(2000) for _ in range(4)])

    async def one(job: str, number: int) -> None:
        done = await merger.merge(job, str(number), [f"m{number}", f"m{(number + 1) % 34}"])
        assert isinstance(done.merged, Merged)
        assert done.merged.bytes == done.merged.path.stat().st_size == 2 * 4 * 2004
        ends.append(job)

    await asyncio.gather(*(one(job, number) for job in jobs for number in range(34)))
    assert merger.queue.used_bytes_max <= SETTINGS.budget_bytes
    assert merger.pool.used_max * SETTINGS.buffer_bytes <= SETTINGS.budget_bytes
    assert {job: statistics.merges for job, statistics in merger.jobs().items()} == dict.fromkeys(jobs, 34)
    # nobody is served while the others wait: after half of all ends each job has about a third of them
    assert all(10 <= ends[:51].count(job) <= 24 for job in jobs)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Merges begin when it is set; until then they hold their place."""
    event = threading.Event()
    real = module.merge  # type: ignore[attr-defined]

    def gated(order: MergeOrder, *arguments: object, **named: object) -> Merged:
        assert event.wait(20)
        return real(order, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "merge", gated)
    return event


async def test_cancelled_merges_end_wherever_they_are(merger: Merger, tmp_path: Path, gate: threading.Event) -> None:
    write_output(tmp_path, "a", [b"a" * 1000])
    merger.add_job("job", [tmp_path])
    calls = [asyncio.create_task(merger.merge("job", str(number), ["a"])) for number in range(5)]
    async with asyncio.timeout(20):
        while merger.queue.running + merger.queue.waiting < 5:  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert (merger.queue.running, merger.queue.waiting) == (2, 3)
    # which ones run is the disks' affair: surveys do not end in order
    running = {int(item.merge_id) for item in merger._running}
    first, *others_running = sorted(running)
    waits, *others_waiting = sorted(set(range(5)) - running)
    assert merger.cancel("job", [str(first), str(waits), "unknown"]) == 2
    with pytest.raises(Cancelled):
        await calls[waits]
    assert merger.cancel("nobody") == 0
    gate.set()
    with pytest.raises(Cancelled):
        await calls[first]
    assert {(await calls[number]).merged.bytes for number in (*others_running, *others_waiting)} == {1004}
    assert merger.cancel("job") == 0
    assert merger.statistics.cancelled == 2
    assert len(list((tmp_path / "riffle").iterdir())) == 6


async def test_a_forgotten_job_leaves_nothing_running(merger: Merger, tmp_path: Path, gate: threading.Event) -> None:
    write_output(tmp_path, "a", [b"a" * 1000])
    merger.add_job("job", [tmp_path])
    calls = [asyncio.create_task(merger.merge("job", str(number), ["a"])) for number in range(5)]
    await asyncio.sleep(0)
    merger.forget_job("job")
    gate.set()
    for call in calls:
        with pytest.raises(Cancelled):
            await call
    with pytest.raises(NotMergeable, match="not known"):
        await merger.merge("job", "9", ["a"])
    assert merger.jobs() == {}


async def test_too_many_wait_and_failures_may_be_tried_again(
    merger: Merger, tmp_path: Path, gate: threading.Event
) -> None:
    write_output(tmp_path, "a", [b"a" * 1000])
    merger.add_job("job", [tmp_path])
    with pytest.raises(NotMergeable, match="no output of b"):
        await merger.merge("job", "1", ["a", "b"])
    write_output(tmp_path, "b", [b"b" * 1000])
    calls = [asyncio.create_task(merger.merge("job", str(number), ["a", "b"])) for number in range(1, 101)]
    await asyncio.sleep(0)
    with pytest.raises(NotMergeable, match="100 merges of job wait"):
        await merger.merge("job", "more", ["a"])
    gate.set()
    await asyncio.gather(*calls)
    first = await merger.merge("job", "1", ["a", "b"])
    assert first is await calls[0]
    assert merger.statistics.failed == 1


async def test_a_fault_of_ours_ends_one_merge(merger: Merger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_output(tmp_path, "a", [b"a"])
    merger.add_job("job", [tmp_path])

    def broken(*_: object, **__: object) -> Merged:
        raise ZeroDivisionError("ours")

    with monkeypatch.context() as patched:
        patched.setattr(module, "merge", broken)
        with pytest.raises(MergeError, match="ZeroDivisionError"):
            await merger.merge("job", "1", ["a"])
    assert (await merger.merge("job", "1", ["a"])).merged.bytes == 5


async def test_indexes_count_against_the_budget(merger: Merger, tmp_path: Path) -> None:
    write_output(tmp_path, "wide", [None] * 400)  # 9.6 KB of index, four times over
    merger.add_job("job", [tmp_path])
    with pytest.raises(NotMergeable, match="too large for the merger's memory"):
        await merger.merge("job", "1", ["wide"])


async def test_no_merge_takes_buffers_that_one_beside_it_needs(tmp_path: Path, gate: threading.Event) -> None:
    merger = Merger(MergerSettings(160 << 20, running_max=2))
    names = [f"m{number}" for number in range(8)]
    for name in names:
        write_output(tmp_path, name, [b"a"])
        os.truncate(tmp_path / "output" / name / "file.out", 64 << 20)  # a hole
    merger.add_job("job", [tmp_path])
    calls = [asyncio.create_task(merger.merge("job", str(number), names)) for number in range(3)]
    async with asyncio.timeout(20):
        while merger.queue.running + merger.queue.waiting < 3:  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert (merger.queue.running, merger.queue.waiting) == (2, 1)
    # of 40 buffers 13 would do, and 37 be of use; half of the budget holds 20, but for the indexes
    assert [item.buffers for item in merger._running] == [19, 19]
    assert merger.queue.used_bytes <= 160 << 20
    merger.cancel("job")
    gate.set()
    await asyncio.gather(*calls, return_exceptions=True)
    await merger.close()


async def test_a_merge_that_does_not_move_is_noticed(tmp_path: Path, gate: threading.Event) -> None:
    now = 100.0
    merger = Merger(SETTINGS, clock=lambda: now)
    write_output(tmp_path, "a", [b"a"])
    merger.add_job("job", [tmp_path])
    call = asyncio.create_task(merger.merge("job", "1", ["a"]))
    async with asyncio.timeout(20):
        while not merger.queue.running:  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert merger.stalled_s == 0
    now = 130.0
    assert merger.stalled_s == 30
    gate.set()
    await call
    assert merger.stalled_s == 0
    await merger.close()
