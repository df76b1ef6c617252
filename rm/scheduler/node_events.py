"""What the scheduler is told about nodes, and what it does about it."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rm.scheduler.asks.updates import Updates
from rm.scheduler.assign.assigner import Assigner
from rm.scheduler.decisions import Outcome
from rm.scheduler.events import (
    Elapsed,
    NodeBeat,
    NodeDraining,
    NodeJoined,
    NodeLeft,
    NodeResized,
    NodeSilent,
    PassDue,
)
from rm.scheduler.holds.ends import is_void
from rm.scheduler.opportunistic.placing import Opportunistic
from rm.scheduler.queues.starting import Starting
from rm.scheduler.view.cluster import ClusterView
from rm.scheduler.view.node import NodeView


class NodeEvents:
    def __init__(
        self,
        view: ClusterView,
        assigner: Assigner,
        updates: Updates,
        opportunistic: Opportunistic,
        starting: Starting,
    ) -> None:
        self._view = view
        self._assigner = assigner
        self._updates = updates
        self._opportunistic = opportunistic
        self._queues = view.node_queues
        self._starting = starting

    def handlers(self) -> dict[type[Any], Callable[[Any, float], Iterable[Outcome]]]:
        return {
            NodeJoined: self._joined,
            NodeLeft: self._left,
            NodeResized: self._resized,
            NodeDraining: self._draining,
            NodeBeat: self._beat,
            NodeSilent: self._silent,
            PassDue: self._pass_due,
            Elapsed: self._elapsed,
        }

    def _joined(self, event: NodeJoined, now: float) -> Iterator[Outcome]:
        if self._view.nodes.get(event.node_id) is not None:
            return
        node = NodeView(event.node_id, event.rack, event.total)
        for container_id in event.containers:
            held = self._view.containers.get(container_id)
            if held is not None and held.node_id == node.id:
                node.containers[container_id] = held.resource
                node.free = node.free - held.resource
                if held.is_master:
                    node.masters = node.masters + held.resource
        self._view.nodes.add(node)
        self._opportunistic.node_joined(node, event.containers)
        self._view.set_limits()
        yield from self._assigner.fill(node, now)
        yield from self._starting.admit_everywhere(now)

    def _left(self, event: NodeLeft, now: float) -> Iterator[Outcome]:
        node = self._view.nodes.get(event.node_id)
        if node is None:
            return
        yield from self._assigner.left(node)
        self._view.nodes.remove(node)
        self._queues.left(node)
        self._opportunistic.node_left(node.id)
        self._updates.node_left(node.id)
        self._view.set_limits()
        yield from self._starting.shrunk(now)

    def _resized(self, event: NodeResized, now: float) -> Iterator[Outcome]:
        node = self._view.nodes.get(event.node_id)
        if node is None or (node.total == event.total and not node.is_draining):
            return
        node.is_draining = False
        self._view.nodes.resize(node, event.total)
        if node.hold is not None and is_void(self._view, node.hold):
            yield from self._view.holds.end(node.hold, "the node has become too small for the ask")
        self._queues.resized(node)
        self._view.set_limits()
        yield from self._starting.shrunk(now)
        yield from self._assigner.fill(node, now)
        yield from self._starting.admit_everywhere(now)

    def _draining(self, event: NodeDraining, now: float) -> Iterator[Outcome]:
        node = self._view.nodes.get(event.node_id)
        if node is None or node.is_draining:
            return
        if node.hold is not None:
            yield from self._view.holds.end(node.hold, "the node is drained")
        node.is_draining = True
        self._assigner.shrink(node)
        yield from self._starting.shrunk(now)

    def _silent(self, event: NodeSilent, now: float) -> Iterator[Outcome]:
        node = self._view.nodes.get(event.node_id)
        if node is None:
            return
        if node.hold is not None and node.queue.is_filled:
            yield from self._view.holds.end(node.hold, "the node has not been heard of")
        self._queues.silent(node)
        self._opportunistic.choose_again()

    def _elapsed(self, event: Elapsed, now: float) -> Iterable[Outcome]:
        self._opportunistic.elapsed(now)
        return ()

    def _pass_due(self, event: PassDue, now: float) -> Iterator[Outcome]:
        for node_id in event.nodes:
            node = self._view.nodes.get(node_id)
            if node is not None:
                yield from self._assigner.offer(node, now)

    def _beat(self, event: NodeBeat, now: float) -> Iterable[Outcome]:
        node = self._view.nodes.get(event.node_id)
        return self._assigner.beat(node, now) if node is not None else ()
