"""HDFS through libraries that need more than Python: pyarrow with a JVM and libhdfs, and hdfs3 with libhdfs3.

`yaq.storage.hdfs.implementation` chooses one of them; where it cannot load, one line says why and what to use instead.
"""

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any, Final

from yaqd.config import Configuration
from yaqd.proto import hdfs_pb2
from yaqd.storage.errors import PathExists, PathNotFound, StorageError, StorageUnavailable
from yaqd.storage.filesystem import CHUNK_BYTES, BlockLocation, ByteWriter, FileStatus, FileSystem
from yaqd.storage.hdfs.namenode import NamenodeAsker, namenode_addresses
from yaqd.storage.paths import locate, parent_of
from yaqd.storage.statistics import counted, statistics_of
from yaqd.storage.streams import ChunkReader, RenamingWriter, check_range

_statistics: Final = statistics_of("hdfs")
_looks: Final = counted(_statistics, "read_ops")
_changes: Final = counted(_statistics, "write_ops")
_REMEDY: Final = "or set yaq.storage.hdfs.implementation=hdfs-native"


def open_pyarrow(authority: str, conf: Configuration, user: str) -> FileSystem:
    """Return pyarrow's HadoopFileSystem."""
    try:
        from pyarrow import fs

        host, port = namenode_addresses(authority, conf)[0]
        client = fs.HadoopFileSystem(host, port, user=user)
    except (ImportError, OSError) as error:
        reason = str(error).splitlines()[0][:200]
        raise StorageUnavailable(
            f"pyarrow cannot reach HDFS ({reason}): it needs JAVA_HOME, libhdfs (ARROW_LIBHDFS_DIR) and Hadoop's jars "
            f"in CLASSPATH; set them, {_REMEDY}"
        ) from None
    return ArrowFileSystem(client, authority, conf, user)


def open_hdfs3(authority: str, conf: Configuration, user: str) -> FileSystem:
    """Refuse hdfs3: its last release imports on no Python that runs this program; the message says what to do."""
    try:
        importlib.import_module("hdfs3")
        reason = "its last release was made for other Python versions"
    except (ImportError, AttributeError, OSError) as error:
        reason = str(error).splitlines()[0][:200]
    raise StorageUnavailable(
        f"hdfs3 cannot serve hdfs://{authority} ({reason}): it needs Python before 3.10 and libhdfs3: "
        f"set JAVA_HOME and use pyarrow, {_REMEDY}"
    )


class ArrowFileSystem:
    """A pyarrow file system behind our face."""

    scheme = "hdfs"

    def __init__(self, client: Any, authority: str, conf: Configuration, user: str) -> None:
        self.uri = f"hdfs://{authority}"
        self._client = client
        self._conf = conf
        self._namenode = NamenodeAsker(authority, conf, user)
        self._block_bytes = conf.get_size_bytes("dfs.blocksize", 128 << 20, minimum=1)

    @_looks
    def open(self, path: str) -> ChunkReader:
        self._file_info(path)
        return ChunkReader(self.open_range(path, 0))

    @_looks
    def open_range(self, path: str, start: int, length: int | None = None) -> Iterator[bytes]:
        path = self._path(path)
        with _translated(self.uri + path), self._client.open_input_file(path) as file:
            remaining = max(0, file.size() - start)
            if length is not None:
                remaining = min(remaining, length)
            file.seek(start)
            while remaining > 0:
                chunk = file.read(min(CHUNK_BYTES, remaining))
                if not chunk:
                    return
                remaining -= len(chunk)
                _statistics.bytes_read += len(chunk)
                yield chunk

    @_looks
    def open_at(self, path: str) -> "ArrowPositioned":
        self._file_info(path)
        path = self._path(path)
        with _translated(self.uri + path):
            return ArrowPositioned(self.uri + path, self._client.open_input_file(path))

    @_changes
    def create(
        self, path: str, *, overwrite: bool = False, make_parents: bool = True, replication: int = 0
    ) -> ByteWriter:
        """Create a file. The library cannot set how many copies there are: it is as configured."""
        path = self._path(path)
        if make_parents:
            with _translated(self.uri + path):
                self._client.create_dir(parent_of(path), recursive=True)
        elif not self.exists(parent_of(path)):  # the library makes folders by itself: the check comes before
            raise PathNotFound(f"{self.uri}{parent_of(path)} does not exist", path=path)
        return RenamingWriter(self, path, self._client.open_output_stream, _translated, overwrite=overwrite)

    @_changes
    def mkdirs(self, path: str, mode: int = 0o755, *, make_parents: bool = True) -> None:
        """Make a folder. The library cannot set the mode: the file system's umask holds."""
        path = self._path(path)
        if self.exists(path) and not self.status(path).is_dir:
            raise PathExists(f"{self.uri}{path} exists already", path=path)
        if not make_parents and not self.exists(parent_of(path)):  # the library makes them in any case
            raise PathNotFound(f"{self.uri}{parent_of(path)} does not exist", path=parent_of(path))
        with _translated(self.uri + path):
            self._client.create_dir(path, recursive=True)

    @_changes
    def rename(self, src: str, dst: str, *, overwrite: bool = False) -> None:
        src, dst = self._path(src), self._path(dst)
        if self.exists(dst):
            if not overwrite:
                raise PathExists(f"{self.uri}{dst} exists already", path=dst)
            self.delete(dst)
        with _translated(self.uri + src):
            self._client.move(src, dst)

    @_changes
    def delete(self, path: str, recursive: bool = False) -> bool:
        path = self._path(path)
        if path == "/":
            raise StorageError("the root folder is not deleted", path=path)
        try:
            is_dir = self.status(path).is_dir
        except PathNotFound:
            return False
        if is_dir and not recursive and self.list(path):
            raise StorageError(f"{self.uri}{path}: the folder is not empty", path=path)
        with _translated(self.uri + path):
            (self._client.delete_dir if is_dir else self._client.delete_file)(path)
        return True

    @_changes
    def set_mode(self, path: str, mode: int) -> None:
        path = self._path(path)
        raise StorageError(f"{self.uri}{path}: pyarrow cannot set modes: {_REMEDY.removeprefix('or ')}", path=path)

    @_changes
    def set_group(self, path: str, group: str) -> None:
        path = self._path(path)
        raise StorageError(f"{self.uri}{path}: pyarrow cannot set groups: {_REMEDY.removeprefix('or ')}", path=path)

    def check_may_create_in(self, folder: str) -> None:
        self._namenode.check_access(self._path(folder), hdfs_pb2.WRITE_EXECUTE)

    def exists(self, path: str) -> bool:
        try:
            self._file_info(path)
        except PathNotFound:
            return False
        return True

    @_looks
    def status(self, path: str) -> FileStatus:
        return self._status(self._file_info(path))

    @_looks
    def block_locations(self, path: str, start: int, length: int) -> list[BlockLocation]:
        return self._namenode.find(self._path(path), start, length)

    @_looks
    def list(self, path: str) -> list[FileStatus]:
        from pyarrow import fs

        found = self.status(path)
        if not found.is_dir:
            return [found]
        path = self._path(path)
        with _translated(self.uri + path):
            infos = self._client.get_file_info(fs.FileSelector(path))
        return sorted((self._status(info) for info in infos), key=lambda status: status.path)

    def _path(self, path: str) -> str:
        if path.startswith("/"):
            return path.rstrip("/") or "/"
        location = locate(path, self._conf)
        if location.root != self.uri:
            raise StorageError(f"{path} is not on {self.uri}", path=path)
        return location.path

    def _file_info(self, path: str) -> Any:
        path = self._path(path)
        with _translated(self.uri + path):
            info = self._client.get_file_info(path)
        if info.type.name == "NotFound":
            raise PathNotFound(f"{self.uri}{path} does not exist", path=path)
        return info

    def _status(self, info: Any) -> FileStatus:
        """Owner, group and mode are not told by this library."""
        is_dir = info.type.name == "Directory"
        return FileStatus(
            path=f"{self.uri}/{info.path.strip('/')}",
            length=0 if is_dir else info.size,
            is_dir=is_dir,
            mtime_ms=(info.mtime_ns or 0) // 1_000_000,
            block_size=0 if is_dir else self._block_bytes,
            owner="",
            group="",
            mode=0o755 if is_dir else 0o644,
        )


class ArrowPositioned:
    def __init__(self, path: str, file: Any) -> None:
        self._path = path
        self._file = file
        self.length: int = file.size()

    def read_at(self, offset: int, length: int) -> bytes:
        check_range(self._path, offset, length, self.length)
        with _translated(self._path):
            data: bytes = self._file.read_at(length, offset)
        if len(data) != length:
            raise StorageUnavailable(f"{self._path}: HDFS gave {len(data)} of {length} bytes", path=self._path)
        _statistics.bytes_read += length
        return data

    def stream_at(self, offset: int, length: int) -> Iterator[bytes]:
        while length > 0:
            piece = self.read_at(offset, min(length, CHUNK_BYTES))
            offset, length = offset + len(piece), length - len(piece)
            yield piece

    def close(self) -> None:
        with _translated(self._path):
            self._file.close()


@contextlib.contextmanager
def _translated(path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise PathNotFound(f"{path} does not exist", path=path) from None
    except FileExistsError:
        raise PathExists(f"{path} exists already", path=path) from None
    except OSError as error:
        raise StorageError(f"{path}: {str(error).splitlines()[0][:500]}", path=path) from None
