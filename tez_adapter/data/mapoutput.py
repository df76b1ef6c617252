"""The map side of the shuffle: collect pairs in bounded memory, sort them, write one output file with its index.

Pairs gather in an arena; when it is full, it is sorted by partition and key and written as a spill: one run per
partition. At the end the spills become one file. Without a combiner their runs are copied side by side into each
partition's segment, still compressed, because the reducer merges runs anyway and an extra merge here would decode,
compare and encode everything once more. With a combiner and enough spills they are merged and combined, which makes
the output smaller.
"""

import os
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from riffle_merger.format.codec import codec_by_name
from riffle_merger.format.columns import I64, Columns
from riffle_merger.format.index import SpillIndex
from riffle_merger.format.output import INDEX_NAME, OUTPUT_NAME, SegmentFileWriter, publish
from riffle_merger.format.segment import BLOCK_BYTES, Run, find_runs
from tez_adapter.data.arena import Arena, gather_blocks
from tez_adapter.data.groups import Groups
from tez_adapter.data.merge import bounded_runs, merge_runs
from tez_adapter.data.order import sort_order
from tez_adapter.data.partition import HashPartitioner, Partitioner
from tez_adapter.data.source import FileSource

#: `combine(key, values)` on encoded bytes; yields pairs of that same key.
Combine = Callable[[bytes, Iterator[bytes]], Iterable[tuple[bytes, bytes]]]

#: Pairs collected one at a time are packed into the arena this many at once.
_PENDING_PAIRS = 4096
#: With fewer spills than this, combining once more is not worth a merge (Hadoop's mapreduce.map.combine.minspills).
_COMBINE_SPILLS_MIN = 3
_MEMORY_BYTES_MIN = 64 * 1024


@dataclass(frozen=True, slots=True)
class MapOutputFiles:
    """What a map task leaves behind; both files exist and are whole."""

    output: Path
    index: Path
    #: Stored bytes of each partition, for placing and sizing reducers.
    partition_bytes: list[int]


class MapOutput:
    """Collects a map task's pairs; `close` writes `file.out` and `file.out.index` into `directory`. Not thread-safe.

    `counters` receives MAP_OUTPUT_RECORDS, MAP_OUTPUT_BYTES, SPILLED_RECORDS, MAP_OUTPUT_MATERIALIZED_BYTES and, with a
    combiner, COMBINE_INPUT_RECORDS and COMBINE_OUTPUT_RECORDS of merges here. `memory_bytes` bounds everything that
    is held for the sort. WriteFailed when the disk refuses; then, and after `abandon`, no file remains.
    """

    def __init__(
        self,
        directory: str | Path,
        partitions: int,
        partitioner: Partitioner | None = None,
        *,
        codec: str = "lz4",
        memory_bytes: int = 100 * 1024 * 1024,
        combine: Combine | None = None,
        counters: MutableMapping[str, int] | None = None,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        if partitions < 1:
            raise ValueError(f"{partitions} partitions")
        self.directory = Path(directory)
        self.partitions = partitions
        self.counters: MutableMapping[str, int] = {} if counters is None else counters
        self._partitioner: Partitioner = HashPartitioner() if partitioner is None else partitioner
        self._codec = codec_by_name(codec)
        self._combine = combine
        self._block_bytes = block_bytes
        self._arena = Arena(max(memory_bytes, _MEMORY_BYTES_MIN))
        self._pending_keys: list[bytes] = []
        self._pending_values: list[bytes] = []
        self._pending_bytes = 0
        self._spills: list[tuple[Path, SpillIndex]] = []
        self.directory.mkdir(parents=True, exist_ok=True)

    def collect(self, key: bytes, value: bytes) -> None:
        """Take one encoded pair."""
        self._pending_keys.append(key)
        self._pending_values.append(value)
        self._pending_bytes += len(key) + len(value)
        if len(self._pending_keys) >= _PENDING_PAIRS or self._pending_bytes > self._arena.memory_bytes // 4:
            self._flush_pending()

    def collect_batch(self, batch: Columns) -> None:
        """Take a batch of encoded pairs; it is copied."""
        if self._pending_keys:
            self._flush_pending()
        self._count("MAP_OUTPUT_RECORDS", len(batch))
        self._count("MAP_OUTPUT_BYTES", batch.key_bytes + batch.value_bytes)
        start = 0
        while start < len(batch):
            stop = self._arena.append(batch, start)
            if stop == start:
                self._spill_arena()
                stop = self._arena.append(batch, start)
            if stop == start:  # one pair is larger than the whole arena: it becomes a spill by itself
                stop = start + 1
                self._spill(batch.slice(start, stop))
            start = stop

    def close(self) -> MapOutputFiles:
        """Sort what is left, write the final files under their names, remove the spills."""
        self._flush_pending()
        if self._spills:
            self._spill_arena()
        temporary = self.directory / f"{OUTPUT_NAME}.{os.getpid()}.tmp"
        try:
            index = self._write_final(temporary)
            publish(self.directory, temporary, index)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        finally:
            self._remove_spills()
        self._count("MAP_OUTPUT_MATERIALIZED_BYTES", sum(entry.part_length for entry in index))
        sizes = [entry.part_length for entry in index]
        return MapOutputFiles(self.directory / OUTPUT_NAME, self.directory / INDEX_NAME, sizes)

    def abandon(self) -> None:
        """Drop everything; for a task that failed or was killed."""
        self._arena.clear()
        self._pending_keys, self._pending_values = [], []
        self._remove_spills()

    def _flush_pending(self) -> None:
        if not self._pending_keys:
            return
        batch = Columns.from_lists(self._pending_keys, self._pending_values)
        self._pending_keys, self._pending_values, self._pending_bytes = [], [], 0
        self.collect_batch(batch)

    def _spill_arena(self) -> None:
        if len(self._arena):
            self._spill(self._arena.columns())
            self._arena.clear()

    def _spill(self, columns: Columns) -> None:
        path = self.directory / f"spill{len(self._spills)}.{os.getpid()}.out"
        writer = SegmentFileWriter(path, self._codec)
        try:
            self._write_sorted(writer, columns)
            self._spills.append((path, writer.finish()))
        except BaseException:
            writer.abandon()
            raise

    def _write_sorted(self, writer: SegmentFileWriter, columns: Columns) -> None:
        order, ends = self._sort(columns)
        start = 0
        for end in ends:
            writer.write_run(gather_blocks(columns, order[start:end], self._block_bytes))
            writer.end_partition()
            start = end
        self._count("SPILLED_RECORDS", len(columns))

    def _sort(self, columns: Columns) -> tuple[I64, list[int]]:
        """The order by partition and key, and where each partition ends in it."""
        order = sort_order(columns.keys, columns.key_offsets)
        if self.partitions == 1:
            return order, [len(order)]
        chosen = self._partitioner.partition(columns.keys, columns.key_offsets, self.partitions)
        # 16-bit numbers are radix-sorted; a range partitioner's are sorted already.
        by_key = chosen[order]
        if bool((by_key[1:] < by_key[:-1]).any()):
            narrow = np.uint16 if self.partitions <= 1 << 16 else np.uint32
            order = order[np.argsort(by_key.astype(narrow), kind="stable")]
        counts = np.bincount(chosen, minlength=self.partitions)
        return order, np.cumsum(counts).tolist()

    def _write_final(self, temporary: Path) -> SpillIndex:
        if len(self._spills) == 1:
            path, index = self._spills.pop()
            path.rename(temporary)
            return index
        writer = SegmentFileWriter(temporary, self._codec)
        try:
            if not self._spills:
                self._write_sorted(writer, self._arena.columns())
            else:
                self._merge_spills(writer)
            return writer.finish()
        except BaseException:
            writer.abandon()
            raise

    def _merge_spills(self, writer: SegmentFileWriter) -> None:
        combine = self._combine if len(self._spills) >= _COMBINE_SPILLS_MIN else None
        with ExitStack() as stack:
            for partition in range(self.partitions):
                runs: list[Run] = []
                for path, index in self._spills:
                    entry = index[partition]
                    source = FileSource(path, entry.start, entry.part_length)
                    stack.callback(source.close)
                    runs.extend(find_runs(source))
                if combine is None:
                    for run in runs:
                        writer.copy_run(run)
                else:
                    self._combine_runs(writer, runs, combine)
                writer.end_partition()
                stack.pop_all().close()

    def _combine_runs(self, writer: SegmentFileWriter, runs: list[Run], combine: Combine) -> None:
        memory = self._arena.memory_bytes
        with bounded_runs(runs, self.directory, memory, self._codec) as few:
            groups = Groups(merge_runs(few, memory))
            writer.write_run(self._combined_blocks(groups, combine))

    def _combined_blocks(self, groups: Groups, combine: Combine) -> Iterator[Columns]:
        keys: list[bytes] = []
        values: list[bytes] = []
        held = given = 0
        for key, group in groups:
            for out_key, out_value in combine(key, group):
                if out_key != key:
                    raise ValueError(f"combine() yielded key {out_key!r} for key {key!r}; a combiner keeps the key")
                keys.append(out_key)
                values.append(out_value)
                held += len(out_key) + len(out_value) + 4
                if held >= self._block_bytes:
                    yield Columns.from_lists(keys, values)
                    given += len(keys)
                    keys, values, held = [], [], 0
        if keys:
            yield Columns.from_lists(keys, values)
            given += len(keys)
        self._count("COMBINE_INPUT_RECORDS", groups.records)
        self._count("COMBINE_OUTPUT_RECORDS", given)

    def _remove_spills(self) -> None:
        for path, _ in self._spills:
            path.unlink(missing_ok=True)
        self._spills = []

    def _count(self, name: str, amount: int) -> None:
        self.counters[name] = self.counters.get(name, 0) + amount
