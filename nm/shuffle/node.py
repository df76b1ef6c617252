"""A node's shuffle as one part of it: the service, the merger's process, and what merges for unmodified jobs."""

import asyncio
import struct
from collections import OrderedDict
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from nm.merger import MergerProcess
from nm.merger.process import MergerUnavailable
from nm.resources.directories import NodeDirectories
from nm.settings import NodeSettings
from nm.shuffle.jobs import ShuffleJob, ShuffleJobs, job_id
from nm.shuffle.merged.merging import OutputMerging
from nm.shuffle.outputs import MapOutputs
from nm.shuffle.server import ShuffleService
from nm.shuffle.settings import MergingSettings
from nm.shuffle.statistics import JobCounts
from riffle_merger.service.protocol import DISK_SERVICE, MERGER_SERVICE
from yaqd.ipc import RemoteException, RpcError
from yaqd.ipc.tasks import TaskSet
from yaqd.model import ApplicationId

_STATUS_TIMEOUT_S = 2.0
#: as many applications as the ResourceManager explains after their end
_ENDED_MAX = 200


@dataclass(frozen=True, slots=True)
class ApplicationShuffle:
    """What the node did with an application's map outputs."""

    user: str
    #: for people and programs that ask
    facts: dict[str, Any]


class NodeShuffle:
    """Binds the service's port at construction; serves between `start` and `stop`. From the node's event loop."""

    def __init__(self, settings: NodeSettings, merging: MergingSettings, directories: NodeDirectories) -> None:
        """Raises OSError when the port cannot be had."""
        self._merging = merging
        self._directories = directories
        self._outputs = MapOutputs(directories, index_cache_bytes=settings.shuffle_index_cache_bytes)
        self._tasks = TaskSet()
        self._outputs_merging: OutputMerging | None = None
        #: of the last applications that are over, what was done with their outputs
        self._ended: OrderedDict[ApplicationId, ApplicationShuffle] = OrderedDict()
        self.jobs = ShuffleJobs()
        self.service = ShuffleService(
            settings.bind_host,
            settings.shuffle_port,
            jobs=self.jobs,
            outputs=self._outputs,
            limits=settings.shuffle_limits,
            merging=merging.limits,
        )
        #: None where nothing is merged
        folder = next(iter(directories.local_dirs), None)
        self.merger = MergerProcess(merging.merger, folder=folder) if merging.merger.is_enabled else None

    def start(self, io: Executor) -> None:
        """Starts the service and the merger. `io`: the threads that look at folders."""
        self.service.start()
        if self.merger is not None:
            self.merger.start()
            self._outputs_merging = merging = OutputMerging(
                self._merging.watch,
                disk=self._merging.disk,
                jobs=self.jobs,
                outputs=self._outputs,
                directories=self._directories,
                service=self.service,
                merger=self.merger,
                io=io,
            )
            self.merger.on_merged = merging.look_soon
            self._tasks.start(merging.run())

    async def stop(self) -> None:
        await self._tasks.end()
        if self.merger is not None:
            await self.merger.stop()
        self.service.stop()

    async def figures(self) -> dict[str, Any]:
        """Returns what was counted since the start, for people and programs that look at the node."""
        statistics, merged = self.service.statistics, self.service.merged
        reads, files = statistics.reads, self._outputs.files.counts
        return {
            "connections": statistics.connections,
            "requests": statistics.requests,
            "refused": statistics.refused,
            "segments": statistics.segments,
            "sentBytes": statistics.sent_bytes,
            "reads": reads.reads,
            "readBytes": reads.read_bytes,
            "mergedReads": reads.merged_reads,
            "mergedSegments": reads.merged_segments,
            "fallbacks": reads.fallbacks,
            "opens": files.opens,
            "indexReads": files.index_reads,
            "indexBytes": files.index_bytes,
            "keptBytes": merged.kept_bytes,
            "mergedMaps": merged.maps,
            "merger": await self._merger_figures(),
        }

    def of_application(self, application: ApplicationId) -> ApplicationShuffle | None:
        """Sums up an application's shuffle.

        None where none of its containers has come here since the node's start, or that is long ago.
        """
        job = self.jobs.get(job_id(application))
        return self._ended.get(application) if job is None else self._summary(job)

    def _summary(self, job: ShuffleJob, *, is_over: bool = False) -> ApplicationShuffle:
        name = job_id(job.application)
        counts = self.service.statistics.of_jobs.get(name) or JobCounts()
        facts: dict[str, Any] = {
            "isOver": is_over,
            "plansMerges": job.plans_merges,
            "hasMerger": self.merger is not None,
            "automatic": self._merging.watch.policy is None,
            "segments": counts.segments,
            "reads": counts.reads.reads,
            "readBytes": counts.reads.read_bytes,
            "mergedReads": counts.reads.merged_reads,
            "mergedSegments": counts.reads.merged_segments,
            "fallbacks": counts.reads.fallbacks,
        }
        if self._outputs_merging is not None:
            facts |= self._outputs_merging.summary(name)
        return ApplicationShuffle(job.user, facts)

    async def _merger_figures(self) -> dict[str, Any] | None:
        """None where nothing merges, or the merger does not answer."""
        if self.merger is None:
            return None
        try:
            async with asyncio.timeout(_STATUS_TIMEOUT_S):
                status = await self.merger.status()
        except (MergerUnavailable, RpcError, RemoteException, TimeoutError):
            return None
        return {
            "queued": status.queued,
            "running": status.running,
            "merges": status.merges,
            "failed": status.failed,
            "reads": status.reads,
            "writes": status.writes,
            "mergedBytes": status.merged_bytes,
            "restarts": self.merger.restarts,
        }

    def merger_metadata(self) -> dict[str, bytes]:
        """Returns what starters of containers are told of the merger: port 0 while it is being started."""
        if self.merger is None:
            return {}
        disk = {DISK_SERVICE: self.merger.disk.pack()} if self.merger.disk is not None else {}
        return {MERGER_SERVICE: struct.pack(">i", self.merger.port or 0)} | disk

    def job_came(self, job: ShuffleJob) -> None:
        """Tells the merger of a job, with its first container and with each that follows."""
        if self.merger is not None:
            folders = self._directories.app_dirs(job.user, job.application)
            self.merger.add_job(job_id(job.application), job.password, folders, job.user)

    def application_ended(self, application: ApplicationId) -> None:
        """Notes that an application's folders are about to be deleted."""
        job = self.jobs.get(job_id(application))
        if job is not None:
            self._ended[application] = self._summary(job, is_over=True)
            if len(self._ended) > _ENDED_MAX:
                self._ended.popitem(last=False)
        if self.merger is not None:
            self.merger.forget_job(job_id(application))
        self.jobs.forget(application)
        self.service.forget_job(job_id(application))
