"""Streaming tasks: the user's executables as mapper, combiner and reducer on lines of `key TAB value`.

Data passes between our files and their pipes in large blocks; cutting lines, sorting and joining are done on columns.
Keys and values are the raw bytes, and a line without a TAB is a key with an empty value, as in Hadoop Streaming. So are
the partitions of keys and the names of output files.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tez_adapter.attempt import Attempt
from tez_adapter.data import Columns, CountedLines, MapOutput, ReduceInput, TextPartitioner
from tez_adapter.data.lines import LineReader, join_lines
from tez_adapter.jobspec import Streaming
from tez_adapter.map_task import split_of
from tez_adapter.output_codec import shuffle_codec
from tez_adapter.script_pipe import ScriptPipe
from tez_adapter.shuffle_input import fetch_all
from tez_adapter.task_output import PartFile
from yaqd.ipc import BlockingRpcClient
from yaqd.mapreduce.counters import INPUT_GROUP, TaskCounter
from yaqd.storage import RecordReader, open_reader

_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_]")
#: longer values are left out of the environment (stream.jobconf.truncate.limit)
_VALUE_CHARS_MAX = 20_000


def run_streaming(attempt: Attempt, client: BlockingRpcClient, secret: bytes) -> PartFile | None:
    """The task; returns the output file to commit, if it writes one."""
    assert attempt.spec.streaming is not None
    if attempt.is_map:
        return _map(attempt, attempt.spec.streaming)
    return _reduce(attempt, attempt.spec.streaming, client, secret)


def _map(attempt: Attempt, scripts: Streaming) -> PartFile | None:
    split = split_of(attempt)
    environment = script_environment(attempt) | {
        "mapreduce_map_input_file": split.path,
        "map_input_file": split.path,
        "mapreduce_map_input_start": str(split.start),
        "mapreduce_map_input_length": str(split.length),
    }
    pipe = ScriptPipe("mapper", scripts.mapper, environment, attempt)
    pieces = pipe.output(_input_blocks(attempt, open_reader("bytes", split, attempt.conf)))
    separator = _separator(attempt, "stream.map.output.field.separator")
    if not attempt.spec.reduces:
        return _to_file(attempt, "m", map(join_lines_of(attempt), _pairs(pieces, separator)))
    combine = _combine(attempt, scripts, environment) if scripts.combiner else None
    sort_bytes = attempt.sort_bytes()
    output = MapOutput(
        attempt.output_folder(),
        attempt.spec.reduces,
        TextPartitioner(),
        codec=shuffle_codec(attempt.conf),
        memory_bytes=sort_bytes if combine is None else sort_bytes // 2,
        combine=None if combine is None else lambda batches: combine(map(join_lines, batches)),
        combine_spills=True,
        counters=attempt.tallies,
    )
    try:
        if combine is None:
            for columns in _pairs(pieces, separator):
                output.collect_batch(columns)
        else:
            lines = CountedLines(output, combine, separator=separator, memory_bytes=sort_bytes // 2)
            for piece in pieces:
                lines.feed(piece)
            lines.close()
        attempt.end_phase("map")
        output.close()
    except BaseException:
        output.abandon()
        raise
    attempt.end_phase("sort")
    return None


def _reduce(attempt: Attempt, scripts: Streaming, client: BlockingRpcClient, secret: bytes) -> PartFile:
    with ReduceInput(
        Path.cwd(), memory_bytes=attempt.sort_bytes(), codec=shuffle_codec(attempt.conf), counters=attempt.tallies
    ) as source:
        fetch_all(attempt, source, client, secret)
        attempt.end_phase("shuffle")
        if not scripts.reducer:
            return _to_file(attempt, "r", map(join_lines_of(attempt), _merged(attempt, source)))
        lines = map(join_lines, _merged(attempt, source))
        pipe = ScriptPipe("reducer", scripts.reducer, script_environment(attempt), attempt)
        pairs = _pairs(pipe.output(lines), _separator(attempt, "stream.reduce.output.field.separator"))
        return _to_file(attempt, "r", map(join_lines_of(attempt), pairs))


def _merged(attempt: Attempt, source: ReduceInput) -> Iterator[Columns]:
    for batch in source.batches():
        attempt.moved(1 / 3 + 2 / 3 * source.progress())
        yield batch


def _to_file(attempt: Attempt, letter: str, blocks: Iterator[memoryview]) -> PartFile:
    part = PartFile(attempt, letter)
    try:
        for block in blocks:
            data = bytes(block)
            part.writer.write_block(data, data.count(b"\n"))
        part.writer.close()
    except BaseException:
        part.writer.abort()
        raise
    name = TaskCounter.MAP_OUTPUT_RECORDS if letter == "m" else TaskCounter.REDUCE_OUTPUT_RECORDS
    attempt.tallies[name] = part.writer.records
    attempt.end_phase("map" if letter == "m" else "reduce")
    return part


def join_lines_of(attempt: Attempt) -> Callable[[Columns], memoryview]:
    """Columns to lines of output text."""
    separator = (attempt.conf.get("mapreduce.output.textoutputformat.separator") or "\t").encode()
    return lambda columns: join_lines(columns, separator)


def _input_blocks(attempt: Attempt, reader: RecordReader) -> Iterator[bytes]:
    for batch in reader.batches():
        attempt.counters.task(TaskCounter.MAP_INPUT_RECORDS).increment(len(batch))
        attempt.counters.increment(INPUT_GROUP, "BYTES_READ", batch.input_bytes)
        attempt.moved(reader.progress())
        yield b"\n".join((*batch.values(), b""))


def _pairs(pieces: Iterator[bytes], separator: int) -> Iterator[Columns]:
    lines = LineReader(separator)
    for piece in pieces:
        columns = lines.feed(piece)
        if len(columns):
            yield columns
    last = lines.finish()
    if len(last):
        yield last


def _combine(
    attempt: Attempt, scripts: Streaming, environment: Mapping[str, str]
) -> Callable[[Iterator[bytes | memoryview]], Iterator[Columns]]:
    def combine(lines: Iterator[bytes | memoryview]) -> Iterator[Columns]:
        """One run of the combiner over sorted lines of one partition."""
        pipe = ScriptPipe("combiner", scripts.combiner, environment, attempt)
        return _pairs(pipe.output(lines), ord("\t"))

    return combine


def _separator(attempt: Attempt, key: str) -> int:
    text = (attempt.conf.get(key) or "\t").encode()
    return text[0]


def script_environment(attempt: Attempt) -> dict[str, str]:
    """The container's environment, the job's configuration with names made fit, and who the task is."""
    kind = "m" if attempt.is_map else "r"
    own = {
        "mapreduce.job.id": attempt.spec.job_id,
        "mapreduce.job.name": attempt.spec.name,
        "mapreduce.task.id": f"task_{attempt.spec.job_id.removeprefix('job_')}_{kind}_{attempt.index:06d}",
        "mapreduce.task.attempt.id": attempt.name,
        "mapreduce.task.partition": str(attempt.index),
        "mapreduce.task.ismap": str(attempt.is_map).lower(),
        "mapreduce.job.reduces": str(attempt.spec.reduces),
        "mapreduce.task.output.dir": attempt.spec.output,
    }
    values = {**attempt.spec.conf, **own}
    named = {_NOT_A_NAME.sub("_", k): v for k, v in values.items() if len(v) <= _VALUE_CHARS_MAX and "\0" not in v}
    return {**named, **os.environ}
