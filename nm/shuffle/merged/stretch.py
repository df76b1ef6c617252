"""Segments of map outputs out of merged files, as if they came from the originals.

What a request asks for in the order in which a merged file has it is answered together. Most of an answer's cost is
Python's and goes by steps. Bytes are verified before the first of them goes out; whatever is wrong with a merged file,
the originals answer instead, and where an original is lost its copy in a merged file does.
"""

import contextlib
import logging
import os
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from nm.shuffle.answer import COPY_BYTES, GATHER_BYTES, FileRange, OutputSegment, Range, ReadCounts, lost_header
from nm.shuffle.files import OpenFile, OutputMissing, OutputUnreadable
from nm.shuffle.jobs import ShuffleJob
from nm.shuffle.merged.kept import Kept, KeptRange, KeptSegments
from nm.shuffle.merged.segment import Part, Run, give_up
from nm.shuffle.outputs import MapOutputs
from riffle_merger.format import FormatError
from riffle_merger.format.checksum import crc32
from riffle_merger.format.merged import CHECKSUM_BYTES

log = logging.getLogger(__name__)

_T = TypeVar("_T")
_VERIFY_BYTES = 1 << 20
#: what one takes in memory, and each of its segments: a header, and its places in the part's tables
_STRETCH_BYTES = 512
_SEGMENT_BYTES = 256


class MergedStretch:
    """Segments side by side in a merged partition, and one after the other in a request. From any thread; blocking."""

    __slots__ = ("_at", "_headers", "_job", "_kept", "_outputs", "_part", "_run", "length")

    def __init__(
        self, part: Part, run: Run, headers: Sequence[bytes], outputs: MapOutputs, kept: KeptSegments, job: ShuffleJob
    ) -> None:
        """`headers`: one for each segment of the run."""
        self._part = part
        self._run = run
        self._headers = headers
        self._outputs = outputs
        self._kept = kept
        self._job = job
        #: the next segment to be taken
        self._at = run.first
        self.length = sum(map(len, headers)) + part.length(run)

    @property
    def cost_bytes(self) -> int:
        """Without the part's."""
        return _STRETCH_BYTES + _SEGMENT_BYTES * len(self._headers)

    @property
    def is_over(self) -> bool:
        return self._at == self._run.end

    @property
    def next_lost(self) -> bytes:
        return lost_header(self._part.partition, self._part.file.texts[self._at])

    def take(self, gathered: bytearray, counts: ReadCounts) -> Range | None:
        lengths = self._part.columns.part_lengths
        while self._at < self._run.end and len(gathered) < GATHER_BYTES:
            length = lengths[self._at]
            if length > COPY_BYTES:
                follows = self._or_original(self._range, lambda segment: segment.range(counts), counts)
                gathered += self._header(self._at)
                self._at += 1
                return follows
            if length:
                gathered += self._or_original(self._read, lambda segment: self._read_original(segment, counts), counts)
            else:
                gathered += self._header(self._at)
                self._at += 1
        return None

    def _header(self, number: int) -> bytes:
        return self._headers[number - self._run.first]

    def _or_original(
        self, get: Callable[[ReadCounts], _T], get_original: Callable[[OutputSegment], _T], counts: ReadCounts
    ) -> _T:
        """Of the next segment at least."""
        part = self._part
        try:
            if part.is_usable:
                return get(counts)
        except OutputUnreadable:
            pass  # now; the file may be right
        except OutputMissing as error:
            give_up(part.file, error)
        except FormatError as error:
            part.file.bad_partitions.add(part.partition)
            log.warning("partition of a merged file left alone, the originals are served: %s", error)
        counts.fallbacks += 1
        try:
            return get_original(self._original())
        except OutputMissing:
            if part.file.is_bad:
                raise
        try:
            return get(counts)
        except FormatError as error:
            raise OutputMissing(str(error)) from None

    def _original(self) -> OutputSegment:
        """Of the next segment, with the lengths that the client was told. Raises OutputMissing."""
        part, map_id = self._part, self._part.file.maps[self._at]
        output = self._outputs.load(self._job, map_id)
        entry = output.segment(part.partition)
        raw_lengths, part_lengths = part.columns.raw_lengths, part.columns.part_lengths
        if (entry.part_length, entry.raw_length) != (part_lengths[self._at], raw_lengths[self._at]):
            raise OutputMissing(f"{map_id} is not what was merged")
        return OutputSegment(self._outputs, output, entry)

    # Small segments, with their headers -------------------------------------------------------------------------------

    def _read_original(self, segment: OutputSegment, counts: ReadCounts) -> bytes:
        data = self._header(self._at) + segment.read(counts)
        self._at += 1
        return data

    def _read(self, counts: ReadCounts) -> bytes:
        """Of as many small segments as were read together and make up enough."""
        found = self._kept_run(counts)
        if found is None:
            data = self._header(self._at) + self._alone(counts)
            self._at += 1
            counts.merged_segments += 1
            return data
        run, key, kept = found
        first = self._at
        data = self._joined(memoryview(kept.data), kept.offset, min(run.end, self._run.end))
        counts.merged_segments += self._at - first
        self._kept.release(key, kept, further=self._at - first - 1)
        return data

    def _joined(self, data: memoryview, offset: int, end: int) -> bytes:
        """`data`: of the merged file from `offset`; at least one segment."""
        first, columns = self._at, self._part.columns
        pieces: list[bytes | memoryview] = []
        start = at = columns.starts[first] - offset
        for header, length in zip(
            self._headers[first - self._run.first : end - self._run.first], columns.part_lengths[first:end], strict=True
        ):
            if length > COPY_BYTES or at - start >= GATHER_BYTES:
                break
            pieces += (header, data[at : at + length])
            at += length
        self._at += len(pieces) // 2
        return b"".join(pieces)

    def _alone(self, counts: ReadCounts) -> bytes:
        columns, at = self._part.columns, self._at
        data = self._pread(columns.starts[at], columns.part_lengths[at], counts)
        self._part.verify(Run(at, at + 1), memoryview(data))
        return data

    # Others -----------------------------------------------------------------------------------------------------------

    def _range(self, counts: ReadCounts) -> Range:
        columns = self._part.columns
        start, length = columns.starts[self._at], columns.part_lengths[self._at]
        found = self._kept_run(counts)
        if found is not None:
            _, key, kept = found
            counts.merged_segments += 1
            return KeptRange(self._kept, key, kept, start, length, lambda at, left: self._from_file(at, left, counts))
        if length <= self._kept.run_bytes_max:  # then it is for lack of room
            with contextlib.suppress(OutputMissing):
                follows = self._original().range(counts)  # one read, and to verify it here takes more
                self._part.note_read(Run(self._at, self._at + 1))
                return follows
        follows = self._from_file(start, length, counts)
        try:
            self._verify_in_place(follows.file, counts)
        except BaseException:
            follows.release()
            raise
        counts.merged_segments += 1
        return follows

    def _from_file(self, start: int, length: int, counts: ReadCounts) -> FileRange:
        """Straight, of what is verified. Raises OutputMissing."""
        return FileRange(self._open(), start, length, counts, self._part.file)

    # Reads ------------------------------------------------------------------------------------------------------------

    def _kept_run(self, counts: ReadCounts) -> tuple[Run, Hashable, Kept] | None:
        """The whole partition or a run of it that the next segment lies in, read unless it is kept; None where either
        is too long, or there is no room."""
        part = self._part
        if part.partition in part.file.bad_partitions:
            return None
        whole = part.all
        key = part.key(whole)
        kept = self._kept.use(key)
        if kept is not None:
            return whole, key, kept
        if self._kept.reserve_partition(key, part.whole.length):
            return whole, key, self._read_run(whole, part.whole.length, counts)
        read_with = part.read_with(self._at)
        kept = self._kept.use(part.key(read_with)) if read_with is not None else None
        if read_with is not None and kept is not None:
            return read_with, part.key(read_with), kept
        length = part.length(part.run_around(self._at, self._kept.run_bytes_max))
        room = self._kept.reserve_run(length, part.columns.part_lengths[self._at])
        if not room:
            return None
        run = part.run_around(self._at, room)
        self._kept.unreserve(room - part.length(run))
        found = self._read_run(run, part.length(run), counts)
        part.note_read(run)
        return run, part.key(run), found

    def _read_run(self, run: Run, length: int, counts: ReadCounts) -> Kept:
        """Room for it was made."""
        part = self._part
        offset = part.columns.starts[run.first]
        try:
            data = self._pread(offset, length, counts)
            part.verify(run, memoryview(data))
        except BaseException:
            self._kept.unreserve(length)
            raise
        return self._kept.keep(part.key(run), data, offset, run.end - run.first)

    def _pread(self, offset: int, length: int, counts: ReadCounts) -> bytes:
        file = self._open()
        try:
            return self._pread_from(file, offset, length, counts)
        finally:
            file.release()

    def _open(self) -> OpenFile:
        return self._outputs.files.open(self._part.file.path)

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
        """Reads the segment once, in pieces, for each who asks: the file may have been damaged since another did, and
        most are asked for once. Raises OutputMissing, FormatError."""
        part, start = self._part, self._part.columns.starts[self._at]
        end = start + part.columns.part_lengths[self._at] - CHECKSUM_BYTES
        checksum, at = 0, start
        while at < end:
            data = self._pread_from(file, at, min(_VERIFY_BYTES, end - at), counts)
            checksum = crc32(data, checksum)
            at += len(data)
        stored = int.from_bytes(self._pread_from(file, end, CHECKSUM_BYTES, counts), "big")
        if not stored == checksum == part.columns.checksums[self._at]:
            raise FormatError(f"{part.file.path}: a segment of partition {part.partition} is damaged")
