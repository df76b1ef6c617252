"""The queue between accepting a container and launching it: pure, events in, decisions out.

First in, first out by the node's resources: a container starts when everything before it has started and it fits in
what is free. The queue is bounded, and what does not fit in it is refused at once rather than kept waiting. A
container larger than the whole node starts when the node is empty: the scheduler granted it, and waiting would be
for ever. Neither clock nor identifiers are made here, so the simulator drives the same object.
"""

from collections import OrderedDict
from dataclasses import dataclass

from yaqd.model import ContainerId, ExecutionType, Resource


@dataclass(frozen=True, slots=True)
class Arrived:
    """A container whose files are on the node and that may start from now on."""

    container_id: ContainerId
    resource: Resource
    execution_type: ExecutionType


@dataclass(frozen=True, slots=True)
class Ended:
    """A container that no longer runs or no longer wants to, wherever it stood."""

    container_id: ContainerId


@dataclass(frozen=True, slots=True)
class Resized:
    """A container whose allocation was changed by the ResourceManager."""

    container_id: ContainerId
    resource: Resource


@dataclass(frozen=True, slots=True)
class CapacityChanged:
    capacity: Resource


Event = Arrived | Ended | Resized | CapacityChanged


@dataclass(frozen=True, slots=True)
class Launch:
    container_id: ContainerId


@dataclass(frozen=True, slots=True)
class Refuse:
    """The container must end without having run."""

    container_id: ContainerId
    reason: str


Decision = Launch | Refuse


@dataclass(frozen=True, slots=True)
class QueueStatistics:
    #: containers that hold resources
    running: int
    #: containers that wait
    queued: int
    #: resources held
    used: Resource


class NodeQueue:
    """Invariants: a container is queued or running, never both; used is the sum over the running ones."""

    def __init__(self, capacity: Resource, *, max_length: int, by_resources: bool = True) -> None:
        self._capacity = capacity
        self._max_length = max_length
        #: False launches at once whatever is free, as a stock NodeManager without queueing does
        self._by_resources = by_resources
        self._queued: OrderedDict[ContainerId, Arrived] = OrderedDict()
        self._running: dict[ContainerId, Resource] = {}
        self._used = Resource()

    def handle(self, event: Event, now: float) -> list[Decision]:
        """The only entry; `now` in seconds."""
        match event:
            case Arrived():
                return self._arrived(event)
            case Ended(container_id):
                self._queued.pop(container_id, None)
                held = self._running.pop(container_id, None)
                if held is not None:
                    self._used -= held
            case Resized(container_id, resource):
                self._resize(container_id, resource)
            case CapacityChanged(capacity):
                self._capacity = capacity
        return self._launch_ready()

    def _arrived(self, event: Arrived) -> list[Decision]:
        container_id = event.container_id
        if container_id in self._queued or container_id in self._running:
            return []
        self._queued[container_id] = event
        decisions = self._launch_ready()
        if container_id in self._queued and len(self._queued) > self._max_length:
            del self._queued[container_id]
            decisions.append(Refuse(container_id, f"the node's queue is full ({self._max_length} containers wait)"))
        return decisions

    def _resize(self, container_id: ContainerId, resource: Resource) -> None:
        held = self._running.get(container_id)
        if held is not None:
            self._running[container_id] = resource
            self._used = self._used - held + resource
        waiting = self._queued.get(container_id)
        if waiting is not None:
            self._queued[container_id] = Arrived(container_id, resource, waiting.execution_type)

    def _launch_ready(self) -> list[Decision]:
        decisions: list[Decision] = []
        while self._queued:
            container_id, first = next(iter(self._queued.items()))
            if self._by_resources and self._running and not (self._used + first.resource).fits_in(self._capacity):
                break
            del self._queued[container_id]
            self._running[container_id] = first.resource
            self._used += first.resource
            decisions.append(Launch(container_id))
        return decisions

    def statistics(self) -> QueueStatistics:
        return QueueStatistics(len(self._running), len(self._queued), self._used)

    def validate(self) -> None:
        """Raises AssertionError when an invariant does not hold; tests call it after every event."""
        assert not self._queued.keys() & self._running.keys()
        total = Resource()
        for held in self._running.values():
            total += held
        assert total.memory_mb == self._used.memory_mb and total.vcores == self._used.vcores, (total, self._used)
        assert len(self._queued) <= self._max_length
