"""How long a guaranteed container may wait before its node gives it back.

`max_wait_s` counts from when its task was queued first, at whatever node. Where the master did not say that it
tolerates waiting, `TaskFacts.most_wait_s` counts besides, from when the container came here: about then that master
took it for running, and it must not look stuck. Not every such master takes one that comes back for nobody's fault
(Hadoop's distributed shell does not), so it goes before all others first, and back only where that does not help.
"""

from typing import Final

from yaqd.policies.queueing.facts import QueuedTask

#: the part of `max_wait_s` that a container may wait here however long it had waited elsewhere: where room is being
#: made for it, it must not be sent away meanwhile
_LEAST_STAY: Final = 0.1
#: times `most_wait_s` after which a container goes back that has gone before all others since it waited so long
_UNHELPED: Final = 3


def due(task: QueuedTask, max_wait_s: float) -> float:
    """When it goes back."""
    at, came = task.since + max_wait_s, task.came
    if came is None:
        return at
    return min(max(at, came + max_wait_s * _LEAST_STAY), came + task.facts.most_wait_s * _UNHELPED)


def is_late(task: QueuedTask, now: float) -> bool:
    """Has its master taken it for running for too long?"""
    return task.came is not None and now - task.came >= task.facts.most_wait_s


def late_first(line: list[QueuedTask], now: float) -> list[QueuedTask]:
    """The same in the order of their turns: the late ones go before all others, who came first before."""
    late = sorted((task for task in line if is_late(task, now)), key=lambda task: task.came or 0.0)
    return [*late, *(task for task in line if not is_late(task, now))] if late else line


def why_back(task: QueuedTask, max_wait_s: float, now: float) -> str:
    """What its master is told."""
    waited_s, limit = now - task.since, f"{max_wait_s:g} s (yaq.queue.max-wait)"
    if task.came is not None and now < task.since + max_wait_s:
        waited_s = now - task.came
        limit = (
            f"{task.facts.most_wait_s * _UNHELPED:g} s ({_UNHELPED} times yaq.queue.max-wait-unaware: its application "
            "master does not say that its containers may wait)"
        )
    return (
        f"Container preempted before it ran: it waited {waited_s:.1f} s in the queues of nodes, of at most {limit}, "
        "and is to be placed again."
    )
