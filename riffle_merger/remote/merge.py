"""One merge on a shared file system: few large reads per input, one file written from beginning to end.

As on local disks (`riffle_merger.merger.window`) the output is taken in windows: so many partitions at a time as fit
in memory over all inputs. A window's part of an input lies together there, so each input is read once per window. A
partition that does not fit by itself is copied map by map, in pieces. Every segment's checksum is verified on the way.
The file is written under a hidden name and renamed when its index stands: whole, or not at all.
"""

import contextlib
from array import array
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from riffle_merger.format.checksum import crc32
from riffle_merger.format.errors import FormatError
from riffle_merger.format.merged import SEGMENTS_MAX, check_segment
from riffle_merger.format.packed import index_of
from riffle_merger.merger.errors import Cancelled, MergeError, NotMergeable
from riffle_merger.remote.reader import PackedFile
from yaqd.storage import ByteWriter, FileSystem, StorageError

#: bytes of one write, about
_WRITE_BYTES = 4 << 20
#: inputs read at the same time: what counts is the wait for an answer
_READERS = 4
_CHECKSUM_BYTES = 4


@dataclass(frozen=True, slots=True)
class RemoteOrder:
    #: full URI of the job's folder of map outputs
    folder: str
    #: of the merged file in that folder
    name: str
    #: of the inputs there: a map attempt each, in the order that they shall have
    map_ids: tuple[str, ...]
    #: memory for what is read and not yet written
    window_bytes: int
    #: copies of the merged file; 0: as configured
    replication: int = 0


@dataclass(slots=True)
class Progress:
    """Requests to the file system so far."""

    reads: int = 0
    writes: int = 0
    cancelled: bool = False


@dataclass(frozen=True, slots=True)
class RemoteMerged:
    name: str
    bytes: int
    partitions: int
    reads: int
    writes: int


@dataclass(slots=True)
class _Input:
    name: str
    file: PackedFile
    #: where each partition begins, and where the last one ends
    bounds: "array[int]"
    #: at the end of each partition
    checksums: "array[int]"

    @property
    def partitions(self) -> int:
        return len(self.bounds) - 1

    def length(self, partition: int) -> int:
        return self.bounds[partition + 1] - self.bounds[partition]


def merge_remote(files: FileSystem, order: RemoteOrder, progress: Progress) -> RemoteMerged:
    """Merge on a shared file system. Blocking.

    Raises MergeError and its kinds; then nothing is left of the merge.
    """
    try:
        return _RemoteMerge(files, order, progress).run()
    except FormatError as error:
        raise NotMergeable(str(error)) from None
    except StorageError as error:
        raise MergeError(str(error)) from None


class _RemoteMerge:
    def __init__(self, files: FileSystem, order: RemoteOrder, progress: Progress) -> None:
        self._files, self._order, self._progress = files, order, progress

    def run(self) -> RemoteMerged:
        order = self._order
        with contextlib.ExitStack() as stack:
            self._pool = stack.enter_context(ThreadPoolExecutor(_READERS, thread_name_prefix="merge-remote"))
            inputs = list(self._pool.map(self._open, order.map_ids))
            for source in inputs:
                stack.callback(source.file.close)
            found = {source.partitions for source in inputs}
            if len(found) != 1:
                raise NotMergeable(f"the outputs have {sorted(found)} partitions")
            path = f"{order.folder}/{order.name}"
            writer = self._files.create(path, make_parents=False, replication=order.replication)
            try:
                size = self._write(writer, inputs)
                writer.close()
            except BaseException:
                writer.abort()
                raise
        return RemoteMerged(order.name, size, inputs[0].partitions, self._progress.reads, self._progress.writes)

    def _open(self, name: str) -> _Input:
        self._check()
        file = PackedFile(self._files, f"{self._order.folder}/{name}", maps=1, partitions=SEGMENTS_MAX)
        try:
            source = _Input(name, file, *file.table())
        except BaseException:
            file.close()
            raise
        self._progress.reads += file.reads
        if file.maps != (name,):
            file.close()
            raise NotMergeable(f"{name}: holds the output of {file.maps[0]}")
        return source

    def _write(self, writer: ByteWriter, inputs: Sequence[_Input]) -> int:
        gathered: list[bytes | memoryview] = []
        size = total = 0
        for piece in self._pieces(inputs):
            gathered.append(piece)
            size += len(piece)
            if size >= _WRITE_BYTES:
                self._put(writer, gathered)
                total, size, gathered = total + size, 0, []
        lengths = ([source.length(p) for source in inputs] for p in range(inputs[0].partitions))
        checksums = ([source.checksums[p] for source in inputs] for p in range(inputs[0].partitions))
        gathered.append(index_of([source.name for source in inputs], lengths, checksums))
        self._put(writer, gathered)
        return total + size

    def _put(self, writer: ByteWriter, pieces: list[bytes | memoryview]) -> None:
        self._check()
        writer.write(b"".join(pieces))
        self._progress.writes += 1

    def _pieces(self, inputs: Sequence[_Input]) -> Iterator[bytes | memoryview]:
        """The segments of the output in their order, verified."""
        first, partitions = 0, inputs[0].partitions
        while first < partitions:
            end = first
            size = 0
            while end < partitions and size + _of_all(inputs, end) <= self._order.window_bytes:
                size += _of_all(inputs, end)
                end += 1
            if end == first:
                for source in inputs:
                    yield from self._large(source, first)
                first += 1
                continue
            yield from self._window(inputs, first, end)
            first = end

    def _window(self, inputs: Sequence[_Input], first: int, end: int) -> Iterator[memoryview]:
        def read(source: _Input) -> memoryview:
            self._check()
            start = source.bounds[first]
            return memoryview(self._read(source, start, source.bounds[end] - start))

        data = list(self._pool.map(read, inputs))
        for partition in range(first, end):
            for source, view in zip(inputs, data, strict=True):
                start = source.bounds[partition] - source.bounds[first]
                segment = view[start : start + source.length(partition)]
                check_segment(segment, source.checksums[partition], f"{source.name}: partition {partition}")
                yield segment

    def _large(self, source: _Input, partition: int) -> Iterator[bytes]:
        """One segment in pieces; the last four bytes are its checksum."""
        position, end = source.bounds[partition], source.bounds[partition + 1]
        computed, last = 0, b""
        while position < end:
            self._check()
            piece = self._read(source, position, min(end - position, max(1, self._order.window_bytes)))
            position += len(piece)
            known = last + piece
            computed, last = crc32(known[:-_CHECKSUM_BYTES], computed), known[-_CHECKSUM_BYTES:]
            yield piece
        if source.length(partition) and not int.from_bytes(last, "big") == computed == source.checksums[partition]:
            raise NotMergeable(f"{source.name}: partition {partition} is damaged")

    def _read(self, source: _Input, offset: int, length: int) -> bytes:
        before = source.file.reads
        data = source.file.read(offset, length)
        self._progress.reads += source.file.reads - before
        return data

    def _check(self) -> None:
        if self._progress.cancelled:
            raise Cancelled("cancelled")


def _of_all(inputs: Sequence[_Input], partition: int) -> int:
    return sum(source.length(partition) for source in inputs)
