"""What a kind of job is to its client and to its job manager, which tell kinds apart by nothing else."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tez_adapter.client.sizes import ContainerSize
from tez_adapter.core.dag import AttemptId, DagSpec
from tez_adapter.core.records import Attempt
from tez_adapter.jobspec import JobSpec
from yaqd.config import Configuration
from yaqd.proto import job_pb2
from yaqd.proto import yarn_common_pb2 as pb
from yaqd.security import Token


@dataclass(frozen=True, slots=True)
class TaskSurroundings:
    """What a job's tasks are started with."""

    conf: Configuration
    #: where the job manager answers them
    umbilical: tuple[str, int]
    #: the job's; None: there is none
    token: Token | None
    #: of the map outputs; None: these are at the nodes
    shared_folder: str | None


class Kind(Protocol):
    #: each task of the first vertex reads a split, which the client writes beside the job file
    has_splits: bool

    # ---- the plan

    def check(self, reduces: int, conf: Configuration) -> None:
        """Looks at what the job manager and the tasks will read of the settings. Raises ConfigError."""

    def sizes(self, reduces: int, conf: Configuration) -> list[ContainerSize]:
        """Returns what the tasks' containers ask for. Raises ConfigError."""

    def master_memory_mb(self, tasks: int, conf: Configuration) -> int:
        """Returns the job manager's memory, MB. Raises ConfigError."""

    def plan(self, spec: JobSpec, conf: Configuration, splits: Sequence[dict[str, Any]]) -> DagSpec:
        """Returns the DAG that the machine runs. Raises ConfigError."""

    # ---- a task's start

    def launch(self, spec: JobSpec, around: TaskSurroundings) -> pb.ContainerLaunchContext:
        """Returns what all tasks' containers start with. Raises ConfigError."""

    def tell_apart(self, context: pb.ContainerLaunchContext, spec: JobSpec, attempt: AttemptId) -> None:
        """Adds what one task's container starts with."""

    def describe(
        self,
        task: job_pb2.TaskDescription,
        spec: JobSpec,
        attempt: AttemptId,
        splits: Sequence[dict[str, Any]],
        inputs: int,
    ) -> None:
        """Adds what a task process is told of its task, which reads from `inputs` others."""

    # ---- the end

    def exit_code(self, attempts: Iterable[Attempt]) -> int | None:
        """Returns the answer of the user's program; None: whether the job succeeded says all."""
