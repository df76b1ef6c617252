"""A MapReduce job as a class: override `map`, and `combine`, `reduce`, `partition` where the job needs them.

    class WordCount(Job):
        def map(self, key, value):
            for word in value.split():
                yield word, 1

        def reduce(self, key, values):
            yield key, sum(values)

        combine = reduce

One object of the class lives in each task. The framework asks it what it overrides, and moves records untouched past
what it does not.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final
from zlib import crc32

from yaqd.mapreduce.counters import Counters
from yaqd.mapreduce.serde import encode_key

Pair = tuple[Any, Any]

MAP: Final = "map"
REDUCE: Final = "reduce"


@dataclass(slots=True)
class TaskContext:
    """What a job may ask about the task it runs in: `self.task`."""

    #: "map" or "reduce"
    phase: str = MAP
    #: number of the task within its phase
    index: int = 0
    #: try of this task, from 0
    attempt: int = 0
    #: partitions that map output is divided into; 0 for a job without reduce
    partitions: int = 1
    #: map: the file that the record at hand comes from, as URI; small files share a task
    input_path: str = ""
    #: map: first byte of the piece of that file which the task reads
    input_start: int = 0
    #: map: bytes of that piece
    input_length: int = 0
    #: one line shown as the task's status; the job may set it
    status: str = ""
    #: map of a step behind flow.join(): the number of the stream that the pair at hand comes from; else -1
    stream: int = -1
    #: of a flow: the pairs of the streams that each task gets whole, by their names
    sides: Mapping[str, Sequence[Pair]] = field(default_factory=dict)


class _Overrides:
    """Whether a job, or a job's class, has a method of its own in place of Job's, however it came by it: in the class,
    by a decorator, from setup()."""

    def __init__(self, method: str) -> None:
        self._method = method

    def __get__(self, job: "Job | None", owner: "type[Job]") -> bool:
        found = getattr(owner if job is None else job, self._method)
        return getattr(found, "__func__", found) is not getattr(Job, self._method)


class Job:
    """Base of all jobs. What is not overridden is the identity."""

    #: shown by `yaq app list`; "" = the class's name
    name: ClassVar[str] = ""
    #: see `yaqd.mapreduce.formats`
    input_format: ClassVar[str] = "text"
    output_format: ClassVar[str] = "text"
    #: reduce tasks unless the submission says another number; 0 = map output is the job's output
    reduces: ClassVar[int] = 1
    #: "hash", or "range" for a total order over all partitions, found by sampling the input
    partitioner: ClassVar[str] = "hash"

    overrides_map = _Overrides("map")
    overrides_combine = _Overrides("combine")
    overrides_reduce = _Overrides("reduce")
    overrides_partition = _Overrides("partition")

    def __init__(
        self,
        params: Mapping[str, Any] | None = None,
        counters: Counters | None = None,
        task: TaskContext | None = None,
    ) -> None:
        """`params` holds values by attribute name, as `yaqd.mapreduce.parse_params` gives them."""
        self.counters = counters if counters is not None else Counters()
        self.task = task if task is not None else TaskContext()
        self.__dict__.update(params or {})

    def setup(self) -> None:
        """Set up the task: called once before its first record; `self.task.phase` tells map from reduce."""

    def map(self, key: Any, value: Any) -> Iterable[Pair]:
        """Yield pairs for one input record."""
        return ((key, value),)

    def combine(self, key: Any, values: Iterator[Any]) -> Iterable[Pair]:
        """Yield pairs that stand for these values of one key; may run any number of times, also never."""
        return ((key, value) for value in values)

    def reduce(self, key: Any, values: Iterator[Any]) -> Iterable[Pair]:
        """Yield output pairs for one key and all its values; keys arrive sorted (see `yaqd.mapreduce.serde`)."""
        return ((key, value) for value in values)

    def partition(self, key: Any, partitions: int) -> int:
        """Return the partition (0 to partitions - 1) that a key belongs to: CRC-32 of its encoding by default."""
        return crc32(encode_key(key)) % partitions

    def cleanup(self) -> Iterable[Pair] | None:
        """Clean up the task: called once after its last record.

        It may yield last pairs, as a map that sums in memory does.
        """
        return None
