"""ContainerManagementProtocol: what application masters and the ResourceManager ask of this node.

The connection is authenticated by an NMToken, each container by a container token; both are checked here, before
anything of the request is believed. Trouble with one container goes into `failed_requests` with a class that Java
clients can load; a bad container token fails the whole call, as a stock NodeManager does.
"""

import logging
import signal
import struct
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from nm.containers.container import Container, ContainerGrant
from nm.containers.runtime import ContainerRuntime
from nm.launch.context import BadLaunchContext, LaunchContext
from nm.registration import NodeRegistration
from nm.resources.directories import BadUser, checked_user
from nm.shuffle.jobs import PLANS_MERGES, BadServiceData
from nm.shuffle.node import NodeShuffle
from yaqd.ipc import Caller, RemoteException, RpcServer
from yaqd.ipc.errors import (
    InvalidAuxService,
    InvalidContainer,
    InvalidToken,
    NMNotYetReady,
    YarnError,
)
from yaqd.model import ContainerId, ExitStatus
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto import yarn_service_pb2 as service
from yaqd.proto.protocols import ContainerManagementProtocol as Protocol
from yaqd.security import (
    ContainerTokenSecrets,
    NMTokenSecrets,
    check_container_password,
    check_container_token,
    check_nm_token,
    parse_identifier,
)

log = logging.getLogger(__name__)

SHUFFLE_SERVICE = "mapreduce_shuffle"
Updates = TypeVar("Updates", service.ContainerUpdateResponse, service.IncreaseContainersResourceResponse)
_SIGNALS = {1: signal.SIGQUIT, 2: signal.SIGTERM, 3: signal.SIGKILL}


class ContainerService:
    def __init__(
        self,
        runtime: ContainerRuntime,
        registration: NodeRegistration,
        nm_tokens: NMTokenSecrets,
        shuffle: NodeShuffle,
        *,
        refusal: Callable[[], str | None],
        on_updated: Callable[[ContainerId], None],
        adopt: Callable[[server.ContainerTokenIdentifier, LaunchContext], LaunchContext],
    ) -> None:
        """`refusal` returns why the node takes no containers at present, None when it does.

        `on_updated` hears of grants that an application master has changed here. `adopt` returns the launch context as
        it is to be carried out.
        """
        self._runtime = runtime
        self._registration = registration
        self._nm_tokens = nm_tokens
        self._container_tokens = ContainerTokenSecrets(registration.container_keys)
        self._shuffle = shuffle
        self._refusal = refusal
        self._on_updated = on_updated
        self._adopt = adopt

    def register(self, rpc: RpcServer) -> None:
        rpc.register(Protocol.startContainers, self.start_containers)
        rpc.register(Protocol.stopContainers, self.stop_containers)
        rpc.register(Protocol.getContainerStatuses, self.get_container_statuses)
        rpc.register(Protocol.updateContainer, self.update_container)
        rpc.register(Protocol.increaseContainersResource, self.increase_containers)
        rpc.register(Protocol.signalToContainer, self.signal_to_container)

    # Calls ------------------------------------------------------------------------------------------------------------

    def start_containers(
        self, request: service.StartContainersRequest, caller: Caller
    ) -> service.StartContainersResponse:
        identifier = self.caller_token(caller)
        if self._registration.rm_identifier < 0:
            raise NMNotYetReady("Rejecting new containers as NodeManager has not yet connected with ResourceManager")
        response = service.StartContainersResponse()
        port = struct.pack(">i", self._shuffle.service.port)
        response.services_meta_data.add(key=SHUFFLE_SERVICE, value=port)
        for key, value in self._shuffle.merger_metadata().items():
            response.services_meta_data.add(key=key, value=value)
        if caller.token_identifier is not None:
            self._nm_tokens.attempt_started(caller.token_identifier)
        tokens = [self._container_token(item.container_token) for item in request.start_container_request]
        for token, item in zip(tokens, request.start_container_request, strict=True):
            try:
                self._start_one(token, item.container_launch_context, identifier)
            except RemoteException as error:
                log.warning("container not started: %s", error.message)
                _failed(response.failed_requests, token.containerId, error)
            else:
                response.succeeded_requests.append(token.containerId)
        return response

    def stop_containers(self, request: service.StopContainersRequest, caller: Caller) -> service.StopContainersResponse:
        identifier = self.caller_token(caller)
        response = service.StopContainersResponse()
        for message in request.container_id:
            try:
                container = self._owned(message, identifier, was_stopped_ok=True)
            except RemoteException as error:
                _failed(response.failed_requests, message, error)
                continue
            if container is not None:
                reason = "Container killed by the ApplicationMaster."
                self._runtime.kill(container.id, ExitStatus.KILLED_BY_APPMASTER, reason)
            response.succeeded_requests.append(message)
        return response

    def get_container_statuses(
        self, request: service.GetContainerStatusesRequest, caller: Caller
    ) -> service.GetContainerStatusesResponse:
        identifier = self.caller_token(caller)
        response = service.GetContainerStatusesResponse()
        for message in request.container_id:
            try:
                container = self._owned(message, identifier, was_stopped_ok=False)
            except RemoteException as error:
                _failed(response.failed_requests, message, error)
                continue
            assert container is not None
            response.status.append(container.status_pb())
        return response

    def update_container(
        self, request: service.ContainerUpdateRequest, caller: Caller
    ) -> service.ContainerUpdateResponse:
        return self._update(request.update_container_token, caller, service.ContainerUpdateResponse())

    def increase_containers(
        self, request: service.IncreaseContainersResourceRequest, caller: Caller
    ) -> service.IncreaseContainersResourceResponse:
        return self._update(request.increase_containers, caller, service.IncreaseContainersResourceResponse())

    def signal_to_container(
        self, request: service.SignalContainerRequest, caller: Caller
    ) -> service.SignalContainerResponse:
        container = self._owned(request.container_id, self.caller_token(caller), was_stopped_ok=True)
        if container is not None:
            self._runtime.signal(container.id, _SIGNALS[request.command or 1])
        return service.SignalContainerResponse()

    # Checks -----------------------------------------------------------------------------------------------------------

    def caller_token(self, caller: Caller) -> server.NMTokenIdentifier:
        """Verifies and returns the caller's NMToken. Raises InvalidToken when it is for another node or attempt."""
        if caller.token_identifier is None:
            raise InvalidToken("an NMToken is needed")
        identifier = parse_identifier(server.NMTokenIdentifier, caller.token_identifier)
        check_nm_token(identifier, user=caller.user, node_id=self._registration.node_id)
        return identifier

    def _container_token(self, token: common.Token) -> server.ContainerTokenIdentifier:
        address = str(self._registration.node_id)
        return check_container_password(token, self._container_tokens, node_address=address)

    def _grant(self, token: server.ContainerTokenIdentifier, identifier: server.NMTokenIdentifier) -> ContainerGrant:
        check_container_token(
            token,
            caller=convert.attempt_id(identifier.appAttemptId),
            rm_identifier=self._registration.rm_identifier,
            now_ms=int(time.time() * 1000),
        )
        try:
            checked_user(token.appSubmitter)
        except BadUser as error:
            raise InvalidContainer(str(error)) from None
        return ContainerGrant.from_pb(token)

    def _start_one(
        self,
        token: server.ContainerTokenIdentifier,
        context: common.ContainerLaunchContext,
        identifier: server.NMTokenIdentifier,
    ) -> None:
        grant = self._grant(token, identifier)
        container_id = grant.container_id
        if container_id in self._runtime.containers or self._runtime.was_here(container_id):
            raise YarnError(f"Container {container_id} already is running on this node!!")
        application = self._runtime.applications.get(container_id.application_id)
        if application is not None and application.is_ending:
            raise YarnError(f"Container {container_id} is not started: its application is over")
        refusal = self._refusal() or self._runtime.refusal(grant)
        if refusal is not None:
            # the class that our job managers take for nobody's fault, and that Java clients can load
            raise NMNotYetReady(f"Container {container_id} is not started: {refusal}")
        try:
            launch = LaunchContext.from_pb(context)
            self._register_services(grant, launch)
        except (BadLaunchContext, BadServiceData) as error:
            raise YarnError(f"Container {container_id}: {error}") from None
        self._runtime.accept(grant, self._adopt(token, launch))

    def _register_services(self, grant: ContainerGrant, launch: LaunchContext) -> None:
        for name in launch.service_data:
            if name != SHUFFLE_SERVICE:
                raise InvalidAuxService(f"The auxService:{name[:120]} does not exist")
        plans_merges = launch.environment.get(PLANS_MERGES) == "1"
        for data in launch.service_data.values():
            application = grant.container_id.application_id
            self._shuffle.job_came(self._shuffle.jobs.add(application, grant.user, data, plans_merges=plans_merges))

    def _owned(
        self, message: common.ContainerId, identifier: server.NMTokenIdentifier, *, was_stopped_ok: bool
    ) -> Container | None:
        """The container if the caller's application owns it; None for one that has ended and is forgotten."""
        container_id: ContainerId = convert.container_id(message)
        if container_id.application_id != convert.application_id(identifier.appAttemptId.application_id):
            attempt_id = convert.attempt_id(identifier.appAttemptId)
            did = "stop" if was_stopped_ok else "get status for"
            raise YarnError(f"{attempt_id} attempted to {did} non-application container : {container_id}")
        container = self._runtime.containers.get(container_id)
        if container is None and self._runtime.was_here(container_id):
            if was_stopped_ok:
                return None
            raise YarnError(f"Container {container_id} was recently stopped on node manager.")
        if container is None:
            raise YarnError(f"Container {container_id} is not handled by this NodeManager")
        return container

    def _update(self, tokens: Iterable[common.Token], caller: Caller, response: Updates) -> Updates:
        identifier = self.caller_token(caller)
        for message in tokens:
            token = self._container_token(message)
            try:
                container = self._owned(token.containerId, identifier, was_stopped_ok=False)
                assert container is not None
                self._runtime.update(container.id, self._newer_grant(token, identifier, container))
                self._on_updated(container.id)
            except RemoteException as error:
                _failed(response.failed_requests, token.containerId, error)
            else:
                response.succeeded_requests.append(token.containerId)
        return response

    def _newer_grant(
        self, token: server.ContainerTokenIdentifier, identifier: server.NMTokenIdentifier, container: Container
    ) -> ContainerGrant:
        grant = self._grant(token, identifier)
        if grant.version <= container.grant.version:
            raise YarnError(
                f"Container {container.id} has update version [{container.grant.version}] >= requested version "
                f"[{grant.version}]"
            )
        if container.is_done:
            raise YarnError(f"Container {container.id} has ended and cannot be updated")
        return grant


def _failed(failed: Any, container_id: common.ContainerId, error: RemoteException) -> None:
    entry = failed.add()
    entry.container_id.CopyFrom(container_id)
    entry.exception.message = error.message
    entry.exception.class_name = error.class_name
