"""ApplicationClientProtocol, the part that changes applications: kill, fail, priority, time-outs, queue, signals."""

from collections.abc import Awaitable, Callable
from typing import Final

from rm.applications.changes import Changes
from rm.applications.life import Applications
from rm.applications.records import Application
from rm.applications.states import AppStage
from rm.cluster import Cluster
from rm.security.access import Access
from rm.services.lookups import find_application, find_attempt
from rm.store.state_store import StateStoreError
from yaqd.ipc import Caller, RpcServer
from yaqd.ipc.errors import ApplicationNotFound, RemoteIOError, YarnError
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Protocol

_KILL_TEXT_MAX: Final = 4096
#: signals that wait for a node's heartbeat
_SIGNALS_MAX: Final = 1000


class ChangeService:
    def __init__(
        self,
        cluster: Cluster,
        applications: Applications,
        changes: Changes,
        access: Access,
        stored: Callable[[Application], Awaitable[None]],
    ) -> None:
        """`stored` waits until the state store has what was last written about an application."""
        self._cluster = cluster
        self._applications = applications
        self._changes = changes
        self._access = access
        self._stored = stored

    def register_on(self, server: RpcServer) -> None:
        server.register(Protocol.forceKillApplication, self.force_kill_application)
        server.register(Protocol.failApplicationAttempt, self.fail_application_attempt)
        server.register(Protocol.updateApplicationPriority, self.update_application_priority)
        server.register(Protocol.updateApplicationTimeouts, self.update_application_timeouts)
        server.register(Protocol.moveApplicationAcrossQueues, self.move_application_across_queues)
        server.register(Protocol.signalToContainer, self.signal_to_container)

    def _modifiable(self, message: common.ApplicationId, caller: Caller) -> Application:
        app = find_application(self._cluster, message)
        self._access.check_modify(caller, app)
        return app

    async def _await_store(self, app: Application) -> None:
        try:
            await self._stored(app)
        except StateStoreError as error:
            raise RemoteIOError(f"the change of {app.id} may be lost when this ResourceManager ends: {error}") from None

    def force_kill_application(self, request: pb.KillApplicationRequest, caller: Caller) -> pb.KillApplicationResponse:
        try:
            app = find_application(self._cluster, request.application_id)
        except ApplicationNotFound:
            app_id = convert.application_id(request.application_id)
            raise ApplicationNotFound(f"Trying to kill an absent application {app_id}") from None
        self._access.check_modify(caller, app)
        if not app.is_concluded:
            why = f"Application {app.id} was killed by user {caller.user} at {caller.address[0]}"
            if request.diagnostics:
                why += f" with diagnostic message: {request.diagnostics[:_KILL_TEXT_MAX]}"
            self._applications.kill(app, why)
        is_over = app.is_over or app.stage is AppStage.FINISHING
        # Nobody waits for an unmanaged master to go.
        return pb.KillApplicationResponse(is_kill_completed=is_over or app.is_unmanaged)

    def fail_application_attempt(
        self, request: pb.FailApplicationAttemptRequest, caller: Caller
    ) -> pb.FailApplicationAttemptResponse:
        app = self._modifiable(request.application_attempt_id.application_id, caller)
        attempt = find_attempt(self._cluster, app, request.application_attempt_id)
        self._applications.fail_attempt(attempt, "Attempt failed by user.")
        return pb.FailApplicationAttemptResponse()

    async def update_application_priority(
        self, request: pb.UpdateApplicationPriorityRequest, caller: Caller
    ) -> pb.UpdateApplicationPriorityResponse:
        app = self._modifiable(request.applicationId, caller)
        self._changes.set_priority(app, request.applicationPriority.priority)
        await self._await_store(app)
        response = pb.UpdateApplicationPriorityResponse()
        response.applicationPriority.priority = app.priority
        return response

    async def update_application_timeouts(
        self, request: pb.UpdateApplicationTimeoutsRequest, caller: Caller
    ) -> pb.UpdateApplicationTimeoutsResponse:
        app = self._modifiable(request.applicationId, caller)
        if not request.application_timeouts:
            raise YarnError("At least one ApplicationTimeoutType should be configured for updating timeouts.")
        response = pb.UpdateApplicationTimeoutsResponse()
        for wanted in request.application_timeouts:
            taken = self._changes.set_expire_time(app, wanted.expire_time)
            response.application_timeouts.add(
                application_timeout_type=wanted.application_timeout_type, expire_time=taken
            )
        await self._await_store(app)
        return response

    async def move_application_across_queues(
        self, request: pb.MoveApplicationAcrossQueuesRequest, caller: Caller
    ) -> pb.MoveApplicationAcrossQueuesResponse:
        app = self._modifiable(request.application_id, caller)
        self._access.check_target(caller, app, request.target_queue)
        self._changes.move(app, request.target_queue)
        await self._await_store(app)
        return pb.MoveApplicationAcrossQueuesResponse()

    def signal_to_container(self, request: pb.SignalContainerRequest, caller: Caller) -> pb.SignalContainerResponse:
        container_id = convert.container_id(request.container_id)
        app = self._cluster.applications.get(container_id.application_id)
        if app is not None:
            self._access.check_modify(caller, app)
        container = self._cluster.containers.get(container_id)
        node = self._cluster.nodes.get(container.node_id) if container is not None else None
        if node is None:
            raise YarnError(f"Trying to signal an absent container {container_id}")
        if len(node.orders.signals) >= _SIGNALS_MAX:
            raise YarnError(f"{_SIGNALS_MAX} signals wait for node {node.id} already: try again later")
        node.orders.signals.append(request)
        return pb.SignalContainerResponse()
