"""The calls of ContainerManagementProtocol that change what a running container runs, in Hadoop's words."""

from collections.abc import Callable, Iterable

from nm.containers.container import Container, LocalizationNote, LocalizationState, wire_enum
from nm.containers.replacement import Replacements
from nm.containers.runtime import ContainerRuntime
from nm.containers.states import Stage
from nm.launch.context import BadLaunchContext, LaunchContext, LocalResource, local_resource
from yaqd.ipc import Caller, RemoteException, RpcServer
from yaqd.ipc.errors import YarnError
from yaqd.model import ExecutionType
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto import yarn_service_pb2 as service
from yaqd.proto.protocols import ContainerManagementProtocol as Protocol

#: files that one container may be given while it runs
_LATER_MAX = 10_000


class ReplacementService:
    def __init__(self, runtime: ContainerRuntime, authenticate: Callable[[Caller], server.NMTokenIdentifier]) -> None:
        """`authenticate` returns the caller's verified NMToken. Raises InvalidToken."""
        self._runtime = runtime
        self._replacements: Replacements = runtime.replacements
        self._authenticate = authenticate

    def register(self, rpc: RpcServer) -> None:
        rpc.register(Protocol.localize, self.localize)
        rpc.register(Protocol.getLocalizationStatuses, self.get_localization_statuses)
        rpc.register(Protocol.restartContainer, self.restart_container)
        rpc.register(Protocol.reInitializeContainer, self.re_initialize_container)
        rpc.register(Protocol.rollbackLastReInitialization, self.roll_back)
        rpc.register(Protocol.commitLastReInitialization, self.commit)

    # ---- files

    def localize(
        self, request: service.ResourceLocalizationRequest, caller: Caller
    ) -> service.ResourceLocalizationResponse:
        container = self._changeable(request.container_id, caller, "LOCALIZE")
        if len(request.local_resources) + len(container.later_resources) > _LATER_MAX:
            raise YarnError(f"more than {_LATER_MAX} resources for one running container: ship an archive")
        self._replacements.localize(container, _resources(request.local_resources))
        return service.ResourceLocalizationResponse()

    def get_localization_statuses(
        self, request: service.GetLocalizationStatusesRequest, caller: Caller
    ) -> service.GetLocalizationStatusesResponse:
        identifier = self._authenticate(caller)
        response = service.GetLocalizationStatusesResponse()
        for message in request.container_id:
            try:
                container = self._own(message, identifier, "getLocalizationStatuses")
            except RemoteException as error:
                failed = response.failed_requests.add()
                failed.container_id.CopyFrom(message)
                failed.exception.message, failed.exception.class_name = error.message, error.class_name
                continue
            entry = response.cntn_localization_statuses.add()
            entry.container_id.CopyFrom(message)
            for link, note in _notes(container).items():
                status = entry.localization_statuses.add(resource_key=link, localization_state=wire_enum(note.state))
                if note.diagnostics:
                    status.diagnostics = note.diagnostics
        return response

    # ---- processes

    def restart_container(self, request: common.ContainerId, caller: Caller) -> service.RestartContainerResponse:
        container = self._changeable(request, caller, "RE_INIT")
        self._replacements.replace(container, None, auto_commit=True)
        return service.RestartContainerResponse()

    def re_initialize_container(
        self, request: service.ReInitializeContainerRequest, caller: Caller
    ) -> service.ReInitializeContainerResponse:
        container = self._changeable(request.container_id, caller, "RE_INIT")
        launch = None
        if request.HasField("container_launch_context"):
            try:
                launch = LaunchContext.from_pb(request.container_launch_context)
            except BadLaunchContext as error:
                raise YarnError(str(error)) from None
        self._replacements.replace(container, launch, auto_commit=request.auto_commit)
        return service.ReInitializeContainerResponse()

    def roll_back(self, request: common.ContainerId, caller: Caller) -> service.RollbackResponse:
        container = self._changeable(request, caller, "ROLLBACK")
        if container.previous is None:
            raise YarnError("Nothing to rollback to !!")
        self._replacements.roll_back(container)
        return service.RollbackResponse()

    def commit(self, request: common.ContainerId, caller: Caller) -> service.CommitResponse:
        container = self._changeable(request, caller, "COMMIT")
        if container.previous is None:
            raise YarnError("Nothing to Commit !!")
        container.previous = None
        return service.CommitResponse()

    # ---- checks

    def _own(self, message: common.ContainerId, identifier: server.NMTokenIdentifier, operation: str) -> Container:
        container_id = convert.container_id(message)
        if container_id.application_id != convert.application_id(identifier.appAttemptId.application_id):
            raise YarnError(
                f"ApplicationMaster not authorized to perform [{operation}] on Container [{container_id}]!!"
            )
        container = self._runtime.containers.get(container_id)
        if container is None and operation == "getLocalizationStatuses":
            was_here = self._runtime.was_here(container_id)
            why = "was recently stopped on node manager." if was_here else "is not handled by this NodeManager"
            raise YarnError(f"Container {container_id} {why}")
        if container is None:
            raise YarnError(f"Specified {container_id} does not exist!")
        return container

    def _changeable(self, message: common.ContainerId, caller: Caller, operation: str) -> Container:
        """The caller's running guaranteed container. Raises YarnError."""
        container = self._own(message, self._authenticate(caller), operation)
        kind = container.grant.execution_type
        if not self._replacements.may_change(container) or kind is not ExecutionType.GUARANTEED:
            raise YarnError(
                f"Cannot perform {operation} on [{container.id}]. Current state is [{container.stage.name}, "
                f"isReInitializing={str(container.is_replacing).lower()}]. Container Execution Type is [{kind.name}]."
            )
        return container


def _resources(entries: Iterable[common.StringLocalResourceMap]) -> tuple[LocalResource, ...]:
    try:
        return tuple(local_resource(entry.key, entry.value) for entry in entries)
    except BadLaunchContext as error:
        raise YarnError(str(error)) from None


def _notes(container: Container) -> dict[str, LocalizationNote]:
    """All resources of a container, from its launch and later ones."""
    is_waiting = container.stage in (Stage.NEW, Stage.LOCALIZING)
    state = LocalizationState.PENDING if is_waiting else LocalizationState.COMPLETED
    first = {resource.link: LocalizationNote(state) for resource in container.launch.resources}
    return {**first, **container.later_resources}
