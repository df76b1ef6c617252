"""A proxy at a node as the ResourceManager sees it: what it says, and what it has placed."""

from tests.rm.rm_harness import FakeMaster, FakeNode, Harness
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import DistributedSchedulingAMProtocol as Protocol
from yaqd.proto.protocols import ResourceTracker

OPPORTUNISTIC = {"yarn.resourcemanager.opportunistic-container-allocation.enabled": "true"}
ENABLED = {**OPPORTUNISTIC, "yarn.nodemanager.distributed-scheduling.enabled": "true"}


async def loaded(node: FakeNode, *, queued: int = 0, capacity: int = 5, wait_ms: int | None = None) -> None:
    """A heartbeat that tells of the node's queue."""
    request = node.heartbeat()
    status = request.node_status.opportunistic_containers_status
    status.wait_queue_length, status.opport_queue_capacity = queued, capacity
    if wait_ms is not None:
        request.node_status.yaq_queue.queued, request.node_status.yaq_queue.wait_ms = queued, wait_ms
        status.estimated_queue_wait_time = max(-1, min(wait_ms, 2**31 - 1))
    response = await node.tracker.call(ResourceTracker.nodeHeartbeat, request)
    node.response_id = response.response_id


def placed(
    app: ApplicationId,
    number: int,
    node: NodeId,
    *,
    memory_mb: int = 1024,
    kind: "common.ExecutionType" = common.OPPORTUNISTIC,
) -> common.Container:
    message = common.Container(execution_type=kind, allocation_request_id=-1)
    convert.put_container_id(message.id, ContainerId(ApplicationAttemptId(app, 1), number))
    message.nodeId.CopyFrom(convert.node_id_pb(node))
    message.resource.memory, message.resource.virtual_cores = memory_mb, 1
    message.priority.priority = 19
    return message


class Proxy:
    def __init__(self, master: FakeMaster, app: ApplicationId) -> None:
        self.rpc = master.rpc
        self.app = app
        self.response_id = 0

    async def register(self, *, tolerates_waiting: bool = False) -> pb.RegisterDistributedSchedulingAMResponse:
        request = pb.RegisterApplicationMasterRequest(host="am.example", rpc_port=1, tracking_url="")
        if tolerates_waiting:
            request.yaq_tolerates_waiting = True
        return await self.rpc.call(Protocol.registerApplicationMasterForDistributedScheduling, request)

    async def allocate(
        self,
        *containers: common.Container,
        asks: tuple[common.ResourceRequest, ...] = (),
        release: tuple[common.ContainerId, ...] = (),
        repeat: bool = False,
        kept: tuple[pb.PendingStage, ...] = (),
        placements: tuple[pb.ProxyPlacement, ...] = (),
        takes_back: bool = False,
        bound: tuple[pb.BoundWish, ...] = (),
    ) -> pb.DistributedSchedulingAllocateResponse:
        if repeat:
            self.response_id -= 1
        request = pb.DistributedSchedulingAllocateRequest(
            allocated_containers=containers,
            yaq_kept=kept,
            yaq_placed=placements,
            yaq_takes_back=takes_back,
            yaq_bound=bound,
        )
        request.allocate_request.CopyFrom(
            pb.AllocateRequest(ask=asks, release=release, response_id=self.response_id, progress=0.5)
        )
        response = await self.rpc.call(Protocol.allocateForDistributedScheduling, request)
        self.response_id = response.allocate_response.response_id
        return response


async def proxied(rm: Harness, node: FakeNode) -> tuple[Proxy, pb.RegisterDistributedSchedulingAMResponse]:
    app_id = await rm.submit()
    proxy = Proxy(await rm.launched(app_id, node), app_id)
    return proxy, await proxy.register()
