"""Segments that stay on disk until the merge reads them: fetched ones that did not fit memory, map outputs of this
node, spills.
"""

import os
from pathlib import Path

from riffle_merger.format.errors import CorruptSegment


class FileSource:
    """A range of a file, read with pread. The file is opened at the first read; `close` (or the end of this object)
    closes it.
    """

    __slots__ = ("_fd", "_path", "_start", "length", "name")

    def __init__(self, path: str | Path, start: int, length: int, *, name: str | None = None) -> None:
        self._path = path
        self._start = start
        self._fd = -1
        self.length = length
        self.name = name or str(path)

    def read(self, offset: int, length: int) -> bytes:
        if offset < 0 or length < 0 or offset + length > self.length:
            raise CorruptSegment(f"{self.name}: truncated: {self.length} bytes, {offset + length} needed")
        if self._fd < 0:
            self._fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        data = os.pread(self._fd, length, self._start + offset)
        if len(data) != length:
            raise CorruptSegment(f"{self.name}: the file ends {length - len(data)} bytes early")
        return data

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.close()
