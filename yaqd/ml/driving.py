"""A data-parallel job's methods, called: each mistake in one is one line with its partition and iteration.

`drive` is what a driver process does, here and on a cluster alike. State and partials pass it as bytes
(`yaqd.ml.arrays`) at all times, so that a model does not depend on where it was made.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from yaqd.mapreduce.errors import CorruptDataError, JobError, UnserializableError, shown
from yaqd.mapreduce.loading import user_traceback
from yaqd.ml.arrays import from_bytes, to_bytes
from yaqd.ml.iterative import IterativeJob, Partition
from yaqd.ml.reporting import last_checkpoint, report, short

#: computes a state's step on all partitions: frame in, the partials' frames out, in the order of the partitions
EvaluateFrames = Callable[[bytes], list[bytes]]
#: what may hold arrays, and how deep they are looked for
_HOLDERS: Final = (np.ndarray, dict, list, tuple)
_DEPTH_MAX: Final = 4
#: keys of a checkpoint
_DONE: Final = "next"
_STATE: Final = "state"


class TrainingError(JobError):
    """A method of a training job that failed, or returned what it must not."""


def call_load(job: IterativeJob, partition: Partition) -> Any:
    """Return a partition's data, its arrays read-only. TrainingError names the partition.

    What `step` changed in them would be lost where another worker loads the partition, and the model another one then.
    """
    data = _call(job, "load", f"on partition {partition.index}", partition)
    _freeze(data, 0)
    return data


def call_step(job: IterativeJob, state: bytes, partition: int, data: Any, iteration: int) -> bytes:
    """Return the frame of a partition's partial. `iteration` counts from 1; TrainingError names both.

    Each call has the state of this frame for itself, as what one put into a list of it would else be there for the next
    ones of the same process: the model would depend on who computes what.
    """
    where = f"on partition {partition} in iteration {iteration}"
    return _framed(job, "step", where, _call(job, "step", where, from_bytes(state), data))


def drive(job: IterativeJob, evaluate: EvaluateFrames) -> bytes:
    """Train to the job's last iteration, or until the cluster says stop; return the frame of the last state, once the
    job's `done` has had it.

    Goes on from the last checkpoint where there is one. A job with `run` begins anew: it is for `evaluate` to answer
    again what it has answered already. TrainingError: a method of the job failed.
    """
    if job.overrides_run():
        frame = _framed(job, "run", "", _call(job, "run", "", _decoding(job, evaluate)))
    else:
        frame = _iterated(job, evaluate)
    _call(job, "done", "", from_bytes(frame))
    return frame


def _iterated(job: IterativeJob, evaluate: EvaluateFrames) -> bytes:
    done, frame = _begin(job)
    for iteration in range(done + 1, job.limit + 1):
        where = f"in iteration {iteration}"
        partials = [from_bytes(partial) for partial in evaluate(frame)]
        combined = _call(job, "combine", where, from_bytes(frame), partials)
        state, loss = _pair(job, where, combined)
        frame = _framed(job, "combine", where, state)
        if report(iteration, loss, _Checkpoint(iteration, frame)).stop:
            break
    return frame


class _Checkpoint:
    """What training goes on from."""

    def __init__(self, iteration: int, frame: bytes) -> None:
        self._iteration = iteration
        self._frame = frame

    def __call__(self) -> bytes:
        return to_bytes({_DONE: self._iteration, _STATE: self._frame})


def _begin(job: IterativeJob) -> tuple[int, bytes]:
    """Return how many iterations are done, and the frame of the state after them."""
    saved = last_checkpoint()
    if saved is None:
        return 0, _framed(job, "initial", "", _call(job, "initial", ""))
    found = from_bytes(saved)
    if not isinstance(found, dict) or type(found.get(_DONE)) is not int or not isinstance(found.get(_STATE), bytes):
        raise CorruptDataError("a checkpoint is none of a data-parallel job")
    return found[_DONE], found[_STATE]


def _decoding(job: IterativeJob, evaluate: EvaluateFrames) -> Callable[[Any], list[Any]]:
    def decoded(state: Any) -> list[Any]:
        return [from_bytes(partial) for partial in evaluate(_framed(job, "run", "", state))]

    return decoded


def _freeze(data: Any, depth: int) -> None:
    """Make the arrays read-only that data is, or holds in dicts, lists and tuples."""
    if isinstance(data, np.ndarray):
        data.flags.writeable = False
    elif isinstance(data, dict | list | tuple) and depth < _DEPTH_MAX:
        for part in data.values() if isinstance(data, dict) else data:
            if isinstance(part, _HOLDERS):
                _freeze(part, depth + 1)


def _call(job: IterativeJob, method: str, where: str, *arguments: Any) -> Any:
    try:
        return getattr(job, method)(*arguments)
    except JobError:
        raise
    except (Exception, SystemExit) as error:
        raise TrainingError(
            f"{_named(job, method, where)} failed: {_one_line(error)}", detail=user_traceback(error)
        ) from None


def _one_line(error: BaseException) -> str:
    try:
        said = " ".join(str(error).split())
    except Exception:  # an exception of the user's own
        said = ""
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _framed(job: IterativeJob, method: str, where: str, value: Any) -> bytes:
    try:
        return to_bytes(value)
    except UnserializableError as error:
        raise TrainingError(f"{_named(job, method, where)} gave {error}") from None


def _pair(job: IterativeJob, where: str, combined: Any) -> tuple[Any, float]:
    if not isinstance(combined, Sequence) or isinstance(combined, str | bytes) or len(combined) != 2:
        raise TrainingError(f"{_named(job, 'combine', where)} gave {shown.repr(combined)}: return (state, loss)")
    state, loss = combined
    try:
        if isinstance(loss, str | bytes):
            raise TypeError
        return state, float(loss)
    except Exception:  # a library's numbers raise what they like
        raise TrainingError(f"{_named(job, 'combine', where)} gave the loss {short(loss)}: return a number") from None


def _named(job: IterativeJob, method: str, where: str) -> str:
    return f"{type(job).__name__}.{method}() {where}".rstrip()
