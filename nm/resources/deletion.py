"""Deleting what containers leave: work folders after a delay, application folders at their end, logs after their
retention.

One thread deletes, so that a large tree never holds up the threads that launch.
"""

import asyncio
import errno
import logging
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from nm.logs.files import remove_log
from nm.resources.directories import ContainerFolders, NodeDirectories, delete_tree
from yaqd.model import ApplicationId, BadIdentifier, ContainerId

log = logging.getLogger(__name__)


class Deletion:
    def __init__(self, directories: NodeDirectories, *, delay_s: float, log_retain_s: float) -> None:
        self._directories = directories
        self._delay_s = delay_s
        self._log_retain_s = log_retain_s
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="deletion")
        self._timers: set[asyncio.TimerHandle] = set()

    def container_ended(self, folders: ContainerFolders) -> None:
        """Deletes a container's work folders and private files after the delay.

        The application's folder with its map outputs stays.
        """
        self._after(self._delay_s, partial(_delete_all, [*folders.work_dirs, folders.private_dir]))

    def application_ended(self, user: str, application: ApplicationId) -> None:
        private = [root / "nmPrivate" / str(application) for root in self._directories.local_dirs]
        self._after(self._delay_s, partial(_delete_all, [*self._directories.app_dirs(user, application), *private]))

    def logs_ended(self, application: ApplicationId) -> None:
        """Deletes the application's logs after their retention: nobody has taken them elsewhere."""
        logs = [root / str(application) for root in self._directories.log_dirs]
        self._after(self._log_retain_s, partial(_delete_all, logs))

    def logs_uploaded(self, containers: Sequence[ContainerId], *, is_all: bool) -> None:
        """Deletes logs that are safe elsewhere, after the delay.

        With `is_all` the application's own folder goes once it is empty.
        """
        roots = self._directories.log_dirs
        folders = [root / str(c.application_id) / str(c) for root in roots for c in containers]
        parents = {folder.parent for folder in folders} if is_all else set()
        self._after(self._delay_s, partial(_delete_logs, folders, sorted(parents)))

    def log_files_uploaded(self, files: Sequence[tuple[ContainerId, str, float]]) -> None:
        """Deletes log files of containers that run on, after the delay.

        `files`: container, name and last change (epoch seconds) of each file that is safe elsewhere.
        """
        if files:
            self._after(self._delay_s, partial(_delete_log_files, self._directories.log_dirs, files))

    def delete(self, path: Path) -> None:
        """Deletes one folder, now."""
        self._submit(partial(_delete_all, [path]))

    def sweep_logs(self, *, but: Collection[ApplicationId] = ()) -> None:
        """Deletes logs of a former life when their retention, counted from their last change, is over."""
        self._thread.submit(self._schedule_old_logs, but)

    def stop(self) -> None:
        """Stops without waiting: what is not deleted yet, the next start deletes."""
        for timer in self._timers:
            timer.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _after(self, delay_s: float, work: Callable[[], None]) -> None:
        if delay_s <= 0:
            self._submit(work)
            return
        timer: asyncio.TimerHandle

        def due() -> None:
            self._timers.discard(timer)
            self._submit(work)

        timer = self._loop.call_later(delay_s, due)
        self._timers.add(timer)

    def _submit(self, work: Callable[[], None]) -> None:
        try:
            self._thread.submit(work)
        except RuntimeError:
            log.debug("nothing is deleted any more, the node has stopped")

    def _schedule_old_logs(self, but: Collection[ApplicationId]) -> None:
        for root in self._directories.log_dirs:
            for path in sorted(root.iterdir()) if root.is_dir() else []:
                try:
                    if ApplicationId.parse(path.name) in but:
                        continue
                    age_s = max(0.0, time.time() - path.stat().st_mtime)
                except (BadIdentifier, OSError):
                    continue  # not ours
                remaining_s = max(0.0, self._log_retain_s - age_s)
                self._loop.call_soon_threadsafe(self._after, remaining_s, partial(_delete_all, [path]))


def _delete_all(paths: list[Path]) -> None:
    for path in paths:
        try:
            delete_tree(path)
        except OSError as error:
            log.warning("cannot delete %s: %s", path, error)


def _delete_log_files(log_dirs: Sequence[Path], files: Sequence[tuple[ContainerId, str, float]]) -> None:
    for container, name, modified in files:
        try:
            remove_log(log_dirs, container, name, modified)
        except OSError as error:
            log.warning("cannot delete %s of %s: %s", name, container, error)


def _delete_logs(folders: list[Path], parents: list[Path]) -> None:
    _delete_all(folders)
    for parent in parents:
        try:
            parent.rmdir()
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTEMPTY):
                log.warning("cannot delete %s: %s", parent, error)
