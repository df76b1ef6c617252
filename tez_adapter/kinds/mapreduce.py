"""Maps, and reduces that read from them. Whether they run a Job class or executables is for their tasks to know."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from tez_adapter.client.sizes import ContainerSize, master_memory_mb, sort_mb, task_size
from tez_adapter.core.dag import AttemptId, DagSpec, EdgeSpec, VertexSpec
from tez_adapter.core.records import Attempt
from tez_adapter.jobspec import JobKind, JobSpec
from tez_adapter.kinds.kind import TaskSurroundings
from tez_adapter.kinds.limits import FIRST_PRIORITY, NEXT_PRIORITY, job_limits, opportunistic_share
from tez_adapter.master.launch import configured_environment, python_context, python_environment
from tez_adapter.merging.settings import PLANNED, on_hdfs
from tez_adapter.protocol import SHARED_FOLDER, SHUFFLE_SERVICE
from yaqd.config import Configuration
from yaqd.proto import job_pb2
from yaqd.proto import yarn_common_pb2 as pb
from yaqd.storage import output_codec

TASK_ENTRY = "tez_adapter.tasks.task:main"
#: what a task's process finds in its environment: one may run maps and reduces, so it gets what either is to have
_ENVIRONMENTS = ("mapreduce.reduce.env", "mapreduce.map.env", "mapred.child.env", "mapreduce.admin.user.env")


class MapReduceKind:
    has_splits = True

    def check(self, reduces: int, conf: Configuration) -> None:
        self.plan(JobSpec("", "", "", JobKind.MAPREDUCE, {}, "", reduces=reduces), conf, [])
        sort_mb(conf)
        output_codec(conf)

    def sizes(self, reduces: int, conf: Configuration) -> list[ContainerSize]:
        return [task_size(what, conf) for what in (("map", "reduce") if reduces else ("map",))]

    def master_memory_mb(self, tasks: int, conf: Configuration) -> int:
        return master_memory_mb(conf)

    def plan(self, spec: JobSpec, conf: Configuration, splits: Sequence[dict[str, Any]]) -> DagSpec:
        hosts = tuple(tuple(str(h) for h in split.get("hosts", ())) for split in splits)
        maps = VertexSpec(
            "map",
            len(splits),
            task_size("map", conf).resource,
            FIRST_PRIORITY,
            max_attempts=conf.get_int("mapreduce.map.maxattempts", 4, minimum=1),
            failures_max_percent=failures_max_percent("map", conf),
            timeout_s=conf.get_int("mapreduce.task.timeout", 600_000, minimum=0) / 1000,
            hosts=hosts if any(hosts) else (),
            opportunistic=opportunistic_share(conf),
            outputs_stay=on_hdfs(conf),
        )
        if not spec.reduces:
            return DagSpec((maps,), limits=job_limits(conf))
        reduces = VertexSpec(
            "reduce",
            spec.reduces,
            task_size("reduce", conf).resource,
            NEXT_PRIORITY,
            max_attempts=conf.get_int("mapreduce.reduce.maxattempts", 4, minimum=1),
            failures_max_percent=failures_max_percent("reduce", conf),
            timeout_s=maps.timeout_s,
        )
        slow_start = conf.get_float("mapreduce.job.reduce.slowstart.completedmaps", 0.05, minimum=0, maximum=1)
        return DagSpec((maps, reduces), (EdgeSpec(0, 1, slow_start),), job_limits(conf))

    def launch(self, spec: JobSpec, around: TaskSurroundings) -> pb.ContainerLaunchContext:
        environment = dict(spec.environment)
        for key in _ENVIRONMENTS:
            environment = configured_environment(around.conf, key) | environment
        environment = python_environment(around.conf.get("yaq.job.python")) | environment
        environment[PLANNED] = "1"
        if around.shared_folder is not None:
            environment[SHARED_FOLDER] = around.shared_folder
        arguments = ["{}:{}".format(*around.umbilical)]
        context = python_context(TASK_ENTRY, arguments, spec.task_resources, environment)
        if around.token is not None:
            context.service_data.add(key=SHUFFLE_SERVICE, value=around.token.to_writable())
        return context

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
        if attempt.vertex == 0:
            task.kind = job_pb2.TaskDescription.MAP
            task.split = json.dumps(splits[attempt.task])
        else:
            task.kind = job_pb2.TaskDescription.REDUCE
            task.inputs = inputs

    def exit_code(self, attempts: Iterable[Attempt]) -> int | None:
        return None


def failures_max_percent(phase: str, conf: Configuration) -> int:
    """Return the percentage of a phase's tasks, map or reduce, that may fail for good."""
    return conf.get_int(f"mapreduce.{phase}.failures.maxpercent", 0, minimum=0, maximum=100)
