"""Workers of training jobs as the containers that they are.

A job's cores say how many workers it may have. What it does not hand back in time is taken from it. Where room is
short, jobs with workers divide those that there is room for, less one for each who waits with less than an equal share.
Else the first job would keep a full cluster to its end, as its workers never end by themselves. Who has got nothing of
that for a minute, as what it asks for never fits, is no longer waited for.
"""

import math
from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heapreplace
from typing import Final

from rm.scheduler.decisions import Preempt
from rm.scheduler.quality.job import TrainingJob
from rm.scheduler.view.cluster import ClusterView
from rm.scheduler.view.records import AppView, AttemptView, QueueView
from yaqd.model import ANY_HOST, ApplicationAttemptId, ContainerId, NodeId, Resource
from yaqd.policies.quality.facts import MILLI

#: how long others have fewer workers for somebody who gets nothing, s
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
        #: by leaf queue: since when its jobs have fewer workers for somebody, scheduler's seconds, and what he has
        self._since: dict[str, dict[ApplicationAttemptId, tuple[float, int]]] = {}

    def of(self, leaf: QueueView, jobs: list[TrainingJob], now: float) -> int | None:
        """Return how many workers the jobs of a leaf queue can have together; None: as many as they may."""
        view = self._view
        with_workers = [job for job in jobs if job.partitions]
        _learn_sizes(view, with_workers)
        sizes = [shape for job in with_workers for shape in _sizes(job)]
        if not sizes:
            return None
        has = sum(map(held, with_workers))
        if waiting := self._newcomers(leaf, with_workers, now):
            # what is free does not serve them, and is left until more is
            return max(len(with_workers), has - len(waiting))
        wanted = max(0, sum(job.workers_max for job in with_workers) - has)
        room = _room(view, leaf, _largest(sizes), wanted)
        return None if room >= wanted else max(len(with_workers), has + room)

    def _newcomers(self, leaf: QueueView, jobs: list[TrainingJob], now: float) -> list[AttemptView]:
        """List those who wait for room that workers can make, as far as they are waited for."""
        found = list(_who_waits(self._view, leaf, jobs))
        before, since = self._since.get(leaf.path, {}), {}
        for one in found:
            at, had = before.get(one.id, (now, -1))
            # who has got something since is waited for anew
            since[one.id] = (at if had == one.app.containers else now), one.app.containers
        self._since[leaf.path] = since
        made = _could_be_made(self._view, jobs) if found else {}
        return [
            one for one in found if now - since[one.id][0] < _PATIENCE_S and self._needs_and_can_have_room(one, made)
        ]

    def _needs_and_can_have_room(self, attempt: AttemptView, made: dict[NodeId, Resource]) -> bool:
        nodes, fits = self._view.nodes, self._view.calculator.fits
        if any(nodes.emptiest(shape, attempt.accepts, ANY_HOST) is not None for shape in attempt.filed_shapes):
            return False
        return any(
            fits(shape, Resource(node.free_mb, node.free_cores, node.free_extras) + workers)
            for node_id, workers in made.items()
            if (node := nodes.get(node_id)) is not None and attempt.accepts(node)
            for shape in attempt.filed_shapes
        )


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


def _learn_sizes(view: ClusterView, jobs: list[TrainingJob]) -> None:
    """Note the size of workers where it is not known yet, and there are some."""
    unknown = [job for job in jobs if job.worker_size is None and held(job)]
    if unknown:
        found = _of(view, unknown)
        for job in unknown:
            worker = view.containers[found[job.attempt.app][0]]
            job.worker_size, job.worker_priority = worker.resource, worker.priority


def _sizes(job: TrainingJob) -> list[Resource]:
    """Return the size of a job's workers; before it has any, of what it asks for."""
    return [job.worker_size] if job.worker_size is not None else job.attempt.filed_shapes


def _of(view: ClusterView, jobs: list[TrainingJob]) -> dict[AppView, list[ContainerId]]:
    """Return the jobs' containers but their masters, workers first, and of these the last ones."""
    found: dict[AppView, list[tuple[int, ContainerId]]] = {job.attempt.app: [] for job in jobs}
    for container_id, one in view.containers.items():
        if one.application in found and not one.is_master:
            found[one.application].append((one.priority, container_id))
    return {app: [container_id for _, container_id in sorted(mine, reverse=True)] for app, mine in found.items()}


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


def overdue(view: ClusterView, jobs: Iterable[TrainingJob], hand_back_s: float, now: float) -> Iterator[Preempt]:
    """Take the workers that jobs have had for too long beyond what their cores allow, the last ones first."""
    due: list[tuple[TrainingJob, int, float]] = []
    for job in jobs:
        many = held(job) - allowed(job)
        if many <= 0:
            job.over_since = None
        elif job.over_since is None:
            job.over_since = now
        elif now - job.over_since >= hand_back_s:
            due.append((job, many, now - job.over_since))
            # those that end by it are seen to have ended later
            job.over_since = now
    found = _of(view, [job for job, _, _ in due]) if due else {}
    for job, many, since_s in due:
        for container_id in found[job.attempt.app][:many]:
            reason = f"the job has fewer cores and did not hand it back in {since_s:.1f} s"
            yield Preempt(container_id, reason, tells_why=True)
