"""A reduce task: fetch one partition of every map's output, merge, call the job's reduce, write one output file."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from tez_adapter.data import ReduceInput
from tez_adapter.output_codec import shuffle_codec
from tez_adapter.tasks.attempt import TaskAttempt
from tez_adapter.tasks.forked import end_copy, or_undo
from tez_adapter.tasks.map_task import task_context
from tez_adapter.tasks.pairs import Pair, looked_at
from tez_adapter.tasks.shuffle_input import fetch_all, outputs_of_maps
from tez_adapter.tasks.task_output import PartFile
from yaqd.ipc import BlockingRpcClient
from yaqd.mapreduce import Job
from yaqd.mapreduce.counters import TaskCounter
from yaqd.mapreduce.formats import OutputKind
from yaqd.mapreduce.job import REDUCE
from yaqd.mapreduce.serde import decode_key, decode_many, decode_value

#: groups between two signs of progress
_GROUPS_PER_MOVE = 1024


def run_reduce(
    attempt: TaskAttempt, job_class: type[Job], params: dict[str, Any], client: BlockingRpcClient, secret: bytes
) -> PartFile:
    """Run the task; return its output file to commit."""
    return reduce_from(
        attempt,
        job_class,
        params,
        attempt.work_folder,
        lambda sink: fetch_all(attempt, sink, client, secret, outputs_of_maps(attempt)),
    )


def reduce_from(
    attempt: TaskAttempt,
    job_class: type[Job],
    params: dict[str, Any],
    folder: Path,
    fetch: Callable[[ReduceInput], None],
) -> PartFile:
    """Run the task with its input from wherever `fetch` gets it; what memory does not hold goes to `folder`."""
    with ReduceInput(
        folder, memory_bytes=attempt.sort_bytes(), codec=shuffle_codec(attempt.conf), counters=attempt.tallies
    ) as source:
        fetch(source)
        attempt.end_phase("shuffle")
        with or_undo(lambda: None):
            job = job_class(params, attempt.counters, task_context(attempt, REDUCE))
            job.setup()
        part = PartFile(attempt, "r")
        with or_undo(part.writer.abort):
            _write(attempt, job, source, part)
            end_copy()
            part.writer.close()
        attempt.tallies[TaskCounter.REDUCE_OUTPUT_RECORDS] = part.writer.records
        attempt.end_phase("reduce")
        return part


def _write(attempt: TaskAttempt, job: Job, source: ReduceInput, part: PartFile) -> None:
    if job.overrides_reduce:
        part.writer.write_all(_reduced(attempt, job, source))
    elif OutputKind.of(attempt.spec.output_format) is OutputKind.RAW:
        _write_raw(attempt, source, part)
    else:
        part.writer.write_all(_unchanged(attempt, source))
    last = job.cleanup()
    if last is not None:
        part.writer.write_all(looked_at(iter(last), "cleanup()"))


def _reduced(attempt: TaskAttempt, job: Job, source: ReduceInput) -> Iterator[Pair]:
    return looked_at(chain.from_iterable(_calls(attempt, job, source)), "reduce()")


def _calls(attempt: TaskAttempt, job: Job, source: ReduceInput) -> Iterator[Iterable[Pair]]:
    reduce = job.reduce
    countdown = _GROUPS_PER_MOVE
    for key, values in source.groups():
        countdown -= 1
        if not countdown:
            countdown = _GROUPS_PER_MOVE
            end_copy()
            attempt.moved(_share(source))
        yield reduce(decode_key(key), map(decode_value, values))


def _unchanged(attempt: TaskAttempt, source: ReduceInput) -> Iterator[Pair]:
    for batch in source.batches():
        attempt.moved(_share(source))
        yield from zip(decode_many(batch.key_list()), decode_many(batch.value_list()), strict=True)


def _write_raw(attempt: TaskAttempt, source: ReduceInput, part: PartFile) -> None:
    """Records that nobody looks at: their bytes one after the other, a batch at a time where they are all bytes."""
    from tez_adapter.tasks.raw import raw_block

    for batch in source.batches():
        attempt.moved(_share(source))
        block = raw_block(batch)
        if block is None:
            part.writer.write_all(zip(decode_many(batch.key_list()), decode_many(batch.value_list()), strict=True))
        else:
            part.writer.write_block(block, len(batch))


def _share(source: ReduceInput) -> float:
    """Fetching is a third of a reduce's progress, merging and reducing the rest."""
    return 1 / 3 + 2 / 3 * source.progress()
