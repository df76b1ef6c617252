"""What a script says on stderr: messages to the job, and lines for the container's own stderr.

`reporter:counter:GROUP,NAME,AMOUNT` and `reporter:status:TEXT` are messages, as in Hadoop Streaming. Memory is bounded
whatever is written: a line that does not end is handed on in pieces.
"""

import re
import sys
from collections import deque
from typing import IO

from tez_adapter.tasks.attempt import TaskAttempt
from yaqd.mapreduce.counters import as_long
from yaqd.mapreduce.errors import JobError

_READ_BYTES = 1 << 20
_TAIL_LINES = 20
_LINE_CHARS_MAX = 2000
#: of a line that is looked at as a whole
_LINE_BYTES_MAX = 1 << 16
_AMOUNT = re.compile(r"[+-]?[0-9]{1,19}")
_INT64 = range(-(1 << 63), 1 << 63)


class StderrReader:
    """Reads the stderr of one script to its end."""

    def __init__(self, role: str, attempt: TaskAttempt) -> None:
        self._role = role
        self._attempt = attempt
        self._prefix = attempt.conf.get("stream.stderr.reporter.prefix") or "reporter:"
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._rest = b""
        #: the line has gone on for so long that its beginning was handed on
        self._is_long = False

    def read(self, stream: IO[bytes]) -> None:
        """Raises JobError for a counter that cannot be."""
        while piece := stream.read(_READ_BYTES):
            self._attempt.moved()
            self._take(piece)
        if self._rest:
            self._write(self._heard(self._rest))

    def tail(self) -> str:
        """Returns its last lines, for a message."""
        return "\n".join(self._tail)

    def _take(self, piece: bytes) -> None:
        *lines, self._rest = (self._rest + piece).split(b"\n")
        said = []
        for line in lines:
            said.append(line.decode("utf-8", "replace") + "\n" if self._is_long else self._heard(line))
            self._is_long = False
        if len(self._rest) > _LINE_BYTES_MAX:
            text = self._rest.decode("utf-8", "replace")
            if self._is_long:
                said.append(text)
            elif text.startswith(f"{self._prefix}status:"):
                self._heard(self._rest)  # which is cut anyway
            elif text.startswith(self._prefix):
                raise self._error(f"a message of more than {_LINE_BYTES_MAX} bytes on stderr: {text[:80]!r}")
            else:
                said.append(self._remembered(text))
            self._rest, self._is_long = b"", True
        self._write("".join(said))

    def _heard(self, line: bytes) -> str:
        """What of a whole line is for the container's stderr."""
        text = line.decode("utf-8", "replace")
        if text.startswith(self._prefix):
            kind, _, content = text.removeprefix(self._prefix).partition(":")
            if kind == "counter" and self._count(content.strip()):
                return ""
            if kind == "status":
                self._attempt.status = content[:_LINE_CHARS_MAX]
                return ""
        return self._remembered(text) + "\n"

    def _count(self, content: str) -> bool:
        """Whether it is a counter's name and a number, as Hadoop reads them."""
        parts = content.rstrip(",").split(",")  # Java's split drops empty parts at the end
        if len(parts) != 3 or not _AMOUNT.fullmatch(parts[2]) or int(parts[2]) not in _INT64:
            return False
        try:
            cell = self._attempt.counters.find(parts[0], parts[1])
        except JobError as error:
            raise self._error(f"a counter that cannot be: {error}") from error
        cell.value = as_long(cell.value + int(parts[2]))
        return True

    def _error(self, what: str) -> JobError:
        return JobError(f"the {self._role} reported {what}")

    def _remembered(self, text: str) -> str:
        self._tail.append(text[:_LINE_CHARS_MAX])
        return text

    def _write(self, text: str) -> None:
        if text:
            sys.stderr.write(text)
            sys.stderr.flush()
