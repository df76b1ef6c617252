"""What a user reads when a task failed: the error, where in their own code, on which input."""

from dataclasses import dataclass

from tez_adapter.attempt import Attempt
from yaqd.mapreduce.errors import CorruptDataError, JobError
from yaqd.mapreduce.loading import user_traceback

_TEXT_CHARS_MAX = 12_000


@dataclass(frozen=True, slots=True)
class Failure:
    text: str
    #: trying again cannot help
    fatal: bool


def describe_failure(attempt: Attempt, error: BaseException) -> Failure:
    lines = [_headline(error), f"  in {attempt.name}{_input_of(attempt)}"]
    if isinstance(error, JobError):
        detail = error.detail
        fatal = not isinstance(error, CorruptDataError)
    else:
        detail = user_traceback(error)
        fatal = False
    if detail:
        lines.append(detail)
    return Failure("\n".join(lines)[:_TEXT_CHARS_MAX], fatal)


def _headline(error: BaseException) -> str:
    if isinstance(error, JobError):
        return str(error)
    if isinstance(error, SystemExit):
        return f"the job's code called exit({error.code!r}): raise an exception instead"
    if isinstance(error, MemoryError):
        return "out of memory: give the task more (mapreduce.map.memory.mb, mapreduce.reduce.memory.mb) or hold less"
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _input_of(attempt: Attempt) -> str:
    if not attempt.is_map:
        return f", partition {attempt.index}"
    from tez_adapter.map_task import split_of

    return f", reading {split_of(attempt)}"
