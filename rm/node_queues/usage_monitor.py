"""What the proxies at the nodes know of the cluster: the nodes that take opportunistic containers, least loaded first.

Each answer to a proxy carries the whole list, as long as `nodes-used` says. A proxy at a node of ours also reads how
long a newcomer would wait, what is free and how much waits; a stock one skips those fields and has the order alone.
Whatever has been booked since a node's last report is in the numbers already. So two proxies that ask one after the
other do not choose alike.
"""

import math
from collections.abc import Iterator
from typing import Final

from rm.cluster import Cluster
from rm.node_queues.reports import YAQ_QUEUE
from rm.node_queues.words import NodeQueueing
from rm.scheduler.events import Elapsed
from rm.scheduler.facts import NodeQueue
from rm.scheduler.opportunistic.room import backlog, left, longer_wait
from yaqd.model import ApplicationAttemptId, NodeId
from yaqd.proto import convert
from yaqd.proto import yarn_service_pb2 as pb

_WAIT_S_MAX: Final = float(1 << 42)


class UsageMonitor:
    def __init__(self, cluster: Cluster, queueing: NodeQueueing) -> None:
        self._cluster = cluster
        self._queueing = queueing

    def publish(self, to: NodeId | None, attempt_id: ApplicationAttemptId) -> Iterator[pb.RemoteNode]:
        """Yield the nodes for the attempt's proxy at the node `to`, least loaded first."""
        extended = self.understands(to)
        self._cluster.schedule(Elapsed())
        for queue in self._cluster.scheduler.facts.ranked(attempt_id):
            node = self._cluster.nodes.get(queue.node.id)
            if node is None:
                continue
            message = pb.RemoteNode(http_address=node.http_address, rack_name=node.rack, node_partition="")
            message.node_id.host, message.node_id.port = node.id.host, node.id.port
            if extended:
                self._extend(message, queue)
            yield message

    def _extend(self, message: pb.RemoteNode, queue: NodeQueue) -> None:
        convert.put_resource(message.yaq_free, left(queue))
        message.yaq_queued = backlog(queue)
        if queue.opportunistic_max < math.inf:
            message.yaq_queue_max = int(queue.opportunistic_max)
        if self.understands(queue.node.id):
            message.yaq_reads_tasks = True
            if queue.slots:
                message.yaq_slots = queue.slots
            wait_s = longer_wait(queue, self._cluster.scheduler.facts.bounds.minimum)
            # Without estimates everything that is full would be for ever: then lengths have to do.
            if wait_s < math.inf or self._queueing.is_on:
                message.yaq_wait_ms = int(1000 * min(wait_s, _WAIT_S_MAX)) if wait_s < math.inf else -1

    def understands(self, node_id: NodeId | None) -> bool:
        """Return whether the node speaks of queues."""
        node = self._cluster.nodes.get(node_id) if node_id is not None else None
        return node is not None and YAQ_QUEUE in node.capabilities
