"""An application master in the calling process (unmanaged, in Hadoop's words), against any ResourceManager."""

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

from yaqd.ipc import BlockingRpcClient
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as service
from yaqd.proto.protocols import ApplicationClientProtocol, ApplicationMasterProtocol, ContainerManagementProtocol
from yaqd.security import Token

_DEADLINE_S = 30.0
Found = TypeVar("Found")


def await_value(what: str, get: Callable[[], Found | None], deadline_s: float = _DEADLINE_S) -> Found:
    """Polls until `get` returns something."""
    deadline = time.monotonic() + deadline_s
    while time.monotonic() < deadline:
        found = get()
        if found is not None:
            return found
        time.sleep(0.05)
    raise TimeoutError(f"{what} did not come within {deadline_s:.0f} s")


class UnmanagedMaster:
    """Submits an application without a master container, registers as its master and asks for containers."""

    def __init__(self, rm: tuple[str, int], scheduler: tuple[str, int], user: str) -> None:
        self.user = user
        self._client = BlockingRpcClient(*rm, user=user)
        self._scheduler = scheduler
        self._nm_tokens: dict[tuple[str, int], Token] = {}
        self._response_id = 0
        self.application_id = self._submit()
        self._master = BlockingRpcClient(*scheduler, user=user, token=self._master_token())
        self.registered = self._register()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.call(
            ApplicationClientProtocol.forceKillApplication,
            service.KillApplicationRequest(application_id=self.application_id),
        )
        self._master.close()
        self._client.close()

    def report(self) -> common.ApplicationReport:
        """What the ResourceManager says about the application."""
        request = service.GetApplicationReportRequest(application_id=self.application_id)
        return self._client.call(ApplicationClientProtocol.getApplicationReport, request).application_report

    def allocate(self, ask: service.AllocateRequest | None = None) -> service.AllocateResponse:
        """One heartbeat."""
        request = ask or service.AllocateRequest()
        request.response_id = self._response_id
        request.progress = 0.5
        answer = self._master.call(ApplicationMasterProtocol.allocate, request)
        self._response_id = answer.response_id
        for token in answer.nm_tokens:
            self._nm_tokens[(token.nodeId.host, token.nodeId.port)] = Token.from_pb(token.token)
        return answer

    def get_container(self, memory_mb: int = 256) -> common.Container:
        """Asks for one container anywhere and waits for it."""
        ask = service.AllocateRequest()
        row = ask.ask.add()
        row.priority.priority = 1
        row.resource_name = "*"
        row.num_containers = 1
        row.capability.memory = memory_mb
        row.capability.virtual_cores = 1
        granted = list(self.allocate(ask).allocated_containers)
        return await_value("a container", lambda: next(iter(granted or self.allocate().allocated_containers), None))

    def start(
        self, container: common.Container, command: str, service_data: dict[str, bytes] | None = None
    ) -> service.StartContainersResponse:
        """Starts a command in a container."""
        request = service.StartContainersRequest()
        item = request.start_container_request.add()
        item.container_token.CopyFrom(container.container_token)
        item.container_launch_context.command.append(command)
        for key, value in (service_data or {}).items():
            item.container_launch_context.service_data.add(key=key, value=value)
        with self._node(container) as node:
            return node.call(ContainerManagementProtocol.startContainers, request)

    def status(self, container: common.Container) -> common.ContainerStatus:
        """What the container's node says about it."""
        request = service.GetContainerStatusesRequest(container_id=[container.id])
        with self._node(container) as node:
            return node.call(ContainerManagementProtocol.getContainerStatuses, request).status[0]

    def await_completion(self, container: common.Container) -> common.ContainerStatus:
        """Heartbeats until the ResourceManager reports the container's end."""

        def completed() -> common.ContainerStatus | None:
            statuses = self.allocate().completed_container_statuses
            return next((status for status in statuses if status.container_id == container.id), None)

        return await_value("the container's end", completed)

    def _node(self, container: common.Container) -> BlockingRpcClient:
        address = (container.nodeId.host, container.nodeId.port)
        return BlockingRpcClient(*address, user=self.user, token=self._nm_tokens[address])

    def _submit(self) -> common.ApplicationId:
        made = self._client.call(ApplicationClientProtocol.getNewApplication, service.GetNewApplicationRequest())
        request = service.SubmitApplicationRequest()
        context = request.application_submission_context
        context.application_id.CopyFrom(made.application_id)
        context.application_name = "interop"
        context.unmanaged_am = True
        context.queue = "default"
        context.am_container_spec.SetInParent()
        context.resource.memory = 128
        context.resource.virtual_cores = 1
        self._client.call(ApplicationClientProtocol.submitApplication, request)
        return made.application_id

    def _master_token(self) -> Token:
        def token() -> Token | None:
            report = self.report()
            return Token.from_pb(report.am_rm_token) if report.HasField("am_rm_token") else None

        return await_value("the master's token", token)

    def _register(self) -> service.RegisterApplicationMasterResponse:
        request = service.RegisterApplicationMasterRequest(host="127.0.0.1", rpc_port=0, tracking_url="")
        return self._master.call(ApplicationMasterProtocol.registerApplicationMaster, request)
