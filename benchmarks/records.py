"""What a record costs on one core: encoding keys and values, reading lines, calling a user's map.

`python -m benchmarks.records [--json]`. Rows `encode-*` and `decode-*`: time for one object, beside pickle. Rows
`read-*`: a text file that is in memory, beside Python's own `for line in file`; `read-map` with a generator that
splits each line into words on both sides.
"""

import argparse
import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks.inputs import text_file
from benchmarks.report import Row, make_row, print_table, to_json
from yaqd.config import Configuration
from yaqd.mapreduce import Job
from yaqd.mapreduce.serde import decode_key, decode_many, encode_key, encode_pairs
from yaqd.storage import FileRange, InputSplit, open_reader

_OBJECTS: dict[str, list[Any]] = {
    "str": [f"word{number % 5000}" for number in range(20_000)],
    "bytes": [b"word%d" % (number % 5000) for number in range(20_000)],
    "int": [number % 3000 for number in range(20_000)],
    "tuple": [(f"word{number % 5000}", number % 100) for number in range(20_000)],
}


class Words(Job):
    def map(self, key: int, value: str) -> Iterable[tuple[str, int]]:
        for word in value.split():
            yield word, 1


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """What a plain Python program does to have the same records."""
    offset = 0
    with path.open("rb") as file:
        for line in file:
            yield offset, line.decode("utf-8", "surrogateescape").rstrip("\r\n")
            offset += len(line)


def cpu_seconds(work: Callable[[], object], runs: int) -> list[float]:
    taken = []
    for _ in range(runs):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return taken


def object_rows(runs: int) -> list[Row]:
    rows = []
    for name, objects in _OBJECTS.items():
        codes = _each(encode_key, objects)
        pickles = [pickle.dumps(item, 5) for item in objects]
        for row_id, ours, theirs in (
            ("encode", partial(_each, encode_key, objects), partial(_each, pickle.dumps, objects)),
            ("decode", partial(_each, decode_key, codes), partial(_each, pickle.loads, pickles)),
            ("encode-pairs", partial(_pairs, objects), partial(_each, pickle.dumps, objects)),
            ("decode-many", partial(decode_many, codes), partial(_each, pickle.loads, pickles)),
        ):
            both = [[second / len(objects) * 1e9 for second in cpu_seconds(work, runs)] for work in (ours, theirs)]
            rows.append(make_row(f"{row_id}-{name}", both[0], both[1], "ns", higher_is_better=False))
    return rows


def _pairs(items: list[Any]) -> object:
    """As many encodings as items."""
    half = len(items) // 2
    return encode_pairs(zip(items[:half], items[half:], strict=False))


def _each(function: Callable[[Any], Any], items: list[Any]) -> list[Any]:
    return [function(item) for item in items]


def reader_rows(path: Path, runs: int) -> list[Row]:
    size = path.stat().st_size
    conf = Configuration.load(environ={})
    split = InputSplit((FileRange(f"file://{path}", 0, size, size),))
    job = Words()

    def read() -> int:
        return sum(len(list(batch)) for batch in open_reader("text", split, conf).batches())

    def read_and_map() -> int:
        batches = open_reader("text", split, conf).batches()
        return sum(1 for batch in batches for _ in chain.from_iterable(map(job.map, batch.keys(), batch.values())))

    def columns() -> int:
        return sum(len(batch.columns().values) for batch in open_reader("text", split, conf).batches())

    def plain() -> int:
        return sum(1 for _ in lines_of(path))

    def plain_and_map() -> int:
        return sum(1 for key, value in lines_of(path) for _ in job.map(key, value))

    rows = []
    for row_id, ours, theirs in (
        ("read-text", read, plain),
        ("read-columns", columns, plain),
        ("read-map", read_and_map, plain_and_map),
    ):
        both = [[size / second / 1e6 for second in cpu_seconds(work, runs)] for work in (ours, theirs)]
        rows.append(make_row(row_id, both[0], both[1], "MB/s", higher_is_better=True))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.records", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=100, help="size of the text")
    options = parser.parse_args()
    path, _ = text_file(options.megabytes << 20)
    rows = object_rows(options.runs) + reader_rows(path, options.runs)
    if options.json:
        print(to_json(rows, megabytes=options.megabytes))
    else:
        print_table(rows)


if __name__ == "__main__":
    main()
