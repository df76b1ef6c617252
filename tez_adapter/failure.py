"""What a user reads when a task failed: the error, where in their own code, on which input."""

from dataclasses import dataclass

from tez_adapter.attempt import Attempt
from tez_adapter.data.fetch import FetchFailed
from tez_adapter.script_pipe import ScriptFailed
from yaqd.mapreduce.errors import CorruptDataError, JobError
from yaqd.mapreduce.loading import user_traceback
from yaqd.storage import StorageError

_TEXT_CHARS_MAX = 12_000


@dataclass(frozen=True, slots=True)
class Failure:
    text: str
    #: trying again cannot help
    fatal: bool


def describe_failure(attempt: Attempt, error: BaseException) -> Failure:
    headline = _headline(error)
    lines = [headline, f"  in {attempt.name}{_input_of(attempt)}"]
    fatal = isinstance(error, JobError) and not isinstance(error, CorruptDataError)
    if isinstance(error, JobError):
        detail = error.detail
    elif isinstance(error, ScriptFailed | StorageError | OSError | FetchFailed):
        detail = ""  # their message is the story
    else:
        detail = user_traceback(error)
    # a traceback ends with what the first line says already
    detail = detail.removesuffix(headline).rstrip()
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
    if isinstance(error, ScriptFailed | StorageError | FetchFailed):
        return str(error)
    if isinstance(error, TypeError) and str(error) == "'NoneType' object is not iterable":
        return "map() or reduce() returned None: it must yield pairs, or return a list of them (an empty one for none)"
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _input_of(attempt: Attempt) -> str:
    if not attempt.is_map:
        return f", partition {attempt.index}"
    from tez_adapter.map_task import split_of

    return f", reading {split_of(attempt)}"
