"""Open files that the shuffle service reads from, kept at hand in a bounded number.

Each reducer asks for a part of every file, so descriptors are worth keeping. Files are opened and released by any of
the service's threads; what was used longest ago is forgotten first.
"""

import errno
import os
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path

OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class OutputMissing(Exception):
    """The map output is not on this node or cannot be read; the text is for the client and the log."""


class OutputLost(OutputMissing):
    """An output was here, whole, and is here no more."""


class OutputRefused(OutputMissing):
    """An output is refused though it is not known to be lost. The client is not told so: a map would run again."""


class OutputUnreadable(OutputRefused):
    """An output may well be here: it could not be opened for what may pass."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(f"{path}: {error.strerror}")
        #: nothing else can be opened now either
        self.is_of_all = error.errno in _OF_ALL


#: a link, a folder or a file stands where another should
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP)
_OF_ALL = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


def missing(path: Path, error: OSError) -> OutputMissing:
    """Returns why a file could not be opened or read."""
    if error.errno in _NOT_THERE:
        return OutputMissing(f"{path}: {error.strerror}")
    return OutputUnreadable(path, error)


@dataclass(slots=True)
class FileCounts:
    """What finding segments costs beside reading them. From any thread."""

    #: files, indexes included
    opens: int = 0
    #: indexes of map outputs and of merged files that were read, and their bytes
    index_reads: int = 0
    index_bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def opened(self) -> None:
        with self._lock:
            self.opens += 1

    def index_read(self, size: int) -> None:
        """Notes that an index was opened and read."""
        with self._lock:
            self.opens += 1
            self.index_reads += 1
            self.index_bytes += size


class OpenFile:
    """An open file. Closed when it is out of the cache and its last user is done."""

    __slots__ = ("_lock", "_users", "descriptor", "is_cached")

    def __init__(self, descriptor: int, lock: threading.Lock) -> None:
        """`lock`: of the cache, held by whoever calls `use` and `forget`."""
        self._lock = lock
        self._users = 0
        self.descriptor = descriptor
        self.is_cached = True

    def use(self) -> "OpenFile":
        self._users += 1
        return self

    def release(self) -> None:
        with self._lock:
            self._users -= 1
            self._close_if_unused()

    def forget(self) -> None:
        self.is_cached = False
        self._close_if_unused()

    def _close_if_unused(self) -> None:
        if not self.is_cached and self._users == 0:
            os.close(self.descriptor)


class OpenFiles:
    """From any thread."""

    def __init__(self, files_max: int) -> None:
        self.counts = FileCounts()
        self._files_max = files_max
        self._files: OrderedDict[Path, OpenFile] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, path: Path) -> OpenFile:
        """Opens a file, to be released. Blocking. Raises OutputMissing."""
        with self._lock:
            file = self._files.get(path)
            if file is not None:
                self._files.move_to_end(path)
                return file.use()
        try:
            descriptor = os.open(path, OPEN_FLAGS)  # a slow disk must not hold up other threads
        except OSError as error:
            raise missing(path, error) from None
        self.counts.opened()
        with self._lock:
            other = self._files.pop(path, None)
            if other is not None:
                other.forget()
            file = self._files[path] = OpenFile(descriptor, self._lock)
            if len(self._files) > self._files_max:
                self._files.popitem(last=False)[1].forget()
            return file.use()

    def forget(self, path: Path) -> None:
        with self._lock:
            file = self._files.pop(path, None)
            if file is not None:
                file.forget()

    def close(self) -> None:
        with self._lock:
            for file in self._files.values():
                file.forget()
            self._files.clear()
