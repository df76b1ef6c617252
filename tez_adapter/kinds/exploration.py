"""An exploration of hyperparameters: slots that run one trial after another."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from tez_adapter.client.sizes import MASTER_MEMORY_KEY, ContainerSize, master_memory_mb
from tez_adapter.core.dag import AttemptId, DagSpec, VertexSpec
from tez_adapter.core.records import Attempt
from tez_adapter.exploration.settings import ExplorationSettings, slot_size
from tez_adapter.jobspec import Exploration, JobSpec
from tez_adapter.kinds.kind import TaskSurroundings
from tez_adapter.kinds.limits import FIRST_PRIORITY, job_limits
from tez_adapter.kinds.mapreduce import TASK_ENTRY
from tez_adapter.master.launch import python_context, python_environment
from yaqd.config import Configuration
from yaqd.proto import job_pb2
from yaqd.proto import yarn_common_pb2 as pb

#: of the job manager, unless -D says so for this job: it predicts curves with numpy
_MASTER_MB: Final = 768
#: attempts of a slot that may fail; a container is lost with the programs that it runs, which are the user's
_SLOT_ATTEMPTS: Final = 1000
#: thread pools of a slot are as large as its cores, unless the user says otherwise
_POOLS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def terms_of(spec: JobSpec) -> Exploration:
    """Return what an exploration was submitted with. Raises ValueError for another job."""
    if spec.exploration is None:
        raise ValueError(f"{spec.job_id} is no exploration")
    return spec.exploration


class ExplorationKind:
    has_splits = False

    def check(self, reduces: int, conf: Configuration) -> None:
        ExplorationSettings.read(conf)
        self.sizes(reduces, conf)

    def sizes(self, reduces: int, conf: Configuration) -> list[ContainerSize]:
        return [slot_size(conf)]

    def master_memory_mb(self, tasks: int, conf: Configuration) -> int:
        configured_mb, origin = master_memory_mb(conf), conf.origin(MASTER_MEMORY_KEY)
        if origin is not None and origin.file is None:
            return configured_mb
        return min(configured_mb, _MASTER_MB)

    def plan(self, spec: JobSpec, conf: Configuration, splits: Sequence[dict[str, Any]]) -> DagSpec:
        slots = VertexSpec(
            "slot",
            terms_of(spec).slots,
            slot_size(conf).resource,
            FIRST_PRIORITY,
            max_attempts=_SLOT_ATTEMPTS,
            timeout_s=0.0,
            serves=True,
        )
        return DagSpec((slots,), limits=job_limits(conf))

    def launch(self, spec: JobSpec, around: TaskSurroundings) -> pb.ContainerLaunchContext:
        threads = str(slot_size(around.conf).resource.vcores)
        environment = dict.fromkeys(_POOLS, threads) | dict(spec.environment)
        environment = python_environment(around.conf.get("yaq.job.python")) | environment
        return python_context(TASK_ENTRY, ["{}:{}".format(*around.umbilical)], spec.task_resources, environment)

    def tell_apart(self, context: pb.ContainerLaunchContext, spec: JobSpec, attempt: AttemptId) -> None:
        """Add nothing: a task process asks for its task."""

    def describe(
        self,
        task: job_pb2.TaskDescription,
        spec: JobSpec,
        attempt: AttemptId,
        splits: Sequence[dict[str, Any]],
        inputs: int,
    ) -> None:
        task.kind = job_pb2.TaskDescription.SLOT

    def exit_code(self, attempts: Iterable[Attempt]) -> int | None:
        return None
