"""The node's disks as they are now: looked at in intervals, used as far as they are good, told to whoever asks."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial

from nm.heartbeat import NodeHealth
from nm.resources.directories import NodeDirectories
from nm.resources.disk_health import DiskReport, check_disks
from nm.settings import NodeSettings

log = logging.getLogger(__name__)


class DiskWatch:
    def __init__(
        self, settings: NodeSettings, directories: NodeDirectories, threads: Executor, changed: Callable[[], None]
    ) -> None:
        """`changed`: the node has become healthy, or is no more. Before the first `check` nothing is known."""
        self._settings = settings
        self._directories = directories
        self._threads = threads
        self._changed = changed
        self._report: DiskReport

    async def check(self) -> None:
        settings = self._settings
        look = partial(check_disks, settings.local_dirs, settings.log_dirs, max_percent=settings.disk_max_percent)
        self._report = report = await asyncio.get_running_loop().run_in_executor(self._threads, look)
        self._directories.set_usable(report.good_local, report.good_log, self.health().report)

    async def run(self) -> None:
        """Checks the disks in intervals until cancelled."""
        while True:
            await asyncio.sleep(self._settings.disk_check_interval_s)
            before = self.health().is_healthy
            await self.check()
            health = self.health()
            if health.is_healthy != before:
                log.warning("the node is %s: %s", "healthy" if health.is_healthy else "unhealthy", health.report)
                self._changed()

    def health(self) -> NodeHealth:
        return self._report.health(len(self._settings.local_dirs) + len(self._settings.log_dirs))

    def refusal(self) -> str | None:
        """Returns why no container is taken, or None where they are."""
        health = self.health()
        return None if health.is_healthy else f"the node is unhealthy: {health.report}"
