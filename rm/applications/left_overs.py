"""Has removed what jobs left behind, and histories that are older than `mapreduce.jobhistory.max-age-ms`.

A job's manager cleans up after itself. One that was killed with all its attempts cannot, and whoever submitted with
--no-wait is gone: then nobody but the ResourceManager knows that the job is over. Stock leaves such folders behind, and
its JobHistoryServer deletes histories; a cluster of ours needs none. The work is done by a process that knows our
jobs' files.
"""

import asyncio
import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rm.applications.records import Application
from rm.cluster import Cluster
from rm.logs.sweeper import run_sweeper
from yaqd.config import Configuration
from yaqd.ipc.tasks import TaskSet
from yaqd.model import ApplicationId, YarnApplicationState

log = logging.getLogger(__name__)

_CHILD: Final = (sys.executable, "-m", "tez_adapter.client.sweeping")
#: of our jobs; stock MapReduce says the second too, and its folders are left alone
_TYPES: Final = ("YAQ", "MAPREDUCE", "TRAINING")
#: in one go; more are left for the next
_JOBS_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class LeftOverSettings:
    delay_s: float
    #: None: histories are kept for ever
    max_age_ms: int | None
    interval_s: float

    @classmethod
    def read(cls, conf: Configuration) -> "LeftOverSettings":
        """Raises ConfigError."""
        cleans = conf.get_bool("mapreduce.jobhistory.cleaner.enable", True)
        max_age_ms = conf.get_duration_ms("mapreduce.jobhistory.max-age-ms", minimum=0)
        interval_ms = conf.get_duration_ms("mapreduce.jobhistory.cleaner.interval-ms", minimum=1)
        delay_ms = conf.get_duration_ms("yaq.rm.left-overs.delay-ms", minimum=1)
        return cls(delay_ms / 1000, max_age_ms if cleans else None, interval_ms / 1000)


class LeftOvers:
    def __init__(
        self, conf: Configuration, cluster: Cluster, settings: LeftOverSettings, command: Sequence[str] = _CHILD
    ) -> None:
        """`command` starts the process; tests put others in its place."""
        self._conf = conf
        self._cluster = cluster
        self._settings = settings
        self._command = command
        #: applications that were looked at
        self._done: set[ApplicationId] = set()
        self._histories_at: float | None = None
        self._tasks = TaskSet()

    def start(self) -> None:
        self._tasks.start(self._run())

    async def stop(self) -> None:
        """Ends a sweep under way too."""
        await self._tasks.end()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._settings.delay_s)
            try:
                await self.look()
            except OSError as error:
                log.warning("what jobs left behind stays: %s", error)
            except Exception:
                log.exception("what jobs left behind stays")

    async def look(self) -> None:
        """Sweep, where there may be something: a process for each end of a job would cost more than the job."""
        over = self._over()
        now = self._cluster.clock.now()
        histories = self._settings.max_age_ms is not None and (
            self._histories_at is None or now - self._histories_at >= self._settings.interval_s
        )
        if not histories and not any(map(_died, over)):
            return
        if histories:
            self._histories_at = now
        jobs: dict[str, dict[str, str]] = {}
        for app in over:
            jobs.setdefault(app.user, {})[str(app.id).replace("application_", "job_", 1)] = app.job_file
        self._done.update(app.id for app in over)
        self._done &= self._cluster.applications.keys()
        cutoff_ms = self._cluster.clock.wall_ms() - (self._settings.max_age_ms or 0) if histories else None
        request = {"conf": dict(self._conf.items()), "jobs": jobs, "cutoff_ms": cutoff_ms}
        swept = await run_sweeper(self._command, request, "what jobs left behind stays")
        if swept is None:
            return
        if swept.get("jobs") or swept.get("histories"):
            log.info("left behind: %s jobs' files and %s old histories removed", swept["jobs"], swept["histories"])
        for problem in swept.get("problems", ()):
            log.warning("left behind: %s", problem)

    def _over(self) -> list[Application]:
        """Applications that are over so long that no process of theirs lives, and that were not looked at."""
        before_ms = self._cluster.clock.wall_ms() - 1000 * self._settings.delay_s
        found = [
            app
            for app in self._cluster.applications.values()
            if app.is_over
            and app.id not in self._done
            and app.type in _TYPES
            and app.conclusion is not None
            and app.conclusion.finished_ms <= before_ms
        ]
        return found[:_JOBS_MAX]


def _died(app: Application) -> bool:
    """Its master did not say how it ended, so it did not clean up."""
    return app.conclusion is not None and app.conclusion.state is not YarnApplicationState.FINISHED
