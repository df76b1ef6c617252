"""What the proxies at the nodes know of the cluster: the nodes that take opportunistic containers, least loaded first.

Each answer to a proxy carries the whole list, as long as `nodes-used` says. A proxy at a node of ours also reads how
long a newcomer would wait, what is free and how much waits; a stock one skips those fields and has the order alone.
Whatever has been booked since a node's last report is in the numbers already. So two proxies that ask one after the
other do not choose alike.
"""

from collections.abc import Iterator
from typing import Final

from rm.cluster import Cluster
from rm.node_queues.words import YAQ_QUEUE, NodeQueueing
from rm.scheduler.events import Elapsed
from rm.scheduler.facts import NodeLoad
from rm.scheduler.opportunistic.node_load import longer_wait_ms
from yaqd.model import ApplicationAttemptId, NodeId
from yaqd.proto import convert
from yaqd.proto import yarn_service_pb2 as pb

_WAIT_MS_MAX: Final = 1 << 52


class UsageMonitor:
    def __init__(self, cluster: Cluster, queueing: NodeQueueing) -> None:
        self._cluster = cluster
        self._queueing = queueing

    def publish(self, to: NodeId | None, attempt_id: ApplicationAttemptId) -> Iterator[pb.RemoteNode]:
        """Yield the nodes for the attempt's proxy at the node `to`, least loaded first."""
        extended = self.understands(to)
        self._cluster.schedule(Elapsed())
        for load in self._cluster.scheduler.facts.ranked(attempt_id):
            node = self._cluster.nodes.get(load.node.id)
            if node is None:
                continue
            message = pb.RemoteNode(http_address=node.http_address, rack_name=node.rack, node_partition="")
            message.node_id.host, message.node_id.port = node.id.host, node.id.port
            if extended:
                self._extend(message, load)
            yield message

    def _extend(self, message: pb.RemoteNode, load: NodeLoad) -> None:
        convert.put_resource(message.yaq_free, load.left)
        message.yaq_queued = load.queued
        if load.capacity is not None:
            message.yaq_queue_max = load.capacity
        if self.understands(load.node.id):
            message.yaq_reads_tasks = True
            queue = load.node.queue
            if queue is not None and queue.slots:
                message.yaq_slots = queue.slots
            status = self._cluster.nodes[load.node.id].status
            if status.HasField("yaq_queue"):
                said = status.yaq_queue
                has_room = self._cluster.scheduler.facts.bounds.minimum.fits_in(load.left)
                said_ms = min(said.wait_ms, _WAIT_MS_MAX)
                wait_ms = longer_wait_ms(said_ms, said.queued, load.given, has_room=has_room)
                # Without estimates everything that is full would be for ever: then lengths have to do.
                if wait_ms >= 0 or self._queueing.is_on:
                    message.yaq_wait_ms = wait_ms

    def understands(self, node_id: NodeId | None) -> bool:
        """Return whether the node speaks of queues."""
        node = self._cluster.nodes.get(node_id) if node_id is not None else None
        return node is not None and YAQ_QUEUE in node.capabilities
