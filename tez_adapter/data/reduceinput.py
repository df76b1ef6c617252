"""The reduce side of the shuffle: take segments as they arrive, merge them in bounded memory, hand out groups or
batches.

Segments stay compressed until the merge decodes them block by block. They wait in memory up to a share of the budget,
the rest on disk; those that already lie on this node's disks are read where they are.
"""

import tempfile
import threading
from collections.abc import Iterator, MutableMapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from riffle_merger.format.codec import codec_by_name
from riffle_merger.format.columns import Columns
from riffle_merger.format.output import write_failed
from riffle_merger.format.segment import MemorySource, Run, Source, find_runs, verify
from tez_adapter.data.groups import Groups
from tez_adapter.data.merge import bounded_runs, merge_runs
from tez_adapter.data.source import FileSource

#: The share of the budget that fetched segments may fill; the rest is for the merge.
_SEGMENT_SHARE = 0.6


class ReduceInput:
    """One reducer's input. `add_*` may be called from several threads; iterate once, after all segments are in.

    `counters` receives REDUCE_INPUT_RECORDS, REDUCE_INPUT_GROUPS (groups only), REDUCE_SHUFFLE_BYTES, SHUFFLED_MAPS
    and SPILLED_RECORDS-like SHUFFLE_BYTES_TO_DISK. A context manager: leaving it removes the temporary files.
    """

    def __init__(
        self,
        directory: str | Path,
        *,
        memory_bytes: int = 100 * 1024 * 1024,
        codec: str = "lz4",
        counters: MutableMapping[str, int] | None = None,
    ) -> None:
        self.memory_bytes = memory_bytes
        self.counters: MutableMapping[str, int] = {} if counters is None else counters
        self._codec = codec_by_name(codec)
        Path(directory).mkdir(parents=True, exist_ok=True)
        self._folder = tempfile.TemporaryDirectory(prefix="shuffle", dir=directory)
        self._runs: list[Run] = []
        self._in_memory = 0
        self._on_disk = 0
        self._records = 0
        self._merged_records = 0
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Drop the segments and remove the temporary files."""
        self._runs = []
        self._folder.cleanup()

    def add_segment(self, data: bytes | bytearray | memoryview, *, name: str = "segment") -> None:
        """Take a fetched segment; CorruptSegment when it is damaged. Kept in memory or written to disk as the
        budget allows.
        """
        source: Source = MemorySource(data, name=name)
        runs = self._examine(source)
        with self._lock:
            in_memory = self._in_memory + source.length <= self.memory_bytes * _SEGMENT_SHARE
            if in_memory:
                self._in_memory += source.length
            number = self._on_disk
            self._on_disk += not in_memory
        if not in_memory:
            path = Path(self._folder.name) / f"segment{number}"
            try:
                path.write_bytes(data)
            except OSError as error:
                path.unlink(missing_ok=True)
                raise write_failed(path, error) from error
            on_disk = FileSource(path, 0, source.length, name=name)
            runs = [replace(run, source=on_disk) for run in runs]
            self._count("SHUFFLE_BYTES_TO_DISK", source.length)
        self._add(runs, source.length)

    def add_file(self, path: str | Path, start: int, length: int, *, name: str | None = None) -> None:
        """Take a segment that lies in a file of this node, in place; CorruptSegment when it is damaged, OSError
        when unreadable.
        """
        source = FileSource(path, start, length, name=name)
        try:
            self._add(self._examine(source), length)
        finally:
            source.close()  # opened again when the merge needs it: there may be thousands

    def groups(self) -> Iterator[tuple[bytes, Iterator[bytes]]]:
        """(key, iterator of values) for each key, keys ascending. A group may be larger than memory."""
        groups = Groups(self._merged())
        yield from groups
        self._count("REDUCE_INPUT_GROUPS", groups.groups)

    def batches(self) -> Iterator[Columns]:
        """All pairs, sorted by key, as batches."""
        return self._merged()

    def progress(self) -> float:
        """The share of the pairs that has been handed out, 0 to 1; meaningful once iteration has begun."""
        return self._merged_records / self._records if self._records else 1.0

    def _merged(self) -> Iterator[Columns]:
        with bounded_runs(self._runs, Path(self._folder.name), self.memory_bytes, self._codec) as runs:
            for batch in merge_runs(runs, self.memory_bytes):
                self._merged_records += len(batch)
                self._count("REDUCE_INPUT_RECORDS", len(batch))
                yield batch

    def _examine(self, source: Source) -> list[Run]:
        verify(source)
        return find_runs(source)

    def _add(self, runs: list[Run], length: int) -> None:
        with self._lock:
            self._runs.extend(runs)
            self._records += sum(run.records for run in runs)
        self._count("REDUCE_SHUFFLE_BYTES", length)
        self._count("SHUFFLED_MAPS", 1)

    def _count(self, name: str, amount: int) -> None:
        with self._lock:
            self.counters[name] = self.counters.get(name, 0) + amount
