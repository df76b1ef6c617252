"""Segments that stay on disk until the merge reads them: fetched ones that did not fit memory, map outputs of this
node, spills."""

import os
from pathlib import Path

from riffle_merger.format.errors import CorruptSegment
from riffle_merger.format.index import IndexEntry


class _File:
    """A file opened at its first read, and closed with `close` or the end of this object."""

    __slots__ = ("_descriptor", "path")

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self._descriptor = -1

    def read(self, offset: int, length: int) -> bytes:
        if self._descriptor < 0:
            self._descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        return os.pread(self._descriptor, length, offset)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        self.close()


class FileSource:
    """A range of a file, read with pread. Parts share their file's descriptor."""

    __slots__ = ("_file", "_start", "length", "name")

    def __init__(self, path: str | Path, start: int, length: int, *, name: str | None = None) -> None:
        self._file = _File(path)
        self._start = start
        self.length = length
        self.name = name or str(path)

    @classmethod
    def whole(cls, path: Path) -> "FileSource":
        return cls(path, 0, path.stat().st_size)

    def part(self, entry: IndexEntry) -> "FileSource":
        """Return one partition's segment of this output file."""
        part = FileSource.__new__(FileSource)
        part._file = self._file
        part._start, part.length, part.name = self._start + entry.start, entry.part_length, self.name
        return part

    def read(self, offset: int, length: int) -> bytes:
        if offset < 0 or length < 0 or offset + length > self.length:
            raise CorruptSegment(f"{self.name}: truncated: {self.length} bytes, {offset + length} needed")
        data = self._file.read(self._start + offset, length)
        if len(data) != length:
            raise CorruptSegment(f"{self.name}: the file ends {length - len(data)} bytes early")
        return data

    def close(self) -> None:
        """Give the descriptor back; the next read opens the file again."""
        self._file.close()
