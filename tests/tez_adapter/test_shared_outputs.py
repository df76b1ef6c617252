"""Where a job's map outputs are on a shared file system, who may put some there, and what is left of them."""

from collections.abc import Callable
from pathlib import Path

import pytest

import tez_adapter.merging.shared_outputs as module
from riffle_merger.remote.reader import PackedFile
from tez_adapter.client.staging import SubmitError
from tez_adapter.client.submit import submit_mapreduce
from tez_adapter.data import MapOutput
from tez_adapter.jobspec import JobKind, JobSpec
from tez_adapter.kinds.mapreduce import MapReduceKind
from tez_adapter.merging.shared_outputs import prepare, publish_output, shared_folder
from tez_adapter.protocol import SHARED_FOLDER
from tez_adapter.tasks.attempt import TaskAttempt
from yaqd.config import Configuration
from yaqd.proto import job_pb2 as pb
from yaqd.storage import PathNotFound, get_filesystem


def job(tmp_path: Path, **more: str) -> JobSpec:
    conf = {"yaq.riffle.storage": "hdfs", **more}
    return JobSpec("job_1_0001", "n", "u", JobKind.MAPREDUCE, conf, f"file://{tmp_path}/staging", reduces=2)


def attempt_of(spec: JobSpec, number: int) -> TaskAttempt:
    ref = pb.AttemptRef(vertex=0, index=number, number=0)
    description = pb.TaskDescription(attempt=ref, attempt_id=f"attempt_{number}", kind=pb.TaskDescription.MAP)
    return TaskAttempt(description, spec, spec.configuration())


def write_output(attempt: TaskAttempt) -> None:
    output = MapOutput(attempt.output_folder(), 2)
    output.collect(b"key", b"value")
    output.close()


@pytest.fixture
def container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "container"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(module, "_FOLDER_WAIT_S", 0.0)
    return folder


def test_an_output_goes_to_its_job_managers_folder_and_leaves_the_container(
    tmp_path: Path, container: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = job(tmp_path)
    folder = shared_folder(spec, spec.configuration(), 1)
    assert folder == f"file://{tmp_path}/staging/shuffle/1"
    prepare(spec, spec.configuration(), 1)
    monkeypatch.setenv(SHARED_FOLDER, folder)
    attempt = attempt_of(spec, 7)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)  # as a job's code may
    elsewhere.rmdir()
    assert attempt.local_folders() == [container]
    write_output(attempt)
    publish_output(attempt)
    assert list((container / "output").iterdir()) == []
    file = PackedFile(get_filesystem(folder, spec.configuration()), f"{folder}/attempt_7", maps=1, partitions=2)
    assert file.maps == ("attempt_7",)
    file.close()


def test_a_later_job_manager_removes_what_an_earlier_one_left_and_its_tasks_leave_nothing_more(
    tmp_path: Path, container: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = job(tmp_path)
    conf = spec.configuration()
    prepare(spec, conf, 1)
    (tmp_path / "staging/shuffle/1/attempt_1").write_bytes(b"of the first")
    prepare(spec, conf, 2)
    assert [path.name for path in (tmp_path / "staging/shuffle").iterdir()] == ["2"]
    late = attempt_of(spec, 3)
    monkeypatch.setenv(SHARED_FOLDER, str(shared_folder(spec, conf, 1)))
    write_output(late)
    with pytest.raises(PathNotFound):
        publish_output(late)
    assert [path.name for path in (tmp_path / "staging/shuffle").iterdir()] == ["2"]


@pytest.mark.parametrize(
    ("spec_of", "stays"),
    [(lambda p: job(p), True), (lambda p: job(p, **{"yaq.riffle.storage": "local"}), False)],
)
def test_outputs_on_a_shared_file_system_stay_when_their_node_is_lost(
    tmp_path: Path, spec_of: Callable[[Path], JobSpec], stays: bool
) -> None:
    spec = spec_of(tmp_path)
    assert MapReduceKind().plan(spec, spec.configuration(), [{}]).vertices[0].outputs_stay is stays
    assert (shared_folder(spec, spec.configuration(), 1) is not None) is stays


def test_a_staging_folder_that_is_not_on_hdfs_is_said_before_anything_starts(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text("from yaqd.mapreduce import Job\nclass Same(Job):\n    pass\n")
    (tmp_path / "in.txt").write_text("line\n")
    conf = Configuration.load(None, overrides={"yaq.riffle.storage": "hdfs"}, environ={})
    with pytest.raises(SubmitError, match=r"staging folder file:.* is not; set fs\.defaultFS"):
        submit_mapreduce(conf, str(script), inputs=[str(tmp_path / "in.txt")], output=str(tmp_path / "out"), reduces=1)
