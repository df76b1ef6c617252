"""HDFS through hdfs-native, a client in Rust that needs no JVM.

What was learned of it: reading is fast only as a stream, which must not be asked for bytes beyond the end of the file
(it panics); it wants `bytes`, not memoryviews; a client used after `fork` hangs, so clients are kept by process id
(`get_filesystem`); errors of the NameNode come as RuntimeError with the Java class in the text. Block locations, which
it does not give, come through our own RPC client.

Like local ones, files are written under a hidden name and renamed when closed.
"""

import contextlib
import logging
import os
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

from yaqd.config import Configuration
from yaqd.proto import hdfs_pb2
from yaqd.storage.errors import (
    NotAFile,
    PathDenied,
    PathExists,
    PathNotFound,
    StorageError,
    StorageFull,
    StorageNotReady,
    StorageUnavailable,
)
from yaqd.storage.filesystem import CHUNK_BYTES, BlockLocation, ByteWriter, FileStatus
from yaqd.storage.hdfs.namenode import NamenodeAsker
from yaqd.storage.hdfs.watched import WatchedFile
from yaqd.storage.hdfs.web import WebHdfs, WebHdfsRefused, web_addresses
from yaqd.storage.hdfs.write import SurvivingFile, WebRescue
from yaqd.storage.paths import hadoop_user, locate, parent_of
from yaqd.storage.statistics import counted, statistics_of
from yaqd.storage.streams import ChunkReader, RenamingWriter, check_range

Answer = TypeVar("Answer")
_log: Final = logging.getLogger(__name__)
_FIRST_PAUSE_S: Final = 0.25
_LONGEST_PAUSE_S: Final = 4.0
_statistics: Final = statistics_of("hdfs")
_looks: Final = counted(_statistics, "read_ops")
_changes: Final = counted(_statistics, "write_ops")
#: process id and the user that HDFS takes it for
_taken_for: tuple[int, str] | None = None
_RPC_ERROR: Final = re.compile(r'RPCError\("(?P<java>[\w.$]+)", "(?P<text>.*)"\)\s*\Z', re.DOTALL)
#: a DataNode has not yet told of a block that it has: at the next block the library does not wait for that
_NOT_REPLICATED_YET: Final = "NotReplicatedYetException"
_BY_JAVA_CLASS: Final[dict[str, type[StorageError]]] = {
    "AccessControlException": PathDenied,
    "ParentNotDirectoryException": NotAFile,
    "PathIsNotDirectoryException": NotAFile,
    "FileNotFoundException": PathNotFound,
    "FileAlreadyExistsException": PathExists,
    "NSQuotaExceededException": StorageFull,
    "DSQuotaExceededException": StorageFull,
    "QuotaExceededException": StorageFull,
    _NOT_REPLICATED_YET: StorageUnavailable,
    "SafeModeException": StorageNotReady,
    "StandbyException": StorageUnavailable,
    "RetriableException": StorageNotReady,
}


def _is_namenodes(error: BaseException) -> bool:
    """It is the NameNode's word on the file, and no trouble with a DataNode."""
    if isinstance(error, WebHdfsRefused):
        kind = _BY_JAVA_CLASS.get(error.java_class.rpartition(".")[2], StorageUnavailable)
        return not issubclass(kind, StorageUnavailable)
    match = _RPC_ERROR.search(str(error))
    if match is not None:
        return not match["java"].endswith(_NOT_REPLICATED_YET)
    return isinstance(error, (FileNotFoundError, FileExistsError))


def _first_line(text: str) -> str:
    """What Java says, without its stack trace."""
    line = re.split(r"\\n|\n", text, maxsplit=1)[0].replace('\\"', '"').replace("\\'", "'")
    return line[:500]


def translate(error: BaseException, path: str) -> StorageError:
    """Return the StorageError that stands for an error of the library."""
    text = str(error)
    if isinstance(error, FileNotFoundError):
        if "is not a file" in text:
            return NotAFile(f"{path} is a folder, not a file", path=path)
        return PathNotFound(f"{path} does not exist", path=path)
    if isinstance(error, FileExistsError):
        if "already exists as a directory" in text:
            return NotAFile(f"{path} is a folder, not a file", path=path)
        return PathExists(f"{path} exists already", path=path)
    if isinstance(error, WebHdfsRefused):
        kind = _BY_JAVA_CLASS.get(error.java_class.rpartition(".")[2], StorageError)
        return kind(f"{path}: {_first_line(error.text)}", path=path)
    match = _RPC_ERROR.search(text)
    if match is not None:
        kind = _BY_JAVA_CLASS.get(match["java"].rpartition(".")[2], StorageError)
        return kind(f"{path}: {_first_line(match['text'])}", path=path)
    if isinstance(error, OSError):
        return StorageUnavailable(f"{path}: HDFS does not answer: {_first_line(text)}", path=path)
    return StorageError(f"{path}: {_first_line(text)}", path=path)


@contextlib.contextmanager
def _translated(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, RuntimeError, ValueError) as error:
        raise translate(error, path) from None


class HdfsFileSystem:
    scheme = "hdfs"

    def __init__(self, authority: str, conf: Configuration, user: str) -> None:
        self.uri = f"hdfs://{authority}"
        self._conf = conf
        self._client, self._options = _connect(authority, conf, user)
        self._namenode = NamenodeAsker(authority, conf, user)
        self._user = user
        self._web_addresses = web_addresses(authority, conf)
        self._patience_s = conf.get_duration_ms("yaq.storage.hdfs.safe-mode-wait", 60_000, minimum=0) / 1000
        self._stalled_s = conf.get_duration_ms("yaq.storage.hdfs.write-timeout", 30_000, minimum=1) / 1000
        self._kept_bytes_max = conf.get_size_bytes("yaq.storage.hdfs.kept-memory", 16 << 20, minimum=0)
        self._write_settings: dict[str, Any] = {
            "block_size": conf.get_size_bytes("dfs.blocksize", 128 << 20, minimum=1),
            "replication": conf.get_int("dfs.replication", 3, minimum=1),
        }

    @_looks
    def open(self, path: str) -> ChunkReader:
        path = self._path(path)
        self._ask(path, lambda: self._client.read(path))  # a missing file is an error now, not at the first read
        return ChunkReader(self.open_range(path, 0))

    @_looks
    def open_range(self, path: str, start: int, length: int | None = None) -> Iterator[bytes]:
        path = self._path(path)
        file = self._ask(path, lambda: self._client.read(path))
        with _translated(self.uri + path):
            available = max(0, len(file) - start)
            wanted = available if length is None else min(length, available)
            if wanted == 0:
                return
            # packets of 64 KB come one by one; larger pieces cost less per byte above
            parts: list[bytes] = []
            size = 0
            for packet in file.read_range_stream(start, wanted):
                parts.append(packet)
                size += len(packet)
                _statistics.bytes_read += len(packet)
                if size >= CHUNK_BYTES - (64 << 10):
                    yield b"".join(parts)
                    parts, size = [], 0
            if parts:
                yield b"".join(parts)

    @_looks
    def open_at(self, path: str) -> "HdfsPositioned":
        path = self._path(path)
        return HdfsPositioned(self.uri + path, self._ask(path, lambda: self._client.read(path)))

    @_changes
    def create(
        self, path: str, *, overwrite: bool = False, make_parents: bool = True, replication: int = 0
    ) -> ByteWriter:
        path = self._path(path)
        settings = self._write_settings | ({"replication": replication} if replication else {})
        options = self._options(create_parent=make_parents, overwrite=False, **settings)

        def open_file(hidden: str) -> SurvivingFile:
            # not the library's own wrapper, whose end closes the file, which a failed one waits for
            file = self._ask(hidden, lambda: self._client.inner.create(hidden, options))
            return SurvivingFile(
                WatchedFile(file, self._stalled_s), self._rescue(hidden, settings), _is_namenodes, self._kept_bytes_max
            )

        return RenamingWriter(self, path, open_file, _translated, overwrite=overwrite)

    def _rescue(self, path: str, settings: Mapping[str, Any]) -> WebRescue:
        options = {
            "blocksize": settings["block_size"],
            "replication": settings["replication"],
            "permission": "644",
        }
        return WebRescue(WebHdfs(self._web_addresses, self._user, self._stalled_s), self._namenode, path, options)

    @_changes
    def mkdirs(self, path: str, mode: int = 0o755, *, make_parents: bool = True) -> None:
        path = self._path(path)
        self._ask(path, lambda: self._client.mkdirs(path, mode, make_parents))

    @_changes
    def rename(self, src: str, dst: str, *, overwrite: bool = False) -> None:
        src, dst = self._path(src), self._path(dst)

        def rename() -> None:
            try:
                self._client.rename(src, dst, overwrite)
            except FileNotFoundError as error:
                about = parent_of(dst) if "destination parent" in str(error) else src
                raise PathNotFound(f"{self.uri}{about} does not exist", path=about) from None

        self._ask(dst, rename)

    @_changes
    def delete(self, path: str, recursive: bool = False) -> bool:
        path = self._path(path)
        if path == "/":
            raise StorageError("the root folder is not deleted", path=path)
        return bool(self._ask(path, lambda: self._client.delete(path, recursive)))

    @_changes
    def set_mode(self, path: str, mode: int) -> None:
        path = self._path(path)
        self._ask(path, lambda: self._client.set_permission(path, mode))

    @_changes
    def set_group(self, path: str, group: str) -> None:
        path = self._path(path)
        self._ask(path, lambda: self._client.set_owner(path, None, group))

    def check_may_create_in(self, folder: str) -> None:
        path = self._path(folder)
        self._ask(path, lambda: self._namenode.check_access(path, hdfs_pb2.WRITE_EXECUTE))

    def exists(self, path: str) -> bool:
        try:
            self.status(path)
        except PathNotFound:
            return False
        return True

    @_looks
    def status(self, path: str) -> FileStatus:
        path = self._path(path)
        return self._status(self._ask(path, lambda: self._client.get_file_info(path)), path)

    @_looks
    def block_locations(self, path: str, start: int, length: int) -> list[BlockLocation]:
        path = self._path(path)
        return self._ask(path, lambda: self._namenode.find(path, start, length))

    @_looks
    def list(self, path: str) -> list[FileStatus]:
        path = self._path(path)
        found = self._ask(path, lambda: list(self._client.list_status(path, False)))
        return sorted((self._status(status, status.path) for status in found), key=lambda status: status.path)

    def _ask(self, path: str, call: Callable[[], Answer]) -> Answer:
        """What `call` returns, its errors translated. A NameNode that has just started is waited for, within bounds."""
        deadline = time.monotonic() + self._patience_s
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                with _translated(self.uri + path):
                    return call()
            except StorageNotReady as error:
                if time.monotonic() + pause_s > deadline:
                    raise
                _log.warning("waiting for HDFS: %s", error)
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    def _path(self, path: str) -> str:
        if path.startswith("/"):
            return path.rstrip("/") or "/"
        location = locate(path, self._conf)
        if location.root != self.uri:
            raise StorageError(f"{path} is not on {self.uri}", path=path)
        return location.path

    def _status(self, found: Any, path: str) -> FileStatus:
        return FileStatus(
            path=self.uri + path,
            length=0 if found.isdir else found.length,
            is_dir=found.isdir,
            mtime_ms=found.modification_time,
            block_size=found.blocksize or 0,
            owner=found.owner,
            group=found.group,
            mode=found.permission,
        )


class HdfsPositioned:
    """Where a file's blocks lie is asked once, when it is opened."""

    #: up to so many bytes come as one answer, more as a stream: that is faster, and takes less memory
    _AT_ONCE: Final = 1 << 20

    def __init__(self, path: str, file: Any) -> None:
        self._path = path
        self._file = file
        self.length = len(file)

    def read_at(self, offset: int, length: int) -> bytes:
        check_range(self._path, offset, length, self.length)
        if length > self._AT_ONCE:
            return b"".join(self.stream_at(offset, length))
        if not length:
            return b""
        with _translated(self._path):
            data: bytes = self._file.read_range(offset, length)
        return self._counted(data, length)

    def stream_at(self, offset: int, length: int) -> Iterator[bytes]:
        check_range(self._path, offset, length, self.length)
        if not length:
            return
        with _translated(self._path):
            for packet in self._file.read_range_stream(offset, length):
                length -= len(packet)
                _statistics.bytes_read += len(packet)
                yield packet
        if length:
            raise StorageUnavailable(f"{self._path}: HDFS gave {length} bytes less than there are", path=self._path)

    def close(self) -> None:
        self._file = None

    def _counted(self, data: bytes, length: int) -> bytes:
        if len(data) != length:
            raise StorageUnavailable(f"{self._path}: HDFS gave {len(data)} of {length} bytes", path=self._path)
        _statistics.bytes_read += length
        return data


def _connect(authority: str, conf: Configuration, user: str) -> tuple[Any, Any]:
    """A client, and the class of its write options. StorageUnavailable where nobody listens at the address."""
    try:
        from hdfs_native import Client, WriteOptions
    except ImportError as error:
        raise StorageUnavailable(f"hdfs-native does not load ({error}): pip install hdfs-native") from None
    _be_taken_for(user)
    settings = {key: value for key, value in conf.items() if key.startswith(("dfs.", "fs.", "hadoop."))}
    _check_listens(authority, conf)
    try:
        return Client(f"hdfs://{authority}", settings), WriteOptions
    except (OSError, RuntimeError, ValueError) as error:
        raise StorageUnavailable(f"hdfs://{authority} is no address of a NameNode: {_first_line(str(error))}") from None


def _be_taken_for(user: str) -> None:
    """All of a process is one user: the library asks the environment at each connect. StorageError for another one."""
    global _taken_for
    process = os.getpid()
    if _taken_for is not None and _taken_for[0] == process and _taken_for[1] != user:
        raise StorageError(f"this process is {_taken_for[1]} to HDFS; hdfs-native needs another process to be {user}")
    if user != hadoop_user():
        os.environ["HADOOP_USER_NAME"] = user
    _taken_for = (process, user)


def _check_listens(authority: str, conf: Configuration) -> None:
    """Connection attempts with a deadline of ours: the library's own retries last for minutes.

    A name service (no port) is left to the library, which knows its NameNodes.
    """
    host, colon, port = authority.rpartition(":")
    if not colon:
        host, port = authority, ""
    if not port and conf.get(f"dfs.ha.namenodes.{authority}"):
        return
    if not (port or "8020").isdigit():
        raise StorageUnavailable(f"hdfs://{authority} is no address of a NameNode: use hdfs://HOST:PORT")
    timeout_s = conf.get_duration_ms("ipc.client.connect.timeout", 20_000, minimum=1) / 1000
    deadline = time.monotonic() + conf.get_duration_ms("yaq.storage.hdfs.connect-wait", 0, minimum=0) / 1000
    pause_s = _FIRST_PAUSE_S
    while True:
        try:
            socket.create_connection((host, int(port or 8020)), timeout_s).close()
            return
        except OSError as error:
            problem = f"no NameNode answers at hdfs://{authority} ({error.strerror or error})"
            if time.monotonic() + pause_s > deadline:
                raise StorageUnavailable(f"{problem}: start it, or check fs.defaultFS") from None
        _log.warning("waiting for HDFS: %s", problem)
        time.sleep(pause_s)
        pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
