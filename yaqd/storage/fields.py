"""Records with fields: JSON by lines, and CSV with a header."""

import codecs
import csv
import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from yaqd.mapreduce.errors import JobError
from yaqd.storage.batches import ListBatch, RecordBatch

_ROWS: Final = 4096
#: a longer one is an error, most likely a quote that was never closed
_FIELD_CHARS_MAX: Final = 64 << 20


def json_batch(lines: RecordBatch, path: str) -> ListBatch:
    """Return what these lines say. JobError for one that is no JSON."""
    keys, values = [], []
    for key, line in lines:
        if line and not line.isspace():
            try:
                values.append(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise JobError(f"{path}: the line at byte {key} is not JSON: {error}") from None
            keys.append(key)
    return ListBatch(keys, values, lines.input_bytes)


def csv_batches(chunks: Iterable[bytes], delimiter: str, path: str) -> Iterator[ListBatch]:
    """Return a whole file's records, each a dict by the names in the first. JobError for what does not fit these."""
    csv.field_size_limit(_FIELD_CHARS_MAX)
    source = _Lines(chunks)
    rows = csv.reader(source, delimiter=delimiter, strict=True)
    number = taken = 0
    try:
        names = next((row for row in rows if row), [])
        if len(set(names)) < len(names):
            raise JobError(f"{path}: two columns have one name in its header: {', '.join(names)}")
        while records := list(islice((row for row in rows if row), _ROWS)):
            values = [_by_name(names, row, path, number + at) for at, row in enumerate(records)]
            yield ListBatch(list(range(number, number + len(records))), values, source.bytes_read - taken)
            number, taken = number + len(records), source.bytes_read
    except csv.Error as error:
        raise JobError(f"{path}: no CSV near line {rows.line_num}: {error}") from None


def _by_name(names: list[str], row: list[str], path: str, number: int) -> dict[str, Any]:
    if len(row) != len(names):
        raise JobError(f"{path}: record {number} has {len(row)} fields, and its header {len(names)}")
    return dict(zip(names, row, strict=True))


class _Lines:
    """Lines with their ends, as csv.reader takes them; bytes that are not UTF-8 are carried as surrogate escapes."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self.bytes_read = 0

    def __iter__(self) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        rest: list[str] = []
        is_first = True
        for chunk in self._chunks:
            self.bytes_read += len(chunk)
            text = decoder.decode(chunk)
            if is_first and text:
                text, is_first = text.removeprefix("\ufeff"), False
            *lines, last = text.split("\n")
            for line in lines:
                yield "".join((*rest, line, "\n"))
                rest = []
            rest.append(last)
        if end := "".join(rest) + decoder.decode(b"", final=True):
            yield end
