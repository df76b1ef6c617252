"""Changes of containers that are there: more or less resources, guaranteed or opportunistic.

Giving back is done at once. What takes more than before must fit in the container's own node and in its queues, and
waits until it does. It is given room there before new containers are. One change per container waits at a time, and a
later one replaces it, as in Hadoop's ContainerUpdateContext.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from rm.scheduler.decisions import Update
from rm.scheduler.events import UpdateAsked
from rm.scheduler.opportunistic.placing import Opportunistic
from rm.scheduler.view.cluster import ClusterView
from rm.scheduler.view.node import NodeView
from rm.scheduler.view.records import AppView
from yaqd.model import ContainerId, ExecutionType, NodeId, Resource


@dataclass(frozen=True, slots=True)
class _Now:
    """How a container is booked."""

    app: AppView
    node: NodeView
    resource: Resource
    execution_type: ExecutionType
    is_master: bool
    priority: int


class Updates:
    def __init__(self, view: ClusterView, opportunistic: Opportunistic) -> None:
        self._view = view
        self._opportunistic = opportunistic
        self._waiting: dict[NodeId, dict[ContainerId, UpdateAsked]] = {}

    @property
    def waiting(self) -> int:
        """Changes that wait for room."""
        return sum(len(asked) for asked in self._waiting.values())

    @property
    def any_waiting(self) -> bool:
        return bool(self._waiting)

    def is_waiting(self, container_id: ContainerId, node_id: NodeId) -> bool:
        return container_id in self._waiting.get(node_id, {})

    def forget(self, container_id: ContainerId, node_id: NodeId) -> None:
        """Forget the waiting change of a container that is over, or whose change is replaced."""
        asked = self._waiting.get(node_id) if self._waiting else None
        if asked is not None and asked.pop(container_id, None) is not None and not asked:
            del self._waiting[node_id]

    def node_left(self, node_id: NodeId) -> None:
        self._waiting.pop(node_id, None)

    def ask(self, event: UpdateAsked) -> Iterator[Update]:
        """Carry a change out where there is room, or keep it until there is."""
        now = self._now(event.container_id)
        if now is None:
            return
        self.forget(event.container_id, now.node.id)
        if self._has_room(event, now):
            yield self._book(event, now)
        else:
            self._waiting.setdefault(now.node.id, {})[event.container_id] = event

    def settle(self, node: NodeView) -> Iterator[Update]:
        """Carry out the changes that waited for room on this node and fit now, the longest waiting first."""
        if not self._waiting:
            return
        for event in list(self._waiting.get(node.id, {}).values()):
            now = self._now(event.container_id)
            if now is None or self._has_room(event, now):
                self.forget(event.container_id, node.id)
                if now is not None:
                    yield self._book(event, now)

    def _now(self, container_id: ContainerId) -> _Now | None:
        """Return how the container is booked; None for one that is over, or about to be because its application or its
        node is."""
        held, placed = self._view.containers.get(container_id), self._opportunistic.containers.get(container_id)
        app = self._view.applications.get(container_id.application_id)
        known = held or placed
        node = self._view.nodes.get(known.node_id) if known is not None else None
        if known is None or app is None or node is None:
            return None
        kind = ExecutionType.OPPORTUNISTIC if held is None else ExecutionType.GUARANTEED
        return _Now(app, node, known.resource, kind, held is not None and held.is_master, known.priority)

    def _has_room(self, event: UpdateAsked, now: _Now) -> bool:
        if event.execution_type is ExecutionType.OPPORTUNISTIC:
            return True
        before = now.resource if now.execution_type is ExecutionType.GUARANTEED else Resource()
        more = (event.resource - before).floored()
        return more.is_zero() or (
            self._view.calculator.fits(more, now.node.free) and self._view.has_room(now.app.leaf, more)
        )

    def _book(self, event: UpdateAsked, now: _Now) -> Update:
        """Move the charge."""
        container_id = event.container_id
        if now.execution_type is ExecutionType.OPPORTUNISTIC:
            self._opportunistic.release(container_id)
        else:
            self._view.discharge(container_id)
        if event.execution_type is ExecutionType.OPPORTUNISTIC:
            self._opportunistic.adopt(container_id, now.node.id, event.resource, now.priority)
        else:
            self._view.charge(container_id, now.app, now.node, event.resource, now.is_master, now.priority)
        self._view.node_queues.resized(now.node)
        attempt = now.app.attempt
        if attempt is not None and attempt.filed_at is not None:
            self._view.file(attempt)
        return Update(container_id, event.resource, event.execution_type)
