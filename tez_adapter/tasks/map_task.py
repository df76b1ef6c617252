"""A map task: records of its split through the job's map, combine and partition into map output or output files.

Records move in batches. What the job does not override is moved as columns, without a Python object per record; what
it does override is called from iterators that run in C, one chain for the whole split.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any

from tez_adapter.data import Columns, HashPartitioner, MapOutput, Partitioner, RangePartitioner
from tez_adapter.data.combine import HashCombiner, encoded_combiner
from tez_adapter.output_codec import shuffle_codec
from tez_adapter.tasks.attempt import TaskAttempt
from tez_adapter.tasks.forked import end_copy, or_undo
from tez_adapter.tasks.pairs import ENDED_EARLY, Pair, Reached, looked_at, refuse_no_pairs
from tez_adapter.tasks.partitioners import JobPartitioner
from tez_adapter.tasks.task_output import PartFile
from yaqd.mapreduce import Job, JobError, serde
from yaqd.mapreduce.counters import INPUT_GROUP, TaskCounter
from yaqd.mapreduce.job import MAP, TaskContext
from yaqd.mapreduce.serde import encode_pairs
from yaqd.storage import FileRange, InputSplit, RecordReader, open_reader

_ENCODE_PAIRS = 8192


def split_of(attempt: TaskAttempt) -> InputSplit:
    return InputSplit.from_json(json.loads(attempt.description.split))


def task_context(attempt: TaskAttempt, phase: str, split: InputSplit | None = None) -> TaskContext:
    context = TaskContext(phase=phase, index=attempt.index, attempt=attempt.ref.number, partitions=attempt.spec.reduces)
    if split is not None:
        read_from(context, split.ranges[0])
    return context


def read_from(context: TaskContext, part: FileRange) -> None:
    """Note that the records that follow are of this piece of a file."""
    context.input_path, context.input_start, context.input_length = part.path, part.start, part.length


def run_map(attempt: TaskAttempt, job_class: type[Job], params: dict[str, Any]) -> PartFile | None:
    """Run the task; return the output file to commit for a job without reduces."""
    split = split_of(attempt)
    job = job_class(params, attempt.counters, task_context(attempt, MAP, split))
    reader = open_reader(job.input_format, split, attempt.conf)
    attempt.reading = lambda: reader.current
    job.setup()
    if not attempt.spec.reduces:
        return _map_to_file(attempt, job, reader)
    if job.overrides_map or job.overrides_combine:
        _map_objects(attempt, job, reader)
    else:
        _map_columns(attempt, job, reader)
    return None


def _map_to_file(attempt: TaskAttempt, job: Job, reader: RecordReader) -> PartFile:
    part = PartFile(attempt, "m")
    with or_undo(part.writer.abort):
        part.writer.write_all(_pairs(attempt, job, reader))
        end_copy()
        part.writer.close()
    attempt.tallies[TaskCounter.MAP_OUTPUT_RECORDS] = part.writer.records
    attempt.end_phase("map")
    return part


def _map_objects(attempt: TaskAttempt, job: Job, reader: RecordReader) -> None:
    half = attempt.sort_bytes() // 2
    combine = encoded_combiner(job.combine) if job.overrides_combine else None
    memory_bytes = half if job.overrides_combine else half * 2
    output = _open_output(attempt, job, memory_bytes, combine)
    with or_undo(output.abandon):
        pairs = _pairs(attempt, job, reader)
        if job.overrides_combine:
            combiner = HashCombiner(output, job.combine, memory_bytes=half)
            combiner.collect_all(pairs)
            combiner.close()
        else:
            _collect(output, pairs, "map()")
        end_copy()
        attempt.end_phase("map")
        output.close()
    attempt.end_phase("sort")


def _collect(output: MapOutput, pairs: Iterator[Pair], function: str) -> None:
    """Each pair counts as it is when the job's function yields it."""
    try:
        while True:
            keys, values = encode_pairs(islice(pairs, _ENCODE_PAIRS))
            if not keys:
                return
            output.collect_batch(Columns.from_lists(keys, values))
    except (TypeError, ValueError) as error:
        refuse_no_pairs(function, error, serde.__file__)
        raise


def _map_columns(attempt: TaskAttempt, job: Job, reader: RecordReader) -> None:
    output = _open_output(attempt, job, attempt.sort_bytes(), None)
    with or_undo(output.abandon):
        for batch in reader.batches():
            _count_input(attempt, reader, len(batch))
            output.collect_batch(Columns(*batch.columns()))
        _count_input(attempt, reader, 0)
        attempt.reading = None
        last = job.cleanup()
        if last is not None:
            _collect(output, looked_at(iter(last), "cleanup()"), "cleanup()")
        end_copy()
        attempt.end_phase("map")
        output.close()
    attempt.end_phase("sort")


def _open_output(
    attempt: TaskAttempt, job: Job, memory_bytes: int, combine: Callable[[Iterator[Columns]], Iterator[Columns]] | None
) -> MapOutput:
    return MapOutput(
        attempt.output_folder(),
        attempt.spec.reduces,
        _partitioner(attempt, job),
        codec=shuffle_codec(attempt.conf),
        memory_bytes=memory_bytes,
        combine=combine,
        counters=attempt.tallies,
    )


def _partitioner(attempt: TaskAttempt, job: Job) -> Partitioner:
    if job.overrides_partition:
        return JobPartitioner(job)
    if attempt.spec.boundaries:
        return RangePartitioner([bytes.fromhex(key) for key in attempt.spec.boundaries])
    return HashPartitioner()


def _count_input(attempt: TaskAttempt, reader: RecordReader, records: int) -> None:
    attempt.counters.task(TaskCounter.MAP_INPUT_RECORDS).increment(records)
    attempt.counters.find(INPUT_GROUP, "BYTES_READ").value = reader.bytes_read
    attempt.moved(reader.progress())


def _pairs(attempt: TaskAttempt, job: Job, reader: RecordReader) -> Iterator[Pair]:
    """Everything the job's map yields, then what its cleanup yields."""
    pairs = chain.from_iterable(_streams(attempt, job, reader))
    return looked_at(pairs, "map()") if job.overrides_map else pairs


def _streams(attempt: TaskAttempt, job: Job, reader: RecordReader) -> Iterator[Iterable[Pair]]:
    context = job.task
    for batch in reader.batches():
        end_copy()
        _count_input(attempt, reader, len(batch))
        read_from(context, reader.current)
        if job.overrides_map:
            end = Reached()
            yield chain.from_iterable(map(job.map, chain(batch.keys(), end), batch.values()))
            if not end.is_reached:
                raise JobError(ENDED_EARLY)
        else:
            yield iter(batch)
        attempt.status = context.status
    _count_input(attempt, reader, 0)
    attempt.reading = None
    last = job.cleanup()
    if last is not None:
        yield looked_at(iter(last), "cleanup()")
