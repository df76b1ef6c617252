"""Streaming tasks: the user's executables as mapper, combiner and reducer on lines of `key TAB value`, raw bytes or
typed bytes.

Data passes between our files and their pipes in large blocks; cutting lines, sorting and joining are done on columns.
Keys and values are the raw bytes, and a line without a TAB is a key with an empty value, as in Hadoop Streaming. So are
the partitions of keys and the names of output files.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from types import MappingProxyType

from tez_adapter.data import Columns, CountedLines, MapOutput, ReduceInput
from tez_adapter.jobspec import Streaming
from tez_adapter.output_codec import shuffle_codec
from tez_adapter.streaming.formats import PairReader, StreamFormat, input_block, output_lines, pairs_block
from tez_adapter.streaming.script_pipe import ScriptFailed, ScriptPipe
from tez_adapter.streaming.settings import MAP_OUTPUT, REDUCE_OUTPUT, StreamSettings, stream_settings
from tez_adapter.streaming.typedbytes import BadRecord
from tez_adapter.tasks.attempt import TaskAttempt
from tez_adapter.tasks.map_task import split_of
from tez_adapter.tasks.runners import Workplace
from tez_adapter.tasks.shuffle_input import fetch_all, outputs_of_maps
from tez_adapter.tasks.task_output import PartFile, TaskFiles, make_task_folder, side_files, task_folder
from yaqd.config.deprecated import former_names
from yaqd.ipc import BlockingRpcClient
from yaqd.mapreduce.counters import INPUT_GROUP, TaskCounter
from yaqd.storage import RecordReader, open_reader
from yaqd.storage.paths import as_hadoop_writes

_NOT_A_NAME = re.compile(r"[^A-Za-z0-9]")
_EXPORTED = ("mapreduce.", "stream.")
#: longer values are left out of the environment (stream.jobconf.truncate.limit)
_VALUE_CHARS_MAX = 20_000
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

#: One run of the combiner over sorted lines of one partition.
Combine = Callable[[Iterator[bytes | memoryview]], Iterator[Columns]]


def run(attempt: TaskAttempt, at: Workplace) -> TaskFiles | None:
    """Returns the output to commit, if it writes some."""
    assert attempt.spec.streaming is not None
    settings = stream_settings(attempt.conf)
    if attempt.is_map:
        return _map(attempt, attempt.spec.streaming, settings)
    return _reduce(attempt, attempt.spec.streaming, settings, at.client, at.secret)


def _map(attempt: TaskAttempt, scripts: Streaming, settings: StreamSettings) -> TaskFiles | None:
    split = split_of(attempt)
    environment = script_environment(
        attempt,
        {
            "mapreduce.map.input.file": as_hadoop_writes(split.path),
            "mapreduce.map.input.start": str(split.start),
            "mapreduce.map.input.length": str(split.length),
        },
    )
    if not attempt.spec.reduces:
        make_task_folder(attempt)  # the script may use it at once
    pipe = ScriptPipe("mapper", scripts.mapper, environment, attempt)
    reader = open_reader("bytes", split, attempt.conf)
    pieces = pipe.output(_input_blocks(attempt, reader, settings))
    if not attempt.spec.reduces:
        pairs = _pairs("mapper", pieces, settings.map_output_reader())
        return _to_file(attempt, "m", settings.map_output_format, pairs)
    combine = _combine(attempt, scripts, settings, environment) if scripts.combiner else None
    counts_lines = combine is not None and settings.order is None and settings.is_text_to_the_reducer
    output = _open_output(attempt, settings, combine, attempt.sort_bytes() // (2 if counts_lines else 1))
    try:
        if combine is None or not counts_lines:
            for columns in _pairs("mapper", pieces, settings.map_output_reader()):
                output.collect_batch(settings.to_shuffle(columns), columns.key_bytes + columns.value_bytes)
        else:
            separator = settings.reduce_input_separator
            half = attempt.sort_bytes() // 2
            _count(
                CountedLines(output, combine, fields=settings.map_output, separator=separator, memory_bytes=half),
                pieces,
            )
        attempt.end_phase("map")
        output.close()
    except BaseException:
        output.abandon()
        raise
    attempt.end_phase("sort")
    return side_files(attempt)


def _open_output(
    attempt: TaskAttempt, settings: StreamSettings, combine: Combine | None, memory_bytes: int
) -> MapOutput:
    def combined(batches: Iterator[Columns]) -> Iterator[Columns]:
        assert combine is not None
        return map(settings.to_shuffle, combine(_read_by_reducer(settings, batches)))

    return MapOutput(
        attempt.output_folder(),
        attempt.spec.reduces,
        settings.shuffle_partitioner,
        codec=shuffle_codec(attempt.conf),
        memory_bytes=memory_bytes,
        combine=None if combine is None else combined,
        combine_spills=True,
        counters=attempt.tallies,
    )


def _read_by_reducer(settings: StreamSettings, batches: Iterator[Columns]) -> Iterator[bytes | memoryview]:
    """Sorted pairs as a reducer and a combiner read them."""
    held, read = settings.map_output_format, settings.reduce_input_format
    for batch in batches:
        yield pairs_block(held, read, settings.from_shuffle(batch), settings.reduce_input_separator)


def _reduce(
    attempt: TaskAttempt, scripts: Streaming, settings: StreamSettings, client: BlockingRpcClient, secret: bytes
) -> PartFile:
    with ReduceInput(
        Path.cwd(), memory_bytes=attempt.sort_bytes(), codec=shuffle_codec(attempt.conf), counters=attempt.tallies
    ) as source:
        fetch_all(attempt, source, client, secret, outputs_of_maps(attempt))
        attempt.end_phase("shuffle")
        merged = _merged(attempt, source)
        if not scripts.reducer:
            return _to_file(attempt, "r", settings.map_output_format, map(settings.from_shuffle, merged))
        first = next(merged, None)
        blocks = _read_by_reducer(settings, merged if first is None else chain((first,), merged))
        make_task_folder(attempt)  # the script may use it at once
        pieces = ScriptPipe("reducer", scripts.reducer, script_environment(attempt), attempt).output(blocks)
        if first is None:
            # what a reducer writes without any input is nobody's output, as in Hadoop
            for _ in pieces:
                pass
        pairs = _pairs("reducer", pieces, settings.reduce_output_reader())
        return _to_file(attempt, "r", settings.reduce_output_format, pairs)


def _merged(attempt: TaskAttempt, source: ReduceInput) -> Iterator[Columns]:
    for batch in source.batches():
        attempt.moved(1 / 3 + 2 / 3 * source.progress())
        if len(batch):
            yield batch


def _to_file(attempt: TaskAttempt, letter: str, written: StreamFormat, batches: Iterator[Columns]) -> PartFile:
    separator = (attempt.conf.get("mapreduce.output.textoutputformat.separator") or "\t").encode()
    part = PartFile(attempt, letter)
    try:
        for columns in batches:
            part.writer.write_block(bytes(output_lines(written, columns, separator)), len(columns))
        part.writer.close()
    except BaseException:
        part.writer.abort()
        raise
    name = TaskCounter.MAP_OUTPUT_RECORDS if letter == "m" else TaskCounter.REDUCE_OUTPUT_RECORDS
    attempt.tallies[name] = part.writer.records
    attempt.end_phase("map" if letter == "m" else "reduce")
    return part


def _input_blocks(attempt: TaskAttempt, reader: RecordReader, settings: StreamSettings) -> Iterator[bytes]:
    """Lines of the split as the mapper reads them."""
    is_start, read = reader.current.start == 0, attempt.counters.find(INPUT_GROUP, "BYTES_READ")
    for batch in reader.batches():
        attempt.counters.task(TaskCounter.MAP_INPUT_RECORDS).increment(len(batch))
        read.value = reader.bytes_read
        attempt.moved(reader.progress())
        values = batch.values()
        if is_start and values:
            values[0] = values[0].removeprefix(_BYTE_ORDER_MARK)
        is_start = False
        yield input_block(settings.map_input_format, batch.keys, values, settings.map_input_separator)
    read.value = reader.bytes_read


def _pairs(role: str, pieces: Iterator[bytes], reader: PairReader) -> Iterator[Columns]:
    try:
        for piece in pieces:
            columns = reader.feed(piece)
            if len(columns):
                yield columns
        last = reader.finish()
    except BadRecord as error:
        key = MAP_OUTPUT if role == "mapper" else REDUCE_OUTPUT
        raise ScriptFailed(f"the {role} does not write what {key} says: {error}") from None
    if len(last):
        yield last


def _count(lines: CountedLines, pieces: Iterator[bytes]) -> None:
    for piece in pieces:
        lines.feed(piece)
    lines.close()


def _combine(
    attempt: TaskAttempt, scripts: Streaming, settings: StreamSettings, environment: Mapping[str, str]
) -> Combine:
    def combine(lines: Iterator[bytes | memoryview]) -> Iterator[Columns]:
        pipe = ScriptPipe("combiner", scripts.combiner, environment, attempt)
        return _pairs("combiner", pipe.output(lines), settings.reduce_output_reader())

    return combine


def script_environment(attempt: TaskAttempt, more: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Returns the container's environment, the job's configuration with names made fit, and who the task is.

    What had another name in former Hadoops is there under that as well. Of keys that the job has not changed there are
    those of MapReduce.
    """
    kind = "m" if attempt.is_map else "r"
    own = {
        "mapreduce.job.id": attempt.spec.job_id,
        "mapreduce.job.name": attempt.spec.name,
        "mapreduce.task.id": f"task_{attempt.spec.job_id.removeprefix('job_')}_{kind}_{attempt.index:06d}",
        "mapreduce.task.attempt.id": attempt.name,
        "mapreduce.task.partition": str(attempt.index),
        "mapreduce.task.ismap": str(attempt.is_map).lower(),
        "mapreduce.job.reduces": str(attempt.spec.reduces),
        "mapreduce.task.output.dir": as_hadoop_writes(task_folder(attempt)),
        "mapreduce.output.fileoutputformat.outputdir": as_hadoop_writes(attempt.spec.output),
    }
    unchanged = {key: value for key, value in attempt.conf.items() if key.startswith(_EXPORTED)}
    values = {**unchanged, **attempt.spec.conf, **own, **more}
    named = {
        _NOT_A_NAME.sub("_", name): value
        for key, value in values.items()
        for name in (*former_names(key), key)
        if len(value) <= _VALUE_CHARS_MAX and "\0" not in value
    }
    return {**named, **os.environ}
