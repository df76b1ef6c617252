"""Whether every segment of a file of map outputs on a shared file system is what its map wrote: one read of all."""

from collections.abc import Iterator, Sequence

from riffle_merger.format.checksum import crc32
from riffle_merger.format.errors import CorruptSegment
from riffle_merger.format.packed import Row
from riffle_merger.remote.reader import PackedFile

_CHECKSUM_BYTES = 4


def damaged_segments(file: PackedFile, rows: Sequence[Row]) -> Iterator[tuple[int, str]]:
    """Partition and map of each segment whose bytes are not those of its checksum, or that is not the index's.

    Blocking, in bounded memory whatever the segments' lengths. Raises StorageError and FormatError where the file
    cannot be read to its end.
    """
    pieces = file.stream(0, file.footer.rows_at)
    rest = memoryview(b"")
    for partition, row in enumerate(rows):
        for name, length, checksum in zip(file.maps, row.lengths, row.checksums, strict=True):
            computed, last, left = 0, b"", length
            while left:
                if not rest:
                    rest = memoryview(_next(pieces, file.footer.name))
                known = last + rest[:left]
                left -= min(left, len(rest))
                rest = rest[len(known) - len(last) :]
                computed, last = crc32(known[:-_CHECKSUM_BYTES], computed), known[-_CHECKSUM_BYTES:]
            is_right = length >= _CHECKSUM_BYTES and int.from_bytes(last, "big") == computed == checksum
            if length and not is_right:
                yield partition, name


def _next(pieces: Iterator[bytes], name: str) -> bytes:
    while True:
        piece = next(pieces, None)
        if piece is None:
            raise CorruptSegment(f"{name} ends before its segments do")
        if piece:
            return piece
