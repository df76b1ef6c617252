"""Containers' log files as the web hands them out: found by checked names, never through a link, streamed in pieces.

A container writes its own log folder, so whatever lies there is a stranger's: only regular files that really are in
the folder are opened, and a name is one path component.
"""

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yaqd.model import ApplicationId, BadIdentifier, ContainerId

#: containers of one application that are listed
LOGGED_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class LogFile:
    name: str
    size_bytes: int
    #: epoch seconds
    modified: float


class OpenLog:
    """One file at the size it had when it was opened; `close` when done."""

    def __init__(self, descriptor: int, size_bytes: int, modified: float) -> None:
        """`modified` in epoch seconds."""
        self._descriptor = descriptor
        self.size_bytes = size_bytes
        self.modified = modified

    def __enter__(self) -> "OpenLog":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, count: int, offset: int) -> bytes:
        """Reads up to `count` bytes from there on. Blocking."""
        return os.pread(self._descriptor, count, offset)

    def close(self) -> None:
        os.close(self._descriptor)


def list_logs(log_dirs: Sequence[Path], container: ContainerId) -> list[LogFile] | None:
    """Lists the container's files over all disks, by name; None when the node has no folder of it. Blocking."""
    files: dict[str, LogFile] = {}
    is_known = False
    for root in log_dirs:
        folder = _folder(root, container)
        try:
            with os.scandir(folder) as entries:
                found = [entry for entry in entries if entry.is_file(follow_symlinks=False)]
        except OSError:
            continue
        is_known = True
        for entry in found:
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # rotated away, or uploaded and deleted, since the folder was read
            files.setdefault(entry.name, LogFile(entry.name, status.st_size, status.st_mtime))
    return [files[name] for name in sorted(files)] if is_known else None


def logged_containers(log_dirs: Sequence[Path], application: ApplicationId) -> list[ContainerId]:
    """Lists the application's containers with a folder here, by id, up to LOGGED_MAX. Blocking."""
    found: set[ContainerId] = set()
    for root in log_dirs:
        with suppress(OSError), os.scandir(root / str(application)) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    with suppress(BadIdentifier):
                        found.add(ContainerId.parse(entry.name))
    return sorted(container for container in found if container.application_id == application)[:LOGGED_MAX]


def open_log(log_dirs: Sequence[Path], container: ContainerId, name: str) -> OpenLog | None:
    """Opens a log; None when there is no such file, or it is not a regular file of this folder. Blocking."""
    if not name or "/" in name or "\0" in name or name in (".", ".."):
        return None
    for root in log_dirs:
        folder = _folder(root, container)
        if not _is_own(root, folder, container):
            continue
        try:
            descriptor = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode):
            return OpenLog(descriptor, status.st_size, status.st_mtime)
        os.close(descriptor)
    return None


def remove_log(log_dirs: Sequence[Path], container: ContainerId, name: str, modified: float) -> None:
    """Deletes a file unless it has changed since; OSError where it cannot be deleted. Blocking."""
    for root in log_dirs:
        folder = _folder(root, container)
        if "/" in name or not _is_own(root, folder, container):
            continue
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            if stat.S_ISREG(status.st_mode) and status.st_mtime == modified:
                os.unlink(name, dir_fd=descriptor)
        except FileNotFoundError:
            continue
        finally:
            os.close(descriptor)


def _is_own(root: Path, folder: Path, container: ContainerId) -> bool:
    """Whether nothing on the way to the container's folder is a link."""
    return os.path.realpath(folder) == f"{os.path.realpath(root)}/{container.application_id}/{container}"


def _folder(root: Path, container: ContainerId) -> Path:
    return root / str(container.application_id) / str(container)
