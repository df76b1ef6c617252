"""How long a container may wait before its node gives it back.

`max_wait_s`, for guaranteed ones alone, counts from when its task was queued first, at whatever node. Where the master
did not say that it tolerates waiting, `TaskFacts.most_wait_s` counts besides, for both kinds, from when the container
came here: about then that master took it for running, and it must not look stuck. Not every such master takes one that
comes back for nobody's fault (Hadoop's distributed shell does not). So it goes before all others of its line first, and
back only where that does not help.
"""

import math
from collections.abc import Container, Iterator, Mapping
from typing import Final

from nm.node_queue.words import WAITED_TOO_LONG
from yaqd.model import ContainerId, ExecutionType
from yaqd.policies.queueing.facts import QueuedTask

#: the part of `max_wait_s` that a container may wait here however long it had waited elsewhere: where room is being
#: made for it, it must not be sent away meanwhile
_LEAST_STAY: Final = 0.1
#: times `most_wait_s` after which a container goes back that has gone before all others since it waited so long
_UNHELPED: Final = 3
#: and it stays so long at least, s: where none is sent to wait, its room is what a container leaves that is just ending
_ENDS_WITHIN_S: Final = 6.0


def due(task: QueuedTask, max_wait_s: float) -> float:
    """Returns when the container goes back; inf: never."""
    at, came = task.since + max_wait_s, task.came
    if came is None:
        return at
    return min(max(at, came + max_wait_s * _LEAST_STAY), came + _stays_s(task))


def _stays_s(task: QueuedTask) -> float:
    """How long its master may take it for running while it waits, once it goes before all others."""
    return max(task.facts.most_wait_s * _UNHELPED, _ENDS_WITHIN_S)


def goes_back(
    lines: Mapping[ExecutionType, Mapping[ContainerId, QueuedTask]], masters: Container[ContainerId], max_wait_s: float
) -> Iterator[tuple[QueuedTask, float]]:
    """Yields the containers that may go back, and how long each waits at most, s, at all nodes together.

    Opportunistic containers wait however long, as far as their masters know that they wait.
    """
    for kind, line in lines.items():
        most_s = max_wait_s if kind is ExecutionType.GUARANTEED else math.inf
        for container_id, task in line.items():
            if container_id not in masters:
                yield task, most_s


def is_late(task: QueuedTask, now: float) -> bool:
    """Returns whether its master has taken the container for running for too long."""
    return task.came is not None and now - task.came >= task.facts.most_wait_s


def late_first(line: list[QueuedTask], now: float) -> list[QueuedTask]:
    """Returns the line with late containers before all others, those that came first before the rest of them."""
    late = sorted((task for task in line if is_late(task, now)), key=lambda task: task.came or 0.0)
    return [*late, *[task for task in line if not is_late(task, now)]] if late else line


def why_back(task: QueuedTask, max_wait_s: float, now: float) -> str:
    """Returns what the container's master is told."""
    waited_s, limit = now - task.since, f"{max_wait_s:g} s (yaq.queue.max-wait)"
    if task.came is not None and now < task.since + max_wait_s:
        waited_s = now - task.came
        limit = (
            f"{_stays_s(task):g} s (yaq.queue.max-wait-unaware: its application master does not say that its "
            "containers may wait)"
        )
    return (
        f"{WAITED_TOO_LONG} it waited {waited_s:.1f} s in the queues of nodes, of at most {limit}, "
        "and is to be placed again."
    )
