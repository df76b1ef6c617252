"""A ResourceManager's tracker and an application master, as small as the NodeManager's tests need them, on real RPC."""

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from google.protobuf.message import Message

from nm.daemon import NodeManager
from yaqd.config import Configuration
from yaqd.ipc import Caller, RpcClient, RpcServer
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId, NodeId, Resource
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto import yarn_service_pb2 as service
from yaqd.proto.protocols import ContainerManagementProtocol, ResourceTracker
from yaqd.security import ContainerTokenSecrets, NMTokenSecrets, RollingKeys

#: differs between test runs, so that none takes another's processes for its own
CLUSTER_TIMESTAMP = 1_700_000_000_000 + os.getpid()
USER = "alice"
BASH_ENVIRONMENT = {"PATH": os.environ["PATH"]}


def application(number: int = 1) -> ApplicationId:
    return ApplicationId(CLUSTER_TIMESTAMP, number)


def attempt(number: int = 1) -> ApplicationAttemptId:
    return ApplicationAttemptId(application(number), 1)


def container_id(sequence: int, app: int = 1) -> ContainerId:
    return ContainerId.make(attempt(app), sequence)


class FakeResourceManager:
    """Answers registrations and heartbeats, records what they say, mints tokens; sends the orders tests queue."""

    def __init__(self, *, interval_ms: int = 50) -> None:
        self.rpc = RpcServer(name="tracker", host="127.0.0.1")
        self.rpc.register(ResourceTracker.registerNodeManager, self._register)
        self.rpc.register(ResourceTracker.nodeHeartbeat, self._heartbeat)
        self.rpc.register(ResourceTracker.unRegisterNodeManager, self._unregister)
        self.nm_keys = RollingKeys(now=0.0, random=os.urandom)
        self.container_keys = RollingKeys(now=0.0, random=os.urandom)
        self.nm_tokens = NMTokenSecrets(self.nm_keys)
        self.container_tokens = ContainerTokenSecrets(self.container_keys)
        self.interval_ms = interval_ms
        self.registrations: list[server.RegisterNodeManagerRequest] = []
        self.heartbeats: list[server.NodeHeartbeatRequest] = []
        self.unregistered: list[NodeId] = []
        #: every completed status by container, in order of arrival
        self.completed: dict[ContainerId, list[common.ContainerStatus]] = {}
        #: changes to the next heartbeat's answer
        self.orders: list[Callable[[server.NodeHeartbeatResponse], None]] = []
        self.register_action = server.NORMAL
        self.answers_registrations = asyncio.Event()
        self.answers_registrations.set()
        #: what it says of itself in its answers to registrations
        self.capabilities = ["counts-vcores"]
        #: what it says at registration that the node has
        self.size: Resource | None = None
        #: acknowledge ends by ordering their removal
        self.removes_completed = True
        self._changed = asyncio.Event()

    async def start(self, port: int = 0) -> None:
        self.rpc._port = port or self.rpc._port
        await self.rpc.start()

    async def until(self, condition: Callable[[], Any], timeout_s: float = 20.0) -> Any:
        """Waits for heartbeats until the condition holds; returns its value."""
        async with asyncio.timeout(timeout_s):
            while not (value := condition()):
                self._changed.clear()
                await self._changed.wait()
            return value

    async def end_of(self, container: ContainerId, timeout_s: float = 20.0) -> common.ContainerStatus:
        return (await self.until(lambda: self.completed.get(container), timeout_s))[0]

    def sub_state(self, container: ContainerId) -> int | None:
        """As the last heartbeat has it."""
        if not self.heartbeats:
            return None
        for status in self.heartbeats[-1].node_status.containersStatuses:
            if convert.container_id(status.container_id) == container:
                return int(status.container_sub_state)
        return None

    async def _register(
        self, request: server.RegisterNodeManagerRequest, _: Caller
    ) -> server.RegisterNodeManagerResponse:
        self.registrations.append(request)
        self._changed.set()
        await self.answers_registrations.wait()
        response = server.RegisterNodeManagerResponse(nodeAction=self.register_action, rm_identifier=CLUSTER_TIMESTAMP)
        response.container_token_master_key.CopyFrom(self.container_keys.current.to_pb())
        response.nm_token_master_key.CopyFrom(self.nm_keys.current.to_pb())
        response.yaq_capabilities.understands.extend(self.capabilities)
        if self.size is not None:
            convert.put_resource(response.resource, self.size)
        return response

    def _heartbeat(self, request: server.NodeHeartbeatRequest, _: Caller) -> server.NodeHeartbeatResponse:
        self.heartbeats.append(request)
        response = server.NodeHeartbeatResponse(
            response_id=(request.node_status.response_id + 1) & 0x7FFFFFFF,
            nodeAction=server.NORMAL,
            nextHeartBeatInterval=self.interval_ms,
        )
        for status in request.node_status.containersStatuses:
            if status.state == common.C_COMPLETE:
                self.completed.setdefault(convert.container_id(status.container_id), []).append(status)
                if self.removes_completed:
                    response.containers_to_be_removed_from_nm.append(status.container_id)
        for order in self.orders:
            order(response)
        self.orders.clear()
        self._changed.set()
        return response

    def _unregister(
        self, request: server.UnRegisterNodeManagerRequest, _: Caller
    ) -> server.UnRegisterNodeManagerResponse:
        self.unregistered.append(convert.node_id(request.node_id))
        self._changed.set()
        return server.UnRegisterNodeManagerResponse()

    def container_token(
        self, container: ContainerId, node: NodeId, *, resource: Resource = Resource(512, 1), **fields: Any
    ) -> common.Token:
        identifier = server.ContainerTokenIdentifier(
            nmHostAddr=str(node),
            appSubmitter=USER,
            expiryTimeStamp=int(time.time() * 1000) + 600_000,
            rmIdentifier=CLUSTER_TIMESTAMP,
            creationTime=int(time.time() * 1000),
            containerType=common.TASK,
            executionType=common.GUARANTEED,
        )
        convert.put_container_id(identifier.containerId, container)
        convert.put_resource(identifier.resource, resource)
        identifier.priority.priority = 20
        for name, value in fields.items():
            if isinstance(value, Message):
                getattr(identifier, name).CopyFrom(value)
            else:
                setattr(identifier, name, value)
        return self.container_tokens.mint(identifier).to_pb()


def launch_context(
    command: str | Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    resources: Mapping[str, common.LocalResource] | None = None,
    service_data: Mapping[str, bytes] | None = None,
    tokens: bytes = b"",
    left: common.JobLeft | None = None,
) -> common.ContainerLaunchContext:
    context = common.ContainerLaunchContext(command=[command] if isinstance(command, str) else command, yaq_left=left)
    for key, value in {**(environment or {})}.items():
        context.environment.add(key=key, value=value)
    for key, resource in (resources or {}).items():
        context.localResources.add(key=key, value=resource)
    for key, data in (service_data or {}).items():
        context.service_data.add(key=key, value=data)
    if tokens:
        context.tokens = tokens
    return context


def local_file(
    path: Path,
    *,
    type: "common.LocalResourceType" = common.FILE,
    visibility: "common.LocalResourceVisibility" = common.APPLICATION,
    pattern: str = "",
) -> common.LocalResource:
    found = path.stat()
    resource = common.LocalResource(
        size=found.st_size, timestamp=found.st_mtime_ns // 1_000_000, type=type, visibility=visibility
    )
    resource.resource.scheme = "file"
    resource.resource.port = -1
    resource.resource.file = str(path)
    if pattern:
        resource.pattern = pattern
    return resource


class Master:
    """An application master's side of one node."""

    def __init__(self, rm: FakeResourceManager, node: NodeManager, app: int = 1) -> None:
        self.rm = rm
        self.node = node
        self.attempt = attempt(app)
        token = rm.nm_tokens.mint(self.attempt, node.node_id, USER)
        self.client = RpcClient("127.0.0.1", node.node_id.port, user="nobody", token=token)

    async def start(
        self, container: ContainerId, context: common.ContainerLaunchContext, **token_fields: Any
    ) -> service.StartContainersResponse:
        request = service.StartContainersRequest()
        item = request.start_container_request.add()
        item.container_launch_context.CopyFrom(context)
        item.container_token.CopyFrom(self.rm.container_token(container, self.node.node_id, **token_fields))
        return await self.client.call(ContainerManagementProtocol.startContainers, request)

    async def run(self, container: ContainerId, context: common.ContainerLaunchContext, **token_fields: Any) -> None:
        """Starts and insists on success."""
        response = await self.start(container, context, **token_fields)
        assert not response.failed_requests, response.failed_requests

    async def stop(self, *containers: ContainerId) -> service.StopContainersResponse:
        request = service.StopContainersRequest(container_id=map(convert.container_id_pb, containers))
        return await self.client.call(ContainerManagementProtocol.stopContainers, request)

    async def statuses(self, *containers: ContainerId) -> service.GetContainerStatusesResponse:
        request = service.GetContainerStatusesRequest(container_id=map(convert.container_id_pb, containers))
        return await self.client.call(ContainerManagementProtocol.getContainerStatuses, request)


def node_configuration(root: Path, tracker_port: int, overrides: Mapping[str, str] | None = None) -> Configuration:
    folder = root / "conf"
    return Configuration.load(
        folder if folder.is_dir() else None,
        environ={},
        overrides={
            "yarn.nodemanager.hostname": "127.0.0.1",
            "yarn.nodemanager.webapp.address": "127.0.0.1:0",
            "mapreduce.shuffle.port": "0",
            "yarn.resourcemanager.resource-tracker.address": f"127.0.0.1:{tracker_port}",
            "yarn.nodemanager.local-dirs": str(root / "local"),
            "yarn.nodemanager.log-dirs": str(root / "logs"),
            "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
            "yaq.nm.warm-start.enabled": "false",
            "yaq.nm.containers.cgroups": "false",  # most machines have marks alone
            "yaq.riffle.enabled": "false",  # else each start has a merger's interpreter started beside it
            **(overrides or {}),
        },
    )


def log_text(node: NodeManager, container: ContainerId, name: str) -> str:
    root = node.settings.log_dirs[0]
    return (root / str(container.application_id) / str(container) / name).read_text()


async def start(master: Master, token: common.Token, command: str = "true") -> service.StartContainersResponse:
    request = service.StartContainersRequest()
    item = request.start_container_request.add()
    item.container_launch_context.CopyFrom(launch_context(command))
    item.container_token.CopyFrom(token)
    return await master.client.call(ContainerManagementProtocol.startContainers, request)


def add_update(token: common.Token, response: server.NodeHeartbeatResponse) -> None:
    """Puts a container update with this token into the answer to a heartbeat."""
    response.containers_to_update.add(container_token=token)
