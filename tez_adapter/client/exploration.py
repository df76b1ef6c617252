"""Submitting an exploration, looking at it, stopping it and going on with it."""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any, Final

from tez_adapter.client.follow import SubmittedJob
from tez_adapter.client.rm_client import ApplicationReport
from tez_adapter.client.staging import SubmitError
from tez_adapter.client.submission import Attachments, Draft, Request, submit
from tez_adapter.client.training import folder_of, is_of_the_job
from tez_adapter.exploration.beginnings import SAME_TERMS, check_terms
from tez_adapter.exploration.joins.style import style_of
from tez_adapter.exploration.past import Standing, past_of, trial_of, view_of
from tez_adapter.exploration.settings import SLOT_MEMORY_KEY, SLOT_VCORES_KEY
from tez_adapter.exploration.store import read_records
from tez_adapter.exploration.view import ExplorationView, TrialView
from tez_adapter.jobspec import BadJobSpec, Exploration, JobKind, JobSpec
from tez_adapter.protocol import JobClientProtocol
from tez_adapter.training.keeper import read_job
from yaqd.config import Configuration
from yaqd.ipc import RemoteException
from yaqd.ml import kernels
from yaqd.ml.space import Space
from yaqd.model import ApplicationId
from yaqd.proto import job_exploration_pb2 as pb
from yaqd.storage import PathNotFound, StorageError

APPLICATION_TYPE: Final = "EXPLORATION"


def submit_exploration(
    conf: Configuration,
    script: str,
    terms: Exploration,
    *,
    memory_mb: int | None = None,
    vcores: int | None = None,
    attachments: Attachments = Attachments(),
    environment: Mapping[str, str] | None = None,
    queue: str = "default",
    name: str | None = None,
) -> SubmittedJob:
    """Explore the hyperparameters of `SCRIPT` or `SCRIPT:FUNCTION`; of a command, `script` is "".

    `memory_mb`, `vcores`: of each slot. Raises SubmitError, JobError, and what storage, configuration and
    ResourceManager raise.
    """
    _check(terms)
    joined = None if terms.style == "command" else style_of(script, terms.style)
    if joined is None and not terms.arguments:
        raise SubmitError("an exploration of a command needs its command line")
    sizes = {SLOT_MEMORY_KEY: memory_mb, SLOT_VCORES_KEY: vcores}
    own = {key: str(amount) for key, amount in sizes.items() if amount is not None}
    conf = conf.with_overrides(own, source="--memory")
    path = "" if joined is None else joined.path
    name = name or Path(path or terms.arguments[0]).stem
    fields = _fields(terms, Path(path).name if path else "", "" if joined is None else joined.function)
    environment = kernels.chosen(os.environ) | dict(environment or {})
    request = Request(conf, name, queue, attachments, environment, application_type=APPLICATION_TYPE)
    return submit(Draft(request, JobKind.EXPLORATION, fields, scripts=(path,) if path else ()))


def _fields(terms: Exploration, script: str, function: str) -> dict[str, Any]:
    return {"script": script, "class_name": function, "exploration": terms, "tasks": terms.slots}


def _check(terms: Exploration) -> None:
    try:
        check_terms(terms)
    except ValueError as error:
        raise SubmitError(str(error)) from None


def stop_exploration(job: SubmittedJob) -> pb.StopExplorationResponse | None:
    """Have an exploration end once its trials have made checkpoints; return None where it does not run.

    Raises RemoteException.
    """
    return job.ask(JobClientProtocol.stopExploration, pb.StopExplorationRequest())


def resume_exploration(
    conf: Configuration,
    user: str,
    application_id: ApplicationId,
    *,
    queue: str = "default",
    changes: Mapping[str, Any] | None = None,
) -> SubmittedJob:
    """Submit an exploration anew that has ended; its trials go on where they stood.

    `changes`: terms that are others now, by name, such as the target. A space must say the same. Raises SubmitError,
    StorageError, and what a submission raises.
    """
    folder = folder_of(conf, user, application_id)
    try:
        spec = read_job(conf, folder)
    except (PathNotFound, BadJobSpec) as error:
        raise SubmitError(f"{application_id} cannot be resumed: {error}") from None
    if spec.exploration is None:
        raise SubmitError(f"{application_id} is no exploration")
    changes = dict(changes or {})
    if "space" in changes:
        _check_same(spec.exploration.space, changes.pop("space"))
    for changed in changes:
        if changed in SAME_TERMS:
            raise SubmitError(f"trials cannot go on with another {changed}: begin a new exploration")
    terms = replace(spec.exploration, **changes, resumes=spec.job_id)
    _check(terms)
    own = {key: value for key, value in spec.conf.items() if is_of_the_job(key)}
    conf = conf.with_overrides(own, source=spec.job_id)
    files = {resource.name: f"{resource.uri}#{resource.name}" for resource in spec.resources}
    scripts = [files.pop(spec.script)] if spec.script else []
    py_files = [files.pop(name) for name in spec.py_files if name in files]
    attachments = Attachments(files=list(files.values()), py_files=py_files)
    request = Request(conf, spec.name, queue, attachments, spec.environment, application_type=APPLICATION_TYPE)
    fields = _fields(terms, spec.script, spec.class_name)
    return submit(Draft(request, JobKind.EXPLORATION, fields, scripts=scripts))


def _check_same(former: str, now: str) -> None:
    was, found = (Space.parse(text).dimensions if text else {} for text in (former, now))
    other = [name for name in [*was, *found] if was.get(name) != found.get(name)]
    if other:
        raise SubmitError(f"trials cannot go on with another space ({other[0]} differs): begin a new exploration")


class ExplorationWatch:
    """Asks for an exploration again and again, each time for the trials that have changed."""

    def __init__(self, conf: Configuration, report: ApplicationReport) -> None:
        self._conf = conf
        self._job = SubmittedJob(conf, report.id)
        self._spec: JobSpec | None = None
        self._trials: dict[int, TrialView] = {}
        self._version = 0
        self._standing = Standing()
        self._notices: tuple[str, ...] = ()
        self._is_read = False
        self.report = report

    def look(self, report: ApplicationReport | None = None) -> ExplorationView | None:
        """Return how it stands; None: nothing is known of it yet. `report`: what the ResourceManager says now.

        Raises RmUnavailable.
        """
        report = self.report = report or self._job.report()
        # one that is just ending answers no more, and has written all
        if report.state.is_final or (not self._ask(report) and not self._trials):
            self._read(report)
        terms = self._terms(report)
        if terms is None:
            return None
        return view_of(
            report.name,
            terms,
            self._trials.values(),
            self._standing,
            application=str(report.id),
            notices=self._notices,
        )

    def _ask(self, report: ApplicationReport) -> bool:
        """Ask the job manager; return whether there is one. It may not let others look."""
        try:
            status = self._job.ask(
                JobClientProtocol.getExplorationStatus, pb.ExplorationStatusRequest(version=self._version), report
            )
            more = None if status is None else self._job.status(report)
        except RemoteException:
            return True
        if status is None:
            return False
        self._version = status.version
        for message in status.trials:
            self._trials[message.number] = trial_of(message)
        self._standing = Standing(
            status.now_s,
            status.is_over,
            status.ending,
            status.winner if status.HasField("winner") else None,
            status.reached_s if status.HasField("reached_s") else None,
            status.started if status.HasField("started") else nan,
        )
        self._notices = () if more is None else more.notices
        if self._spec is None and status.terms:
            self._spec = JobSpec("", "", "", JobKind.EXPLORATION, {}, "", exploration=terms_of_json(status.terms))
        return True

    def _read(self, report: ApplicationReport) -> None:
        """Read what a job has left; that of one that has ended does not change any more."""
        if self._is_read:
            return
        self._is_read = report.state.is_final
        try:
            records = read_records(self._conf, folder_of(self._conf, report.user, report.id))
            trials, standing = past_of(records)
        except (StorageError, ValueError, KeyError, TypeError):
            return  # it left none
        self._standing = replace(standing, is_over=report.state.is_final)
        self._trials = {trial.number: trial for trial in trials}

    def _terms(self, report: ApplicationReport) -> Exploration | None:
        if self._spec is None:
            try:
                self._spec = read_job(self._conf, folder_of(self._conf, report.user, report.id))
            except (StorageError, BadJobSpec):
                return None
        return self._spec.exploration

    def close(self) -> None:
        self._job.close()


def terms_of_json(text: str) -> Exploration:
    """Return the terms that a job manager tells. Raises ValueError, TypeError."""
    fields = json.loads(text)
    fields["arguments"] = tuple(fields["arguments"])
    fields["limits"] = tuple(tuple(limit) for limit in fields["limits"])
    return Exploration(**fields)
