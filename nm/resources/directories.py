"""Where things lie on the node's disks: Hadoop's layout of local and log folders.

Users and applications come from tokens, so they become path components only after a check. A container's folders are
made on every disk and one of each kind is chosen, in turn, as its work folder and its log folder.
"""

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from yaqd.model import ApplicationId, ContainerId

_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@$+ -]{0,254}\Z", re.ASCII)
_FOREIGN_FILES = ("nmPrivate", "usercache", "filecache")


class BadUser(ValueError):
    """A user name that cannot be a folder's name."""


class NoUsableDisk(Exception):
    """Every disk is full, read-only or broken; the text says which and why."""


@dataclass(frozen=True, slots=True)
class ContainerFolders:
    #: the container's current folder
    work_dir: Path
    #: `<LOG_DIR>`
    log_dir: Path
    #: readable by the NodeManager alone: script, tokens, pid file
    private_dir: Path
    #: the container's folder on each disk
    work_dirs: tuple[Path, ...]
    log_dirs: tuple[Path, ...]
    #: the application's folder on each disk: LOCAL_DIRS
    app_dirs: tuple[Path, ...]
    #: LOCAL_USER_DIRS
    user_dirs: tuple[Path, ...]


def checked_user(user: str) -> str:
    """Raises BadUser unless the name is one plain path component."""
    if not _USER.match(user) or ".." in user:
        raise BadUser(f"user name {user[:80]!r} cannot be a folder's name")
    return user


class NodeDirectories:
    """Layout over the disks that are usable now; `set_usable` follows the disks' health."""

    def __init__(self, local_dirs: Sequence[Path], log_dirs: Sequence[Path]) -> None:
        #: all configured ones: where to look for what exists
        self.local_dirs = tuple(local_dirs)
        self.log_dirs = tuple(log_dirs)
        #: where new things may go
        self._usable_local = self.local_dirs
        self._usable_log = self.log_dirs
        self._why_not = ""
        self._turn = 0

    def set_usable(self, local_dirs: Sequence[Path], log_dirs: Sequence[Path], why_not: str) -> None:
        self._usable_local = tuple(local_dirs)
        self._usable_log = tuple(log_dirs)
        self._why_not = why_not

    def usable_local(self) -> tuple[Path, ...]:
        """Raises NoUsableDisk when there is none, for local files or for logs."""
        if not self._usable_local or not self._usable_log:
            raise NoUsableDisk(self._why_not)
        return self._usable_local

    def user_dir(self, root: Path, user: str) -> Path:
        return root / "usercache" / checked_user(user)

    def app_dir(self, root: Path, user: str, application: ApplicationId) -> Path:
        return self.user_dir(root, user) / "appcache" / str(application)

    def app_dirs(self, user: str, application: ApplicationId) -> list[Path]:
        """Lists the application's folders on every disk, usable or not: for finding outputs and for deleting."""
        return [self.app_dir(root, user, application) for root in self.local_dirs]

    def folders(self, user: str, container: ContainerId) -> ContainerFolders:
        """Names the container's folders without making them. Raises NoUsableDisk."""
        application = container.application_id
        local = self.usable_local()
        self._turn += 1
        chosen = local[self._turn % len(local)]
        chosen_log = self._usable_log[self._turn % len(self._usable_log)]
        app_dirs = tuple(self.app_dir(root, user, application) for root in local)
        log_dirs = tuple(root / str(application) / str(container) for root in self._usable_log)
        return ContainerFolders(
            work_dir=self.app_dir(chosen, user, application) / str(container),
            log_dir=chosen_log / str(application) / str(container),
            private_dir=chosen / "nmPrivate" / str(application) / str(container),
            work_dirs=tuple(path / str(container) for path in app_dirs),
            log_dirs=log_dirs,
            app_dirs=app_dirs,
            user_dirs=tuple(self.user_dir(root, user) for root in local),
        )

    def has(self, folders: ContainerFolders) -> bool:
        """Returns whether the disks that hold a container's current folder and logs are still usable."""
        work, logs = folders.work_dir, folders.log_dir
        is_local = any(work.is_relative_to(root) for root in self._usable_local)
        return is_local and any(logs.is_relative_to(root) for root in self._usable_log)

    def make_roots(self) -> None:
        """Makes the configured folders. Raises OSError naming the one that cannot be made."""
        for root in self.local_dirs:
            for name in _FOREIGN_FILES:
                (root / name).mkdir(parents=True, exist_ok=True)
            (root / "nmPrivate").chmod(0o700)
        for root in self.log_dirs:
            root.mkdir(parents=True, exist_ok=True)


def make_container_folders(folders: ContainerFolders) -> None:
    """Makes everything a container may write to before it starts, with Hadoop's modes. Blocking."""
    for user_dir in folders.user_dirs:
        user_dir.mkdir(mode=0o750, parents=True, exist_ok=True)
    for app_dir in folders.app_dirs:
        app_dir.mkdir(mode=0o710, parents=True, exist_ok=True)
    for work_dir in folders.work_dirs:
        work_dir.mkdir(mode=0o710, exist_ok=True)
    (folders.work_dir / "tmp").mkdir(mode=0o700, exist_ok=True)
    for log_dir in folders.log_dirs:
        log_dir.parent.mkdir(mode=0o710, parents=True, exist_ok=True)
        log_dir.mkdir(mode=0o710, exist_ok=True)
    folders.private_dir.mkdir(mode=0o700, parents=True, exist_ok=True)


def delete_tree(path: Path) -> None:
    """Removes a folder whatever the modes of the folders inside. Blocking.

    A missing folder is fine; links are not followed.
    """

    def make_writable(_function: object, name: str, _error: object) -> None:
        parent = Path(name).parent
        try:
            parent.chmod(0o700)
            target = Path(name)
            if target.is_dir() and not target.is_symlink():
                target.chmod(0o700)
                shutil.rmtree(target, ignore_errors=True)
            else:
                target.unlink(missing_ok=True)
        except OSError:
            pass

    if path.is_symlink():
        path.unlink(missing_ok=True)
        return
    shutil.rmtree(path, onerror=make_writable)
