"""What jobs leave behind whose managers died, and who removes it: with whose rights, and what else is left alone."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import psutil
import pytest

from tez_adapter.history import history_path
from tez_adapter.jobspec import JOB_FILE, JobKind, JobSpec
from tez_adapter.output import JobOutput
from tez_adapter.staging import Staging
from tez_adapter.submit import SubmittedJob, submit_mapreduce
from tez_adapter.sweeping import sweep_histories, sweep_jobs
from yaqd.config import Configuration
from yaqd.model import ApplicationAttemptId, ApplicationId, YarnApplicationState
from yaqd.storage.paths import hadoop_user

JOB = "job_1700000000000_0007"
DAY_S = 86_400
JOB_TEXT = """
from yaqd.mapreduce import Job


class J(Job):
    def map(self, key, value):
        open("FLAG").close()
"""


@pytest.fixture
def conf(tmp_path: Path) -> Configuration:
    return Configuration.load(environ={}, overrides={"yarn.app.mapreduce.am.staging-dir": str(tmp_path / "staging")})


def _left(conf: Configuration, tmp_path: Path, job: str = JOB, said: str = JOB) -> Path:
    """A job's folder and its output, as of a master that died; the folder."""
    staging = Staging(conf, hadoop_user(), job)
    staging.create()
    output = f"file://{tmp_path}/out-{said}"
    spec = JobSpec(
        job_id=said, name="n", user=hadoop_user(), kind=JobKind.MAPREDUCE, conf={}, staging=staging.path, output=output
    )
    staging.write(JOB_FILE, spec.dump())
    if not (tmp_path / f"out-{said}").exists():
        JobOutput(spec, conf).setup()
    (tmp_path / f"out-{said}" / "part-r-00000").write_text("half")
    return Path(staging.path.removeprefix("file://"))


def test_a_dead_jobs_folder_and_half_made_output_go(conf: Configuration, tmp_path: Path) -> None:
    folder = _left(conf, tmp_path)
    assert (swept := sweep_jobs(conf, hadoop_user(), [JOB, "job_1700000000000_0008"])).jobs == 1, swept
    assert swept.problems == []
    assert not folder.exists() and not (tmp_path / f"out-{JOB}").exists()
    assert sweep_jobs(conf, hadoop_user(), [JOB]).jobs == 0


def test_a_folder_that_speaks_of_another_job_is_left_alone(conf: Configuration, tmp_path: Path) -> None:
    other = "job_1700000000000_0009"
    _left(conf, tmp_path, other, other)  # it runs
    folder = _left(conf, tmp_path, JOB, said=other)
    swept = sweep_jobs(conf, hadoop_user(), [JOB])
    assert swept.jobs == 0 and "is of job_1700000000000_0009: left alone" in swept.problems[0]
    assert folder.exists() and (tmp_path / f"out-{other}" / "part-r-00000").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_somebody_else_is_left_alone(conf: Configuration, tmp_path: Path) -> None:
    folder = _left(conf, tmp_path)
    os.chown(folder, 12345, 12345)
    swept = sweep_jobs(conf, hadoop_user(), [JOB])
    assert swept.jobs == 0 and swept.problems == [f"file://{folder} is 12345's: left alone"]
    assert folder.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_another_users_files_are_touched_with_that_users_rights(conf: Configuration, tmp_path: Path) -> None:
    """A job file says what its user likes: here, that the output is a folder which that user may not change."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_mode & 0o005 != 0o005:
            folder.chmod(folder.stat().st_mode | 0o055)
    folder = _left(conf, tmp_path)
    theirs = tmp_path / "staging" / "nobody" / ".staging"
    theirs.mkdir(parents=True)
    folder = folder.rename(theirs / JOB)
    for path in (theirs.parent, theirs, folder, folder / JOB_FILE):
        os.chown(path, 65534, 65534)
    request = {"conf": dict(conf.items()), "jobs": {"nobody": [JOB]}, "cutoff_ms": None}
    done = subprocess.run(
        [sys.executable, "-m", "tez_adapter.sweeping"], input=json.dumps(request), capture_output=True, text=True
    )
    swept = json.loads(done.stdout)
    assert swept["jobs"] == 0 and "permission" in swept["problems"][0].lower()
    assert (tmp_path / f"out-{JOB}" / "part-r-00000").exists()  # root's


def _history(conf: Configuration, number: int, days: float) -> Path:
    path = Path(history_path(conf, ApplicationId(1700000000000, number)).removeprefix("file://"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}\n")
    changed = time.time() - days * DAY_S
    os.utime(path, (changed, changed))
    return path


def test_old_histories_go_and_nothing_else(conf: Configuration) -> None:
    old, young = _history(conf, 1, 8), _history(conf, 2, 6)
    others = [old.with_name("notes.txt"), old.with_name("job_1.jsonl.d")]
    others[0].touch()
    others[1].mkdir()
    for path in others:
        os.utime(path, (0, 0))
    cutoff_ms = int(1000 * (time.time() - 7 * DAY_S))
    assert (sweep_histories(conf, cutoff_ms).histories, sweep_histories(conf, cutoff_ms).histories) == (1, 0)
    assert not old.exists() and young.exists() and all(path.exists() for path in others)


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _runs(job: SubmittedJob, attempt: int) -> bool:
    """Does a task run, and is the master that began it of this attempt?"""
    is_it = job.report().attempt == ApplicationAttemptId(job.application_id, attempt)
    return is_it and any(vertex.running for vertex in job.status().vertices)


def _kill_master(application: ApplicationId, attempt: int) -> bool:
    """Whether it was there to be killed."""
    container = f"container_{str(application).partition('_')[2]}_{attempt:02d}_000001"
    for process in psutil.process_iter():
        try:
            if process.cwd().endswith(f"/{container}"):
                process.kill()
                return True
        except psutil.Error:
            continue
    return False


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_nobody_waits_for_a_job_whose_masters_die_and_all_of_it_goes(
    running: Callable[..., AbstractContextManager[Configuration]], tmp_path: Path
) -> None:
    keys = ("yaq.rm.left-overs.delay-ms=1000", "mapreduce.jobhistory.cleaner.interval-ms=3000")
    os.mkfifo(tmp_path / "flag")
    (tmp_path / "in.txt").write_text("a\n")
    (tmp_path / "job.py").write_text(JOB_TEXT.replace("FLAG", str(tmp_path / "flag")))
    with running(tmp_path / "c", 1, *(word for key in keys for word in ("-D", key))) as conf:
        inputs, output = [str(tmp_path / "in.txt")], tmp_path / "out"
        job = submit_mapreduce(conf, str(tmp_path / "job.py"), inputs=inputs, output=str(output))
        old, young = _history(conf, 1, 8), _history(conf, 2, 6)
        for attempt in (1, 2):
            _until(partial(_runs, job, attempt))
            assert _kill_master(job.application_id, attempt)
        _until(lambda: job.report().state is YarnApplicationState.FAILED)
        assert list((tmp_path / "c").glob("staging/*/.staging/*")) and (output / "_temporary").exists()
        job.close()
        _until(lambda: not output.exists() and not list((tmp_path / "c").glob("staging/*/.staging/*")))
        _until(lambda: not old.exists())
        assert young.exists()
