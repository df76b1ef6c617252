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
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import pytest

from rm.applications.records import Application
from tez_adapter.client.follow import SubmittedJob
from tez_adapter.client.staging import Staging
from tez_adapter.client.submit import submit_mapreduce
from tez_adapter.client.sweeping import sweep_histories, sweep_jobs
from tez_adapter.history import history_path
from tez_adapter.jobspec import JOB_FILE, JobKind, JobResource, JobSpec
from tez_adapter.master.launch import command_context
from tez_adapter.master.output import JobOutput
from yaqd.config import Configuration
from yaqd.model import ApplicationAttemptId, ApplicationId, YarnApplicationState
from yaqd.proto import yarn_common_pb2 as pb
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
    assert (swept := sweep_jobs(conf, hadoop_user(), {JOB: "", "job_1700000000000_0008": ""})).jobs == 1, swept
    assert swept.problems == []
    assert not folder.exists() and not (tmp_path / f"out-{JOB}").exists()
    assert sweep_jobs(conf, hadoop_user(), {JOB: ""}).jobs == 0


def test_a_folder_that_speaks_of_another_job_is_left_alone(conf: Configuration, tmp_path: Path) -> None:
    other = "job_1700000000000_0009"
    _left(conf, tmp_path, other, other)  # it runs
    folder = _left(conf, tmp_path, JOB, said=other)
    swept = sweep_jobs(conf, hadoop_user(), {JOB: ""})
    assert swept.jobs == 0 and "is of job_1700000000000_0009: left alone" in swept.problems[0]
    assert folder.exists() and (tmp_path / f"out-{other}" / "part-r-00000").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_somebody_else_is_left_alone(conf: Configuration, tmp_path: Path) -> None:
    folder = _left(conf, tmp_path)
    os.chown(folder, 12345, 12345)
    swept = sweep_jobs(conf, hadoop_user(), {JOB: ""})
    assert swept.jobs == 0 and swept.problems == [f"file://{folder} is 12345's: left alone"]
    assert folder.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_another_users_files_are_touched_with_that_users_rights(conf: Configuration, tmp_path: Path) -> None:
    """A job file says what its user likes: here, that the output is a folder which that user may not change."""
    for path in (tmp_path, *tmp_path.parents):
        if path.stat().st_mode & 0o005 != 0o005:
            path.chmod(path.stat().st_mode | 0o055)
    _nobodys(_left(conf, tmp_path), tmp_path / "staging")
    swept = _swept(conf, "")
    assert swept["jobs"] == 0 and "permission" in swept["problems"][0].lower()
    assert (tmp_path / f"out-{JOB}" / "part-r-00000").exists()  # root's


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_with_the_users_rights_a_named_folder_may_lie_below_anybodys(conf: Configuration, tmp_path: Path) -> None:
    """Whoever submits first to a new staging folder owns it; a job of another user is in it as well."""
    with TemporaryDirectory() as name:  # other tests' folders are closed to others
        Path(name).chmod(0o1777)
        root, output = Path(name, "own"), Path(name, f"out-{JOB}")
        folder = _nobodys(_left(conf, Path(name)), root)
        root.chmod(0o1777)
        os.chown(root, 12345, 12345)
        for path in (output, *output.rglob("*")):
            os.chown(path, 65534, 65534)
        swept = _swept(conf, f"file://{folder}/{JOB_FILE}")
        assert not folder.exists(), swept
        assert not output.exists(), swept


def _nobodys(folder: Path, root: Path) -> Path:
    """The job's folder, moved to that user below `root`."""
    theirs = root / "nobody" / ".staging"
    theirs.mkdir(parents=True)
    folder = folder.rename(theirs / JOB)
    for path in (theirs.parent, theirs, folder, folder / JOB_FILE):
        os.chown(path, 65534, 65534)
    return folder


def _swept(conf: Configuration, job_file: str) -> dict[str, Any]:
    """By the process of a ResourceManager that is root, for nobody."""
    request = {"conf": dict(conf.items()), "jobs": {"nobody": {JOB: job_file}}, "cutoff_ms": None}
    done = subprocess.run(
        [sys.executable, "-m", "tez_adapter.client.sweeping"], input=json.dumps(request), capture_output=True, text=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


# ---- a staging folder that the job's submission named


def _named(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A dead job's folder that is not where this cluster has them, and what the sweep is told of it."""
    conf = Configuration.load(environ={}, overrides={"yarn.app.mapreduce.am.staging-dir": str(tmp_path / "own")})
    folder = _left(conf, tmp_path)
    return folder, {JOB: f"file://{folder}/{JOB_FILE}"}


def test_a_staging_folder_that_the_submission_named_goes_too(conf: Configuration, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    folder, jobs = _named(tmp_path)
    assert (swept := sweep_jobs(conf, hadoop_user(), jobs)).jobs == 1, swept
    assert not folder.exists() and not (tmp_path / f"out-{JOB}").exists()
    assert (swept := sweep_jobs(conf, hadoop_user(), jobs)).jobs == 0 and swept.problems == []


@pytest.mark.parametrize("by", ["a link", "a folder of all", "a link above"])
def test_a_named_folder_that_others_may_put_elsewhere_is_left_alone(
    conf: Configuration, tmp_path: Path, by: str
) -> None:
    """Else whoever takes the daemon's name has it follow a job file of theirs, with the daemon's rights."""
    folder, jobs = _named(tmp_path)
    if by == "a link":
        folder.rename(tmp_path / "elsewhere")
        folder.symlink_to(tmp_path / "elsewhere")
    elif by == "a folder of all":
        folder.parent.chmod(0o777)
    else:
        folder.parent.rename(tmp_path / "elsewhere")
        folder.parent.symlink_to(tmp_path / "elsewhere")
    swept = sweep_jobs(conf, hadoop_user(), jobs)
    assert swept.jobs == 0 and "left alone" in swept.problems[0]
    assert (folder / JOB_FILE).exists() and (tmp_path / f"out-{JOB}" / "part-r-00000").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_named_folder_below_somebody_elses_is_left_alone(conf: Configuration, tmp_path: Path) -> None:
    folder, jobs = _named(tmp_path)
    os.chown(tmp_path / "own", 12345, 12345)
    swept = sweep_jobs(conf, hadoop_user(), jobs)
    assert swept.jobs == 0 and swept.problems == [f"{JOB}: {folder} is left alone: others may change {tmp_path}/own"]
    assert folder.exists()


@pytest.mark.parametrize("where", ["other-user/.staging/" + JOB, "{user}/.staging/job_1_0001", "{user}/staging/" + JOB])
def test_what_is_no_staging_folder_of_the_job_is_not_looked_at(conf: Configuration, tmp_path: Path, where: str) -> None:
    folder, _ = _named(tmp_path)
    other = tmp_path / "x" / where.format(user=hadoop_user())
    other.parent.mkdir(parents=True)
    folder.rename(other)
    swept = sweep_jobs(conf, hadoop_user(), {JOB: f"file://{other}/{JOB_FILE}"})
    assert (swept.jobs, swept.problems) == (0, []) and (other / JOB_FILE).exists()


def test_no_other_clusters_file_system_is_asked(conf: Configuration) -> None:
    uri = f"hdfs://192.0.2.1:8020/x/{hadoop_user()}/.staging/{JOB}/{JOB_FILE}"
    swept = sweep_jobs(conf, hadoop_user(), {JOB: uri})
    assert swept.jobs == 0 and "file system that is not this cluster's" in swept.problems[0]


@pytest.mark.parametrize("uri", ["file:///a b/job.json", "hdfs://nn:8020/s/job.json", "hdfs://service/s/job.json"])
def test_a_resourcemanager_remembers_where_the_job_file_of_a_job_that_is_over_was(uri: str) -> None:
    resources = [JobResource(name, uri, 1, 1) for name in (JOB_FILE, "job.splits.json")]
    context = pb.ApplicationSubmissionContext(am_container_spec=command_context("true", resources, {}))
    app = Application(ApplicationId(1700000000000, 7), context, "u", 0)
    context.ClearField("am_container_spec")
    assert app.job_file == uri
    assert Application(app.id, context, "u", 0).job_file == ""


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
@pytest.mark.parametrize("staging", ["c/staging", "own"])
def test_nobody_waits_for_a_job_whose_masters_die_and_all_of_it_goes(
    running: Callable[..., AbstractContextManager[Configuration]], tmp_path: Path, staging: str
) -> None:
    """Wherever whoever submits it has its staging folder."""
    keys = ("yaq.rm.left-overs.delay-ms=1000", "mapreduce.jobhistory.cleaner.interval-ms=3000")
    os.mkfifo(tmp_path / "flag")
    (tmp_path / "in.txt").write_text("a\n")
    (tmp_path / "job.py").write_text(JOB_TEXT.replace("FLAG", str(tmp_path / "flag")))
    with running(tmp_path / "c", 1, *(word for key in keys for word in ("-D", key))) as conf:
        inputs, output = [str(tmp_path / "in.txt")], tmp_path / "out"
        own = {"yarn.app.mapreduce.am.staging-dir": str(tmp_path / staging)} if staging == "own" else {}
        job = submit_mapreduce(
            conf.with_overrides(own, source="-D"), str(tmp_path / "job.py"), inputs=inputs, output=str(output)
        )
        old, young = _history(conf, 1, 8), _history(conf, 2, 6)
        for attempt in (1, 2):
            _until(partial(_runs, job, attempt))
            assert _kill_master(job.application_id, attempt)
        _until(lambda: job.report().state is YarnApplicationState.FAILED)
        assert list(tmp_path.glob(f"{staging}/*/.staging/*")) and (output / "_temporary").exists()
        job.close()
        _until(lambda: not output.exists() and not list(tmp_path.glob(f"{staging}/*/.staging/*")))
        _until(lambda: not old.exists())
        assert young.exists()
