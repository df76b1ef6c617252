"""Merges the map outputs of unmodified jobs: looks what has appeared, asks the merger, and has merged files served.

One task of the node's event loop; folders are read by its threads. Whatever goes wrong here, the shuffle service goes
on with the originals.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from nm.resources.directories import NodeDirectories
from nm.shuffle.jobs import ShuffleJob, ShuffleJobs
from nm.shuffle.merged.scan import FolderScan, Found
from nm.shuffle.merged.watch import JobWatch, Merge, WatchSettings
from nm.shuffle.outputs import MapOutputs
from nm.shuffle.server import ShuffleService
from riffle_merger.merger.disk import DiskFacts
from riffle_merger.merger.diskshape import KnownDisk
from riffle_merger.plan.automatic import DiskShape
from riffle_merger.plan.policy import MergePolicy
from yaqd.ipc.tasks import TaskSet
from yaqd.proto import riffle_pb2

log = logging.getLogger(__name__)

#: between two looks at a job's folders
_INTERVAL_S = 0.5
#: one merge; the merger gives up by itself long before
_MERGE_TIMEOUT_S = 600.0


class Merger(Protocol):
    """The merger's process, as this module needs it."""

    @property
    def port(self) -> int | None:
        """None while there is none."""

    @property
    def disk(self) -> DiskFacts | None:
        """What it found of the node's disk when it started; None until then, and where it cannot be tried."""

    async def merge(
        self, job_id: str, merge_id: str, map_ids: Sequence[str], *, timeout_s: float
    ) -> riffle_pb2.MergeResponse:
        """Returns when the merged file is there; raises whatever went wrong."""


@dataclass(slots=True)
class _Job:
    job: ShuffleJob
    scan: FolderScan
    watch: JobWatch
    #: map outputs that were found, and their partitions
    outputs: int = 0
    partitions: int = 0
    #: of merges that were asked for: what is done, what failed, and the merger's own reads and writes for it
    merged_files: int = 0
    merged_outputs: int = 0
    merges_failed: int = 0
    merge_requests: int = 0
    #: what the log has of the automatic choice
    said: MergePolicy | None = None
    tasks: TaskSet = field(default_factory=TaskSet)


class OutputMerging:
    """The merging of map outputs of all jobs of one node."""

    def __init__(
        self,
        settings: WatchSettings,
        *,
        disk: KnownDisk,
        jobs: ShuffleJobs,
        outputs: MapOutputs,
        directories: NodeDirectories,
        service: ShuffleService,
        merger: Merger,
        io: Executor,
        interval_s: float = _INTERVAL_S,
        sleep: Callable[[float], Coroutine[Any, Any, None]] = asyncio.sleep,
    ) -> None:
        self._settings = settings
        self._disk = disk
        self._known_jobs = jobs
        self._outputs = outputs
        self._directories = directories
        self._service = service
        self._merger = merger
        self._io = io
        self._interval_s = interval_s
        self._sleep = sleep
        self._jobs: dict[str, _Job] = {}
        self._news = asyncio.Event()

    def summary(self, job_id: str) -> dict[str, Any]:
        """Says what became of the job's outputs here, and why; {} before the first look at its folders."""
        state = self._jobs.get(job_id)
        if state is None:
            return {}
        watch = state.watch
        policy, reason = self._settings.policy, ""
        if policy is None and watch.choice is not None:
            policy, reason = watch.choice.policy, watch.choice.reason
        return {
            "policy": None if policy is None else str(policy),
            "reason": reason,
            "outputs": state.outputs,
            "leftAlone": watch.left_alone,
            "withoutIndex": watch.without_index,
            "readBefore": watch.read_before,
            "waiting": watch.waiting,
            "merging": watch.outstanding,
            "mergedOutputs": state.merged_outputs,
            "mergedFiles": state.merged_files,
            "mergesFailed": state.merges_failed,
            "mergeRequests": state.merge_requests,
        }

    def look_soon(self) -> None:
        """Notes that a merged file has appeared: reducers may be told to ask for it at once."""
        self._news.set()

    async def run(self) -> None:
        """Looks at the jobs' folders until cancelled."""
        try:
            while True:
                self._news.clear()
                await self.look()
                await self._pause()
        finally:
            for job in self._jobs.values():
                job.tasks.cancel()

    async def _pause(self) -> None:
        async with TaskSet() as tasks:
            waits = [tasks.start(self._sleep(self._interval_s)), tasks.start(self._news.wait())]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)

    async def look(self) -> None:
        """Looks once at every job's folders."""
        known = self._known_jobs.all()
        for job_id in [job_id for job_id in self._jobs if job_id not in known]:
            self._jobs.pop(job_id).tasks.cancel()
        for job_id, job in known.items():
            state = self._jobs.get(job_id)
            if state is None:
                state = self._jobs[job_id] = self._state(job)
            state.job = job
            try:
                found = await asyncio.get_running_loop().run_in_executor(self._io, state.scan.scan)
                self._act(job_id, state, found)
            except Exception:
                log.exception("the folders of %s cannot be looked at", job_id)

    def _state(self, job: ShuffleJob) -> _Job:
        now = asyncio.get_running_loop().time()
        folders = self._directories.app_dirs(job.user, job.application)
        index_bytes_max = self._service.merged.index_cache_bytes
        load, counts = partial(self._outputs.load, job), self._outputs.files.counts
        scan = FolderScan(folders, load, index_bytes_max=index_bytes_max, counts=counts)
        return _Job(job, scan, JobWatch(self._settings, now))

    def _act(self, job_id: str, state: _Job, found: Found) -> None:
        if self._known_jobs.get(job_id) is None:
            return  # it ended meanwhile, and its folders are being deleted
        for file in found.merged:
            self._service.publish(job_id, file)
        if state.job.plans_merges:
            return
        now = asyncio.get_running_loop().time()
        state.outputs += len(found.outputs)
        if found.outputs:
            state.partitions = found.outputs[-1].partitions
        state.watch.appeared(found.outputs, now)
        if self._merger.port is None:
            return
        merges = state.watch.decide(now, fetched=self._fetched(job_id, state), disk=self._disk_now())
        self._say_choice(job_id, state)
        for merge in merges:
            state.tasks.start(self._merge(job_id, state, merge))

    def _disk_now(self) -> DiskShape:
        return self._disk.tried(() if self._merger.disk is None else (self._merger.disk,))

    @staticmethod
    def _say_choice(job_id: str, state: _Job) -> None:
        """Once for each policy that a job comes to as more of it appears."""
        choice = state.watch.choice
        if choice is not None and choice.policy != state.said:
            state.said = choice.policy
            log.info("map outputs of %s: %s (%s)", job_id, choice.policy, choice.reason)

    def _fetched(self, job_id: str, state: _Job) -> float:
        """Share of the segments here that reducers have had."""
        segments = state.outputs * state.partitions
        return self._service.statistics.segments_of(job_id) / segments if segments else 0.0

    async def _merge(self, job_id: str, state: _Job, merge: Merge) -> None:
        try:
            done = await self._merger.merge(job_id, merge.merge_id, merge.map_ids, timeout_s=_MERGE_TIMEOUT_S)
            state.merged_files += 1
            state.merged_outputs += len(merge.map_ids)
            state.merge_requests += done.reads + done.writes
        except Exception as error:  # a foreign process: whatever it does, the originals are there
            state.merges_failed += 1
            log.warning("%d map outputs of %s stay as they are: %s", len(merge.map_ids), job_id, error)
        finally:
            state.watch.over(merge.merge_id)
