"""A job that was stopped: what is said of it, and the model of the job that goes on with it."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tez_training.training_jobs import BY_RUN, DESCENT, model_sum, until
from tez_adapter.client.follow import SubmittedJob
from tez_adapter.protocol import JobClientProtocol
from yaqd.cli.ml.here import CurveKeeper, train_class
from yaqd.config import Configuration
from yaqd.mapreduce import parse_params
from yaqd.ml.loading import load_iterative
from yaqd.model import ApplicationId
from yaqd.proto import job_training_pb2 as pb

Yaq = Callable[..., str]
Write = Callable[[str, str], str]


def undisturbed(script: str) -> str:
    """The model as it is trained here."""
    job = load_iterative(script)
    return hashlib.sha256(train_class(job(parse_params(job, {}), seed=7, iterations=40), CurveKeeper())).hexdigest()


def shown(yaq: Yaq, application: str) -> dict[str, object]:
    (found,) = (j for j in json.loads(yaq("ml", "list", "--all", "--json")) if j["application_id"] == application)
    return dict(found)


def iterations(job: SubmittedJob) -> int:
    status = job.ask(JobClientProtocol.getTrainingStatus, pb.TrainingStatusRequest())
    return 0 if status is None else status.iteration


def stopped(yaq: Yaq, conf: Configuration, application: str) -> int:
    """Stop it, wait for its end, and return after which iteration that was."""
    job = SubmittedJob(conf, ApplicationId.parse(application))
    until(lambda: iterations(job))
    yaq("ml", "stop", application)
    result = job.wait(timeout_s=40)
    job.close()
    assert result.succeeded
    iteration = shown(yaq, application)["iteration"]
    assert isinstance(iteration, int)
    assert f"after iteration {iteration}; `yaq ml resume {application}` goes on after" in result.diagnostics
    return iteration


@pytest.mark.slow
@pytest.mark.parametrize("name, text", (("descent", DESCENT), ("by_run", BY_RUN)))
def test_a_job_that_was_stopped_is_resumed_to_the_same_bytes(
    yaq: Yaq, write: Write, training_cluster: Configuration, name: str, text: str
) -> None:
    script = write(f"{name}.py", text)
    words = ("ml", "submit", script, "--no-wait", "--json", "--max-cores=2")
    application = json.loads(yaq(*words, "--seed=7", "--iterations=40", "-D", "pause=0.3"))["application_id"]
    iteration = stopped(yaq, training_cluster, application)
    assert 0 < iteration < 40
    found = shown(yaq, application)
    assert found["stopped_by"] and found["iterations_expected"] == 40
    page = yaq("ml", "watch", application)
    assert "STOPPED" in page and f"stopped by {found['stopped_by']} after iteration {iteration}; `yaq ml resume" in page
    listed = yaq("ml", "list", "--all")
    assert "STOPPED" in listed and f" {iteration}/40 " in listed
    assert f"stopped by {found['stopped_by']}" in yaq("app", "status", application)
    again = json.loads(yaq("ml", "resume", application, "--json"))
    assert again["state"] == "SUCCEEDED" and not again["diagnostics"]
    follower = SubmittedJob(training_cluster, ApplicationId.parse(again["application_id"]))
    assert model_sum(training_cluster, follower) == undisturbed(script)
    assert shown(yaq, again["application_id"])["iteration"] == 40


@pytest.mark.slow
def test_losses_that_are_no_numbers_are_said(yaq: Yaq, write: Write) -> None:
    script = write(
        "odd.py",
        "from yaqd.ml import report\n"
        "for i, loss in enumerate((4.0, 2.0, float('nan'), float('inf'), 'x'), 1):\n"
        "    report(iteration=i, loss=loss)\n",
    )
    told = json.loads(yaq("ml", "submit", script, "--json", "-D", "yaq.ml.max-attempts=1", code=1))
    assert "TypeError: report(loss='x'): loss must be a number" in told["diagnostics"]
    assert "loss 2 (nan since iteration 3)" in yaq("ml", "watch", told["application_id"])
    found = shown(yaq, told["application_id"])
    assert (found["loss"], found["odd_loss"], found["odd_since"], found["normalized"]) == (2.0, "nan", 3, 0.0)
    picture = Path(script).with_name("odd.png")
    yaq("ml", "plot", told["application_id"], "--output", str(picture))
    assert picture.stat().st_size > 1000
