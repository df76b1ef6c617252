"""The process that forks trials: groups that stop, go on and end as one, whatever their programs do."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from tests.tez_exploration.exploration_jobs import alive
from tez_adapter.exploration.nursery import Nursery
from tez_adapter.exploration.slot import _Slot
from tez_adapter.tasks.forked import adopt_orphans, end_children
from tez_adapter.tasks.shared_imports import SharedImports
from tez_adapter.tasks.shuffle_input import NoLongerWanted
from yaqd.config import Configuration
from yaqd.proto import job_exploration_pb2 as pb
from yaqd.proto import job_pb2

SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]


class Trials:
    """What trials of this test do, by number: they write who they are into a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, number: int, lap: int) -> str:
        if number in (1, 2, 3):
            child = subprocess.Popen(SLEEPER)
            self.say(number, os.getpid(), child.pid)
        else:
            self.say(number, os.getpid())
        if number == 0:
            return "" if lap == 1 else "it failed, and says so: äöü"
        if number == 1:
            time.sleep(600)
        elif number == 2:
            os.killpg(0, signal.SIGSTOP)
            self.say(22, os.getpid())
        elif number == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        elif number == 4:
            os._exit(7)
        elif number == 5 and os.fork() == 0:
            return "a copy that comes back"
        return ""

    def say(self, number: int, *pids: int) -> None:
        unfinished = self.folder / f".{number}"
        unfinished.write_text(" ".join(map(str, pids)))
        unfinished.rename(self.folder / str(number))

    def pids(self, number: int) -> list[int]:
        deadline = time.monotonic() + 20
        while not (path := self.folder / str(number)).exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return [int(word) for word in path.read_text().split()]


@pytest.fixture
def trials(tmp_path: Path) -> Trials:
    return Trials(tmp_path)


@pytest.fixture
def nursery(trials: Trials, tmp_path: Path) -> Iterator[Nursery]:
    def tidy(number: int, lap: int) -> None:
        (tmp_path / f"tidied.{number}.{lap}").touch()

    made = Nursery(trials, SharedImports(is_on=False), tidy)
    yield made
    made.close()


def heard(nursery: Nursery) -> dict[str, Any]:
    message = nursery.receive()
    assert message is not None
    return message


def gone(pids: list[int]) -> bool:
    return _within(lambda: not alive(pids))


def _within(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 20
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def test_ends_are_told_with_what_failed(nursery: Nursery, trials: Trials, tmp_path: Path) -> None:
    nursery.begin(0, 1)
    assert heard(nursery) == {"is": "ended", "number": 0, "lap": 1, "error": "", "is_killed": False}
    nursery.begin(0, 2)
    assert heard(nursery)["error"] == "it failed, and says so: äöü"
    nursery.begin(3, 1)
    message = heard(nursery)
    assert message["is_killed"] and message["error"] == "its process was killed by signal 9"
    assert gone(trials.pids(3)), "what it has started ends with it"
    nursery.begin(4, 1)
    message = heard(nursery)
    assert message["is_killed"] and "exit status 7" in message["error"]
    nursery.begin(5, 1)
    assert heard(nursery)["error"] == ""
    assert _within(lambda: (tmp_path / "tidied.5.1").exists())
    assert (tmp_path / "tidied.0.1").exists() and (tmp_path / "tidied.3.1").exists()


def test_a_group_stops_and_goes_on_as_one(nursery: Nursery, trials: Trials, tmp_path: Path) -> None:
    nursery.begin(2, 1)
    message = heard(nursery)
    assert (message["is"], message["number"]) == ("stopped", 2) and message["memory_mb"] > 5
    assert (message["image_mb"], message["error"]) == (0, "")
    own, child = trials.pids(2)
    # the child, as soon as it would run
    assert _within(lambda: _state(own) == _state(child) == "T")
    assert not (tmp_path / "22").exists()
    nursery.signal(2, 1, signal.SIGCONT)
    assert heard(nursery)["is"] == "ended" and trials.pids(22) == [own]
    assert gone([own, child])


def test_a_stopped_group_can_be_killed_and_signals_for_another_lap_are_not_its_own(
    nursery: Nursery, trials: Trials
) -> None:
    nursery.begin(2, 3)
    assert heard(nursery)["is"] == "stopped"
    nursery.signal(2, 2, signal.SIGKILL)
    nursery.begin(0, 1)
    assert heard(nursery)["number"] == 0, "it was not killed"
    nursery.signal(2, 3, signal.SIGKILL)
    assert heard(nursery)["is_killed"]
    assert gone(trials.pids(2))


@pytest.mark.parametrize("number", (1, 2))
def test_trials_end_with_the_nursery(trials: Trials, number: int) -> None:
    nursery = Nursery(trials, SharedImports(is_on=False), lambda number, lap: None)
    nursery.begin(number, 1)
    pids = trials.pids(number)
    if number == 2:
        assert heard(nursery)["is"] == "stopped"
    nursery.close()
    assert gone([*pids, nursery.pid])


@pytest.mark.parametrize("number", (1, 2))
def test_what_a_killed_nursery_leaves_ends_with_its_slot(trials: Trials, number: int) -> None:
    """Stopped processes too, of which the kernel ends the group's leader alone."""
    slot = os.fork()
    if slot == 0:
        adopt_orphans()
        nursery = Nursery(trials, SharedImports(is_on=False), lambda number, lap: None)
        nursery.begin(number, 1)
        trials.pids(number)
        if number == 2:
            heard(nursery)
        os.kill(nursery.pid, signal.SIGKILL)
        while nursery.receive() is not None:
            pass
        end_children(0.0)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(slot, 0)[1]) == 0
    assert not alive(trials.pids(number))


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_slot_that_leaves_ends_in_its_own_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its trials have ended because it leaves: the thread that hears of them must not end the process."""
    ended: list[int] = []
    monkeypatch.setattr("tez_adapter.exploration.slot.os._exit", ended.append)
    monkeypatch.setattr("tez_adapter.exploration.slot.end_children", lambda within_s: None)
    nursery, at, attempt = MagicMock(), MagicMock(), MagicMock(ref=job_pb2.AttemptRef(vertex=0, index=0, number=0))
    attempt.conf = Configuration.load(None, overrides={"yaq.ml.explore.images-mb": "0"}, environ={})
    is_closed = threading.Event()
    nursery.receive.side_effect = lambda: is_closed.wait(20) and None
    at.client.call.return_value = pb.SlotTurnResponse(leave=True)
    with pytest.raises(NoLongerWanted):
        _Slot(attempt, at, nursery).run()
    is_closed.set()
    for thread in threading.enumerate():
        if thread.name == "trials":
            thread.join(20)
    assert not ended
