"""MapReduce as the documentation tells it, in plain Python: what every engine's answer is held against.

Each task runs the program as freshly loaded. Pairs count as they were when they were yielded. Keys are grouped by what
they are, and come sorted. Nothing here is taken from an engine but the job's own base class, and the encoding whose
CRC-32 tells the partition of a key.
"""

import json
import math
import os
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from tests.differential.diff_case import Case, Outcome, Program
from tests.differential.diff_reading import Range, contents
from tests.differential.diff_scripted import Scripted
from tests.differential.diff_tasks import Failed, Tasks, unmarked
from yaqd.mapreduce import Counters, Job, parse_params
from yaqd.mapreduce.job import TaskContext
from yaqd.mapreduce.serde import encode_key
from yaqd.model import steady_hash

Pair = tuple[Any, Any]
_KINDS = (type(None), bool, int, float, bytes, str, tuple, list, dict)
_BASES = (int, float, tuple, list, dict, bytes)


def run_model(case: Case, splits: Sequence[Sequence[Range]]) -> Outcome:
    """What must come of the case, its input divided like this."""
    model = Scripted(case) if case.is_streaming else _Classed(case)
    failures: list[str] = []
    maps: list[list[Any]] = []
    for index, split in enumerate(splits):
        try:
            with model.own_folder():
                maps.append(model.map(index, split))
        except Failed as failure:
            failures += failure.args
    parts: dict[str, bytes] = {}
    if not failures and not case.reduces:
        parts = {model.name("m", index): b"".join(lines) for index, lines in enumerate(maps)}
    elif not failures:
        for partition in range(case.reduces):
            try:
                mine = [pair for pairs in maps for at, *pair in pairs if at == partition]
                with model.own_folder():
                    data = model.reduce(partition, mine)
                parts[model.name("r", partition)] = data
            except Failed as failure:
                failures += failure.args
    model.count("JobCounter", "TOTAL_LAUNCHED_MAPS", len(splits))
    model.count("JobCounter", "TOTAL_LAUNCHED_REDUCES", case.reduces)
    counters = {} if failures else {group: dict(names) for group, names in model.counters.items()}
    return Outcome(not failures, {} if failures else parts, counters, int(bool(failures)), failures)


class _Classed(Tasks):
    """The tasks of a job class."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        assert isinstance(case.program, Program)
        self._source = case.program.source
        self._separator = case.defines.get("mapreduce.output.textoutputformat.separator", "\t").encode()

    def name(self, letter: str, index: int) -> str:
        return f"part-{letter}-{index:05d}"

    def map(self, index: int, split: Sequence[Range]) -> list[Any]:
        job = self._fresh("map", index)
        pairs = self._called(lambda: self._mapped(job, split), "map()", job)
        if not self.case.reduces:
            lines = list(map(self._line(job), pairs))
            self.count("TaskCounter", "MAP_OUTPUT_RECORDS", len(lines))
            return lines
        found = [(travelled(key), travelled(value)) for key, value in pairs]
        self.count("TaskCounter", "MAP_OUTPUT_RECORDS", len(found))
        if job.overrides_combine:
            found = self._combined(job, found)
        return [(self._part(job, key), key, value) for key, value in found]

    def reduce(self, partition: int, pairs: list[list[Any]]) -> bytes:
        job = self._fresh("reduce", partition)
        self.count("TaskCounter", "REDUCE_INPUT_RECORDS", len(pairs))
        lines = list(map(self._line(job), self._called(lambda: self._reduced(job, pairs), "reduce()", job)))
        self.count("TaskCounter", "REDUCE_OUTPUT_RECORDS", len(lines))
        return b"".join(lines)

    def _fresh(self, phase: str, index: int) -> Job:
        os.environ.pop("DIFF_LAST", None)
        steady_hash.install()  # as tasks have it
        namespace: dict[str, Any] = {"__name__": "generated"}
        exec(compile(self._source, "generated.py", "exec"), namespace)
        made: type[Job] = namespace["Generated"]
        self._counters = Counters()
        job = made(parse_params(made, {}), self._counters, TaskContext(phase=phase, index=index))
        job.task.partitions = self.case.reduces
        return job

    def _mapped(self, job: Job, split: Sequence[Range]) -> Iterator[Pair]:
        job.setup()
        for path, key, value in self._records(job, split):
            job.task.input_path = f"file://{path}"
            yield from job.map(key, value)
        yield from job.cleanup() or ()

    def _records(self, job: Job, split: Sequence[Range]) -> Iterator[tuple[Path, Any, Any]]:
        if job.input_format.startswith("fixed:"):
            yield from self._fixed(job.input_format.removeprefix("fixed:"), split)
            return
        for path, offset, line in self.lines(split):
            if job.input_format == "bytes":
                yield path, offset, line
            else:
                yield path, offset, unmarked(offset, line).decode("utf-8", "surrogateescape")

    def _fixed(self, shape: str, split: Sequence[Range]) -> Iterator[tuple[Path, Any, Any]]:
        width, size = (int(shape.partition("+")[0]), sum(map(int, shape.split("+"))))
        for path, start, length in split:
            data, members = contents(path)
            end = len(data) if members else start + length
            for offset in range(start, end, size):
                self.count("TaskCounter", "MAP_INPUT_RECORDS")
                record = data[offset : offset + size]
                yield (path, record[:width], record[width:]) if "+" in shape else (path, offset, record)

    def _reduced(self, job: Job, pairs: list[list[Any]]) -> Iterator[Pair]:
        job.setup()
        ordered = sorted(pairs, key=lambda pair: order(pair[0]))
        for _, group in groupby(ordered, key=lambda pair: order(pair[0])):
            self.count("TaskCounter", "REDUCE_INPUT_GROUPS")
            held = list(group)
            yield from job.reduce(held[0][0], (value for _, value in held))
        yield from job.cleanup() or ()

    def _combined(self, job: Job, pairs: list[Pair]) -> list[Pair]:
        groups: dict[Any, list[Pair]] = defaultdict(list)
        for pair in pairs:
            groups[order(pair[0])].append(pair)
        result = []
        for code, group in groups.items():
            for key, value in job.combine(group[0][0], (value for _, value in group)):
                if order(travelled(key)) != code:
                    raise Failed("a combiner must keep the key")
                result.append((key, travelled(value)))
        return result

    def _part(self, job: Job, key: Any) -> int:
        count = self.case.reduces
        if count == 1:
            return 0  # nobody is asked
        try:
            part = job.partition(key, count) if job.overrides_partition else zlib.crc32(encode_key(key)) % count
        except TypeError as error:  # of hash(), for keys that have none
            raise Failed(f"TypeError: {error}") from None
        if not 0 <= part < count:
            raise Failed("partition")
        return part

    def _line(self, job: Job) -> Any:
        if job.output_format == "raw":
            return lambda pair: text(pair[0]) + text(pair[1])
        return lambda pair: (
            text(pair[0]) + self._separator * (pair[0] is not None and pair[1] is not None) + text(pair[1]) + b"\n"
        )

    def _called(self, pairs: Any, function: str, job: Job) -> Iterator[Pair]:
        """The pairs, each as it is when it is yielded; the program's own errors become the job's."""
        try:
            for pair in pairs():
                two: Any = pair
                if isinstance(pair, (str, bytes)) or not isinstance(pair, Iterable) or len(two) != 2:
                    raise Failed("must yield pairs")
                if self.case.reduces and function == "map()":
                    yield travelled(two[0]), travelled(two[1])
                else:
                    yield two
        except TypeError as error:
            raise Failed("must yield pairs" if "not iterable" in str(error) else f"TypeError: {error}") from None
        except SystemExit as leaving:
            raise Failed(f"exit({leaving.code!r})") from None
        except (ArithmeticError, LookupError, ValueError, RuntimeError) as error:
            raise Failed(f"{type(error).__name__}: {error}") from None
        for counter in self._counters:
            self.count(counter.group, counter.name, counter.value)


def travelled(value: Any) -> Any:
    """A copy of the value as the other side gets it."""
    base: Any
    if value is None or type(value) in (bool, int, float, bytes):
        return value
    if isinstance(value, str):
        plain = str.__str__(value)
        try:
            plain.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise Failed("lone surrogate") from None
        return plain
    for base in _BASES:
        if isinstance(value, base):
            if base is dict:
                items = [(travelled(key), travelled(item)) for key, item in value.items()]
                return dict(sorted(items, key=lambda item: order(item[0])))
            return base(map(travelled, value)) if base in (tuple, list) else base(value)
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    raise Failed("cannot serialize")


def order(value: Any) -> Any:
    """What sorts and groups keys as the documentation says."""
    kind = type(value)
    rank = _KINDS.index(kind)
    if kind is float:
        return (rank, 1, 0.0, 0) if math.isnan(value) else (rank, 0, value, math.copysign(1, value))
    if kind is str:
        return rank, value.encode("utf-8", "surrogateescape")
    if kind in (tuple, list):
        return rank, tuple(map(order, value))
    if kind is dict:
        return rank, tuple(part for item in sorted((order(k), order(v)) for k, v in value.items()) for part in item)
    return (rank,) if value is None else (rank, value)


def text(value: Any) -> bytes:
    """As text output shows it."""
    if value is None:
        return b""
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(value, (int, float)):
        return repr(value + 0 if isinstance(value, int) else value).encode()
    shown = str(value)
    if isinstance(value, (tuple, list, dict)):
        shown = json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"))
    try:
        return shown.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise Failed("lone surrogate") from None


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key if isinstance(key, str) else text(key).decode("utf-8", "surrogateescape"): _plain(item)
            for key, item in value.items()
        }
    if isinstance(value, (tuple, list)):
        return list(map(_plain, value))
    return value.decode("utf-8", "surrogateescape") if isinstance(value, (bytes, bytearray)) else value


def canonical(data: bytes, separator: bytes) -> tuple[tuple[bytes, ...], Counter[bytes]]:
    """Of a part whose values of one key come in any order: the keys in their order, and the lines."""
    lines = data.split(b"\n")
    return tuple(key for key, _ in groupby(line.split(separator)[0] for line in lines)), Counter(lines)
