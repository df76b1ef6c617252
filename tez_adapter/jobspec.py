"""A job as its client wrote it down: one JSON file that the job manager and every task read.

It lies in the job's staging folder and reaches each container as the local resource `job.json`. The splits have a
file of their own (`job.splits.json`) that only the job manager gets: a task is told its split. Configuration values
are stored with their variables replaced, so that a container needs no site files.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Self

from tez_adapter.flow.spec import FlowSpec
from yaqd.config import Configuration
from yaqd.model import ApplicationId, LocalResourceType, LocalResourceVisibility

VERSION: Final = 1
JOB_FILE: Final = "job.json"
SPLITS_FILE: Final = "job.splits.json"
#: a larger one is refused before it is parsed
_BYTES_MAX: Final = 256 << 20


class BadJobSpec(Exception):
    """The file is not what a client of this version writes."""


class JobKind(StrEnum):
    #: a Job class in a Python script
    MAPREDUCE = "mapreduce"
    #: executables as mapper, combiner, reducer
    STREAMING = "streaming"
    #: any command in any number of containers
    COMMAND = "command"
    #: a model is trained: by a script, or by an IterativeJob on partitions of its data
    TRAINING = "training"
    #: many configurations of one program are trained to find one that is good
    EXPLORATION = "exploration"
    #: a graph of steps, each a Job class
    FLOW = "flow"


@dataclass(frozen=True, slots=True)
class JobResource:
    """A file that containers find under `name` in their working folder."""

    name: str
    uri: str
    bytes: int
    #: modification time at its source, epoch ms; a node refuses a file that changed since
    timestamp_ms: int
    type: int = LocalResourceType.FILE
    visibility: int = LocalResourceVisibility.APPLICATION


@dataclass(frozen=True, slots=True)
class Streaming:
    """Command lines for the shell; "" = the records pass unchanged."""

    mapper: str
    reducer: str
    combiner: str = ""


@dataclass(frozen=True, slots=True)
class Training:
    """What a job that trains a model was submitted with."""

    #: sublinear, superlinear or auto: how its loss falls
    curve: str = "auto"
    #: the job ends when its loss is there; None: no matter where
    target: float | None = None
    #: of its losses beside other jobs'
    weight: float = 1.0
    min_cores: float = 0.0
    max_cores: float = 1.0
    #: after which the job ends; 0: when its program does
    iterations: int = 0
    #: of the data; 0: a script, which has none
    partitions: int = 0
    #: its driver calls the evaluations from within (`IterativeJob.run`)
    by_run: bool = False
    #: files that the partitions are dealt
    data: tuple[str, ...] = ()
    seed: int = 0
    #: of a script
    arguments: tuple[str, ...] = ()
    #: the job whose last checkpoint it begins with; "": with none
    resumes: str = ""


@dataclass(frozen=True, slots=True)
class Exploration:
    """What an exploration of hyperparameters was submitted with; metrics as the user has them."""

    metric: str
    #: "max" or "min"
    mode: str = "max"
    #: that is looked for; None: it rises when it is reached
    target: float | None = None
    #: a trial whose metric stays worse has learnt nothing; None: nobody knows
    kill: float | None = None
    #: trials that run at once
    slots: int = 1
    #: a trial reports so often at most
    epochs: int = 100
    trials: int = 100
    #: after which it ends; 0: when all trials have
    max_time_s: float = 0.0
    #: a name, or NAME:OPTION=NUMBER,...
    policy: str = "index"
    #: of the policies that predict
    predictor: str = "library"
    generator: str = "random"
    #: the text of its file (TOML); "" where a file of configurations needs none
    space: str = ""
    #: of the generator `file`: JSON lines
    configurations: str = ""
    seed: int = 1
    #: fresh trials start in the order of a model over hyperparameters
    guided: bool = False
    #: epochs between two evaluations, for policies that have boundaries
    boundary: int = 10
    #: bounds of the metric
    lower: float | None = None
    upper: float | None = None
    #: of other metrics: name, "<=" or ">=", number
    limits: tuple[tuple[str, str, float], ...] = ()
    #: a condition on the last reports, as `mean(100) >= 200`; "": the target counts
    solved: str = ""
    #: how the program joins: script, objective, train, command
    style: str = "script"
    #: of a script
    arguments: tuple[str, ...] = ()
    #: of a command: finds the metric in its output
    pattern: str = ""
    #: the job whose trials it takes up; "": none
    resumes: str = ""
    #: what is believed of the metric before anything is known; "": the default
    level: str = ""


@dataclass(frozen=True, slots=True)
class JobSpec:
    job_id: str
    name: str
    user: str
    kind: JobKind
    #: changed keys with their values
    conf: Mapping[str, str]
    staging: str
    resources: tuple[JobResource, ...] = ()
    #: MAPREDUCE, TRAINING, EXPLORATION: local name of the script and the class in it, if it has one
    script: str = ""
    class_name: str = ""
    #: names of local resources that go onto the import path
    py_files: tuple[str, ...] = ()
    #: where the output goes that is committed at the job's end, qualified; "": it has none
    output: str = ""
    reduces: int = 0
    input_format: str = "text"
    output_format: str = "text"
    #: encoded keys in hex that divide the key space of a total order; one fewer than reduces
    boundaries: tuple[str, ...] = ()
    streaming: Streaming | None = None
    #: TRAINING
    training: Training | None = None
    exploration: Exploration | None = None
    flow: FlowSpec | None = None
    #: COMMAND: the command line for /bin/sh and how many containers run it
    command: str = ""
    tasks: int = 0
    #: COMMAND: hosts that the containers are spread over, and no others; empty: anywhere
    nodes: tuple[str, ...] = ()
    #: of hosts that stand in another rack than the default one
    racks: Mapping[str, str] = field(default_factory=dict)
    #: further environment of the tasks
    environment: Mapping[str, str] = field(default_factory=dict)
    version: int = VERSION

    @property
    def outputs(self) -> tuple[str, ...]:
        """The folders that are committed at the job's end, qualified."""
        if self.flow is not None:
            return tuple(output.path for output in self.flow.outputs)
        return (self.output,) if self.output else ()

    @property
    def task_resources(self) -> list[JobResource]:
        """The files that tasks get: the splits are for the job manager."""
        return [resource for resource in self.resources if resource.name != SPLITS_FILE]

    @property
    def application_id(self) -> ApplicationId:
        return ApplicationId.parse(self.job_id.replace("job_", "application_", 1))

    def configuration(self) -> Configuration:
        """Load shipped defaults under the job's own values; the container's environment is not looked at."""
        return Configuration.load(None, overrides=dict(self.conf), environ={})

    def dump(self) -> bytes:
        fields = asdict(replace(self, flow=None)) | {"flow": self.flow and self.flow.as_json()}
        return json.dumps(fields, ensure_ascii=True).encode()

    @classmethod
    def parse(cls, data: bytes) -> Self:
        fields = _object(data)
        if fields.get("version") != VERSION:
            raise BadJobSpec(f"{JOB_FILE} has version {fields.get('version')!r}, this job manager reads {VERSION}")
        try:
            fields["kind"] = JobKind(fields["kind"])
            fields["resources"] = tuple(JobResource(**r) for r in fields["resources"])
            fields["boundaries"] = tuple(fields["boundaries"])
            fields["nodes"] = tuple(str(node) for node in fields["nodes"])
            fields["py_files"] = tuple(fields["py_files"])
            if fields["streaming"] is not None:
                fields["streaming"] = Streaming(**fields["streaming"])
            if fields["training"] is not None:
                fields["training"] = _training(fields["training"])
            if fields["exploration"] is not None:
                fields["exploration"] = _exploration(fields["exploration"])
            if fields["flow"] is not None:
                fields["flow"] = FlowSpec.of_json(fields["flow"])
            spec = cls(**fields)
            _ = spec.application_id
        except (KeyError, TypeError, ValueError) as error:
            raise BadJobSpec(f"{JOB_FILE} is damaged: {error}") from None
        return spec

    @classmethod
    def read(cls, path: Path) -> Self:
        return cls.parse(_read(path))


def _training(fields: dict[str, Any]) -> Training:
    for name in ("data", "arguments"):
        fields[name] = tuple(map(str, fields[name]))
    return Training(**fields)


def _exploration(fields: dict[str, Any]) -> Exploration:
    fields["arguments"] = tuple(map(str, fields["arguments"]))
    fields["limits"] = tuple((str(name), str(relation), float(bound)) for name, relation, bound in fields["limits"])
    return Exploration(**fields)


def dump_splits(splits: Sequence[dict[str, Any]]) -> bytes:
    return json.dumps({"version": VERSION, "splits": list(splits)}).encode()


def read_splits(path: Path) -> list[dict[str, Any]]:
    splits = _object(_read(path)).get("splits")
    if not isinstance(splits, list):
        raise BadJobSpec(f"{SPLITS_FILE} is damaged: it has no list of splits")
    return splits


def job_id_of(application_id: ApplicationId) -> str:
    return f"job_{application_id.cluster_timestamp}_{application_id.id:04d}"


def attempt_name(job_id: str, letter: str, index: int, number: int) -> str:
    """Return MapReduce's name of an attempt; the shuffle service takes it as the name of the output's folder."""
    return f"attempt_{job_id.removeprefix('job_')}_{letter}_{index:06d}_{number}"


def _read(path: Path) -> bytes:
    if path.stat().st_size > _BYTES_MAX:
        raise BadJobSpec(f"{path} is larger than {_BYTES_MAX} bytes")
    return path.read_bytes()


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except ValueError as error:
        raise BadJobSpec(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise BadJobSpec("not a JSON object")
    return value
