"""A command in any number of containers (`yaq run`)."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from tez_adapter.client.sizes import MASTER_MEMORY_KEY, ContainerSize, command_size, master_memory_mb
from tez_adapter.core.dag import AttemptId, DagSpec, VertexSpec
from tez_adapter.core.records import Attempt
from tez_adapter.core.states import AttemptState
from tez_adapter.jobspec import JobSpec
from tez_adapter.kinds.kind import TaskSurroundings
from tez_adapter.kinds.limits import FIRST_PRIORITY, job_limits, opportunistic_share
from tez_adapter.master.launch import command_context
from yaqd.config import Configuration
from yaqd.proto import job_pb2
from yaqd.proto import yarn_common_pb2 as pb

#: A job manager of commands, in MB, and how many tasks one more makes room for. Measured: 52 MB with one task, 85 MB
#: with 100,000 that wait, and 1.2 KB for each that has ended. Of its address space twice as much is allowed on nodes
#: that check it, and it has 400 MB.
_MASTER_MB: Final = 256
_TASKS_PER_MB: Final = 256


class CommandKind:
    has_splits = False

    def check(self, reduces: int, conf: Configuration) -> None:
        command_size(conf)

    def sizes(self, reduces: int, conf: Configuration) -> list[ContainerSize]:
        return [command_size(conf)]

    def master_memory_mb(self, tasks: int, conf: Configuration) -> int:
        """Return the job manager's memory, MB: it reads no data, and is no larger than that needs.

        Only -D for this job makes it larger: what files say is meant for MapReduce's.
        """
        configured_mb, origin = master_memory_mb(conf), conf.origin(MASTER_MEMORY_KEY)
        if origin is not None and origin.file is None:
            return configured_mb
        return min(configured_mb, max(_MASTER_MB, _MASTER_MB // 2 + tasks // _TASKS_PER_MB))

    def plan(self, spec: JobSpec, conf: Configuration, splits: Sequence[dict[str, Any]]) -> DagSpec:
        # a command's exit status is the user's answer: it is not asked twice, and nothing reports its progress
        command = VertexSpec(
            "command",
            spec.tasks,
            command_size(conf).resource,
            FIRST_PRIORITY,
            max_attempts=1,
            timeout_s=0.0,
            reusable=False,
            hosts=tuple((spec.nodes[task % len(spec.nodes)],) for task in range(spec.tasks)) if spec.nodes else (),
            only_on_hosts=bool(spec.nodes),
            opportunistic=opportunistic_share(conf),
        )
        return DagSpec((command,), limits=job_limits(conf))

    def launch(self, spec: JobSpec, around: TaskSurroundings) -> pb.ContainerLaunchContext:
        return command_context(spec.command, spec.task_resources, spec.environment)

    def tell_apart(self, context: pb.ContainerLaunchContext, spec: JobSpec, attempt: AttemptId) -> None:
        context.environment.add(key="YAQ_TASK_INDEX", value=str(attempt.task))
        context.environment.add(key="YAQ_TASKS", value=str(spec.tasks))

    def describe(
        self,
        task: job_pb2.TaskDescription,
        spec: JobSpec,
        attempt: AttemptId,
        splits: Sequence[dict[str, Any]],
        inputs: int,
    ) -> None:
        """Add nothing: no command asks."""

    def exit_code(self, attempts: Iterable[Attempt]) -> int | None:
        """Return the first exit code that was not 0."""
        for attempt in attempts:
            if attempt.state is AttemptState.FAILED and attempt.exit_status:
                return attempt.exit_status if 0 < attempt.exit_status < 256 else 1
        return None
