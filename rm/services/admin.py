"""ResourceManagerAdministrationProtocol: what an administrator changes while the cluster runs."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from rm.applications.preemption import PreemptionMonitor
from rm.applications.quality import QualityMonitor
from rm.applications.stages import StagesMonitor
from rm.cluster import Cluster
from rm.node_queues.words import NodeQueueing
from rm.nodes.decommission import Decommission
from rm.nodes.hosts import HostLists
from rm.nodes.life import Nodes
from rm.nodes.sizes import NodeSizes
from rm.nodes.tracker import NODE_MB_MAX, NODE_VCORES_MAX
from rm.scheduler.events import QueuesRefreshed
from rm.scheduler.queues.spec import QueueConfigError
from rm.security.access import Access
from rm.services.absent_features import register_absent_administration
from rm.settings.daemon import RefreshedSettings
from rm.settings.live import LiveSettings
from yaqd.config import ConfigError
from yaqd.ipc import Caller, RpcServer
from yaqd.ipc.errors import RemoteIOError, YarnError
from yaqd.model import NodeId, NodeState, Resource
from yaqd.proto import convert
from yaqd.proto import yarn_admin_pb2 as pb
from yaqd.proto.protocols import ResourceManagerAdministrationProtocol as Protocol

log = logging.getLogger(__name__)

#: nodes that one call may drain by name
_NAMES_MAX: Final = 1000


class AdminService:
    def __init__(
        self,
        cluster: Cluster,
        nodes: Nodes,
        decommission: Decommission,
        preemption: PreemptionMonitor,
        quality: QualityMonitor,
        stages: StagesMonitor,
        queueing: NodeQueueing,
        *,
        read_queues: Callable[[], RefreshedSettings],
        read_hosts: Callable[[], HostLists],
        read_sizes: Callable[[], NodeSizes],
        access: Access,
        live: LiveSettings,
    ) -> None:
        """`read_queues`, `read_hosts` and `read_sizes` read files again; they may block."""
        self._cluster = cluster
        self._nodes = nodes
        self._decommission = decommission
        self._preemption = preemption
        self._quality = quality
        self._stages = stages
        self._queueing = queueing
        self._read_queues = read_queues
        self._read_hosts = read_hosts
        self._read_sizes = read_sizes
        self._access = access
        self._live = live

    def register_on(self, server: RpcServer) -> None:
        server.register(Protocol.refreshQueues, self.refresh_queues)
        server.register(Protocol.refreshNodes, self.refresh_nodes)
        server.register(Protocol.updateNodeResource, self.update_node_resource)
        server.register(Protocol.refreshNodesResources, self.refresh_nodes_resources)
        server.register(Protocol.getGroupsForUser, self.get_groups_for_user)
        server.register(Protocol.checkForDecommissioningNodes, self.check_for_decommissioning_nodes)
        server.register(Protocol.refreshAdminAcls, self.refresh_admin_acls)
        server.register(Protocol.refreshSuperUserGroupsConfiguration, self.refresh_super_user_groups)
        server.register(Protocol.refreshUserToGroupsMappings, self.refresh_user_to_groups)
        server.register(Protocol.refreshClusterMaxPriority, self.refresh_cluster_max_priority)
        server.register(Protocol.refreshServiceAcls, self.refresh_service_acls)
        register_absent_administration(server, self._access.check_administrator)

    def _check(self, caller: Caller, operation: str) -> None:
        self._access.check_administrator(caller, operation)

    async def refresh_queues(self, request: pb.RefreshQueuesRequest, caller: Caller) -> pb.RefreshQueuesResponse:
        self._check(caller, "refreshQueues")
        try:
            found = await asyncio.to_thread(self._read_queues)
            self._cluster.schedule(QueuesRefreshed(found.spec))
        except (ConfigError, QueueConfigError) as error:
            raise RemoteIOError(f"the queues stay as they are: {error}") from None
        if type(found.spec.calculator) is not type(self._cluster.scheduler.facts.calculator):
            log.warning("the queues name no resource-calculator: the one that runs stays until another start")
        self._preemption.refresh(found.preemption)
        self._queueing.refresh(found.queues)
        self._quality.refresh(found.quality)
        self._stages.refresh(found.stages)
        log.info("queues refreshed by %s", caller.user)
        return pb.RefreshQueuesResponse()

    async def refresh_nodes(self, request: pb.RefreshNodesRequest, caller: Caller) -> pb.RefreshNodesResponse:
        self._check(caller, "refreshNodes")
        if request.decommissionType == pb.FORCEFUL:
            self._decommission.force()
            log.info("drained nodes sent away by %s", caller.user)
            return pb.RefreshNodesResponse()
        if request.yaq_drain or request.yaq_undrain:
            self._drain(request, caller)
            return pb.RefreshNodesResponse()
        try:
            hosts = await asyncio.to_thread(self._read_hosts)
        except ConfigError as error:
            raise RemoteIOError(str(error)) from None
        timeout_s = request.decommissionTimeout if request.HasField("decommissionTimeout") else None
        graceful = request.decommissionType == pb.GRACEFUL
        await self._decommission.refresh(hosts, graceful=graceful, timeout_s=timeout_s)
        log.info("nodes refreshed by %s", caller.user)
        return pb.RefreshNodesResponse()

    def _drain(self, request: pb.RefreshNodesRequest, caller: Caller) -> None:
        """Nodes by name."""
        try:
            if len(request.yaq_drain) + len(request.yaq_undrain) > _NAMES_MAX:
                raise ValueError(f"more than {_NAMES_MAX} nodes at a time: name them in the exclude file")
            self._decommission.drain(request.yaq_drain)
            self._decommission.undrain(request.yaq_undrain)
        except ValueError as error:
            raise YarnError(str(error)) from None
        for what, names in (("drained", request.yaq_drain), ("let back in", request.yaq_undrain)):
            if names:
                log.info("nodes %s by %s: %s", what, caller.user, ", ".join(names)[:1000])

    def update_node_resource(
        self, request: pb.UpdateNodeResourceRequest, caller: Caller
    ) -> pb.UpdateNodeResourceResponse:
        self._check(caller, "updateNodeResource")
        changes = request.node_resource_map
        self._resize([(convert.node_id(c.node_id), convert.resource(c.resource_option.resource)) for c in changes])
        return pb.UpdateNodeResourceResponse()

    async def refresh_nodes_resources(
        self, request: pb.RefreshNodesResourcesRequest, caller: Caller
    ) -> pb.RefreshNodesResourcesResponse:
        self._check(caller, "refreshNodesResources")
        try:
            sizes = await asyncio.to_thread(self._read_sizes)
        except ConfigError as error:
            raise RemoteIOError(f"the nodes stay as they are: {error}") from None
        if sizes:  # as in Hadoop, a file that names no node changes nothing, for nodes that come later neither
            self._resize(sizes.items())
            self._nodes.sizes = sizes
            log.info("sizes of %d nodes refreshed by %s", len(sizes), caller.user)
        return pb.RefreshNodesResourcesResponse()

    def _resize(self, sizes: Iterable[tuple[NodeId, Resource]]) -> None:
        """Gives each node its size, or none of them when one cannot have it."""
        changes = []
        for node_id, total in sizes:
            node = self._cluster.nodes.get(node_id)
            if node is None or node.state not in (NodeState.RUNNING, NodeState.UNHEALTHY, NodeState.DECOMMISSIONING):
                raise YarnError(
                    f"Resource update get failed on all nodes due to change resource on an unrecognized node: {node_id}"
                )
            if not (0 <= total.memory_mb <= NODE_MB_MAX and 0 <= total.vcores <= NODE_VCORES_MAX):
                raise YarnError(f"node {node.id} cannot be given {total}")
            changes.append((node, total))
        for node, total in changes:
            self._nodes.resize(node, total)

    def get_groups_for_user(self, request: pb.GetGroupsForUserRequest, caller: Caller) -> pb.GetGroupsForUserResponse:
        self._access.check_groups_reader(caller)
        return pb.GetGroupsForUserResponse(groups=self._access.groups_of(request.user))

    async def refresh_admin_acls(
        self, request: pb.RefreshAdminAclsRequest, caller: Caller
    ) -> pb.RefreshAdminAclsResponse:
        self._check(caller, "refreshAdminAcls")
        await _or_io_error(self._live.administrators())
        return pb.RefreshAdminAclsResponse()

    async def refresh_super_user_groups(
        self, request: pb.RefreshSuperUserGroupsConfigurationRequest, caller: Caller
    ) -> pb.RefreshSuperUserGroupsConfigurationResponse:
        self._check(caller, "refreshSuperUserGroupsConfiguration")
        await _or_io_error(self._live.proxy_users())
        return pb.RefreshSuperUserGroupsConfigurationResponse()

    async def refresh_user_to_groups(
        self, request: pb.RefreshUserToGroupsMappingsRequest, caller: Caller
    ) -> pb.RefreshUserToGroupsMappingsResponse:
        self._check(caller, "refreshUserToGroupsMappings")
        await _or_io_error(self._live.groups())
        return pb.RefreshUserToGroupsMappingsResponse()

    async def refresh_service_acls(
        self, request: pb.RefreshServiceAclsRequest, caller: Caller
    ) -> pb.RefreshServiceAclsResponse:
        if not self._live.has_service_lists:
            raise YarnError("java.io.IOException: Service Authorization (hadoop.security.authorization) not enabled.")
        self._check(caller, "refreshServiceAcls")
        await _or_io_error(self._live.services())
        return pb.RefreshServiceAclsResponse()

    async def refresh_cluster_max_priority(
        self, request: pb.RefreshClusterMaxPriorityRequest, caller: Caller
    ) -> pb.RefreshClusterMaxPriorityResponse:
        self._check(caller, "refreshClusterMaxPriority")
        await _or_io_error(self._live.highest_priority())
        return pb.RefreshClusterMaxPriorityResponse()

    def check_for_decommissioning_nodes(
        self, request: pb.CheckForDecommissioningNodesRequest, caller: Caller
    ) -> pb.CheckForDecommissioningNodesResponse:
        self._check(caller, "checkForDecommissioningNodes")
        draining = [convert.node_id_pb(node.id) for node in self._decommission.draining()]
        return pb.CheckForDecommissioningNodesResponse(decommissioningNodes=draining)


async def _or_io_error(reading: Awaitable[None]) -> None:
    try:
        await reading
    except ConfigError as error:
        raise RemoteIOError(f"everything stays as it is: {error}") from None
