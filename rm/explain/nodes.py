"""The answer to `yaq top`: each node's slots, queue, expected wait and use, as it reported last."""

import math
from typing import Any, Final

from rm.cluster import Cluster
from rm.node_queues.reports import YAQ_QUEUE
from rm.node_queues.words import NodeQueueing
from rm.nodes.node import RmNode

_LISTED: Final = ("RUNNING", "UNHEALTHY", "DECOMMISSIONING")


class ExplainNodes:
    def __init__(self, cluster: Cluster, queueing: NodeQueueing, *, heartbeat_s: float) -> None:
        self._cluster = cluster
        self._queueing = queueing
        self._heartbeat_s = heartbeat_s

    def all(self) -> list[dict[str, Any]]:
        return [self._node(node) for node in self._cluster.nodes.values() if node.state.name in _LISTED]

    def _node(self, node: RmNode) -> dict[str, Any]:
        known = self._cluster.scheduler.facts.node_queue(node.id)
        # of queues that nobody fills no report is read
        queue = known if self._queueing.fills or self._cluster.scheduler.facts.gives_opportunistic else None
        has_queue = YAQ_QUEUE in node.capabilities and self._queueing.fills
        wait = queue.expected_wait() if queue is not None else math.inf
        now, minute, five = node.use.shares()
        return {
            "id": str(node.id),
            "rack": node.rack,
            "state": node.state.name,
            #: how long it has not been heard of; None: it reports as it should
            "silentS": node.silent_s(self._cluster.clock.now(), self._heartbeat_s),
            "queues": has_queue,
            "running": queue.running if queue is not None else len(node.running),
            "slots": queue.slots if queue is not None and queue.was_full and queue.slots else None,
            "queued": queue.length if queue is not None else 0,
            "bound": queue.bound if queue is not None else 0,
            "waitS": round(wait, 3) if math.isfinite(wait) else None,
            "isDraining": known is not None and known.node.hold is not None,
            "memoryMb": node.total.memory_mb,
            "usedMb": node.used.memory_mb,
            "utilization": {"now": now, "minute": minute, "fiveMinutes": five},
        }
