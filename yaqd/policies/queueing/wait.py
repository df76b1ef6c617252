"""How long a task that comes to a node now would wait: Yaq, section 3.2, Algorithm 2.

The node's near future is played through: running tasks end after their remaining durations, queued ones start in their
order as soon as the next of them fits, the new one comes last. `wait_estimate` looks at what each task needs;
`slot_wait_estimate` is the paper's, where any task fits the slot of any other. Tasks without a finite estimate never
end, so that nothing waits for them: when only they could make room the answer is inf, never.

Each takes O((running + queued) log running) steps: a task starts once and ends once.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from itertools import chain
from math import inf
from typing import Final

from yaqd.model import Resource
from yaqd.policies.queueing import limits
from yaqd.policies.queueing.facts import QueuedTask, RunningTask
from yaqd.policies.registry import PolicyTable


def wait_estimate(
    total: Resource,
    free: Resource,
    running: Iterable[RunningTask],
    queued: Iterable[QueuedTask],
    needed: Resource,
    now: float,
) -> float:
    """Return seconds until a task that needs `needed` and is last in the queue starts; inf = never.

    `queued` is in the order of starting. Nobody passes the first of the queue, and one larger than the node starts when
    nothing runs, as the node queue has it.
    """
    running, queued = list(running), list(queued)
    if not needed.extras:
        waited = _by_memory_and_cores(total, free, running, queued, needed, now)
        if waited is not None:
            return waited
    *_, last = _starts(total, free, running, chain(_needs(queued), [(needed, inf)]), now)
    return last


def expected_starts(
    total: Resource, free: Resource, running: Iterable[RunningTask], queued: Iterable[QueuedTask], now: float
) -> list[float]:
    """Return seconds until each of the queued tasks, given in the order of starting, starts; inf = never."""
    return list(_starts(total, free, list(running), _needs(queued), now))


def slot_wait_estimate(
    total: Resource,
    free: Resource,
    running: Iterable[RunningTask],
    queued: Iterable[QueuedTask],
    needed: Resource,
    now: float,
) -> float:
    """Algorithm 2 as printed, with the same arguments: 0 where there is room, else one running task's end for each task
    of the queue and one for the new one. inf = never."""
    if needed.fits_in(free.smaller(total)):
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


#: (what the node has, what is free, what runs, what waits in the order of starting, what a newcomer needs, now)
#: -> s until the newcomer starts; inf, NaN or negative: never
WaitPolicy = Callable[[Resource, Resource, Sequence[RunningTask], Sequence[QueuedTask], Resource, float], float]

WAITS: Final[PolicyTable[WaitPolicy]] = PolicyTable(
    "wait", {"resources": wait_estimate, "slots": slot_wait_estimate}, instead="resources"
)


def _needs(queued: Iterable[QueuedTask]) -> Iterator[tuple[Resource, float]]:
    """What each takes and for how long."""
    for task in queued:
        yield task.resource, limits.duration(task.facts.estimate)


def _starts(
    total: Resource, free: Resource, running: list[RunningTask], needs: Iterable[tuple[Resource, float]], now: float
) -> Iterator[float]:
    """When each of those that wait starts, all kinds of resources considered."""
    ends = [(limits.duration(task.remaining(now)), place, task.resource) for place, task in enumerate(running)]
    heapify(ends)
    place, waited = len(ends), 0.0
    room = free.smaller(total)
    for needed, runs in needs:
        while waited < inf and ends and not needed.fits_in(room):
            waited, _, freed = heappop(ends)
            room += freed
        yield waited
        room -= needed
        place += 1
        heappush(ends, (waited + runs, place, needed))


def _by_memory_and_cores(
    total: Resource,
    free: Resource,
    running: list[RunningTask],
    queued: list[QueuedTask],
    needed: Resource,
    now: float,
) -> float | None:
    """The last of `_starts` where no task needs a further kind of resource, None where one does. That is nearly never,
    and every node asks at every heartbeat: so it is written out, `limits.duration` too."""
    longest = limits.LONGEST_S
    ends = []
    for place, task in enumerate(running):
        held = task.resource
        if held.extras:
            return None
        left = task.facts.estimate
        if left is not None and left >= 0.0:
            # one that has not overrun its estimate has the rest of it left, whatever `remaining` says of the others
            ran = now - task.since
            left = (left - ran if ran > 0.0 else left) if ran <= left else task.remaining(now)
        end = left if left is not None and 0.0 <= left <= longest else inf
        ends.append((end, place, held.memory_mb, held.vcores))
    heapify(ends)
    place, waited = len(ends), 0.0
    memory, cores = min(free.memory_mb, total.memory_mb), min(free.vcores, total.vcores)
    for waiting in queued:
        size = waiting.resource
        if size.extras:
            return None
        memory_mb, vcores = size.memory_mb, size.vcores
        while ends and (memory_mb > memory or vcores > cores):
            waited, _, freed_mb, freed_cores = heappop(ends)
            if waited == inf:
                return inf
            memory += freed_mb
            cores += freed_cores
        memory -= memory_mb
        cores -= vcores
        place += 1
        runs = waiting.facts.estimate
        end = waited + runs if runs is not None and 0.0 <= runs <= longest else inf
        heappush(ends, (end, place, memory_mb, vcores))
    while ends and waited < inf and (needed.memory_mb > memory or needed.vcores > cores):
        waited, _, freed_mb, freed_cores = heappop(ends)
        memory += freed_mb
        cores += freed_cores
    return waited
