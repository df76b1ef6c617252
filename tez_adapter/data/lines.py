"""Lines of text to columns and back, as Hadoop Streaming's scripts speak: key TAB value NEWLINE.

The key ends at the first TAB, or where a job's `Fields` says; a line without one is all key and its value is empty.
Whole buffers are cut at once. Of what scripts write, a CR or CR LF ends a line, too.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from riffle_merger.format.columns import I64, Columns, array_items, binary_array, trimmed

_NEWLINE = 10
#: A line longer than this is refused: it would have to be held whole.
LINE_BYTES_MAX = 1 << 30


class LineTooLong(ValueError):
    """A script wrote a line that does not end within `LINE_BYTES_MAX`."""


@dataclass(frozen=True, slots=True)
class Fields:
    """How much of a line is its key: so many fields, up to the separator after them."""

    separator: bytes = b"\t"
    count: int = 1

    def key_end(self, line: bytes) -> int:
        """Return the end of the key, -1 where all of the line is."""
        at = line.find(self.separator)
        for _ in range(1, self.count):
            if at < 0:
                break
            at = line.find(self.separator, at + len(self.separator))
        return at


BY_TAB = Fields()


def split_lines(data: bytes | bytearray | memoryview, fields: Fields = BY_TAB) -> Columns:
    """Split a buffer's lines into pairs. The last line may lack its newline; an empty buffer has no line."""
    buffer = np.frombuffer(data, dtype=np.uint8)
    if not len(buffer):
        return Columns.empty()
    ends = np.flatnonzero(buffer == _NEWLINE)
    if buffer[-1] != _NEWLINE:
        ends = np.append(ends, len(buffer))
    starts = np.empty_like(ends)
    starts[0] = 0
    starts[1:] = ends[:-1] + 1
    if len(fields.separator) == 1:
        separators = np.append(np.flatnonzero(buffer == fields.separator[0]), [len(buffer)] * max(1, fields.count))
        last = np.searchsorted(separators, starts) + max(0, fields.count - 1)
        key_ends = np.minimum(separators[np.minimum(last, len(separators) - 1)], ends)
    else:
        key_ends = _key_ends(bytes(data), starts, ends, fields)
    # Four items a line: key, separator, value, newline. The first and the third are taken.
    bounds = np.empty(4 * len(ends) + 1, dtype=np.int64)
    bounds[0:-1:4] = starts
    bounds[1::4] = key_ends
    bounds[2::4] = np.minimum(key_ends + len(fields.separator), ends)
    bounds[3::4] = ends
    bounds[-1] = len(buffer)
    items = binary_array(buffer, bounds)
    at = np.arange(0, len(bounds) - 1, 4, dtype=np.int64)
    return Columns(*array_items(items.take(pa.array(at))), *array_items(items.take(pa.array(at + 2))))


def _key_ends(data: bytes, starts: I64, ends: I64, fields: Fields) -> I64:
    """Line by line: occurrences of longer separators may overlap, and do not count then."""
    found = []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        at = fields.key_end(data[start:end])
        found.append(end if at < 0 else start + at)
    return np.array(found, dtype=np.int64)


def join_lines(columns: Columns, separator: bytes = b"\t") -> memoryview:
    """Join the pairs to lines; the separator stands also before an empty value."""
    if not len(columns):
        return memoryview(b"")
    keys = binary_array(columns.keys, columns.key_offsets)
    values = binary_array(columns.values, columns.value_offsets)
    kind = pa.large_binary()
    lines = pc.binary_join_element_wise(keys, values, pa.scalar(separator, kind))
    ended = pc.binary_join_element_wise(lines, pa.scalar(b"", kind), pa.scalar(b"\n", kind))
    return trimmed(*array_items(ended))[0].data


class WholeLines:
    """Cuts a stream that arrives in pieces after its last line end; the rest waits for the next piece."""

    def __init__(self, line_bytes_max: int = LINE_BYTES_MAX) -> None:
        self._line_bytes_max = line_bytes_max
        self._rest: list[bytes] = []
        self._rest_bytes = 0
        #: the stream so far ends in a CR whose LF may come
        self._has_cr = False

    def feed(self, piece: bytes) -> bytes:
        """Return all lines that end in this piece, newlines for their ends.

        Raises LineTooLong when one does not end in time.
        """
        if self._has_cr or b"\r" in piece:
            piece = self._with_newlines(piece)
        end = piece.rfind(b"\n") + 1
        if not end:
            self._rest.append(piece)
            self._rest_bytes += len(piece)
            if self._rest_bytes > self._line_bytes_max:
                raise LineTooLong(f"a line of more than {self._line_bytes_max} bytes: does the script write newlines?")
            return b""
        whole = b"".join((*self._rest, memoryview(piece)[:end]))
        self._rest, self._rest_bytes = [piece[end:]], len(piece) - end
        return whole

    def finish(self) -> bytes:
        """Return a last line without line end, if there is one."""
        rest = b"".join(self._rest) + (b"\n" if self._has_cr else b"")
        self._rest, self._rest_bytes, self._has_cr = [], 0, False
        return rest

    def _with_newlines(self, piece: bytes) -> bytes:
        if self._has_cr:
            piece = b"\r" + piece
        self._has_cr = piece.endswith(b"\r")
        return piece[: len(piece) - self._has_cr].replace(b"\r\n", b"\n").replace(b"\r", b"\n")


class LineReader:
    """A stream of lines that arrives in pieces, as pairs."""

    def __init__(self, fields: Fields = BY_TAB, line_bytes_max: int = LINE_BYTES_MAX) -> None:
        self._fields = fields
        self._lines = WholeLines(line_bytes_max)

    def feed(self, piece: bytes) -> Columns:
        """Return the pairs of all lines that end in this piece. Raises LineTooLong when one does not end in time."""
        return split_lines(self._lines.feed(piece), self._fields)

    def finish(self) -> Columns:
        """Return the pair of a last line without line end, if there is one."""
        return split_lines(self._lines.finish(), self._fields)
