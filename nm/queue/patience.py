"""How long a guaranteed container may wait before its node gives it back.

`max_wait_s` counts from when its task was queued first, at whatever node. Where the master did not say that it
tolerates waiting, `TaskFacts.most_wait_s` counts besides, from when the container came here: about then that master
took it for running, and it must not look stuck.
"""

from typing import Final

from yaqd.policies.queueing.facts import QueuedTask

#: the part of `max_wait_s` that a container may wait here however long it had waited elsewhere: where room is being
#: made for it, it must not be sent away meanwhile
_LEAST_STAY: Final = 0.1


def due(task: QueuedTask, max_wait_s: float) -> float:
    """When it goes back."""
    at, came = task.since + max_wait_s, task.came
    if came is None:
        return at
    return min(max(at, came + max_wait_s * _LEAST_STAY), came + task.facts.most_wait_s)


def why_back(task: QueuedTask, max_wait_s: float, now: float) -> str:
    """What its master is told."""
    waited_s, limit = now - task.since, f"{max_wait_s:g} s (yaq.queue.max-wait)"
    if task.came is not None and now < task.since + max_wait_s:
        waited_s = now - task.came
        limit = (
            f"{task.facts.most_wait_s:g} s (yaq.queue.max-wait-unaware: its application master does not say that its "
            "containers may wait)"
        )
    return (
        f"Container preempted before it ran: it waited {waited_s:.1f} s in the queues of nodes, of at most {limit}, "
        "and is to be placed again."
    )
