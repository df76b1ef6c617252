"""A client's view of the ResourceManager: typed, blocking, one connection. What commands and submission use.

Every error is one line that names the address: `RmUnavailable` when there is no answer, the RemoteException itself
when the answer is no.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self, TypeVar

from google.protobuf.message import Message

from yaqd.config import Configuration
from yaqd.config.reach import require_cluster
from yaqd.ipc import BlockingRpcClient, RemoteException, RetryPolicy, RpcError
from yaqd.model import (
    ApplicationAttemptId,
    ApplicationId,
    ContainerId,
    FinalApplicationStatus,
    NodeId,
    NodeState,
    Resource,
    YarnApplicationAttemptState,
    YarnApplicationState,
)
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Protocol
from yaqd.proto.protocols import Method
from yaqd.storage.paths import hadoop_user

Req = TypeVar("Req", bound=Message)
Resp = TypeVar("Resp", bound=Message)

ADDRESS_KEY = "yarn.resourcemanager.address"
#: of an application, that are asked for
_ATTEMPTS_MAX = 20


class RmUnavailable(Exception):
    """The ResourceManager does not answer."""


@dataclass(frozen=True, slots=True)
class ApplicationReport:
    id: ApplicationId
    attempt: ApplicationAttemptId | None
    name: str
    user: str
    queue: str
    type: str
    state: YarnApplicationState
    final_status: FinalApplicationStatus
    #: 0..1
    progress: float
    diagnostics: str
    #: the application master's own address; "" and 0 until it has registered
    host: str
    rpc_port: int
    tracking_url: str
    #: epoch ms; finish 0 while it runs
    start_ms: int
    launch_ms: int
    finish_ms: int
    used: Resource
    used_containers: int
    #: in nodes' queues, beside what is used
    waiting: Resource
    waiting_containers: int
    memory_seconds: int
    vcore_seconds: int
    tags: tuple[str, ...]
    priority: int
    #: seconds left of its lifetime; None: no end
    remaining_s: int | None
    log_aggregation: int
    #: whoever asks may not view it: what is beyond its name, queue and state is not told
    is_hidden: bool


@dataclass(frozen=True, slots=True)
class NodeReport:
    id: NodeId
    state: NodeState
    http_address: str
    rack: str
    used: Resource
    capability: Resource
    containers: int
    health: str
    last_health_ms: int
    #: of the containers, those that wait at the node for their turn; None: it lets none wait, or nobody says
    waiting: int | None = None


@dataclass(frozen=True, slots=True)
class QueueReport:
    name: str
    path: str
    #: shares of the parent, 0..1
    capacity: float
    maximum_capacity: float
    current_capacity: float
    state: str
    running: int
    pending: int
    children: tuple["QueueReport", ...]


@dataclass(frozen=True, slots=True)
class ContainerReport:
    id: ContainerId
    node: NodeId | None
    resource: Resource
    state: int
    exit_status: int
    diagnostics: str
    log_url: str
    created_ms: int
    finished_ms: int


@dataclass(frozen=True, slots=True)
class AttemptReport:
    id: ApplicationAttemptId
    state: YarnApplicationAttemptState
    diagnostics: str
    #: epoch ms; finish 0 while it runs
    start_ms: int
    finish_ms: int
    #: where its master's container was; None: it had none, or the ResourceManager knows no more of it
    node: NodeId | None


class RmClient:
    def __init__(
        self, conf: Configuration, *, user: str | None = None, timeout_s: float = 30.0, patience_s: float = 3.0
    ) -> None:
        """`patience_s`: how long a ResourceManager that refuses connections is tried again. Raises ConfigError where
        nothing names one."""
        require_cluster(conf)
        self.user = user or hadoop_user()
        self.address = conf.get_address(ADDRESS_KEY)
        attempts = max(1, int(patience_s / 0.3))
        self._client = BlockingRpcClient(
            *self.address,
            user=self.user,
            timeout_s=timeout_s,
            connect_retries=RetryPolicy(attempts=attempts, first_delay_s=0.1, delay_max_s=0.5),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def _call(self, method: Method[Req, Resp], request: Req) -> Resp:
        # all calls used here may be repeated: submission and kill are idempotent by protocol
        try:
            return self._client.call(method, request, idempotent=True)
        except RpcError as error:
            host, port = self.address
            raise RmUnavailable(
                f"no ResourceManager at {host}:{port} ({ADDRESS_KEY}): {error}; start it, or name another with "
                f"HADOOP_CONF_DIR or -D {ADDRESS_KEY}=HOST:PORT"
            ) from None

    # ---- applications

    def new_application(self) -> tuple[ApplicationId, Resource]:
        """Gets a fresh id and the largest container there can be."""
        response = self._call(Protocol.getNewApplication, pb.GetNewApplicationRequest())
        return convert.application_id(response.application_id), convert.resource(response.maximumCapability)

    def submit(self, context: common.ApplicationSubmissionContext) -> None:
        self._call(Protocol.submitApplication, pb.SubmitApplicationRequest(application_submission_context=context))

    def report(self, application_id: ApplicationId) -> ApplicationReport:
        """Raises ApplicationNotFound."""
        request = pb.GetApplicationReportRequest(application_id=convert.application_id_pb(application_id))
        return _application(self._call(Protocol.getApplicationReport, request).application_report)

    def applications(
        self,
        *,
        states: Iterable[YarnApplicationState] = (),
        users: Iterable[str] = (),
        queues: Iterable[str] = (),
        types: Iterable[str] = (),
        tags: Iterable[str] = (),
        limit: int | None = None,
    ) -> list[ApplicationReport]:
        """Lists all that match; an empty filter matches all."""
        request = pb.GetApplicationsRequest(users=users, queues=queues, application_types=types, applicationTags=tags)
        request.application_states.extend(int(s) for s in states)  # type: ignore[misc]
        if limit is not None:
            request.limit = limit
        return [_application(a) for a in self._call(Protocol.getApplications, request).applications]

    def kill(self, application_id: ApplicationId, diagnostics: str = "") -> bool:
        """Asks for the application's end and returns whether it has ended; call again until it has."""
        request = pb.KillApplicationRequest(application_id=convert.application_id_pb(application_id))
        if diagnostics:
            request.diagnostics = diagnostics
        return self._call(Protocol.forceKillApplication, request).is_kill_completed

    def move(self, application_id: ApplicationId, queue: str) -> None:
        request = pb.MoveApplicationAcrossQueuesRequest(target_queue=queue)
        request.application_id.CopyFrom(convert.application_id_pb(application_id))
        self._call(Protocol.moveApplicationAcrossQueues, request)

    def set_priority(self, application_id: ApplicationId, priority: int) -> int:
        """Sets the priority and returns what it is then.

        It is no higher than the cluster's highest; of an application that has ended it stays as before.
        """
        request = pb.UpdateApplicationPriorityRequest(applicationId=convert.application_id_pb(application_id))
        request.applicationPriority.priority = priority
        return self._call(Protocol.updateApplicationPriority, request).applicationPriority.priority

    def containers(self, attempt_id: ApplicationAttemptId) -> list[ContainerReport]:
        request = pb.GetContainersRequest(application_attempt_id=convert.attempt_id_pb(attempt_id))
        return [_container(c) for c in self._call(Protocol.getContainers, request).containers]

    def attempts(self, application_id: ApplicationId) -> list[AttemptReport]:
        """Lists the last attempts that the ResourceManager knows: a stock one knows none of before its start."""
        request = pb.GetApplicationAttemptsRequest(application_id=convert.application_id_pb(application_id))
        found = self._call(Protocol.getApplicationAttempts, request).application_attempts
        last = sorted(found, key=lambda message: message.application_attempt_id.attemptId)[-_ATTEMPTS_MAX:]
        return [_attempt(message, self._node_of(message)) for message in last]

    def _node_of(self, message: common.ApplicationAttemptReport) -> NodeId | None:
        """Where an attempt's master is, or was."""
        if not message.HasField("am_container_id"):
            return None
        try:
            request = pb.GetContainerReportRequest(container_id=message.am_container_id)
            report = self._call(Protocol.getContainerReport, request).container_report
        except RemoteException:  # a stock ResourceManager forgets containers that have ended
            return None
        return convert.node_id(report.node_id) if report.HasField("node_id") else None

    # ---- the cluster

    def nodes(self, states: Iterable[NodeState] = ()) -> list[NodeReport]:
        """Lists the nodes in the given states; in any by default."""
        wanted = list(states) or list(NodeState)
        request = pb.GetClusterNodesRequest()
        request.nodeStates.extend(int(s) for s in wanted)  # type: ignore[misc]
        return [_node(n) for n in self._call(Protocol.getClusterNodes, request).nodeReports]

    def queue(self, name: str = "root") -> QueueReport | None:
        """Returns the queue with everything below it; None when there is no such queue."""
        request = pb.GetQueueInfoRequest(
            queueName=name, includeApplications=False, includeChildQueues=True, recursive=True
        )
        response = self._call(Protocol.getQueueInfo, request)
        return _queue(response.queueInfo) if response.HasField("queueInfo") else None


def _application(message: common.ApplicationReport) -> ApplicationReport:
    usage = message.app_resource_Usage
    attempt = message.currentApplicationAttemptId
    registered = message.rpc_port > 0 and message.host not in ("", "N/A")
    return ApplicationReport(
        id=convert.application_id(message.applicationId),
        attempt=convert.attempt_id(attempt) if attempt.attemptId > 0 else None,
        name=message.name,
        user=message.user,
        queue=message.queue,
        type=message.applicationType,
        state=YarnApplicationState(message.yarn_application_state),
        final_status=FinalApplicationStatus(message.final_application_status),
        progress=message.progress,
        diagnostics="" if message.diagnostics == "N/A" else message.diagnostics,
        host=message.host if registered else "",
        rpc_port=message.rpc_port if registered else 0,
        tracking_url=message.trackingUrl,
        start_ms=message.startTime,
        launch_ms=message.launchTime,
        finish_ms=message.finishTime,
        used=convert.resource(usage.used_resources).floored(),
        used_containers=max(0, usage.num_used_containers),
        waiting=convert.resource(usage.yaq_waiting_resources).floored(),
        waiting_containers=max(0, usage.yaq_waiting),
        memory_seconds=max(0, usage.memory_seconds),
        vcore_seconds=max(0, usage.vcore_seconds),
        tags=tuple(message.applicationTags),
        priority=message.priority.priority,
        remaining_s=_remaining_s(message),
        log_aggregation=message.log_aggregation_status,
        # as Hadoop's RMAppImpl puts it; whoever may view it is told an attempt, or none yet
        is_hidden=attempt.attemptId < 0 and message.diagnostics == "N/A",
    )


def _attempt(message: common.ApplicationAttemptReport, node: NodeId | None) -> AttemptReport:
    return AttemptReport(
        id=convert.attempt_id(message.application_attempt_id),
        state=YarnApplicationAttemptState(message.yarn_application_attempt_state),
        diagnostics="" if message.diagnostics == "N/A" else message.diagnostics,
        start_ms=message.startTime,
        finish_ms=message.finishTime,
        node=node,
    )


def _remaining_s(message: common.ApplicationReport) -> int | None:
    ends = (entry.application_timeout.remaining_time for entry in message.appTimeouts)
    return next((remaining for remaining in ends if remaining >= 0), None)


def _node(message: common.NodeReport) -> NodeReport:
    return NodeReport(
        id=convert.node_id(message.nodeId),
        state=NodeState(message.node_state),
        http_address=message.httpAddress,
        rack=message.rackName,
        used=convert.resource(message.used),
        capability=convert.resource(message.capability),
        containers=message.numContainers,
        health=message.health_report,
        last_health_ms=message.last_health_report_time,
        waiting=message.yaq_waiting if message.HasField("yaq_waiting") else None,
    )


_QUEUE_STATES = {1: "STOPPED", 2: "RUNNING", 3: "DRAINING"}


def _queue(message: common.QueueInfo) -> QueueReport:
    statistics = message.queueStatistics
    return QueueReport(
        name=message.queueName,
        path=message.queuePath or message.queueName,
        capacity=message.capacity,
        maximum_capacity=message.maximumCapacity,
        current_capacity=message.currentCapacity,
        state=_QUEUE_STATES.get(message.state, "UNKNOWN"),
        running=statistics.numAppsRunning,
        pending=statistics.numAppsPending,
        children=tuple(_queue(q) for q in message.childQueues),
    )


def _container(message: common.ContainerReport) -> ContainerReport:
    return ContainerReport(
        id=convert.container_id(message.container_id),
        node=convert.node_id(message.node_id) if message.HasField("node_id") else None,
        resource=convert.resource(message.resource),
        state=message.container_state,
        exit_status=message.container_exit_status,
        diagnostics="" if message.diagnostics_info == "N/A" else message.diagnostics_info,
        log_url=message.log_url,
        created_ms=message.creation_time,
        finished_ms=message.finish_time,
    )
