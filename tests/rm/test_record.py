"""A ResourceManager that writes down what its scheduler is told and decides."""

import gzip
import queue
from pathlib import Path

import pytest

from rm.scheduler.events import MastersDue
from rm.scheduler.limits import SchedulerLimits
from rm.scheduler.recording import replay
from rm.scheduler.view.calculators import AllocationBounds
from rm.store import record_file
from rm.store.record_file import RecordFile
from tests.rm.rm_harness import ask, cluster
from tests.rm.rm_process import start
from tests.rm.rm_queueing import ON, queueing_node
from tests.rm.rm_world import World, queues
from yaqd.model import Resource

SPEC = queues()
LIMITS = SchedulerLimits(AllocationBounds(Resource(1024, 1), Resource(8192, 8)))


def played(path: Path) -> tuple[int, int]:
    """Events and decisions of a record, all as they were."""
    with gzip.open(path, "rt") as file:
        found = replay(file)
    assert found.difference is None
    return found.events, found.decisions


async def test_what_a_daemon_decided_is_decided_again(tmp_path: Path) -> None:
    path = tmp_path / "record.gz"
    async with cluster({**ON, "yaq.rm.scheduler.record": str(path)}) as rm:
        node = await queueing_node(rm)
        _, master = await rm.running(node)
        response = await master.allocate(ask(9))
        assert len(response.allocated_containers) == 6
        decided = rm.manager.scheduler.log.count
    events, decisions = played(path)
    assert decisions == decided >= 8 and events > 5


@pytest.mark.slow
def test_a_file_that_cannot_be_made_is_refused_with_its_key(tmp_path: Path) -> None:
    process = start(yaq__rm__scheduler__record=str(tmp_path / "nowhere" / "record.gz"))
    _, stderr = process.communicate(timeout=20)
    assert process.returncode == 2
    assert "yaq.rm.scheduler.record" in stderr and "No such file or directory" in stderr
    assert "Traceback" not in stderr


def test_who_cannot_keep_up_records_no_more_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    record = RecordFile(tmp_path / "record.gz", SPEC, LIMITS)
    world = World(SPEC, bounds=LIMITS.bounds)
    world.now = 1.0
    record.note(1.0, MastersDue(), world.tell(MastersDue()))

    def full(line: str) -> None:
        raise queue.Full

    with monkeypatch.context() as patched:
        patched.setattr(record._lines, "put_nowait", full)
        record.note(2.0, MastersDue(), [])
    record.note(3.0, MastersDue(), [])
    record.close()
    assert f"{record_file._LINES_MAX} lines wait to be written" in caplog.text
    assert played(tmp_path / "record.gz") == (1, 0)


def test_a_full_disk_ends_the_record_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    record = RecordFile(Path("/dev/full"), SPEC, LIMITS)
    record.note(1.0, MastersDue(), [])
    record.close()
    assert "No space left on device" in caplog.text
