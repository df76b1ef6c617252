"""What runs in the containers of a training job: its script, its driver or one of its workers."""

import runpy
import sys
from pathlib import Path
from typing import Final

from tez_adapter.jobspec import Training
from tez_adapter.protocol import TrainingProtocol
from tez_adapter.tasks.attempt import TaskAttempt
from tez_adapter.tasks.runners import Workplace
from tez_adapter.tasks.scripts import add_import_path
from tez_adapter.tasks.task_output import TaskFiles
from tez_adapter.training.calls import call
from tez_adapter.training.channel import JobManagerChannel
from tez_adapter.training.environment import put_into_environment
from tez_adapter.training.settings import TrainingSettings
from tez_adapter.training.worker import PartitionWorker
from yaqd.mapreduce import JobError, parse_params
from yaqd.ml import IterativeJob, set_channel
from yaqd.ml.driving import drive
from yaqd.ml.loading import load_iterative
from yaqd.ml.threads import one_thread
from yaqd.proto import job_pb2
from yaqd.proto import job_training_pb2 as pb

_WAIT_MS: Final = 5000


def run(attempt: TaskAttempt, at: Workplace) -> TaskFiles | None:
    """Run an attempt. There is no output to commit: what a job leaves has passed its job manager."""
    terms = attempt.spec.training or Training()
    sys.path.insert(0, str(at.folder))
    for name in attempt.spec.py_files:
        add_import_path(at.folder / name)
    if attempt.description.kind == job_pb2.TaskDescription.WORKER:
        job = _job(attempt, at, terms)
        with one_thread():
            PartitionWorker(attempt, at, job).run()
        return None
    begun = at.client.call(TrainingProtocol.begin, pb.TrainingBeginRequest(attempt=attempt.ref), idempotent=True)
    channel = JobManagerChannel(
        at.connect,
        attempt.ref,
        begun,
        terms,
        checkpoint_bytes_max=TrainingSettings.read(attempt.conf).state_bytes_max,
        on_iteration=lambda iteration: attempt.moved(_share(iteration, terms.iterations)),
    )
    set_channel(channel)
    put_into_environment(attempt, at)
    try:
        if terms.partitions:
            _drive(attempt, at, terms, begun, channel)
        else:
            _run_script(attempt, at, terms)
    finally:
        channel.close()
    return None


def _share(iteration: int, of: int) -> float | None:
    """Done, 0..1; None: nobody knows."""
    return min(1.0, max(0.0, iteration / of)) if of else None


def _run_script(attempt: TaskAttempt, at: Workplace, terms: Training) -> None:
    """As `python SCRIPT ARGUMENTS` does."""
    if at.shared is not None:
        at.shared.try_out(Path(attempt.spec.script))
    sys.argv = [attempt.spec.script, *terms.arguments]
    try:
        runpy.run_path(attempt.spec.script, run_name="__main__")
    except SystemExit as end:
        if end.code not in (None, 0):
            raise JobError(f"{attempt.spec.script} ended with {end.code!r}") from None


def _job(attempt: TaskAttempt, at: Workplace, terms: Training) -> IterativeJob:
    spec = attempt.spec
    job_class = load_iterative(spec.script, spec.class_name, before=at.shared.try_out)
    params = parse_params(job_class, spec.conf)
    return job_class(params, seed=terms.seed, data=terms.data, iterations=terms.iterations)


class _Stopped(BaseException):
    """The user has stopped the job, and its program goes on."""


def _drive(
    attempt: TaskAttempt,
    at: Workplace,
    terms: Training,
    begun: pb.TrainingBeginResponse,
    channel: JobManagerChannel,
) -> None:
    job = _job(attempt, at, terms)
    # iterations that are done: of a state that is evaluated, its place in the job
    first = begun.checkpoint_iteration if begun.HasField("checkpoint") and not terms.by_run else 0
    calls = 0

    def evaluate(state: bytes) -> list[bytes]:
        nonlocal calls
        if channel.is_told_to_stop:
            raise _Stopped
        request = pb.EvaluateRequest(attempt=attempt.ref, iteration=first + calls, state=state, wait_ms=_WAIT_MS)
        again = pb.EvaluateRequest(attempt=attempt.ref, iteration=first + calls, wait_ms=_WAIT_MS)
        calls += 1
        answer = call(at.client, TrainingProtocol.evaluate, request)
        while not answer.is_done:
            answer = call(at.client, TrainingProtocol.evaluate, request if answer.wants_state else again)
        return list(answer.partials)

    try:
        with one_thread():
            state = drive(job, evaluate)
    except _Stopped:
        return
    trained = pb.TrainedRequest(attempt=attempt.ref, iteration=first + calls, state=state)
    at.client.call(TrainingProtocol.trained, trained, idempotent=True)
