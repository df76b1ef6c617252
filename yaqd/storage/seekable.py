"""A file on any storage as Python's own files are: read in order, or at any place."""

import io
import os
from typing import BinaryIO, Final, cast

from yaqd.config import Configuration
from yaqd.storage.filesystem import PositionedReader
from yaqd.storage.opening import get_filesystem
from yaqd.storage.paths import locate

#: bytes of one request: each costs a turn to whoever keeps the file
_REQUEST_BYTES: Final = 4 << 20


def open_seekable(path: str, conf: Configuration) -> BinaryIO:
    """Open a file for reading. A path without a scheme is one of this machine. Raises OSError, StorageError; so do its
    methods."""
    if "://" not in path:
        return open(path, "rb")
    if path.startswith("file://"):
        return open(locate(path, conf).path, "rb")
    opened = _Positioned(get_filesystem(path, conf).open_at(path))
    return cast(BinaryIO, io.BufferedReader(opened, _REQUEST_BYTES))


class _Positioned(io.RawIOBase):
    def __init__(self, reader: PositionedReader) -> None:
        self._reader, self._at = reader, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._reader.length}[whence]
        if start + offset < 0:
            raise ValueError(f"negative place {start + offset}")
        self._at = start + offset
        return self._at

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        count = max(0, min(len(buffer), _REQUEST_BYTES, self._reader.length - self._at))
        buffer[:count] = self._reader.read_at(self._at, count) if count else b""
        self._at += count
        return count

    def close(self) -> None:
        if not self.closed:
            self._reader.close()
        super().close()
