"""What happens to pairs within a task of a stage: a tree of steps, whose leaves sort for other tasks or write output.

Pairs move as they are asked for where one branch takes them, and in batches where several do. Each step gets pairs of
its own, with the types that they have from another task: what one step changes, another does not see.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Final, Protocol

from riffle_merger.format.columns import Columns
from tez_adapter.data import HashPartitioner, KeyPartitioner, MapOutput, Partitioner, RangePartitioner
from tez_adapter.data.combine import HashCombiner, encoded_combiner
from tez_adapter.tasks.forked import end_copy
from tez_adapter.tasks.pairs import ENDED_EARLY, Pair, Reached, looked_at, refuse_no_pairs
from tez_adapter.tasks.partitioners import JobPartitioner
from yaqd.mapreduce import Job, JobError, serde
from yaqd.mapreduce.serde import decode_key, decode_value, encode_key, encode_pairs, encode_value
from yaqd.storage.writers import RecordWriter

_BATCH_PAIRS: Final = 4096
_ENCODE_PAIRS: Final = 8192
#: what a step that gets it cannot change
_FIXED: Final = frozenset({int, str, float, bytes, bool, type(None)})


class Sink(Protocol):
    """Where pairs go within a task."""

    def take(self, pairs: Iterator[Pair]) -> None:
        """Take pairs to their end; it may be called again."""

    def end(self) -> None:
        """Take no more. What steps yield at their end goes on before."""

    def abandon(self) -> None:
        """Drop all, as the task fails."""


@dataclass(slots=True)
class Fork:
    """Several sinks for the same pairs."""

    sinks: Sequence[Sink]

    def take(self, pairs: Iterator[Pair]) -> None:
        if len(self.sinks) == 1:
            (sink,) = self.sinks
            # what sorts or writes makes bytes of a pair at once
            sink.take(map(_own, pairs) if _has_map(sink) else pairs)
            return
        # each pair counts as it is when it is yielded: the step may change and yield the same object again
        while batch := list(map(_own, islice(pairs, _BATCH_PAIRS))):
            for sink in self.sinks[:-1]:
                sink.take(map(_own, batch))
            self.sinks[-1].take(iter(batch))

    def end(self) -> None:
        for sink in self.sinks:
            sink.end()

    def abandon(self) -> None:
        for sink in self.sinks:
            sink.abandon()


def _has_map(sink: Sink) -> bool:
    return isinstance(sink, (MapStep, Shuffled)) and sink.job is not None and sink.job.overrides_map


def _own(pair: Pair) -> Pair:
    try:
        key, value = pair
    except (TypeError, ValueError) as error:
        refuse_no_pairs("the step before", error, __file__)
        raise
    if not _is_fixed(key):
        key = decode_key(encode_key(key))
    if not _is_fixed(value):
        value = decode_value(encode_value(value))
    return key, value


def _is_fixed(one: Any) -> bool:
    return type(one) in _FIXED or (type(one) is tuple and all(type(each) in _FIXED for each in one))


def mapped(job: Job, pairs: Iterator[Pair]) -> Iterator[Pair]:
    """Yield what a step's map yields of pairs. JobError where it raises StopIteration, or yields no pairs."""
    if not job.overrides_map:
        yield from pairs
        return
    end = Reached()
    yield from looked_at(chain.from_iterable(_calls(job, chain(pairs, end))), "map()")
    if not end.is_reached:
        raise JobError(ENDED_EARLY)


def _calls(job: Job, pairs: Iterator[Pair]) -> Iterator[Iterable[Pair]]:
    function = job.map
    try:
        for key, value in pairs:
            yield function(key, value)
    except (TypeError, ValueError) as error:
        refuse_no_pairs("the step before", error, __file__)
        raise


def last_pairs(job: Job) -> Iterator[Pair]:
    """Return what a step's cleanup yields."""
    found = job.cleanup()
    return iter(()) if found is None else looked_at(iter(found), "cleanup()")


@dataclass(slots=True)
class MapStep:
    """A step that is all map."""

    job: Job
    after: Fork

    def take(self, pairs: Iterator[Pair]) -> None:
        self.after.take(mapped(self.job, pairs))

    def end(self) -> None:
        self.after.take(last_pairs(self.job))
        self.after.end()

    def abandon(self) -> None:
        self.after.abandon()


@dataclass(slots=True)
class Written:
    """A part of an output; several branches of the tree may lead to it."""

    writer: RecordWriter
    #: branches that have not ended
    branches: int = 0

    def take(self, pairs: Iterator[Pair]) -> None:
        self.writer.write_all(pairs)

    def end(self) -> None:
        self.branches -= 1
        if not self.branches:
            end_copy()
            self.writer.close()

    def abandon(self) -> None:
        self.writer.abort()


@dataclass(slots=True)
class Shuffled:
    """A channel: pairs sorted in parts, for tasks of another stage."""

    output: MapOutput
    #: whose map and partition see the pairs; None: they go on unchanged
    job: Job | None = None
    #: of a join: which of its streams it is
    side: int = -1
    combiner: HashCombiner | None = None

    def take(self, pairs: Iterator[Pair]) -> None:
        self._collect(pairs if self.job is None else mapped(self.job, pairs))

    def end(self) -> None:
        if self.job is not None:
            self._collect(last_pairs(self.job))
        if self.combiner is not None:
            self.combiner.close()
        end_copy()
        self.output.close()

    def abandon(self) -> None:
        self.output.abandon()

    def _collect(self, pairs: Iterator[Pair]) -> None:
        if self.combiner is not None:
            self.combiner.collect_all(pairs)
            return
        if self.side >= 0:
            pairs = sided(pairs, self.side)
        try:
            while True:
                keys, values = encode_pairs(islice(pairs, _ENCODE_PAIRS))
                if not keys:
                    return
                self.output.collect_batch(Columns.from_lists(keys, values))
        except (TypeError, ValueError) as error:
            refuse_no_pairs("map()", error, serde.__file__)
            raise


def sided(pairs: Iterator[Pair], side: int) -> Iterator[Pair]:
    """Yield pairs whose keys say of which of a join's streams they are, and sort by it behind the key."""
    for key, value in pairs:
        yield (key, side), value


def shuffled(
    job: Job | None,
    make: Callable[[Partitioner, int, Any], MapOutput],
    *,
    memory_bytes: int,
    side: int = -1,
    boundaries: Sequence[bytes] = (),
) -> Shuffled:
    """Return the sink of a channel. `make`: its output, given a partitioner, memory in bytes, and a combiner."""
    partitioner = _partitioner(job, side, boundaries)
    if job is None or not job.overrides_combine:
        return Shuffled(make(partitioner, memory_bytes, None), job, side)
    output = make(partitioner, memory_bytes // 2, encoded_combiner(job.combine))
    return Shuffled(output, job, side, HashCombiner(output, job.combine, memory_bytes=memory_bytes // 2))


def _partitioner(job: Job | None, side: int, boundaries: Sequence[bytes]) -> Partitioner:
    if job is not None and job.overrides_partition:
        return JobPartitioner(job, is_sided=side >= 0)
    if side >= 0:
        return _SidedPartitioner()
    return RangePartitioner(list(boundaries)) if boundaries else HashPartitioner()


class _SidedPartitioner(KeyPartitioner):
    """By the key alone, so that equal ones of all streams meet."""

    def __init__(self) -> None:
        plain = Job()
        super().__init__(lambda code, parts: Job.partition(plain, decode_key(code)[0], parts))


def reduced(job: Job, groups: Iterator[tuple[bytes, Iterator[bytes]]], moved: Callable[[], None]) -> Iterator[Pair]:
    """Yield what a step's reduce yields. `moved` is called for each group."""

    def calls() -> Iterator[Iterable[Pair]]:
        reduce = job.reduce
        for key, values in groups:
            moved()
            yield reduce(decode_key(key), map(decode_value, values))

    return looked_at(chain.from_iterable(calls()), "reduce()")


def joined(
    job: Job, sides: int, groups: Iterator[tuple[bytes, Iterator[bytes]]], moved: Callable[[], None]
) -> Iterator[Pair]:
    """Yield what the reduce of a step behind a join yields: it gets the key and an iterator for each stream."""

    def calls() -> Iterator[Iterable[Pair]]:
        reduce: Any = job.reduce
        held: list[list[Any]] = []
        held_key = b""
        for code, values in groups:
            moved()
            key, side = decode_key(code)
            own = encode_key(key)
            if held and own != held_key:
                yield reduce(decode_key(held_key), *map(iter, held), iter(()))
                held = []
            held_key = own
            if side < sides - 1:
                held = held or [[] for _ in range(sides - 1)]
                held[side].extend(map(decode_value, values))
                continue
            yield reduce(key, *map(iter, held or [[]] * (sides - 1)), map(decode_value, values))
            held = []
        if held:
            yield reduce(decode_key(held_key), *map(iter, held), iter(()))

    return looked_at(chain.from_iterable(calls()), "reduce()")
