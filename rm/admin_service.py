"""ResourceManagerAdministrationProtocol: what an administrator changes while the cluster runs."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from rm.cluster import Cluster
from rm.node_tracker import NODE_MB_MAX, NODE_VCORES_MAX, NodeTracker
from rm.nodes import Nodes
from rm.scheduler.events import QueuesRefreshed
from rm.scheduler.queues import QueueConfigError, SchedulerSpec
from yaqd.config import ConfigError
from yaqd.ipc import Caller, RpcServer
from yaqd.ipc.absent import Refusal
from yaqd.ipc.errors import AccessControl, RemoteIOError, UnsupportedOperation, YarnError
from yaqd.model import NodeState
from yaqd.proto import convert
from yaqd.proto import yarn_admin_pb2 as pb
from yaqd.proto.protocols import Method
from yaqd.proto.protocols import ResourceManagerAdministrationProtocol as Protocol

log = logging.getLogger(__name__)

_UNSUPPORTED: Final[tuple[Method[Any, Any], ...]] = (
    Protocol.refreshSuperUserGroupsConfiguration,
    Protocol.refreshUserToGroupsMappings,
    Protocol.refreshAdminAcls,
    Protocol.refreshServiceAcls,
    Protocol.refreshNodesResources,
    Protocol.addToClusterNodeLabels,
    Protocol.removeFromClusterNodeLabels,
    Protocol.replaceLabelsOnNodes,
    Protocol.refreshClusterMaxPriority,
)


class AdminService:
    def __init__(
        self,
        cluster: Cluster,
        nodes: Nodes,
        tracker: NodeTracker,
        *,
        read_queues: Callable[[], SchedulerSpec],
        read_hosts: Callable[[], tuple[frozenset[str], frozenset[str]]],
        is_administrator: Callable[[str], bool],
    ) -> None:
        """`read_queues` and `read_hosts` (excluded, included) read files again; they may block."""
        self._cluster = cluster
        self._nodes = nodes
        self._tracker = tracker
        self._read_queues = read_queues
        self._read_hosts = read_hosts
        self._is_administrator = is_administrator

    def register_on(self, server: RpcServer) -> None:
        server.register(Protocol.refreshQueues, self.refresh_queues)
        server.register(Protocol.refreshNodes, self.refresh_nodes)
        server.register(Protocol.updateNodeResource, self.update_node_resource)
        server.register(Protocol.getGroupsForUser, self.get_groups_for_user)
        server.register(Protocol.checkForDecommissioningNodes, self.check_for_decommissioning_nodes)
        for method in _UNSUPPORTED:
            server.register(
                method, Refusal(UnsupportedOperation, f"{method.name} is not supported by this ResourceManager")
            )

    def _check(self, caller: Caller) -> None:
        if not self._is_administrator(caller.user):
            raise AccessControl(f"User {caller.user} doesn't have permission to administrate: see yarn.admin.acl")

    async def refresh_queues(self, request: pb.RefreshQueuesRequest, caller: Caller) -> pb.RefreshQueuesResponse:
        self._check(caller)
        try:
            spec = await asyncio.to_thread(self._read_queues)
            self._cluster.schedule(QueuesRefreshed(spec))
        except (ConfigError, QueueConfigError) as error:
            raise RemoteIOError(f"the queues stay as they are: {error}") from None
        log.info("queues refreshed by %s", caller.user)
        return pb.RefreshQueuesResponse()

    async def refresh_nodes(self, request: pb.RefreshNodesRequest, caller: Caller) -> pb.RefreshNodesResponse:
        self._check(caller)
        try:
            excluded, included = await asyncio.to_thread(self._read_hosts)
        except ConfigError as error:
            raise RemoteIOError(str(error)) from None
        self._tracker.admit(excluded, included)
        for node in list(self._cluster.nodes.values()):
            if not self._tracker.settings.admits(node.id.host):
                self._nodes.decommission(node)
        log.info("nodes refreshed by %s", caller.user)
        return pb.RefreshNodesResponse()

    def update_node_resource(
        self, request: pb.UpdateNodeResourceRequest, caller: Caller
    ) -> pb.UpdateNodeResourceResponse:
        self._check(caller)
        for change in request.node_resource_map:
            node = self._cluster.nodes.get(convert.node_id(change.node_id))
            if node is None or node.state is not NodeState.RUNNING:
                raise YarnError(f"node {convert.node_id(change.node_id)} is not running")
            total = convert.resource(change.resource_option.resource)
            if not (0 <= total.memory_mb <= NODE_MB_MAX and 0 <= total.vcores <= NODE_VCORES_MAX):
                raise YarnError(f"node {node.id} cannot be given {total}")
            self._nodes.resize(node, total)
        return pb.UpdateNodeResourceResponse()

    def get_groups_for_user(self, request: pb.GetGroupsForUserRequest, caller: Caller) -> pb.GetGroupsForUserResponse:
        return pb.GetGroupsForUserResponse()

    def check_for_decommissioning_nodes(
        self, request: pb.CheckForDecommissioningNodesRequest, caller: Caller
    ) -> pb.CheckForDecommissioningNodesResponse:
        return pb.CheckForDecommissioningNodesResponse()
