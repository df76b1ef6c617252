"""How long a task that comes to a node now would wait: Yaq, section 3.2, Algorithm 2.

The node's near future is played through: running tasks end after their remaining durations, queued ones start in their
order as soon as the next of them fits, the new one comes last. `wait_estimate` looks at what each task needs;
`slot_wait_estimate` is the paper's, where any task fits the slot of any other. Tasks without a finite estimate never
end, so that nothing waits for them: when only they could make room the answer is inf, never.

Both take O((running + queued) log running) steps: each task starts once and ends once.
"""

from collections.abc import Iterable
from heapq import heapify, heappop, heappush, heapreplace
from math import inf

from yaqd.model import Resource
from yaqd.policies.queueing import limits
from yaqd.policies.queueing.facts import QueuedTask, RunningTask


def wait_estimate(
    total: Resource,
    free: Resource,
    running: Iterable[RunningTask],
    queued: Iterable[QueuedTask],
    needed: Resource,
    now: float,
) -> float:
    """Seconds until a task that needs `needed` and is last in the queue starts; inf = never.

    `queued` is in the order of starting. Nobody passes the first of the queue, and one larger than the node starts when
    nothing runs, as the node queue has it.
    """
    held = list(running)
    ends = [
        (left, place, task.resource)
        for place, task in enumerate(held)
        if (left := limits.duration(task.remaining(now))) < inf
    ]
    heapify(ends)
    holding, place, waited = len(held), len(held), 0.0
    room = free.smaller(total)
    for task in queued:
        waited, room, holding = _until_it_fits(task.resource, ends, waited, room, holding)
        if waited == inf:
            return inf
        room -= task.resource
        holding += 1
        runs = limits.duration(task.facts.estimate)
        if runs < inf:
            place += 1
            heappush(ends, (waited + runs, place, task.resource))
    return _until_it_fits(needed, ends, waited, room, holding)[0]


def _until_it_fits(
    needed: Resource, ends: list[tuple[float, int, Resource]], waited: float, room: Resource, holding: int
) -> tuple[float, Resource, int]:
    """Lets tasks end until there is room: when that is, what is free then, how many still hold something."""
    while holding > 0 and not needed.fits_in(room):
        if not ends:
            return inf, room, holding
        waited, _, freed = heappop(ends)
        room += freed
        holding -= 1
    return waited, room, holding


def slot_wait_estimate(
    running: Iterable[RunningTask], queued: Iterable[QueuedTask], free_slots: int, now: float
) -> float:
    """Algorithm 2 as printed: 0 where a slot is free, else one running task's end for each task of the queue and one
    for the new one. inf = never."""
    if free_slots > 0:
        return 0.0
    ends = [left for task in running if (left := limits.duration(task.remaining(now))) < inf]
    heapify(ends)
    for task in queued:
        if not ends:
            return inf
        runs = limits.duration(task.facts.estimate)
        if runs < inf:
            heapreplace(ends, ends[0] + runs)
        else:
            heappop(ends)
    return ends[0] if ends else inf


def wait_after_placing(wait_s: float, estimate: float | None, default_s: float, slots: int = 1) -> float:
    """A node's wait as its placer sees it until the node reports a fresh one (section 3.1.3): one more task to serve.

    The paper adds the task's estimate; spread over the node's slots it does not overstate what many slots wait.
    """
    runs = limits.duration(estimate)
    if runs == inf:
        runs = limits.duration(default_s)
    return limits.threshold(wait_s) + runs / max(1, slots)
