"""The queue between accepting a container and launching it: pure, events in, decisions out.

Two lines, each first in, first out by the node's resources, as Hadoop's ContainerScheduler has them. A guaranteed
container starts when every guaranteed one before it has started and it fits in what is free; an opportunistic one when
besides that no guaranteed one waits. Where running opportunistic containers stand in the way of guaranteed ones they
are ended, the youngest first, and count as good as gone from then on. Both lines are bounded, and what does not fit in
its line is refused at once rather than kept waiting. A container larger than the whole node starts when the node is
empty: the scheduler granted it, and waiting would be for ever. Neither clock nor identifiers are made here, so the
simulator drives the same object.
"""

from collections.abc import Iterator
from enum import Enum, auto
from typing import Final

from nm.queue.events import (
    Arrived,
    CapacityChanged,
    Decision,
    Ended,
    Event,
    Launch,
    OpportunisticLimit,
    Preempt,
    QueueStatistics,
    Refuse,
    Updated,
)
from yaqd.model import ContainerId, ExecutionType, ExitStatus, Resource

# Hadoop's words, which masters may look for.
_QUEUE_FULL: Final = "Opportunistic container queue is full."
_MAKE_ROOM: Final = "Container Killed to make room for Guaranteed Container."
_DEQUEUED: Final = "Container De-queued to meet NM queuing limits."


class OpportunisticPolicy(Enum):
    """When an opportunistic container may wait (`yarn.nodemanager.opportunistic-containers-queue-policy`)."""

    #: as long as fewer than the limit wait
    BY_QUEUE_LEN = auto()
    #: as long as everything here, waiting or running, fits in the node at once
    BY_RESOURCES = auto()


class NodeQueue:
    """Invariants: a container is in one of both lines or running; used is the sum over the running ones."""

    def __init__(
        self,
        capacity: Resource,
        *,
        max_length: int,
        by_resources: bool = True,
        opportunistic_max: int = 0,
        policy: OpportunisticPolicy = OpportunisticPolicy.BY_QUEUE_LEN,
    ) -> None:
        """`max_length` bounds the guaranteed line, `opportunistic_max` the other; 0 there refuses all of its kind."""
        self._capacity = capacity
        self._max_length = max_length
        #: False launches guaranteed containers whatever memory and cores are free, as a stock NodeManager does
        self._by_resources = by_resources
        self._opportunistic_max = opportunistic_max
        self._policy = policy
        self._lines: dict[ExecutionType, dict[ContainerId, Arrived]] = {kind: {} for kind in ExecutionType}
        #: in the order of their start
        self._running: dict[ContainerId, Arrived] = {}
        self._used = Resource()
        #: those of the running ones that were told to make room
        self._leaving: set[ContainerId] = set()
        self._opportunistic_running = 0

    def handle(self, event: Event, now: float) -> list[Decision]:
        """The only entry; `now` in seconds."""
        match event:
            case Arrived():
                return list(self._arrived(event))
            case Ended(container_id):
                self._remove(container_id)
            case Updated():
                self._update(event)
            case CapacityChanged(capacity):
                self._capacity = capacity
            case OpportunisticLimit(max_length):
                return list(self._shed(max_length))
        return list(self._settle())

    # Events -----------------------------------------------------------------------------------------------------------

    def _arrived(self, event: Arrived) -> Iterator[Decision]:
        container_id = event.container_id
        if self._find(container_id) is not None:
            return
        line = self._lines[event.execution_type]
        if event.execution_type is ExecutionType.OPPORTUNISTIC and not self._may_wait(event):
            yield Refuse(container_id, ExitStatus.KILLED_BY_CONTAINER_SCHEDULER, _QUEUE_FULL)
            return
        line[container_id] = event
        yield from self._launch_ready()
        if container_id not in line:
            yield from self._make_room()
        elif event.execution_type is ExecutionType.GUARANTEED and len(line) > self._max_length:
            del line[container_id]
            reason = f"Container refused: the node's queue is full ({self._max_length} containers wait)."
            yield Refuse(container_id, ExitStatus.PREEMPTED, reason)
        else:
            yield from self._make_room()

    def _may_wait(self, newcomer: Arrived) -> bool:
        if self._policy is OpportunisticPolicy.BY_RESOURCES:
            wanted = self._used + newcomer.resource
            for line in self._lines.values():
                for waiting in line.values():
                    wanted += waiting.resource
            return wanted.fits_in(self._capacity)
        return len(self._lines[ExecutionType.OPPORTUNISTIC]) < self._opportunistic_max

    def _remove(self, container_id: ContainerId) -> None:
        for line in self._lines.values():
            line.pop(container_id, None)
        held = self._running.pop(container_id, None)
        if held is not None:
            self._used -= held.resource
            self._leaving.discard(container_id)
            self._opportunistic_running -= held.execution_type is ExecutionType.OPPORTUNISTIC

    def _update(self, event: Updated) -> None:
        before = self._find(event.container_id)
        if before is None:
            return
        now = Arrived(event.container_id, event.resource, event.execution_type)
        if event.container_id in self._running:
            self._running[event.container_id] = now
            self._used = self._used - before.resource + now.resource
            is_opportunistic = now.execution_type is ExecutionType.OPPORTUNISTIC
            self._opportunistic_running += is_opportunistic - (before.execution_type is ExecutionType.OPPORTUNISTIC)
            return
        if now.execution_type is not before.execution_type:
            del self._lines[before.execution_type][event.container_id]
        self._lines[now.execution_type][event.container_id] = now

    def _shed(self, max_length: int) -> Iterator[Decision]:
        line = self._lines[ExecutionType.OPPORTUNISTIC]
        for container_id in list(line)[max_length:] if max_length >= 0 else ():
            del line[container_id]
            yield Refuse(container_id, ExitStatus.KILLED_BY_CONTAINER_SCHEDULER, _DEQUEUED)

    # Decisions --------------------------------------------------------------------------------------------------------

    def _settle(self) -> Iterator[Decision]:
        yield from self._launch_ready()
        yield from self._make_room()

    def _launch_ready(self) -> Iterator[Decision]:
        yield from self._launch_line(ExecutionType.GUARANTEED)
        if not self._lines[ExecutionType.GUARANTEED]:
            yield from self._launch_line(ExecutionType.OPPORTUNISTIC)

    def _launch_line(self, kind: ExecutionType) -> Iterator[Decision]:
        line = self._lines[kind]
        while line:
            container_id, first = next(iter(line.items()))
            if self._running and not self._has_room(first):
                return
            del line[container_id]
            self._running[container_id] = first
            self._used += first.resource
            self._opportunistic_running += kind is ExecutionType.OPPORTUNISTIC
            yield Launch(container_id)

    def _has_room(self, container: Arrived) -> bool:
        wanted = self._used + container.resource
        if self._by_resources or container.execution_type is ExecutionType.OPPORTUNISTIC:
            return wanted.fits_in(self._capacity)
        # memory and cores can be shared out more than once; a device cannot
        return all(wanted.extras.get(n, 0) <= self._capacity.extras.get(n, 0) for n in container.resource.extras)

    def _make_room(self) -> Iterator[Decision]:
        """Ends opportunistic containers while guaranteed ones, waiting or grown, have more than the node without."""
        if not self._opportunistic_running:
            return
        waiting = self._lines[ExecutionType.GUARANTEED]
        if not waiting and len(self._running) == self._opportunistic_running:
            return
        wanted = self._used
        for container in waiting.values():
            wanted += container.resource
        for container_id in self._leaving:
            wanted -= self._running[container_id].resource
        for container_id, container in reversed(list(self._running.items())):
            if wanted.fits_in(self._capacity):
                return
            if container.execution_type is ExecutionType.OPPORTUNISTIC and container_id not in self._leaving:
                self._leaving.add(container_id)
                wanted -= container.resource
                yield Preempt(container_id, ExitStatus.KILLED_BY_CONTAINER_SCHEDULER, _MAKE_ROOM)

    # State ------------------------------------------------------------------------------------------------------------

    def _find(self, container_id: ContainerId) -> Arrived | None:
        running = self._running.get(container_id)
        if running is not None:
            return running
        return next((line[container_id] for line in self._lines.values() if container_id in line), None)

    def statistics(self) -> QueueStatistics:
        kind = ExecutionType.OPPORTUNISTIC
        used = Resource()
        if self._opportunistic_running:
            for container in self._running.values():
                if container.execution_type is kind:
                    used += container.resource
        queued = len(self._lines[kind])
        return QueueStatistics(
            running=len(self._running),
            queued=queued + len(self._lines[ExecutionType.GUARANTEED]),
            used=self._used,
            opportunistic_running=self._opportunistic_running,
            opportunistic_queued=queued,
            opportunistic_used=used,
            opportunistic_max=self._opportunistic_max,
        )

    def validate(self) -> None:
        """Raises AssertionError when an invariant does not hold; tests call it after every event."""
        guaranteed, opportunistic = self._lines[ExecutionType.GUARANTEED], self._lines[ExecutionType.OPPORTUNISTIC]
        assert not guaranteed.keys() & opportunistic.keys()
        assert not (guaranteed.keys() | opportunistic.keys()) & self._running.keys()
        assert all(c.execution_type is kind for kind, line in self._lines.items() for c in line.values())
        total = Resource()
        for held in self._running.values():
            total += held.resource
        assert total.memory_mb == self._used.memory_mb and total.vcores == self._used.vcores, (total, self._used)
        kinds = [c.execution_type for c in self._running.values()]
        assert kinds.count(ExecutionType.OPPORTUNISTIC) == self._opportunistic_running
        assert self._leaving <= self._running.keys()
