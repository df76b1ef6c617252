"""What a scheduler was told and what it decided, as lines of JSON that can be played again.

The first line has the format, the queues and the limits that the scheduler began with. Each further one has the time,
an event and the decisions that it led to (null where the event was refused). Played into a new scheduler, the events
lead to the same decisions, or the first line where they do not is named.

A value of a class is an object with one name, the class's, and the values of its fields in their order. Only classes of
the scheduler's own vocabulary are made when a line is read.
"""

import dataclasses
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import ModuleType
from typing import Any, Final

from rm.scheduler import decisions, events, limits
from rm.scheduler.asks import job_starvation
from rm.scheduler.decisions import Outcome
from rm.scheduler.events import SchedulerEvent
from rm.scheduler.limits import SchedulerLimits
from rm.scheduler.node_queues import spec as node_queues_spec
from rm.scheduler.opportunistic import placing, room
from rm.scheduler.preemption import spec as preemption_spec
from rm.scheduler.quality import spec as quality_spec
from rm.scheduler.queues import spec as queues_spec
from rm.scheduler.queues.spec import QueueConfigError, SchedulerSpec
from rm.scheduler.scheduler import Scheduler
from rm.scheduler.stages import spec as stages_spec
from rm.scheduler.view import calculators
from yaqd import model
from yaqd.model import stages as model_stages
from yaqd.model import training as model_training
from yaqd.policies.asks import placement, rows
from yaqd.policies.asks.table import TooManyAsks
from yaqd.policies.queueing import left, place_scores

FORMAT: Final = "yaqd-scheduler-record"
VERSION: Final = 1
#: of one line when it is read
LINE_CHARS_MAX: Final = 64 << 20
_DICT: Final = "{}"
_SET: Final = "<>"

_MODULES: Final[tuple[ModuleType, ...]] = (
    *(calculators, decisions, events, job_starvation, room, node_queues_spec, placement, placing),
    *(
        preemption_spec,
        quality_spec,
        queues_spec,
        stages_spec,
        limits,
        model,
        model_stages,
        model_training,
        left,
        place_scores,
        rows,
    ),
)


class BadRecord(ValueError):
    """A line that is not of a record."""


def _vocabulary() -> dict[str, type[Any]]:
    found: dict[str, type[Any]] = {}
    for module in _MODULES:
        for name, kind in vars(module).items():
            if isinstance(kind, type) and _fields(kind) is not None:
                found[name] = kind
    return found


def _fields(kind: type[Any]) -> tuple[str, ...] | None:
    """Return the names of what a value of the class is made of; None: it is no class of values."""
    if issubclass(kind, Enum):
        return ()
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return tuple(kind._fields)
    if kind in calculators.CALCULATORS.values():
        return ()
    return None


_CLASSES: Final = _vocabulary()


def to_plain(value: Any) -> Any:
    """Return what `json` writes for the value. Raises TypeError for what a record cannot hold."""
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is tuple or kind is list:
        return [to_plain(one) for one in value]
    if kind in (frozenset, set):
        return {_SET: sorted((to_plain(one) for one in value), key=json.dumps)}
    if isinstance(value, Mapping):
        return {_DICT: [[to_plain(key), to_plain(one)] for key, one in value.items()]}
    if isinstance(value, Enum) and _CLASSES.get(kind.__name__) is kind:
        return {kind.__name__: value.name}
    names = _fields(kind) if _CLASSES.get(kind.__name__) is kind else None
    if names is None:
        raise TypeError(f"a record cannot hold a {kind.__module__}.{kind.__qualname__}")
    return {kind.__name__: [to_plain(getattr(value, name)) for name in names]}


def from_plain(plain: Any) -> Any:
    """Return the value again. Raises BadRecord."""
    if isinstance(plain, list):
        return tuple(map(from_plain, plain))
    if not isinstance(plain, dict):
        return plain
    if len(plain) != 1:
        raise BadRecord(f"an object of {len(plain)} names where one class was expected")
    ((name, body),) = plain.items()
    if name == _SET:
        return frozenset(map(from_plain, body))
    if name == _DICT:
        return {from_plain(key): from_plain(one) for key, one in body}
    kind = _CLASSES.get(name)
    if kind is None:
        raise BadRecord(f"no class of the scheduler is called {name[:100]!r}")
    try:
        if issubclass(kind, Enum):
            return kind[body]
        return kind(*map(from_plain, body))
    except (TypeError, ValueError, KeyError) as error:
        raise BadRecord(f"no {name} can be made of this: {error}") from None


def _line(*values: Any) -> str:
    return json.dumps(to_plain(values), separators=(",", ":"))


def header(spec: SchedulerSpec, limits: SchedulerLimits) -> str:
    """Return the record's first line."""
    return _line(FORMAT, VERSION, spec, limits)


def entry(now: float, event: SchedulerEvent, decided: Iterable[Outcome] | None) -> str:
    """Return the line of one event; `decided` is None where it was refused."""
    return _line(now, event, None if decided is None else tuple(decided))


@dataclass(frozen=True, slots=True)
class Difference:
    """The first event that leads to other decisions than it did."""

    #: of the file, from 1
    line: int
    now: float
    event: SchedulerEvent
    recorded: tuple[Outcome, ...] | None
    decided: tuple[Outcome, ...] | None


@dataclass(frozen=True, slots=True)
class Replayed:
    events: int
    decisions: int
    #: None: all are the same
    difference: Difference | None


def replay(lines: Iterable[str], told: Callable[[int], None] = lambda events: None) -> Replayed:
    """Play a record into a new scheduler, up to the first difference. Raises BadRecord, which names the line.

    `told` hears of the number of events so far.
    """
    numbered = enumerate(lines, 1)
    scheduler_again = _begin(next(numbered, (1, ""))[1])
    count = decided_count = 0
    for number, text in numbered:
        now, event, recorded = _entry(number, text)
        decided: tuple[Outcome, ...] | None
        try:
            decided = tuple(scheduler_again.handle(event, now))
        except (TooManyAsks, QueueConfigError):
            decided = None
        count += 1
        decided_count += len(decided or ())
        told(count)
        if decided != recorded:
            return Replayed(count, decided_count, Difference(number, now, event, recorded, decided))
    return Replayed(count, decided_count, None)


def _parsed(number: int, text: str) -> tuple[Any, ...]:
    if len(text) > LINE_CHARS_MAX:
        raise BadRecord(f"line {number} has {len(text)} characters: no record has lines like that")
    try:
        found = from_plain(json.loads(text))
    except (ValueError, TypeError, RecursionError) as error:
        raise BadRecord(f"line {number}: {error}") from None
    if not isinstance(found, tuple):
        raise BadRecord(f"line {number} is no list")
    return found


def _begin(text: str) -> Scheduler:
    if not text.startswith(f'["{FORMAT}",'):
        raise BadRecord("line 1 is not the beginning of a record of a scheduler's events")
    match _parsed(1, text):
        case (_, int(version), SchedulerSpec() as spec, SchedulerLimits() as limits):
            if version != VERSION:
                raise BadRecord(f"a record of version {version}: this yaqd reads version {VERSION}")
            return Scheduler(spec, limits)
    raise BadRecord("line 1 has no queues and limits of a scheduler")


def _entry(number: int, text: str) -> tuple[float, SchedulerEvent, tuple[Outcome, ...] | None]:
    match _parsed(number, text):
        case (int() | float() as now, event, None | tuple() as decided) if math.isfinite(now) and _is_event(event):
            return now, event, decided
    raise BadRecord(f"line {number} is no time, event and decisions")


def _is_event(found: Any) -> bool:
    return type(found).__module__ == events.__name__
