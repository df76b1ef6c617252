"""Names of input and output formats. Only their meaning stands here; `yaqd.storage` reads and writes them.

| input | key | value |
| --- | --- | --- |
| text | offset of the line in the file, int | the line as str, without its end |
| bytes | the same | the line as bytes |
| fixed:N | offset of the record, int | N bytes |
| fixed:K+V | first K bytes of each record | the V bytes after them |

| output | a record is |
| --- | --- |
| text | key TAB value NEWLINE, see `yaqd.mapreduce.text` |
| raw | the bytes of key and value with nothing between or after |
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


@dataclass(frozen=True, slots=True)
class InputFormat:
    kind: InputKind
    #: fixed records: bytes of the key at the start of a record, 0 = the key is the offset
    key_bytes: int = 0
    #: fixed records: bytes of the value
    value_bytes: int = 0

    @property
    def record_bytes(self) -> int:
        """Length of a fixed record, 0 where records end at line ends."""
        return self.key_bytes + self.value_bytes

    @property
    def reads_lines(self) -> bool:
        """A record is a line, wherever the file is cut."""
        return self.kind in (InputKind.TEXT, InputKind.BYTES)

    def __str__(self) -> str:
        if self.kind is not InputKind.FIXED:
            return self.kind.value
        return f"fixed:{self.key_bytes}+{self.value_bytes}" if self.key_bytes else f"fixed:{self.value_bytes}"

    @classmethod
    def parse(cls, name: str) -> Self:
        if name in (InputKind.TEXT, InputKind.BYTES):
            return cls(InputKind(name))
        match = _FIXED.match(name)
        if match is None:
            raise JobError(
                f"unknown input format {name!r}: use text, bytes, fixed:N (N bytes a record) or fixed:K+V (key, value)"
            )
        first, second = int(match[1]), match[2]
        format_ = cls(InputKind.FIXED, 0, first) if second is None else cls(InputKind.FIXED, first, int(second))
        if format_.record_bytes == 0 or (second is not None and first == 0):
            raise JobError(f"input format {name!r} has no bytes in a record or key: say for example fixed:10+90")
        return format_


class OutputKind(StrEnum):
    TEXT = "text"
    RAW = "raw"

    @classmethod
    def of(cls, name: str) -> "OutputKind":
        try:
            return cls(name)
        except ValueError:
            raise JobError(f"unknown output format {name!r}: use text or raw") from None
