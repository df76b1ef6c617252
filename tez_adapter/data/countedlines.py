"""Map output of a streaming mapper on its way to a combiner script, with repeated lines counted.

A mapper that counts writes the same lines over and over. Counting equal lines costs a third of cutting, sorting and
joining them one by one; the combiner still reads every one of them, sorted by key. Where lines seldom repeat, they go
to the map output as they are.
"""

from collections.abc import Callable, Iterator

import numpy as np

from riffle_merger.format.columns import I64, Columns
from tez_adapter.data.counted import CountedItems, line_offsets
from tez_adapter.data.lines import Fields, WholeLines, join_lines, split_lines
from tez_adapter.data.mapoutput import MapOutput

#: `combine(blocks of sorted lines)` gives the combiner's pairs; called once per partition and flush.
CombineLines = Callable[[Iterator[bytes | memoryview]], Iterator[Columns]]

#: Counting goes on while a distinct line is there this often on average.
_REPETITIONS_MIN = 2.0
_BLOCK_BYTES = 1024 * 1024
_SLICE_LINES = 16 * 1024


class CountedLines:
    """Takes a mapper's output in pieces; combined pairs go to the `MapOutput` as spills of it, which should be made
    with `combine_spills`.

    Pairs stay in the partition of what the combiner read, whatever keys it writes, as in Hadoop.

    `fields` cut the mapper's lines, `separator` is between key and value of the combiner's. `memory_bytes` bounds what
    is held here. Call `close` before the output's. Not thread-safe.
    """

    def __init__(
        self, output: MapOutput, combine: CombineLines, *, fields: Fields, separator: bytes, memory_bytes: int
    ) -> None:
        self._output = output
        self._combine = combine
        self._fields = fields
        self._separator = separator
        self._memory_bytes = memory_bytes
        self._lines = WholeLines(memory_bytes)
        self._items = CountedItems(memory_bytes)
        #: Lines counted since the last flush.
        self._added = 0
        self._is_counting = True

    def feed(self, piece: bytes) -> None:
        """Take the next piece of the mapper's output. LineTooLong when a line does not fit memory."""
        self._take(self._lines.feed(piece))

    def close(self) -> None:
        """Combine and hand on what is left."""
        rest = self._lines.finish()
        if rest:
            self._take(rest if rest.endswith(b"\n") else rest + b"\n")
        if self._is_counting:
            self.flush()

    def flush(self) -> None:
        """Run the combiner over everything that is held."""
        data, offsets, counts = self._items.drain()
        self._added = 0
        if not len(counts):
            return
        lines = split_lines(data[int(offsets[0]) : int(offsets[-1])].data, self._fields)
        sizes = np.diff(lines.key_offsets) + np.diff(lines.value_offsets)
        self._output.count("MAP_OUTPUT_RECORDS", int(counts.sum()))
        self._output.count("COMBINE_INPUT_RECORDS", int(counts.sum()))
        self._output.count("MAP_OUTPUT_BYTES", int((sizes * counts).sum()))
        order, ends = self._output.sort(lines)
        starts = (0, *ends[:-1])
        self._output.spill_combined(
            self._combine(_repeated(lines.take(order[start:end]), counts[order[start:end]], self._separator))
            if end > start
            else ()
            for start, end in zip(starts, ends, strict=True)
        )

    def _take(self, lines: bytes) -> None:
        if not lines:
            return
        if not self._is_counting:
            self._output.collect_batch(split_lines(lines, self._fields))
            return
        buffer = np.frombuffer(lines, dtype=np.uint8)
        offsets = line_offsets(buffer)
        self._added += len(offsets) - 1
        if self._items.add(buffer, offsets) and self._items.distinct * _REPETITIONS_MIN > self._added:
            self._stop_counting()
        elif self._items.held_bytes > self._memory_bytes:
            self.flush()

    def _stop_counting(self) -> None:
        """Lines seldom repeat: hand them on as if they had never been counted."""
        self._is_counting = False
        data, offsets, counts = self._items.drain()
        lines = split_lines(data[int(offsets[0]) : int(offsets[-1])].data, self._fields)
        each = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
        for start in range(0, len(each), _SLICE_LINES):
            self._output.collect_batch(lines.take(each[start : start + _SLICE_LINES]))


def _repeated(lines: Columns, counts: I64, separator: bytes) -> Iterator[bytes | memoryview]:
    """Each pair as a line, as often as it was counted, in blocks."""
    held: list[bytes] = []
    held_bytes = 0
    for start in range(0, len(lines), _SLICE_LINES):
        part = lines.slice(start, min(start + _SLICE_LINES, len(lines)))
        text = bytes(join_lines(part, separator))
        ends = np.cumsum(np.diff(part.key_offsets) + np.diff(part.value_offsets) + len(separator) + 1)
        position = 0
        for end, count in zip(ends.tolist(), counts[start : start + len(part)].tolist(), strict=True):
            line = text[position:end]
            position = end
            while count:
                times = min(count, max(1, _BLOCK_BYTES // len(line)))
                held.append(line * times)
                held_bytes += len(line) * times
                count -= times
                if held_bytes >= _BLOCK_BYTES:
                    yield b"".join(held)
                    held, held_bytes = [], 0
    if held:
        yield b"".join(held)
