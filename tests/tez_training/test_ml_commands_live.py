"""`yaq ml`: submitted, listed, watched, stopped, resumed."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tez_training.training_jobs import DESCENT, folder_of, until
from tez_adapter.client.follow import SubmittedJob
from tez_adapter.client.training import folder_of as folder_by_user
from tez_adapter.jobspec import job_id_of
from tez_adapter.training.keeper import read_curve, read_model
from yaqd.config import Configuration
from yaqd.model import ApplicationId

Yaq = Callable[..., str]
Write = Callable[[str, str], str]

#: counts until it is stopped, from where it was
COUNTING = """
import time
from yaqd.ml import last_checkpoint, report
saved = last_checkpoint()
at = int(saved) if saved else 0
print("begins at", at, flush=True)
while True:
    at += 1
    if report(at, 100.0 / at, lambda: str(at).encode()).stop or at == 100_000:
        break
    time.sleep(0.01)
"""


def submitted(yaq: Yaq, *words: str) -> str:
    return str(json.loads(yaq("ml", "submit", "--no-wait", "--json", *words))["application_id"])


@pytest.mark.slow
def test_a_job_is_submitted_listed_and_watched(yaq: Yaq, write: Write, training_cluster: Configuration) -> None:
    script = write("descent.py", DESCENT)
    told = json.loads(yaq("ml", "submit", script, "--max-cores", "2", "--json", "-D", "rate=0.05", "--iterations", "9"))
    assert (told["state"], told["iteration"]) == ("SUCCEEDED", 9)
    model = json.loads(yaq("ml", "model", told["application_id"], "--json"))
    assert told["model_sha256"] == model["sha256"] and told["loss"] > 0
    (row,) = (
        j for j in json.loads(yaq("ml", "list", "--all", "--json")) if j["application_id"] == told["application_id"]
    )
    assert (row["name"], row["iteration"], row["state"]) == ("Descent", 9, "FINISHED")
    assert 0 <= row["normalized"] <= 1
    page = yaq("ml", "watch", told["application_id"])
    assert "Descent SUCCEEDED" in page and "iteration 9" in page and page.count("•") >= 5
    assert "Descent" in yaq("ml", "list", "--all")
    (watched,) = json.loads(yaq("ml", "watch", told["application_id"], "--json"))
    assert [point["iteration"] for point in watched["curve"]] == list(range(1, 10))


@pytest.mark.slow
def test_a_job_is_stopped_and_goes_on(yaq: Yaq, write: Write, training_cluster: Configuration) -> None:
    application = submitted(yaq, write("counting.py", COUNTING), "-D", "yaq.ml.checkpoint.interval=1h")
    job = SubmittedJob(training_cluster, ApplicationId.parse(application))
    until(lambda: any(row["iteration"] for row in json.loads(yaq("ml", "list", "--json"))))
    assert yaq("ml", "resume", "--no-wait", application, code=2) == ""
    assert "ends with its next report" in yaq("ml", "stop", application)
    assert job.wait(timeout_s=30).succeeded
    folder = folder_of(training_cluster, job.job_id)
    last = read_curve(training_cluster, folder).points[-1].iteration
    again = json.loads(yaq("ml", "resume", "--no-wait", "--json", application))["application_id"]
    until(lambda: any(row["iteration"] for row in json.loads(yaq("ml", "list", "--json"))))
    yaq("ml", "stop", again)
    follower = SubmittedJob(training_cluster, ApplicationId.parse(again))
    assert follower.wait(timeout_s=30).succeeded
    curve = read_curve(training_cluster, folder_of(training_cluster, follower.job_id))
    iterations = [point.iteration for point in curve.points]
    assert last in iterations and iterations[-1] > last  # one curve over both
    assert "is not running" in yaq("ml", "stop", again)


@pytest.mark.slow
def test_a_checkpoint_that_was_cut_short_is_passed_over(
    yaq: Yaq, write: Write, training_cluster: Configuration
) -> None:
    application = submitted(yaq, write("counting.py", COUNTING), "-D", "yaq.ml.checkpoint.interval=0", "--max-cores=1")
    job = SubmittedJob(training_cluster, ApplicationId.parse(application))
    until(lambda: len(checkpoints(training_cluster, job)) == 2)
    yaq("ml", "stop", application)
    assert job.wait(timeout_s=30).succeeded
    before, last = checkpoints(training_cluster, job)
    last.write_bytes(last.read_bytes()[:-7])
    again = json.loads(yaq("ml", "resume", "--no-wait", "--json", application))["application_id"]
    follower = SubmittedJob(training_cluster, ApplicationId.parse(again))
    until(lambda: follower.status().notices)
    (notice,) = follower.status().notices
    assert str(last) in notice and "damaged" in notice
    yaq("ml", "stop", again)
    assert follower.wait(timeout_s=30).succeeded
    said = yaq("app", "logs", again)
    assert f"begins at {int(before.name.rpartition('-')[2])}" in said


@pytest.mark.slow
def test_what_a_job_was_trained_to_is_printed(yaq: Yaq, write: Write) -> None:
    said = yaq("ml", "submit", write("descent.py", DESCENT), "--max-cores", "1", "--iterations", "3")
    lines = [line.partition(":") for line in said.splitlines()]
    fields = {name: value.strip() for name, _, value in lines}
    assert list(fields) == ["iteration", "loss", "model sha256", "model"] and fields["iteration"] == "3"
    assert fields["model"].startswith("yaq ml model application_") and len(fields["model sha256"]) == 64
    program = "from yaqd.ml import report\nreport(1, 0.5)\n"
    said = yaq("ml", "submit", write("fit.py", program), "--max-cores", "1")
    assert [line.split() for line in said.splitlines()] == [["iteration:", "1"], ["loss:", "0.5"]]


def checkpoints(conf: Configuration, job: SubmittedJob) -> list[Path]:
    root = Path(conf.require("yarn.app.mapreduce.am.staging-dir"))
    return sorted(root.glob(f"*/.training/{job.job_id}/checkpoint-*"))


@pytest.mark.slow
def test_what_cannot_be_is_said(yaq: Yaq, write: Write, tmp_path: Path) -> None:
    yaq("ml", "submit", str(tmp_path / "none.py"), code=2)
    yaq("ml", "submit", write("a.py", "1"), "--min-cores", "3", "--max-cores", "2", code=2)
    yaq("ml", "submit", write("a.py", "1"), "--weight", "0", code=2)
    yaq("ml", "submit", write("a.py", "1"), "--target", "nan", code=2)
    yaq("ml", "submit", write("a.py", "1"), "--data", str(tmp_path / "none"), code=2)
    yaq("ml", "resume", "application_1700000000000_0001", code=2)


@pytest.mark.slow
def test_the_model_can_be_read_by_its_user(yaq: Yaq, write: Write, training_cluster: Configuration) -> None:
    from yaqd.ml.arrays import from_bytes

    told = json.loads(yaq("ml", "submit", write("descent.py", DESCENT), "--max-cores", "1", "--json"))
    application = ApplicationId.parse(told["application_id"])
    folder = folder_of(training_cluster, job_id_of(application))
    user = folder.split("/.training/")[0].rpartition("/")[2]
    assert folder_by_user(training_cluster, user, application).removeprefix("file://") == folder
    state = from_bytes(read_model(training_cluster, folder).pieces[0])
    assert state["at"] == 12 and state["weights"].shape == (20,)
