"""Segments of map outputs out of merged files, as if they came from the originals.

A merged file holds a reducer's part of many map outputs side by side, so one read answers for all of them. A partition
is verified before its first byte goes out; whatever is wrong with a merged file, the originals answer instead, and
where an original is lost its copy in a merged file does.
"""

import logging
import os
import stat
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from nm.shuffle.answer import FileRange, OutputSegment, Range, ReadCounts, Segment
from nm.shuffle.files import OpenFile, OutputMissing
from nm.shuffle.jobs import ShuffleJob
from nm.shuffle.kept import KeptPartition, KeptPartitions, KeptRange
from nm.shuffle.outputs import MapOutputs
from riffle_merger.format import FormatError, IndexEntry
from riffle_merger.format.checksum import crc32
from riffle_merger.format.merged import (
    CHECKSUM_BYTES,
    DATA_SUFFIX,
    INDEX_SUFFIX,
    MERGED_FOLDER,
    MergedIndex,
    MergedPartition,
    checked_trailer,
    is_safe_name,
)

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


@dataclass(frozen=True, slots=True)
class _Part:
    """One reducer's part of one merged file."""

    file: MergedFile
    partition: int
    whole: MergedPartition
    entries: list[IndexEntry]

    @property
    def key(self) -> tuple[Path, int]:
        return self.file.path, self.partition

    def verify(self, data: memoryview) -> None:
        """Raises FormatError."""
        checksum, start = 0, self.whole.offset
        for entry in self.entries:
            at = entry.start - start
            checksum = crc32(checked_trailer(data[at : at + entry.part_length], str(self.file.path)), checksum)
        if checksum != self.whole.checksum:
            raise FormatError(f"{self.file.path}: partition {self.partition} is not what was merged")


def load_merged(path: Path, index_path: Path, *, folder: Path) -> MergedIndex:
    """The verified index of a merged file that really lies in the folder. Blocking. Raises OutputMissing."""
    if os.path.realpath(path.parent) != os.path.realpath(folder):
        raise OutputMissing(f"{path} is not inside its application's folder")
    try:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode):
            raise OutputMissing(f"{path} is not a file")
        index = MergedIndex.load(index_path)
        index.check_file(found.st_size, name=str(path))
    except (OSError, FormatError) as error:
        raise OutputMissing(str(error)) from None
    return index


class MergedOutputs:
    """Which maps lie in which merged file. `find` and what changes the table are for the service's own thread."""

    def __init__(self, outputs: MapOutputs, kept: KeptPartitions, *, index_cache_bytes: int) -> None:
        self._outputs = outputs
        self._kept = kept
        self._index_cache_bytes = index_cache_bytes
        #: by job and map attempt: the file, and the map's place in it
        self._jobs: dict[str, dict[str, tuple[MergedFile, int]]] = {}
        #: by job: names of the files that are known, or were found unusable
        self._names: dict[str, set[str]] = {}
        self._indexes: OrderedDict[Path, MergedIndex] = OrderedDict()
        self._index_bytes = 0
        self._lock = threading.Lock()

    @property
    def kept_bytes(self) -> int:
        """Of partitions that were read whole."""
        return self._kept.held_bytes

    @property
    def memory_bytes(self) -> int:
        """Of indexes and kept partitions."""
        return self._index_bytes + self._kept.held_bytes

    @property
    def maps(self) -> int:
        """Map outputs of all jobs that lie in merged files."""
        return sum(map(len, tuple(self._jobs.values())))

    def maps_of(self, job_id: str) -> tuple[str, ...]:
        """Map attempts of a job that lie in merged files."""
        return tuple(self._jobs.get(job_id, ()))

    def publish(self, job_id: str, file: MergedFile) -> None:
        """From now on the file's maps are answered from it; those that another file has stay with that one."""
        maps = self._jobs.setdefault(job_id, {})
        self._names.setdefault(job_id, set()).add(file.path.stem)
        for number, map_id in enumerate(file.maps):
            known = maps.get(map_id)
            if known is None or known[0].is_bad:
                maps[map_id] = file, number

    def look_for(self, job: ShuffleJob, job_id: str, name: str) -> None:
        """A client was told of this file, and the node may not have looked since it appeared. Blocking."""
        names = self._names.setdefault(job_id, set())
        if name in names or not is_safe_name(name):
            return
        for app_dir in self._outputs.app_dirs(job):
            folder = app_dir / MERGED_FOLDER
            path, index_path = folder / f"{name}{DATA_SUFFIX}", folder / f"{name}{INDEX_SUFFIX}"
            try:
                index_path.lstat()
            except OSError:  # not there, or the name is too long for a file
                continue
            names.add(name)  # whatever is wrong with it: it is not read for each request
            try:
                index = load_merged(path, index_path, folder=folder)
            except OutputMissing as error:
                log.warning("merged file left alone, the originals are served: %s", error)
                return
            self._remember(path, index)
            self.publish(job_id, MergedFile(path, index_path, index.maps))
            return

    def forget_job(self, job_id: str) -> None:
        self._names.pop(job_id, None)
        files = {file.path for file, _ in self._jobs.pop(job_id, {}).values()}
        for path in files:
            self._forget_index(path)
            self._outputs.files.forget(path)
        self._kept.forget_where(lambda key, _: isinstance(key, tuple) and key[0] in files)

    def sweep(self) -> None:
        self._kept.sweep()

    def find(
        self, job: ShuffleJob, job_id: str, map_id: str, reduce: int, parts: "Parts", *, at_any_rate: bool = False
    ) -> tuple[Segment, IndexEntry] | None:
        """A map's segment in a merged file, None where the original has to answer. Blocking.

        `parts`: of the request's earlier maps. `at_any_rate`: the original is lost, and other maps' segments being
        damaged does not matter.
        """
        maps = self._jobs.get(job_id)
        place = maps.get(map_id) if maps is not None else None
        if place is None:
            return None
        file, number = place
        if file.is_bad or (reduce in file.bad_partitions and not at_any_rate):
            return None
        part = parts.get(file)
        if part is None:
            part = self._part(file, reduce)
            if part is None:
                return None
            parts[file] = part
        entry = part.entries[number]
        original = _Original(self._outputs, job, map_id, reduce, entry)
        return MergedSegment(part, number, self._outputs, self._kept, original), entry

    def _part(self, file: MergedFile, reduce: int) -> _Part | None:
        try:
            index = self._indexes.get(file.path)
            if index is None:
                index = load_merged(file.path, file.index_path, folder=file.path.parent)
                self._remember(file.path, index)
            else:
                self._indexes.move_to_end(file.path)
            if index.maps != file.maps:
                raise OutputMissing(f"{file.index_path} has changed")
            if reduce >= index.partitions:
                return None  # the original refuses it
            return _Part(file, reduce, index.partition(reduce), index.segments(reduce))
        except (OutputMissing, FormatError) as error:
            give_up(file, error)
            return None

    def _remember(self, path: Path, index: MergedIndex) -> None:
        self._indexes[path] = index
        self._index_bytes += index.cost_bytes
        while self._index_bytes > self._index_cache_bytes and len(self._indexes) > 1:
            self._index_bytes -= self._indexes.popitem(last=False)[1].cost_bytes

    def _forget_index(self, path: Path) -> None:
        index = self._indexes.pop(path, None)
        if index is not None:
            self._index_bytes -= index.cost_bytes


Parts = dict[MergedFile, _Part]


def give_up(file: MergedFile, error: Exception) -> None:
    """From any thread: the originals answer from now on."""
    if not file.is_bad:
        file.is_bad = True
        log.warning("merged file left alone, the originals are served: %s", error)


@dataclass(frozen=True, slots=True)
class _Original:
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

    def __init__(
        self, part: _Part, number: int, outputs: MapOutputs, kept: KeptPartitions, original: _Original
    ) -> None:
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
        kept = self._partition(counts)
        if kept is None:
            return self._alone(counts)
        at = self._entry.start - self._part.whole.offset
        data = memoryview(kept.data)[at : at + self._entry.part_length]
        self._kept.release(self._part.key, kept)  # what was handed out lives until it is copied
        return data

    def _range(self, counts: ReadCounts) -> Range:
        kept = self._partition(counts)
        if kept is not None:
            at = self._entry.start - self._part.whole.offset
            return KeptRange(self._kept, self._part.key, kept, at, self._entry.part_length)
        file = self._outputs.files.open(self._part.file.path)
        try:
            self._verify_in_place(file, counts)
        except BaseException:
            file.release()
            raise
        return FileRange(file, self._entry.start, self._entry.part_length, counts)

    def _partition(self, counts: ReadCounts) -> KeptPartition | None:
        """The whole partition, read unless it is kept; None where it is too long or there is no room."""
        part = self._part
        if part.partition in part.file.bad_partitions:
            return None
        kept = self._kept.use(part.key)
        if kept is not None:
            return kept
        length = part.whole.length
        if not self._kept.reserve(length):
            return None
        try:
            data = self._pread(part.whole.offset, length, counts)
            part.verify(memoryview(data))
        except BaseException:
            self._kept.unreserve(length)
            raise
        return self._kept.keep(part.key, data, len(part.entries))

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
        counts.add(len(data))
        counts.merged_reads += 1
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
