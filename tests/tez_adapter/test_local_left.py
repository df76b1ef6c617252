"""What tasks of a local job leave running ends with the task, as on a node."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tez_adapter.client.local import run_local
from yaqd.config import Configuration
from yaqd.mapreduce import Job, JobError, Param


class Starts(Job):
    """Each task starts a shell that runs the command, and goes on once that has made the file `begun`."""

    command = Param(str)
    fails = Param(bool, default=False)

    def setup(self) -> None:
        Path(os.environ["ALIVE"], f"{self.task.phase}-{self.task.index}").touch()
        subprocess.Popen(["sh", "-c", self.command], start_new_session=True)
        while not Path(os.environ["ALIVE"], "begun").exists():
            time.sleep(0.005)

    def map(self, key: int, value: str) -> Iterator[tuple[str, int]]:
        if self.fails:
            raise ValueError(value)
        yield value, len(_with_mark())


@pytest.fixture(autouse=True)
def _alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("ALIVE", str(tmp_path))
    yield
    for pid in _with_mark():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _with_mark() -> list[int]:
    """Processes that were begun with this test's environment, besides those of the job itself."""
    mark, found = f"ALIVE={os.environ['ALIVE']}\0".encode(), []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            pass
    return found


@pytest.mark.slow
@pytest.mark.parametrize("fails", [False, True], ids=["done", "fails"])
@pytest.mark.parametrize(
    "command",
    [
        "touch $ALIVE/begun; sleep 1234",
        "setsid sh -c 'sleep 1234 & touch $ALIVE/begun; sleep 1234' & sleep 1234",
        "trap '' TERM; touch $ALIVE/begun; while :; do sleep 1234; done",
        "trap 'touch $ALIVE/told; exit' TERM; touch $ALIVE/begun; while :; do sleep 0.01; done",
    ],
    ids=["one", "tree", "deaf", "polite"],
)
def test_what_a_task_has_started_ends_with_it(tmp_path: Path, command: str, fails: bool) -> None:
    (tmp_path / "in").write_text("a\n")
    conf = Configuration.load(environ={})
    began = time.monotonic()

    def run() -> None:
        params = {"command": command, "fails": fails}
        run_local(Starts, [str(tmp_path / "in")], str(tmp_path / "out"), conf, 1, params)

    if fails:
        with pytest.raises(JobError, match="ValueError: a"):
            run()
    else:
        run()
        assert (tmp_path / "reduce-0").exists()
        assert int((tmp_path / "out" / "part-r-00000").read_text().split("\t")[1]) > 0, "they were there meanwhile"
    assert _with_mark() == []
    assert time.monotonic() - began < 10
    assert (tmp_path / "told").exists() is ("told" in command)
