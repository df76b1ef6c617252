"""The local file system.

A new file is written beside its final name, under a hidden one, and linked to it when closed: readers see it whole or
not at all, also after a crash of the writer. (Not after one of the machine: like Hadoop's, this writer does not sync.)
"""
# ruff: noqa: PTH101, PTH102, PTH103, PTH105, PTH106, PTH108, PTH110, PTH112, PTH114, PTH116, PTH118, PTH120
# (paths are text here, as on every file system, and one more object for each would cost more than the call)

import contextlib
import errno
import grp
import os
import pwd
import shutil
import stat
import uuid
from collections.abc import Iterator
from functools import lru_cache
from typing import IO, Final

from yaqd.config import Configuration
from yaqd.storage.errors import NotAFile, PathDenied, PathExists, PathNotFound, StorageError, StorageFull
from yaqd.storage.filesystem import CHUNK_BYTES, BlockLocation, FileStatus
from yaqd.storage.paths import locate
from yaqd.storage.statistics import counted, statistics_of
from yaqd.storage.streams import check_range

#: Hadoop's default of fs.local.block.size
_BLOCK_BYTES: Final = 32 << 20
_statistics: Final = statistics_of("file")
_looks: Final = counted(_statistics, "read_ops")
_changes: Final = counted(_statistics, "write_ops")


@contextlib.contextmanager
def _translated(path: str) -> Iterator[None]:
    """Operating-system errors as StorageErrors."""
    try:
        yield
    except FileNotFoundError:
        raise PathNotFound(f"{path} does not exist", path=path) from None
    except FileExistsError:
        raise PathExists(f"{path} exists already", path=path) from None
    except PermissionError as error:
        raise PathDenied(f"{path}: {error.strerror}: check its owner and mode", path=path) from None
    except IsADirectoryError:
        raise NotAFile(f"{path} is a folder, not a file", path=path) from None
    except NotADirectoryError:
        raise NotAFile(f"{path}: a part of this path is a file, not a folder", path=path) from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull(f"{path}: {error.strerror}: free some space", path=path) from None
        raise StorageError(f"{path}: {error.strerror or error}", path=path) from None


class LocalFileSystem:
    uri = "file://"
    scheme = "file"

    def __init__(self, conf: Configuration) -> None:
        self._conf = conf
        self._block_bytes = conf.get_size_bytes("fs.local.block.size", _BLOCK_BYTES, minimum=1)

    @_looks
    def open(self, path: str) -> IO[bytes]:
        path = self._path(path)
        with _translated(path):
            return open(path, "rb")

    @_looks
    def open_range(self, path: str, start: int, length: int | None = None) -> Iterator[bytes]:
        path = self._path(path)
        with _translated(path):
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            with _translated(path):
                os.posix_fadvise(fd, start, length or 0, os.POSIX_FADV_SEQUENTIAL)
                remaining = length if length is not None else 1 << 62
                while remaining > 0:
                    chunk = os.pread(fd, min(CHUNK_BYTES, remaining), start)
                    if not chunk:
                        return
                    start += len(chunk)
                    remaining -= len(chunk)
                    _statistics.bytes_read += len(chunk)
                    yield chunk
        finally:
            os.close(fd)

    @_looks
    def open_at(self, path: str) -> "LocalPositioned":
        path = self._path(path)
        with _translated(path):
            return LocalPositioned(path)

    @_changes
    def create(
        self, path: str, *, overwrite: bool = False, make_parents: bool = True, replication: int = 0
    ) -> "LocalWriter":
        path = self._path(path)
        if not overwrite and os.path.lexists(path):
            raise PathExists(f"{path} exists already", path=path)
        if os.path.isdir(path):
            raise NotAFile(f"{path} is a folder, not a file", path=path)
        if make_parents:
            try:
                self.mkdirs(os.path.dirname(path))
            except PathExists as error:
                raise NotAFile(f"{error.path} is a file, not a folder", path=path) from None
        return LocalWriter(path, overwrite)

    @_changes
    def mkdirs(self, path: str, mode: int = 0o755, *, make_parents: bool = True) -> None:
        path = self._path(path)
        with _translated(path):
            if make_parents or os.path.isdir(path):
                os.makedirs(path, mode, exist_ok=True)
            else:
                os.mkdir(path, mode)

    @_changes
    def rename(self, src: str, dst: str, *, overwrite: bool = False) -> None:
        src, dst = self._path(src), self._path(dst)
        with _translated(src):
            is_dir = stat.S_ISDIR(os.lstat(src).st_mode)
        with _translated(dst):
            if is_dir or overwrite:
                if is_dir and os.path.lexists(dst):
                    raise FileExistsError
                os.replace(src, dst)
            else:
                _link(src, dst)
                os.unlink(src)

    @_changes
    def delete(self, path: str, recursive: bool = False) -> bool:
        path = self._path(path)
        if path == "/":
            raise StorageError("the root folder is not deleted", path=path)
        with _translated(path):
            try:
                mode = os.lstat(path).st_mode
                if not stat.S_ISDIR(mode):
                    os.unlink(path)
                elif recursive:
                    _remove_tree(path)
                else:
                    os.rmdir(path)
            except (FileNotFoundError, NotADirectoryError):
                return False
        return True

    @_changes
    def set_mode(self, path: str, mode: int) -> None:
        path = self._path(path)
        with _translated(path):
            os.chmod(path, mode)

    @_changes
    def set_group(self, path: str, group: str) -> None:
        path = self._path(path)
        try:
            with _translated(path):
                shutil.chown(path, group=group)
        except LookupError:
            raise StorageError(f"{path}: there is no group {group!r} on this machine", path=path) from None

    def check_may_create_in(self, folder: str) -> None:
        path = self._path(folder)
        if not os.access(path, os.W_OK | os.X_OK):
            raise PathDenied(f"{path}: no permission to write there: check its owner and mode", path=path)
        # modes do not tell everything: nobody makes anything in /proc, or on a full disk
        probe = os.path.join(path, f".{uuid.uuid4().hex}.tmp")
        try:
            with _translated(path):
                os.mkdir(probe)
                os.rmdir(probe)
        except PathNotFound:
            raise PathDenied(f"{path}: nobody can make a folder there: name another one", path=path) from None

    @_looks
    def exists(self, path: str) -> bool:
        return os.path.exists(self._path(path))

    @_looks
    def status(self, path: str) -> FileStatus:
        path = self._path(path)
        with _translated(path):
            is_symlink = os.path.islink(path)
            return self._status(path, os.stat(path), is_symlink)

    @_looks
    def block_locations(self, path: str, start: int, length: int) -> list[BlockLocation]:
        """Return one piece without hosts: all nodes see the file under the same name, and none is nearer."""
        return [BlockLocation(start, length, ())]

    def _path(self, path: str) -> str:
        if path.startswith("/"):
            return os.path.normpath(path)
        location = locate(path, self._conf)
        if location.scheme != "file":
            raise StorageError(f"{path} is not on the local file system", path=path)
        return location.path

    def _status(self, path: str, found: os.stat_result, is_symlink: bool) -> FileStatus:
        is_dir = stat.S_ISDIR(found.st_mode)
        return FileStatus(
            path="file://" + path,
            length=0 if is_dir else found.st_size,
            is_dir=is_dir,
            mtime_ms=found.st_mtime_ns // 1_000_000,
            block_size=0 if is_dir else self._block_bytes,
            owner=_user_name(found.st_uid),
            group=_group_name(found.st_gid),
            mode=stat.S_IMODE(found.st_mode),
            is_symlink=is_symlink,
        )

    @_looks
    def list(self, path: str) -> list[FileStatus]:
        path = self._path(path)
        own = self.status(path)
        if not own.is_dir:
            return [own]
        found = []
        with _translated(path), os.scandir(path) as entries:
            for entry in sorted(entries, key=lambda item: item.name):
                try:
                    found.append(self._status(entry.path, entry.stat(), entry.is_symlink()))
                except OSError as error:
                    if error.errno not in (errno.ENOENT, errno.ELOOP):
                        raise
                    continue  # deleted since, or a link to nothing or to itself
        return found


class LocalPositioned:
    def __init__(self, path: str) -> None:
        """Raises OSError."""
        self._path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.length = os.fstat(self._descriptor).st_size

    def read_at(self, offset: int, length: int) -> bytes:
        return b"".join(self.stream_at(offset, length))

    def stream_at(self, offset: int, length: int) -> Iterator[bytes]:
        check_range(self._path, offset, length, self.length)
        while length:
            with _translated(self._path):
                piece = os.pread(self._descriptor, min(length, CHUNK_BYTES), offset)
            if not piece:
                raise StorageError(f"{self._path} ends at byte {offset}", path=self._path)
            _statistics.bytes_read += len(piece)
            offset, length = offset + len(piece), length - len(piece)
            yield piece

    def close(self) -> None:
        os.close(self._descriptor)


class LocalWriter:
    """Writes to a hidden name in the same folder; `close` gives the file its own."""

    def __init__(self, path: str, overwrite: bool) -> None:
        self.path = path
        self._overwrite = overwrite
        folder, name = os.path.split(path)
        # the name is cut so that prefix and suffix still fit a folder entry (255 bytes)
        self._hidden = os.path.join(folder, f".{name[:40]}.{uuid.uuid4().hex}.tmp")
        with _translated(path):
            self._file = open(self._hidden, "xb", buffering=0)  # noqa: SIM115 (closed by close or abort)
        self._is_open = True

    def write(self, data: bytes | bytearray, /) -> None:
        _statistics.bytes_written += len(data)
        with _translated(self.path):
            written = self._file.write(data)
            if written != len(data):
                view = memoryview(data)
                while written < len(data):
                    written += self._file.write(view[written:])

    def close(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        self._file.close()
        try:
            with _translated(self.path):
                if self._overwrite:
                    os.replace(self._hidden, self.path)
                else:
                    _link(self._hidden, self.path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._hidden)

    def abort(self) -> None:
        if self._is_open:
            self._is_open = False
            self._file.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._hidden)


def _remove_tree(path: str) -> None:
    """FileNotFoundError when it is gone already, and not when somebody else takes parts of it at the same time."""
    while True:
        try:
            return shutil.rmtree(path)
        except FileNotFoundError:
            if not os.path.lexists(path):
                raise


def _link(src: str, dst: str) -> None:
    """A second name, which unlike a rename never takes the place of another file."""
    try:
        os.link(src, dst, follow_symlinks=False)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV):
            raise
        if os.path.lexists(dst):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
        # file systems without hard links: the check and the copy or rename are two steps
        shutil.copy2(src, dst, follow_symlinks=False)


@lru_cache(maxsize=256)
def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


@lru_cache(maxsize=256)
def _group_name(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
