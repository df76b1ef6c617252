"""ResourceTracker: NodeManagers register, send heartbeats and take orders.

Answers carry both master keys at registration, the next key while it is being rolled in, and orders only when there
are any. A lost answer is asked for again with the same number and repeated unchanged. Extension fields go to nodes
that said they understand them, so that a stock NodeManager sees nothing unknown.
"""

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from rm.cluster import Cluster
from rm.logs.status import LogStatuses
from rm.node_queues.rebalancing import Rebalancer
from rm.nodes.cores import ApplicationCores
from rm.nodes.decommission import Decommission
from rm.nodes.life import Nodes, Registration
from rm.nodes.node import RmNode
from rm.nodes.orders import NodeOrders
from rm.security.tokens import TokenMint
from yaqd.ipc import Caller, RpcServer
from yaqd.ipc.errors import YarnError
from yaqd.model import NodeId, Resource
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as pb
from yaqd.proto.protocols import ResourceTracker
from yaqd.proto.words import CORES, STOCK
from yaqd.security import RollingKeys

log = logging.getLogger(__name__)

_RESPONSE_ID_MASK: Final = 0x7FFFFFFF
#: what one node may say it has; totals of many nodes must still fit the wire's 64 and 32 bits
NODE_MB_MAX: Final = 1 << 36
NODE_VCORES_MAX: Final = 1 << 16
#: names and addresses; `*` stands for any host in an ask, and what begins with a slash is a rack
_HOST: Final = re.compile(r"(?!.*\.\.)[A-Za-z0-9_.:%\[\]-]{1,255}\Z", re.ASCII)
#: of a heartbeat as it came; a usual one is far smaller
_REMEMBERED_BYTES_MAX: Final = 64 << 10
#: extensions that this ResourceManager understands
CAPABILITIES: Final = ("yaq-1", "yaq-queue", CORES)
#: said beside them where virtual cores are scheduled: without, no container must wait on its node for cores
COUNTS_VCORES: Final = "counts-vcores"
#: what clients are told this daemon is; a stock NodeManager may compare it with a minimum
RM_VERSION: Final = "3.4.1"


@dataclass(frozen=True, slots=True)
class TrackerSettings:
    heartbeat_interval_ms: int
    rm_identifier: int
    minimum: Resource
    #: nodes shall report and start as stock ones do
    is_stock: bool = False


class NodeTracker:
    def __init__(
        self,
        cluster: Cluster,
        nodes: Nodes,
        decommission: Decommission,
        tokens: TokenMint,
        logs: LogStatuses,
        settings: TrackerSettings,
    ) -> None:
        self._cluster = cluster
        self._nodes = nodes
        self._decommission = decommission
        self._tokens = tokens
        self._logs = logs
        self.settings = settings
        #: of applications whose cores are decided
        self.cores = ApplicationCores(cluster)
        #: shortens queues; set by the daemon where proxies fill them
        self.rebalancer: Rebalancer | None = None

    def register_on(self, server: RpcServer) -> None:
        server.register(ResourceTracker.registerNodeManager, self.register_node_manager)
        server.register(ResourceTracker.nodeHeartbeat, self.node_heartbeat)
        server.register(ResourceTracker.unRegisterNodeManager, self.unregister_node_manager)

    # ---- registration

    async def register_node_manager(
        self, request: pb.RegisterNodeManagerRequest, caller: Caller
    ) -> pb.RegisterNodeManagerResponse:
        said = _registration(request)
        size = self._nodes.sizes.get(said.node_id)
        if size is not None:
            said = replace(said, total=size)
        address = await self._decommission.find_address(said.node_id.host)
        refusal = self._refusal(said, address)
        if refusal is not None:
            log.warning("node %s: refused: %s", said.node_id, refusal)
            return pb.RegisterNodeManagerResponse(
                nodeAction=pb.SHUTDOWN, diagnostics_message=refusal, rm_version=RM_VERSION
            )
        await self._nodes.topology.resolve(said.node_id.host)
        node = self._nodes.register(said)
        self.cores.registered(node, request.yaq_capabilities)
        self._note_logs(node.id, request.log_aggregation_reports_for_apps)
        self._decommission.joined(node, address)
        response = pb.RegisterNodeManagerResponse(
            nodeAction=pb.NORMAL,
            rm_identifier=self.settings.rm_identifier,
            rm_version=RM_VERSION,
            areNodeLabelsAcceptedByRM=False,
            areNodeAttributesAcceptedByRM=False,
        )
        response.container_token_master_key.CopyFrom(self._tokens.container_keys.current.to_pb())
        response.nm_token_master_key.CopyFrom(self._tokens.nm_keys.current.to_pb())
        if size is not None:
            convert.put_resource(response.resource, node.total)
        if node.capabilities:
            response.yaq_capabilities.understands.extend(CAPABILITIES)
            if self._cluster.scheduler.facts.calculator.counts_vcores:
                response.yaq_capabilities.understands.append(COUNTS_VCORES)
            if self.settings.is_stock:
                response.yaq_capabilities.understands.append(STOCK)
        return response

    def _refusal(self, said: Registration, address: str) -> str | None:
        if self._decommission.refuses(said.node_id, address):
            return f"Disallowed NodeManager from  {said.node_id.host}, Sending SHUTDOWN signal to the NodeManager."
        if said.total.memory_mb > NODE_MB_MAX or said.total.vcores > NODE_VCORES_MAX:
            return f"{said.node_id} says that it has {said.total}, which no machine has: correct its configuration"
        least = self.settings.minimum
        if said.total.memory_mb < least.memory_mb or said.total.vcores < least.vcores:
            return (
                f"NodeManager from  {said.node_id.host} doesn't satisfy minimum allocations, Sending SHUTDOWN signal "
                f"to the NodeManager. Node capabilities are {said.total}; minimums are {least.memory_mb}mb and "
                f"{least.vcores} vcores"
            )
        return None

    def unregister_node_manager(
        self, request: pb.UnRegisterNodeManagerRequest, caller: Caller
    ) -> pb.UnRegisterNodeManagerResponse:
        self._nodes.shut_down(convert.node_id(request.node_id))
        return pb.UnRegisterNodeManagerResponse()

    # ---- heartbeats

    def node_heartbeat(self, request: pb.NodeHeartbeatRequest, caller: Caller) -> pb.NodeHeartbeatResponse:
        status = request.node_status
        address = status.node_id
        node = self._cluster.nodes.get(NodeId(address.host, address.port))
        if node is not None and self._decommission.refuses(node.id, node.address):
            self._nodes.decommission(node, "its host is not admitted")
            return pb.NodeHeartbeatResponse(
                nodeAction=pb.SHUTDOWN,
                diagnostics_message=f"Disallowed NodeManager nodeId: {node.id} hostname: {address.host}",
            )
        is_kept = node is not None and self._decommission.is_kept(node)
        if node is None or not (is_kept or node.state.name in ("RUNNING", "UNHEALTHY", "DECOMMISSIONING")):
            return self._resync(f"{address.host}:{address.port} is not registered, or was lost")
        if status.response_id != node.response_id:
            repeated = (status.response_id + 1) & _RESPONSE_ID_MASK == node.response_id
            if repeated and node.last_response is not None:
                return node.last_response
            return self._resync(f"Too far behind rm response id:{node.response_id} nm response id:{status.response_id}")
        self._nodes.beat(node, status)
        self.cores.reported(node, status)
        if request.ByteSize() > _REMEMBERED_BYTES_MAX:
            node.status = _remembered(status)
        self._note_logs(node.id, request.log_aggregation_reports_for_apps)
        if self._decommission.is_done(node) and not self._decommission.stays(node):
            message = self._decommission.finish(node)
            return pb.NodeHeartbeatResponse(nodeAction=pb.SHUTDOWN, diagnostics_message=message)
        return self._answer(node, request)

    def _note_logs(self, node: NodeId, reports: Iterable[pb.LogAggregationReport]) -> None:
        for report in reports:
            app = self._cluster.applications.get(convert.application_id(report.application_id))
            if app is not None:
                self._logs.reported(app, node, report)

    @staticmethod
    def _resync(why: str) -> pb.NodeHeartbeatResponse:
        log.warning("node told to register again: %s", why)
        return pb.NodeHeartbeatResponse(nodeAction=pb.RESYNC, diagnostics_message=why)

    def _answer(self, node: RmNode, request: pb.NodeHeartbeatRequest) -> pb.NodeHeartbeatResponse:
        node.response_id = (node.response_id + 1) & _RESPONSE_ID_MASK
        response = pb.NodeHeartbeatResponse(
            response_id=node.response_id,
            nodeAction=pb.NORMAL,
            nextHeartBeatInterval=self.cores.heartbeat_ms(node, self.settings.heartbeat_interval_ms),
        )
        scheduler = self._cluster.scheduler
        if scheduler.facts.gives_opportunistic:
            limit = response.container_queuing_limit
            limit.max_queue_length = scheduler.facts.queue_limit
            limit.max_queue_wait_time_in_ms = -1
            fewer = self.rebalancer.limit(node) if self.rebalancer is not None else None
            if fewer is not None:
                limit.max_queue_length = min(limit.max_queue_length, fewer)
        if node.orders:
            node.orders.put_into(response, node.total)
            node.orders = NodeOrders()
        if self._nodes.queueing is not None:
            self._nodes.queueing.put_orders(node, response)
        self.cores.put_orders(node, response)
        tokens = self._tokens
        if tokens.container_keys.next is not None or tokens.nm_keys.next is not None:
            self._show_next_keys(request, response)
        elif request.last_known_container_token_master_key.key_id != tokens.container_keys.current.key_id:
            response.container_token_master_key.CopyFrom(tokens.container_keys.current.to_pb())
            response.nm_token_master_key.CopyFrom(tokens.nm_keys.current.to_pb())
        node.last_response = response
        return response

    def _show_next_keys(self, request: pb.NodeHeartbeatRequest, response: pb.NodeHeartbeatResponse) -> None:
        known = request.last_known_container_token_master_key.key_id
        _show(self._tokens.container_keys, known, response.container_token_master_key)
        _show(self._tokens.nm_keys, request.last_known_nm_token_master_key.key_id, response.nm_token_master_key)


def _show(keys: RollingKeys, known: int, message: pb.MasterKey) -> None:
    """Put the newest key into the answer unless the node has it."""
    if keys.newest.key_id != known:
        message.CopyFrom(keys.newest.to_pb())


def _registration(request: pb.RegisterNodeManagerRequest) -> Registration:
    node_id = convert.node_id(request.node_id)
    if not _HOST.match(node_id.host) or not 0 < node_id.port < 65536:
        raise YarnError(f"registration without a usable node id: {str(node_id)[:300]!r}")
    health, said = request.nodeStatus.nodeHealthStatus, request.yaq_capabilities
    reported = request.nodeStatus.HasField("nodeHealthStatus")
    statuses = request.container_statuses
    return Registration(
        node_id=NodeId(node_id.host, node_id.port),
        http_address=f"{node_id.host}:{request.http_port}",
        total=convert.resource(request.resource),
        version=request.nm_version[:100],
        capabilities=tuple(name[:100] for name in said.understands[:100]),
        alive=tuple(convert.container_id(s.container_id) for s in statuses if s.container_state != common.C_COMPLETE),
        ended=tuple(
            (convert.container_id(s.container_id), s.container_exit_status, s.diagnostics)
            for s in statuses
            if s.container_state == common.C_COMPLETE
        ),
        applications=tuple(convert.application_id(a) for a in request.runningApplications),
        is_healthy=health.is_node_healthy if reported else True,
        health_report=health.health_report[:4096],
        queue_max=max(0, said.queue_max) if said.HasField("queue_max") else None,
    )


def _remembered(status: pb.NodeStatus) -> pb.NodeStatus:
    """What is shown of a large heartbeat later, in a message of its own: a part would keep all of it in memory."""
    kept = pb.NodeStatus()
    for name in ("containers_utilization", "node_utilization", "opportunistic_containers_status", "yaq_queue"):
        part = getattr(status, name)
        if status.HasField(name) and part.ByteSize() <= _REMEMBERED_BYTES_MAX:
            getattr(kept, name).CopyFrom(part)
    return kept
