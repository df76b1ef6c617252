"""A stretch of the merged file in memory: filled with few large reads, written with one.

The output is a fixed sequence of segments: partition by partition, map by map. A window takes the next so many bytes of
it. Each input contributes pieces that lie one after the other in its own file but apart in the output. So one vectored
read per input scatters them to their places: the bytes are copied once, from the page cache into the window, and the
disk sees one long read per input and one long write. This is Algorithm 2 of the Riffle paper with the inputs'
read-ahead buffers and the write buffer folded into one: a window of N buffers gives each of N inputs a buffer's worth.

The disk works while the processor does: a window is announced to it (`advise`) before the one ahead of it is read.
Check sums are computed by whoever writes, so that a window is read while the one before is checked and written.
"""

import mmap
import os
import threading
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import overload

from riffle_merger.format.ahead import announce
from riffle_merger.format.checksum import crc32
from riffle_merger.format.index import IndexEntry, SpillIndex
from riffle_merger.merger.errors import MergeError, NotMergeable
from riffle_merger.plan.buffers import WRITE_BYTES

#: pieces that one system call takes
_IOV_MAX = os.sysconf("SC_IOV_MAX")
#: pieces that one window takes, so that tiny segments cannot fill the memory with descriptions of themselves
_PIECES_MAX = 32_768
_CHECKSUM_BYTES = 4
#: of one call that writes to the page cache
_CALL_BYTES = 256 << 10


@dataclass(slots=True)
class Input:
    """An open map output, its index in memory."""

    name: str
    descriptor: int
    index: SpillIndex


@dataclass(slots=True)
class Counts:
    """Requests to the disk, from any thread."""

    reads: int = 0
    writes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self) -> None:
        with self._lock:
            self.reads += 1

    def written(self) -> None:
        with self._lock:
            self.writes += 1


@dataclass(slots=True)
class _Extent:
    """Bytes that lie together in one input, and where they go."""

    offset: int
    end: int
    places: list[memoryview] = field(default_factory=list)


@dataclass(slots=True)
class _Piece:
    """A segment, or as much of it as fits where it is."""

    view: memoryview
    number: int
    is_last: bool


@dataclass(slots=True)
class Window:
    """The next bytes of the output: where they come from, and the buffers that they are going to fill."""

    #: per input
    extents: list[list[_Extent]]
    #: the buffers as far as they are used
    views: list[memoryview]
    #: what is in each of them
    pieces: list[list[_Piece]]


class Windows:
    """The whole output as a sequence of windows: `plan` until nothing comes any more, and of each window in this order
    `advise`, `read`, `checked`. Planning and checking are for one thread each, window after window."""

    def __init__(self, inputs: Sequence[Input], counts: Counts) -> None:
        """The indexes have the same number of partitions, and were checked against their files."""
        self._inputs = inputs
        self._counts = counts
        self._segments = self._walk()
        self._current = next(self._segments, None)
        #: bytes of the current segment that are placed already
        self._placed = 0
        self._checks = _Checks(inputs)

    @property
    def checksums(self) -> "Rows":
        """The checksums of the segments of each partition, once all is filled."""
        return self._checks.checksums

    def _walk(self) -> Iterator[tuple[int, IndexEntry]]:
        partitions = len(self._inputs[0].index)
        for partition in range(partitions):
            for number, source in enumerate(self._inputs):
                yield number, source.index[partition]

    def advise(self, window: Window) -> None:
        """Tells the disk of all reads of a window at once.

        It may serve them in its order while others are read.
        """
        for source, of_input in zip(self._inputs, window.extents, strict=True):
            for extent in of_input:
                announce(source.descriptor, extent.offset, extent.end - extent.offset)

    def read(self, window: Window, share: int, shares: int) -> None:
        """Fills its views, as far as they belong to every so manieth input: the threads that read together take one
        share each. Raises NotMergeable when an input ends too early, MergeError when it cannot be read. Blocking."""
        for source, of_input in list(zip(self._inputs, window.extents, strict=True))[share::shares]:
            for extent in of_input:
                self._read(source, extent)

    def checked(self, window: Window) -> Iterator[memoryview]:
        """Yields what was read, buffer after buffer, as soon as it is known to be right.

        Written at once, it is still in the processor's cache. Raises NotMergeable when an input is damaged.
        """
        for view, pieces in zip(window.views, window.pieces, strict=True):
            for piece in pieces:
                self._checks.add(piece)
            if view:
                yield view

    def plan(self, buffers: Sequence[mmap.mmap]) -> Window | None:
        """Plans what comes next, as much as these buffers hold; None at the end. They may still be in use."""
        window = Window([[] for _ in self._inputs], [], [])
        count = 0
        for buffer in buffers:
            view, position, size = memoryview(buffer), 0, len(buffer)
            pieces: list[_Piece] = []
            while position < size and self._current is not None and count + len(pieces) < _PIECES_MAX:
                number, entry = self._current
                take = min(entry.part_length - self._placed, size - position)
                place = view[position : position + take]
                if take:
                    _extend(window.extents[number], entry.start + self._placed, place)
                position += take
                self._placed += take
                is_last = self._placed == entry.part_length
                pieces.append(_Piece(place, number, is_last))
                if is_last:
                    self._current, self._placed = next(self._segments, None), 0
            if pieces:
                count += len(pieces)
                window.views.append(view[:position])
                window.pieces.append(pieces)
        return window if count else None

    def _read(self, source: Input, extent: _Extent) -> None:
        offset, places, at = extent.offset, extent.places, 0
        while at < len(places):
            batch = places[at : at + _IOV_MAX]
            wanted = sum(map(len, batch))
            try:
                done = os.preadv(source.descriptor, batch, offset)
            except OSError as error:
                raise MergeError(f"{source.name}: cannot be read: {error.strerror}") from None
            self._counts.read()
            if done == wanted:
                at += len(batch)
            elif done == 0:
                raise NotMergeable(f"{source.name}: ends at byte {offset}, {extent.end} are in its index")
            else:  # the kernel gives less only at the file's end, or beyond 2 GB
                places[at : at + len(batch)] = _rest(batch, done)
            offset += done


def requests_of(window: Window) -> tuple[int, int]:
    """Reads and writes that it takes to fill it, and to put it into the file (`Output.write`, `Output.end_stretch`)."""
    reads = sum(-(-len(extent.places) // _IOV_MAX) for of_input in window.extents for extent in of_input)
    writes = stretch = 0
    for view in window.views:
        stretch += len(view)
        if stretch >= WRITE_BYTES:
            writes, stretch = writes + 1, 0
    return reads, writes + (stretch > 0)


def _extend(extents: list[_Extent], offset: int, place: memoryview) -> None:
    if not extents or extents[-1].end != offset:
        extents.append(_Extent(offset, offset))
    extents[-1].places.append(place)
    extents[-1].end += len(place)


def _rest(places: list[memoryview], done: int) -> list[memoryview]:
    """What of these places is still to be filled or written when `done` bytes are."""
    for number, place in enumerate(places):
        if done < len(place):
            return [place[done:], *places[number + 1 :]]
        done -= len(place)
    return []


def write_view(descriptor: int, view: memoryview, offset: int) -> None:
    """Writes to the page cache, where the disk takes it in requests of its own size. Blocking. Raises OSError.

    Each call to the kernel is small: for a large one it takes huge pages. On a virtual machine its host has likely
    taken these back. They are slow to get again (3 GB/s of processor time became 0.4 on one).
    """
    for at in range(0, len(view), _CALL_BYTES):
        _write(descriptor, view[at : at + _CALL_BYTES], offset + at)


def _write(descriptor: int, data: memoryview, offset: int) -> None:
    done = 0
    while done < len(data):  # the kernel takes less only where a disk is nearly full
        done += os.pwrite(descriptor, data[done:], offset + done)


class Rows(Sequence[Sequence[int]]):
    """Numbers below 2^32, so many to a row, in four bytes each."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._cells = array("I")

    def add(self, number: int) -> None:
        self._cells.append(number)

    def __len__(self) -> int:
        """Rows that are whole."""
        return len(self._cells) // self._width

    @overload
    def __getitem__(self, row: int) -> "array[int]": ...

    @overload
    def __getitem__(self, row: slice) -> "list[array[int]]": ...

    def __getitem__(self, row: int | slice) -> "array[int] | list[array[int]]":
        if isinstance(row, slice):
            return [self[number] for number in range(len(self))[row]]
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        return self._cells[row * self._width : (row + 1) * self._width]


class _Checks:
    """Verifies segment after segment while their bytes pass, and keeps their checksums, partition by partition."""

    def __init__(self, inputs: Sequence[Input]) -> None:
        self._inputs = inputs
        self.checksums = Rows(len(inputs))
        self._segment = 0
        #: the last bytes of a segment that comes in pieces: its own checksum, perhaps
        self._tail = b""

    def add(self, piece: _Piece) -> None:
        view = piece.view
        trailer: bytes | memoryview
        if piece.is_last and not self._tail and len(view) >= _CHECKSUM_BYTES:  # the usual case: whole
            computed, trailer = crc32(view[:-_CHECKSUM_BYTES], self._segment), view[-_CHECKSUM_BYTES:]
        else:
            computed, trailer = self._add_part(view)
            if not piece.is_last:
                return
        stored = int.from_bytes(trailer, "big")  # 0 of an empty one
        if len(trailer) and (len(trailer) < _CHECKSUM_BYTES or stored != computed):
            name = self._inputs[piece.number].name
            raise NotMergeable(
                f"{name}: partition {len(self.checksums)} has the checksum {stored:#010x}, "
                f"its contents give {computed:#010x}"
            )
        self.checksums.add(stored)
        self._segment, self._tail = 0, b""

    def _add_part(self, view: memoryview) -> tuple[int, bytes]:
        """All but the last four bytes so far go into the checksum."""
        if len(view) >= _CHECKSUM_BYTES:
            self._segment = crc32(self._tail, self._segment)
            self._segment = crc32(view[:-_CHECKSUM_BYTES], self._segment)
            self._tail = bytes(view[-_CHECKSUM_BYTES:])
        else:
            known = self._tail + bytes(view)
            self._segment = crc32(known[:-_CHECKSUM_BYTES], self._segment)
            self._tail = known[-_CHECKSUM_BYTES:]
        return self._segment, self._tail
