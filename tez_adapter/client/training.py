"""Submitting a job that trains a model, stopping it, and going on with it."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from tez_adapter.client.follow import SubmittedJob
from tez_adapter.client.staging import STAGING_KEY, SubmitError
from tez_adapter.client.submission import Attachments, Draft, Request, submit
from tez_adapter.jobspec import BadJobSpec, JobKind, Training, job_id_of
from tez_adapter.protocol import JobClientProtocol
from tez_adapter.training.keeper import read_job
from tez_adapter.training.settings import DRIVER_MEMORY_KEY, DRIVER_VCORES_KEY, WORKER_MEMORY_KEY
from yaqd.config import Configuration
from yaqd.config.catalogue import documentation
from yaqd.mapreduce.loading import split_script
from yaqd.mapreduce.params import parse_params
from yaqd.ml import kernels
from yaqd.ml.loading import is_iterative, load_iterative
from yaqd.model import ApplicationId
from yaqd.proto import job_training_pb2 as pb
from yaqd.storage import PathNotFound, qualify

CURVES: Final = ("auto", "sublinear", "superlinear")
APPLICATION_TYPE: Final = "TRAINING"
LARGEST_VCORES_KEY: Final = "yarn.scheduler.maximum-allocation-vcores"
#: more are a slip of the hand
_CORES_MAX: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Program:
    """A training script that was looked at."""

    #: local path, and the class in it; "" where it is a program
    path: str
    class_name: str = ""
    #: the class's own words
    name: str = ""
    partitions: int = 0
    by_run: bool = False
    #: the class's own word; 0: a program says nothing
    iterations: int = 0


def look_at(conf: Configuration, script: str) -> Program:
    """Import the script where it has a class; a program is not run here. Raises JobError, SubmitError."""
    path, named = split_script(script)
    if not Path(path).is_file():
        raise SubmitError(f"no training script at {path}: give the path of a Python file")
    if not is_iterative(script):
        return Program(path)
    job = load_iterative(path, named)
    parse_params(job, {key: conf.get(key) or "" for key in conf.changed_keys()})
    return Program(path, job.__name__, job.name or job.__name__, job.partitions, job.overrides_run(), job.iterations)


def submit_training(
    conf: Configuration,
    script: str,
    terms: Training = Training(),
    *,
    memory_mb: int | None = None,
    attachments: Attachments = Attachments(),
    environment: Mapping[str, str] | None = None,
    queue: str = "default",
    name: str | None = None,
) -> SubmittedJob:
    """Train with a script: a class derived from `yaqd.ml.IterativeJob` runs in workers, any other program in one
    container. `memory_mb`: of each worker, or of the program. `terms.max_cores` bounds the workers; a program has so
    many cores of one node. Raises SubmitError, and what storage, configuration and ResourceManager raise."""
    check_terms(terms)
    program = look_at(conf, script)
    if program.class_name and terms.arguments:
        raise SubmitError(f"{program.class_name} takes no arguments: give its options with -D NAME=VALUE")
    terms = replace(
        terms,
        partitions=program.partitions,
        by_run=program.by_run,
        # the ResourceManager and who watches are told how many are left
        iterations=terms.iterations or program.iterations,
    )
    sizes: dict[str, str] = {}
    if memory_mb is not None:
        sizes[WORKER_MEMORY_KEY if program.class_name else DRIVER_MEMORY_KEY] = str(memory_mb)
    if not program.class_name:
        # on our nodes cores are held by orders, so a container that counts fewer virtual ones will do
        most = conf.get_int(LARGEST_VCORES_KEY, minimum=1)
        sizes[DRIVER_VCORES_KEY] = str(min(math.ceil(terms.max_cores), most))
    conf = conf.with_overrides(sizes, source="--memory")
    fields: dict[str, Any] = {
        "script": Path(program.path).name,
        "class_name": program.class_name,
        "training": terms,
        "tasks": 1,
    }
    name = name or program.name or Path(program.path).stem
    environment = kernels.chosen(os.environ) | dict(environment or {})
    request = Request(conf, name, queue, attachments, environment, application_type=APPLICATION_TYPE)
    return submit(Draft(request, JobKind.TRAINING, fields, scripts=(program.path,)))


def folder_of(conf: Configuration, user: str, application_id: ApplicationId) -> str:
    """Return where a user's job leaves its checkpoints, curve and model."""
    return f"{qualify(conf.require(STAGING_KEY), conf)}/{user}/.training/{job_id_of(application_id)}"


def stop_training(job: SubmittedJob) -> bool:
    """Have a job end with its next report and a checkpoint; return False where it does not run. Raises
    RemoteException."""
    return job.ask(JobClientProtocol.stopTraining, pb.StopTrainingRequest()) is not None


def resume_training(
    conf: Configuration, user: str, application_id: ApplicationId, *, queue: str = "default"
) -> SubmittedJob:
    """Submit a job anew that has ended; it goes on from its last checkpoint. Raises SubmitError, StorageError, and what
    a submission raises."""
    folder = folder_of(conf, user, application_id)
    try:
        spec = read_job(conf, folder)
    except (PathNotFound, BadJobSpec) as error:
        raise SubmitError(f"{application_id} cannot be resumed: {error}") from None
    terms = replace(spec.training or Training(), resumes=spec.job_id)
    own = {key: value for key, value in spec.conf.items() if is_of_the_job(key)}
    conf = conf.with_overrides(own, source=spec.job_id)
    files = {resource.name: f"{resource.uri}#{resource.name}" for resource in spec.resources}
    scripts = [files.pop(spec.script)]
    py_files = [files.pop(name) for name in spec.py_files if name in files]
    attachments = Attachments(files=list(files.values()), py_files=py_files)
    request = Request(conf, spec.name, queue, attachments, spec.environment, application_type=APPLICATION_TYPE)
    fields: dict[str, Any] = {
        "script": spec.script,
        "class_name": spec.class_name,
        "training": terms,
        "tasks": 1,
    }
    return submit(Draft(request, JobKind.TRAINING, fields, scripts=scripts))


def is_of_the_job(key: str) -> bool:
    """Return whether a key is the job's, and not of the cluster, which may be another one by now."""
    return documentation(key) is None or key.startswith(("yaq.ml.", "yaq.job.", "mapreduce.job."))


def check_terms(terms: Training) -> None:
    """Raises SubmitError."""
    numbers = {"--weight": terms.weight, "--min-cores": terms.min_cores, "--max-cores": terms.max_cores}
    for option, number in numbers.items():
        if not math.isfinite(number) or number < 0:
            raise SubmitError(f"{option} {number}: give a number from 0")
    if terms.target is not None and not math.isfinite(terms.target):
        raise SubmitError(f"--target {terms.target}: give a finite loss")
    if not 0 < terms.max_cores <= _CORES_MAX or terms.min_cores > terms.max_cores:
        raise SubmitError(f"--min-cores {terms.min_cores:g} and --max-cores {terms.max_cores:g}: give 0 < min <= max")
    if terms.weight == 0:
        raise SubmitError("--weight 0: the job would never get cores; give more than 0")
    if terms.iterations < 0:
        raise SubmitError(f"--iterations {terms.iterations}: give a number from 1")
    if terms.curve not in CURVES:
        raise SubmitError(f"--class {terms.curve}: use one of {', '.join(CURVES)}")
