from yaqd.proto import yarn_common_pb2 as _yarn_common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ApplicationsRequestScope(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ALL: _ClassVar[ApplicationsRequestScope]
    VIEWABLE: _ClassVar[ApplicationsRequestScope]
    OWN: _ClassVar[ApplicationsRequestScope]

class SchedulerResourceTypes(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MEMORY: _ClassVar[SchedulerResourceTypes]
    CPU: _ClassVar[SchedulerResourceTypes]

class ContainerUpdateType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    INCREASE_RESOURCE: _ClassVar[ContainerUpdateType]
    DECREASE_RESOURCE: _ClassVar[ContainerUpdateType]
    PROMOTE_EXECUTION_TYPE: _ClassVar[ContainerUpdateType]
    DEMOTE_EXECUTION_TYPE: _ClassVar[ContainerUpdateType]

class ConvergenceClass(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONVERGENCE_AUTO: _ClassVar[ConvergenceClass]
    SUBLINEAR: _ClassVar[ConvergenceClass]
    SUPERLINEAR: _ClassVar[ConvergenceClass]

class LocalizationState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    L_PENDING: _ClassVar[LocalizationState]
    L_COMPLETED: _ClassVar[LocalizationState]
    L_FAILED: _ClassVar[LocalizationState]
ALL: ApplicationsRequestScope
VIEWABLE: ApplicationsRequestScope
OWN: ApplicationsRequestScope
MEMORY: SchedulerResourceTypes
CPU: SchedulerResourceTypes
INCREASE_RESOURCE: ContainerUpdateType
DECREASE_RESOURCE: ContainerUpdateType
PROMOTE_EXECUTION_TYPE: ContainerUpdateType
DEMOTE_EXECUTION_TYPE: ContainerUpdateType
CONVERGENCE_AUTO: ConvergenceClass
SUBLINEAR: ConvergenceClass
SUPERLINEAR: ConvergenceClass
L_PENDING: LocalizationState
L_COMPLETED: LocalizationState
L_FAILED: LocalizationState

class GetNewApplicationRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetNewApplicationResponse(_message.Message):
    __slots__ = ("application_id", "maximumCapability")
    APPLICATION_ID_FIELD_NUMBER: _ClassVar[int]
    MAXIMUMCAPABILITY_FIELD_NUMBER: _ClassVar[int]
    application_id: _yarn_common_pb2.ApplicationId
    maximumCapability: _yarn_common_pb2.Resource
    def __init__(self, application_id: _Optional[_Union[_yarn_common_pb2.ApplicationId, _Mapping]] = ..., maximumCapability: _Optional[_Union[_yarn_common_pb2.Resource, _Mapping]] = ...) -> None: ...

class GetApplicationReportRequest(_message.Message):
    __slots__ = ("application_id",)
    APPLICATION_ID_FIELD_NUMBER: _ClassVar[int]
    application_id: _yarn_common_pb2.ApplicationId
    def __init__(self, application_id: _Optional[_Union[_yarn_common_pb2.ApplicationId, _Mapping]] = ...) -> None: ...

class GetApplicationReportResponse(_message.Message):
    __slots__ = ("application_report",)
    APPLICATION_REPORT_FIELD_NUMBER: _ClassVar[int]
    application_report: _yarn_common_pb2.ApplicationReport
    def __init__(self, application_report: _Optional[_Union[_yarn_common_pb2.ApplicationReport, _Mapping]] = ...) -> None: ...

class SubmitApplicationRequest(_message.Message):
    __slots__ = ("application_submission_context",)
    APPLICATION_SUBMISSION_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    application_submission_context: _yarn_common_pb2.ApplicationSubmissionContext
    def __init__(self, application_submission_context: _Optional[_Union[_yarn_common_pb2.ApplicationSubmissionContext, _Mapping]] = ...) -> None: ...

class SubmitApplicationResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class FailApplicationAttemptRequest(_message.Message):
    __slots__ = ("application_attempt_id",)
    APPLICATION_ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    application_attempt_id: _yarn_common_pb2.ApplicationAttemptId
    def __init__(self, application_attempt_id: _Optional[_Union[_yarn_common_pb2.ApplicationAttemptId, _Mapping]] = ...) -> None: ...

class FailApplicationAttemptResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class KillApplicationRequest(_message.Message):
    __slots__ = ("application_id", "diagnostics")
    APPLICATION_ID_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSTICS_FIELD_NUMBER: _ClassVar[int]
    application_id: _yarn_common_pb2.ApplicationId
    diagnostics: str
    def __init__(self, application_id: _Optional[_Union[_yarn_common_pb2.ApplicationId, _Mapping]] = ..., diagnostics: _Optional[str] = ...) -> None: ...

class KillApplicationResponse(_message.Message):
    __slots__ = ("is_kill_completed",)
    IS_KILL_COMPLETED_FIELD_NUMBER: _ClassVar[int]
    is_kill_completed: bool
    def __init__(self, is_kill_completed: _Optional[bool] = ...) -> None: ...

class GetClusterMetricsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetClusterMetricsResponse(_message.Message):
    __slots__ = ("cluster_metrics",)
    CLUSTER_METRICS_FIELD_NUMBER: _ClassVar[int]
    cluster_metrics: _yarn_common_pb2.YarnClusterMetrics
    def __init__(self, cluster_metrics: _Optional[_Union[_yarn_common_pb2.YarnClusterMetrics, _Mapping]] = ...) -> None: ...

class MoveApplicationAcrossQueuesRequest(_message.Message):
    __slots__ = ("application_id", "target_queue")
    APPLICATION_ID_FIELD_NUMBER: _ClassVar[int]
    TARGET_QUEUE_FIELD_NUMBER: _ClassVar[int]
    application_id: _yarn_common_pb2.ApplicationId
    target_queue: str
    def __init__(self, application_id: _Optional[_Union[_yarn_common_pb2.ApplicationId, _Mapping]] = ..., target_queue: _Optional[str] = ...) -> None: ...

class MoveApplicationAcrossQueuesResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetApplicationsRequest(_message.Message):
    __slots__ = ("application_types", "application_states", "users", "queues", "limit", "start_begin", "start_end", "finish_begin", "finish_end", "applicationTags", "scope", "name")
    APPLICATION_TYPES_FIELD_NUMBER: _ClassVar[int]
    APPLICATION_STATES_FIELD_NUMBER: _ClassVar[int]
    USERS_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    START_BEGIN_FIELD_NUMBER: _ClassVar[int]
    START_END_FIELD_NUMBER: _ClassVar[int]
    FINISH_BEGIN_FIELD_NUMBER: _ClassVar[int]
    FINISH_END_FIELD_NUMBER: _ClassVar[int]
    APPLICATIONTAGS_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    application_types: _containers.RepeatedScalarFieldContainer[str]
    application_states: _containers.RepeatedScalarFieldContainer[_yarn_common_pb2.YarnApplicationState]
    users: _containers.RepeatedScalarFieldContainer[str]
    queues: _containers.RepeatedScalarFieldContainer[str]
    limit: int
    start_begin: int
    start_end: int
    finish_begin: int
    finish_end: int
    applicationTags: _containers.RepeatedScalarFieldContainer[str]
    scope: ApplicationsRequestScope
    name: str
    def __init__(self, application_types: _Optional[_Iterable[str]] = ..., application_states: _Optional[_Iterable[_Union[_yarn_common_pb2.YarnApplicationState, str]]] = ..., users: _Optional[_Iterable[str]] = ..., queues: _Optional[_Iterable[str]] = ..., limit: _Optional[int] = ..., start_begin: _Optional[int] = ..., start_end: _Optional[int] = ..., finish_begin: _Optional[int] = ..., finish_end: _Optional[int] = ..., applicationTags: _Optional[_Iterable[str]] = ..., scope: _Optional[_Union[ApplicationsRequestScope, str]] = ..., name: _Optional[str] = ...) -> None: ...

class GetApplicationsResponse(_message.Message):
    __slots__ = ("applications",)
    APPLICATIONS_FIELD_NUMBER: _ClassVar[int]
    applications: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.ApplicationReport]
    def __init__(self, applications: _Optional[_Iterable[_Union[_yarn_common_pb2.ApplicationReport, _Mapping]]] = ...) -> None: ...

class GetClusterNodesRequest(_message.Message):
    __slots__ = ("nodeStates",)
    NODESTATES_FIELD_NUMBER: _ClassVar[int]
    nodeStates: _containers.RepeatedScalarFieldContainer[_yarn_common_pb2.NodeState]
    def __init__(self, nodeStates: _Optional[_Iterable[_Union[_yarn_common_pb2.NodeState, str]]] = ...) -> None: ...

class GetClusterNodesResponse(_message.Message):
    __slots__ = ("nodeReports",)
    NODEREPORTS_FIELD_NUMBER: _ClassVar[int]
    nodeReports: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.NodeReport]
    def __init__(self, nodeReports: _Optional[_Iterable[_Union[_yarn_common_pb2.NodeReport, _Mapping]]] = ...) -> None: ...

class GetQueueInfoRequest(_message.Message):
    __slots__ = ("queueName", "includeApplications", "includeChildQueues", "recursive", "subClusterId")
    QUEUENAME_FIELD_NUMBER: _ClassVar[int]
    INCLUDEAPPLICATIONS_FIELD_NUMBER: _ClassVar[int]
    INCLUDECHILDQUEUES_FIELD_NUMBER: _ClassVar[int]
    RECURSIVE_FIELD_NUMBER: _ClassVar[int]
    SUBCLUSTERID_FIELD_NUMBER: _ClassVar[int]
    queueName: str
    includeApplications: bool
    includeChildQueues: bool
    recursive: bool
    subClusterId: str
    def __init__(self, queueName: _Optional[str] = ..., includeApplications: _Optional[bool] = ..., includeChildQueues: _Optional[bool] = ..., recursive: _Optional[bool] = ..., subClusterId: _Optional[str] = ...) -> None: ...

class GetQueueInfoResponse(_message.Message):
    __slots__ = ("queueInfo",)
    QUEUEINFO_FIELD_NUMBER: _ClassVar[int]
    queueInfo: _yarn_common_pb2.QueueInfo
    def __init__(self, queueInfo: _Optional[_Union[_yarn_common_pb2.QueueInfo, _Mapping]] = ...) -> None: ...

class GetQueueUserAclsInfoRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetQueueUserAclsInfoResponse(_message.Message):
    __slots__ = ("queueUserAcls",)
    QUEUEUSERACLS_FIELD_NUMBER: _ClassVar[int]
    queueUserAcls: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.QueueUserACLInfo]
    def __init__(self, queueUserAcls: _Optional[_Iterable[_Union[_yarn_common_pb2.QueueUserACLInfo, _Mapping]]] = ...) -> None: ...

class GetNodesToLabelsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetNodesToLabelsResponse(_message.Message):
    __slots__ = ("nodeToLabels",)
    NODETOLABELS_FIELD_NUMBER: _ClassVar[int]
    nodeToLabels: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.NodeIdToLabels]
    def __init__(self, nodeToLabels: _Optional[_Iterable[_Union[_yarn_common_pb2.NodeIdToLabels, _Mapping]]] = ...) -> None: ...

class GetLabelsToNodesRequest(_message.Message):
    __slots__ = ("nodeLabels",)
    NODELABELS_FIELD_NUMBER: _ClassVar[int]
    nodeLabels: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, nodeLabels: _Optional[_Iterable[str]] = ...) -> None: ...

class GetLabelsToNodesResponse(_message.Message):
    __slots__ = ("labelsToNodes",)
    LABELSTONODES_FIELD_NUMBER: _ClassVar[int]
    labelsToNodes: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.LabelsToNodeIds]
    def __init__(self, labelsToNodes: _Optional[_Iterable[_Union[_yarn_common_pb2.LabelsToNodeIds, _Mapping]]] = ...) -> None: ...

class GetClusterNodeLabelsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetClusterNodeLabelsResponse(_message.Message):
    __slots__ = ("deprecatedNodeLabels", "nodeLabels")
    DEPRECATEDNODELABELS_FIELD_NUMBER: _ClassVar[int]
    NODELABELS_FIELD_NUMBER: _ClassVar[int]
    deprecatedNodeLabels: _containers.RepeatedScalarFieldContainer[str]
    nodeLabels: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.NodeLabel]
    def __init__(self, deprecatedNodeLabels: _Optional[_Iterable[str]] = ..., nodeLabels: _Optional[_Iterable[_Union[_yarn_common_pb2.NodeLabel, _Mapping]]] = ...) -> None: ...

class GetClusterNodeAttributesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetClusterNodeAttributesResponse(_message.Message):
    __slots__ = ("nodeAttributes",)
    NODEATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    nodeAttributes: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.NodeAttributeInfo]
    def __init__(self, nodeAttributes: _Optional[_Iterable[_Union[_yarn_common_pb2.NodeAttributeInfo, _Mapping]]] = ...) -> None: ...

class GetAttributesToNodesRequest(_message.Message):
    __slots__ = ("nodeAttributes",)
    NODEATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    nodeAttributes: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.NodeAttributeKey]
    def __init__(self, nodeAttributes: _Optional[_Iterable[_Union[_yarn_common_pb2.NodeAttributeKey, _Mapping]]] = ...) -> None: ...

class GetAttributesToNodesResponse(_message.Message):
    __slots__ = ("attributesToNodes",)
    ATTRIBUTESTONODES_FIELD_NUMBER: _ClassVar[int]
    attributesToNodes: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.AttributeToNodes]
    def __init__(self, attributesToNodes: _Optional[_Iterable[_Union[_yarn_common_pb2.AttributeToNodes, _Mapping]]] = ...) -> None: ...

class GetNodesToAttributesRequest(_message.Message):
    __slots__ = ("hostnames",)
    HOSTNAMES_FIELD_NUMBER: _ClassVar[int]
    hostnames: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, hostnames: _Optional[_Iterable[str]] = ...) -> None: ...

class GetNodesToAttributesResponse(_message.Message):
    __slots__ = ("nodesToAttributes",)
    NODESTOATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    nodesToAttributes: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.NodeToAttributes]
    def __init__(self, nodesToAttributes: _Optional[_Iterable[_Union[_yarn_common_pb2.NodeToAttributes, _Mapping]]] = ...) -> None: ...

class UpdateApplicationPriorityRequest(_message.Message):
    __slots__ = ("applicationId", "applicationPriority")
    APPLICATIONID_FIELD_NUMBER: _ClassVar[int]
    APPLICATIONPRIORITY_FIELD_NUMBER: _ClassVar[int]
    applicationId: _yarn_common_pb2.ApplicationId
    applicationPriority: _yarn_common_pb2.Priority
    def __init__(self, applicationId: _Optional[_Union[_yarn_common_pb2.ApplicationId, _Mapping]] = ..., applicationPriority: _Optional[_Union[_yarn_common_pb2.Priority, _Mapping]] = ...) -> None: ...

class UpdateApplicationPriorityResponse(_message.Message):
    __slots__ = ("applicationPriority",)
    APPLICATIONPRIORITY_FIELD_NUMBER: _ClassVar[int]
    applicationPriority: _yarn_common_pb2.Priority
    def __init__(self, applicationPriority: _Optional[_Union[_yarn_common_pb2.Priority, _Mapping]] = ...) -> None: ...

class SignalContainerRequest(_message.Message):
    __slots__ = ("container_id", "command")
    CONTAINER_ID_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    container_id: _yarn_common_pb2.ContainerId
    command: _yarn_common_pb2.SignalContainerCommand
    def __init__(self, container_id: _Optional[_Union[_yarn_common_pb2.ContainerId, _Mapping]] = ..., command: _Optional[_Union[_yarn_common_pb2.SignalContainerCommand, str]] = ...) -> None: ...

class SignalContainerResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class UpdateApplicationTimeoutsRequest(_message.Message):
    __slots__ = ("applicationId", "application_timeouts")
    APPLICATIONID_FIELD_NUMBER: _ClassVar[int]
    APPLICATION_TIMEOUTS_FIELD_NUMBER: _ClassVar[int]
    applicationId: _yarn_common_pb2.ApplicationId
    application_timeouts: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.ApplicationUpdateTimeoutMap]
    def __init__(self, applicationId: _Optional[_Union[_yarn_common_pb2.ApplicationId, _Mapping]] = ..., application_timeouts: _Optional[_Iterable[_Union[_yarn_common_pb2.ApplicationUpdateTimeoutMap, _Mapping]]] = ...) -> None: ...

class UpdateApplicationTimeoutsResponse(_message.Message):
    __slots__ = ("application_timeouts",)
    APPLICATION_TIMEOUTS_FIELD_NUMBER: _ClassVar[int]
    application_timeouts: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.ApplicationUpdateTimeoutMap]
    def __init__(self, application_timeouts: _Optional[_Iterable[_Union[_yarn_common_pb2.ApplicationUpdateTimeoutMap, _Mapping]]] = ...) -> None: ...

class GetAllResourceProfilesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetAllResourceProfilesResponse(_message.Message):
    __slots__ = ("resource_profiles",)
    RESOURCE_PROFILES_FIELD_NUMBER: _ClassVar[int]
    resource_profiles: _yarn_common_pb2.ResourceProfiles
    def __init__(self, resource_profiles: _Optional[_Union[_yarn_common_pb2.ResourceProfiles, _Mapping]] = ...) -> None: ...

class GetResourceProfileRequest(_message.Message):
    __slots__ = ("profile",)
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    profile: str
    def __init__(self, profile: _Optional[str] = ...) -> None: ...

class GetResourceProfileResponse(_message.Message):
    __slots__ = ("resources",)
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    resources: _yarn_common_pb2.Resource
    def __init__(self, resources: _Optional[_Union[_yarn_common_pb2.Resource, _Mapping]] = ...) -> None: ...

class GetAllResourceTypeInfoRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetAllResourceTypeInfoResponse(_message.Message):
    __slots__ = ("resource_type_info",)
    RESOURCE_TYPE_INFO_FIELD_NUMBER: _ClassVar[int]
    resource_type_info: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.ResourceTypeInfo]
    def __init__(self, resource_type_info: _Optional[_Iterable[_Union[_yarn_common_pb2.ResourceTypeInfo, _Mapping]]] = ...) -> None: ...

class GetApplicationAttemptReportRequest(_message.Message):
    __slots__ = ("application_attempt_id",)
    APPLICATION_ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    application_attempt_id: _yarn_common_pb2.ApplicationAttemptId
    def __init__(self, application_attempt_id: _Optional[_Union[_yarn_common_pb2.ApplicationAttemptId, _Mapping]] = ...) -> None: ...

class GetApplicationAttemptReportResponse(_message.Message):
    __slots__ = ("application_attempt_report",)
    APPLICATION_ATTEMPT_REPORT_FIELD_NUMBER: _ClassVar[int]
    application_attempt_report: _yarn_common_pb2.ApplicationAttemptReport
    def __init__(self, application_attempt_report: _Optional[_Union[_yarn_common_pb2.ApplicationAttemptReport, _Mapping]] = ...) -> None: ...

class GetApplicationAttemptsRequest(_message.Message):
    __slots__ = ("application_id",)
    APPLICATION_ID_FIELD_NUMBER: _ClassVar[int]
    application_id: _yarn_common_pb2.ApplicationId
    def __init__(self, application_id: _Optional[_Union[_yarn_common_pb2.ApplicationId, _Mapping]] = ...) -> None: ...

class GetApplicationAttemptsResponse(_message.Message):
    __slots__ = ("application_attempts",)
    APPLICATION_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    application_attempts: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.ApplicationAttemptReport]
    def __init__(self, application_attempts: _Optional[_Iterable[_Union[_yarn_common_pb2.ApplicationAttemptReport, _Mapping]]] = ...) -> None: ...

class GetContainerReportRequest(_message.Message):
    __slots__ = ("container_id",)
    CONTAINER_ID_FIELD_NUMBER: _ClassVar[int]
    container_id: _yarn_common_pb2.ContainerId
    def __init__(self, container_id: _Optional[_Union[_yarn_common_pb2.ContainerId, _Mapping]] = ...) -> None: ...

class GetContainerReportResponse(_message.Message):
    __slots__ = ("container_report",)
    CONTAINER_REPORT_FIELD_NUMBER: _ClassVar[int]
    container_report: _yarn_common_pb2.ContainerReport
    def __init__(self, container_report: _Optional[_Union[_yarn_common_pb2.ContainerReport, _Mapping]] = ...) -> None: ...

class GetContainersRequest(_message.Message):
    __slots__ = ("application_attempt_id",)
    APPLICATION_ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    application_attempt_id: _yarn_common_pb2.ApplicationAttemptId
    def __init__(self, application_attempt_id: _Optional[_Union[_yarn_common_pb2.ApplicationAttemptId, _Mapping]] = ...) -> None: ...

class GetContainersResponse(_message.Message):
    __slots__ = ("containers",)
    CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    containers: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.ContainerReport]
    def __init__(self, containers: _Optional[_Iterable[_Union[_yarn_common_pb2.ContainerReport, _Mapping]]] = ...) -> None: ...

class RegisterApplicationMasterRequest(_message.Message):
    __slots__ = ("host", "rpc_port", "tracking_url", "placement_constraints", "yaq_tolerates_waiting", "yaq_understands")
    HOST_FIELD_NUMBER: _ClassVar[int]
    RPC_PORT_FIELD_NUMBER: _ClassVar[int]
    TRACKING_URL_FIELD_NUMBER: _ClassVar[int]
    PLACEMENT_CONSTRAINTS_FIELD_NUMBER: _ClassVar[int]
    YAQ_TOLERATES_WAITING_FIELD_NUMBER: _ClassVar[int]
    YAQ_UNDERSTANDS_FIELD_NUMBER: _ClassVar[int]
    host: str
    rpc_port: int
    tracking_url: str
    placement_constraints: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.PlacementConstraintMapEntry]
    yaq_tolerates_waiting: bool
    yaq_understands: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, host: _Optional[str] = ..., rpc_port: _Optional[int] = ..., tracking_url: _Optional[str] = ..., placement_constraints: _Optional[_Iterable[_Union[_yarn_common_pb2.PlacementConstraintMapEntry, _Mapping]]] = ..., yaq_tolerates_waiting: _Optional[bool] = ..., yaq_understands: _Optional[_Iterable[str]] = ...) -> None: ...

class RegisterApplicationMasterResponse(_message.Message):
    __slots__ = ("maximumCapability", "client_to_am_token_master_key", "application_ACLs", "containers_from_previous_attempts", "queue", "nm_tokens_from_previous_attempts", "scheduler_resource_types", "resource_profiles", "resource_types", "yaq_understands")
    MAXIMUMCAPABILITY_FIELD_NUMBER: _ClassVar[int]
    CLIENT_TO_AM_TOKEN_MASTER_KEY_FIELD_NUMBER: _ClassVar[int]
    APPLICATION_ACLS_FIELD_NUMBER: _ClassVar[int]
    CONTAINERS_FROM_PREVIOUS_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    NM_TOKENS_FROM_PREVIOUS_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    SCHEDULER_RESOURCE_TYPES_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_PROFILES_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_TYPES_FIELD_NUMBER: _ClassVar[int]
    YAQ_UNDERSTANDS_FIELD_NUMBER: _ClassVar[int]
    maximumCapability: _yarn_common_pb2.Resource
    client_to_am_token_master_key: bytes
    application_ACLs: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.ApplicationACLMap]
    containers_from_previous_attempts: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.Container]
    queue: str
    nm_tokens_from_previous_attempts: _containers.RepeatedCompositeFieldContainer[NMToken]
    scheduler_resource_types: _containers.RepeatedScalarFieldContainer[SchedulerResourceTypes]
    resource_profiles: _yarn_common_pb2.ResourceProfiles
    resource_types: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.ResourceTypeInfo]
    yaq_understands: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, maximumCapability: _Optional[_Union[_yarn_common_pb2.Resource, _Mapping]] = ..., client_to_am_token_master_key: _Optional[bytes] = ..., application_ACLs: _Optional[_Iterable[_Union[_yarn_common_pb2.ApplicationACLMap, _Mapping]]] = ..., containers_from_previous_attempts: _Optional[_Iterable[_Union[_yarn_common_pb2.Container, _Mapping]]] = ..., queue: _Optional[str] = ..., nm_tokens_from_previous_attempts: _Optional[_Iterable[_Union[NMToken, _Mapping]]] = ..., scheduler_resource_types: _Optional[_Iterable[_Union[SchedulerResourceTypes, str]]] = ..., resource_profiles: _Optional[_Union[_yarn_common_pb2.ResourceProfiles, _Mapping]] = ..., resource_types: _Optional[_Iterable[_Union[_yarn_common_pb2.ResourceTypeInfo, _Mapping]]] = ..., yaq_understands: _Optional[_Iterable[str]] = ...) -> None: ...

class FinishApplicationMasterRequest(_message.Message):
    __slots__ = ("diagnostics", "tracking_url", "final_application_status")
    DIAGNOSTICS_FIELD_NUMBER: _ClassVar[int]
    TRACKING_URL_FIELD_NUMBER: _ClassVar[int]
    FINAL_APPLICATION_STATUS_FIELD_NUMBER: _ClassVar[int]
    diagnostics: str
    tracking_url: str
    final_application_status: _yarn_common_pb2.FinalApplicationStatus
    def __init__(self, diagnostics: _Optional[str] = ..., tracking_url: _Optional[str] = ..., final_application_status: _Optional[_Union[_yarn_common_pb2.FinalApplicationStatus, str]] = ...) -> None: ...

class FinishApplicationMasterResponse(_message.Message):
    __slots__ = ("isUnregistered",)
    ISUNREGISTERED_FIELD_NUMBER: _ClassVar[int]
    isUnregistered: bool
    def __init__(self, isUnregistered: _Optional[bool] = ...) -> None: ...

class UpdateContainerRequest(_message.Message):
    __slots__ = ("container_version", "container_id", "update_type", "capability", "execution_type")
    CONTAINER_VERSION_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_ID_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TYPE_FIELD_NUMBER: _ClassVar[int]
    CAPABILITY_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_TYPE_FIELD_NUMBER: _ClassVar[int]
    container_version: int
    container_id: _yarn_common_pb2.ContainerId
    update_type: ContainerUpdateType
    capability: _yarn_common_pb2.Resource
    execution_type: _yarn_common_pb2.ExecutionType
    def __init__(self, container_version: _Optional[int] = ..., container_id: _Optional[_Union[_yarn_common_pb2.ContainerId, _Mapping]] = ..., update_type: _Optional[_Union[ContainerUpdateType, str]] = ..., capability: _Optional[_Union[_yarn_common_pb2.Resource, _Mapping]] = ..., execution_type: _Optional[_Union[_yarn_common_pb2.ExecutionType, str]] = ...) -> None: ...

class UpdateContainerError(_message.Message):
    __slots__ = ("reason", "update_request", "current_container_version")
    REASON_FIELD_NUMBER: _ClassVar[int]
    UPDATE_REQUEST_FIELD_NUMBER: _ClassVar[int]
    CURRENT_CONTAINER_VERSION_FIELD_NUMBER: _ClassVar[int]
    reason: str
    update_request: UpdateContainerRequest
    current_container_version: int
    def __init__(self, reason: _Optional[str] = ..., update_request: _Optional[_Union[UpdateContainerRequest, _Mapping]] = ..., current_container_version: _Optional[int] = ...) -> None: ...

class AllocateRequest(_message.Message):
    __slots__ = ("ask", "release", "blacklist_request", "response_id", "progress", "update_requests", "scheduling_requests", "tracking_url", "yaq_left", "yaq_reports")
    ASK_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    BLACKLIST_REQUEST_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_ID_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    UPDATE_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    SCHEDULING_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    TRACKING_URL_FIELD_NUMBER: _ClassVar[int]
    YAQ_LEFT_FIELD_NUMBER: _ClassVar[int]
    YAQ_REPORTS_FIELD_NUMBER: _ClassVar[int]
    ask: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.ResourceRequest]
    release: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.ContainerId]
    blacklist_request: _yarn_common_pb2.ResourceBlacklistRequest
    response_id: int
    progress: float
    update_requests: _containers.RepeatedCompositeFieldContainer[UpdateContainerRequest]
    scheduling_requests: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.SchedulingRequest]
    tracking_url: str
    yaq_left: _yarn_common_pb2.JobLeft
    yaq_reports: YaqReports
    def __init__(self, ask: _Optional[_Iterable[_Union[_yarn_common_pb2.ResourceRequest, _Mapping]]] = ..., release: _Optional[_Iterable[_Union[_yarn_common_pb2.ContainerId, _Mapping]]] = ..., blacklist_request: _Optional[_Union[_yarn_common_pb2.ResourceBlacklistRequest, _Mapping]] = ..., response_id: _Optional[int] = ..., progress: _Optional[float] = ..., update_requests: _Optional[_Iterable[_Union[UpdateContainerRequest, _Mapping]]] = ..., scheduling_requests: _Optional[_Iterable[_Union[_yarn_common_pb2.SchedulingRequest, _Mapping]]] = ..., tracking_url: _Optional[str] = ..., yaq_left: _Optional[_Union[_yarn_common_pb2.JobLeft, _Mapping]] = ..., yaq_reports: _Optional[_Union[YaqReports, _Mapping]] = ...) -> None: ...

class YaqReports(_message.Message):
    __slots__ = ("training",)
    TRAINING_FIELD_NUMBER: _ClassVar[int]
    training: TrainingReport
    def __init__(self, training: _Optional[_Union[TrainingReport, _Mapping]] = ...) -> None: ...

class TrainingReport(_message.Message):
    __slots__ = ("sequence", "class_hint", "target", "weight", "min_milli", "max_milli", "iterations_expected", "first_iteration", "losses", "cpu_ms_per_iteration", "partitions")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    CLASS_HINT_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    MIN_MILLI_FIELD_NUMBER: _ClassVar[int]
    MAX_MILLI_FIELD_NUMBER: _ClassVar[int]
    ITERATIONS_EXPECTED_FIELD_NUMBER: _ClassVar[int]
    FIRST_ITERATION_FIELD_NUMBER: _ClassVar[int]
    LOSSES_FIELD_NUMBER: _ClassVar[int]
    CPU_MS_PER_ITERATION_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    class_hint: ConvergenceClass
    target: float
    weight: float
    min_milli: int
    max_milli: int
    iterations_expected: int
    first_iteration: int
    losses: _containers.RepeatedScalarFieldContainer[float]
    cpu_ms_per_iteration: float
    partitions: int
    def __init__(self, sequence: _Optional[int] = ..., class_hint: _Optional[_Union[ConvergenceClass, str]] = ..., target: _Optional[float] = ..., weight: _Optional[float] = ..., min_milli: _Optional[int] = ..., max_milli: _Optional[int] = ..., iterations_expected: _Optional[int] = ..., first_iteration: _Optional[int] = ..., losses: _Optional[_Iterable[float]] = ..., cpu_ms_per_iteration: _Optional[float] = ..., partitions: _Optional[int] = ...) -> None: ...

class NMToken(_message.Message):
    __slots__ = ("nodeId", "token")
    NODEID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    nodeId: _yarn_common_pb2.NodeId
    token: _yarn_common_pb2.Token
    def __init__(self, nodeId: _Optional[_Union[_yarn_common_pb2.NodeId, _Mapping]] = ..., token: _Optional[_Union[_yarn_common_pb2.Token, _Mapping]] = ...) -> None: ...

class UpdatedContainer(_message.Message):
    __slots__ = ("update_type", "container")
    UPDATE_TYPE_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_FIELD_NUMBER: _ClassVar[int]
    update_type: ContainerUpdateType
    container: _yarn_common_pb2.Container
    def __init__(self, update_type: _Optional[_Union[ContainerUpdateType, str]] = ..., container: _Optional[_Union[_yarn_common_pb2.Container, _Mapping]] = ...) -> None: ...

class EnhancedHeadroom(_message.Message):
    __slots__ = ("total_pending_count", "total_active_cores")
    TOTAL_PENDING_COUNT_FIELD_NUMBER: _ClassVar[int]
    TOTAL_ACTIVE_CORES_FIELD_NUMBER: _ClassVar[int]
    total_pending_count: int
    total_active_cores: int
    def __init__(self, total_pending_count: _Optional[int] = ..., total_active_cores: _Optional[int] = ...) -> None: ...

class AllocateResponse(_message.Message):
    __slots__ = ("a_m_command", "response_id", "allocated_containers", "completed_container_statuses", "limit", "updated_nodes", "num_cluster_nodes", "preempt", "nm_tokens", "am_rm_token", "application_priority", "collector_info", "update_errors", "updated_containers", "containers_from_previous_attempts", "rejected_scheduling_requests", "enhanced_headroom", "yaq_orders")
    A_M_COMMAND_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_ID_FIELD_NUMBER: _ClassVar[int]
    ALLOCATED_CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_CONTAINER_STATUSES_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_NODES_FIELD_NUMBER: _ClassVar[int]
    NUM_CLUSTER_NODES_FIELD_NUMBER: _ClassVar[int]
    PREEMPT_FIELD_NUMBER: _ClassVar[int]
    NM_TOKENS_FIELD_NUMBER: _ClassVar[int]
    AM_RM_TOKEN_FIELD_NUMBER: _ClassVar[int]
    APPLICATION_PRIORITY_FIELD_NUMBER: _ClassVar[int]
    COLLECTOR_INFO_FIELD_NUMBER: _ClassVar[int]
    UPDATE_ERRORS_FIELD_NUMBER: _ClassVar[int]
    UPDATED_CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    CONTAINERS_FROM_PREVIOUS_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    REJECTED_SCHEDULING_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    ENHANCED_HEADROOM_FIELD_NUMBER: _ClassVar[int]
    YAQ_ORDERS_FIELD_NUMBER: _ClassVar[int]
    a_m_command: _yarn_common_pb2.AMCommand
    response_id: int
    allocated_containers: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.Container]
    completed_container_statuses: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.ContainerStatus]
    limit: _yarn_common_pb2.Resource
    updated_nodes: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.NodeReport]
    num_cluster_nodes: int
    preempt: _yarn_common_pb2.PreemptionMessage
    nm_tokens: _containers.RepeatedCompositeFieldContainer[NMToken]
    am_rm_token: _yarn_common_pb2.Token
    application_priority: _yarn_common_pb2.Priority
    collector_info: _yarn_common_pb2.CollectorInfo
    update_errors: _containers.RepeatedCompositeFieldContainer[UpdateContainerError]
    updated_containers: _containers.RepeatedCompositeFieldContainer[UpdatedContainer]
    containers_from_previous_attempts: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.Container]
    rejected_scheduling_requests: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.RejectedSchedulingRequest]
    enhanced_headroom: EnhancedHeadroom
    yaq_orders: YaqOrders
    def __init__(self, a_m_command: _Optional[_Union[_yarn_common_pb2.AMCommand, str]] = ..., response_id: _Optional[int] = ..., allocated_containers: _Optional[_Iterable[_Union[_yarn_common_pb2.Container, _Mapping]]] = ..., completed_container_statuses: _Optional[_Iterable[_Union[_yarn_common_pb2.ContainerStatus, _Mapping]]] = ..., limit: _Optional[_Union[_yarn_common_pb2.Resource, _Mapping]] = ..., updated_nodes: _Optional[_Iterable[_Union[_yarn_common_pb2.NodeReport, _Mapping]]] = ..., num_cluster_nodes: _Optional[int] = ..., preempt: _Optional[_Union[_yarn_common_pb2.PreemptionMessage, _Mapping]] = ..., nm_tokens: _Optional[_Iterable[_Union[NMToken, _Mapping]]] = ..., am_rm_token: _Optional[_Union[_yarn_common_pb2.Token, _Mapping]] = ..., application_priority: _Optional[_Union[_yarn_common_pb2.Priority, _Mapping]] = ..., collector_info: _Optional[_Union[_yarn_common_pb2.CollectorInfo, _Mapping]] = ..., update_errors: _Optional[_Iterable[_Union[UpdateContainerError, _Mapping]]] = ..., updated_containers: _Optional[_Iterable[_Union[UpdatedContainer, _Mapping]]] = ..., containers_from_previous_attempts: _Optional[_Iterable[_Union[_yarn_common_pb2.Container, _Mapping]]] = ..., rejected_scheduling_requests: _Optional[_Iterable[_Union[_yarn_common_pb2.RejectedSchedulingRequest, _Mapping]]] = ..., enhanced_headroom: _Optional[_Union[EnhancedHeadroom, _Mapping]] = ..., yaq_orders: _Optional[_Union[YaqOrders, _Mapping]] = ...) -> None: ...

class YaqOrders(_message.Message):
    __slots__ = ("cores", "stages")
    CORES_FIELD_NUMBER: _ClassVar[int]
    STAGES_FIELD_NUMBER: _ClassVar[int]
    cores: CoresOrder
    stages: StagesOrder
    def __init__(self, cores: _Optional[_Union[CoresOrder, _Mapping]] = ..., stages: _Optional[_Union[StagesOrder, _Mapping]] = ...) -> None: ...

class StagesOrder(_message.Message):
    __slots__ = ("sequence", "decides", "limit", "shares")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    DECIDES_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    SHARES_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    decides: bool
    limit: int
    shares: _containers.RepeatedCompositeFieldContainer[StageShare]
    def __init__(self, sequence: _Optional[int] = ..., decides: _Optional[bool] = ..., limit: _Optional[int] = ..., shares: _Optional[_Iterable[_Union[StageShare, _Mapping]]] = ...) -> None: ...

class StageShare(_message.Message):
    __slots__ = ("priority", "containers")
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    priority: int
    containers: int
    def __init__(self, priority: _Optional[int] = ..., containers: _Optional[int] = ...) -> None: ...

class CoresOrder(_message.Message):
    __slots__ = ("sequence", "milli", "reason")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    MILLI_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    milli: int
    reason: int
    def __init__(self, sequence: _Optional[int] = ..., milli: _Optional[int] = ..., reason: _Optional[int] = ...) -> None: ...

class RemoteNode(_message.Message):
    __slots__ = ("node_id", "http_address", "rack_name", "node_partition", "yaq_wait_ms", "yaq_free", "yaq_queued", "yaq_queue_max", "yaq_reads_tasks", "yaq_slots")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    HTTP_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    RACK_NAME_FIELD_NUMBER: _ClassVar[int]
    NODE_PARTITION_FIELD_NUMBER: _ClassVar[int]
    YAQ_WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    YAQ_FREE_FIELD_NUMBER: _ClassVar[int]
    YAQ_QUEUED_FIELD_NUMBER: _ClassVar[int]
    YAQ_QUEUE_MAX_FIELD_NUMBER: _ClassVar[int]
    YAQ_READS_TASKS_FIELD_NUMBER: _ClassVar[int]
    YAQ_SLOTS_FIELD_NUMBER: _ClassVar[int]
    node_id: _yarn_common_pb2.NodeId
    http_address: str
    rack_name: str
    node_partition: str
    yaq_wait_ms: int
    yaq_free: _yarn_common_pb2.Resource
    yaq_queued: int
    yaq_queue_max: int
    yaq_reads_tasks: bool
    yaq_slots: int
    def __init__(self, node_id: _Optional[_Union[_yarn_common_pb2.NodeId, _Mapping]] = ..., http_address: _Optional[str] = ..., rack_name: _Optional[str] = ..., node_partition: _Optional[str] = ..., yaq_wait_ms: _Optional[int] = ..., yaq_free: _Optional[_Union[_yarn_common_pb2.Resource, _Mapping]] = ..., yaq_queued: _Optional[int] = ..., yaq_queue_max: _Optional[int] = ..., yaq_reads_tasks: _Optional[bool] = ..., yaq_slots: _Optional[int] = ...) -> None: ...

class RegisterDistributedSchedulingAMResponse(_message.Message):
    __slots__ = ("register_response", "max_container_resource", "min_container_resource", "incr_container_resource", "container_token_expiry_interval", "container_id_start", "nodes_for_scheduling", "yaq_most_wait_ms")
    REGISTER_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    MAX_CONTAINER_RESOURCE_FIELD_NUMBER: _ClassVar[int]
    MIN_CONTAINER_RESOURCE_FIELD_NUMBER: _ClassVar[int]
    INCR_CONTAINER_RESOURCE_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_TOKEN_EXPIRY_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_ID_START_FIELD_NUMBER: _ClassVar[int]
    NODES_FOR_SCHEDULING_FIELD_NUMBER: _ClassVar[int]
    YAQ_MOST_WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    register_response: RegisterApplicationMasterResponse
    max_container_resource: _yarn_common_pb2.Resource
    min_container_resource: _yarn_common_pb2.Resource
    incr_container_resource: _yarn_common_pb2.Resource
    container_token_expiry_interval: int
    container_id_start: int
    nodes_for_scheduling: _containers.RepeatedCompositeFieldContainer[RemoteNode]
    yaq_most_wait_ms: int
    def __init__(self, register_response: _Optional[_Union[RegisterApplicationMasterResponse, _Mapping]] = ..., max_container_resource: _Optional[_Union[_yarn_common_pb2.Resource, _Mapping]] = ..., min_container_resource: _Optional[_Union[_yarn_common_pb2.Resource, _Mapping]] = ..., incr_container_resource: _Optional[_Union[_yarn_common_pb2.Resource, _Mapping]] = ..., container_token_expiry_interval: _Optional[int] = ..., container_id_start: _Optional[int] = ..., nodes_for_scheduling: _Optional[_Iterable[_Union[RemoteNode, _Mapping]]] = ..., yaq_most_wait_ms: _Optional[int] = ...) -> None: ...

class PendingStage(_message.Message):
    __slots__ = ("priority", "count", "size")
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    priority: int
    count: int
    size: _yarn_common_pb2.Resource
    def __init__(self, priority: _Optional[int] = ..., count: _Optional[int] = ..., size: _Optional[_Union[_yarn_common_pb2.Resource, _Mapping]] = ...) -> None: ...

class BoundWish(_message.Message):
    __slots__ = ("count", "size", "places")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    PLACES_FIELD_NUMBER: _ClassVar[int]
    count: int
    size: _yarn_common_pb2.Resource
    places: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, count: _Optional[int] = ..., size: _Optional[_Union[_yarn_common_pb2.Resource, _Mapping]] = ..., places: _Optional[_Iterable[str]] = ...) -> None: ...

class ProxyPlacement(_message.Message):
    __slots__ = ("container_id", "rule", "estimate_ms", "wait_ms", "behind")
    CONTAINER_ID_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    ESTIMATE_MS_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    BEHIND_FIELD_NUMBER: _ClassVar[int]
    container_id: _yarn_common_pb2.ContainerId
    rule: str
    estimate_ms: int
    wait_ms: int
    behind: int
    def __init__(self, container_id: _Optional[_Union[_yarn_common_pb2.ContainerId, _Mapping]] = ..., rule: _Optional[str] = ..., estimate_ms: _Optional[int] = ..., wait_ms: _Optional[int] = ..., behind: _Optional[int] = ...) -> None: ...

class DistributedSchedulingAllocateRequest(_message.Message):
    __slots__ = ("allocate_request", "allocated_containers", "yaq_kept", "yaq_placed", "yaq_takes_back", "yaq_bound")
    ALLOCATE_REQUEST_FIELD_NUMBER: _ClassVar[int]
    ALLOCATED_CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    YAQ_KEPT_FIELD_NUMBER: _ClassVar[int]
    YAQ_PLACED_FIELD_NUMBER: _ClassVar[int]
    YAQ_TAKES_BACK_FIELD_NUMBER: _ClassVar[int]
    YAQ_BOUND_FIELD_NUMBER: _ClassVar[int]
    allocate_request: AllocateRequest
    allocated_containers: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.Container]
    yaq_kept: _containers.RepeatedCompositeFieldContainer[PendingStage]
    yaq_placed: _containers.RepeatedCompositeFieldContainer[ProxyPlacement]
    yaq_takes_back: bool
    yaq_bound: _containers.RepeatedCompositeFieldContainer[BoundWish]
    def __init__(self, allocate_request: _Optional[_Union[AllocateRequest, _Mapping]] = ..., allocated_containers: _Optional[_Iterable[_Union[_yarn_common_pb2.Container, _Mapping]]] = ..., yaq_kept: _Optional[_Iterable[_Union[PendingStage, _Mapping]]] = ..., yaq_placed: _Optional[_Iterable[_Union[ProxyPlacement, _Mapping]]] = ..., yaq_takes_back: _Optional[bool] = ..., yaq_bound: _Optional[_Iterable[_Union[BoundWish, _Mapping]]] = ...) -> None: ...

class DistributedSchedulingAllocateResponse(_message.Message):
    __slots__ = ("allocate_response", "nodes_for_scheduling", "yaq_most_wait_ms", "yaq_not_booked")
    ALLOCATE_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    NODES_FOR_SCHEDULING_FIELD_NUMBER: _ClassVar[int]
    YAQ_MOST_WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    YAQ_NOT_BOOKED_FIELD_NUMBER: _ClassVar[int]
    allocate_response: AllocateResponse
    nodes_for_scheduling: _containers.RepeatedCompositeFieldContainer[RemoteNode]
    yaq_most_wait_ms: int
    yaq_not_booked: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.ContainerId]
    def __init__(self, allocate_response: _Optional[_Union[AllocateResponse, _Mapping]] = ..., nodes_for_scheduling: _Optional[_Iterable[_Union[RemoteNode, _Mapping]]] = ..., yaq_most_wait_ms: _Optional[int] = ..., yaq_not_booked: _Optional[_Iterable[_Union[_yarn_common_pb2.ContainerId, _Mapping]]] = ...) -> None: ...

class StartContainerRequest(_message.Message):
    __slots__ = ("container_launch_context", "container_token")
    CONTAINER_LAUNCH_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_TOKEN_FIELD_NUMBER: _ClassVar[int]
    container_launch_context: _yarn_common_pb2.ContainerLaunchContext
    container_token: _yarn_common_pb2.Token
    def __init__(self, container_launch_context: _Optional[_Union[_yarn_common_pb2.ContainerLaunchContext, _Mapping]] = ..., container_token: _Optional[_Union[_yarn_common_pb2.Token, _Mapping]] = ...) -> None: ...

class StartContainersRequest(_message.Message):
    __slots__ = ("start_container_request",)
    START_CONTAINER_REQUEST_FIELD_NUMBER: _ClassVar[int]
    start_container_request: _containers.RepeatedCompositeFieldContainer[StartContainerRequest]
    def __init__(self, start_container_request: _Optional[_Iterable[_Union[StartContainerRequest, _Mapping]]] = ...) -> None: ...

class ContainerExceptionMap(_message.Message):
    __slots__ = ("container_id", "exception")
    CONTAINER_ID_FIELD_NUMBER: _ClassVar[int]
    EXCEPTION_FIELD_NUMBER: _ClassVar[int]
    container_id: _yarn_common_pb2.ContainerId
    exception: _yarn_common_pb2.SerializedException
    def __init__(self, container_id: _Optional[_Union[_yarn_common_pb2.ContainerId, _Mapping]] = ..., exception: _Optional[_Union[_yarn_common_pb2.SerializedException, _Mapping]] = ...) -> None: ...

class StartContainersResponse(_message.Message):
    __slots__ = ("services_meta_data", "succeeded_requests", "failed_requests")
    SERVICES_META_DATA_FIELD_NUMBER: _ClassVar[int]
    SUCCEEDED_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    FAILED_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    services_meta_data: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.StringBytesMap]
    succeeded_requests: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.ContainerId]
    failed_requests: _containers.RepeatedCompositeFieldContainer[ContainerExceptionMap]
    def __init__(self, services_meta_data: _Optional[_Iterable[_Union[_yarn_common_pb2.StringBytesMap, _Mapping]]] = ..., succeeded_requests: _Optional[_Iterable[_Union[_yarn_common_pb2.ContainerId, _Mapping]]] = ..., failed_requests: _Optional[_Iterable[_Union[ContainerExceptionMap, _Mapping]]] = ...) -> None: ...

class StopContainersRequest(_message.Message):
    __slots__ = ("container_id",)
    CONTAINER_ID_FIELD_NUMBER: _ClassVar[int]
    container_id: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.ContainerId]
    def __init__(self, container_id: _Optional[_Iterable[_Union[_yarn_common_pb2.ContainerId, _Mapping]]] = ...) -> None: ...

class StopContainersResponse(_message.Message):
    __slots__ = ("succeeded_requests", "failed_requests")
    SUCCEEDED_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    FAILED_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    succeeded_requests: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.ContainerId]
    failed_requests: _containers.RepeatedCompositeFieldContainer[ContainerExceptionMap]
    def __init__(self, succeeded_requests: _Optional[_Iterable[_Union[_yarn_common_pb2.ContainerId, _Mapping]]] = ..., failed_requests: _Optional[_Iterable[_Union[ContainerExceptionMap, _Mapping]]] = ...) -> None: ...

class GetContainerStatusesRequest(_message.Message):
    __slots__ = ("container_id",)
    CONTAINER_ID_FIELD_NUMBER: _ClassVar[int]
    container_id: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.ContainerId]
    def __init__(self, container_id: _Optional[_Iterable[_Union[_yarn_common_pb2.ContainerId, _Mapping]]] = ...) -> None: ...

class GetContainerStatusesResponse(_message.Message):
    __slots__ = ("status", "failed_requests")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    FAILED_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    status: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.ContainerStatus]
    failed_requests: _containers.RepeatedCompositeFieldContainer[ContainerExceptionMap]
    def __init__(self, status: _Optional[_Iterable[_Union[_yarn_common_pb2.ContainerStatus, _Mapping]]] = ..., failed_requests: _Optional[_Iterable[_Union[ContainerExceptionMap, _Mapping]]] = ...) -> None: ...

class IncreaseContainersResourceRequest(_message.Message):
    __slots__ = ("increase_containers",)
    INCREASE_CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    increase_containers: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.Token]
    def __init__(self, increase_containers: _Optional[_Iterable[_Union[_yarn_common_pb2.Token, _Mapping]]] = ...) -> None: ...

class IncreaseContainersResourceResponse(_message.Message):
    __slots__ = ("succeeded_requests", "failed_requests")
    SUCCEEDED_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    FAILED_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    succeeded_requests: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.ContainerId]
    failed_requests: _containers.RepeatedCompositeFieldContainer[ContainerExceptionMap]
    def __init__(self, succeeded_requests: _Optional[_Iterable[_Union[_yarn_common_pb2.ContainerId, _Mapping]]] = ..., failed_requests: _Optional[_Iterable[_Union[ContainerExceptionMap, _Mapping]]] = ...) -> None: ...

class ContainerUpdateRequest(_message.Message):
    __slots__ = ("update_container_token",)
    UPDATE_CONTAINER_TOKEN_FIELD_NUMBER: _ClassVar[int]
    update_container_token: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.Token]
    def __init__(self, update_container_token: _Optional[_Iterable[_Union[_yarn_common_pb2.Token, _Mapping]]] = ...) -> None: ...

class ContainerUpdateResponse(_message.Message):
    __slots__ = ("succeeded_requests", "failed_requests")
    SUCCEEDED_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    FAILED_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    succeeded_requests: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.ContainerId]
    failed_requests: _containers.RepeatedCompositeFieldContainer[ContainerExceptionMap]
    def __init__(self, succeeded_requests: _Optional[_Iterable[_Union[_yarn_common_pb2.ContainerId, _Mapping]]] = ..., failed_requests: _Optional[_Iterable[_Union[ContainerExceptionMap, _Mapping]]] = ...) -> None: ...

class ResourceLocalizationRequest(_message.Message):
    __slots__ = ("container_id", "local_resources")
    CONTAINER_ID_FIELD_NUMBER: _ClassVar[int]
    LOCAL_RESOURCES_FIELD_NUMBER: _ClassVar[int]
    container_id: _yarn_common_pb2.ContainerId
    local_resources: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.StringLocalResourceMap]
    def __init__(self, container_id: _Optional[_Union[_yarn_common_pb2.ContainerId, _Mapping]] = ..., local_resources: _Optional[_Iterable[_Union[_yarn_common_pb2.StringLocalResourceMap, _Mapping]]] = ...) -> None: ...

class ResourceLocalizationResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReInitializeContainerRequest(_message.Message):
    __slots__ = ("container_id", "container_launch_context", "auto_commit")
    CONTAINER_ID_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_LAUNCH_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    AUTO_COMMIT_FIELD_NUMBER: _ClassVar[int]
    container_id: _yarn_common_pb2.ContainerId
    container_launch_context: _yarn_common_pb2.ContainerLaunchContext
    auto_commit: bool
    def __init__(self, container_id: _Optional[_Union[_yarn_common_pb2.ContainerId, _Mapping]] = ..., container_launch_context: _Optional[_Union[_yarn_common_pb2.ContainerLaunchContext, _Mapping]] = ..., auto_commit: _Optional[bool] = ...) -> None: ...

class ReInitializeContainerResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RestartContainerResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RollbackResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CommitResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class LocalizationStatus(_message.Message):
    __slots__ = ("resource_key", "localization_state", "diagnostics")
    RESOURCE_KEY_FIELD_NUMBER: _ClassVar[int]
    LOCALIZATION_STATE_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSTICS_FIELD_NUMBER: _ClassVar[int]
    resource_key: str
    localization_state: LocalizationState
    diagnostics: str
    def __init__(self, resource_key: _Optional[str] = ..., localization_state: _Optional[_Union[LocalizationState, str]] = ..., diagnostics: _Optional[str] = ...) -> None: ...

class ContainerLocalizationStatuses(_message.Message):
    __slots__ = ("container_id", "localization_statuses")
    CONTAINER_ID_FIELD_NUMBER: _ClassVar[int]
    LOCALIZATION_STATUSES_FIELD_NUMBER: _ClassVar[int]
    container_id: _yarn_common_pb2.ContainerId
    localization_statuses: _containers.RepeatedCompositeFieldContainer[LocalizationStatus]
    def __init__(self, container_id: _Optional[_Union[_yarn_common_pb2.ContainerId, _Mapping]] = ..., localization_statuses: _Optional[_Iterable[_Union[LocalizationStatus, _Mapping]]] = ...) -> None: ...

class GetLocalizationStatusesRequest(_message.Message):
    __slots__ = ("container_id",)
    CONTAINER_ID_FIELD_NUMBER: _ClassVar[int]
    container_id: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.ContainerId]
    def __init__(self, container_id: _Optional[_Iterable[_Union[_yarn_common_pb2.ContainerId, _Mapping]]] = ...) -> None: ...

class GetLocalizationStatusesResponse(_message.Message):
    __slots__ = ("cntn_localization_statuses", "failed_requests")
    CNTN_LOCALIZATION_STATUSES_FIELD_NUMBER: _ClassVar[int]
    FAILED_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    cntn_localization_statuses: _containers.RepeatedCompositeFieldContainer[ContainerLocalizationStatuses]
    failed_requests: _containers.RepeatedCompositeFieldContainer[ContainerExceptionMap]
    def __init__(self, cntn_localization_statuses: _Optional[_Iterable[_Union[ContainerLocalizationStatuses, _Mapping]]] = ..., failed_requests: _Optional[_Iterable[_Union[ContainerExceptionMap, _Mapping]]] = ...) -> None: ...

class GetDelegationTokenRequest(_message.Message):
    __slots__ = ("renewer",)
    RENEWER_FIELD_NUMBER: _ClassVar[int]
    renewer: str
    def __init__(self, renewer: _Optional[str] = ...) -> None: ...

class GetDelegationTokenResponse(_message.Message):
    __slots__ = ("token",)
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    token: _yarn_common_pb2.Token
    def __init__(self, token: _Optional[_Union[_yarn_common_pb2.Token, _Mapping]] = ...) -> None: ...

class RenewDelegationTokenRequest(_message.Message):
    __slots__ = ("token",)
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    token: _yarn_common_pb2.Token
    def __init__(self, token: _Optional[_Union[_yarn_common_pb2.Token, _Mapping]] = ...) -> None: ...

class RenewDelegationTokenResponse(_message.Message):
    __slots__ = ("newExpiryTime",)
    NEWEXPIRYTIME_FIELD_NUMBER: _ClassVar[int]
    newExpiryTime: int
    def __init__(self, newExpiryTime: _Optional[int] = ...) -> None: ...

class CancelDelegationTokenRequest(_message.Message):
    __slots__ = ("token",)
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    token: _yarn_common_pb2.Token
    def __init__(self, token: _Optional[_Union[_yarn_common_pb2.Token, _Mapping]] = ...) -> None: ...

class CancelDelegationTokenResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetNewReservationRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetNewReservationResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReservationSubmissionRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReservationSubmissionResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReservationUpdateRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReservationUpdateResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReservationDeleteRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReservationDeleteResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReservationListRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReservationListResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
