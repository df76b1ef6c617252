"""What a task's process does and hands back at its end: what the job manager is to be told of the attempt."""

from collections.abc import Callable
from typing import Final

from tez_adapter.tasks.attempt import TaskAttempt
from tez_adapter.tasks.failure import describe_failure
from tez_adapter.tasks.forked import end_copy, has_threads, join_threads
from tez_adapter.tasks.shuffle_input import NoLongerWanted
from tez_adapter.tasks.task_output import Committed
from yaqd.proto import job_pb2 as pb

_DONE: Final = b"D"
_FAILED: Final = b"F"
_UNWANTED: Final = b"U"

Told = pb.TaskDoneRequest | pb.TaskFailedRequest


def outcome_of(attempt: TaskAttempt, work: Callable[[], Committed | None], may_commit: Callable[[], bool]) -> bytes:
    """Run the attempt to its end: the work, what threads of the program still do, the commit."""
    try:
        part = work()
        end_copy()
        if has_threads():
            attempt.status = "waits for threads that the job started"
        join_threads()  # what they do is part of the task
        if part is not None:
            if not may_commit():
                part.abort()
                return _UNWANTED
            part.commit()
        done = pb.TaskDoneRequest(
            attempt=attempt.ref,
            counters=attempt.counter_messages(),
            phases=attempt.phases(),
            notes=attempt.notes(),
        )
    except NoLongerWanted:
        return _UNWANTED
    except BaseException as error:
        end_copy()
        failure = describe_failure(attempt, error)
        told = pb.TaskFailedRequest(attempt=attempt.ref, error=failure.text, fatal=failure.fatal)
        return _FAILED + told.SerializeToString()
    return _DONE + done.SerializeToString()


def told_by(outcome: bytes) -> Told | None:
    """Read what the job manager is to be told; None: nobody wants the attempt any more."""
    kind, message = outcome[:1], outcome[1:]
    if kind == _DONE:
        return pb.TaskDoneRequest.FromString(message)
    return pb.TaskFailedRequest.FromString(message) if kind == _FAILED else None
