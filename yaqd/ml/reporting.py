"""`report`: one line in any training loop that joins it to the cluster.

    said = report(iteration=i, loss=loss)
    if said.stop:
        break

Where nobody listens, it looks at its arguments, as a cluster does, and does nothing.
"""

import importlib
import operator
import os
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Final, Literal

from yaqd.ml.channel import Channel, Said

#: names a function that returns the channel, as `module:function`
VARIABLE: Final = "YAQ_REPORT_CHANNEL"
#: a module elsewhere is not loaded: what stands in an environment must not choose any code at all
_PREFIX: Final = "tez_adapter."

#: what a message holds
_ITERATION_MAX: Final = (1 << 63) - 1
#: characters of a value in an error
_SHOWN_MAX: Final = 80

_lock: Final = threading.Lock()
_channel: Channel | None = None
#: the environment is looked at once, by the first report
_is_sought = False
#: the answer where nobody listens
_alone: Said | None = None


def report(
    iteration: int,
    loss: float | None = None,
    checkpoint: Callable[[], bytes] | None = None,
    *,
    threads: Literal["auto"] | None = None,
    **metrics: float,
) -> Said:
    """Report an iteration that is done; return what the cluster says.

    `iteration` counts those that are done: after the first it is 1. The loss before the first is reported as 0.
    `loss` falls as the model gets better. Without it the job is not scheduled by quality. `checkpoint` returns what
    the program can go on from (see `last_checkpoint`). It is called only when a checkpoint is wanted. `threads="auto"`
    sizes the thread pools of BLAS, OpenMP and PyTorch by the cores that the job has. `metrics` are shown and nothing
    more. TypeError: something is no number.
    """
    channel = _channel if _is_sought else _seek()
    done = _whole(iteration)
    if loss is not None:
        loss = _number("loss", loss)
    if checkpoint is not None and not callable(checkpoint):
        raise TypeError(f"report(checkpoint={short(checkpoint)}): checkpoint must be a function that returns bytes")
    if metrics:
        metrics = {name: _number(name, value) for name, value in metrics.items()}
    said = _said_to_nobody() if channel is None else channel.report(done, loss, checkpoint, metrics)
    if threads is not None:
        from yaqd.ml.threads import size_pools  # most programs have no need of it

        size_pools(said.cores)
    return said


def report_metrics(iteration: int, metrics: Mapping[str, float]) -> Said:
    """Report metrics by their names, whatever these are, without a checkpoint. TypeError: one is no number."""
    channel = _channel if _is_sought else _seek()
    done = _whole(iteration)
    numbers = {name: _number(name, value) for name, value in metrics.items()}
    loss = numbers.pop("loss", None)
    return _said_to_nobody() if channel is None else channel.report(done, loss, None, numbers)


def last_checkpoint() -> bytes | None:
    """Return the last checkpoint of an earlier attempt of this job, for the program to go on from; None at a first
    attempt and outside a cluster."""
    channel = _channel if _is_sought else _seek()
    return None if channel is None else channel.last_checkpoint()


def set_channel(channel: Channel | None) -> None:
    """Have the reports of this process go by `channel`; None: nowhere. The environment is not asked then."""
    global _channel, _is_sought
    with _lock:
        _channel, _is_sought = channel, True


def usable_cores() -> float:
    """Return the cores that this process may run on."""
    return float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def _whole(iteration: object) -> int:
    try:
        number = operator.index(iteration)  # type: ignore[arg-type]
        if -_ITERATION_MAX <= number <= _ITERATION_MAX:
            return number
        return _ITERATION_MAX if number > 0 else -_ITERATION_MAX
    except Exception:
        raise TypeError(f"report(iteration={short(iteration)}): iteration must be a whole number") from None


def _number(name: str, value: object) -> float:
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        return float(value)  # type: ignore[arg-type]
    except Exception:  # a library's numbers raise what they like
        raise TypeError(f"report({name}={short(value)}): {name} must be a number") from None


def short(value: object) -> str:
    """Return a value in a short line, whatever it is."""
    try:
        text = " ".join(repr(value).split())
    except Exception:
        text = f"of the type {type(value).__name__}"
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."


def _said_to_nobody() -> Said:
    global _alone
    if _alone is None:
        _alone = Said(usable_cores())
    return _alone


def _seek() -> Channel | None:
    """Load the channel that the environment names. A program trains on where that fails: a line says why it is not
    heard."""
    global _channel, _is_sought
    with _lock:
        if _is_sought:
            return _channel
        named = os.environ.get(VARIABLE, "")
        try:
            _channel = _load(named) if named else None
        except Exception as error:
            print(f"yaqd.ml: no report is heard: {VARIABLE}={named}: {error}", file=sys.stderr)
        _is_sought = True
        return _channel


def _load(named: str) -> Channel:
    module, colon, function = named.partition(":")
    if not colon or not module.startswith(_PREFIX):
        raise ValueError(f"not of the form {_PREFIX}MODULE:FUNCTION")
    channel: Channel = getattr(importlib.import_module(module), function)()
    return channel
