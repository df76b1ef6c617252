"""Workers of training jobs as the containers that they are.

A job's cores say how many workers it may have. What it does not hand back in time is taken from it. Where room is
short, jobs with workers divide those that there is room for, less one for each who waits with less than an equal share.
Else the first job would keep a full cluster to its end, as its workers never end by themselves. Who has waited for that
in vain, as what it asks for never fits, is no longer waited for.
"""

import math
from collections.abc import Iterator
from heapq import heapify, heappop, heapreplace
from typing import Final

from rm.scheduler.decisions import Preempt
from rm.scheduler.quality.job import TrainingJob
from rm.scheduler.view.cluster import ClusterView
from rm.scheduler.view.records import AttemptView, QueueView
from yaqd.model import ApplicationAttemptId, ContainerId, NodeId, Resource
from yaqd.policies.quality.facts import MILLI

#: how long others have fewer workers for somebody who waits, s
_PATIENCE_S: Final = 60.0
_NO_LIMIT: Final = 10**12
#: containers of a job that are no workers: its master and its driver
_OTHERS: Final = 2


def held(job: TrainingJob) -> int:
    """Return how many workers a job has in containers; 0 for a program, which has none."""
    return max(0, job.attempt.app.containers - _OTHERS) if job.partitions else 0


def allowed(job: TrainingJob) -> int:
    """Return how many its cores allow; no job with partitions goes without one."""
    milli = job.order.milli if job.order is not None else None
    return job.partitions if milli is None else max(1, math.ceil(milli / MILLI))


class WorkerRoom:
    """How many workers there is room for."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        #: by leaf queue: since when its jobs have fewer workers for somebody, scheduler's seconds
        self._since: dict[str, dict[ApplicationAttemptId, float]] = {}

    def of(self, leaf: QueueView, jobs: list[TrainingJob], now: float) -> int | None:
        """Return how many workers the jobs of a leaf queue can have together; None: as many as they may."""
        view = self._view
        with_workers = [job for job in jobs if job.partitions]
        sizes = [size for job in with_workers if (size := _worker_size(view, job)) is not None]
        if not sizes:
            return None
        waiting = self._newcomers(leaf, with_workers, now)
        has = sum(map(held, with_workers))
        wanted = len(waiting) + max(0, sum(job.workers_max for job in with_workers) - has)
        largest = _largest(sizes + [shape for one in waiting for shape in one.filed_shapes])
        room = _room(view, leaf, largest, wanted)
        return None if room >= wanted else max(len(with_workers), has + room - len(waiting))

    def _newcomers(self, leaf: QueueView, jobs: list[TrainingJob], now: float) -> list[AttemptView]:
        """List those who wait for room that workers can make, as far as they are waited for."""
        found = list(_who_waits(self._view, leaf, jobs))
        before = self._since.get(leaf.path, {})
        since = self._since[leaf.path] = {one.id: before.get(one.id, now) for one in found}
        if not found:
            return found
        made = _could_be_made(self._view, jobs)
        fits = self._view.calculator.fits
        waiting = []
        for attempt in found:
            ways = (
                fits(shape, Resource(node.free_mb, node.free_cores, node.free_extras) + workers)
                for node_id, workers in made.items()
                if (node := self._view.nodes.get(node_id)) is not None and attempt.accepts(node)
                for shape in attempt.filed_shapes
            )
            if now - since[attempt.id] < _PATIENCE_S and any(ways):
                waiting.append(attempt)
        return waiting


def fitted(jobs: list[TrainingJob], milli: list[int], workers: int) -> list[int] | None:
    """Return the most milli of each job so that all their workers fit; None where they do anyway.

    Whose last worker would have the least to do goes without it first, of equal ones who has most. Each keeps one.
    """
    wanted = [max(1, -(-one // MILLI)) if job.partitions else 0 for job, one in zip(jobs, milli, strict=True)]
    over = sum(wanted) - workers
    if over <= 0:
        return None
    # by what each one's last worker would have to do
    givers = [(milli[at] - MILLI * (one - 1), -one, at) for at, one in enumerate(wanted) if one > 1]
    heapify(givers)
    while over > 0 and givers:
        _, _, at = givers[0]
        wanted[at] -= 1
        over -= 1
        if wanted[at] > 1:
            heapreplace(givers, (MILLI, -wanted[at], at))
        else:
            heappop(givers)
    return [MILLI * wanted[at] if job.partitions else _NO_LIMIT for at, job in enumerate(jobs)]


def _who_waits(view: ClusterView, leaf: QueueView, jobs: list[TrainingJob]) -> Iterator[AttemptView]:
    """Yield those who wait for room that jobs of this leaf queue owe them: in it, who hold less than an equal share;
    elsewhere, where their queue holds less than its guarantee and this one more."""
    share, total = view.calculator.share, view.nodes.total
    have_workers = {job.attempt.id for job in jobs if held(job)}
    gives = share(leaf.used, total) > leaf.spec.absolute_capacity
    for queue in view.queues.values():
        if not queue.waiting or not queue.is_leaf:
            continue
        guaranteed = queue.spec.absolute_capacity
        if queue is not leaf and not (gives and share(queue.used, total) < guaranteed):
            continue
        equal = guaranteed / max(1, len(queue.applications))
        for attempt in queue.attempts.values():
            if attempt.filed_shapes and attempt.id not in have_workers and share(attempt.app.used, total) < equal:
                yield attempt


def _could_be_made(view: ClusterView, jobs: list[TrainingJob]) -> dict[NodeId, Resource]:
    """Return by node what the jobs' workers hold there."""
    least = {job.attempt.app: job.worker_priority for job in jobs}
    made: dict[NodeId, Resource] = {}
    for one in view.containers.values():
        if not one.is_master and one.priority == least.get(one.application):
            made[one.node_id] = made.get(one.node_id, Resource()) + one.resource
    return made


def _largest(sizes: list[Resource]) -> Resource:
    return Resource(max(one.memory_mb for one in sizes), max(one.vcores for one in sizes))


def _worker_size(view: ClusterView, job: TrainingJob) -> Resource | None:
    """Return the size of a job's workers, before it has any that of what it asks for; None: nothing."""
    if job.worker_size is None and held(job):
        worker = view.containers[_of(view, job)[0]]
        job.worker_size, job.worker_priority = worker.resource, worker.priority
    if job.worker_size is None and job.attempt.filed_shapes:
        return _largest(job.attempt.filed_shapes)
    return job.worker_size


def _of(view: ClusterView, job: TrainingJob) -> list[ContainerId]:
    """Return the job's containers but its master, workers first, and of these the last ones."""
    app = job.attempt.app
    mine = [(one.priority, id_) for id_, one in view.containers.items() if one.application is app and not one.is_master]
    return [id_ for _, id_ in sorted(mine, reverse=True)]


def _room(view: ClusterView, leaf: QueueView, shape: Resource, most: int) -> int:
    """Return how many containers of this size fit, `most` where that is fewer."""
    most = min(most, max(0, view.room(leaf, shape)))
    mb, cores = max(1, shape.memory_mb), shape.vcores if view.calculator.counts_vcores else 0
    found = 0
    for node in view.nodes.all():
        if found >= most:
            break
        fits = node.free_mb // mb
        found += max(0, min(fits, node.free_cores // cores) if cores else fits)
    return min(found, most)


def overdue(view: ClusterView, job: TrainingJob, hand_back_s: float, now: float) -> Iterator[Preempt]:
    """Take the workers that a job has had for too long beyond what its cores allow, the last ones first."""
    many = held(job) - allowed(job)
    if many <= 0:
        job.over_since = None
        return
    if job.over_since is None:
        job.over_since = now
    elif now - job.over_since >= hand_back_s:
        since_s = now - job.over_since
        # those that end by it are seen to have ended later
        job.over_since = now
        for container_id in _of(view, job)[:many]:
            reason = f"the job has fewer cores and did not hand it back in {since_s:.1f} s"
            yield Preempt(container_id, reason, tells_why=True)
