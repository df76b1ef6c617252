"""A real ResourceManager on loopback, with nodes and masters that speak the real protocols and do nothing else."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from rm.daemon import ResourceManager
from yaqd.config import Configuration
from yaqd.ipc import Caller, RpcClient, RpcServer
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Client
from yaqd.proto.protocols import ApplicationMasterProtocol, ContainerManagementProtocol, ResourceTracker
from yaqd.security import AM_RM_TOKEN, Credentials, MasterKey, NMTokenSecrets, Token, VerifierKeys

LOOPBACK = "127.0.0.1"


class ManualClock:
    """Time that moves when the test says so."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def now(self) -> float:
        return self.seconds

    def wall_ms(self) -> int:
        return 1_700_000_000_000 + int(self.seconds * 1000)


def configuration(overrides: Mapping[str, str] | None = None) -> Configuration:
    settings = {
        "yarn.resourcemanager.hostname": LOOPBACK,
        **{
            f"yarn.resourcemanager.{name}": f"{LOOPBACK}:0"
            for name in (
                "address",
                "scheduler.address",
                "resource-tracker.address",
                "admin.address",
                "webapp.address",
            )
        },
        "yaq.rm.state-store.path": "memory",
        "yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
    }
    return Configuration.load(overrides={**settings, **(overrides or {})}, environ={})


class FakeNode:
    """Registers, sends a heartbeat when told to, and remembers what it was asked to start."""

    def __init__(
        self, manager: ResourceManager, memory_mb: int, vcores: int, host: str = LOOPBACK, port: int = 0
    ) -> None:
        self.host = host
        self.size = common.Resource(memory=memory_mb, virtual_cores=vcores)
        self.keys = VerifierKeys()
        self.server = RpcServer(
            name="fake node", host=host, port=port, token_secrets=NMTokenSecrets(self.keys), allow_simple=False
        )
        self.server.register(ContainerManagementProtocol.startContainers, self._start)
        self.tracker = RpcClient(LOOPBACK, manager.servers.tracker.port, user="nm")
        #: container id -> launch context
        self.started: dict[ContainerId, common.ContainerLaunchContext] = {}
        self.running: dict[ContainerId, common.ContainerStatus] = {}
        self.ended: dict[ContainerId, common.ContainerStatus] = {}
        self.response_id = 0
        self.container_key: server.MasterKey | None = None
        self.refusal = ""
        self.registration: server.RegisterNodeManagerResponse | None = None
        #: with the word "cores": what it says of its machine, and since when it counts
        self.processors: int | None = None
        self.counts_since_ms: int | None = None

    @property
    def id(self) -> NodeId:
        return NodeId(self.host, self.server.port)

    def _start(self, request: pb.StartContainersRequest, caller: Caller) -> pb.StartContainersResponse:
        response = pb.StartContainersResponse()
        for item in request.start_container_request:
            token = server.ContainerTokenIdentifier.FromString(item.container_token.identifier)
            container_id = convert.container_id(token.containerId)
            if self.refusal:
                failure = response.failed_requests.add()
                failure.container_id.CopyFrom(token.containerId)
                failure.exception.message = self.refusal
                continue
            self.started[container_id] = item.container_launch_context
            self.run(container_id)
            response.succeeded_requests.append(token.containerId)
        return response

    def run(self, container_id: ContainerId) -> None:
        status = common.ContainerStatus(state=common.C_RUNNING, exit_status=-1000, diagnostics="")
        convert.put_container_id(status.container_id, container_id)
        self.running[container_id] = status

    def end(self, container_id: ContainerId, exit_status: int = 0, diagnostics: str = "") -> None:
        status = self.running.pop(container_id)
        status.state, status.exit_status, status.diagnostics = common.C_COMPLETE, exit_status, diagnostics
        self.ended[container_id] = status

    async def register(
        self, *, capabilities: tuple[str, ...] = (), keep: bool = False, queue_max: int | None = None
    ) -> None:
        request = server.RegisterNodeManagerRequest(http_port=8042, nm_version="3.4.1")
        request.node_id.host, request.node_id.port = self.id.host, self.id.port
        request.resource.CopyFrom(self.size)
        request.nodeStatus.nodeHealthStatus.is_node_healthy = True
        if keep:
            for status in self.running.values():
                alive = request.container_statuses.add(container_state=status.state)
                alive.container_id.CopyFrom(status.container_id)
        else:
            self.running.clear()
            self.ended.clear()
        if capabilities:
            request.yaq_capabilities.understands.extend(capabilities)
        if queue_max is not None:
            request.yaq_capabilities.queue_max = queue_max
        if self.processors is not None and self.counts_since_ms is not None:
            request.yaq_capabilities.processors = self.processors
            request.yaq_capabilities.counts_since_ms = self.counts_since_ms
        response = await self.tracker.call(ResourceTracker.registerNodeManager, request)
        self.registration = response
        self.response_id = 0
        if response.nodeAction == server.NORMAL:
            self.keys.set_current(MasterKey.from_pb(response.nm_token_master_key))
            self.container_key = response.container_token_master_key

    def heartbeat(self, *, is_healthy: bool = True) -> server.NodeHeartbeatRequest:
        request = server.NodeHeartbeatRequest()
        status = request.node_status
        status.node_id.host, status.node_id.port = self.id.host, self.id.port
        status.response_id = self.response_id
        status.nodeHealthStatus.is_node_healthy = is_healthy
        status.nodeHealthStatus.health_report = "" if is_healthy else "disk is full"
        status.containersStatuses.extend(self.running.values())
        status.containersStatuses.extend(self.ended.values())
        if self.container_key is not None:
            request.last_known_container_token_master_key.CopyFrom(self.container_key)
        if self.keys.current is not None:
            request.last_known_nm_token_master_key.CopyFrom(self.keys.current.to_pb())
        return request

    async def beat(self, *, is_healthy: bool = True) -> server.NodeHeartbeatResponse:
        """One heartbeat, its orders carried out."""
        request = self.heartbeat(is_healthy=is_healthy)
        response = await self.tracker.call(ResourceTracker.nodeHeartbeat, request)
        if response.nodeAction != server.NORMAL:
            return response
        self.response_id = response.response_id
        if response.HasField("nm_token_master_key"):
            self.keys.set_current(MasterKey.from_pb(response.nm_token_master_key))
        if response.HasField("container_token_master_key"):
            self.container_key = response.container_token_master_key
        for killed in response.containers_to_cleanup:
            container_id = convert.container_id(killed)
            if container_id in self.running:
                self.end(container_id, 137, "killed")
        for forgotten in response.containers_to_be_removed_from_nm:
            self.ended.pop(convert.container_id(forgotten), None)
        return response

    async def unregister(self) -> None:
        """It goes, and what runs there with it."""
        request = server.UnRegisterNodeManagerRequest(node_id=convert.node_id_pb(self.id))
        await self.tracker.call(ResourceTracker.unRegisterNodeManager, request)

    async def stop(self) -> None:
        await self.tracker.close()
        await self.server.stop()


class FakeMaster:
    """The other end of an application: it holds the token that its launch context carried."""

    def __init__(self, manager: ResourceManager, token: Token) -> None:
        self.rpc = RpcClient(LOOPBACK, manager.servers.masters.port, user="ignored", token=token)
        self.response_id = 0

    async def register(
        self, tracking_url: str = "http://am:1/", *, tolerates_waiting: bool = True
    ) -> pb.RegisterApplicationMasterResponse:
        request = pb.RegisterApplicationMasterRequest(host="am.example", rpc_port=4711, tracking_url=tracking_url)
        if tolerates_waiting:  # a stock master says nothing
            request.yaq_tolerates_waiting = True
        return await self.rpc.call(ApplicationMasterProtocol.registerApplicationMaster, request)

    async def allocate(
        self,
        *asks: common.ResourceRequest,
        release: tuple[common.ContainerId, ...] = (),
        progress: float = 0.5,
        left: common.JobLeft | None = None,
    ) -> pb.AllocateResponse:
        request = pb.AllocateRequest(
            ask=asks, release=release, response_id=self.response_id, progress=progress, yaq_left=left
        )
        response = await self.rpc.call(ApplicationMasterProtocol.allocate, request)
        self.response_id = response.response_id
        return response

    async def finish(self, status: "common.FinalApplicationStatus" = common.APP_SUCCEEDED) -> bool:
        request = pb.FinishApplicationMasterRequest(
            diagnostics="all done", tracking_url="http://history/", final_application_status=status
        )
        response = await self.rpc.call(ApplicationMasterProtocol.finishApplicationMaster, request)
        return response.isUnregistered


def ask(
    count: int, *, memory_mb: int = 1024, vcores: int = 1, name: str = "*", priority: int = 1, request_id: int = -1
) -> common.ResourceRequest:
    request = common.ResourceRequest(resource_name=name, num_containers=count, allocation_request_id=request_id)
    request.priority.priority = priority
    request.capability.memory, request.capability.virtual_cores = memory_mb, vcores
    return request


class Harness:
    def __init__(self, manager: ResourceManager) -> None:
        self.manager = manager
        self.client = RpcClient(LOOPBACK, manager.servers.client.port, user="alice")
        self.nodes: list[FakeNode] = []
        self.masters: list[FakeMaster] = []

    async def node(
        self, memory_mb: int = 8192, vcores: int = 8, host: str = LOOPBACK, port: int = 0, **options: tuple[str, ...]
    ) -> FakeNode:
        node = FakeNode(self.manager, memory_mb, vcores, host, port)
        await node.server.start()
        self.nodes.append(node)
        await node.register(**options)  # type: ignore[arg-type]
        return node

    async def submission(self, **fields: object) -> common.ApplicationSubmissionContext:
        """A context with a fresh id, ready to be submitted."""
        new = await self.client.call(Client.getNewApplication, pb.GetNewApplicationRequest())
        context = common.ApplicationSubmissionContext(application_name="test", queue="default")
        context.application_id.CopyFrom(new.application_id)
        context.resource.memory, context.resource.virtual_cores = 1024, 1
        context.am_container_spec.command.append("run")
        for name, value in fields.items():
            setattr(context, name, value)
        return context

    async def submit(self, **fields: object) -> ApplicationId:
        context = await self.submission(**fields)
        request = pb.SubmitApplicationRequest(application_submission_context=context)
        await self.client.call(Client.submitApplication, request)
        return convert.application_id(context.application_id)

    async def report(self, app_id: ApplicationId) -> common.ApplicationReport:
        request = pb.GetApplicationReportRequest(application_id=convert.application_id_pb(app_id))
        return (await self.client.call(Client.getApplicationReport, request)).application_report

    async def launched(self, app_id: ApplicationId, node: FakeNode, attempt: int = 1) -> FakeMaster:
        """Wait until the attempt's master container is started on the node; return the master."""
        attempt_id = ApplicationAttemptId(app_id, attempt)
        await self.until(lambda: any(c.attempt_id == attempt_id for c in node.started))
        container_id = next(c for c in node.started if c.attempt_id == attempt_id)
        token = Credentials.read(node.started[container_id].tokens).token_of_kind(AM_RM_TOKEN)
        assert token is not None
        master = FakeMaster(self.manager, token)
        self.masters.append(master)
        return master

    async def running(self, node: FakeNode, **fields: object) -> tuple[ApplicationId, FakeMaster]:
        """An application whose master has registered."""
        app_id = await self.submit(**fields)
        master = await self.launched(app_id, node)
        await master.register()
        return app_id, master

    async def until(self, condition: "Callable[[], bool]") -> None:
        """Let the event loop run until something that is under way has happened."""
        async with asyncio.timeout(10):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0.001)

    async def stop(self) -> None:
        for master in self.masters:
            await master.rpc.close()
        for node in self.nodes:
            await node.stop()
        await self.client.close()
        self.manager.scheduler.validate()
        await self.manager.stop()


@asynccontextmanager
async def cluster(
    overrides: Mapping[str, str] | None = None,
    *,
    clock: ManualClock | None = None,
    store: Path | None = None,
    conf: Configuration | None = None,
) -> AsyncIterator[Harness]:
    """`conf` instead of `overrides` and `store`: one whose files can be read again."""
    settings = dict(overrides or {})
    if store is not None:
        settings["yaq.rm.state-store.path"] = str(store)
    manager = ResourceManager(conf or configuration(settings), clock=clock, tick_s=0.01 if clock else 1.0)
    await manager.start()
    harness = Harness(manager)
    try:
        yield harness
    finally:
        await harness.stop()
