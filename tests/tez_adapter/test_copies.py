"""Processes that a job forks by itself, and other ways in which its code ends: the task's result is its own."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tez_adapter.client.local import run_local
from tez_adapter.client.submit import submit_mapreduce
from yaqd.config import Configuration
from yaqd.mapreduce import Job, JobError

CONF = Configuration.load(environ={})
WAYS: dict[str, tuple[Callable[[], object], int]] = {
    "returns": (lambda: None, 1),
    "exits": (lambda: sys.exit(3), 3),
    "exits-well": (sys.exit, 0),
    "raises": (lambda: [].pop(), 1),
    "interrupts": (lambda: _raise(KeyboardInterrupt()), 1),
}


def _raise(error: BaseException) -> None:
    raise error


def forked(way: str) -> int | None:
    """The exit status of the copy that goes this way; None in the copy that returns."""
    pid = os.fork()
    if pid == 0:
        WAYS[way][0]()
        return None
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class Forks(Job):
    where, way = "map", ""

    def setup(self) -> None:
        if self.where == "setup" and self.task.phase == "reduce":
            self.status = forked(self.way)

    def map(self, key: int, value: str) -> Iterator[tuple[str, Any]]:
        yield value, forked(self.way) if self.where == "map" else 0

    def reduce(self, key: str, values: Iterator[Any]) -> Iterator[tuple[str, Any]]:
        status = forked(self.way) if self.where == "reduce" else None
        status = self.status if self.where == "setup" else status
        yield key, [*values] if self.where == "map" else status


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("where", "reduces"), [("map", 0), ("map", 1), ("reduce", 1), ("setup", 1)])
def test_a_process_that_the_job_forked_ends_as_itself(where: str, reduces: int, way: str, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a\nb\n")
    job = type("ForksThere", (Forks,), {"where": where, "way": way})
    run_local(job, [f"{tmp_path}/in"], f"{tmp_path}/out", CONF, reduces)
    status = WAYS[way][1]
    shown = f"[{status}]" if where == "map" and reduces else status
    lines = [part.read_text() for part in sorted((tmp_path / "out").glob("part-*"))]
    assert lines == [f"a\t{shown}\nb\t{shown}\n"]


class Ends(Job):
    how: Callable[[], Any] = staticmethod(lambda: None)

    def map(self, key: int, value: str) -> Iterator[tuple[str, int]]:
        self.how()
        yield value, 1


def _imports() -> None:
    import no_such_module_of_the_job  # type: ignore[import-not-found]  # noqa: F401


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (lambda: _raise(KeyboardInterrupt()), "KeyboardInterrupt: the job's code raised it"),
        (_imports, "No module named 'no_such_module_of_the_job'; tasks have .* send it with --py-files"),
    ],
    ids=["interrupt", "import"],
)
def test_what_a_map_raises_is_told_as_what_it_is(how: Callable[[], Any], said: str, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a\n")
    job = type("EndsSo", (Ends,), {"how": staticmethod(how)})
    with pytest.raises(JobError, match=said) as caught:
        run_local(job, [f"{tmp_path}/in"], f"{tmp_path}/out", CONF)
    assert "os._exit" not in str(caught.value)
    assert "in how" in caught.value.detail or "in _" in caught.value.detail


TERMINATES = """
import os, signal
from yaqd.mapreduce import Job
class Terminates(Job):
    def map(self, key, value):
        os.kill(os.getpid(), signal.SIGTERM)
        yield value, 1
"""


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_sigterm_that_a_task_sends_itself_fails_it(
    running: Callable[..., AbstractContextManager[Configuration]], tmp_path: Path
) -> None:
    (tmp_path / "in").write_text("a\n")
    (tmp_path / "job.py").write_text(TERMINATES)
    with running(tmp_path / "c", 1) as site:
        conf = site.with_overrides({"mapreduce.map.maxattempts": "1"})
        job = submit_mapreduce(conf, f"{tmp_path}/job.py", inputs=[f"{tmp_path}/in"], output=f"{tmp_path}/out")
        result = job.wait(timeout_s=60)
        job.close()
    assert result.state == "FAILED"
    assert "the task's process was killed by signal 15 (SIGTERM)" in result.diagnostics
