"""What a former job manager's attempt has finished, as the machine of the next one takes it up."""

from collections.abc import Sequence
from dataclasses import dataclass

from tez_adapter.core.dag import AttemptId
from tez_adapter.core.job import JobRecords
from tez_adapter.core.records import Attempt
from tez_adapter.core.states import AttemptState, TaskState


@dataclass(frozen=True, slots=True)
class DoneAttempt:
    """An attempt that succeeded, and the node that has its output."""

    id: AttemptId
    node: str
    host: str
    #: seconds on the machine's clock
    started: float = 0.0
    finished: float = 0.0


def restore(job: JobRecords, done: Sequence[DoneAttempt]) -> None:
    """Take up attempts of former job managers: each task's last one. Raises ValueError for one that cannot be."""
    for found in done:
        vertex, task = found.id.vertex, found.id.task
        if not (0 <= vertex < len(job.vertices) and 0 <= task < job.vertices[vertex].spec.tasks):
            raise ValueError(f"the job has no task {found.id.task_id}")
        record = job.vertices[vertex].tasks[task]
        if record.attempts:
            raise ValueError(f"task {found.id.task_id} is done twice")
        attempt = Attempt(
            found.id,
            "",
            found.node,
            found.host,
            found.started,
            found.finished,
            state=AttemptState.SUCCEEDED,
            progress=1.0,
            finished=found.finished,
        )
        record.attempts.append(attempt)
        record.state = TaskState.SUCCEEDED
        job.vertices[vertex].done += 1
        job.vertices[vertex].ended[AttemptState.SUCCEEDED] += 1
        job.announce(attempt, available=True)
