"""The note of how a job ended, which another attempt of its manager finds, and who removes it with its folder."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from tez_adapter.client.staging import Staging
from tez_adapter.core.states import JobState
from tez_adapter.jobspec import JOB_FILE, JobKind, JobSpec
from tez_adapter.master.ended import BadNote, JobEnd, note_end, noted_end
from tez_adapter.master.output import JobOutput
from yaqd.config import Configuration

JOB = "job_1700000000000_0007"


@pytest.fixture
def conf(tmp_path: Path) -> Configuration:
    return Configuration.load(environ={}, overrides={"yarn.app.mapreduce.am.staging-dir": str(tmp_path)})


def _staged(conf: Configuration) -> tuple[Staging, JobSpec]:
    staging = Staging(conf, "alice", JOB)
    staging.create()
    spec = JobSpec(job_id=JOB, name="n", user="alice", kind=JobKind.COMMAND, conf={}, staging=staging.path)
    staging.write(JOB_FILE, spec.dump())
    return staging, spec


@pytest.mark.parametrize("why", ["", "why\nné"])
@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.FAILED, JobState.KILLED])
def test_a_later_attempt_finds_how_the_job_ended(conf: Configuration, state: JobState, why: str) -> None:
    _, spec = _staged(conf)
    end = JobEnd(state, why)
    assert JobOutput(spec, conf, 2).former_end() is None
    JobOutput(spec, conf, 1).leave([], end)
    assert JobOutput(spec, conf, 2).former_end() == end
    assert JobOutput(spec, conf, 1).former_end() is None


@pytest.mark.parametrize("text", ["", "[]", '{"state": "DONE", "diagnostics": ""}', json.dumps({"state": "FAILED"})])
def test_a_damaged_note_is_no_leave_to_run_the_job_again(conf: Configuration, tmp_path: Path, text: str) -> None:
    staging, _ = _staged(conf)
    note_end(staging.path, conf, JobEnd(JobState.FAILED, ""))
    (note,) = tmp_path.glob("alice/.staging/*/job.end.json")
    note.write_text(text)
    with pytest.raises(BadNote, match=r"job\.end\.json is damaged"):
        noted_end(staging.path, conf)


def test_job_manager_and_clients_may_remove_the_folder_at_once(conf: Configuration, tmp_path: Path) -> None:
    start = Barrier(4)

    def remove(work: Callable[[], None]) -> None:
        start.wait()
        work()

    with ThreadPoolExecutor(start.parties) as threads:
        for _ in range(100):
            staging, spec = _staged(conf)
            for number in range(20):
                staging.write(f"file-{number}", b"x")
            works = [JobOutput(spec, conf).remove_staging, *(Staging(conf, "alice", JOB).sweep for _ in range(3))]
            list(threads.map(remove, works))
            assert not any(tmp_path.glob("alice/.staging/*"))
