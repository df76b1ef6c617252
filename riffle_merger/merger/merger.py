"""The merger: what is merged when, by which threads. Lives on one event loop; disks are for its threads.

A request is surveyed (how much is it?), queued under the memory budget, and run by one thread that writes and two
that read ahead. Requests are remembered by their caller's name for them, so that asking again is harmless.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from riffle_merger.merger.errors import Cancelled, MergeError, NotMergeable
from riffle_merger.merger.files import Survey, clear_temporaries, survey
from riffle_merger.merger.merge import READERS, Merged, MergeOrder, check_map_ids, memory_for, merge
from riffle_merger.merger.pool import BufferPool
from riffle_merger.merger.queue import MergeQueue, Request
from riffle_merger.merger.window import Counts
from riffle_merger.plan.buffers import BUFFER_BYTES
from riffle_merger.remote.merge import RemoteMerged, RemoteOrder
from riffle_merger.remote.workers import Workers
from yaqd.ipc.tasks import TaskSet

log = logging.getLogger(__name__)

#: answers remembered per job
_REMEMBERED_MAX = 10_000
#: unused buffers go back to the system after this
_IDLE_S = 5.0
_IO_THREADS = 2


@dataclass(frozen=True, slots=True)
class MergerSettings:
    #: buffers and indexes of all merges that run
    budget_bytes: int
    #: merges at one time, if the budget has room for them
    running_max: int = 2
    #: requests that wait, of one job
    waiting_max: int = 1000
    #: wait for the disk before a merged file appears
    sync: bool = False
    buffer_bytes: int = BUFFER_BYTES
    #: no merge makes its disk fuller
    disk_max_percent: float = 100.0
    #: configuration of the file systems that mergers of several nodes share
    storage: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shared:
    """Where map outputs are that lie on no node."""

    #: full URI
    folder: str
    #: of the outputs together, as the caller has it
    data_bytes: int
    #: copies of the merged file; 0: as configured
    replication: int = 0


@dataclass(frozen=True, slots=True)
class Done:
    merged: Merged | RemoteMerged
    queued_s: float
    run_s: float


@dataclass(slots=True)
class Statistics:
    """Since the start."""

    merges: int = 0
    failed: int = 0
    cancelled: int = 0
    merged_bytes: int = 0
    reads: int = 0
    writes: int = 0
    busy_s: float = 0.0


@dataclass(slots=True, eq=False)
class _RunningMerge:
    job_id: str
    merge_id: str
    map_ids: tuple[str, ...]
    answer: "asyncio.Future[Done]"
    asked_at: float
    shared: Shared | None
    #: who merges on a shared file system
    user: str
    cancelled: threading.Event = field(default_factory=threading.Event)
    #: its work on a shared file system, while it runs
    task: "asyncio.Task[RemoteMerged] | None" = None
    buffers: int = 0
    counts: Counts = field(default_factory=Counts)
    #: requests to the disk when somebody last looked, and when they were fewer
    seen: int = -1
    moved_at: float = 0.0


@dataclass(slots=True)
class _Job:
    folders: tuple[Path, ...]
    user: str
    #: what a merger before this one left half-written is gone
    cleared: "asyncio.Task[None]"
    merges: dict[str, _RunningMerge] = field(default_factory=dict)
    #: of them not over
    unfinished: int = 0
    statistics: Statistics = field(default_factory=Statistics)


class Merger:
    """All calls from one event loop."""

    def __init__(
        self,
        settings: MergerSettings,
        *,
        clock: Callable[[], float] = time.monotonic,
        on_merged: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_merged` is called when a merged file has appeared, before whoever asked for it hears so."""
        self._settings = settings
        self._clock = clock
        self._on_merged = on_merged
        self.pool = BufferPool(settings.budget_bytes, buffer_bytes=settings.buffer_bytes)
        self.queue: MergeQueue[_RunningMerge] = MergeQueue(
            budget_bytes=settings.budget_bytes, running_max=settings.running_max
        )
        self.statistics = Statistics()
        self._jobs: dict[str, _Job] = {}
        self._running: set[_RunningMerge] = set()
        self._tasks = TaskSet()
        self._stamp = int(time.time() * 1000)
        self._number = 0
        self._io = ThreadPoolExecutor(_IO_THREADS, thread_name_prefix="merge-survey")
        self._writers = ThreadPoolExecutor(settings.running_max, thread_name_prefix="merge-write")
        self._readers = ThreadPoolExecutor(READERS * settings.running_max, thread_name_prefix="merge-read")
        self._workers = Workers(settings.storage, settings.running_max)
        #: merges taken and not over, now and at most
        self.unfinished = self.unfinished_max = 0

    # Jobs -------------------------------------------------------------------------------------------------------------

    def add_job(self, job_id: str, folders: Sequence[Path], user: str = "") -> None:
        """Adds a job; one that is known keeps what it has.

        `folders`: the application's on each disk. `user`: who it is on shared file systems.
        """
        if job_id not in self._jobs:
            self._jobs[job_id] = _Job(tuple(folders), user, self._tasks.start(self._clear(tuple(folders))))

    def forget_job(self, job_id: str) -> None:
        """Cancels what is left of it. Its files go with the application's folder."""
        if job_id in self._jobs:
            self.cancel(job_id)
            del self._jobs[job_id]

    def jobs(self) -> dict[str, Statistics]:
        return {job_id: job.statistics for job_id, job in self._jobs.items()}

    async def _clear(self, folders: tuple[Path, ...]) -> None:
        count = await asyncio.get_running_loop().run_in_executor(self._io, clear_temporaries, folders)
        if count:
            log.info("%s: %d files of an interrupted merge deleted", folders[0], count)

    # Merges -----------------------------------------------------------------------------------------------------------

    async def merge(self, job_id: str, merge_id: str, map_ids: Sequence[str], shared: Shared | None = None) -> Done:
        """Returns when the merged file is published. Raises MergeError and its kinds."""
        job = self._jobs.get(job_id)
        if job is None:
            raise NotMergeable(f"job {job_id[:80]} is not known here")
        check_map_ids(map_ids)
        known = job.merges.get(merge_id)
        if known is None:
            if job.unfinished >= self._settings.waiting_max:
                raise NotMergeable(f"{self._settings.waiting_max} merges of {job_id} wait already")
            if shared is not None and not job.user:
                raise NotMergeable(f"job {job_id} has no user on {shared.folder[:80]}")
            known = self._begin(job, job_id, merge_id, tuple(map_ids), shared)
        elif (known.map_ids, known.shared) != (tuple(map_ids), shared):
            raise NotMergeable(f"merge {merge_id[:80]} was of other map outputs")
        return await asyncio.shield(known.answer)

    def cancel(self, job_id: str, merge_ids: Iterable[str] | None = None) -> int:
        """Cancels the named merges, or all when None. Returns how many of them were not over."""
        job = self._jobs.get(job_id)
        if job is None:
            return 0
        chosen = [job.merges[m] for m in (list(job.merges) if merge_ids is None else merge_ids) if m in job.merges]
        unfinished = [item for item in chosen if not item.answer.done()]
        for item in unfinished:
            item.cancelled.set()
            if item.task is not None:
                item.task.cancel()
        for item in self.queue.cancel(job_id, unfinished):
            self._end(item, Cancelled("cancelled while it waited"))
        self._pump()
        return len(unfinished)

    @property
    def stalled_s(self) -> float:
        """How long the merge that moves least has not moved, as far as those who asked before have seen."""
        now = self._clock()
        here = [item for item in self._running if item.shared is None]  # others have a process, which is ended alone
        for item in here:
            requests = item.counts.reads + item.counts.writes
            if requests != item.seen:
                item.seen, item.moved_at = requests, now
        return max((now - item.moved_at for item in here), default=0.0)

    async def close(self) -> None:
        """Cancels everything; returns when no thread works any more."""
        for job_id in list(self._jobs):
            self.forget_job(job_id)
        await self._tasks.wait()
        await self._workers.close()
        for executor in (self._io, self._writers, self._readers):
            executor.shutdown()

    def _begin(
        self, job: _Job, job_id: str, merge_id: str, map_ids: tuple[str, ...], shared: Shared | None
    ) -> _RunningMerge:
        answer: asyncio.Future[Done] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())  # perhaps nobody waits any more
        job.unfinished += 1
        self.unfinished += 1
        self.unfinished_max = max(self.unfinished_max, self.unfinished)
        item = job.merges[merge_id] = _RunningMerge(job_id, merge_id, map_ids, answer, self._clock(), shared, job.user)
        self._tasks.start(self._admit(item, job))
        return item

    async def _admit(self, item: _RunningMerge, job: _Job) -> None:
        try:
            if item.shared is not None:
                size = Survey(max(0, item.shared.data_bytes), 0)
            else:
                await asyncio.shield(job.cleared)  # it would take this merge's files for a former one's
                size = await asyncio.get_running_loop().run_in_executor(self._io, survey, job.folders, item.map_ids)
            memory_bytes = self._memory(item, size)
        except MergeError as error:
            self._end(item, error)
            return
        if item.cancelled.is_set():
            self._end(item, Cancelled("cancelled while it waited"))
            return
        self.queue.add(Request(item, item.job_id, memory_bytes, size.data_bytes))
        self._pump()

    def _memory(self, item: _RunningMerge, size: Survey) -> int:
        """What it takes while it runs; settles the number of its buffers."""
        settings, inputs = self._settings, len(item.map_ids)
        memory = memory_for(
            inputs, size.data_bytes, size.index_bytes, self.pool, settings.budget_bytes, settings.running_max
        )
        item.buffers = memory.buffers
        return memory.bytes

    def _pump(self) -> None:
        for request in self.queue.start():
            item = request.key
            self._running.add(item)
            item.moved_at = self._clock()
            self._tasks.start(self._run(item, self._jobs[item.job_id].folders))

    async def _run(self, item: _RunningMerge, folders: tuple[Path, ...]) -> None:
        self._number += 1
        name = f"{self._stamp}-{self._number}"
        started = self._clock()
        result: Done | Exception
        try:
            if item.shared is None:
                merged: Merged | RemoteMerged = await self._merge_here(item, name, folders)
            else:
                merged = await self._merge_shared(item, name, item.shared)
            result = Done(merged, started - item.asked_at, self._clock() - started)
        except asyncio.CancelledError:
            result = Cancelled("cancelled")
        except (MergeError, MemoryError) as error:
            result = error
        except Exception as error:
            log.exception("merge %s of %s", item.merge_id, item.job_id)
            result = error
        self.statistics.busy_s += self._clock() - started
        self._running.discard(item)
        self.queue.finished(item)
        self._end(item, result)
        self._pump()
        if not self._running:
            asyncio.get_running_loop().call_later(_IDLE_S, self._trim)

    async def _merge_here(self, item: _RunningMerge, name: str, folders: tuple[Path, ...]) -> Merged:
        settings = self._settings
        work = partial(
            merge,
            MergeOrder(name, folders, item.map_ids, settings.sync, settings.disk_max_percent),
            self.pool,
            item.buffers,
            reader=self._readers,
            is_cancelled=item.cancelled.is_set,
            counts=item.counts,
        )
        return await asyncio.get_running_loop().run_in_executor(self._writers, work)

    async def _merge_shared(self, item: _RunningMerge, name: str, shared: Shared) -> RemoteMerged:
        """In the process of its user, whose memory is what the buffers here would have been."""

        def moved(requests: int) -> None:
            item.counts.reads = requests

        window_bytes = item.buffers * self.pool.buffer_bytes // 2
        new = f"{item.merge_id}.{name}"
        if item.cancelled.is_set():
            raise Cancelled("cancelled while it waited")
        order = RemoteOrder(shared.folder, new, item.map_ids, window_bytes, shared.replication)
        item.task = asyncio.create_task(self._workers.merge(item.user, order, moved))
        return await item.task

    def _end(self, item: _RunningMerge, result: Done | Exception) -> None:
        self.unfinished -= 1
        job = self._jobs.get(item.job_id)
        if job is not None and job.merges.get(item.merge_id) is not item:
            job = None  # of a former life of the job
        if job is not None:
            job.unfinished -= 1
        for statistics in (self.statistics, job.statistics) if job is not None else (self.statistics,):
            _count(statistics, result)
        if isinstance(result, Done):
            self._on_merged()
            if not item.answer.done():
                item.answer.set_result(result)
            if job is not None and len(job.merges) > _REMEMBERED_MAX:
                oldest = next(iter(job.merges))
                if job.merges[oldest].answer.done():
                    del job.merges[oldest]
            return
        if not isinstance(result, Cancelled):
            log.warning("merge %s of %s: %s", item.merge_id, item.job_id, result)
        if job is not None:
            del job.merges[item.merge_id]  # asking again tries again
        if not item.answer.done():
            known = isinstance(result, MergeError)
            item.answer.set_exception(result if known else MergeError(f"{type(result).__name__}: {result}"))

    def _trim(self) -> None:
        if not self._running:
            self.pool.trim()


def _count(statistics: Statistics, result: Done | Exception) -> None:
    if isinstance(result, Done):
        statistics.merges += 1
        statistics.merged_bytes += result.merged.bytes
        statistics.reads += result.merged.reads
        statistics.writes += result.merged.writes
    elif isinstance(result, Cancelled):
        statistics.cancelled += 1
    else:
        statistics.failed += 1
