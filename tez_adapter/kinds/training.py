"""A model that is trained: a script alone, or a driver with workers that hold the partitions of its data."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final

from tez_adapter.client.sizes import MASTER_MEMORY_KEY, ContainerSize, master_memory_mb
from tez_adapter.core.dag import AttemptId, DagSpec, VertexSpec
from tez_adapter.core.records import Attempt
from tez_adapter.jobspec import JobSpec, Training
from tez_adapter.kinds.kind import TaskSurroundings
from tez_adapter.kinds.limits import FIRST_PRIORITY, NEXT_PRIORITY, job_limits
from tez_adapter.kinds.mapreduce import TASK_ENTRY
from tez_adapter.master.launch import python_context, python_environment
from tez_adapter.training.settings import TrainingSettings, driver_size, worker_size
from yaqd.config import Configuration
from yaqd.proto import job_pb2
from yaqd.proto import yarn_common_pb2 as pb

DRIVER, WORKERS = 0, 1
#: of the job manager, unless -D says so for this job: measured with a state of 100 KB and 8 partitions, 70 MB
_MASTER_MB: Final = 384
#: thread pools of one thread: sums must not depend on the cores of a node
_ONE_THREAD: Final = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def terms_of(spec: JobSpec) -> Training:
    return spec.training or Training()


def most_workers(terms: Training) -> int:
    """Return how many are of use."""
    return max(1, min(terms.partitions, math.ceil(terms.max_cores)))


class TrainingKind:
    has_splits = False

    def check(self, reduces: int, conf: Configuration) -> None:
        TrainingSettings.read(conf)
        self.sizes(reduces, conf)

    def sizes(self, reduces: int, conf: Configuration) -> list[ContainerSize]:
        return [driver_size(conf), worker_size(conf)]

    def master_memory_mb(self, tasks: int, conf: Configuration) -> int:
        configured_mb, origin = master_memory_mb(conf), conf.origin(MASTER_MEMORY_KEY)
        if origin is not None and origin.file is None:
            return configured_mb
        return min(configured_mb, _MASTER_MB)

    def plan(self, spec: JobSpec, conf: Configuration, splits: Sequence[dict[str, Any]]) -> DagSpec:
        attempts = TrainingSettings.read(conf).max_attempts
        terms = terms_of(spec)
        # an iteration may take as long as it likes: a process that is there is told from one that is not
        driver = VertexSpec(
            "driver" if terms.partitions else "script",
            1,
            driver_size(conf).resource,
            FIRST_PRIORITY,
            max_attempts=attempts,
            timeout_s=0.0,
        )
        if not terms.partitions:
            return DagSpec((driver,), limits=job_limits(conf))
        workers = VertexSpec(
            "worker",
            most_workers(terms),
            worker_size(conf).resource,
            NEXT_PRIORITY,
            max_attempts=attempts,
            timeout_s=0.0,
            serves=True,
        )
        return DagSpec((driver, workers), limits=job_limits(conf))

    def launch(self, spec: JobSpec, around: TaskSurroundings) -> pb.ContainerLaunchContext:
        environment = dict(spec.environment)
        if terms_of(spec).partitions:
            environment = _ONE_THREAD | environment
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
        is_driver = attempt.vertex == DRIVER
        task.kind = job_pb2.TaskDescription.DRIVER if is_driver else job_pb2.TaskDescription.WORKER

    def exit_code(self, attempts: Iterable[Attempt]) -> int | None:
        return None
