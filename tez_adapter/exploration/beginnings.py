"""How an exploration's machine is made: anew, or with the records of an earlier attempt or of the job that it resumes.

Blocking: predictions of all that was reported are made again.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite, nan
from typing import Any, Final

import numpy as np

from tez_adapter.core.exploration.machine import ExplorationMachine
from tez_adapter.core.exploration.recall import ENDS, recall, settled
from tez_adapter.core.exploration.rules import Rules
from tez_adapter.exploration.generators.generator import Generator, GeneratorError
from tez_adapter.exploration.generators.make import ADAPTIVE, make_generator
from tez_adapter.exploration.joins.command import command_line
from tez_adapter.exploration.log import ExplorationLog, OtherVersion
from tez_adapter.exploration.settings import ExplorationSettings
from tez_adapter.exploration.store import LOG_FOLDER, TRIALS_FOLDER, TrialCheckpoints
from tez_adapter.exploration.terms import make_policy, metric_of, policy_terms, refuse_contradictions, takes_unit
from tez_adapter.jobspec import Exploration, JobSpec
from tez_adapter.training.settings import training_folder
from yaqd.config import Configuration
from yaqd.mapreduce import JobError
from yaqd.ml.space import Space
from yaqd.policies.curves.outlook import EPOCHS_MAX
from yaqd.policies.explore.facts import Action, Trials, Why
from yaqd.policies.explore.guide import ForestGuide
from yaqd.policies.explore.metric import Limit, Solved
from yaqd.storage import get_filesystem
from yaqd.storage.paths import parent_of

TRIALS_MAX: Final = 100_000
_SLOTS_MAX: Final = 10_000
#: terms that a job that resumes another must have in common with it
SAME_TERMS: Final = ("metric", "mode", "lower", "upper", "epochs", "space", "configurations", "generator")


#: a verdict as records have it
_GOES_ON: Final = (int(Action.CONTINUE), int(Why.NEXT), nan, nan, 0.0)


class CannotBegin(Exception):
    """An exploration that cannot run, in words for the user."""


@dataclass(slots=True)
class Beginning:
    machine: ExplorationMachine
    generator: Generator
    records: ExplorationLog
    checkpoints: TrialCheckpoints
    #: epoch s at which the exploration's own time is 0
    started: float


def rules_of(terms: Exploration, settings: ExplorationSettings) -> Rules:
    """Return what the machine keeps to. Raises ValueError for terms that say nothing."""
    metric = metric_of(terms)
    return Rules(
        policy_terms(terms),
        metric,
        terms.metric,
        tuple(Limit(*limit) for limit in terms.limits),
        Solved.parse(terms.solved) if terms.solved else None,
        goal=nan if terms.target is None else terms.target,
        checkpoint_every_s=settings.checkpoint_every_s,
        stop_wait_s=settings.stop_wait_s,
        suspend_wait_s=settings.suspend_wait_s,
        end_wait_s=settings.suspend_wait_s,
        losses_max=settings.losses_max,
        frozen_mb=settings.stopped_mb,
        images_mb=settings.images_mb,
        freezes_first=settings.freezes_first,
        takes_unit=takes_unit(terms),
    )


def check_terms(terms: Exploration) -> None:
    """Raises ValueError, with a line for the user, where an exploration would not begin with these."""
    counts = {
        "epochs": (terms.epochs, EPOCHS_MAX),
        "slots": (terms.slots, _SLOTS_MAX),
        "trials": (terms.trials, TRIALS_MAX),
    }
    for name, (number, most) in counts.items():
        if not 1 <= number <= most:
            raise ValueError(f"{name} {number}: give a number from 1 to {most}")
    if terms.boundary < 1:
        raise ValueError(f"boundary {terms.boundary}: give a number from 1")
    if not isfinite(terms.max_time_s) or terms.max_time_s < 0:
        raise ValueError(f"max-time {terms.max_time_s}: give seconds from 0")
    for name, value in (("target", terms.target), ("kill", terms.kill)):
        if value is not None and not isfinite(value):
            raise ValueError(f"{name} {value}: give a finite number")
    if not terms.metric:
        raise ValueError("no metric: name the one that reports have")
    for limit in terms.limits:
        Limit(*limit)
    make_policy(terms)
    refuse_contradictions(terms)
    try:
        space = Space.parse(terms.space, "the space") if terms.space else None
        names: Mapping[str, Any] = {} if space is None else space.dimensions
        if terms.generator not in ADAPTIVE:
            generator = _generator(terms, space, lambda line: None)
            names = names or generator.propose(0) or {}
            generator.close()
        elif space is None:
            raise ValueError(f"generator {terms.generator} draws from a space: give one")
        if terms.style == "command":
            command_line(terms.arguments, names)
    except (JobError, GeneratorError) as error:
        raise ValueError(str(error)) from None


def _generator(terms: Exploration, space: Space | None, note: Callable[[str], None]) -> Generator:
    return make_generator(
        terms.generator,
        space,
        seed=terms.seed,
        trials=terms.trials,
        configurations=terms.configurations,
        note=note,
    )


def make_machine(
    terms: Exploration, settings: ExplorationSettings, *, note: Callable[[str], None]
) -> tuple[ExplorationMachine, Generator]:
    """Return the machine and the generator of an exploration. Raises ValueError, JobError and GeneratorError."""
    rules = rules_of(terms, settings)
    space = Space.parse(terms.space, "the space") if terms.space else None
    generator = _generator(terms, space, note)
    many = terms.trials if generator.size is None else min(terms.trials, generator.size)
    guide = None
    if terms.guided and space is not None and not generator.is_adaptive:
        guide = ForestGuide(np.array([space.encode(generator.propose(number) or {}) for number in range(many)]))
    policy = make_policy(terms)
    return ExplorationMachine(policy, Trials(many, terms.epochs, guide), rules), generator


def begin(
    spec: JobSpec, terms: Exploration, conf: Configuration, settings: ExplorationSettings, note: Callable[[str], None]
) -> Beginning:
    """Return the exploration as it stood when its records end. Raises CannotBegin and StorageError."""
    folder = training_folder(spec.staging, spec.job_id)
    path = f"{folder}/{LOG_FOLDER}"
    files = get_filesystem(path, conf)
    files.mkdirs(path, 0o700)
    own = ExplorationLog(files, path)
    notes: Sequence[str]
    try:
        records, notes = own.read()
        own.repair(records)
        is_resumed = not records and bool(terms.resumes)
        if is_resumed:
            records, notes = _former(conf, f"{parent_of(folder)}/{terms.resumes}", terms)
            own.append(records)
    except OtherVersion as error:
        raise CannotBegin(str(error)) from None
    for line in notes:
        note(line)
    if not records:
        records = [_header(terms, time.time())]
        own.append(records)
    try:
        machine, generator = make_machine(terms, settings, note=note)
        recall(machine, records[1:])
        if is_resumed:
            own.append(settled(machine, _last(records)))
    except (JobError, GeneratorError, ValueError, KeyError, TypeError, IndexError) as error:
        raise CannotBegin(f"the exploration cannot begin: {error}") from error
    formers = [f"{parent_of(folder)}/{job}/{TRIALS_FOLDER}" for job in records[0].get("formers", ())]
    checkpoints = TrialCheckpoints(conf, f"{folder}/{TRIALS_FOLDER}", formers)
    checkpoints.keep_only((run.number, run.checkpoint) for run in machine.runs.values() if run.checkpoint is not None)
    for number, run in machine.runs.items():
        if run.params is not None and run.shown and generator.is_adaptive:
            generator.told(number, run.params, machine.trials.score(number), True)
    return Beginning(machine, generator, own, checkpoints, float(records[0]["started"]))


def _header(terms: Exploration, started: float, formers: Sequence[str] = ()) -> dict[str, Any]:
    """`formers`: the jobs that it goes on from, the last first; each may still have checkpoints of its trials."""
    return {"do": "header", "terms": asdict(terms), "started": started, "formers": list(formers)}


def _last(records: Sequence[dict[str, Any]]) -> float:
    """Return the exploration's own time when its records end, s."""
    return max((float(record["now"]) for record in records if "now" in record), default=0.0)


def _former(conf: Configuration, folder: str, terms: Exploration) -> tuple[list[dict[str, Any]], Sequence[str]]:
    """The records of a job that this one resumes, without its end; its pause takes no time.

    A trial that had reached the target goes on, as that may be another one now.
    """
    path = f"{folder}/{LOG_FOLDER}"
    records, notes = ExplorationLog(get_filesystem(path, conf), path).read()
    if not records:
        raise CannotBegin(f"there is nothing to resume in {folder}")
    before = records[0]["terms"]
    own = asdict(terms)
    for name in SAME_TERMS:
        if own[name] != before.get(name):
            raise CannotBegin(
                f"an exploration with another {name} cannot go on with the trials of {terms.resumes}: begin a new one"
            )
    kept = [record for record in records[1:] if record["do"] not in ENDS]
    for record in kept:
        if record["do"] == "report" and record["reached"]:
            record["reached"] = False
            record["verdict"] = _GOES_ON
    formers = [terms.resumes, *records[0].get("formers", filter(None, [before["resumes"]]))]
    return [_header(terms, time.time() - _last(records), formers), *kept], notes
