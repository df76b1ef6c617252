"""What runs on a node, and which of it ends where guaranteed containers need the room."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from nm.node_queue.held import HeldStarts
from yaqd.model import ContainerId, ExecutionType, Resource
from yaqd.policies.queueing.facts import QueuedTask, RunningTask


class Running(NamedTuple):
    task: RunningTask
    kind: ExecutionType

    @property
    def is_opportunistic(self) -> bool:
        return self.kind is ExecutionType.OPPORTUNISTIC


def in_the_way(
    capacity: Resource,
    used: Resource,
    running: Mapping[ContainerId, Running],
    waiting: Iterable[QueuedTask],
    leaving: Collection[ContainerId],
) -> Iterator[ContainerId]:
    """Opportunistic containers that end so that what waits has room, the youngest first.

    `running` in the order of their start; `leaving`: those told already, as good as gone.
    """
    wanted = used
    for task in waiting:
        wanted += task.resource
    for container_id in leaving:
        wanted -= running[container_id].task.resource
    staying = [(c, held) for c, held in running.items() if held.is_opportunistic and c not in leaving]
    for container_id, held in reversed(staying):
        if wanted.fits_in(capacity):
            return
        wanted -= held.task.resource
        yield container_id


def running_tasks(
    running: Mapping[ContainerId, Running], leaving: Collection[ContainerId], held_starts: HeldStarts, now: float
) -> list[RunningTask]:
    """For estimates: one that was told to end will do so at once, whatever was expected of it."""
    tasks = [held.task for held in running.values()]
    if held_starts.left_s:
        tasks = [held_starts.put_off(task, now) for task in tasks]
    return [_ending(task, now) if task.container_id in leaving else task for task in tasks] if leaving else tasks


def _ending(task: RunningTask, now: float) -> RunningTask:
    return replace(task, facts=replace(task.facts, estimate=0.0), since=now)
