"""ApplicationClientProtocol: what users and their tools ask of the ResourceManager.

A submission is answered when the state store has it. Whatever this ResourceManager has no use for is answered as a
stock one answers when the feature is off, with the exception class that Hadoop's clients expect.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from rm.application import Application, AppStage
from rm.applications import Applications, SubmissionRefused, master_resource
from rm.attempt import Attempt
from rm.cluster import Cluster
from rm.messages import container_report_pb, node_report_pb, resource_types_pb
from rm.reports import Reports
from rm.scheduler.admission import may_administer, may_submit, refusal
from rm.scheduler.calculators import InvalidAsk
from rm.state_store import StateStoreError
from rm.tokens import TokenMint
from yaqd.ipc import Caller, RpcServer
from yaqd.ipc.absent import EmptyAnswer, Refusal
from yaqd.ipc.errors import (
    AccessControl,
    ApplicationAttemptNotFound,
    ApplicationNotFound,
    ContainerNotFound,
    FeatureNotEnabled,
    InvalidResourceRequest,
    RemoteIOError,
    UnsupportedOperation,
    YarnError,
)
from yaqd.model import ApplicationId, NodeState, YarnApplicationAttemptState
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Protocol
from yaqd.proto.protocols import Method

#: a submission is kept in memory and in the state store while its application runs
_SUBMISSION_BYTES_MAX: Final = 16 << 20


class ClientService:
    def __init__(
        self,
        cluster: Cluster,
        applications: Applications,
        reports: Reports,
        tokens: TokenMint,
        submission_stored: Callable[[Application], Awaitable[None]],
        *,
        acls: bool,
        is_administrator: Callable[[str], bool],
    ) -> None:
        self._cluster = cluster
        self._applications = applications
        self._reports = reports
        self._tokens = tokens
        self._submission_stored = submission_stored
        self._acls = acls
        self._is_administrator = is_administrator

    def register_on(self, server: RpcServer) -> None:
        server.register(Protocol.getNewApplication, self.get_new_application)
        server.register(Protocol.submitApplication, self.submit_application)
        server.register(Protocol.getApplicationReport, self.get_application_report)
        server.register(Protocol.getApplications, self.get_applications)
        server.register(Protocol.forceKillApplication, self.force_kill_application)
        server.register(Protocol.failApplicationAttempt, self.fail_application_attempt)
        server.register(Protocol.updateApplicationPriority, self.update_application_priority)
        server.register(Protocol.getApplicationAttemptReport, self.get_application_attempt_report)
        server.register(Protocol.getApplicationAttempts, self.get_application_attempts)
        server.register(Protocol.getContainerReport, self.get_container_report)
        server.register(Protocol.getContainers, self.get_containers)
        server.register(Protocol.signalToContainer, self.signal_to_container)
        server.register(Protocol.getClusterMetrics, self.get_cluster_metrics)
        server.register(Protocol.getClusterNodes, self.get_cluster_nodes)
        server.register(Protocol.getQueueInfo, self.get_queue_info)
        server.register(Protocol.getQueueUserAcls, self.get_queue_user_acls)
        server.register(Protocol.getResourceTypeInfo, self.get_resource_type_info)
        _register_absent_features(server)

    # ---- submission

    def get_new_application(self, request: pb.GetNewApplicationRequest, caller: Caller) -> pb.GetNewApplicationResponse:
        response = pb.GetNewApplicationResponse()
        response.application_id.CopyFrom(convert.application_id_pb(self._applications.new_id()))
        response.maximumCapability.CopyFrom(convert.resource_pb(self._cluster.scheduler.maximum_allocation()))
        return response

    async def submit_application(
        self, request: pb.SubmitApplicationRequest, caller: Caller
    ) -> pb.SubmitApplicationResponse:
        context = request.application_submission_context
        app_id = convert.application_id(context.application_id)
        app = self._cluster.applications.get(app_id)
        if app is None:
            self._check_submission(context, app_id, caller.user)
            try:
                app = self._applications.submit(context, caller.user)
            except SubmissionRefused as error:
                raise YarnError(str(error)) from None
        elif app.user != caller.user:
            raise YarnError(f"{app_id} has been submitted by another user")
        if app.stage is AppStage.NEW_SAVING:
            try:
                await self._submission_stored(app)
            except StateStoreError as error:
                raise RemoteIOError(f"{app_id} was not accepted: {error}") from None
        return pb.SubmitApplicationResponse()

    def _check_submission(self, context: common.ApplicationSubmissionContext, app_id: ApplicationId, user: str) -> None:
        if context.ByteSize() > _SUBMISSION_BYTES_MAX:
            size, most = context.ByteSize(), _SUBMISSION_BYTES_MAX
            raise YarnError(f"{app_id} comes with {size} bytes of launch context, at most {most} are taken: ship files")
        if app_id.id < 1 or app_id.cluster_timestamp < 1:
            raise YarnError(f"{app_id} is no application id: ask for one with getNewApplication")
        scheduler = self._cluster.scheduler
        queue = context.queue or "default"
        leaf = scheduler.view.find_queue(queue)
        reason = refusal(scheduler.view, app_id, queue, user)
        if reason is not None:
            raise YarnError(f"Failed to submit {app_id} to YARN : {reason}")
        if self._acls and leaf is not None and not (may_submit(leaf, user) or self._is_administrator(user)):
            raise AccessControl(f"User {user} does not have permission to submit {app_id} to queue {queue}")
        if not context.unmanaged_am:
            try:
                scheduler.limits.bounds.check(master_resource(context), scheduler.maximum_allocation())
            except InvalidAsk as error:
                raise InvalidResourceRequest(str(error)) from None
        if context.HasField("reservation_id"):
            raise YarnError("reservations are not supported: submit without a reservation id")

    # ---- applications

    def _application(self, message: common.ApplicationId) -> Application:
        app_id = convert.application_id(message)
        app = self._cluster.applications.get(app_id)
        if app is None:
            raise ApplicationNotFound(f"Application with id '{app_id}' doesn't exist in RM.")
        return app

    def _may_modify(self, app: Application, caller: Caller) -> None:
        if not self._acls or caller.user == app.user or self._is_administrator(caller.user):
            return
        queue = self._cluster.scheduler.view.find_queue(app.queue)
        if queue is None or not may_administer(queue, caller.user):
            raise AccessControl(f"User {caller.user} cannot perform operation MODIFY_APP on {app.id}")

    def get_application_report(
        self, request: pb.GetApplicationReportRequest, caller: Caller
    ) -> pb.GetApplicationReportResponse:
        app = self._application(request.application_id)
        token = None
        attempt = app.attempt
        launched = attempt is not None and attempt.state is YarnApplicationAttemptState.LAUNCHED
        if attempt is not None and app.is_unmanaged and launched and caller.user == app.user:
            token = self._tokens.masters.mint(attempt.id)
            attempt.amrm_key_id = self._tokens.amrm_keys.newest.key_id
        report = self._reports.application(app, amrm_token=token)
        return pb.GetApplicationReportResponse(application_report=report)

    def get_applications(self, request: pb.GetApplicationsRequest, caller: Caller) -> pb.GetApplicationsResponse:
        response = pb.GetApplicationsResponse()
        wanted = _ApplicationFilter(request, caller.user)
        limit = request.limit if request.HasField("limit") and request.limit >= 0 else len(self._cluster.applications)
        for app in self._cluster.applications.values():
            if len(response.applications) >= limit:
                break
            if wanted.accepts(app):
                response.applications.append(self._reports.application(app))
        return response

    def force_kill_application(self, request: pb.KillApplicationRequest, caller: Caller) -> pb.KillApplicationResponse:
        app = self._application(request.application_id)
        self._may_modify(app, caller)
        if not app.is_concluded:
            why = f"Application {app.id} was killed by user {caller.user} at {caller.address[0]}"
            if request.diagnostics:
                why += f"\n{request.diagnostics[:4096]}"
            self._applications.kill(app, why)
        return pb.KillApplicationResponse(is_kill_completed=app.is_over or app.stage is AppStage.FINISHING)

    def fail_application_attempt(
        self, request: pb.FailApplicationAttemptRequest, caller: Caller
    ) -> pb.FailApplicationAttemptResponse:
        attempt = self._attempt(request.application_attempt_id)
        self._may_modify(attempt.app, caller)
        self._applications.fail_attempt(attempt, f"Attempt failed by user {caller.user} at {caller.address[0]}")
        return pb.FailApplicationAttemptResponse()

    def update_application_priority(
        self, request: pb.UpdateApplicationPriorityRequest, caller: Caller
    ) -> pb.UpdateApplicationPriorityResponse:
        app = self._application(request.applicationId)
        self._may_modify(app, caller)
        self._applications.set_priority(app, request.applicationPriority.priority)
        response = pb.UpdateApplicationPriorityResponse()
        response.applicationPriority.priority = app.priority
        return response

    # ---- attempts and containers

    def _attempt(self, message: common.ApplicationAttemptId) -> Attempt:
        self._application(message.application_id)
        attempt_id = convert.attempt_id(message)
        attempt = self._cluster.find_attempt(attempt_id)
        if attempt is None:
            raise ApplicationAttemptNotFound(f"ApplicationAttempt with id '{attempt_id}' doesn't exist in RM.")
        return attempt

    def get_application_attempt_report(
        self, request: pb.GetApplicationAttemptReportRequest, caller: Caller
    ) -> pb.GetApplicationAttemptReportResponse:
        report = self._reports.attempt(self._attempt(request.application_attempt_id))
        return pb.GetApplicationAttemptReportResponse(application_attempt_report=report)

    def get_application_attempts(
        self, request: pb.GetApplicationAttemptsRequest, caller: Caller
    ) -> pb.GetApplicationAttemptsResponse:
        app = self._application(request.application_id)
        reports = [self._reports.attempt(attempt) for attempt in app.attempts]
        return pb.GetApplicationAttemptsResponse(application_attempts=reports)

    def get_container_report(
        self, request: pb.GetContainerReportRequest, caller: Caller
    ) -> pb.GetContainerReportResponse:
        container_id = convert.container_id(request.container_id)
        attempt = self._attempt(request.container_id.app_attempt_id)
        live = self._cluster.containers.get(container_id)
        container = live or next((c for c in attempt.ended if c.id == container_id), None)
        if container is None:
            raise ContainerNotFound(f"Container with id '{container_id}' doesn't exist in RM.")
        return pb.GetContainerReportResponse(container_report=container_report_pb(container, attempt.app.user))

    def get_containers(self, request: pb.GetContainersRequest, caller: Caller) -> pb.GetContainersResponse:
        attempt = self._attempt(request.application_attempt_id)
        containers = {c.id: c for c in attempt.ended} | attempt.containers
        if attempt.master is not None:
            containers[attempt.master.id] = attempt.master
        user = attempt.app.user
        return pb.GetContainersResponse(
            containers=[container_report_pb(containers[container_id], user) for container_id in sorted(containers)]
        )

    def signal_to_container(self, request: pb.SignalContainerRequest, caller: Caller) -> pb.SignalContainerResponse:
        container_id = convert.container_id(request.container_id)
        container = self._cluster.containers.get(container_id)
        if container is None:
            raise YarnError(f"Container {container_id} is not running")
        self._may_modify(self._cluster.applications[container_id.application_id], caller)
        self._cluster.nodes[container.node_id].signals.append(request)
        return pb.SignalContainerResponse()

    # ---- cluster

    def get_cluster_metrics(self, request: pb.GetClusterMetricsRequest, caller: Caller) -> pb.GetClusterMetricsResponse:
        counts = dict.fromkeys(NodeState, 0)
        for node in self._cluster.nodes.values():
            counts[node.state] += 1
        return pb.GetClusterMetricsResponse(
            cluster_metrics=common.YarnClusterMetrics(
                num_node_managers=counts[NodeState.RUNNING],
                num_active_nms=counts[NodeState.RUNNING],
                num_decommissioned_nms=counts[NodeState.DECOMMISSIONED],
                num_lost_nms=counts[NodeState.LOST],
                num_unhealthy_nms=counts[NodeState.UNHEALTHY],
                num_rebooted_nms=counts[NodeState.REBOOTED],
                num_decommissioning_nms=counts[NodeState.DECOMMISSIONING],
                num_shutdown_nms=counts[NodeState.SHUTDOWN],
            )
        )

    def get_cluster_nodes(self, request: pb.GetClusterNodesRequest, caller: Caller) -> pb.GetClusterNodesResponse:
        wanted = set(request.nodeStates)
        nodes = (n for n in self._cluster.nodes.values() if not wanted or n.state.value in wanted)
        return pb.GetClusterNodesResponse(nodeReports=[node_report_pb(node) for node in nodes])

    def get_queue_info(self, request: pb.GetQueueInfoRequest, caller: Caller) -> pb.GetQueueInfoResponse:
        queue = self._cluster.scheduler.view.find_queue(request.queueName)
        if queue is None:
            return pb.GetQueueInfoResponse()
        info = self._reports.queue(
            queue,
            children=request.includeChildQueues,
            recursive=request.recursive,
            applications=request.includeApplications,
        )
        return pb.GetQueueInfoResponse(queueInfo=info)

    def get_queue_user_acls(
        self, request: pb.GetQueueUserAclsInfoRequest, caller: Caller
    ) -> pb.GetQueueUserAclsInfoResponse:
        response = pb.GetQueueUserAclsInfoResponse()
        for queue in self._cluster.scheduler.view.queues.values():
            all_of_it = not self._acls or self._is_administrator(caller.user)
            acls = [common.QACL_SUBMIT_APPLICATIONS] if all_of_it or may_submit(queue, caller.user) else []
            if all_of_it or may_administer(queue, caller.user):
                acls.append(common.QACL_ADMINISTER_QUEUE)
            response.queueUserAcls.add(queueName=queue.spec.name, userAcls=acls)
        return response

    def get_resource_type_info(
        self, request: pb.GetAllResourceTypeInfoRequest, caller: Caller
    ) -> pb.GetAllResourceTypeInfoResponse:
        return pb.GetAllResourceTypeInfoResponse(resource_type_info=resource_types_pb())


class _ApplicationFilter:
    """Which applications a list request wants; what is empty does not restrict."""

    def __init__(self, request: pb.GetApplicationsRequest, user: str) -> None:
        self._types = {t.lower() for t in request.application_types}
        self._states = set(request.application_states)
        self._users = set(request.users)
        if request.scope == pb.OWN:
            self._users = (self._users & {user}) if self._users else {user}
            self._nobody = not self._users
        else:
            self._nobody = False
        self._queues = {q.rpartition(".")[2] for q in request.queues}
        self._tags = {t.lower() for t in request.applicationTags}
        self._name = request.name
        self._started = (request.start_begin, request.start_end or 2**63)
        self._finished = (request.finish_begin, request.finish_end or 2**63)
        self._by_finish = request.HasField("finish_begin") or request.HasField("finish_end")

    def accepts(self, app: Application) -> bool:
        finished = app.conclusion.finished_ms if app.conclusion is not None else 0
        return (
            not self._nobody
            and (not self._types or app.type.lower() in self._types)
            and (not self._states or app.state.value in self._states)
            and (not self._users or app.user in self._users)
            and (not self._queues or app.queue in self._queues)
            and (not self._tags or any(t.lower() in self._tags for t in app.tags))
            and (not self._name or app.name == self._name)
            and self._started[0] <= app.submitted_ms <= self._started[1]
            and (not self._by_finish or self._finished[0] <= finished <= self._finished[1])
        )


def _register_absent_features(server: RpcServer) -> None:
    """Features that are off here: empty lists where clients look around, errors where they want something."""
    for method in _EMPTY:
        server.register(method, EmptyAnswer(method))
    for method, answer in _REFUSED.items():
        server.register(method, answer)


_EMPTY: Final[tuple[Method[Any, Any], ...]] = (
    Protocol.getClusterNodeLabels,
    Protocol.getNodeToLabels,
    Protocol.getLabelsToNodes,
    Protocol.getClusterNodeAttributes,
    Protocol.getAttributesToNodes,
    Protocol.getNodesToAttributes,
)
_NO_PROFILES: Final = Refusal(
    FeatureNotEnabled, "Resource profile is not enabled, please enable resource profile feature before using it"
)
_NO_DELEGATION: Final = Refusal(
    UnsupportedOperation, "delegation tokens are issued on secure clusters only, this one is not"
)
_REFUSED: Final[dict[Method[Any, Any], Refusal]] = {
    Protocol.getResourceProfiles: _NO_PROFILES,
    Protocol.getResourceProfile: _NO_PROFILES,
    Protocol.getDelegationToken: _NO_DELEGATION,
    Protocol.renewDelegationToken: _NO_DELEGATION,
    Protocol.cancelDelegationToken: _NO_DELEGATION,
    Protocol.moveApplicationAcrossQueues: Refusal(
        YarnError, "applications cannot be moved between queues: kill it and submit it to the other queue"
    ),
    Protocol.updateApplicationTimeouts: Refusal(YarnError, "application timeouts are not supported"),
}
