"""The two lines of containers that wait at a node, and whose turn comes next in each.

Where the ResourceManager fills the node queue, application masters go first. Then goes whoever has waited for longer
than its master may know (`nm.node_queue.patience`), then whom the ordering picks.
"""

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from nm.node_queue.jobs import Jobs
from nm.node_queue.order import first_of, in_order
from nm.node_queue.patience import due, goes_back, is_late, late_first, why_back
from nm.node_queue.room import NodeRoom
from nm.node_queue.settings import NodeQueueSettings
from yaqd.model import ApplicationId, ContainerId, ExecutionType, Resource
from yaqd.policies.queueing.facts import QueuedTask, TaskFacts
from yaqd.policies.queueing.order import Ordering


class Lines:
    """Each in the order of arrival. A container is in one of both at most."""

    def __init__(self, jobs: Jobs, settings: NodeQueueSettings) -> None:
        self._jobs = jobs
        self.settings = settings
        self.guaranteed: dict[ContainerId, QueuedTask] = {}
        self.opportunistic: dict[ContainerId, QueuedTask] = {}
        self.of = {ExecutionType.GUARANTEED: self.guaranteed, ExecutionType.OPPORTUNISTIC: self.opportunistic}
        #: application masters that wait: for the ResourceManager's orders to come, or for devices
        self.masters: dict[ContainerId, None] = {}

    def __contains__(self, container_id: ContainerId) -> bool:
        return container_id in self.guaranteed or container_id in self.opportunistic

    def __bool__(self) -> bool:
        return bool(self.guaranteed or self.opportunistic)

    def __len__(self) -> int:
        return len(self.guaranteed) + len(self.opportunistic)

    def tasks(self) -> Iterator[QueuedTask]:
        yield from self.guaranteed.values()
        yield from self.opportunistic.values()

    def remove(self, container_id: ContainerId) -> None:
        self.guaranteed.pop(container_id, None)
        self.opportunistic.pop(container_id, None)
        self.masters.pop(container_id, None)

    def starts(self, task: QueuedTask, kind: ExecutionType) -> None:
        """Take out one whose turn has come; whoever is passed by it keeps the turn that the ordering owes it."""
        line = self.of[kind]
        del line[task.container_id]
        self.masters.pop(task.container_id, None)
        ordering = self._ordering(kind)
        passed = ordering.passed(line.values(), task) if ordering is not None else None
        if passed is not None:
            line[passed.container_id] = passed

    def resize(self, container_id: ContainerId, resource: Resource, kind: ExecutionType) -> None:
        for before, line in self.of.items():
            if container_id in line:
                waiting = replace(line[container_id], resource=resource)
                if before is not kind:
                    del line[container_id]
                self.of[kind][container_id] = waiting
                return

    def revise(self, jobs: Collection[ApplicationId], revised: Callable[[TaskFacts], TaskFacts]) -> None:
        """Take other facts for what waits of these jobs."""
        for line in self.of.values():
            for container_id, waiting in line.items():
                if waiting.facts.job in jobs and (facts := revised(waiting.facts)) is not waiting.facts:
                    line[container_id] = replace(waiting, facts=facts)

    # Turns ------------------------------------------------------------------------------------------------------------

    def first(self, kind: ExecutionType, now: float, room: NodeRoom) -> QueuedTask:
        """Returns the container whose turn it is, in a line that is not empty."""
        line = self.of[kind]
        if len(line) == 1:
            return next(iter(line.values()))
        if self.settings.enabled:
            for container_id in self.masters:
                if container_id in line:
                    return line[container_id]
            late = [task for task in line.values() if is_late(task, now)]
            if late:
                return late_first(late, now)[0]
        return first_of(line.values(), self._ordering(kind), self._jobs.facts, now, room.free)

    def in_order(self, now: float) -> list[QueuedTask]:
        """Lists all that wait, as they would start if nothing changed."""
        waiting: list[QueuedTask] = []
        for kind, line in self.of.items():
            if line:
                waiting += self._in_order(kind, now)
        if self.settings.enabled and self.masters:
            waiting.sort(key=lambda task: task.container_id not in self.masters)  # stable
        return waiting

    def _in_order(self, kind: ExecutionType, now: float) -> list[QueuedTask]:
        ordered = in_order(self.of[kind].values(), self._ordering(kind), self._jobs.facts, now)
        return late_first(ordered, now) if self.settings.enabled else ordered

    def _ordering(self, kind: ExecutionType) -> Ordering | None:
        is_ordered = self.settings.enabled or kind is ExecutionType.OPPORTUNISTIC
        return self.settings.ordering if is_ordered else None

    # What waits no longer ---------------------------------------------------------------------------------------------

    def cut(self, kind: ExecutionType, most: int, now: float) -> Iterator[ContainerId]:
        """Take out the last of the line beyond so many, as it would start: guaranteed masters never."""
        line = self.of[kind]
        if len(line) <= most:
            return
        for container_id in [task.container_id for task in self._in_order(kind, now)[most:]]:
            if line is self.opportunistic or container_id not in self.masters:
                self.remove(container_id)
                yield container_id

    def next_due(self) -> float | None:
        """Returns when the next container has waited too long; None: none will."""
        if not self.settings.enabled:
            return None
        waiting = goes_back(self.of, self.masters, self.settings.max_wait_s)
        first = min((due(task, most_s) for task, most_s in waiting), default=math.inf)
        return first if first < math.inf else None

    def overdue(self, now: float) -> list[tuple[ContainerId, str]]:
        """Returns the containers that have waited too long, each with what its master is told."""
        if not self.settings.enabled:
            return []
        waiting = goes_back(self.of, self.masters, self.settings.max_wait_s)
        return [
            (task.container_id, why_back(task, most_s, now)) for task, most_s in waiting if due(task, most_s) <= now
        ]

    def validate(self) -> None:
        assert not self.guaranteed.keys() & self.opportunistic.keys()
        assert all(task.container_id == key for line in self.of.values() for key, task in line.items())
        assert all(master in self for master in self.masters)
