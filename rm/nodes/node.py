"""A node as the ResourceManager knows it, from registration to loss, and what its next heartbeat will be told."""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

from rm.applications.records import RmContainer
from rm.node_queues.named import NamedContainers
from rm.node_queues.told import Told
from rm.nodes.orders import NodeOrders
from rm.nodes.use import NodeUse
from rm.scheduler.node_queues.spec import MISSED_BEATS
from rm.transitions import Machine
from yaqd.model import ApplicationId, ContainerId, ExecutionType, NodeId, NodeState, Resource
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server


class NodeEvent(Enum):
    REGISTER = auto()
    SICKEN = auto()
    RECOVER = auto()
    EXPIRE = auto()
    SHUT_DOWN = auto()
    DECOMMISSION = auto()
    #: end what runs, take nothing more, then go
    DRAIN = auto()
    RECOMMISSION = auto()


_S, _E = NodeState, NodeEvent

NODE_TRANSITIONS: Final[Mapping[tuple[NodeState, NodeEvent], NodeState]] = {
    (_S.NEW, _E.REGISTER): _S.RUNNING,
    # listed by the exclude file, never seen
    (_S.NEW, _E.DECOMMISSION): _S.DECOMMISSIONED,
    (_S.RUNNING, _E.REGISTER): _S.RUNNING,
    (_S.RUNNING, _E.SICKEN): _S.UNHEALTHY,
    (_S.RUNNING, _E.EXPIRE): _S.LOST,
    (_S.RUNNING, _E.SHUT_DOWN): _S.SHUTDOWN,
    (_S.RUNNING, _E.DECOMMISSION): _S.DECOMMISSIONED,
    (_S.RUNNING, _E.DRAIN): _S.DECOMMISSIONING,
    (_S.DECOMMISSIONING, _E.REGISTER): _S.DECOMMISSIONING,
    (_S.DECOMMISSIONING, _E.RECOMMISSION): _S.RUNNING,
    (_S.DECOMMISSIONING, _E.EXPIRE): _S.LOST,
    (_S.DECOMMISSIONING, _E.SHUT_DOWN): _S.SHUTDOWN,
    (_S.DECOMMISSIONING, _E.DECOMMISSION): _S.DECOMMISSIONED,
    (_S.UNHEALTHY, _E.DRAIN): _S.DECOMMISSIONING,
    (_S.UNHEALTHY, _E.RECOVER): _S.RUNNING,
    (_S.UNHEALTHY, _E.REGISTER): _S.RUNNING,
    (_S.UNHEALTHY, _E.EXPIRE): _S.LOST,
    (_S.UNHEALTHY, _E.SHUT_DOWN): _S.SHUTDOWN,
    (_S.UNHEALTHY, _E.DECOMMISSION): _S.DECOMMISSIONED,
    (_S.LOST, _E.REGISTER): _S.RUNNING,
    (_S.SHUTDOWN, _E.REGISTER): _S.RUNNING,
    (_S.DECOMMISSIONED, _E.REGISTER): _S.RUNNING,
}


class RmNode:
    """One node that has ever registered and is not forgotten."""

    def __init__(self, node_id: NodeId, rack: str) -> None:
        self.id = node_id
        self.rack = rack
        self.machine = Machine(f"node {node_id}", NODE_TRANSITIONS, NodeState.NEW)
        self.total = Resource()
        #: `host:port` of its web server
        self.http_address = ""
        self.version = ""
        #: extensions it understands, as it said when it registered; none for a stock node
        self.capabilities: tuple[str, ...] = ()
        #: containers that may wait there, as it said then; None: any number
        self.queue_max: int | None = None
        #: IPv4 address; known only where a list of hosts names addresses
        self.address = ""
        #: since when it takes no new containers, scheduler's seconds, and how long that may last; negative: for ever
        self.drained_since: float | None = None
        self.drain_timeout_s = -1
        #: drained, it runs nothing and stays
        self.rests = False
        self.health_report = ""
        self.health_reported_ms = 0
        #: containers charged to it and not over
        self.containers: dict[ContainerId, RmContainer] = {}
        #: those of them that it has reported, and their ids as they came on the wire
        self.running: set[ContainerId] = set()
        self.running_wire: set[bytes] = set()
        #: those that its reports of its queue name
        self.named = NamedContainers()
        #: applications that have had a container here and are not over
        self.applications: set[ApplicationId] = set()
        self.status = server.NodeStatus()
        #: when it was heard of last, scheduler's seconds
        self.heard_at: float | None = None

        # The heartbeat conversation.
        self.last_response: server.NodeHeartbeatResponse | None = None
        self.response_id = 0

        #: what the next answer will carry
        self.orders = NodeOrders()
        #: what it was told about its queue since it registered; None: nothing
        self.queue_told: Told | None = None
        #: what it was told of applications' cores, in thousandths, since it registered
        self.cores_told: dict[ApplicationId, int | None] = {}
        #: of the machine, as it said when it registered, and since when it counts processor time, epoch ms
        self.processors = 1
        self.counts_since_ms = 0
        #: what it said of its queue last was to be read
        self.is_heeded = False
        #: reports of its queue that could not be
        self.queue_lies = 0
        #: how busy it is
        self.use = NodeUse()

    @property
    def state(self) -> NodeState:
        return self.machine.state

    @property
    def is_usable(self) -> bool:
        return self.machine.state is NodeState.RUNNING

    def silent_s(self, now: float, heartbeat_s: float) -> float | None:
        """Return for how long it has not been heard of, s.

        None as long as it reports as it should, each `heartbeat_s`.
        """
        if self.heard_at is None or now - self.heard_at <= MISSED_BEATS * heartbeat_s:
            return None
        return round(now - self.heard_at, 3)

    @property
    def used(self) -> Resource:
        """What guaranteed containers hold: opportunistic ones take nobody's room."""
        total = Resource()
        for container in self.containers.values():
            if container.allocation.execution_type is ExecutionType.GUARANTEED:
                total = total + container.allocation.resource
        # beyond that they wait
        return total.smaller(self.total) if self.queue_told is not None else total

    def reset_conversation(self) -> None:
        """Start the conversation anew, after a registration."""
        self.response_id = 0
        self.last_response = None
        self.orders = NodeOrders()
        self.queue_told = None
        self.cores_told = {}

    def utilization(self) -> common.ResourceUtilization | None:
        return self.status.node_utilization if self.status.HasField("node_utilization") else None
