"""The records of an exploration on storage: what was written is read, damage ends the log, full disks make wait."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.tez_exploration.exploration_manager import TERMS, Order, World
from tez_adapter.exploration.log import ExplorationLog, OtherVersion, Record
from tez_adapter.exploration.store import Commits, TrialCheckpoints, read_records
from yaqd.config import Configuration
from yaqd.storage import StorageError, get_filesystem
from yaqd.storage.errors import CorruptFile, StorageFull

CONF = Configuration.load(None, environ={})


def log_in(folder: Path) -> ExplorationLog:
    return ExplorationLog(get_filesystem(f"file://{folder}", CONF), f"file://{folder}")


def records(first: int, many: int) -> list[dict[str, Any]]:
    return [{"do": "report", "number": number, "value": number / 3} for number in range(first, first + many)]


@settings(max_examples=30, deadline=None)
@given(sizes=st.lists(st.integers(1, 5), min_size=1, max_size=150))
def test_what_was_written_is_read_however_it_was_cut(
    tmp_path_factory: pytest.TempPathFactory, sizes: Sequence[int]
) -> None:
    folder = tmp_path_factory.mktemp("log")
    written = log_in(folder)
    count = 0
    for size in sizes:
        written.append(records(count, size))
        count += size
    read, notes = log_in(folder).read()
    assert read == records(0, count) and notes == ()
    assert len(list(folder.iterdir())) < 64 + 3


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data(), sizes=st.lists(st.integers(1, 5), min_size=1, max_size=80))
def test_damage_ends_the_log_and_it_goes_on_from_there(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, sizes: Sequence[int]
) -> None:
    folder = tmp_path_factory.mktemp("log")
    written = log_in(folder)
    count = 0
    for size in sizes:
        written.append(records(count, size))
        count += size
    victim = data.draw(st.sampled_from(sorted(folder.iterdir())))
    whole = victim.read_bytes()
    if data.draw(st.booleans()):
        victim.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 2))])
    else:
        place = data.draw(st.integers(0, len(whole) - 1))
        victim.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
    again = log_in(folder)
    kept, notes = again.read()
    assert kept == records(0, len(kept)) and len(kept) < count and len(notes) == 1
    again.repair(kept)
    again.append([{"do": "more"}])
    read, notes = log_in(folder).read()
    assert read == [*kept, {"do": "more"}] and notes == ()


def test_a_piece_that_is_missing_ends_the_log(tmp_path: Path) -> None:
    written = log_in(tmp_path)
    for first in range(4):
        written.append(records(first, 1))
    (tmp_path / "log-000000000002-000000000003").unlink()
    read, notes = log_in(tmp_path).read()
    assert read == records(0, 2) and "records 2 to 2 are missing" in notes[0]


def test_another_version_is_refused(tmp_path: Path) -> None:
    import json
    import zlib

    body = json.dumps({"exploration": True, "version": 2, "first": 0}).encode()
    (tmp_path / "log-000000000000-000000000001").write_bytes(b"%08x %b\n" % (zlib.crc32(body), body))
    with pytest.raises(OtherVersion, match="version 2; this program reads 1"):
        log_in(tmp_path).read()


def test_what_a_writer_left_when_it_was_killed_goes(tmp_path: Path) -> None:
    written = log_in(tmp_path)
    written.append(records(0, 2))
    (tmp_path / ".log-000000000002-000000000003.abc.tmp").write_bytes(b"x")
    again = log_in(tmp_path)
    again.repair(again.read()[0])
    assert [path.name for path in tmp_path.iterdir()] == ["log-000000000000-000000000002"]


class FullLog(ExplorationLog):
    """Has no room for a while."""

    def __init__(self, fails: int) -> None:
        self.fails, self.kept = fails, list[Record]()
        self.writes = 0

    def append(self, records: Sequence[Record]) -> None:
        if self.fails:
            self.fails -= 1
            raise StorageFull("no space left", path="/x")
        self.writes += 1
        self.kept += records


async def test_a_full_disk_makes_reports_wait_and_is_said_once() -> None:
    full, lines = FullLog(3), list[str]()
    commits = Commits(full, note=lines.append, retry_s=0.001)
    await asyncio.gather(*(commits.append(records(number, 1)) for number in range(5)))
    assert full.kept == records(0, 5) and len(lines) == 1 and "no space left" in lines[0]
    await commits.end()


async def test_reports_that_come_together_share_a_write() -> None:
    full = FullLog(0)
    commits = Commits(full, note=lambda line: None)
    await asyncio.gather(*(commits.append(records(number, 1)) for number in range(100)))
    assert full.kept == records(0, 100) and full.writes <= 3


async def test_the_end_of_a_job_does_not_wait_for_room() -> None:
    commits = Commits(FullLog(10**9), note=lambda line: None, retry_s=0.001)
    never = commits.append(records(0, 1))
    await commits.end()
    assert not never.done()


def checkpoints_in(folder: Path, *formers: str) -> TrialCheckpoints:
    (folder / "trials").mkdir(parents=True, exist_ok=True)
    return TrialCheckpoints(CONF, f"file://{folder}/trials", formers)


def test_checkpoints_are_whole_or_refused(tmp_path: Path) -> None:
    kept = checkpoints_in(tmp_path)
    kept.save(3, 7, b"state" * 1000)
    assert kept.load(3, 7) == b"state" * 1000
    path = tmp_path / "trials/trial-000003-7"
    whole = path.read_bytes()
    for data in (whole[:-1], whole[:100], b"", whole.replace(b"YAQCKPT1", b"YAQCKPT2")):
        path.write_bytes(data)
        with pytest.raises(CorruptFile):
            kept.load(3, 7)
    path.write_bytes(whole)
    path.rename(path.with_name("trial-000004-7"))
    with pytest.raises(CorruptFile, match="something else"):
        kept.load(4, 7)
    with pytest.raises(StorageError):
        kept.load(3, 7)


def test_a_former_jobs_checkpoints_are_read_and_stay(tmp_path: Path) -> None:
    checkpoints_in(tmp_path / "a").save(1, 5, b"former")
    checkpoints_in(tmp_path / "b").save(1, 4, b"between")
    kept = checkpoints_in(tmp_path / "c", f"file://{tmp_path}/b/trials", f"file://{tmp_path}/a/trials")
    assert kept.load(1, 5) == b"former" and kept.load(1, 4) == b"between"
    kept.save(1, 6, b"own")
    kept.delete(1, 5)
    assert checkpoints_in(tmp_path / "a").load(1, 5) == b"former" and kept.load(1, 6) == b"own"


def test_what_no_record_names_goes(tmp_path: Path) -> None:
    kept = checkpoints_in(tmp_path)
    for number, iteration in ((1, 5), (1, 6), (2, 5)):
        kept.save(number, iteration, b"x")
    (tmp_path / "trials/.trial-000003-1.abc.tmp").touch()
    kept.keep_only([(1, 5), (2, 5)])
    assert sorted(path.name for path in (tmp_path / "trials").iterdir()) == ["trial-000001-5", "trial-000002-5"]


# ---- what comes at once


async def test_a_report_that_is_sent_again_is_not_answered_before_the_first_is_stored(
    made: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = made()
    slot = world.container(0)
    trial = await world.next_trial(slot)
    await world.begin(slot, trial)
    append, has_room = ExplorationLog.append, threading.Event()

    def late(log: ExplorationLog, records: Sequence[Record]) -> None:
        assert has_room.wait(timeout=20)
        append(log, records)

    monkeypatch.setattr(ExplorationLog, "append", late)
    first = asyncio.ensure_future(world.report(slot, trial, 1, 0.25))
    # a slot whose connection breaks asks again
    again = asyncio.ensure_future(world.report(slot, trial, 1, 0.25))
    done, _ = await asyncio.wait((first, again), timeout=0.2)
    assert not done
    has_room.set()
    assert (await first).order == (await again).order == Order.SUSPEND
    (report,) = [record for record in read_records(world.conf, world.folder) if record["do"] == "report"]
    assert report["value"] == 0.25


async def test_checkpoints_that_come_together_keep_to_their_budget(made: Callable[..., World]) -> None:
    world = made(replace(TERMS, slots=3, trials=8), **{"yaq.ml.explore.checkpoint.bytes-max": "2500"})
    at = []
    for slot in map(world.container, range(3)):
        at.append((slot, await world.next_trial(slot)))
        await world.begin(*at[-1])
    for place, (slot, trial) in enumerate(at):
        assert (await world.report(slot, trial, 1, 0.1 * (place + 1))).order == Order.SUSPEND
    assert all(await asyncio.gather(*(world.keep(slot, trial, 1, b"x" * 1000) for slot, trial in at)))
    kept = {trial.number for trial in (await world.status()).trials if trial.HasField("checkpoint_iteration")}
    assert kept == {1, 2} and sum(path.stat().st_size for path in world.checkpoints()) <= 2500
