"""Lines of text to columns and back, as Hadoop Streaming's scripts speak: key TAB value NEWLINE.

The key ends at the first TAB; a line without one is all key and its value is empty. Whole buffers are cut at once.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from riffle_merger.format.columns import Columns, array_items, binary_array, trimmed

_NEWLINE = 10
_TAB = 9
#: A line longer than this is refused: it would have to be held whole.
LINE_BYTES_MAX = 1 << 30


class LineTooLong(ValueError):
    """A script wrote a line that does not end within `LINE_BYTES_MAX`."""


def split_lines(data: bytes | bytearray | memoryview, separator: int = _TAB) -> Columns:
    """The lines of a buffer as pairs. The last line may lack its newline; an empty buffer has no line."""
    buffer = np.frombuffer(data, dtype=np.uint8)
    if not len(buffer):
        return Columns.empty()
    ends = np.flatnonzero(buffer == _NEWLINE)
    if buffer[-1] != _NEWLINE:
        ends = np.append(ends, len(buffer))
    starts = np.empty_like(ends)
    starts[0] = 0
    starts[1:] = ends[:-1] + 1
    separators = np.append(np.flatnonzero(buffer == separator), len(buffer))
    key_ends = np.minimum(separators[np.searchsorted(separators, starts)], ends)
    # Four items a line: key, separator, value, newline. The first and the third are taken.
    bounds = np.empty(4 * len(ends) + 1, dtype=np.int64)
    bounds[0:-1:4] = starts
    bounds[1::4] = key_ends
    bounds[2::4] = np.minimum(key_ends + 1, ends)
    bounds[3::4] = ends
    bounds[-1] = len(buffer)
    items = binary_array(buffer, bounds)
    at = np.arange(0, len(bounds) - 1, 4, dtype=np.int64)
    return Columns(*array_items(items.take(pa.array(at))), *array_items(items.take(pa.array(at + 2))))


def join_lines(columns: Columns, separator: bytes = b"\t") -> memoryview:
    """The pairs as lines; the separator stands also before an empty value."""
    if not len(columns):
        return memoryview(b"")
    keys = binary_array(columns.keys, columns.key_offsets)
    values = binary_array(columns.values, columns.value_offsets)
    kind = pa.large_binary()
    lines = pc.binary_join_element_wise(keys, values, pa.scalar(separator, kind))
    ended = pc.binary_join_element_wise(lines, pa.scalar(b"", kind), pa.scalar(b"\n", kind))
    return trimmed(*array_items(ended))[0].data


class WholeLines:
    """Cuts a stream that arrives in pieces after its last newline; the rest waits for the next piece."""

    def __init__(self, line_bytes_max: int = LINE_BYTES_MAX) -> None:
        self._line_bytes_max = line_bytes_max
        self._rest: list[bytes] = []
        self._rest_bytes = 0

    def feed(self, piece: bytes) -> bytes:
        """All lines that end in this piece. LineTooLong when one does not end in time."""
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
        """A last line without newline, if there is one."""
        rest = b"".join(self._rest)
        self._rest, self._rest_bytes = [], 0
        return rest


class LineReader:
    """A stream of lines that arrives in pieces, as pairs."""

    def __init__(self, separator: int = _TAB, line_bytes_max: int = LINE_BYTES_MAX) -> None:
        self._separator = separator
        self._lines = WholeLines(line_bytes_max)

    def feed(self, piece: bytes) -> Columns:
        """The pairs of all lines that end in this piece. LineTooLong when one does not end in time."""
        return split_lines(self._lines.feed(piece), self._separator)

    def finish(self) -> Columns:
        """The pair of a last line without newline, if there is one."""
        return split_lines(self._lines.finish(), self._separator)
