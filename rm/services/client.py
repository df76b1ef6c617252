"""ApplicationClientProtocol: what users and their tools ask of the ResourceManager.

A submission is answered when the state store has it. Whatever this ResourceManager has no use for is answered as a
stock one answers when the feature is off. It has the exception class that Hadoop's clients expect.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from rm.applications.filter import ListFilter
from rm.applications.former_attempts import every_attempt
from rm.applications.life import Applications, SubmissionRefused
from rm.applications.lifetimes import check_lifetime
from rm.applications.master_asks import label_expressions, master_resource
from rm.applications.records import Application, Attempt
from rm.applications.states import AppStage
from rm.applications.tags import TagLimits
from rm.cluster import Cluster
from rm.scheduler.queues.admission import is_listed_above
from rm.scheduler.view.calculators import InvalidAsk
from rm.security.access import Access, submission_denied
from rm.security.tokens import TokenMint
from rm.services.absent_features import check_no_label, register_absent_features
from rm.services.lookups import find_application, find_attempt
from rm.services.messages import container_report_pb, node_report_pb, resource_types_pb
from rm.services.reports import Reports
from rm.store.state_store import StateStoreError
from yaqd.ipc import Caller, RpcServer
from yaqd.ipc.errors import (
    ContainerNotFound,
    InvalidResourceRequest,
    RemoteIOError,
    YarnError,
)
from yaqd.model import ApplicationId, NodeState, YarnApplicationAttemptState
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Protocol

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
        access: Access,
        tag_limits: TagLimits,
        *,
        only_viewable: bool,
    ) -> None:
        """`only_viewable`: lists leave out what the caller may not see, instead of hiding most of it."""
        self._cluster = cluster
        self._applications = applications
        self._reports = reports
        self._tokens = tokens
        self._submission_stored = submission_stored
        self._access = access
        self._tag_limits = tag_limits
        self._only_viewable = only_viewable

    def register_on(self, server: RpcServer) -> None:
        server.register(Protocol.getNewApplication, self.get_new_application)
        server.register(Protocol.submitApplication, self.submit_application)
        server.register(Protocol.getApplicationReport, self.get_application_report)
        server.register(Protocol.getApplications, self.get_applications)
        server.register(Protocol.getApplicationAttemptReport, self.get_application_attempt_report)
        server.register(Protocol.getApplicationAttempts, self.get_application_attempts)
        server.register(Protocol.getContainerReport, self.get_container_report)
        server.register(Protocol.getContainers, self.get_containers)
        server.register(Protocol.getClusterMetrics, self.get_cluster_metrics)
        server.register(Protocol.getClusterNodes, self.get_cluster_nodes)
        server.register(Protocol.getQueueInfo, self.get_queue_info)
        server.register(Protocol.getQueueUserAcls, self.get_queue_user_acls)
        server.register(Protocol.getResourceTypeInfo, self.get_resource_type_info)
        register_absent_features(server)

    # ---- submission

    def get_new_application(self, request: pb.GetNewApplicationRequest, caller: Caller) -> pb.GetNewApplicationResponse:
        response = pb.GetNewApplicationResponse()
        response.application_id.CopyFrom(convert.application_id_pb(self._applications.new_id()))
        convert.put_resource(response.maximumCapability, self._cluster.scheduler.maximum_allocation())
        return response

    async def submit_application(
        self, request: pb.SubmitApplicationRequest, caller: Caller
    ) -> pb.SubmitApplicationResponse:
        context = request.application_submission_context
        app_id = convert.application_id(context.application_id)
        app = self._cluster.applications.get(app_id)
        if app is None:
            self._check_submission(context, app_id, caller.user)
            # a copy of its own: a part of a message keeps all of it in memory, whatever came along
            own = common.ApplicationSubmissionContext()
            own.CopyFrom(context)
            try:
                app = self._applications.submit(own, caller.user)
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
        self._tag_limits.check(context.applicationTags)
        check_lifetime(context)
        scheduler = self._cluster.scheduler
        queue = context.queue
        if not queue:
            raise YarnError(
                f"Failed to place application {app_id} in a queue and submit context queue is null or empty"
            )
        leaf = scheduler.facts.queue(queue)
        reason = scheduler.facts.refusal(app_id, queue, user)
        if reason is not None:
            raise YarnError(f"Failed to submit {app_id} to YARN : {reason}")
        if leaf is not None and not self._access.may_submit(user, leaf):
            raise submission_denied(user, app_id, queue)
        if not context.unmanaged_am:
            for expression in label_expressions(context):
                check_no_label(expression)
            try:
                scheduler.facts.bounds.check(master_resource(context), scheduler.maximum_allocation())
            except InvalidAsk as error:
                raise InvalidResourceRequest(str(error)) from None
        if context.HasField("reservation_id"):
            raise YarnError("reservations are not supported: submit without a reservation id")

    # ---- applications

    def get_application_report(
        self, request: pb.GetApplicationReportRequest, caller: Caller
    ) -> pb.GetApplicationReportResponse:
        app = find_application(self._cluster, request.application_id)
        if not self._access.may_view(caller.user, app):
            return pb.GetApplicationReportResponse(application_report=self._reports.hidden(app))
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
        wanted = ListFilter(request, caller.user)
        only_viewable = self._only_viewable or request.scope == pb.VIEWABLE
        limit = request.limit if request.HasField("limit") else len(self._cluster.applications)
        for app in self._cluster.applications.values():
            if len(response.applications) >= limit:
                break
            if not wanted.accepts(app):
                continue
            if self._access.may_view(caller.user, app):
                response.applications.append(self._reports.application(app))
            elif not only_viewable:
                response.applications.append(self._reports.hidden(app))
        return response

    # ---- attempts and containers

    def _visible_attempt(self, message: common.ApplicationAttemptId, caller: Caller, what: str = "") -> Attempt:
        app = find_application(self._cluster, message.application_id)
        self._access.check_view(caller, app, what)
        return find_attempt(self._cluster, app, message)

    def get_application_attempt_report(
        self, request: pb.GetApplicationAttemptReportRequest, caller: Caller
    ) -> pb.GetApplicationAttemptReportResponse:
        named = request.application_attempt_id
        attempt = self._visible_attempt(named, caller, f"attempt {convert.attempt_id(named)}")
        report = self._reports.attempt(attempt)
        return pb.GetApplicationAttemptReportResponse(application_attempt_report=report)

    def get_application_attempts(
        self, request: pb.GetApplicationAttemptsRequest, caller: Caller
    ) -> pb.GetApplicationAttemptsResponse:
        app = find_application(self._cluster, request.application_id)
        self._access.check_view(caller, app)
        reports = [self._reports.attempt(attempt) for attempt in every_attempt(app)]
        return pb.GetApplicationAttemptsResponse(application_attempts=reports)

    def get_container_report(
        self, request: pb.GetContainerReportRequest, caller: Caller
    ) -> pb.GetContainerReportResponse:
        container_id = convert.container_id(request.container_id)
        attempt = self._visible_attempt(request.container_id.app_attempt_id, caller)
        live = self._cluster.containers.get(container_id)
        known = (c for a in every_attempt(attempt.app) for c in (a.master, *a.ended) if c is not None)
        container = live or next((c for c in known if c.id == container_id), None)
        if container is None:
            raise ContainerNotFound(f"Container with id '{container_id}' doesn't exist in RM.")
        return pb.GetContainerReportResponse(container_report=container_report_pb(container, attempt.app.user))

    def get_containers(self, request: pb.GetContainersRequest, caller: Caller) -> pb.GetContainersResponse:
        attempt = self._visible_attempt(request.application_attempt_id, caller)
        containers = {c.id: c for c in attempt.ended} | attempt.containers
        if attempt.master is not None:
            containers[attempt.master.id] = attempt.master
        user = attempt.app.user
        return pb.GetContainersResponse(
            containers=[container_report_pb(containers[container_id], user) for container_id in sorted(containers)]
        )

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
        queue = self._cluster.scheduler.facts.queue(request.queueName)
        if queue is None:
            return pb.GetQueueInfoResponse()
        info = self._reports.queue(
            queue,
            children=request.includeChildQueues,
            recursive=request.recursive,
            shown=self._shown_to(caller.user) if request.includeApplications else None,
        )
        return pb.GetQueueInfoResponse(queueInfo=info)

    def _shown_to(self, user: str) -> Callable[[Application], bool]:
        return lambda app: self._access.may_view(user, app)

    def get_queue_user_acls(
        self, request: pb.GetQueueUserAclsInfoRequest, caller: Caller
    ) -> pb.GetQueueUserAclsInfoResponse:
        """Answer what the queues' own lists say, whether or not `yarn.acl.enable` has anybody ask them."""
        response = pb.GetQueueUserAclsInfoResponse()
        user, groups_of = caller.user, self._access.groups_of
        for queue in self._cluster.scheduler.facts.root.walk():
            acls = []
            if is_listed_above(queue, lambda spec: spec.submit_acl, user, groups_of):
                acls.append(common.QACL_SUBMIT_APPLICATIONS)
            if is_listed_above(queue, lambda spec: spec.administer_acl, user, groups_of):
                acls.append(common.QACL_ADMINISTER_QUEUE)
            response.queueUserAcls.add(queueName=queue.path, userAcls=acls)
        return response

    def get_resource_type_info(
        self, request: pb.GetAllResourceTypeInfoRequest, caller: Caller
    ) -> pb.GetAllResourceTypeInfoResponse:
        return pb.GetAllResourceTypeInfoResponse(resource_type_info=resource_types_pb(self._cluster.resource_types))
