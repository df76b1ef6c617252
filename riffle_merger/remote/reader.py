"""A file of map outputs as its readers open it: one read for the index, or the part of it they need, one for the data.

An unmerged output is small, so its end is read with its index. A merged file's index may be large, so more than its end
is read only where the wanted row lies before it.
"""

from array import array
from collections.abc import Iterator
from typing import Final

from riffle_merger.format.errors import CorruptIndex
from riffle_merger.format.packed import FOOTER_BYTES, Footer, Row, index_bytes, row_bytes
from yaqd.storage import FileSystem, PositionedReader

#: of a file's end that is read in the hope that what is wanted is there
_TAIL_MAX: Final = 128 << 10


class PackedFile:
    """Use from one thread at a time; `close` it. CorruptIndex, or StorageError."""

    def __init__(self, files: FileSystem, path: str, *, maps: int, partitions: int) -> None:
        """`maps` and `partitions`: what is expected to be in it, to read no more of its end than there is to."""
        self._reader: PositionedReader = files.open_at(path)
        #: requests made so far
        self.reads = 0
        try:
            size = min(self._reader.length, _TAIL_MAX, index_bytes(maps, partitions))
            self._tail_at = self._reader.length - size
            self._tail = self._read(self._tail_at, size)
            self.footer = Footer.parse(self._tail[-FOOTER_BYTES:], self._reader.length, name=path)
            names = self._end(self.footer.names_at, self._reader.length)
            #: names of the map attempts
            self.maps = self.footer.parse_names(names)
        except BaseException:
            self.close()
            raise

    @property
    def held_bytes(self) -> int:
        """Memory that it takes."""
        return len(self._tail)

    def row(self, partition: int) -> Row:
        """Return one partition's place. Raises IndexError where there is no such partition."""
        start = self.footer.row_at(partition)
        return self.footer.parse_row(partition, self._end(start, start + row_bytes(self.footer.maps)))

    def rows(self) -> Iterator[Row]:
        """Yield the rows of all partitions, which follow each other without gaps."""
        return self.footer.parse_rows(self._end(self.footer.rows_at, self.footer.names_at))

    def table(self) -> "tuple[array[int], array[int]]":
        """Return where each partition of one map's file begins and the last one ends, and their checksums."""
        bounds, checksums = array("Q"), array("I")
        for row in self.rows():
            bounds.append(row.offset)
            checksums.append(row.checksums[0])
        bounds.append(self.footer.rows_at)
        return bounds, checksums

    def read(self, offset: int, length: int) -> bytes:
        if offset + length > self.footer.rows_at:
            raise CorruptIndex(f"{self.footer.name}: no segments at {offset}+{length}")
        return self._end(offset, offset + length)

    def stream(self, offset: int, length: int) -> Iterator[bytes]:
        if offset >= self._tail_at:
            yield self.read(offset, length)
            return
        self.reads += 1
        yield from self._reader.stream_at(offset, length)

    def close(self) -> None:
        self._reader.close()

    def _end(self, start: int, end: int) -> bytes:
        """From what is at hand, if it is."""
        if start >= self._tail_at:
            return self._tail[start - self._tail_at : end - self._tail_at]
        return self._read(start, end - start)

    def _read(self, offset: int, length: int) -> bytes:
        if not length:
            return b""
        self.reads += 1
        return self._reader.read_at(offset, length)
