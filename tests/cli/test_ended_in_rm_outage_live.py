"""A job that ends while its ResourceManager is away: the next attempt tells how, and does nothing else."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.cli.cli_cluster import kill_resource_manager, started, until, waiting_yaq, yaq
from tez_adapter.history import read_history
from yaqd.cli.local.processes import ProcessIdentity, wait_for_end
from yaqd.config import Configuration
from yaqd.model import ApplicationId

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

JOB = """\
import os
from yaqd.mapreduce import Job


class J(Job):
    reduces = 0

    def map(self, key, value):
        again = os.path.exists("FLAG.runs")
        open("FLAG.runs", "a").write("x")
        if not again:
            open("FLAG.began", "w").close()
            open("FLAG").close()
        BODY
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Path]:
    room = ("yarn.nodemanager.resource.memory-mb=16384", "yarn.nodemanager.resource.cpu-vcores=16")
    with started(tmp_path / "c", *room) as directory:
        yield directory


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
    """`yaq mr submit`, waiting, of a job whose one map, as soon as it is let, runs the body."""

    def __init__(self, cluster: Path, folder: Path, body: str) -> None:
        folder.mkdir()
        self._flag, self._began = folder / "flag", folder / "flag.began"
        self.runs, self.out = folder / "flag.runs", folder / "out"
        os.mkfifo(self._flag)
        os.mkfifo(self._began)
        (folder / "in.txt").write_text("a\n")
        (folder / "job.py").write_text(JOB.replace("FLAG", str(self._flag)).replace("BODY", body))
        words = ("mr", "submit", "--conf", cluster / "conf", "-D", "mapreduce.map.maxattempts=1", folder / "job.py")
        files = ("--input", folder / "in.txt", "--output", self.out)
        self._waiting, said = waiting_yaq(*words, *files)
        self.application = next(word for word in said.split() if word.startswith("application_"))

    def until_it_runs(self) -> None:
        self._began.open().close()

    def let_go_on(self) -> None:
        self._flag.open("w").close()

    def wait(self) -> tuple[int, str]:
        _, said = self._waiting.communicate(timeout=90)
        return self._waiting.returncode, said


@pytest.mark.parametrize("is_gone", [True, False], ids=["masters gone", "masters trying"])
def test_the_next_attempt_tells_how_it_ended(cluster: Path, tmp_path: Path, is_gone: bool) -> None:
    good = Submitted(cluster, tmp_path / "good", "yield None, value")
    bad = Submitted(cluster, tmp_path / "bad", "raise ValueError('boom')")
    good.until_it_runs()
    bad.until_it_runs()
    masters = [_master(job.application) for job in (good, bad)]
    kill_resource_manager(cluster)
    good.let_go_on()
    bad.let_go_on()
    notes = ("job.succeeded", "job.end.json")
    until(lambda: all(list(cluster.glob(f"staging/*/.staging/*/{note}")) for note in notes))
    if is_gone:
        assert wait_for_end(masters, 60.0) == []  # they try for a while to tell it
    stands = (good.out / "_SUCCESS").stat()
    assert not bad.out.exists()

    assert yaq("cluster", "start", "--dir", cluster).returncode == 0
    assert (said := good.wait())[0] == 0 and f"{good.application} SUCCEEDED" in said[1], said
    assert (said := bad.wait())[0] == 1 and "ValueError: boom" in said[1], said
    # nothing ran again, and the output is the first attempt's
    assert (good.runs.read_text(), bad.runs.read_text()) == ("x", "x")
    assert (good.out / "_SUCCESS").stat() == stands
    assert (good.out / "part-m-00000").read_text() == "a\n"
    assert not list(cluster.glob("staging/*/.staging/*"))

    conf = Configuration.load(cluster / "conf")
    for job, state in ((good, "SUCCEEDED"), (bad, "FAILED")):
        report = json.loads(yaq("app", "status", "--conf", cluster / "conf", "--json", job.application).stdout)
        assert state in json.dumps(report)
        history = read_history(conf, ApplicationId.parse(job.application))
        assert (history.end["state"], len(history.attempts)) == (state, 1)
