"""Writing an output file: segments one after the other, then the index, both appearing whole or not at all."""

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from riffle_merger.format.checksum import crc32
from riffle_merger.format.codec import Codec
from riffle_merger.format.columns import Columns
from riffle_merger.format.errors import NO_ROOM
from riffle_merger.format.index import IndexEntry, SpillIndex
from riffle_merger.format.segment import CHECKSUM_BYTES, RUN_END, RUN_MAGIC, Source, encode_block

OUTPUT_NAME = "file.out"
INDEX_NAME = "file.out.index"

_COPY_BYTES = 1024 * 1024
_BUFFER_BYTES = 1024 * 1024


class WriteFailed(OSError):
    """The disk refused map output; the message says which file, why, and what to do."""


class SegmentFileWriter:
    """Writes partition after partition to one file. Not thread-safe.

    Use: `write_run`, `copy_segment` or `write_block`s with `end_run`, then `end_partition`; `finish` at the end.
    """

    def __init__(self, path: Path, codec: Codec) -> None:
        self.path = path
        self._codec = codec
        self._entries: list[IndexEntry] = []
        self._position = self._start = 0
        self._raw = self._crc = 0
        self._in_run = False
        try:
            self._file: BinaryIO = open(path, "wb", buffering=_BUFFER_BYTES)  # noqa: SIM115
        except OSError as error:
            raise write_failed(path, error) from error

    @property
    def bytes_written(self) -> int:
        return self._position

    def write_run(self, blocks: Iterable[Columns]) -> None:
        """Write one sorted run; nothing at all is written for a run without blocks."""
        for block in blocks:
            self.write_block(block)
        self.end_run()

    def write_block(self, block: Columns) -> None:
        """Write the next block of the current run, which begins here if there is none."""
        if not self._in_run:
            self._write(RUN_MAGIC)
            self._in_run = True
        header, stored, raw_length = encode_block(block, self._codec)
        self._write(header)
        self._write(stored)
        self._raw += raw_length

    def end_run(self) -> None:
        """Close the current run, if there is one: the next block may have smaller keys."""
        if self._in_run:
            self._write(RUN_END)
            self._in_run = False

    def copy_segment(self, source: Source, raw_length: int) -> None:
        """Copy all runs of another segment as they are stored; it was verified, or written by this process."""
        self.end_run()
        body = source.length - CHECKSUM_BYTES
        for offset in range(0, body, _COPY_BYTES):
            self._write(source.read(offset, min(_COPY_BYTES, body - offset)))
        self._raw += raw_length

    def end_partition(self) -> IndexEntry:
        """Close the partition's segment with its checksum. A partition without records is four bytes long."""
        self.end_run()
        self._write(self._crc.to_bytes(CHECKSUM_BYTES, "big"))
        entry = IndexEntry(self._start, self._raw, self._position - self._start)
        self._entries.append(entry)
        self._start, self._raw, self._crc = self._position, 0, 0
        return entry

    def finish(self) -> SpillIndex:
        """Flush and close; the file is complete under its path."""
        try:
            self._file.close()
        except OSError as error:
            self.abandon()
            raise write_failed(self.path, error) from error
        return SpillIndex(self._entries)

    def abandon(self) -> None:
        """Close and remove what was written; for every way out that is not `finish`."""
        try:
            self._file.close()
        except OSError:
            pass  # a full disk refuses the flush again; the file goes anyway
        self.path.unlink(missing_ok=True)

    def _write(self, data: bytes | memoryview) -> None:
        try:
            self._file.write(data)
        except OSError as error:
            self.abandon()
            raise write_failed(self.path, error) from error
        self._crc = crc32(data, self._crc)
        self._position += len(data)


def publish(directory: Path, temporary: Path, index: SpillIndex) -> None:
    """Give a finished output its final name, then its index: a server that sees the index sees the whole file."""
    index_temporary = directory / f"{INDEX_NAME}.{os.getpid()}.tmp"
    try:
        index_temporary.write_bytes(index.to_bytes())
        temporary.rename(directory / OUTPUT_NAME)
        index_temporary.rename(directory / INDEX_NAME)
    except OSError as error:
        for path in (index_temporary, temporary):
            path.unlink(missing_ok=True)
        raise write_failed(directory / INDEX_NAME, error) from error


def write_failed(path: Path, error: OSError) -> WriteFailed:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    remedy = NO_ROOM if full else "check the local folder"
    return WriteFailed(error.errno, f"cannot write map output: {error.strerror}; {remedy}", str(path))
