"""The body of one answer: segments with their headers, in the order in which they were asked for.

Small segments are gathered into one buffer, so that a system call carries many; a large one goes out by itself,
straight from its file. Nothing is read before there is room for it, so a reader that takes nothing costs little.
"""

import os
from collections import deque
from dataclasses import dataclass
from typing import Protocol

from nm.shuffle.files import OpenFile, OutputMissing
from nm.shuffle.outputs import MapOutput, MapOutputs
from riffle_merger.format import IndexEntry

#: a segment up to this size is copied rather than sent by a call of its own
_COPY_BYTES = 16 << 10
_GATHER_BYTES = 128 << 10


@dataclass(slots=True)
class ReadCounts:
    """Of map outputs, as the kernel was asked for them."""

    #: calls that read segments
    reads: int = 0
    #: their bytes
    read_bytes: int = 0
    #: of the reads, those of merged files
    merged_reads: int = 0
    #: segments that came out of merged files
    merged_segments: int = 0
    #: segments that a merged file should have given and an original had to
    fallbacks: int = 0

    def add(self, size: int, *, is_merged: bool = False) -> None:
        self.reads += 1
        self.read_bytes += size
        self.merged_reads += is_merged

    def take(self, other: "ReadCounts") -> None:
        """Adds the other's counts to these and leaves it at zero."""
        self.include(other)
        for name in self.__slots__:
            setattr(other, name, 0)

    def include(self, other: "ReadCounts") -> None:
        """Adds the other's counts to these."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Range(Protocol):
    """Bytes of one segment on their way into a socket."""

    @property
    def remaining(self) -> int:
        """Bytes not yet sent."""

    def send(self, descriptor: int, most: int) -> int:
        """Bytes moved. Raises BlockingIOError when the socket is full, OutputMissing when the bytes are not there."""

    def release(self) -> None:
        """Once, in the end."""


class FileRange:
    """A part of an open file on its way into a socket."""

    __slots__ = ("_counts", "_file", "_is_merged", "_offset", "remaining")

    def __init__(
        self, file: OpenFile, offset: int, length: int, counts: ReadCounts, *, is_merged: bool = False
    ) -> None:
        self._file = file
        self._offset = offset
        self._counts = counts
        self._is_merged = is_merged
        self.remaining = length

    def send(self, descriptor: int, most: int) -> int:
        sent = os.sendfile(descriptor, self._file.descriptor, self._offset, min(self.remaining, most))
        if sent == 0:
            raise OutputMissing("a map output became shorter while it was sent")
        self._counts.add(sent, is_merged=self._is_merged)
        self._offset += sent
        self.remaining -= sent
        return sent

    def release(self) -> None:
        self._file.release()


class Segment(Protocol):
    """Where the stored bytes of one segment come from. Its methods block, and are called from any thread."""

    @property
    def length(self) -> int:
        """Bytes as stored, with the check sum."""

    def read(self, counts: ReadCounts) -> bytes | memoryview:
        """The whole segment. Raises OutputMissing."""

    def range(self, counts: ReadCounts) -> Range:
        """The segment, to be sent a piece at a time and released. Raises OutputMissing."""


class OutputSegment:
    """A segment as the map task wrote it."""

    __slots__ = ("_entry", "_output", "_outputs")

    def __init__(self, outputs: MapOutputs, output: MapOutput, entry: IndexEntry) -> None:
        self._outputs = outputs
        self._output = output
        self._entry = entry

    @property
    def length(self) -> int:
        return self._entry.part_length

    def read(self, counts: ReadCounts) -> bytes:
        file = self._outputs.open(self._output)
        try:
            data = os.pread(file.descriptor, self._entry.part_length, self._entry.start)
        except OSError as error:
            raise OutputMissing(f"{self._output.path}: {error.strerror}") from None
        finally:
            file.release()
        counts.add(len(data))
        if len(data) != self._entry.part_length:
            raise OutputMissing(f"{self._output.path} became shorter")
        return data

    def range(self, counts: ReadCounts) -> FileRange:
        return FileRange(self._outputs.open(self._output), self._entry.start, self._entry.part_length, counts)


class Answer:
    """What is still to be sent of a body."""

    __slots__ = ("_pieces", "counts", "job_id", "length")

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        self._pieces: deque[tuple[bytes, Segment]] = deque()
        self.counts = ReadCounts()
        #: bytes of the whole body
        self.length = 0

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def add(self, header: bytes, segment: Segment) -> None:
        self._pieces.append((header, segment))
        self.length += len(header) + segment.length

    def clear(self) -> None:
        self._pieces.clear()

    def gather(self) -> tuple[bytearray, Range | None]:
        """The next bytes, and the long segment that follows on them. Blocking. Raises OutputMissing."""
        gathered = bytearray()
        while self._pieces and len(gathered) < _GATHER_BYTES:
            header, segment = self._pieces.popleft()
            gathered += header
            if segment.length > _COPY_BYTES:
                return gathered, segment.range(self.counts)
            if segment.length:
                gathered += segment.read(self.counts)
        return gathered, None
