"""What a failed container leaves to read: the ends of its error files, in the words that Hadoop's clients show."""

import errno
import os
from pathlib import Path
from typing import Final

#: what to do about a full disk, behind the name of something on it
NO_ROOM: Final = "free space there or name other folders in yarn.nodemanager.local-dirs and log-dirs"
_PRELAUNCH: Final = "prelaunch.err"


def failure_text(code: int, log_dir: Path, tail_bytes: int) -> str:
    """Returns the exit code and the last bytes of prelaunch.err and of the newest stderr file. Blocking.

    A stderr file is one with stderr in its name.
    """
    lines = [f"Exit code: {code}", f"Container exited with a non-zero exit code {code}. Error file: {_PRELAUNCH}."]
    for path in (log_dir / _PRELAUNCH, _stderr_file(log_dir)):
        text = tail(path, tail_bytes) if path is not None else ""
        if path is not None and text:
            lines += [f"Last {tail_bytes} bytes of {path.name} :", text]
    return "\n".join(lines) + "\n"


def tail(path: Path, count: int) -> str:
    """Reads the last bytes of a regular file as text; empty when it cannot be read. Blocking."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            size = os.fstat(descriptor).st_size
            file.seek(max(0, size - count))
            return file.read(count).decode("utf-8", "replace").rstrip("\n")
    except OSError:
        return ""


def _stderr_file(log_dir: Path) -> Path | None:
    try:
        found = [
            entry for entry in os.scandir(log_dir) if "stderr" in entry.name and entry.is_file(follow_symlinks=False)
        ]
    except OSError:
        return None
    return Path(max(found, key=lambda entry: (entry.stat().st_mtime_ns, entry.name)).path) if found else None


def is_disk_full(error: BaseException) -> bool:
    """Tells whether a disk, or somebody's share of it, has no room left."""
    found = (error, error.__cause__)
    return any(isinstance(one, OSError) and one.errno in (errno.ENOSPC, errno.EDQUOT) for one in found)


def with_advice(error: Exception) -> str:
    """Returns the error's text, and for a full disk what to do about it."""
    if is_disk_full(error):
        return f"{error}; {NO_ROOM}"
    return str(error)
