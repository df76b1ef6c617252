"""What a node says of its queue with a heartbeat, as its scheduler hears it: bounded, whatever the node says."""

import logging
import math
from typing import Final

from rm.nodes.node import RmNode
from rm.scheduler.events import NodeQueueReported
from yaqd.policies.queueing import limits
from yaqd.proto import convert
from yaqd.proto import yarn_server_pb2 as server

log = logging.getLogger(__name__)

#: what a node says that lets containers wait and understands the orders
YAQ_QUEUE: Final = "yaq-queue"
#: what one says besides that keeps room for masters that are to come
MASTER_ROOMS: Final = "master-rooms"
#: a node that says more than this lies; longer waits count as for ever
_QUEUED_MAX: Final = 100_000
_WAIT_MS_MAX: Final = 10**12
#: nor does anything take longer to get ready, s
_REFILL_S_MAX: Final = 60.0


def node_queue_report(
    node: RmNode,
    status: server.NodeStatus,
    *,
    fills_queues: bool,
    gives_opportunistic: bool,
    gap_s: float | None = None,
) -> NodeQueueReported | None:
    """Return what the node says of its queue; None where nobody goes by it.

    `gap_s`: since its last heartbeat, whether that was read or not. `fills_queues`: nodes are given more than fits.
    `gives_opportunistic`: opportunistic containers are given.
    """
    most = _opportunistic_max(status) if gives_opportunistic else 0
    if fills_queues and YAQ_QUEUE in node.capabilities and status.HasField("yaq_queue"):
        return _of_any(node, status, most, gap_s)
    if not gives_opportunistic or not status.HasField("opportunistic_containers_status"):
        return None
    said = status.opportunistic_containers_status
    running = min(max(0, said.running_opport_containers), _QUEUED_MAX)
    queued = min(max(0, said.wait_queue_length), _QUEUED_MAX)
    wait_s = _seconds(said.estimated_queue_wait_time)
    return NodeQueueReported(node.id, running, queued, wait_s, opportunistic_max=most, queues_any=False)


def _of_any(
    node: RmNode, status: server.NodeStatus, opportunistic_max: float, gap_s: float | None
) -> NodeQueueReported:
    """Read the report of a node that queues any container."""
    said = status.yaq_queue
    queued, wait_ms = said.queued, said.wait_ms
    if said.running < 0 or not 0 <= queued <= _QUEUED_MAX or not -1 <= wait_ms <= _WAIT_MS_MAX:
        if not node.queue_lies:
            log.warning(
                "node %s: reports a queue that cannot be: %d running, %d waiting, %d ms; it is bounded",
                *(node.id, said.running, queued, wait_ms),
            )
        node.queue_lies += 1
    waiting, started = node.named.read(status)
    free = convert.resource(said.free).floored() if said.HasField("free") else None
    return NodeQueueReported(
        node.id,
        min(max(0, said.running), _QUEUED_MAX),
        min(max(0, queued), _QUEUED_MAX),
        _seconds(wait_ms),
        waiting,
        started,
        gap_s,
        tells_ends=said.tells_ends,
        refill_s=min(max(0.0, said.refill_ms / 1000), _REFILL_S_MAX),
        keeps_room=MASTER_ROOMS in node.capabilities,
        free=free,
        room_s=_room_s(said) if free is not None else None,
        most=node.queue_max,
        opportunistic_max=opportunistic_max,
    )


def _opportunistic_max(status: server.NodeStatus) -> float:
    """Read how many opportunistic containers may wait on the node; inf: it sets no bound."""
    if not status.HasField("opportunistic_containers_status"):
        return 0
    said = status.opportunistic_containers_status
    return max(0, said.opport_queue_capacity) if said.HasField("opport_queue_capacity") else math.inf


def _seconds(wait_ms: int) -> float:
    return wait_ms / 1000 if 0 <= wait_ms <= _WAIT_MS_MAX else math.inf


def _room_s(said: server.NodeQueue) -> float | None:
    """Until the room that is kept for masters is enough; None: the node does not say."""
    return limits.duration(said.room_ms / 1000) if said.HasField("room_ms") else None
