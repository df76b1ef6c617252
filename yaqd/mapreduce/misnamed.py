"""Names in a job's class that were meant for one of Job's: `def mapper`, `ouput_format = "json"`.

Nothing reads such a name, so the job would run as if the line were not there.
"""

import dis
import inspect
from collections.abc import Collection, Iterator, Mapping
from difflib import SequenceMatcher
from types import CodeType
from typing import Any, Final

from yaqd.mapreduce.errors import JobError
from yaqd.mapreduce.job import Job

_METHODS: Final = ("setup", "map", "combine", "reduce", "partition", "cleanup")
_ATTRIBUTES: Final = ("name", "input_format", "output_format", "reduces", "partitioner")
#: a job that overrides one of these does something of its own
_WORKING: Final = ("map", "combine", "reduce", "partition", "cleanup")
#: run before a task's first record
_BEGINNING: Final = ("__init__", "setup")
#: what mrjob and Hadoop call them
_ELSEWHERE: Final = {
    "mapper": "map",
    "reducer": "reduce",
    "combiner": "combine",
    "partitioner": "partition",
    "getpartition": "partition",
    "mapperinit": "setup",
    "reducerinit": "setup",
    "mapperfinal": "cleanup",
    "reducerfinal": "cleanup",
}
#: how alike names are, from 0 to 1: in a job that would do nothing of its own, in any other
_NEAR_METHOD: Final = 0.6
_NEAR_ATTRIBUTE: Final = 0.8
_VERY_NEAR: Final = 0.9


def refuse_misnamed(job: type[Job], path: str) -> None:
    """Raise JobError for a job that is the identity because its methods, or attributes, have other names than Job's."""
    if callable(job.partitioner):
        raise JobError(f"{path}: {job.__name__} has a method partitioner; did you mean partition?")
    if _works(job):
        return
    used = _words_of(job, _BEGINNING)
    near = _misnamed(job, _NEAR_METHOD, _NEAR_ATTRIBUTE)
    found = {name: meant for name, meant in near if name not in used and (meant != "setup" or _is_setup(name))}
    if not found:
        return
    what = " and ".join(f"{_kind(job, name)} {name}" for name in found)
    meant = " and ".join(dict.fromkeys(found.values()))
    raise JobError(f"{path}: {job.__name__} has {what}; did you mean {meant}?")


def misnamed_notes(job: type[Job]) -> list[str]:
    """Return a line for each name that nothing reads and that is very near to one that Job has."""
    names = _misnamed(job, _VERY_NEAR, _VERY_NEAR)
    found = {name: meant for name, meant in names if not _overrides(job, meant) and not _is_longer(name, meant)}
    if not found:
        return []
    used = _words_of(job)
    return [
        f"{job.__name__} has {_kind(job, name)} {name}, which nothing reads; did you mean {meant}?"
        for name, meant in found.items()
        if name not in used
    ]


def _kind(job: type[Job], name: str) -> str:
    return "a method" if callable(getattr(job, name)) else "an attribute"


def _works(job: type[Job]) -> bool:
    """Whether it overrides what makes a job, be it from __init__() or setup()."""
    return any(_overrides(job, name) for name in _WORKING) or any(
        (instruction.opname == "STORE_ATTR" and instruction.argval in _WORKING) or instruction.argval == "setattr"
        for code in _codes(job, _BEGINNING)
        for instruction in dis.get_instructions(code)
    )


def _is_setup(name: str) -> bool:
    """A setup() alone makes no job: what is merely like it (`step`) may be a helper that nobody calls."""
    return _plain(name) in _ELSEWHERE or _likeness(_plain(name), "setup") >= _VERY_NEAR


def _overrides(job: type[Job], name: str) -> bool:
    return getattr(job, name) is not getattr(Job, name)


def _is_longer(name: str, meant: str) -> bool:
    """`reduced`, `maps` and `partitions` are names for a job's own things."""
    return _plain(name).startswith(_plain(meant)) and _plain(name) != _plain(meant) and _plain(name) not in _ELSEWHERE


def _misnamed(job: type[Job], near_method: float, near_attribute: float) -> Iterator[tuple[str, str]]:
    """Names of the class, and of those between it and Job, each with the name of Job's that it is like."""
    for name, value in _own(job).items():
        if name.startswith("_") or hasattr(Job, name):
            continue
        if callable(value) or isinstance(value, staticmethod | classmethod):
            meant = _ELSEWHERE.get(_plain(name)) or _nearest(name, _METHODS, near_method)
        elif isinstance(value, str | int):
            meant = _nearest(name, _ATTRIBUTES, near_attribute)
        else:
            meant = ""
        if meant:
            yield name, meant


def _own(job: type[Job]) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for base in reversed(_bases(job)):
        found.update(vars(base))
    return found


def _bases(job: type[Job]) -> list[type]:
    return [base for base in job.__mro__ if base not in Job.__mro__]


def _nearest(name: str, names: tuple[str, ...], cutoff: float) -> str:
    """The name that is most like it; "" where none is like it enough."""
    likeness, nearest = max((_likeness(_plain(name), _plain(known)), known) for known in names)
    return nearest if likeness >= cutoff else ""


def _likeness(name: str, known: str) -> float:
    if name[:1] == known[:1] and sorted(name) == sorted(known):
        return 1  # letters that have changed places
    return SequenceMatcher(None, name, known).ratio()


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _words_of(job: type[Job], methods: Collection[str] = ()) -> set[str]:
    """Names and texts in the lines of the class's methods, or of these alone: what they may read."""
    found: set[str] = set()
    for code in _codes(job, methods):
        found.update(code.co_names)
        found.update(constant for constant in code.co_consts if isinstance(constant, str))
    return found


def _codes(job: type[Job], methods: Collection[str] = ()) -> Iterator[CodeType]:
    """The code of the class's methods, or of these alone, and of functions within."""
    pending: list[Any] = [
        _code(part)
        for base in _bases(job)
        for name, value in vars(base).items()
        if not methods or name in methods
        for part in ((value.fget, value.fset) if isinstance(value, property) else (value,))
    ]
    while pending:
        code = pending.pop()
        if isinstance(code, CodeType):
            yield code
            pending += code.co_consts


def _code(value: Any) -> Any:
    function: Any = getattr(value, "__func__", value)
    return getattr(inspect.unwrap(function) if callable(function) else function, "__code__", None)
