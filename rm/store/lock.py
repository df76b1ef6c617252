"""One ResourceManager per state store: a lock for as long as the process lives.

SQLite's own locks last for a transaction, so two ResourceManagers would share a store unnoticed and run every
application twice. The kernel gives this lock back when its holder ends in whatever way. The file stays: removing it
would let a waiting process lock a file that nobody else can find any more.
"""

import fcntl
import os
from pathlib import Path

_PID_BYTES_MAX = 20


class StoreTaken(Exception):
    """Another process holds the lock; the message says where, and which if it is known."""


class StoreLock:
    """Held from construction to `release`. Raises StoreTaken, OSError."""

    def __init__(self, store: Path) -> None:
        store = store.resolve()  # by whatever name a store is opened, it has one lock
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._descriptor = os.open(store.with_name(f"{store.name}.lock"), flags, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError:
            pid = os.pread(self._descriptor, _PID_BYTES_MAX, 0).strip()
            self.release()
            holder = f" (pid {int(pid)})" if pid.isdigit() else ""
            raise StoreTaken(f"another ResourceManager{holder} runs on {store.name} in {store.parent}") from None
        except OSError:
            self.release()
            raise

    def release(self) -> None:
        """Release the lock, also when it is released already."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
