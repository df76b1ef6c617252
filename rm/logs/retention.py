"""Deletes aggregated logs that are older than `yarn.log-aggregation.retain-seconds`.

Hadoop's JobHistoryServer does it (AggregatedLogDeletionService); a cluster of ours needs none, so the ResourceManager
does, by the same rule. An application's folder goes when it and everything in it is old and the application is over; of
one that still runs, only files that are old. The work is done by a process of its own, so that a file system that hangs
is left behind by killing it.
"""

import asyncio
import json
import logging
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rm.cluster import Cluster
from rm.logs.sweeper import run_sweeper
from yaqd.config import Configuration
from yaqd.ipc.tasks import TaskSet
from yaqd.model import ApplicationId, BadIdentifier
from yaqd.storage import FileStatus, FileSystem, PathNotFound, StorageError, get_filesystem
from yaqd.storage.paths import name_of
from yaqd.storage.tfile import RemoteLogs

log = logging.getLogger(__name__)

_CHILD: Final = (sys.executable, "-m", "rm.logs.retention")
_INTERVAL_S_MIN: Final = 1.0
_PROBLEMS_MAX: Final = 20


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    retain_s: int
    interval_s: float

    @classmethod
    def read(cls, conf: Configuration) -> "RetentionSettings | None":
        """Reads the settings; None where logs are kept for ever. Raises ConfigError."""
        retain_s = conf.get_int("yarn.log-aggregation.retain-seconds")
        if retain_s < 0 or not conf.get_bool("yarn.log-aggregation-enable"):
            return None
        interval_s = conf.get_int("yarn.log-aggregation.retain-check-interval-seconds")
        return cls(retain_s, interval_s if interval_s > 0 else max(retain_s / 10, _INTERVAL_S_MIN))


@dataclass(slots=True)
class Swept:
    """What one sweep did."""

    folders: int
    files: int
    problems: list[str]


def sweep(filesystem: FileSystem, remote: RemoteLogs, active: Collection[ApplicationId], cutoff_ms: int) -> Swept:
    """Deletes old logs. Blocking.

    `active` are applications that are not over; `cutoff_ms` is the time of the youngest log to go.
    """
    swept = Swept(0, 0, [])

    def children(folder: str) -> list[FileStatus]:
        try:
            return filesystem.list(folder)
        except PathNotFound:
            return []
        except StorageError as error:
            if len(swept.problems) < _PROBLEMS_MAX:
                swept.problems.append(str(error))
            return []

    for folder, application in _application_folders(remote, children):
        if folder.mtime_ms >= cutoff_ms:
            continue
        files = children(folder.path)
        old = [file for file in files if file.mtime_ms < cutoff_ms]
        try:
            if application not in active and len(old) == len(files):
                swept.folders += filesystem.delete(folder.path, recursive=True)
            elif application in active:
                swept.files += sum(filesystem.delete(file.path, recursive=True) for file in old)
        except StorageError as error:
            swept.problems.append(str(error))
    return swept


def _application_folders(
    remote: RemoteLogs, children: Callable[[str], list[FileStatus]]
) -> Iterator[tuple[FileStatus, ApplicationId]]:
    def folders(place: str) -> list[FileStatus]:
        """Links are not followed: users make them, and this daemon may delete what they may not."""
        return [status for status in children(place) if status.is_dir and not status.is_symlink]

    for user in folders(remote.root):
        for suffix in folders(user.path):
            places: list[FileStatus] = []
            if name_of(suffix.path) == f"bucket-{remote.suffix}":
                places = folders(suffix.path)
            elif name_of(suffix.path) == remote.older_suffix:
                places = [suffix]
            for folder in (folder for place in places for folder in folders(place.path)):
                try:
                    application = ApplicationId.parse(name_of(folder.path))
                except BadIdentifier:
                    continue  # nobody's logs
                if str(application) == name_of(folder.path):
                    yield folder, application


class LogRetention:
    def __init__(
        self,
        conf: Configuration,
        settings: RetentionSettings,
        *,
        active: Callable[[], Collection[ApplicationId]],
        wall_ms: Callable[[], int],
        command: Sequence[str] = _CHILD,
    ) -> None:
        """`active` are the applications that are not over. `command` starts a child; tests put others in its place."""
        self._conf = conf
        self._settings = settings
        self._active = active
        self._wall_ms = wall_ms
        self._command = command
        self._tasks = TaskSet()

    @classmethod
    def of(cls, conf: Configuration, cluster: Cluster) -> "LogRetention | None":
        """Makes the retention; None where logs are kept for ever. Raises ConfigError."""
        settings = RetentionSettings.read(conf)
        if settings is None:
            return None

        def active() -> list[ApplicationId]:
            return [app.id for app in cluster.applications.values() if not app.is_over]

        return cls(conf, settings, active=active, wall_ms=cluster.clock.wall_ms)

    def start(self) -> None:
        self._tasks.start(self._run())

    async def stop(self) -> None:
        """Ends a sweep under way too."""
        await self._tasks.end()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._settings.interval_s)
            try:
                await self.sweep_once()
            except OSError as error:
                log.warning("old logs are not deleted: %s", error)
            except Exception:
                log.exception("old logs are not deleted")

    async def sweep_once(self) -> None:
        request = {
            "conf": dict(self._conf.items()),
            "active": [str(application) for application in self._active()],
            "cutoff_ms": self._wall_ms() - self._settings.retain_s * 1000,
        }
        found = await run_sweeper(self._command, request, "old logs are not deleted")
        if found is not None:
            _tell(found)


def _tell(found: dict[str, Any]) -> None:
    try:
        swept = Swept(**found)
    except TypeError:
        log.warning("old logs are not deleted: the process for it ended without an answer")
        return
    if swept.folders or swept.files:
        log.info("old logs: %d applications deleted, and %d files of running ones", swept.folders, swept.files)
    for problem in swept.problems:
        log.warning("old logs: %s", problem)


def answer(request: dict[str, Any]) -> Swept:
    """Sweeps as the request says, in the child."""
    try:
        conf = Configuration.load(environ={}, overrides=request["conf"])
        remote = RemoteLogs.read(conf)
        active = frozenset(map(ApplicationId.parse, request["active"]))
        return sweep(get_filesystem(remote.root, conf), remote, active, request["cutoff_ms"])
    except StorageError as error:
        return Swept(0, 0, [str(error)])


if __name__ == "__main__":
    done = answer(json.load(sys.stdin))
    print(json.dumps({"folders": done.folders, "files": done.files, "problems": done.problems}))
