"""The file system that a path lives on, opened when it is first asked for."""

import os
import threading
from collections.abc import Callable
from typing import Final

from yaqd.config import Configuration
from yaqd.storage.errors import StorageError
from yaqd.storage.filesystem import FileSystem
from yaqd.storage.paths import hadoop_user, locate

_Opener = Callable[[str, Configuration, str], FileSystem]
_lock = threading.Lock()
#: by process, so that a child never uses a client that its parent opened: it would hang
_open_systems: dict[tuple[int, str, str, str], FileSystem] = {}

IMPLEMENTATIONS: Final = ("hdfs-native", "hdfs3", "pyarrow")


def get_filesystem(path: str, conf: Configuration, *, user: str | None = None) -> FileSystem:
    """Return the file system that a path or URI lives on; one object per process, file system and user."""
    location = locate(path, conf)
    if location.scheme == "file":
        from yaqd.storage.local import LocalFileSystem

        return LocalFileSystem(conf)
    if location.scheme != "hdfs":
        raise StorageError(f"no file system for {location.scheme}:// in {path!r}: use file:// or hdfs://", path=path)
    implementation = conf.get_choice("yaq.storage.hdfs.implementation", IMPLEMENTATIONS, IMPLEMENTATIONS[0])
    key = (os.getpid(), location.root, user or hadoop_user(), implementation)
    with _lock:
        found = _open_systems.get(key)
        if found is None:
            found = _open_systems[key] = _opener(implementation)(location.authority, conf, key[2])
    return found


def _opener(implementation: str) -> _Opener:
    if implementation == "hdfs-native":
        from yaqd.storage.hdfs.client import HdfsFileSystem

        return HdfsFileSystem
    from yaqd.storage.hdfs.optional import open_hdfs3, open_pyarrow

    return open_hdfs3 if implementation == "hdfs3" else open_pyarrow
