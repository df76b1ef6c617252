"""Queues at the nodes corrected after the fact: proxies place by numbers that are old, and each without the others.

Hadoop's limit looks at lengths. Beside it this one looks at how long newcomers would wait, node by node as last
reported (policies by name, REBALANCES). It rides in the same field of the heartbeat's answer: a node that is to give up
n containers is told to let n fewer wait. It ends the last ones, and their masters have them placed again. A queue may
have waited long while nothing starts there any more as far as anybody knows. It is given up even where no other is
better: a master that holds no container for what it wants may free one of its own, one that believes it runs never
does.
"""

import math
from collections.abc import Callable, Iterator

from rm.cluster import Cluster
from rm.nodes.node import RmNode
from rm.scheduler.node_queues.slots import Slots
from rm.settings.rebalancing import RebalanceSettings
from yaqd.model import NodeId
from yaqd.policies.queueing.rebalance import REBALANCES, NodeQueueLoad, NodeQueueSaid, queue_loads
from yaqd.proto import yarn_server_pb2 as server


class Rebalancer:
    def __init__(self, cluster: Cluster, settings: Callable[[], RebalanceSettings]) -> None:
        """`settings`: those that hold now."""
        self._cluster = cluster
        self._read_settings = settings
        scheduler = cluster.scheduler
        self._slots = Slots(scheduler.facts.calculator, scheduler.facts.bounds.minimum)
        #: so many containers are to leave the node with its next heartbeat
        self._leaving: dict[NodeId, int] = {}
        self._looked_at = -math.inf

    @property
    def _settings(self) -> RebalanceSettings:
        return self._read_settings()

    def limit(self, node: RmNode) -> int | None:
        """Return how many opportunistic containers may go on waiting at a node that has just reported; None: all."""
        now = self._cluster.clock.now()
        if now - self._looked_at >= self._settings.interval_s:
            self._looked_at = now
            self._leaving.clear()
            for move in REBALANCES[self._settings.policy](self._loads(), self._settings.least_gain_s):
                self._leaving[move.source] = self._leaving.get(move.source, 0) + move.tasks
        waiting = node.status.opportunistic_containers_status.queued_opport_containers
        limits = []
        tasks = self._leaving.pop(node.id, 0)
        if tasks:
            limits.append(max(0, waiting - tasks))
        starting = self._starting(node.status)
        if starting is not None:
            limits.append(starting)
        return min((limit for limit in limits if limit < waiting), default=None)

    def _loads(self) -> list[NodeQueueLoad]:
        most_queued = self._cluster.scheduler.facts.queue_limit
        return queue_loads(self._said(), most_queued, self._settings.typical_s)

    def _said(self) -> Iterator[NodeQueueSaid]:
        for node in self._cluster.nodes.values():
            view = self._cluster.scheduler.facts.node(node.id)
            if view is not None and node.is_usable and node.status.HasField("yaq_queue"):
                slots = self._slots.believed(view, node.status.yaq_queue.running)
                yield _as_said(node.id, node.status, max(1, slots))

    def _starting(self, status: server.NodeStatus) -> int | None:
        """How many of those that wait will start, where the others have waited too long already."""
        waiting = status.yaq_queue.waiting
        never = [container for container in waiting if not _is_known(container)]
        if not never or max(container.waited_ms for container in never) < self._settings.stuck_s * 1000:
            return None
        said = status.opportunistic_containers_status
        guaranteed = max(0, said.wait_queue_length - said.queued_opport_containers)
        return max(0, len(waiting) - len(never) - guaranteed)


def _is_known(container: server.QueuedContainer) -> bool:
    return container.HasField("expected_ms") and container.expected_ms >= 0


def _as_said(node_id: NodeId, status: server.NodeStatus, slots: int) -> NodeQueueSaid:
    queue, said = status.yaq_queue, status.opportunistic_containers_status
    wait_s = queue.wait_ms / 1000 if queue.wait_ms >= 0 else math.inf
    waiting, queued = max(0, queue.queued), max(0, said.queued_opport_containers)
    return NodeQueueSaid(node_id, wait_s, waiting, queued, slots, max(0, said.opport_queue_capacity))
