"""Reading a file piece by piece where the file system gives chunks, and publishing one in a last rename."""

import contextlib
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from yaqd.storage.errors import NotAFile, PathExists, PathNotFound, StorageError
from yaqd.storage.filesystem import FileSystem
from yaqd.storage.paths import join, name_of, parent_of
from yaqd.storage.statistics import statistics_of


def check_range(path: str, offset: int, length: int, available: int) -> None:
    """Raise StorageError unless these bytes lie within a file of so many."""
    if offset < 0 or length < 0 or offset + length > available:
        raise StorageError(f"{path}: has {available} bytes, none at {offset}+{length}", path=path)


class ChunkReader:
    """`read` over an iterator of chunks."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def read(self, size: int = -1, /) -> bytes:
        """Read `size` bytes, fewer only at the end of the file; all that is left if `size` is negative."""
        if size < 0:
            data = b"".join((self._rest, *self._chunks))
            self._rest = b""
            return data
        parts, have = [self._rest], len(self._rest)
        while have < size:
            chunk = next(self._chunks, b"")
            if not chunk:
                break
            parts.append(chunk)
            have += len(chunk)
        data = b"".join(parts)
        self._rest = data[size:]
        return data[:size]

    def close(self) -> None:
        close = getattr(self._chunks, "close", None)
        if close is not None:
            close()
        self._chunks = iter(())
        self._rest = b""

    def __enter__(self) -> "ChunkReader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class RenamingWriter:
    """Writes to a hidden name in the same folder; `close` gives the file its own."""

    def __init__(
        self,
        filesystem: FileSystem,
        path: str,
        open_file: Callable[[str], Any],
        translated: Callable[[str], AbstractContextManager[None]],
        *,
        overwrite: bool,
    ) -> None:
        """`open_file` makes the file of a given name; `translated` turns its errors into StorageErrors about a path."""
        _check_free(filesystem, path, overwrite)
        self._fs = filesystem
        self._path = path
        self._overwrite = overwrite
        self._shown = filesystem.uri + path
        self._translated = translated
        self._statistics = statistics_of(filesystem.scheme)
        # the name is cut so that prefix and suffix still fit where names are bounded (255 bytes)
        self._hidden = join(parent_of(path), f".{name_of(path)[:40]}.{uuid.uuid4().hex}.tmp")
        with translated(self._shown):
            self._file = open_file(self._hidden)
        self._is_open = True

    def write(self, data: bytes | bytearray, /) -> None:
        self._statistics.bytes_written += len(data)
        with self._translated(self._shown):
            self._file.write(data)

    def close(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        try:
            with self._translated(self._shown):
                self._file.close()
            self._fs.rename(self._hidden, self._path, overwrite=self._overwrite)
        except StorageError:
            self._remove()
            raise

    def abort(self) -> None:
        if self._is_open:
            self._is_open = False
            with contextlib.suppress(StorageError), self._translated(self._shown):
                # a file that could go on by another way does not try to
                getattr(self._file, "abort", self._file.close)()
            self._remove()

    def _remove(self) -> None:
        with contextlib.suppress(StorageError):
            self._fs.delete(self._hidden)


def _check_free(filesystem: FileSystem, path: str, overwrite: bool) -> None:
    try:
        found = filesystem.status(path)
    except PathNotFound:
        return
    if found.is_dir:
        raise NotAFile(f"{found.path} is a folder, not a file", path=path)
    if not overwrite:
        raise PathExists(f"{found.path} exists already", path=path)
