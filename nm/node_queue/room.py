"""What a node has and what runs on it, and which of that ends where guaranteed containers need the room."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from nm.node_queue.held import HeldStarts
from yaqd.model import ApplicationId, ContainerId, ExecutionType, Resource
from yaqd.policies.queueing.facts import QueuedTask, RunningTask, TaskFacts


class Running(NamedTuple):
    task: RunningTask
    kind: ExecutionType

    @property
    def is_opportunistic(self) -> bool:
        return self.kind is ExecutionType.OPPORTUNISTIC


class NodeRoom:
    """Invariant: `used` is the sum over what runs."""

    def __init__(self, capacity: Resource) -> None:
        self.capacity = capacity
        self.used = Resource()
        #: in the order of their start
        self.running: dict[ContainerId, Running] = {}
        #: those of them that were told to make room: as good as gone
        self.leaving: set[ContainerId] = set()
        #: opportunistic ones among those that run
        self.opportunistic = 0

    @property
    def free(self) -> Resource:
        """Negative where containers were started beyond what the node has."""
        return self.capacity - self.used

    @property
    def opportunistic_used(self) -> Resource:
        used = Resource()
        if self.opportunistic:
            for held in self.running.values():
                if held.is_opportunistic:
                    used += held.task.resource
        return used

    def take(self, task: QueuedTask, kind: ExecutionType, now: float) -> None:
        running = RunningTask(task.container_id, task.resource, task.facts, now)
        self.running[task.container_id] = Running(running, kind)
        self.used += task.resource
        self.opportunistic += kind is ExecutionType.OPPORTUNISTIC

    def release(self, container_id: ContainerId) -> None:
        held = self.running.pop(container_id, None)
        if held is not None:
            self.used -= held.task.resource
            if self.leaving:
                self.leaving.discard(container_id)
            self.opportunistic -= held.is_opportunistic

    def began(self, container_id: ContainerId, now: float) -> None:
        """Count its time from now on, where it runs."""
        held = self.running.get(container_id)
        if held is not None:
            self.running[container_id] = held._replace(task=replace(held.task, since=now))

    def resize(self, container_id: ContainerId, resource: Resource, kind: ExecutionType) -> bool:
        """Returns whether it runs here."""
        held = self.running.get(container_id)
        if held is None:
            return False
        self.running[container_id] = now = Running(replace(held.task, resource=resource), kind)
        self.used = self.used - held.task.resource + resource
        self.opportunistic += now.is_opportunistic - held.is_opportunistic
        return True

    def revise(self, jobs: Collection[ApplicationId], revised: Callable[[TaskFacts], TaskFacts]) -> None:
        """Take other facts for what runs of these jobs."""
        for container_id, held in self.running.items():
            if held.task.facts.job in jobs and (facts := revised(held.task.facts)) is not held.task.facts:
                self.running[container_id] = held._replace(task=replace(held.task, facts=facts))

    def make_room(self, waiting: Collection[QueuedTask]) -> Iterator[ContainerId]:
        """Yields the opportunistic containers that end for guaranteed ones, the youngest first.

        They end while the guaranteed ones, `waiting` or grown, do not fit into the node beside them.
        """
        if not self.opportunistic or (not waiting and len(self.running) == self.opportunistic):
            return
        wanted = self.used
        for task in waiting:
            wanted += task.resource
        for container_id in self.leaving:
            wanted -= self.running[container_id].task.resource
        staying = [(c, held) for c, held in self.running.items() if held.is_opportunistic and c not in self.leaving]
        for container_id, held in reversed(staying):
            if wanted.fits_in(self.capacity):
                return
            wanted -= held.task.resource
            self.leaving.add(container_id)
            yield container_id

    def tasks(self, held_starts: HeldStarts, now: float) -> list[RunningTask]:
        """Lists what runs, for estimates: a container that was told to end will do so at once."""
        return self._expected(self.running.values(), held_starts, now)

    def guaranteed_tasks(self, held_starts: HeldStarts, now: float) -> list[RunningTask]:
        """Lists what runs without opportunistic containers, which would make room."""
        return self._expected([held for held in self.running.values() if not held.is_opportunistic], held_starts, now)

    def _expected(self, running: Iterable[Running], held_starts: HeldStarts, now: float) -> list[RunningTask]:
        tasks = [held.task for held in running]
        if held_starts.left_s:
            tasks = [held_starts.put_off(task, now) for task in tasks]
        leaving = self.leaving
        return [_ending(task, now) if task.container_id in leaving else task for task in tasks] if leaving else tasks

    def validate(self) -> None:
        total = Resource()
        for held in self.running.values():
            total += held.task.resource
        assert total.memory_mb == self.used.memory_mb and total.vcores == self.used.vcores, (total, self.used)
        assert sum(held.is_opportunistic for held in self.running.values()) == self.opportunistic
        assert self.leaving <= self.running.keys()


def _ending(task: RunningTask, now: float) -> RunningTask:
    return replace(task, facts=replace(task.facts, estimate=0.0), since=now)
