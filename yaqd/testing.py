"""A job on lists, in this process: for the tests of a job's class.

    def test_words():
        assert run(WordCount, ["a b", "a"]) == [("a", 2), ("b", 1)]

The job's own methods are called here, so breakpoints, coverage and exceptions work as in any test. What passes between
them is encoded and decoded as on a cluster: a pair counts as it was at its `yield`, keys arrive sorted, and what cannot
travel is refused. One thing is not as there: all tasks share this process, and so a class's own attributes.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeVar

from tez_adapter.data import boundaries_from_sample
from tez_adapter.tasks.pairs import looked_at
from yaqd.mapreduce import Counters, Job, JobError, Pair, TaskContext, declared_params
from yaqd.mapreduce.job import MAP, REDUCE
from yaqd.mapreduce.loading import check_job
from yaqd.mapreduce.serde import decode_key, decode_value, encode_key, encode_value

#: an encoded key with its encoded value
_Encoded = tuple[bytes, bytes]
_Taken = TypeVar("_Taken")

__all__ = ["run"]


def run(
    job_class: type[Job],
    records: Iterable[Any],
    *,
    reduces: int | None = None,
    splits: int = 1,
    combines: int = 1,
    counters: Counters | None = None,
    **options: Any,
) -> list[Pair]:
    """Run the job on these records; its output pairs, part by part.

    A record is a pair (key, value), or a value alone, whose key is then its offset, as a line's is in a file. They are
    divided among `splits` map tasks. Each task's combiner runs `combines` times, also 0: the result should not depend
    on it. `options` are values of the job's `Param`s; `counters` receives what the job counts.
    JobError for what a cluster would refuse; what the job's methods raise comes as it is.
    """
    check_job(job_class, job_class.__module__)
    count = job_class.reduces if reduces is None else reduces
    if count < 0 or splits < 1 or combines < 0:
        raise JobError(f"{count} reduces, {splits} splits, {combines} combines: the least is 0, 1 and 0")
    tasks = _Tasks(job_class, _values(job_class, options), count, counters if counters is not None else Counters())
    pieces = list(enumerate(_divided(list(_keyed(records)), splits)))
    if not count:
        return [pair for index, piece in pieces for pair in tasks.mapped(tasks.job(MAP, index), piece, deepcopy)]
    maps = [tasks.job(MAP, index) for index, _ in pieces]
    outputs = [tasks.mapped(job, piece, _encoded) for job, (_, piece) in zip(maps, pieces, strict=True)]
    is_range = job_class.partitioner == "range" and not job_class.overrides_partition
    bounds = boundaries_from_sample([key for output in outputs for key, _ in output], count) if is_range else None
    parts: list[list[_Encoded]] = [[] for _ in range(count)]
    for job, output in zip(maps, outputs, strict=True):
        for number, part in enumerate(tasks.partitioned(job, output, bounds)):
            parts[number] += tasks.combined(job, part, combines)
    return [pair for index, part in enumerate(parts) for pair in tasks.reduced(index, part)]


class _Tasks:
    """The tasks of one run, each with an object of the job's class of its own."""

    def __init__(self, job_class: type[Job], values: Mapping[str, Any], reduces: int, counters: Counters) -> None:
        self._class, self._values, self._reduces, self._counters = job_class, values, reduces, counters

    def job(self, phase: str, index: int) -> Job:
        return self._class(
            self._values, self._counters, TaskContext(phase=phase, index=index, partitions=self._reduces)
        )

    def mapped(self, job: Job, records: Sequence[Pair], taken: Callable[[Pair], _Taken]) -> list[_Taken]:
        """What one map task yields, each pair taken at its `yield`."""

        def pairs() -> Iterator[Pair]:
            for key, value in records:
                yield from job.map(key, value)
            yield from job.cleanup() or ()

        job.setup()
        return [taken(pair) for pair in looked_at(pairs(), "map()")]

    def partitioned(self, job: Job, output: list[_Encoded], bounds: list[bytes] | None) -> list[list[_Encoded]]:
        parts: list[list[_Encoded]] = [[] for _ in range(self._reduces)]
        for pair in output:
            key = decode_key(pair[0])
            number = job.partition(key, self._reduces) if bounds is None else bisect_right(bounds, pair[0])
            if type(number) is not int or not 0 <= number < self._reduces:
                raise JobError(f"partition() gave {number!r} for {key!r}: 0 to {self._reduces - 1} exist")
            parts[number].append(pair)
        return parts

    def combined(self, job: Job, part: list[_Encoded], combines: int) -> list[_Encoded]:
        for _ in range(combines if self._class.overrides_combine else 0):
            part = [_encoded(pair) for key, values in _groups(part) for pair in job.combine(key, values)]
        return part

    def reduced(self, index: int, part: list[_Encoded]) -> list[Pair]:
        """What one reduce task yields, each pair as it was at its `yield`."""
        job = self.job(REDUCE, index)

        def pairs() -> Iterator[Pair]:
            for key, values in _groups(part):
                yield from job.reduce(key, values)
            yield from job.cleanup() or ()

        job.setup()
        return [deepcopy(pair) for pair in looked_at(pairs(), "reduce()")]


def _values(job_class: type[Job], options: Mapping[str, Any]) -> dict[str, Any]:
    """Values by attribute; text is read as `-D` is."""
    params = declared_params(job_class)
    for name, param in params.items():
        if param.is_required and name not in options:
            raise JobError(f"{job_class.__name__} needs the option {name}: give it as run(..., {name}=VALUE)")
    unknown = [name for name in options if name not in params]
    if unknown:
        known = f"it has {', '.join(params)}" if params else "it has none"
        raise JobError(f"{job_class.__name__} has no option {unknown[0]}: {known}")
    return {
        params[name].attribute: params[name].parse(value) if isinstance(value, str) else value
        for name, value in options.items()
    }


def _keyed(records: Iterable[Any]) -> Iterator[Pair]:
    offset = 0
    for record in records:
        if isinstance(record, tuple) and len(record) == 2:
            yield record
        else:
            yield offset, record
            offset += len(record.encode("utf-8", "surrogateescape") if isinstance(record, str) else record) + 1


def _divided(records: Sequence[Pair], pieces: int) -> list[Sequence[Pair]]:
    return [records[len(records) * i // pieces : len(records) * (i + 1) // pieces] for i in range(pieces)]


def _encoded(pair: Pair) -> _Encoded:
    try:
        key, value = pair
    except (TypeError, ValueError) as error:
        raise JobError(f"map() must yield pairs of key and value: {error}") from error
    return encode_key(key), encode_value(value)


def _groups(part: list[_Encoded]) -> Iterator[tuple[Any, Iterator[Any]]]:
    for key, pairs in groupby(sorted(part, key=itemgetter(0)), itemgetter(0)):
        yield decode_key(key), (decode_value(value) for _, value in pairs)
