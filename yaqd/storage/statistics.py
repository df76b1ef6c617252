"""Bytes that this process read and wrote, and its calls, by kind of file system: what FILE_BYTES_READ or
HDFS_WRITE_OPS count.

As Hadoop's FileSystem.Statistics: kept for the process, since one task runs in it at a time; a task takes the
difference between its start and its end. Spills and fetched map output do not pass here.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import Any, Final, Literal, TypeVar, cast


@dataclass(slots=True)
class Statistics:
    """What was read and written under one scheme, since the process began."""

    bytes_read: int = 0
    bytes_written: int = 0
    #: calls that look at files: open, list, status
    read_ops: int = 0
    #: calls that change them: create, mkdirs, rename, delete, mode and group
    write_ops: int = 0

    def since(self, earlier: "Statistics | None") -> "Statistics":
        """Return what came after an earlier copy."""
        before = earlier or _NOTHING
        return Statistics(*(getattr(self, f.name) - getattr(before, f.name) for f in fields(self)))


_NOTHING: Final = Statistics()
Call = TypeVar("Call", bound=Callable[..., Any])


def counted(statistics: Statistics, name: Literal["read_ops", "write_ops"]) -> Callable[[Call], Call]:
    """Count each call of the decorated method as one of these."""

    def decorate(method: Call) -> Call:
        @wraps(method)
        def call(*arguments: Any, **options: Any) -> Any:
            setattr(statistics, name, getattr(statistics, name) + 1)
            return method(*arguments, **options)

        return cast(Call, call)

    return decorate


_by_scheme: dict[str, Statistics] = {}


def statistics_of(scheme: str) -> Statistics:
    """Return the live numbers of a scheme (file, hdfs); its file systems add to them."""
    return _by_scheme.setdefault(scheme, Statistics())


def storage_statistics() -> dict[str, Statistics]:
    """Return a copy of the numbers of every scheme that was used so far."""
    return {scheme: found.since(None) for scheme, found in sorted(_by_scheme.items())}
