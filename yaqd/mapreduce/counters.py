"""Counters: sums kept by each task and added up by the job, under Hadoop's groups and names.

A counter belongs to a group; Hadoop's clients show the standard groups under the Java enum's name, so ours use these.
The number of counters is bounded as in Hadoop (`mapreduce.job.counters.max`): a name made from data would otherwise
grow every message between task and job manager.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Final, Self, overload

from yaqd.mapreduce.errors import JobError, TooManyCounters

TASK_GROUP: Final = "org.apache.hadoop.mapreduce.TaskCounter"
JOB_GROUP: Final = "org.apache.hadoop.mapreduce.JobCounter"
FILE_SYSTEM_GROUP: Final = "org.apache.hadoop.mapreduce.FileSystemCounter"
INPUT_GROUP: Final = "org.apache.hadoop.mapreduce.lib.input.FileInputFormatCounter"
OUTPUT_GROUP: Final = "org.apache.hadoop.mapreduce.lib.output.FileOutputFormatCounter"
SHUFFLE_ERRORS_GROUP: Final = "Shuffle Errors"

#: Hadoop's defaults of mapreduce.job.counters.max, .group.name.max and .counter.name.max
COUNTERS_MAX: Final = 120
GROUP_NAME_CHARS_MAX: Final = 128
COUNTER_NAME_CHARS_MAX: Final = 64


class TaskCounter(StrEnum):
    """What the framework counts in each task (Hadoop's TaskCounter)."""

    MAP_INPUT_RECORDS = "MAP_INPUT_RECORDS"
    MAP_OUTPUT_RECORDS = "MAP_OUTPUT_RECORDS"
    MAP_OUTPUT_BYTES = "MAP_OUTPUT_BYTES"
    MAP_OUTPUT_MATERIALIZED_BYTES = "MAP_OUTPUT_MATERIALIZED_BYTES"
    SPLIT_RAW_BYTES = "SPLIT_RAW_BYTES"
    COMBINE_INPUT_RECORDS = "COMBINE_INPUT_RECORDS"
    COMBINE_OUTPUT_RECORDS = "COMBINE_OUTPUT_RECORDS"
    REDUCE_INPUT_GROUPS = "REDUCE_INPUT_GROUPS"
    REDUCE_SHUFFLE_BYTES = "REDUCE_SHUFFLE_BYTES"
    REDUCE_INPUT_RECORDS = "REDUCE_INPUT_RECORDS"
    REDUCE_OUTPUT_RECORDS = "REDUCE_OUTPUT_RECORDS"
    SPILLED_RECORDS = "SPILLED_RECORDS"
    SHUFFLED_MAPS = "SHUFFLED_MAPS"
    FAILED_SHUFFLE = "FAILED_SHUFFLE"
    MERGED_MAP_OUTPUTS = "MERGED_MAP_OUTPUTS"
    CPU_MILLISECONDS = "CPU_MILLISECONDS"
    PHYSICAL_MEMORY_BYTES = "PHYSICAL_MEMORY_BYTES"
    VIRTUAL_MEMORY_BYTES = "VIRTUAL_MEMORY_BYTES"
    #: peaks: of a job, the largest of its tasks'
    MAP_PHYSICAL_MEMORY_BYTES_MAX = "MAP_PHYSICAL_MEMORY_BYTES_MAX"
    MAP_VIRTUAL_MEMORY_BYTES_MAX = "MAP_VIRTUAL_MEMORY_BYTES_MAX"
    REDUCE_PHYSICAL_MEMORY_BYTES_MAX = "REDUCE_PHYSICAL_MEMORY_BYTES_MAX"
    REDUCE_VIRTUAL_MEMORY_BYTES_MAX = "REDUCE_VIRTUAL_MEMORY_BYTES_MAX"


class JobCounter(StrEnum):
    """What the job manager counts (Hadoop's JobCounter)."""

    TOTAL_LAUNCHED_MAPS = "TOTAL_LAUNCHED_MAPS"
    TOTAL_LAUNCHED_REDUCES = "TOTAL_LAUNCHED_REDUCES"
    NUM_FAILED_MAPS = "NUM_FAILED_MAPS"
    NUM_FAILED_REDUCES = "NUM_FAILED_REDUCES"
    NUM_KILLED_MAPS = "NUM_KILLED_MAPS"
    NUM_KILLED_REDUCES = "NUM_KILLED_REDUCES"
    DATA_LOCAL_MAPS = "DATA_LOCAL_MAPS"
    RACK_LOCAL_MAPS = "RACK_LOCAL_MAPS"
    OTHER_LOCAL_MAPS = "OTHER_LOCAL_MAPS"
    MILLIS_MAPS = "MILLIS_MAPS"
    MILLIS_REDUCES = "MILLIS_REDUCES"


class FileSystemCounter(StrEnum):
    """Per file-system scheme; the counter's name is `SCHEME_NAME`, for example HDFS_BYTES_READ."""

    BYTES_READ = "BYTES_READ"
    BYTES_WRITTEN = "BYTES_WRITTEN"
    READ_OPS = "READ_OPS"
    WRITE_OPS = "WRITE_OPS"

    def of_scheme(self, scheme: str) -> str:
        return f"{scheme.upper()}_{self.value}"


def taken_together(group: str, name: str, first: int, second: int) -> int:
    """Return the value for two tasks: their sum, and of Hadoop's maxima the larger."""
    return max(first, second) if group == TASK_GROUP and name.endswith("_MAX") else first + second


class CounterCell:
    """One counter; keep it out of the loop and call `increment`."""

    __slots__ = ("group", "name", "value")

    def __init__(self, group: str, name: str) -> None:
        self.group = group
        self.name = name
        self.value = 0

    def increment(self, amount: int = 1) -> None:
        self.value += amount


def as_long(value: int) -> int:
    """Return the number that a long of Java's has after a sum: it wraps around."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


class Counters:
    """All counters of a task or of a job."""

    def __init__(self, counters_max: int = COUNTERS_MAX) -> None:
        self._cells: dict[tuple[str, str], CounterCell] = {}
        #: counters outside the standard groups that may exist
        self._counters_max = counters_max
        self._own_count = 0

    def find(self, group: str, name: str) -> CounterCell:
        """Return the counter, made on first use."""
        cell = self._cells.get((group, name))
        if cell is None:
            group, name = _sendable(group), _sendable(name)
            cell = self._cells.get((group, name))
        return cell if cell is not None else self._add(group, name)

    def increment(self, group: str, name: str, amount: int = 1) -> None:
        self.find(group, name).value += amount

    def task(self, name: TaskCounter) -> CounterCell:
        return self.find(TASK_GROUP, name)

    def job(self, name: JobCounter) -> CounterCell:
        return self.find(JOB_GROUP, name)

    def file_system(self, scheme: str, name: FileSystemCounter) -> CounterCell:
        return self.find(FILE_SYSTEM_GROUP, name.of_scheme(scheme))

    def get(self, group: str, name: str) -> int:
        """Return its value, 0 if nothing counted it."""
        cell = self._cells.get((group, name))
        return 0 if cell is None else cell.value

    def merge(self, other: "Counters") -> None:
        """Add another task's counters to these."""
        for cell in other:
            self.take(cell.group, cell.name, cell.value)

    def take(self, group: str, name: str, value: int) -> None:
        """Add another task's counter."""
        cell = self.find(group, name)
        cell.value = as_long(taken_together(group, name, cell.value, value))

    def __iter__(self) -> Iterator[CounterCell]:
        return iter(self._cells.values())

    def __len__(self) -> int:
        return len(self._cells)

    def to_json(self) -> dict[str, dict[str, int]]:
        """Return groups and names in sorted order."""
        result: dict[str, dict[str, int]] = {}
        for (group, name), cell in sorted(self._cells.items()):
            result.setdefault(group, {})[name] = cell.value
        return result

    @classmethod
    def from_json(cls, groups: Mapping[str, Mapping[str, int]], counters_max: int = COUNTERS_MAX) -> Self:
        counters = cls(counters_max)
        for group, names in groups.items():
            for name, value in names.items():
                counters.increment(group, name, int(value))
        return counters

    def _add(self, group: str, name: str) -> CounterCell:
        for text, chars_max, what in (
            (group, GROUP_NAME_CHARS_MAX, "counter group"),
            (name, COUNTER_NAME_CHARS_MAX, "counter"),
        ):
            if not text or len(text) > chars_max:
                raise JobError(
                    f"bad {what} name {text[:80]!r}: it must have 1 to {chars_max} characters, "
                    "and names should not be made from data"
                )
        if group not in _STANDARD_GROUPS:
            if self._own_count >= self._counters_max:
                raise TooManyCounters(
                    f"more than {self._counters_max} counters at {group!r} {name!r}: count fewer things, "
                    "or raise mapreduce.job.counters.max"
                )
            self._own_count += 1
        cell = self._cells[group, name] = CounterCell(group, name)
        return cell


def _sendable(name: object) -> str:
    """The name as text, which has a "?" for each byte of its input that was no UTF-8."""
    return str(name).encode("utf-8", "replace").decode()


_STANDARD_GROUPS: Final = frozenset(
    (TASK_GROUP, JOB_GROUP, FILE_SYSTEM_GROUP, INPUT_GROUP, OUTPUT_GROUP, SHUFFLE_ERRORS_GROUP)
)


class Counter:
    """A counter declared in a job class: `bad_lines = Counter()`, then `self.bad_lines.increment()`."""

    def __init__(self, name: str | None = None, *, group: str | None = None, help: str = "") -> None:
        self._name = name
        self._group = group
        self.help = help

    def __set_name__(self, owner: type, attribute: str) -> None:
        self._attribute = attribute
        self._name = self._name or attribute
        self._group = self._group or owner.__name__

    @overload
    def __get__(self, job: None, owner: type) -> Self: ...
    @overload
    def __get__(self, job: Any, owner: type) -> CounterCell: ...
    def __get__(self, job: Any, owner: type) -> "Self | CounterCell":
        if job is None:
            return self
        cell: CounterCell = job.counters.find(self._group, self._name)
        # the instance's own attribute hides this descriptor from now on: later look-ups cost nothing
        job.__dict__[self._attribute] = cell
        return cell
