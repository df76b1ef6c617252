"""The states of a job's parts, as tables.

A *task* is wanted work; an *attempt* is one try at it in one container; a *container* is a process on a node
that may run many attempts one after another. A pair that is absent from a table is illegal: `advance` returns
None for it, the machine notes the pair with both names and changes nothing.

A task goes WAITING -> PENDING when the vertices it reads from are far enough, PENDING -> RUNNING when a container takes
it. It goes back to PENDING when its attempt failed or was killed. It goes from SUCCEEDED back to PENDING when its
output is lost while somebody still needs it. An attempt that was *killed* was not at fault; one that *failed* counts.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, TypeVar

#: of a container of ours that has no room for the folder of the task that it was given (EX_IOERR)
EXIT_NO_ROOM: Final = 74


class JobState(StrEnum):
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    KILLED = "KILLED"


class TaskState(StrEnum):
    WAITING = "WAITING"
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


class TaskEvent(StrEnum):
    READY = "READY"
    ASSIGNED = "ASSIGNED"
    DONE = "DONE"
    TRY_AGAIN = "TRY_AGAIN"
    GIVE_UP = "GIVE_UP"
    OUTPUT_LOST = "OUTPUT_LOST"


class AttemptState(StrEnum):
    ASSIGNED = "ASSIGNED"
    RUNNING = "RUNNING"
    COMMITTING = "COMMITTING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    KILLED = "KILLED"


class AttemptEvent(StrEnum):
    FETCHED = "FETCHED"
    COMMIT = "COMMIT"
    DONE = "DONE"
    FAIL = "FAIL"
    KILL = "KILL"
    #: what looked like its fault was its node's
    EXCUSE = "EXCUSE"


class ContainerState(StrEnum):
    #: holds its first attempt; its process has not been heard yet
    STARTING = "STARTING"
    BUSY = "BUSY"
    #: its process waits for another task
    IDLE = "IDLE"
    #: told to end; its completion is still to come
    STOPPING = "STOPPING"


class ContainerEvent(StrEnum):
    HEARD = "HEARD"
    ATTEMPT_ENDED = "ATTEMPT_ENDED"
    TASK_GIVEN = "TASK_GIVEN"
    STOP = "STOP"


TASK_TABLE: Mapping[tuple[TaskState, TaskEvent], TaskState] = {
    (TaskState.WAITING, TaskEvent.READY): TaskState.PENDING,
    (TaskState.PENDING, TaskEvent.ASSIGNED): TaskState.RUNNING,
    (TaskState.RUNNING, TaskEvent.DONE): TaskState.SUCCEEDED,
    (TaskState.RUNNING, TaskEvent.TRY_AGAIN): TaskState.PENDING,
    (TaskState.RUNNING, TaskEvent.GIVE_UP): TaskState.FAILED,
    (TaskState.SUCCEEDED, TaskEvent.OUTPUT_LOST): TaskState.PENDING,
    (TaskState.SUCCEEDED, TaskEvent.GIVE_UP): TaskState.FAILED,
}

ATTEMPT_TABLE: Mapping[tuple[AttemptState, AttemptEvent], AttemptState] = {
    (AttemptState.ASSIGNED, AttemptEvent.FETCHED): AttemptState.RUNNING,
    # a command's container has no process of ours in it: its exit alone says how it went
    (AttemptState.ASSIGNED, AttemptEvent.DONE): AttemptState.SUCCEEDED,
    (AttemptState.ASSIGNED, AttemptEvent.FAIL): AttemptState.FAILED,
    (AttemptState.ASSIGNED, AttemptEvent.KILL): AttemptState.KILLED,
    (AttemptState.RUNNING, AttemptEvent.COMMIT): AttemptState.COMMITTING,
    (AttemptState.RUNNING, AttemptEvent.DONE): AttemptState.SUCCEEDED,
    (AttemptState.RUNNING, AttemptEvent.FAIL): AttemptState.FAILED,
    (AttemptState.RUNNING, AttemptEvent.KILL): AttemptState.KILLED,
    # a task may ask again when the answer was lost
    (AttemptState.COMMITTING, AttemptEvent.COMMIT): AttemptState.COMMITTING,
    (AttemptState.COMMITTING, AttemptEvent.DONE): AttemptState.SUCCEEDED,
    (AttemptState.COMMITTING, AttemptEvent.FAIL): AttemptState.FAILED,
    (AttemptState.COMMITTING, AttemptEvent.KILL): AttemptState.KILLED,
    # the output, not the try, went wrong: unreachable counts, a lost node does not
    (AttemptState.SUCCEEDED, AttemptEvent.FAIL): AttemptState.FAILED,
    (AttemptState.SUCCEEDED, AttemptEvent.KILL): AttemptState.KILLED,
    # tasks notice sooner than the ResourceManager that a node is gone
    (AttemptState.FAILED, AttemptEvent.EXCUSE): AttemptState.KILLED,
}

CONTAINER_TABLE: Mapping[tuple[ContainerState, ContainerEvent], ContainerState] = {
    (ContainerState.STARTING, ContainerEvent.HEARD): ContainerState.BUSY,
    (ContainerState.STARTING, ContainerEvent.ATTEMPT_ENDED): ContainerState.STARTING,
    (ContainerState.STARTING, ContainerEvent.STOP): ContainerState.STOPPING,
    (ContainerState.BUSY, ContainerEvent.ATTEMPT_ENDED): ContainerState.IDLE,
    (ContainerState.BUSY, ContainerEvent.STOP): ContainerState.STOPPING,
    (ContainerState.IDLE, ContainerEvent.TASK_GIVEN): ContainerState.BUSY,
    (ContainerState.IDLE, ContainerEvent.STOP): ContainerState.STOPPING,
}

S = TypeVar("S", bound=StrEnum)
E = TypeVar("E", bound=StrEnum)


def advance(table: Mapping[tuple[S, E], S], state: S, event: E) -> S | None:
    """Return the next state, or None when the table has no such pair."""
    return table.get((state, event))
