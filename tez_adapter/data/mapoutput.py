"""The map side of the shuffle: collect pairs in bounded memory, sort them, write one output file with its index.

Pairs gather in an arena; when it is full, it is sorted by partition and key and written as a spill: one run per
partition. At the end the spills become one file. Without a combiner their runs are copied side by side into each
partition's segment, still compressed. The reducer merges runs anyway, and an extra merge here would decode, compare and
encode everything once more. With a combiner and enough spills they are merged and combined, which makes the output
smaller.
"""

import os
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from riffle_merger.format.codec import codec_by_name
from riffle_merger.format.columns import I64, Columns
from riffle_merger.format.index import SpillIndex
from riffle_merger.format.output import INDEX_NAME, OUTPUT_NAME, SegmentFileWriter, publish
from riffle_merger.format.segment import BLOCK_BYTES, find_runs
from tez_adapter.data.arena import Arena, Gatherer
from tez_adapter.data.merge import bounded_runs, merge_runs
from tez_adapter.data.order import repeated_keys, sort_order
from tez_adapter.data.partition import HashPartitioner, Partitioner
from tez_adapter.data.source import FileSource

#: Sorted batches of one partition in, batches with fewer pairs out; a key stays in its partition.
Combine = Callable[[Iterator[Columns]], Iterator[Columns]]

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

    `counters` receives MAP_OUTPUT_RECORDS, MAP_OUTPUT_BYTES (as handed to the sort), SPILLED_RECORDS,
    MAP_OUTPUT_MATERIALIZED_BYTES and, where `combine` runs, COMBINE_INPUT_RECORDS and COMBINE_OUTPUT_RECORDS.
    `memory_bytes` bounds everything that is held for the sort. `combine` runs when enough spills are merged and, with
    `combine_spills`, whenever sorted pairs are first written. WriteFailed when the disk refuses; then, and after
    `abandon`, no file remains.
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
        combine_spills: bool = False,
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
        self._combine_spills = combine_spills
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

    def collect_batch(self, batch: Columns, size: int | None = None) -> None:
        """Take a batch of encoded pairs; it is copied. `size`: the bytes that it counts for, by default its own."""
        if self._pending_keys:
            self._flush_pending()
        self.count("MAP_OUTPUT_RECORDS", len(batch))
        self._collect(batch, size)

    def collect_combined(self, batch: Columns) -> None:
        """Take pairs that a combiner made out of counted ones."""
        self._collect(batch, None)

    def _collect(self, batch: Columns, size: int | None) -> None:
        self.count("MAP_OUTPUT_BYTES", batch.key_bytes + batch.value_bytes if size is None else size)
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

    def count(self, name: str, amount: int) -> None:
        """Add to a counter."""
        self.counters[name] = self.counters.get(name, 0) + amount

    def sort(self, columns: Columns) -> tuple[I64, list[int]]:
        """Return the order by partition and key, and where each partition ends in it."""
        if self.partitions == 1:
            return sort_order(columns.keys, columns.key_offsets), [len(columns)]
        repeated = repeated_keys(columns.keys, columns.key_offsets)
        if repeated is not None:
            of_distinct = self._partitioner.partition(repeated.data, repeated.offsets, self.partitions)
            counts = np.bincount(of_distinct[repeated.codes], minlength=self.partitions)
            return repeated.order(repeated.ranks(of_distinct)), np.cumsum(counts).tolist()
        order = sort_order(columns.keys, columns.key_offsets, may_repeat=False)
        chosen = self._partitioner.partition(columns.keys, columns.key_offsets, self.partitions)
        # 16-bit numbers are radix-sorted; a range partitioner's are sorted already.
        by_key = chosen[order]
        if bool((by_key[1:] < by_key[:-1]).any()):
            narrow = np.uint16 if self.partitions <= 1 << 16 else np.uint32
            order = order[np.argsort(by_key.astype(narrow), kind="stable")]
        counts = np.bincount(chosen, minlength=self.partitions)
        return order, np.cumsum(counts).tolist()

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
        self.count("MAP_OUTPUT_MATERIALIZED_BYTES", sum(entry.part_length for entry in index))
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

    def spill_combined(self, parts: Iterable[Iterable[Columns]]) -> None:
        """Write a spill of what a combiner made, partition by partition, in whatever order it comes."""
        with self._new_spill() as writer:
            before = self.counters.get("COMBINE_OUTPUT_RECORDS", 0)
            for batches in parts:
                self._write_combined(writer, batches)
                writer.end_partition()
            self.count("SPILLED_RECORDS", self.counters.get("COMBINE_OUTPUT_RECORDS", 0) - before)

    def _spill(self, columns: Columns) -> None:
        with self._new_spill() as writer:
            self._write_sorted(writer, columns)

    @contextmanager
    def _new_spill(self) -> Iterator[SegmentFileWriter]:
        path = self.directory / f"spill{len(self._spills)}.{os.getpid()}.out"
        writer = SegmentFileWriter(path, self._codec)
        try:
            yield writer
            self._spills.append((path, writer.finish()))
        except BaseException:
            writer.abandon()
            raise

    def _write_sorted(self, writer: SegmentFileWriter, columns: Columns) -> None:
        order, ends = self.sort(columns)
        gatherer = Gatherer(columns, self._block_bytes)
        start = 0
        for end in ends:
            blocks = gatherer.blocks(order[start:end])
            if self._combine is not None and self._combine_spills and start < end:
                self._write_combined(writer, self._combine(self._tallied(blocks)))
            else:
                writer.write_run(blocks)
            writer.end_partition()
            start = end
        self.count("SPILLED_RECORDS", len(columns))

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
            files = [stack.enter_context(closing(FileSource.whole(path))) for path, _ in self._spills]
            for partition in range(self.partitions):
                segments = [file.part(index[partition]) for file, (_, index) in zip(files, self._spills, strict=True)]
                if combine is None:
                    for segment, (_, index) in zip(segments, self._spills, strict=True):
                        writer.copy_segment(segment, index[partition].raw_length)
                elif runs := [run for segment in segments for run in find_runs(segment)]:
                    with bounded_runs(runs, self.directory, self._arena.memory_bytes, self._codec) as few:
                        merged = merge_runs(few, self._arena.memory_bytes)
                        self._write_combined(writer, combine(self._tallied(merged)))
                writer.end_partition()

    def _write_combined(self, writer: SegmentFileWriter, batches: Iterable[Columns]) -> None:
        """What a combiner gives, into the current partition; what it gives out of order is another run."""
        last_key: bytes | None = None
        for batch in batches:
            if not len(batch):
                continue
            self.count("COMBINE_OUTPUT_RECORDS", len(batch))
            order = sort_order(batch.keys, batch.key_offsets)
            if last_key is not None and batch.key(int(order[0])) < last_key:
                writer.end_run()
            for block in Gatherer(batch, self._block_bytes).blocks(order):
                writer.write_block(block)
            last_key = batch.key(int(order[-1]))

    def _tallied(self, batches: Iterator[Columns]) -> Iterator[Columns]:
        for batch in batches:
            self.count("COMBINE_INPUT_RECORDS", len(batch))
            yield batch

    def _remove_spills(self) -> None:
        for path, _ in self._spills:
            path.unlink(missing_ok=True)
        self._spills = []
