"""A graph of steps: stages of tasks that read what others leave."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from tez_adapter.client.sizes import ContainerSize, master_memory_mb, sort_mb, task_size
from tez_adapter.core.dag import AttemptId, DagSpec, EdgeSpec, VertexSpec
from tez_adapter.core.records import Attempt
from tez_adapter.flow.plan import EdgeKind, Stage
from tez_adapter.flow.spec import FlowSpec
from tez_adapter.jobspec import JobSpec
from tez_adapter.kinds.kind import TaskSurroundings
from tez_adapter.kinds.limits import FIRST_PRIORITY, NEXT_PRIORITY, job_limits, opportunistic_share
from tez_adapter.kinds.mapreduce import MapReduceKind
from yaqd.config import Configuration
from yaqd.proto import job_pb2
from yaqd.proto import yarn_common_pb2 as pb
from yaqd.storage import output_codec


def flow_of(spec: JobSpec) -> FlowSpec:
    """Return what a flow was submitted with. Raises ValueError for another job."""
    if spec.flow is None:
        raise ValueError(f"{spec.job_id} is no flow")
    return spec.flow


class FlowKind:
    has_splits = True

    def check(self, reduces: int, conf: Configuration) -> None:
        job_limits(conf)
        self.sizes(reduces, conf)
        sort_mb(conf)
        output_codec(conf)

    def sizes(self, reduces: int, conf: Configuration) -> list[ContainerSize]:
        return [task_size(what, conf) for what in ("map", "reduce")]

    def master_memory_mb(self, tasks: int, conf: Configuration) -> int:
        return master_memory_mb(conf)

    def plan(self, spec: JobSpec, conf: Configuration, splits: Sequence[dict[str, Any]]) -> DagSpec:
        stages = flow_of(spec).plan.stages
        vertices = [_vertex(stage, at, conf, splits) for at, stage in enumerate(stages)]
        slow_start = conf.get_float("mapreduce.job.reduce.slowstart.completedmaps", 0.05, minimum=0, maximum=1)
        # a task that reads all of a source holds its room in vain before that is done
        starts: dict[tuple[int, int], float] = {}
        for at, stage in enumerate(stages):
            for edge in stage.edges:
                start = slow_start if edge.kind is EdgeKind.SHUFFLE else 1.0
                starts[(edge.source, at)] = max(start, starts.get((edge.source, at), 0.0))
        edges = tuple(EdgeSpec(source, target, start) for (source, target), start in starts.items())
        return DagSpec(tuple(vertices), edges, job_limits(conf))

    def launch(self, spec: JobSpec, around: TaskSurroundings) -> pb.ContainerLaunchContext:
        return MapReduceKind().launch(spec, around)

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
        stage = flow_of(spec).plan.stages[attempt.vertex]
        if stage.reads_files:
            task.kind = job_pb2.TaskDescription.MAP
            task.split = json.dumps(splits[stage.first_split + attempt.task])
        else:
            task.kind = job_pb2.TaskDescription.REDUCE
        task.inputs = inputs

    def exit_code(self, attempts: Iterable[Attempt]) -> int | None:
        return None


def _vertex(stage: Stage, at: int, conf: Configuration, splits: Sequence[dict[str, Any]]) -> VertexSpec:
    phase = "map" if stage.reads_files else "reduce"
    vertex = VertexSpec(
        stage.name,
        stage.tasks,
        task_size(phase, conf).resource,
        FIRST_PRIORITY + at * (NEXT_PRIORITY - FIRST_PRIORITY),
        max_attempts=conf.get_int(f"mapreduce.{phase}.maxattempts", 4, minimum=1),
        timeout_s=conf.get_int("mapreduce.task.timeout", 600_000, minimum=0) / 1000,
        phase=phase,
        first_name=stage.first_name,
        task_s=stage.task_s,
    )
    if not stage.reads_files:
        return vertex
    own = splits[stage.first_split : stage.first_split + stage.tasks]
    hosts = tuple(tuple(str(host) for host in split.get("hosts", ())) for split in own)
    return replace(vertex, hosts=hosts if any(hosts) else (), opportunistic=opportunistic_share(conf))
