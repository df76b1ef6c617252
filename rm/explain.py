"""The answers to `yaq explain` and `yaq top`, from the scheduler's decisions and the nodes' last reports."""

import math
from itertools import islice
from typing import Any, Final

from rm.application import Application
from rm.cluster import Cluster
from rm.container import RmContainer
from rm.node import RmNode
from rm.node_queueing import YAQ_QUEUE, NodeQueueing
from rm.scheduler.asks import Ask
from rm.scheduler.node_queue import NodeQueue
from rm.scheduler.view import AttemptView
from rm.scheduler.why import why_waits
from rm.task_records import accuracy
from yaqd.policies.queueing import limits
from yaqd.proto import convert
from yaqd.proto import yarn_server_pb2 as server

#: asks and containers of one answer
_ASKS_MAX: Final = 50
_CONTAINERS_MAX: Final = 200


class Explain:
    def __init__(self, cluster: Cluster, queueing: NodeQueueing) -> None:
        self._cluster = cluster
        self._queueing = queueing

    # ---- one application

    def application(self, app: Application) -> dict[str, Any]:
        view = self._cluster.scheduler.view
        scheduled = view.applications.get(app.id)
        attempt = scheduled.attempt if scheduled is not None else None
        records = self._queueing.records.of(app.id)
        asks = sorted((a for a in attempt.asks if a.pending), key=lambda a: a.key) if attempt is not None else []
        waiting = self._waiting(app)
        return {
            "id": str(app.id),
            "name": app.name,
            "user": app.user,
            "queue": app.queue,
            "state": app.state.name,
            "queueing": self._queueing.is_on,
            "askedFor": sum(ask.pending for ask in asks),
            "asks": [self._ask(attempt, ask) for ask in islice(asks, _ASKS_MAX)] if attempt is not None else [],
            "waitingCount": len(waiting),
            "waiting": waiting[:_CONTAINERS_MAX],
            "ended": [record.as_json() for record in records],
            "accuracy": accuracy(records),
        }

    def _ask(self, attempt: AttemptView, ask: Ask) -> dict[str, Any]:
        why = why_waits(self._cluster.scheduler.view, attempt, ask)
        estimate = self._cluster.scheduler.queues.estimate(attempt.app.id, ask.key[0])
        return {
            "priority": ask.key[0],
            "containers": ask.pending,
            "memoryMb": ask.capability.memory_mb,
            "vcores": ask.capability.vcores,
            "isMaster": ask.is_master,
            "waitingS": round(self._cluster.clock.now() - ask.waiting_since, 3),
            "estimateS": estimate,
            "why": why.reason,
            "applicationsAhead": why.ahead,
            "shortestWaitS": why.shortest_wait_s,
        }

    def _waiting(self, app: Application) -> list[dict[str, Any]]:
        """Its containers that were sent to wait and that no node is known to run."""
        attempt = app.attempt
        found = []
        queues = self._cluster.scheduler.queues
        for node_queue in queues.all():
            node = self._cluster.nodes.get(node_queue.node.id)
            if node is None or attempt is None or not any(c in attempt.containers for c in node_queue.waiting):
                continue
            line = _line(node)
            for container_id in node_queue.waiting:
                container = attempt.containers.get(container_id)
                if container is not None:
                    found.append(self._described(container, node, line))
        return found

    def _described(self, container: RmContainer, node: RmNode, line: list[str]) -> dict[str, Any]:
        allocation, name = container.allocation, str(container.id)
        place = allocation.queued
        said = node.status.yaq_queue.waiting[line.index(name)] if name in line else None
        since_s = self._cluster.clock.now() - container.created_at
        return {
            "container": name,
            "node": str(node.id),
            "priority": allocation.priority,
            "estimateS": self._cluster.scheduler.queues.estimate(container.attempt.app.id, allocation.priority),
            "rule": allocation.reason,
            "placedAgoS": round(since_s, 3),
            "expectedWaitS": None if place is None else round(place.expected_wait_s, 3),
            "wereAhead": None if place is None else place.behind,
            #: as its node said last; None: its master has not started it there
            "waitedS": None if said is None else max(0, said.waited_ms) / 1000,
            "expectedStartInS": None if said is None else _expected_s(said),
            "behind": [] if said is None else line[: line.index(name)],
        }

    # ---- all nodes

    def nodes(self) -> list[dict[str, Any]]:
        return [self._node(node) for node in self._cluster.nodes.values() if node.state.name in _LISTED]

    def _node(self, node: RmNode) -> dict[str, Any]:
        queue = self._queue_of(node)
        has_queue = YAQ_QUEUE in node.capabilities and self._queueing.is_on
        wait = queue.expected_wait() if queue is not None else math.inf
        now, minute, five = node.use.shares()
        return {
            "id": str(node.id),
            "rack": node.rack,
            "state": node.state.name,
            "queues": has_queue,
            "running": queue.running if queue is not None else len(node.running),
            "slots": queue.slots if queue is not None and queue.slots else None,
            "queued": queue.length if queue is not None else 0,
            "bound": queue.bound if queue is not None else 0,
            "waitS": round(wait, 3) if math.isfinite(wait) else None,
            "isDraining": queue is not None and queue.held_for is not None,
            "memoryMb": node.total.memory_mb,
            "usedMb": node.used.memory_mb,
            "utilization": {"now": now, "minute": minute, "fiveMinutes": five},
        }

    def _queue_of(self, node: RmNode) -> NodeQueue | None:
        scheduled = self._cluster.scheduler.view.nodes.get(node.id)
        return scheduled.queue if scheduled is not None else None


_LISTED: Final = ("RUNNING", "UNHEALTHY", "DECOMMISSIONING")


def _expected_s(said: server.QueuedContainer) -> float | None:
    expected_s = limits.duration(said.expected_ms / 1000 if said.HasField("expected_ms") else None)
    return expected_s if expected_s < math.inf else None


def _line(node: RmNode) -> list[str]:
    """The containers that wait at a node in the order in which they would start, as it said last."""
    status: server.NodeStatus = node.status
    return [str(convert.container_id(entry.container_id)) for entry in status.yaq_queue.waiting]
