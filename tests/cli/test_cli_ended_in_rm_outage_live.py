"""A job that ends while its ResourceManager is away: the next attempt tells how, and does nothing else."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tez_adapter.history import read_history
from yaqd.cli.local.processes import ProcessIdentity, wait_for_end
from yaqd.config import Configuration
from yaqd.model import ApplicationId

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

JOB = """\
import os, time
from yaqd.mapreduce import Job


class J(Job):
    reduces = 0

    def map(self, key, value):
        open("FLAG.runs", "a").write("x")
        while not os.path.exists("FLAG"):
            time.sleep(0.05)
        BODY
"""


def _yaq(*words: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "yaqd.cli", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "c"
    room = ("yarn.nodemanager.resource.memory-mb=16384", "yarn.nodemanager.resource.cpu-vcores=16")
    started = _yaq("cluster", "start", "--dir", directory, *(word for s in room for word in ("-D", s)))
    assert started.returncode == 0, started.stderr
    yield directory
    assert _yaq("cluster", "stop", "--dir", directory).returncode == 0


def _kill_resource_manager(cluster: Path) -> None:
    found = json.loads(_yaq("cluster", "status", "--dir", cluster, "--json").stdout)
    (pid,) = (daemon["pid"] for daemon in found["daemons"] if daemon["name"] == "resourcemanager")
    dead = ProcessIdentity.of(pid)
    assert dead is not None
    psutil.Process(pid).kill()
    assert wait_for_end([dead], 5.0) == []


def _master(application: str) -> ProcessIdentity:
    """The process of the application's master, by its container's folder."""
    for process in psutil.process_iter():
        try:
            folder = process.cwd()
        except psutil.Error:
            continue
        if application in folder and folder.endswith("_000001"):
            found = ProcessIdentity.of(process.pid)
            assert found is not None
            return found
    raise AssertionError(f"no master of {application}")


class Submitted:
    """`yaq mr submit`, waiting, of a job whose one map waits for a flag and then runs the body."""

    def __init__(self, cluster: Path, folder: Path, body: str) -> None:
        folder.mkdir()
        self.flag, self.runs, self.out = folder / "flag", folder / "flag.runs", folder / "out"
        (folder / "in.txt").write_text("a\n")
        (folder / "job.py").write_text(JOB.replace("FLAG", str(self.flag)).replace("BODY", body))
        words = ("mr", "submit", "--conf", cluster / "conf", "-D", "mapreduce.map.maxattempts=1", folder / "job.py")
        files = ("--input", folder / "in.txt", "--output", self.out)
        self._waiting = subprocess.Popen(
            [sys.executable, "-m", "yaqd.cli", *map(str, words + files)], stderr=subprocess.PIPE, text=True
        )
        assert self._waiting.stderr is not None
        self.application = next(w for w in self._waiting.stderr.readline().split() if w.startswith("application_"))

    def wait(self) -> tuple[int, str]:
        _, said = self._waiting.communicate(timeout=90)
        return self._waiting.returncode, said


def _until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("is_gone", [True, False], ids=["masters gone", "masters trying"])
def test_the_next_attempt_tells_how_it_ended(cluster: Path, tmp_path: Path, is_gone: bool) -> None:
    good = Submitted(cluster, tmp_path / "good", "yield None, value")
    bad = Submitted(cluster, tmp_path / "bad", "raise ValueError('boom')")
    _until(lambda: good.runs.exists() and bad.runs.exists())
    masters = [_master(job.application) for job in (good, bad)]
    _kill_resource_manager(cluster)
    good.flag.touch()
    bad.flag.touch()
    _until(lambda: len(list(cluster.glob("staging/*/.staging/*/job.end.json"))) == 2)
    if is_gone:
        assert wait_for_end(masters, 60.0) == []  # they try for a while to tell it
    stands = (good.out / "_SUCCESS").stat()
    assert not bad.out.exists()

    assert _yaq("cluster", "start", "--dir", cluster).returncode == 0
    assert (said := good.wait())[0] == 0 and f"{good.application} SUCCEEDED" in said[1], said
    assert (said := bad.wait())[0] == 1 and "ValueError: boom" in said[1], said
    # nothing ran again, and the output is the first attempt's
    assert (good.runs.read_text(), bad.runs.read_text()) == ("x", "x")
    assert (good.out / "_SUCCESS").stat() == stands
    assert (good.out / "part-m-00000").read_text() == "a\n"
    assert not list(cluster.glob("staging/*/.staging/*"))

    conf = Configuration.load(cluster / "conf")
    for job, state in ((good, "SUCCEEDED"), (bad, "FAILED")):
        report = json.loads(_yaq("app", "status", "--conf", cluster / "conf", "--json", job.application).stdout)
        assert state in json.dumps(report)
        history = read_history(conf, ApplicationId.parse(job.application))
        assert (history.end["state"], len(history.attempts)) == (state, 1)
