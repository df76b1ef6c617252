"""Names of input and output formats. Only their meaning stands here; `yaqd.storage` reads and writes them.

| input | key | value |
| --- | --- | --- |
| text | offset of the line in the file, int | the line as str, without its end |
| bytes | the same | the line as bytes |
| fixed:N | offset of the record, int | N bytes |
| fixed:K+V | first K bytes of each record | the V bytes after them |
| json | offset of the line in the file, int | what the line says in JSON; blank lines are left out |
| csv, csv:D | number of the record in its file, from 0 | a dict of str by the names in its first record |

D is the character between fields, a comma unless it is named. A field in quotes may hold line ends, so that a CSV file
is read by one task.

| output | a record is |
| --- | --- |
| text | key TAB value NEWLINE, see `yaqd.mapreduce.text` |
| raw | the bytes of key and value with nothing between or after |
| json | a line of JSON: the value where the key is None, else a list of both |
| csv:A,B,... | a line of CSV behind a header with these names: the key's fields, then the value's; or a dict by name |
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from yaqd.mapreduce.errors import JobError

_FIXED: Final = re.compile(r"fixed:(\d{1,9})(?:\+(\d{1,9}))?\Z", re.ASCII)


class InputKind(StrEnum):
    TEXT = "text"
    BYTES = "bytes"
    FIXED = "fixed"
    JSON = "json"
    CSV = "csv"


@dataclass(frozen=True, slots=True)
class InputFormat:
    kind: InputKind
    #: fixed records: bytes of the key at the start of a record, 0 = the key is the offset
    key_bytes: int = 0
    #: fixed records: bytes of the value
    value_bytes: int = 0
    #: CSV: the character between fields
    delimiter: str = ","

    @property
    def record_bytes(self) -> int:
        """Length of a fixed record, 0 where records end at line ends."""
        return self.key_bytes + self.value_bytes

    @property
    def reads_lines(self) -> bool:
        """A record is a line, wherever the file is cut."""
        return self.kind in (InputKind.TEXT, InputKind.BYTES, InputKind.JSON)

    def __str__(self) -> str:
        if self.kind is InputKind.CSV and self.delimiter != ",":
            return f"csv:{self.delimiter}"
        if self.kind is not InputKind.FIXED:
            return self.kind.value
        return f"fixed:{self.key_bytes}+{self.value_bytes}" if self.key_bytes else f"fixed:{self.value_bytes}"

    @classmethod
    def parse(cls, name: str) -> Self:
        if name in (InputKind.TEXT, InputKind.BYTES, InputKind.JSON, InputKind.CSV):
            return cls(InputKind(name))
        if len(name) == 5 and name.startswith("csv:") and name[4] not in '"\r\n':
            return cls(InputKind.CSV, delimiter=name[4])
        match = _FIXED.match(name)
        if match is None:
            raise JobError(
                f"unknown input format {name!r}: use text, bytes, json, csv, csv:D (fields with D between), "
                "fixed:N (N bytes a record) or fixed:K+V (key, value)"
            )
        first, second = int(match[1]), match[2]
        format_ = cls(InputKind.FIXED, 0, first) if second is None else cls(InputKind.FIXED, first, int(second))
        if format_.record_bytes == 0 or (second is not None and first == 0):
            raise JobError(f"input format {name!r} has no bytes in a record or key: say for example fixed:10+90")
        return format_


class OutputKind(StrEnum):
    TEXT = "text"
    RAW = "raw"
    JSON = "json"
    CSV = "csv"

    @classmethod
    def of(cls, name: str) -> "OutputKind":
        """Return the kind of a format's name; of CSV that names its columns."""
        kind, _, columns = name.partition(":")
        if (kind == cls.CSV) == bool(columns) and kind in tuple(cls):
            csv_columns(name)
            return cls(kind)
        raise JobError(f"unknown output format {name!r}: use text, raw, json or csv:A,B,... (the names of its columns)")


def csv_columns(name: str) -> tuple[str, ...]:
    """Return the columns that an output format names; none where it is not CSV."""
    kind, _, columns = name.partition(":")
    if kind != OutputKind.CSV:
        return ()
    names = tuple(column.strip() for column in columns.split(","))
    if not all(names) or len(set(names)) < len(names):
        raise JobError(f"output format {name!r}: give each column a name of its own")
    return names
