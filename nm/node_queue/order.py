"""Which waiting container comes next: the order's word, except that of one job's containers those that end go first.

A job whose maps wait behind its own reducers, which never end without them, would wait for ever. (Hadoop's MapReduce
master does not notice, as it counts what waits here as running.) So where the turn comes to a container without a
finite estimate, those of its job that have one go before it.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from math import inf

from yaqd.model import ApplicationId, ContainerId, Resource
from yaqd.policies.queueing import limits
from yaqd.policies.queueing.facts import JobFacts, QueuedTask
from yaqd.policies.queueing.order import Ordering


def first_of(
    line: Collection[QueuedTask],
    ordering: Ordering | None,
    jobs: Mapping[ApplicationId, JobFacts],
    now: float,
    free: Resource,
) -> QueuedTask:
    """Returns the next container of a line that is not empty.

    `ordering` None: the first that came. `free`: what the node has to give.
    """
    if ordering is None or len(line) == 1:
        return next(iter(line))
    picked = ordering.pick(line, jobs, now, free)
    if _ends(picked):
        return picked
    job = picked.facts.job
    ending = [task for task in line if task.facts.job == job and _ends(task)]
    return ordering.pick(ending, jobs, now, free) if ending else picked


def in_order(
    line: Collection[QueuedTask], ordering: Ordering | None, jobs: Mapping[ApplicationId, JobFacts], now: float
) -> list[QueuedTask]:
    """Returns the whole line as it would start if nothing changed."""
    if ordering is None or len(line) < 2:
        return list(line)
    tasks = ordering.sorted(line, jobs, now)
    if all(_ends(task) for task in tasks):
        return tasks
    ending: dict[ApplicationId, list[QueuedTask]] = defaultdict(list)
    for task in tasks:
        if _ends(task):
            ending[task.facts.job].append(task)
    placed: dict[ContainerId, QueuedTask] = {}
    for task in tasks:
        before = () if _ends(task) else ending.pop(task.facts.job, ())
        for one in (*before, task):
            placed.setdefault(one.container_id, one)
    return list(placed.values())


def _ends(task: QueuedTask) -> bool:
    return limits.duration(task.facts.estimate) < inf
