"""What the live benchmark runs on a cluster: a backlog, a trace of jobs, two queues, one container at a time."""

import asyncio
import json
import random
import statistics
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from yaqd.sim.workload import SimJob, Workload

from .live_master import Addresses, Failures, LiveJob
from .live_tasks import StartLog, Task, TaskRecord, record, start_gaps, utilization
from .options import progress

_PRIORITY = 20
#: a trace that takes so many times as long as its arrivals is given up
_PATIENCE = 6.0
#: the load is up after this many heartbeats
_WARM_HEARTBEATS = 4


@dataclass(slots=True)
class Loaded:
    """A window of time in which more was asked for than fits."""

    utilization: float
    gaps_s: list[float]
    failures: Failures
    doubled: int
    started: int
    #: of the nodes' queues at the end
    bounds: list[int]
    #: of tasks that waited at their nodes
    queued_gaps_s: list[float] = field(default_factory=list)
    #: tasks that started, s since they were asked for
    records: list[TaskRecord] = field(default_factory=list)
    #: that were asked for, since when s after that the window begins, and how long it is
    asked: int = 0
    warm_s: float = 0.0
    window_s: float = 0.0


@dataclass(slots=True)
class Traced:
    """What became of a trace: one entry per job, in the trace's order, seconds."""

    from_submission_s: list[float]
    from_start_s: list[float]
    failures: Failures
    doubled: int
    took_s: float
    names: list[str] = field(default_factory=list)
    #: of the nodes' queues, once a minute
    bounds: list[int] = field(default_factory=list)
    #: of tasks that waited at their nodes
    gaps_s: list[float] = field(default_factory=list)
    #: of all, from their masters' having a container to the process
    launches_s: list[float] = field(default_factory=list)
    #: of each job, from its submission to its first ask
    ready_s: list[float] = field(default_factory=list)
    #: of each job, stage by stage, what became of its tasks; seconds since the trace began
    stages: list[list[list[TaskRecord]]] = field(default_factory=list)
    submitted_at: list[float] = field(default_factory=list)

    @property
    def tasks(self) -> list[TaskRecord]:
        """What became of each, job by job."""
        return [task for job in self.stages for stage in job for task in stage]

    @property
    def gap_s(self) -> float:
        """Until a process runs where one may, s: its median."""
        return statistics.median(self.gaps_s if self.bounds and self.gaps_s else self.launches_s)


def queue_bounds(where: Addresses) -> list[int]:
    """How many containers may wait at each node now; empty where nodes do not tell."""
    nodes = _get_json(f"http://{where.web[0]}:{where.web[1]}/ws/v1/cluster/nodes")["nodes"]["node"]
    infos = [_get_json(f"http://{node['nodeHTTPAddress']}/ws/v1/node/info")["nodeInfo"] for node in nodes]
    found = [info["queue"]["maxQueued"] for info in infos if "queue" in info]
    return [bound for bound in found if bound is not None]


def _get_json(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10.0) as answer:
        return json.load(answer)


async def backlog(
    where: Addresses,
    folder: Path,
    *,
    slots: int,
    duration_s: float,
    poll_s: float,
    heartbeat_s: float,
    window_s: float,
    opportunistic: bool,
    tolerates_waiting: bool,
) -> Loaded:
    """One job with more tasks than can run; looks at `window_s` seconds of it and kills the rest.

    `slots`: of the whole cluster.
    """
    warm_s = _WARM_HEARTBEATS * heartbeat_s + poll_s
    count = int(slots * ((warm_s + window_s) / duration_s + 4))
    with StartLog(folder) as log:
        stages = [(_PRIORITY, [duration_s] * count)]
        job = LiveJob(
            where,
            log,
            name="backlog",
            stages=stages,
            poll_s=poll_s,
            opportunistic=opportunistic,
            tolerates_waiting=tolerates_waiting,
        )
        await job.open()
        start = time.monotonic() + warm_s
        await job.run_stage(job.stages[0], until=start + window_s)
        end = time.monotonic()
        failures = Failures()
        failures.add(job.failures)  # as of now: killing the rest is no failure
        bounds = await asyncio.to_thread(queue_bounds, where)
        await job.kill()
        return _loaded(log, slots, (start, end), warm_s, failures, bounds)


def _loaded(
    log: StartLog, slots: int, window: tuple[float, float], warm_s: float, failures: Failures, bounds: list[int]
) -> Loaded:
    start, end = window
    begun = [task for task in log.tasks if task.started_at is not None]
    return Loaded(
        utilization(begun, slots, start, end),
        start_gaps(begun, start, end),
        failures,
        log.doubled,
        len(begun),
        bounds,
        start_gaps(begun, start, end, queued=True),
        [record(task, start - warm_s) for task in begun],
        len(log.tasks),
        warm_s,
        end - start,
    )


async def trace(
    where: Addresses, folder: Path, workload: Workload, *, poll_s: float, opportunistic: bool, tolerates_waiting: bool
) -> Traced:
    """Submits every job at its time and waits for all."""
    last = max(job.arrival_s for job in workload)
    with StartLog(folder) as log:
        jobs = [_live(where, log, job, poll_s, opportunistic, tolerates_waiting) for job in workload]
        began = time.monotonic()
        async with asyncio.timeout(_PATIENCE * last + 600), asyncio.TaskGroup() as group:
            for live, job in zip(jobs, workload, strict=True):
                group.create_task(_at(began + job.arrival_s, live))
            bounds: list[int] = []
            group.create_task(_tell(where, jobs, log, began, bounds))
        failures = Failures()
        for live in jobs:
            failures.add(live.failures)
        return Traced(
            [job.completion_s for job in jobs],
            [job.from_start_s for job in jobs],
            failures,
            log.doubled,
            time.monotonic() - began,
            [job.name for job in jobs],
            bounds,
            start_gaps(log.tasks, began, time.monotonic(), queued=True),
            [_started(task) - task.given_at for task in log.tasks if task.given_at is not None],
            [min(task.asked_at for task in job.tasks) - job.submitted_at for job in jobs],
            [[[record(task, began) for task in stage.tasks] for stage in job.stages] for job in jobs],
            [job.submitted_at - began for job in jobs],
        )


def _live(
    where: Addresses, log: StartLog, job: SimJob, poll_s: float, opportunistic: bool, tolerates_waiting: bool
) -> LiveJob:
    stages = [(stage.tasks[0].priority, [max(task.duration_s, 0.001) for task in stage.tasks]) for stage in job.stages]
    return LiveJob(
        where,
        log,
        name=job.name,
        stages=stages,
        poll_s=poll_s,
        queue=job.queue,
        opportunistic=opportunistic,
        tolerates_waiting=tolerates_waiting,
    )


async def _at(moment: float, job: LiveJob) -> None:
    await asyncio.sleep(max(moment - time.monotonic(), 0.0))
    await job.run()


async def _tell(where: Addresses, jobs: Sequence[LiveJob], log: StartLog, began: float, bounds: list[int]) -> None:
    """Notes the bounds and prints a line every minute, until all jobs are over."""
    told = 0.0
    while left := sum(1 for job in jobs for stage in job.stages if stage.left or not stage.is_asked):
        await asyncio.sleep(1.0)
        if time.monotonic() - began - told >= 60.0:
            told = time.monotonic() - began
            now = time.monotonic()
            bounds += await asyncio.to_thread(queue_bounds, where)
            busy = sum(1 for t in log.tasks if t.started_at is not None and t.ended_at > now)
            progress(f"  {told:.0f} s: {left} stages left, {busy} tasks running")


async def shares(
    where: Addresses,
    folder: Path,
    queues: dict[str, int],
    *,
    slots: int,
    duration_s: float,
    poll_s: float,
    heartbeat_s: float,
    window_s: float,
    span_s: float,
    tolerates_waiting: bool,
) -> tuple[float, Loaded]:
    """Backlogs in every queue; returns the largest deviation of a queue's part of the use from its share, in points.

    Looked at over every span of `span_s` seconds of the window. And what else became of that window.
    """
    warm_s = _WARM_HEARTBEATS * heartbeat_s + poll_s
    count = int(slots * ((warm_s + window_s) / duration_s + 4))
    with StartLog(folder) as log:
        jobs = {
            name: LiveJob(
                where,
                log,
                name=f"backlog-{name}",
                stages=[(_PRIORITY, [duration_s] * count)],
                poll_s=poll_s,
                queue=name,
                tolerates_waiting=tolerates_waiting,
            )
            for name in queues
        }
        await asyncio.gather(*(job.open() for job in jobs.values()))
        start = time.monotonic() + warm_s
        await asyncio.gather(*(job.run_stage(job.stages[0], until=start + window_s) for job in jobs.values()))
        failures = Failures()
        for job in jobs.values():
            failures.add(job.failures)
        bounds = await asyncio.to_thread(queue_bounds, where)
        await asyncio.gather(*(job.kill() for job in jobs.values()))
        end = start + window_s
        loaded = _loaded(log, slots, (start, end), warm_s, failures, bounds)
    worst = 0.0
    for second in range(int(window_s - span_s) + 1):
        span = (start + second, start + second + span_s)
        used = {name: utilization(job.tasks, slots, *span) for name, job in jobs.items()}
        for name, share in queues.items():
            worst = max(worst, abs(100 * used[name] / sum(used.values()) - share))
    return worst, loaded


async def latencies(
    where: Addresses, folder: Path, *, count: int, poll_s: float, heartbeat_s: float, tolerates_waiting: bool
) -> tuple[list[float], list[int], list[float]]:
    """Asks for one container after another on an idle cluster; seconds from each ask to the running process.

    And the bounds of the nodes' queues in the end, and the part of these seconds from the master's having it.
    """
    chooser = random.Random(1)
    found, launches = [], []
    with StartLog(folder) as log:
        job = LiveJob(
            where,
            log,
            name="latency",
            stages=[(_PRIORITY + at, [0.05]) for at in range(count)],
            poll_s=poll_s,
            tolerates_waiting=tolerates_waiting,
        )
        await job.open()
        for stage in job.stages:
            await asyncio.sleep(heartbeat_s * (1 + chooser.random()))  # no ask keeps step with the heartbeats
            await job.run_stage(stage)
            (task,) = stage.tasks
            found.append(_started(task) - task.asked_at)
            launches.append(_started(task) - (task.given_at or 0.0))
        bounds = await asyncio.to_thread(queue_bounds, where)
        await job.finish()
    return found, bounds, launches


def _started(task: Task) -> float:
    return task.ended_at - task.duration_s
