"""Merging sorted runs in columns and in bounded memory.

Each run keeps a few decoded blocks at hand. Everything up to the smallest of the runs' last buffered keys is safe: no
run can still bring anything smaller. That part of every run is concatenated and sorted at once; numpy's stable sort
finds the sorted pieces and merges them, about ten times faster than a heap of records. Equal keys keep the order of
their runs, unless one key fills more than what a run may buffer.

A merge of more runs than memory has blocks for goes through intermediate files (`bounded_runs`).
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from riffle_merger.format.codec import Codec
from riffle_merger.format.columns import Columns
from riffle_merger.format.output import SegmentFileWriter
from riffle_merger.format.segment import BLOCK_BYTES, Run, find_runs
from tez_adapter.data.arena import Gatherer
from tez_adapter.data.order import U64, count_up_to, prefixes, sort_order
from tez_adapter.data.source import FileSource

#: Memory that a run needs in a merge: buffered blocks, the next one being decoded, and its share of the merged chunk
#: twice.
_RUN_BLOCKS = 6
_FAN_IN_MIN = 2
#: Each run may hold a file open.
_FAN_IN_MAX = 500


def fan_in(memory_bytes: int) -> int:
    """Return how many runs may be merged at once within this memory."""
    return min(max(_FAN_IN_MIN, memory_bytes // (_RUN_BLOCKS * BLOCK_BYTES)), _FAN_IN_MAX)


class _Cursor:
    """One run's decoded, unmerged pairs."""

    def __init__(self, run: Run) -> None:
        self._blocks = run.blocks()
        self._held = Columns.empty()
        self._words: U64 = np.empty(0, dtype=np.uint64)
        self.exhausted = False
        self.last_key = b""

    def fill(self, held_bytes: int) -> None:
        """Decode blocks until `held_bytes` are at hand, or at least one pair, or the run has ended."""
        if self.exhausted or (len(self._held) and self._held.nbytes >= held_bytes):
            return
        parts = [self._held]
        size = self._held.nbytes if len(self._held) else 0
        while size < held_bytes or not size:
            block = next(self._blocks, None)
            if block is None:
                self.exhausted = True
                break
            parts.append(block)
            size += block.nbytes
        self._held = Columns.concat(parts)
        self._words = prefixes(self._held.keys, self._held.key_offsets)
        if len(self._held):
            self.last_key = self._held.key(len(self._held) - 1)

    def __len__(self) -> int:
        return len(self._held)

    def take_up_to(self, key: bytes | None) -> Columns:
        """Remove and return the pairs up to and with `key`; all of them for None."""
        count = len(self._held)
        if key is not None:
            count = count_up_to(self._held.keys, self._held.key_offsets, self._words, key)
        taken = self._held.slice(0, count)
        self._held = self._held.slice(count, len(self._held))
        self._words = self._words[count:]
        return taken


def merge_runs(runs: Sequence[Run], memory_bytes: int) -> Iterator[Columns]:
    """Yield the runs' pairs as sorted batches. The number of runs must be within `fan_in(memory_bytes)`."""
    if len(runs) == 1:
        yield from runs[0].blocks()
        return
    held_bytes = max(1, min(4 * 1024 * 1024, memory_bytes // (4 * max(1, len(runs)))))
    cursors = [_Cursor(run) for run in runs]
    while True:
        for cursor in cursors:
            cursor.fill(held_bytes)
        cursors = [cursor for cursor in cursors if len(cursor)]
        if not cursors:
            return
        limits = [cursor.last_key for cursor in cursors if not cursor.exhausted]
        limit = min(limits) if limits else None
        parts = [part for cursor in cursors if len(part := cursor.take_up_to(limit))]
        if len(parts) == 1:
            yield parts[0]
            continue
        chunk = Columns.concat(parts)
        yield chunk.take(sort_order(chunk.keys, chunk.key_offsets))


@contextmanager
def bounded_runs(runs: list[Run], directory: Path, memory_bytes: int, codec: Codec) -> Iterator[list[Run]]:
    """Yield the same pairs in at most `fan_in(memory_bytes)` runs.

    The smallest runs are merged first, through temporary files.
    """
    most = fan_in(memory_bytes)
    if len(runs) <= most:
        yield list(runs)
        return
    with tempfile.TemporaryDirectory(prefix="merge", dir=directory) as folder:
        pending = list(runs)
        passes = 0
        while len(pending) > most:
            pending.sort(key=lambda run: run.stop - run.start)
            # The first pass takes just enough for all later ones to be full (as Hadoop's Merger does).
            surplus = (len(pending) - 1) % (most - 1) if most > 2 else 0
            count = surplus + 1 if passes == 0 and surplus else most
            merged = _merge_to_file(pending[:count], Path(folder) / f"{passes}.out", memory_bytes, codec)
            pending = [*pending[count:], *merged]
            passes += 1
        yield pending


def _merge_to_file(runs: list[Run], path: Path, memory_bytes: int, codec: Codec) -> list[Run]:
    writer = SegmentFileWriter(path, codec)
    try:
        writer.write_run(_blocks(merge_runs(runs, memory_bytes)))
        entry = writer.end_partition()
        writer.finish()
    except BaseException:
        writer.abandon()
        raise
    return find_runs(FileSource(path, 0, entry.part_length))


def _blocks(batches: Iterator[Columns]) -> Iterator[Columns]:
    for batch in batches:
        yield from Gatherer(batch).blocks(np.arange(len(batch), dtype=np.int64))
