"""A job manager killed at any step of the job's end: the next attempt ends the job, and its output is whole."""

import json
import shutil
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.tez_adapter.tez_crash import crashing_python, survives
from tez_adapter.client.follow import SubmittedJob
from tez_adapter.client.submit import submit_mapreduce
from tez_adapter.core.states import JobState
from tez_adapter.history import read_history
from tez_adapter.jobspec import JobKind, JobSpec
from tez_adapter.master.ended import BadNote, JobEnd, note_commit, noted_end
from tez_adapter.master.output import JobOutput, committer
from yaqd.config import Configuration
from yaqd.model import ApplicationId

JOB = "job_1700000000000_0007"
HISTORY: list[dict[str, Any]] = [
    {"type": "job", "name": "n"},
    {"type": "end", "state": "SUCCEEDED", "exit_code": 0, "diagnostics": ""},
]
SUCCEEDED = JobEnd(JobState.SUCCEEDED, "")
PARTS = {"part-r-00000": "zero", "side/more": "one"}


@pytest.fixture
def conf(tmp_path: Path) -> Configuration:
    return Configuration.load(environ={}, overrides={"yarn.app.mapreduce.am.staging-dir": str(tmp_path / "staging")})


def _spec(tmp_path: Path) -> JobSpec:
    staging = tmp_path / "staging" / "alice" / ".staging" / JOB
    staging.mkdir(parents=True)
    where: dict[str, Any] = {"staging": f"file://{staging}", "output": f"file://{tmp_path}/out"}
    return JobSpec(job_id=JOB, name="n", user="alice", kind=JobKind.MAPREDUCE, conf={}, **where)


def _run(spec: JobSpec, conf: Configuration, manager: int) -> JobEnd:
    """What an attempt of the job manager does to files, its tasks included."""
    output = JobOutput(spec, conf, manager)
    former = output.former_end()
    if former is not None:
        return former
    output.setup()
    tasks = committer(spec, conf)
    for number, (name, text) in enumerate(PARTS.items()):
        path = Path(tasks.task_path(f"attempt_{number}", name).removeprefix("file://"))
        path.parent.mkdir(parents=True)
        path.write_text(text)
        tasks.commit_task(f"attempt_{number}")
    left_over = Path(tasks.task_path("attempt_killed", "part-r-00000").removeprefix("file://"))
    left_over.parent.mkdir(parents=True)
    left_over.write_text("not this one")
    output.commit_noted(HISTORY)
    output.leave(HISTORY, SUCCEEDED)
    return SUCCEEDED


def _files(folder: Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.slow
def test_killed_at_any_step_the_job_ends_right(conf: Configuration, tmp_path: Path) -> None:
    for step in count(1):
        shutil.rmtree(tmp_path)
        spec = _spec(tmp_path)
        over = survives(partial(_run, spec, conf, 1), step, tmp_path)
        is_whole = (tmp_path / "out" / "_SUCCESS").exists()
        if is_whole:
            assert PARTS.items() <= _files(tmp_path / "out").items(), step
        assert _run(spec, conf, 2) == SUCCEEDED, step
        assert _files(tmp_path / "out") == PARTS | {"_SUCCESS": ""}, step
        history = read_history(conf, ApplicationId(1700000000000, 7))
        assert (history.job, history.end["state"]) == ({"name": "n"}, "SUCCEEDED"), step
        assert _run(spec, conf, 3) == SUCCEEDED, step
        if over:
            break
    assert step > 30


def test_what_one_attempt_could_not_commit_no_other_commits(conf: Configuration, tmp_path: Path) -> None:
    spec = _spec(tmp_path)
    output = JobOutput(spec, conf, 1)
    output.setup()
    (tmp_path / "out" / "_SUCCESS").mkdir()  # nothing can be written in its place
    with pytest.raises(Exception, match="_SUCCESS is a folder"):
        output.commit_noted(HISTORY)
    end = JobOutput(spec, conf, 2).former_end()
    assert end is not None and end.state is JobState.FAILED
    assert end.diagnostics.startswith("cannot commit the output: ")
    assert noted_end(spec.staging, conf) == end


def test_output_that_was_removed_meanwhile_is_no_success(conf: Configuration, tmp_path: Path) -> None:
    spec = _spec(tmp_path)
    note_commit(spec.staging, conf, [dict(line) for line in HISTORY])
    end = JobOutput(spec, conf, 2).former_end()
    assert end is not None and end.state is JobState.FAILED and "/out is gone" in end.diagnostics
    assert not (tmp_path / "out").exists()
    told = read_history(conf, ApplicationId(1700000000000, 7)).end
    assert (told["state"], told["exit_code"], told["diagnostics"]) == ("FAILED", 1, end.diagnostics)


@pytest.mark.parametrize("text", ["", "[]", "{}", json.dumps({"history": [1]})])
def test_a_damaged_note_is_no_leave_to_run_the_job_again(conf: Configuration, tmp_path: Path, text: str) -> None:
    spec = _spec(tmp_path)
    (tmp_path / "staging" / "alice" / ".staging" / JOB / "job.commit.json").write_text(text)
    with pytest.raises(BadNote, match=r"job\.commit\.json is damaged"):
        JobOutput(spec, conf, 2).former_end()


#: what the first attempt of a job manager is killed at: before its note, half-way, before the ResourceManager is told
POINTS = {"job.commit.json": "os.rename", "_temporary": "os.rmdir", ".job.succeeded": "os.remove"}
SCRIPT = """
from yaqd.mapreduce import Job

class Count(Job):
    def map(self, key, value):
        for word in value.split():
            yield word, 1

    def reduce(self, key, values):
        yield key, sum(values)
"""


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_jobs_whose_masters_are_killed_at_their_end_succeed(
    cluster: Configuration, tmp_path: Path, write: Callable[[str, str], str]
) -> None:
    script, source = write("count.py", SCRIPT), write("in.txt", "a b a\n" * 100)
    jobs: list[tuple[SubmittedJob, Path]] = []
    for number, (part, event) in enumerate(POINTS.items()):
        python = crashing_python(tmp_path / f"hook{number}", event, part, "_01_")
        conf = cluster.with_overrides({"yaq.job.python": python})
        output = tmp_path / f"out{number}"
        jobs.append((submit_mapreduce(conf, script, inputs=[source], output=str(output)), output))
    for job, output in jobs:
        result = job.wait(timeout_s=120)
        assert result.succeeded, result.diagnostics
        assert job.report().attempt.attempt == 2  # type: ignore[union-attr]
        assert _files(output) == {"_SUCCESS": "", "part-r-00000": "a\t200\nb\t100\n"}
        assert result.counters["org.apache.hadoop.mapreduce.TaskCounter"]["MAP_INPUT_RECORDS"] == 100
        job.close()
