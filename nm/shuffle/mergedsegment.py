"""Segments of map outputs out of merged files, as if they came from the originals.

A merged file holds a reducer's part of many map outputs side by side, so one read answers for all of them, or for all
that one request asks for where the part is long. Bytes are verified before the first of them goes out; whatever is
wrong with a merged file, the originals answer instead, and where an original is lost its copy in a merged file does.
"""

import logging
import os
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

from nm.shuffle.answer import FileRange, OutputSegment, Range, ReadCounts, Segment
from nm.shuffle.files import OpenFile, OutputMissing
from nm.shuffle.jobs import ShuffleJob
from nm.shuffle.kept import Kept, KeptRange, KeptSegments
from nm.shuffle.outputs import MapOutputs
from riffle_merger.format import FormatError, IndexEntry
from riffle_merger.format.checksum import crc32
from riffle_merger.format.merged import CHECKSUM_BYTES, MergedPartition, checked_trailer

log = logging.getLogger(__name__)

_T = TypeVar("_T")
_VERIFY_BYTES = 1 << 20


class MergedFile:
    """A merged file with its index; what was found wrong with it is remembered."""

    __slots__ = ("bad_partitions", "index_path", "is_bad", "maps", "path", "verified")

    def __init__(self, path: Path, index_path: Path, maps: tuple[str, ...]) -> None:
        self.path = path
        self.index_path = index_path
        #: map attempts in their order inside each partition
        self.maps = maps
        self.is_bad = False
        self.bad_partitions: set[int] = set()
        #: segments (partition, number) that were found right and are sent straight from the file
        self.verified: set[tuple[int, int]] = set()


class Run(NamedTuple):
    """Segments of a partition that lie side by side: their numbers, the end not included."""

    first: int
    end: int


@dataclass(slots=True)
class Part:
    """One reducer's part of one merged file, as one request asks for it."""

    file: MergedFile
    partition: int
    whole: MergedPartition
    entries: list[IndexEntry]
    #: numbers of the segments that the request asks for; complete before the first is sent
    asked: set[int] = field(default_factory=set)
    _runs: dict[int, Run] = field(default_factory=dict)

    def key(self, run: Run) -> Hashable:
        return self.file.path, self.partition, run

    @property
    def all(self) -> Run:
        return Run(0, len(self.entries))

    def run_of(self, number: int, bytes_max: int) -> Run:
        """What is asked for beside that segment, as far as it is short enough together."""
        if not self._runs:
            for run in self._split(bytes_max):
                self._runs.update(dict.fromkeys(range(*run), run))
        return self._runs[number]

    def length(self, run: Run) -> int:
        last = self.entries[run.end - 1]
        return last.start + last.part_length - self.entries[run.first].start

    def verify(self, run: Run, data: memoryview) -> None:
        """Raises FormatError."""
        checksum, start = 0, self.entries[run.first].start
        for entry in self.entries[slice(*run)]:
            at = entry.start - start
            checksum = crc32(checked_trailer(data[at : at + entry.part_length], str(self.file.path)), checksum)
        if run == self.all and checksum != self.whole.checksum:
            raise FormatError(f"{self.file.path}: partition {self.partition} is not what was merged")

    def _split(self, bytes_max: int) -> list[Run]:
        runs: list[Run] = []
        for number in sorted(self.asked):
            longer = Run(runs[-1].first, number + 1) if runs and runs[-1].end == number else None
            if longer is not None and self.length(longer) <= bytes_max:
                runs[-1] = longer
            else:
                runs.append(Run(number, number + 1))
        return runs


def give_up(file: MergedFile, error: Exception) -> None:
    """From any thread: the originals answer from now on."""
    if not file.is_bad:
        file.is_bad = True
        log.warning("merged file left alone, the originals are served: %s", error)


@dataclass(frozen=True, slots=True)
class Original:
    """Where to look when a merged file fails."""

    outputs: MapOutputs
    job: ShuffleJob
    map_id: str
    reduce: int
    #: of the merged segment, whose lengths the client was told
    entry: IndexEntry

    def segment(self) -> Segment:
        """From any thread. Raises OutputMissing."""
        output = self.outputs.load(self.job, self.map_id)
        entry = output.segment(self.reduce)
        if (entry.part_length, entry.raw_length) != (self.entry.part_length, self.entry.raw_length):
            raise OutputMissing(f"{self.map_id} is not what was merged")
        return OutputSegment(self.outputs, output, entry)


class MergedSegment:
    """One map's segment of a merged partition. From any thread; blocking."""

    __slots__ = ("_entry", "_kept", "_number", "_original", "_outputs", "_part")

    def __init__(self, part: Part, number: int, outputs: MapOutputs, kept: KeptSegments, original: Original) -> None:
        self._part = part
        self._number = number
        self._entry = part.entries[number]
        self._outputs = outputs
        self._kept = kept
        self._original = original

    @property
    def length(self) -> int:
        return self._entry.part_length

    def read(self, counts: ReadCounts) -> bytes | memoryview:
        return self._or_original(self._read, lambda segment: segment.read(counts), counts)

    def range(self, counts: ReadCounts) -> Range:
        return self._or_original(self._range, lambda segment: segment.range(counts), counts)

    def _or_original(
        self, get: Callable[[ReadCounts], _T], get_original: Callable[[Segment], _T], counts: ReadCounts
    ) -> _T:
        file = self._part.file
        try:
            if not file.is_bad and self._part.partition not in file.bad_partitions:
                found = get(counts)
                counts.merged_segments += 1
                return found
        except OutputMissing as error:
            give_up(file, error)
        except FormatError as error:
            file.bad_partitions.add(self._part.partition)
            log.warning("partition of a merged file left alone, the originals are served: %s", error)
        counts.fallbacks += 1
        try:
            return get_original(self._original.segment())
        except OutputMissing:
            if file.is_bad:
                raise
        try:
            return get(counts)
        except FormatError as error:
            raise OutputMissing(str(error)) from None

    def _read(self, counts: ReadCounts) -> bytes | memoryview:
        found = self._kept_run(counts)
        if found is None:
            return self._alone(counts)
        key, kept = found
        at = self._entry.start - kept.offset
        data = memoryview(kept.data)[at : at + self._entry.part_length]
        self._kept.release(key, kept)  # what was handed out lives until it is copied
        return data

    def _range(self, counts: ReadCounts) -> Range:
        found = self._kept_run(counts)
        if found is not None:
            key, kept = found
            return KeptRange(self._kept, key, kept, self._entry.start, self._entry.part_length)
        file = self._outputs.files.open(self._part.file.path)
        try:
            self._verify_in_place(file, counts)
        except BaseException:
            file.release()
            raise
        return FileRange(file, self._entry.start, self._entry.part_length, counts, is_merged=True)

    def _kept_run(self, counts: ReadCounts) -> tuple[Hashable, Kept] | None:
        """The whole partition or a run of it that the segment lies in, read unless it is kept; None where either is
        too long, or there is no room."""
        part = self._part
        if part.partition in part.file.bad_partitions:
            return None
        run = part.run_of(self._number, self._kept.run_bytes_max)
        for known in (part.all, run):
            key = part.key(known)
            kept = self._kept.use(key)
            if kept is not None:
                return key, kept
        if self._kept.reserve_partition(part.key(part.all), part.whole.length):
            return self._read_run(part.all, part.whole.length, counts)
        length = part.length(run)
        return self._read_run(run, length, counts) if self._kept.reserve_run(length) else None

    def _read_run(self, run: Run, length: int, counts: ReadCounts) -> tuple[Hashable, Kept]:
        """Room for it was made."""
        part = self._part
        offset = part.entries[run.first].start
        try:
            data = self._pread(offset, length, counts)
            part.verify(run, memoryview(data))
        except BaseException:
            self._kept.unreserve(length)
            raise
        key = part.key(run)
        return key, self._kept.keep(key, data, offset, run.end - run.first)

    def _alone(self, counts: ReadCounts) -> bytes:
        data = self._pread(self._entry.start, self._entry.part_length, counts)
        checked_trailer(memoryview(data), str(self._part.file.path))
        return data

    def _pread(self, offset: int, length: int, counts: ReadCounts) -> bytes:
        file = self._outputs.files.open(self._part.file.path)
        try:
            return self._pread_from(file, offset, length, counts)
        finally:
            file.release()

    def _pread_from(self, file: OpenFile, offset: int, length: int, counts: ReadCounts) -> bytes:
        path = self._part.file.path
        try:
            data = os.pread(file.descriptor, length, offset)
        except OSError as error:
            raise OutputMissing(f"{path}: {error.strerror}") from None
        counts.add(len(data), is_merged=True)
        if len(data) != length:
            raise OutputMissing(f"{path} became shorter")
        return data

    def _verify_in_place(self, file: OpenFile, counts: ReadCounts) -> None:
        """Reads the segment once, in pieces, unless it was found right before. Raises OutputMissing, FormatError."""
        part, entry = self._part, self._entry
        key = part.partition, self._number
        if key in part.file.verified or not entry.part_length:
            return
        end = entry.start + entry.part_length - CHECKSUM_BYTES
        checksum, at = 0, entry.start
        while at < end:
            data = self._pread_from(file, at, min(_VERIFY_BYTES, end - at), counts)
            checksum = crc32(data, checksum)
            at += len(data)
        if end < entry.start or self._pread_from(file, end, CHECKSUM_BYTES, counts) != checksum.to_bytes(4, "big"):
            raise FormatError(f"{part.file.path}: a segment of partition {part.partition} is damaged")
        part.file.verified.add(key)
