"""Which files of a container are uploaded: by the application's patterns, and each only once in rolling mode.

The patterns are Java's in the application's LogAggregationContext; for file names the two dialects agree.
They are searched for in the name, not matched with the whole of it.
"""

import logging
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from nm.logs.files import LogFile, list_logs
from yaqd.model import ContainerId
from yaqd.proto import yarn_common_pb2 as common

log = logging.getLogger(__name__)

_PATTERN_CHARS_MAX: Final = 4096


@dataclass(frozen=True, slots=True)
class NameFilter:
    """None lets every name pass, or keeps none out."""

    include: re.Pattern[str] | None = None
    exclude: re.Pattern[str] | None = None

    @classmethod
    def parse(cls, include: str, exclude: str) -> "NameFilter":
        return cls(_compile(include), _compile(exclude))

    def passes(self, name: str) -> bool:
        if self.include is not None and not self.include.search(name):
            return False
        return self.exclude is None or not self.exclude.search(name)


@dataclass(frozen=True, slots=True)
class LogSelection:
    """One application's choice of files."""

    ordinary: NameFilter = NameFilter()
    #: of running containers, in rolling mode; None: the application does not roll
    rolled: NameFilter | None = None

    @classmethod
    def parse(cls, context: common.LogAggregationContext | None) -> "LogSelection":
        """Reads an application's patterns; without a context everything is selected."""
        if context is None:
            return cls()
        rolled = None
        if context.rolled_logs_include_pattern:
            rolled = NameFilter.parse(context.rolled_logs_include_pattern, context.rolled_logs_exclude_pattern)
        return cls(NameFilter.parse(context.include_pattern, context.exclude_pattern), rolled)

    def passes(self, name: str, *, has_ended: bool) -> bool:
        is_rolled = self.rolled is not None and self.rolled.passes(name)
        return is_rolled or (has_ended and self.ordinary.passes(name))


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """One state of one file, as rolling mode tells what it has uploaded."""

    container: ContainerId
    name: str
    #: epoch seconds
    modified: float
    #: when it was seen
    size_bytes: int = field(default=0, compare=False)


def select(
    log_dirs: Sequence[Path],
    containers: Iterable[tuple[ContainerId, bool]],
    selection: LogSelection,
    uploaded: Collection[FileIdentity],
) -> list[FileIdentity]:
    """Lists the files of these containers to upload. Each container comes with whether it has ended. Blocking."""
    chosen = []
    for container, has_ended in containers:
        files: list[LogFile] = list_logs(log_dirs, container) or []
        for file in files:
            identity = FileIdentity(container, file.name, file.modified, file.size_bytes)
            if identity not in uploaded and selection.passes(file.name, has_ended=has_ended):
                chosen.append(identity)
    return chosen


def _compile(pattern: str) -> re.Pattern[str] | None:
    """None for an empty pattern, and for one that is none: rather too many logs than none."""
    if not pattern:
        return None
    try:
        if len(pattern) <= _PATTERN_CHARS_MAX:
            return re.compile(pattern)
        problem = f"it is longer than {_PATTERN_CHARS_MAX} characters"
    except (re.error, OverflowError, RecursionError) as error:
        problem = str(error)
    log.warning("log pattern %r is ignored: %s", pattern[:200], problem)
    return None
