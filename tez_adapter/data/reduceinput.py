"""The reduce side of the shuffle: take segments as they arrive, merge them in bounded memory, hand out groups or
batches.

Segments stay compressed until the merge decodes them block by block. They wait in memory up to a share of the budget,
the rest on disk; those that already lie on this node's disks are read where they are.
"""

import os
import tempfile
import threading
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import numpy as np

from riffle_merger.format.codec import codec_by_name
from riffle_merger.format.columns import Columns
from riffle_merger.format.output import write_failed
from riffle_merger.format.segment import MemorySource, Run, Source, find_runs, verify
from tez_adapter.data.groups import Groups
from tez_adapter.data.merge import bounded_runs, merge_runs
from tez_adapter.data.order import same_as_previous
from tez_adapter.data.source import FileSource

#: The share of the budget that fetched segments may fill; the rest is for the merge.
_SEGMENT_SHARE = 0.6
#: No single segment may take more than this of the segments' memory (mapreduce.reduce.shuffle.memory.limit.percent).
_ONE_SEGMENT_SHARE = 0.25
_COPY_BYTES = 256 * 1024


class SegmentBody(Protocol):
    """The bytes of one segment as they arrive."""

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill the whole buffer, or raise."""
        ...


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment whose checksum and headers are right."""

    source: Source
    runs: list[Run]
    #: Memory that it holds of the budget.
    reserved_bytes: int
    #: Its file, where it had to go to disk.
    temporary: Path | None


class ReduceInput:
    """One reducer's input. Segments may be added from several threads; iterate once, after all segments are in.

    `counters` receives REDUCE_INPUT_RECORDS, REDUCE_INPUT_GROUPS, REDUCE_SHUFFLE_BYTES, SHUFFLED_MAPS
    A context manager: leaving it removes the temporary files.
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
        #: Fetched bytes that went to disk because memory was full.
        self.disk_bytes = 0
        self._in_memory = 0
        self._on_disk = 0
        self._records = 0
        self._merged_records = 0
        self._segments = 0
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

    def receive(self, name: str, length: int, body: SegmentBody, *, checksum: int | None = None) -> Segment:
        """Read a segment of this length to memory or disk, as the budget allows, and examine it. `accept` makes it
        count. `checksum`: as in `locate`.

        CorruptSegment when it is damaged, WriteFailed when the disk refuses it, and whatever the body raises.
        """
        if not self._reserve(length):
            return self._receive_to_disk(name, length, body, checksum)
        try:
            buffer = bytearray(length)
            body.readinto(memoryview(buffer))
            return self._examine(MemorySource(buffer, name=name), reserved_bytes=length, checksum=checksum)
        except BaseException:
            self._release(length)
            raise

    def locate(self, name: str, path: str | Path, start: int, length: int, *, checksum: int | None = None) -> Segment:
        """Examine a segment that lies in a file of this node, to be read in place. CorruptSegment, or OSError.

        `checksum`: its own, where another segment as long might stand in its place.
        """
        source = FileSource(path, start, length, name=name)
        try:
            return self._examine(source, checksum=checksum)
        finally:
            source.close()  # opened again when the merge needs it: there may be thousands

    def accept(self, segment: Segment) -> None:
        """Make a received or located segment part of the input."""
        with self._lock:
            self._runs.extend(segment.runs)
            self._records += sum(run.records for run in segment.runs)
            self._segments += 1
        self._count("REDUCE_SHUFFLE_BYTES", segment.source.length)
        self._count("SHUFFLED_MAPS", 1)

    def discard(self, segment: Segment) -> None:
        """Drop a segment that is not wanted after all."""
        self._release(segment.reserved_bytes)
        if segment.temporary is not None:
            segment.temporary.unlink(missing_ok=True)

    def add_segment(self, data: bytes | bytearray | memoryview, *, name: str = "segment") -> None:
        """Take a segment that is in memory already."""
        self.accept(self.receive(name, len(data), _Bytes(data)))

    def add_file(self, path: str | Path, start: int, length: int, *, name: str | None = None) -> None:
        """Take a segment that lies in a file of this node."""
        self.accept(self.locate(name or str(path), path, start, length))

    def groups(self) -> Iterator[tuple[bytes, Iterator[bytes]]]:
        """Yield (key, iterator of values) for each key, keys ascending. A group may be larger than memory."""
        groups = Groups(self._merged())
        yield from groups
        self._count("REDUCE_INPUT_GROUPS", groups.groups)

    def batches(self) -> Iterator[Columns]:
        """Yield all pairs, sorted by key, as batches."""
        last: bytes | None = None
        for batch in self._merged():
            if len(batch):
                repeated = int(np.count_nonzero(same_as_previous(batch.keys, batch.key_offsets)))
                goes_on = batch.key(0) == last
                self._count("REDUCE_INPUT_GROUPS", len(batch) - repeated - goes_on)
                last = batch.key(len(batch) - 1)
            yield batch

    def progress(self) -> float:
        """Return the share of the pairs that has been handed out, 0 to 1; meaningful once iteration has begun."""
        return self._merged_records / self._records if self._records else 1.0

    def _merged(self) -> Iterator[Columns]:
        memory_bytes = self.memory_bytes - self._in_memory
        # Values of a key come in the order of their maps, whichever arrived first.
        self._runs.sort(key=lambda run: run.source.name)
        self._count("MERGED_MAP_OUTPUTS", self._segments)
        with bounded_runs(self._runs, Path(self._folder.name), memory_bytes, self._codec) as runs:
            for batch in merge_runs(runs, memory_bytes):
                self._merged_records += len(batch)
                self._count("REDUCE_INPUT_RECORDS", len(batch))
                yield batch

    def _examine(
        self, source: Source, *, reserved_bytes: int = 0, temporary: Path | None = None, checksum: int | None = None
    ) -> Segment:
        verify(source, checksum)
        return Segment(source, find_runs(source), reserved_bytes, temporary)

    def _receive_to_disk(self, name: str, length: int, body: SegmentBody, checksum: int | None) -> Segment:
        with self._lock:
            path = Path(self._folder.name) / f"segment{self._on_disk}"
            self._on_disk += 1
        try:
            _copy_to_disk(path, length, body)
            source = FileSource(path, 0, length, name=name)
            try:
                segment = self._examine(source, temporary=path, checksum=checksum)
            finally:
                source.close()
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        with self._lock:
            self.disk_bytes += length
        return segment

    def _reserve(self, length: int) -> bool:
        """Take memory for a segment, if it is small enough and there is some left."""
        with self._lock:
            share = self.memory_bytes * _SEGMENT_SHARE
            if length > share * _ONE_SEGMENT_SHARE or self._in_memory + length > share:
                return False
            self._in_memory += length
            return True

    def _release(self, length: int) -> None:
        with self._lock:
            self._in_memory -= length

    def _count(self, name: str, amount: int) -> None:
        with self._lock:
            self.counters[name] = self.counters.get(name, 0) + amount


class _Bytes:
    """Bytes at hand as a body."""

    def __init__(self, data: bytes | bytearray | memoryview) -> None:
        self._view = memoryview(data)

    def readinto(self, buffer: memoryview, /) -> int:
        buffer[:] = self._view[: len(buffer)]
        self._view = self._view[len(buffer) :]
        return len(buffer)


def _copy_to_disk(path: Path, length: int, body: SegmentBody) -> None:
    """Errors of the body pass; errors of the disk become WriteFailed."""
    buffer = memoryview(bytearray(min(length, _COPY_BYTES)))
    with _disk_errors(path):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        while length:
            part = buffer[:length]
            body.readinto(part)
            length -= len(part)
            with _disk_errors(path):
                while part:
                    part = part[os.write(file, part) :]
    finally:
        os.close(file)


@contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise write_failed(path, error) from error
