"""The body of one answer: segments with their headers, in the order in which they were asked for.

Small segments are gathered into one buffer, so that a system call carries many; a large one goes out by itself,
straight from its file. Nothing is read before there is room for it, so a reader that takes nothing costs little.

Of a segment that is lost there is a header with lengths that no segment has. Hadoop's reducers report the map of such a
header, and no other, and read no further; where a header names no map, they report all that they asked for and did not
get. Where a request is refused they try again and again before they report any, each time all maps in it.
"""

import os
import struct
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from nm.shuffle.files import OpenFile, OutputMissing, OutputUnreadable
from nm.shuffle.merged.segment import MergedFile, give_up
from nm.shuffle.outputs import MapOutput, MapOutputs
from riffle_merger.format import IndexEntry
from yaqd.security.writable import encode_vint, encode_vlong

#: a segment up to this size is copied rather than sent by a call of its own
COPY_BYTES = 16 << 10
#: what goes out by one call of small ones, the last may go beyond
GATHER_BYTES = 128 << 10
#: two VLongs of two bytes each, after the byte that says so
_TWO_SHORT = struct.Struct(">BHBH").pack
_OF_TWO_BYTES = 0x90 - 2
#: what a segment of its own takes in memory with its header
_PIECE_BYTES = 512


@dataclass(slots=True)
class ReadCounts:
    """How map outputs were read, as the kernel was asked for them."""

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
        other.reads = other.read_bytes = other.merged_reads = other.merged_segments = other.fallbacks = 0

    def include(self, other: "ReadCounts") -> None:
        """Adds the other's counts to these."""
        self.reads += other.reads
        self.read_bytes += other.read_bytes
        self.merged_reads += other.merged_reads
        self.merged_segments += other.merged_segments
        self.fallbacks += other.fallbacks


class Range(Protocol):
    """Bytes of one segment on their way into a socket."""

    @property
    def remaining(self) -> int:
        """Bytes not yet sent."""

    def send(self, descriptor: int, most: int) -> int:
        """Sends and returns the bytes moved.

        Raises BlockingIOError when the socket is full, OutputMissing when the bytes are not there.
        """

    def lighter(self) -> "Range":
        """Returns the same bytes from where they take no memory, if they have been on their way for long.

        This one is released then. Blocking.
        """

    def release(self) -> None:
        """Releases what the range holds: once, in the end."""


class FileRange:
    """A part of an open file on its way into a socket."""

    __slots__ = ("_counts", "_merged", "_offset", "file", "remaining")

    def __init__(
        self, file: OpenFile, offset: int, length: int, counts: ReadCounts, merged: MergedFile | None = None
    ) -> None:
        """`merged`: whose the open file is, unless it is a map output."""
        self.file = file
        self._offset = offset
        self._counts = counts
        self._merged = merged
        self.remaining = length

    def send(self, descriptor: int, most: int) -> int:
        sent = os.sendfile(descriptor, self.file.descriptor, self._offset, min(self.remaining, most))
        if sent == 0:
            error = OutputMissing("a map output became shorter while it was sent")
            if self._merged is not None:
                give_up(self._merged, error)  # who asks again gets the originals
            raise error
        self._counts.add(sent, is_merged=self._merged is not None)
        self._offset += sent
        self.remaining -= sent
        return sent

    def lighter(self) -> Range:
        return self

    def release(self) -> None:
        self.file.release()


class Piece(Protocol):
    """A part of a body: one or several segments, each with its header."""

    @property
    def length(self) -> int:
        """Bytes of all of it."""

    @property
    def cost_bytes(self) -> int:
        """About what it takes in memory until it is taken."""

    @property
    def next_lost(self) -> bytes:
        """Header of the next segment, as of one that is lost."""

    @property
    def is_over(self) -> bool:
        """Nothing is left to be taken."""

    def take(self, gathered: bytearray, counts: ReadCounts) -> Range | None:
        """Appends the next bytes, and returns the long segment that follows on them, to be released.

        It goes on until one follows, all is taken or enough is gathered. Blocking, from any thread. Raises
        OutputMissing, of the next segment, when all before it is taken.
        """


def shuffle_headers(
    reduce: int, texts: Sequence[bytes], part_lengths: Sequence[int], raw_lengths: Sequence[int]
) -> list[bytes]:
    """Makes Hadoop's ShuffleHeader before each segment. `texts`: map ids as Text."""
    tail = encode_vint(reduce)
    rows = zip(texts, part_lengths, raw_lengths, strict=True)
    if min(*part_lengths, *raw_lengths) > 0xFF and max(*part_lengths, *raw_lengths) <= 0xFFFF:  # as segments mostly are
        return [text + _TWO_SHORT(_OF_TWO_BYTES, stored, _OF_TWO_BYTES, raw) + tail for text, stored, raw in rows]
    return [text + encode_vlong(stored) + encode_vlong(raw) + tail for text, stored, raw in rows]


def lost_header(reduce: int, text: bytes) -> bytes:
    """Makes the header that says that an output is lost. `text`: map id as Text."""
    return text + encode_vlong(-1) * 2 + encode_vint(reduce)


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

    def header(self, reduce: int, text: bytes) -> bytes:
        """Makes the segment's header. `text`: map id as Text."""
        (header,) = shuffle_headers(reduce, (text,), (self._entry.part_length,), (self._entry.raw_length,))
        return header

    def read(self, counts: ReadCounts) -> bytes:
        file = self._open()
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
        return FileRange(self._open(), self._entry.start, self._entry.part_length, counts)

    def _open(self) -> OpenFile:
        try:
            return self._outputs.open(self._output)
        except OutputMissing:
            self._output.is_gone = True  # its index may be at hand still, and the next would be told of it, too
            raise


class OutputPiece:
    """One segment as the map task wrote it."""

    __slots__ = ("_header", "_reduce", "_segment", "_text", "is_over", "length")

    def __init__(self, reduce: int, text: bytes, segment: OutputSegment) -> None:
        """`text`: map id as Text."""
        self._reduce = reduce
        self._text = text
        self._header = segment.header(reduce, text)
        self._segment = segment
        self.is_over = False
        self.length = len(self._header) + segment.length

    @property
    def cost_bytes(self) -> int:
        return _PIECE_BYTES

    @property
    def next_lost(self) -> bytes:
        return lost_header(self._reduce, self._text)

    def take(self, gathered: bytearray, counts: ReadCounts) -> Range | None:
        if self._segment.length > COPY_BYTES:
            follows = self._segment.range(counts)
            gathered += self._header
        else:
            follows = None
            gathered += self._header + (self._segment.read(counts) if self._segment.length else b"")
        self.is_over = True
        return follows


class LostPiece:
    """Says that segments are lost."""

    __slots__ = ("is_over", "length", "next_lost")

    def __init__(self, reduce: int, texts: Sequence[bytes]) -> None:
        """`texts`: map ids as Text."""
        self.next_lost = b"".join(lost_header(reduce, text) for text in texts)
        self.length = len(self.next_lost)
        self.is_over = False

    @property
    def cost_bytes(self) -> int:
        return self.length

    def take(self, gathered: bytearray, counts: ReadCounts) -> Range | None:
        gathered += self.next_lost
        self.is_over = True
        return None


class Answer:
    """What is still to be sent of a body."""

    __slots__ = ("_pieces", "cost_bytes", "counts", "cut", "job_id", "length")

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        self._pieces: deque[Piece] = deque()
        self.counts = ReadCounts()
        #: of all its pieces
        self.cost_bytes = 0
        #: bytes of the whole body
        self.length = 0
        #: why it ends before them; the client learns which segment is lost, and then the connection ends
        self.cut = ""

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def add(self, piece: Piece) -> None:
        self._pieces.append(piece)
        self.length += piece.length
        self.cost_bytes += piece.cost_bytes

    def clear(self) -> None:
        self._pieces.clear()

    def gather(self, first: bytes = b"") -> tuple[bytearray, Range | None]:
        """Gathers the next bytes after those, and the long segment that follows on them. Blocking.

        Raises OutputUnreadable where there are `first` bytes and not the first segment after them.
        """
        gathered = bytearray(first)
        while self._pieces and len(gathered) < GATHER_BYTES:
            piece = self._pieces[0]
            try:
                follows = piece.take(gathered, self.counts)
            except OutputMissing as error:
                if isinstance(error, OutputUnreadable) and 0 < len(gathered) == len(first):
                    raise
                gathered += piece.next_lost
                self.cut = str(error)
                self.clear()
                break
            if piece.is_over:
                self._pieces.popleft()
            if follows is not None:
                return gathered, follows
        return gathered, None
