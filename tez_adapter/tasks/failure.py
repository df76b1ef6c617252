"""What a user reads when a task failed: the error, where in their own code, on which input."""

import re
import signal
from dataclasses import dataclass

from tez_adapter.data.fetch import FetchFailed
from tez_adapter.streaming.script_pipe import ScriptFailed
from tez_adapter.tasks.attempt import TaskAttempt
from tez_adapter.tasks.pairs import is_raised_in
from yaqd.mapreduce.errors import CorruptDataError, JobError
from yaqd.mapreduce.loading import user_traceback
from yaqd.model.endings import as_utf8, without_middle
from yaqd.proto import job_pb2 as pb
from yaqd.storage import StorageError, writers

_TEXT_CHARS_MAX = 12_000
_TRACEBACK = "Traceback (most recent call last)"
#: Python's words between an exception and the one that came of it, where no line of the job's stands below them
_CHAINED = re.compile(
    r"\n\n(The above exception was the direct cause of the following exception"
    r"|During handling of the above exception, another exception occurred):\Z"
)
_NOT_TWO = re.compile(r"cannot unpack non-iterable|(too many|not enough) values to unpack")
_NOT_ITERABLE = re.compile(r"'(\w+)' object is not iterable")
_NOT_SENT = "; tasks have what is installed on the nodes and what is sent along: send it with --py-files"

_CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT)


@dataclass(frozen=True, slots=True)
class Failure:
    text: str
    #: trying again cannot help
    fatal: bool


def describe_failure(attempt: TaskAttempt, error: BaseException) -> Failure:
    headline = _headline(error, attempt.is_map)
    lines = [headline, f"  in {attempt.name}{_input_of(attempt)}"]
    fatal = isinstance(error, JobError) and not isinstance(error, CorruptDataError)
    if isinstance(error, JobError):
        detail = error.detail
    elif isinstance(error, ScriptFailed | StorageError | FetchFailed):
        detail = ""  # their message is the story
    elif not _is_of_the_job(error) and (isinstance(error, OSError) or not headline.startswith(type(error).__name__)):
        detail = ""
    else:
        detail = user_traceback(error)
    if detail.endswith(headline):  # the first line says it already; here the exception's module stands before it
        detail = _CHAINED.sub("", detail[: detail.rfind("\n", 0, len(detail) - len(headline)) + 1].rstrip())
        detail = detail if _TRACEBACK in detail else ""
    if detail:
        lines.append(detail)
    return Failure(without_middle(as_utf8("\n".join(lines)), _TEXT_CHARS_MAX), fatal)


def describe_death(attempt: TaskAttempt, code: int) -> Failure:
    """Describe the end of an attempt whose process ended by itself. `code`: its exit status.

    A negative one is the number of the signal that ended it.
    """
    if code < 0:
        what = f"was killed by signal {-code}{_named(-code)}"
    else:
        what = (
            f"ended with exit status {code} before its task was done: the job's code has called os._exit(), closed "
            "files that it did not open (os.closerange()), or ended the process in another way; let its functions "
            "return, or raise an exception"
        )
    return Failure(f"the task's process {what}\n  in {attempt.name}{_input_of(attempt)}", fatal=False)


def _named(number: int) -> str:
    try:
        name = f" ({signal.Signals(number).name})"
    except ValueError:
        name = ""
    if number == signal.SIGKILL:
        return f"{name}, often because the machine had no memory left: let it hold less"
    return f"{name}, as a library does that crashes" if number in _CRASHES else name


def _headline(error: BaseException, is_map: bool) -> str:
    if isinstance(error, JobError):
        return str(error)
    if isinstance(error, SystemExit):
        return f"the job's code called exit({error.code!r}): raise an exception instead"
    if isinstance(error, KeyboardInterrupt):
        return "KeyboardInterrupt: the job's code raised it, or the task's process got SIGINT"
    if isinstance(error, MemoryError):
        return "out of memory: give the task more (mapreduce.map.memory.mb, mapreduce.reduce.memory.mb) or hold less"
    if isinstance(error, ScriptFailed | StorageError | FetchFailed):
        return str(error)
    if isinstance(error, TypeError) and (what := _not_pairs(error)):
        return (
            f"map() or reduce() returned {what}: it must yield pairs, or return a list of them (an empty one for none)"
        )
    if (
        isinstance(error, TypeError | ValueError)
        and _NOT_TWO.match(_said(error))
        and is_raised_in(error, writers.__file__)
    ):
        return f"{'map' if is_map else 'reduce'}() must yield pairs of key and value: {error}"
    named = f"{type(error).__name__}: {said}" if (said := _said(error)) else type(error).__name__
    return named + _NOT_SENT if isinstance(error, ModuleNotFoundError) and _is_of_the_job(error) else named


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "<its __str__() fails>"


def _is_of_the_job(error: BaseException) -> bool:
    """Whether lines of the job's own code led to it."""
    return _TRACEBACK in user_traceback(error)


def _not_pairs(error: TypeError) -> str:
    """What the job's function returned instead of pairs; "" where the error came out of its own lines."""
    kind = _NOT_ITERABLE.fullmatch(_said(error))
    if kind is None or _is_of_the_job(error):
        return ""
    return "None" if kind[1] == "NoneType" else f"a value of type {kind[1]}"


def _input_of(attempt: TaskAttempt) -> str:
    if attempt.description.kind == pb.TaskDescription.REDUCE:
        return f", partition {attempt.index}"
    if not attempt.is_map:
        return ""  # the line says where it was
    if attempt.reading is not None:
        return f", reading {attempt.reading()}"
    from tez_adapter.tasks.map_task import split_of

    return f", reading {split_of(attempt)}"
