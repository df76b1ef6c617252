from yaqd.proto import yarn_common_pb2 as _yarn_common_pb2
from yaqd.proto import yarn_service_pb2 as _yarn_service_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class NodeAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NORMAL: _ClassVar[NodeAction]
    RESYNC: _ClassVar[NodeAction]
    SHUTDOWN: _ClassVar[NodeAction]

class ResourceStatusType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FETCH_PENDING: _ClassVar[ResourceStatusType]
    FETCH_SUCCESS: _ClassVar[ResourceStatusType]
    FETCH_FAILURE: _ClassVar[ResourceStatusType]

class LocalizerAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LIVE: _ClassVar[LocalizerAction]
    DIE: _ClassVar[LocalizerAction]
NORMAL: NodeAction
RESYNC: NodeAction
SHUTDOWN: NodeAction
FETCH_PENDING: ResourceStatusType
FETCH_SUCCESS: ResourceStatusType
FETCH_FAILURE: ResourceStatusType
LIVE: LocalizerAction
DIE: LocalizerAction

class NMTokenIdentifier(_message.Message):
    __slots__ = ("appAttemptId", "nodeId", "appSubmitter", "keyId")
    APPATTEMPTID_FIELD_NUMBER: _ClassVar[int]
    NODEID_FIELD_NUMBER: _ClassVar[int]
    APPSUBMITTER_FIELD_NUMBER: _ClassVar[int]
    KEYID_FIELD_NUMBER: _ClassVar[int]
    appAttemptId: _yarn_common_pb2.ApplicationAttemptId
    nodeId: _yarn_common_pb2.NodeId
    appSubmitter: str
    keyId: int
    def __init__(self, appAttemptId: _Optional[_Union[_yarn_common_pb2.ApplicationAttemptId, _Mapping]] = ..., nodeId: _Optional[_Union[_yarn_common_pb2.NodeId, _Mapping]] = ..., appSubmitter: _Optional[str] = ..., keyId: _Optional[int] = ...) -> None: ...

class AMRMTokenIdentifier(_message.Message):
    __slots__ = ("appAttemptId", "keyId")
    APPATTEMPTID_FIELD_NUMBER: _ClassVar[int]
    KEYID_FIELD_NUMBER: _ClassVar[int]
    appAttemptId: _yarn_common_pb2.ApplicationAttemptId
    keyId: int
    def __init__(self, appAttemptId: _Optional[_Union[_yarn_common_pb2.ApplicationAttemptId, _Mapping]] = ..., keyId: _Optional[int] = ...) -> None: ...

class ContainerTokenIdentifier(_message.Message):
    __slots__ = ("containerId", "nmHostAddr", "appSubmitter", "resource", "expiryTimeStamp", "masterKeyId", "rmIdentifier", "priority", "creationTime", "logAggregationContext", "nodeLabelExpression", "containerType", "executionType", "version", "allocation_request_id", "allocation_tags", "yaq_task")
    CONTAINERID_FIELD_NUMBER: _ClassVar[int]
    NMHOSTADDR_FIELD_NUMBER: _ClassVar[int]
    APPSUBMITTER_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    EXPIRYTIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    MASTERKEYID_FIELD_NUMBER: _ClassVar[int]
    RMIDENTIFIER_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    CREATIONTIME_FIELD_NUMBER: _ClassVar[int]
    LOGAGGREGATIONCONTEXT_FIELD_NUMBER: _ClassVar[int]
    NODELABELEXPRESSION_FIELD_NUMBER: _ClassVar[int]
    CONTAINERTYPE_FIELD_NUMBER: _ClassVar[int]
    EXECUTIONTYPE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ALLOCATION_REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ALLOCATION_TAGS_FIELD_NUMBER: _ClassVar[int]
    YAQ_TASK_FIELD_NUMBER: _ClassVar[int]
    containerId: _yarn_common_pb2.ContainerId
    nmHostAddr: str
    appSubmitter: str
    resource: _yarn_common_pb2.Resource
    expiryTimeStamp: int
    masterKeyId: int
    rmIdentifier: int
    priority: _yarn_common_pb2.Priority
    creationTime: int
    logAggregationContext: _yarn_common_pb2.LogAggregationContext
    nodeLabelExpression: str
    containerType: _yarn_common_pb2.ContainerType
    executionType: _yarn_common_pb2.ExecutionType
    version: int
    allocation_request_id: int
    allocation_tags: _containers.RepeatedScalarFieldContainer[str]
    yaq_task: TaskFacts
    def __init__(self, containerId: _Optional[_Union[_yarn_common_pb2.ContainerId, _Mapping]] = ..., nmHostAddr: _Optional[str] = ..., appSubmitter: _Optional[str] = ..., resource: _Optional[_Union[_yarn_common_pb2.Resource, _Mapping]] = ..., expiryTimeStamp: _Optional[int] = ..., masterKeyId: _Optional[int] = ..., rmIdentifier: _Optional[int] = ..., priority: _Optional[_Union[_yarn_common_pb2.Priority, _Mapping]] = ..., creationTime: _Optional[int] = ..., logAggregationContext: _Optional[_Union[_yarn_common_pb2.LogAggregationContext, _Mapping]] = ..., nodeLabelExpression: _Optional[str] = ..., containerType: _Optional[_Union[_yarn_common_pb2.ContainerType, str]] = ..., executionType: _Optional[_Union[_yarn_common_pb2.ExecutionType, str]] = ..., version: _Optional[int] = ..., allocation_request_id: _Optional[int] = ..., allocation_tags: _Optional[_Iterable[str]] = ..., yaq_task: _Optional[_Union[TaskFacts, _Mapping]] = ...) -> None: ...

class ClientToAMTokenIdentifier(_message.Message):
    __slots__ = ("appAttemptId", "clientName")
    APPATTEMPTID_FIELD_NUMBER: _ClassVar[int]
    CLIENTNAME_FIELD_NUMBER: _ClassVar[int]
    appAttemptId: _yarn_common_pb2.ApplicationAttemptId
    clientName: str
    def __init__(self, appAttemptId: _Optional[_Union[_yarn_common_pb2.ApplicationAttemptId, _Mapping]] = ..., clientName: _Optional[str] = ...) -> None: ...

class YARNDelegationTokenIdentifier(_message.Message):
    __slots__ = ("owner", "renewer", "realUser", "issueDate", "maxDate", "sequenceNumber", "masterKeyId")
    OWNER_FIELD_NUMBER: _ClassVar[int]
    RENEWER_FIELD_NUMBER: _ClassVar[int]
    REALUSER_FIELD_NUMBER: _ClassVar[int]
    ISSUEDATE_FIELD_NUMBER: _ClassVar[int]
    MAXDATE_FIELD_NUMBER: _ClassVar[int]
    SEQUENCENUMBER_FIELD_NUMBER: _ClassVar[int]
    MASTERKEYID_FIELD_NUMBER: _ClassVar[int]
    owner: str
    renewer: str
    realUser: str
    issueDate: int
    maxDate: int
    sequenceNumber: int
    masterKeyId: int
    def __init__(self, owner: _Optional[str] = ..., renewer: _Optional[str] = ..., realUser: _Optional[str] = ..., issueDate: _Optional[int] = ..., maxDate: _Optional[int] = ..., sequenceNumber: _Optional[int] = ..., masterKeyId: _Optional[int] = ...) -> None: ...

class NodeLabels(_message.Message):
    __slots__ = ("nodeLabels",)
    NODELABELS_FIELD_NUMBER: _ClassVar[int]
    nodeLabels: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.NodeLabel]
    def __init__(self, nodeLabels: _Optional[_Iterable[_Union[_yarn_common_pb2.NodeLabel, _Mapping]]] = ...) -> None: ...

class NodeAttributes(_message.Message):
    __slots__ = ("nodeAttributes",)
    NODEATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    nodeAttributes: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.NodeAttribute]
    def __init__(self, nodeAttributes: _Optional[_Iterable[_Union[_yarn_common_pb2.NodeAttribute, _Mapping]]] = ...) -> None: ...

class NMContainerStatus(_message.Message):
    __slots__ = ("container_id", "container_state", "resource", "priority", "diagnostics", "container_exit_status", "creation_time", "nodeLabelExpression", "version", "executionType", "allocation_request_id", "allocation_tags")
    CONTAINER_ID_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_STATE_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSTICS_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_EXIT_STATUS_FIELD_NUMBER: _ClassVar[int]
    CREATION_TIME_FIELD_NUMBER: _ClassVar[int]
    NODELABELEXPRESSION_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    EXECUTIONTYPE_FIELD_NUMBER: _ClassVar[int]
    ALLOCATION_REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ALLOCATION_TAGS_FIELD_NUMBER: _ClassVar[int]
    container_id: _yarn_common_pb2.ContainerId
    container_state: _yarn_common_pb2.ContainerState
    resource: _yarn_common_pb2.Resource
    priority: _yarn_common_pb2.Priority
    diagnostics: str
    container_exit_status: int
    creation_time: int
    nodeLabelExpression: str
    version: int
    executionType: _yarn_common_pb2.ExecutionType
    allocation_request_id: int
    allocation_tags: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, container_id: _Optional[_Union[_yarn_common_pb2.ContainerId, _Mapping]] = ..., container_state: _Optional[_Union[_yarn_common_pb2.ContainerState, str]] = ..., resource: _Optional[_Union[_yarn_common_pb2.Resource, _Mapping]] = ..., priority: _Optional[_Union[_yarn_common_pb2.Priority, _Mapping]] = ..., diagnostics: _Optional[str] = ..., container_exit_status: _Optional[int] = ..., creation_time: _Optional[int] = ..., nodeLabelExpression: _Optional[str] = ..., version: _Optional[int] = ..., executionType: _Optional[_Union[_yarn_common_pb2.ExecutionType, str]] = ..., allocation_request_id: _Optional[int] = ..., allocation_tags: _Optional[_Iterable[str]] = ...) -> None: ...

class NodeCapabilities(_message.Message):
    __slots__ = ("understands", "queue_max", "processors", "counts_since_ms")
    UNDERSTANDS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_MAX_FIELD_NUMBER: _ClassVar[int]
    PROCESSORS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_SINCE_MS_FIELD_NUMBER: _ClassVar[int]
    understands: _containers.RepeatedScalarFieldContainer[str]
    queue_max: int
    processors: int
    counts_since_ms: int
    def __init__(self, understands: _Optional[_Iterable[str]] = ..., queue_max: _Optional[int] = ..., processors: _Optional[int] = ..., counts_since_ms: _Optional[int] = ...) -> None: ...

class RegisterNodeManagerRequest(_message.Message):
    __slots__ = ("node_id", "http_port", "resource", "nm_version", "container_statuses", "runningApplications", "nodeLabels", "physicalResource", "log_aggregation_reports_for_apps", "nodeAttributes", "nodeStatus", "yaq_capabilities")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    HTTP_PORT_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    NM_VERSION_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_STATUSES_FIELD_NUMBER: _ClassVar[int]
    RUNNINGAPPLICATIONS_FIELD_NUMBER: _ClassVar[int]
    NODELABELS_FIELD_NUMBER: _ClassVar[int]
    PHYSICALRESOURCE_FIELD_NUMBER: _ClassVar[int]
    LOG_AGGREGATION_REPORTS_FOR_APPS_FIELD_NUMBER: _ClassVar[int]
    NODEATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    NODESTATUS_FIELD_NUMBER: _ClassVar[int]
    YAQ_CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    node_id: _yarn_common_pb2.NodeId
    http_port: int
    resource: _yarn_common_pb2.Resource
    nm_version: str
    container_statuses: _containers.RepeatedCompositeFieldContainer[NMContainerStatus]
    runningApplications: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.ApplicationId]
    nodeLabels: NodeLabels
    physicalResource: _yarn_common_pb2.Resource
    log_aggregation_reports_for_apps: _containers.RepeatedCompositeFieldContainer[LogAggregationReport]
    nodeAttributes: NodeAttributes
    nodeStatus: NodeStatus
    yaq_capabilities: NodeCapabilities
    def __init__(self, node_id: _Optional[_Union[_yarn_common_pb2.NodeId, _Mapping]] = ..., http_port: _Optional[int] = ..., resource: _Optional[_Union[_yarn_common_pb2.Resource, _Mapping]] = ..., nm_version: _Optional[str] = ..., container_statuses: _Optional[_Iterable[_Union[NMContainerStatus, _Mapping]]] = ..., runningApplications: _Optional[_Iterable[_Union[_yarn_common_pb2.ApplicationId, _Mapping]]] = ..., nodeLabels: _Optional[_Union[NodeLabels, _Mapping]] = ..., physicalResource: _Optional[_Union[_yarn_common_pb2.Resource, _Mapping]] = ..., log_aggregation_reports_for_apps: _Optional[_Iterable[_Union[LogAggregationReport, _Mapping]]] = ..., nodeAttributes: _Optional[_Union[NodeAttributes, _Mapping]] = ..., nodeStatus: _Optional[_Union[NodeStatus, _Mapping]] = ..., yaq_capabilities: _Optional[_Union[NodeCapabilities, _Mapping]] = ...) -> None: ...

class RegisterNodeManagerResponse(_message.Message):
    __slots__ = ("container_token_master_key", "nm_token_master_key", "nodeAction", "rm_identifier", "diagnostics_message", "rm_version", "areNodeLabelsAcceptedByRM", "resource", "areNodeAttributesAcceptedByRM", "yaq_capabilities")
    CONTAINER_TOKEN_MASTER_KEY_FIELD_NUMBER: _ClassVar[int]
    NM_TOKEN_MASTER_KEY_FIELD_NUMBER: _ClassVar[int]
    NODEACTION_FIELD_NUMBER: _ClassVar[int]
    RM_IDENTIFIER_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSTICS_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    RM_VERSION_FIELD_NUMBER: _ClassVar[int]
    ARENODELABELSACCEPTEDBYRM_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    ARENODEATTRIBUTESACCEPTEDBYRM_FIELD_NUMBER: _ClassVar[int]
    YAQ_CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    container_token_master_key: MasterKey
    nm_token_master_key: MasterKey
    nodeAction: NodeAction
    rm_identifier: int
    diagnostics_message: str
    rm_version: str
    areNodeLabelsAcceptedByRM: bool
    resource: _yarn_common_pb2.Resource
    areNodeAttributesAcceptedByRM: bool
    yaq_capabilities: NodeCapabilities
    def __init__(self, container_token_master_key: _Optional[_Union[MasterKey, _Mapping]] = ..., nm_token_master_key: _Optional[_Union[MasterKey, _Mapping]] = ..., nodeAction: _Optional[_Union[NodeAction, str]] = ..., rm_identifier: _Optional[int] = ..., diagnostics_message: _Optional[str] = ..., rm_version: _Optional[str] = ..., areNodeLabelsAcceptedByRM: _Optional[bool] = ..., resource: _Optional[_Union[_yarn_common_pb2.Resource, _Mapping]] = ..., areNodeAttributesAcceptedByRM: _Optional[bool] = ..., yaq_capabilities: _Optional[_Union[NodeCapabilities, _Mapping]] = ...) -> None: ...

class UnRegisterNodeManagerRequest(_message.Message):
    __slots__ = ("node_id",)
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    node_id: _yarn_common_pb2.NodeId
    def __init__(self, node_id: _Optional[_Union[_yarn_common_pb2.NodeId, _Mapping]] = ...) -> None: ...

class UnRegisterNodeManagerResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class NodeHeartbeatRequest(_message.Message):
    __slots__ = ("node_status", "last_known_container_token_master_key", "last_known_nm_token_master_key", "nodeLabels", "log_aggregation_reports_for_apps", "registering_collectors", "nodeAttributes", "tokenSequenceNo")
    NODE_STATUS_FIELD_NUMBER: _ClassVar[int]
    LAST_KNOWN_CONTAINER_TOKEN_MASTER_KEY_FIELD_NUMBER: _ClassVar[int]
    LAST_KNOWN_NM_TOKEN_MASTER_KEY_FIELD_NUMBER: _ClassVar[int]
    NODELABELS_FIELD_NUMBER: _ClassVar[int]
    LOG_AGGREGATION_REPORTS_FOR_APPS_FIELD_NUMBER: _ClassVar[int]
    REGISTERING_COLLECTORS_FIELD_NUMBER: _ClassVar[int]
    NODEATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    TOKENSEQUENCENO_FIELD_NUMBER: _ClassVar[int]
    node_status: NodeStatus
    last_known_container_token_master_key: MasterKey
    last_known_nm_token_master_key: MasterKey
    nodeLabels: NodeLabels
    log_aggregation_reports_for_apps: _containers.RepeatedCompositeFieldContainer[LogAggregationReport]
    registering_collectors: _containers.RepeatedCompositeFieldContainer[AppCollectorData]
    nodeAttributes: NodeAttributes
    tokenSequenceNo: int
    def __init__(self, node_status: _Optional[_Union[NodeStatus, _Mapping]] = ..., last_known_container_token_master_key: _Optional[_Union[MasterKey, _Mapping]] = ..., last_known_nm_token_master_key: _Optional[_Union[MasterKey, _Mapping]] = ..., nodeLabels: _Optional[_Union[NodeLabels, _Mapping]] = ..., log_aggregation_reports_for_apps: _Optional[_Iterable[_Union[LogAggregationReport, _Mapping]]] = ..., registering_collectors: _Optional[_Iterable[_Union[AppCollectorData, _Mapping]]] = ..., nodeAttributes: _Optional[_Union[NodeAttributes, _Mapping]] = ..., tokenSequenceNo: _Optional[int] = ...) -> None: ...

class NodeHeartbeatResponse(_message.Message):
    __slots__ = ("response_id", "container_token_master_key", "nm_token_master_key", "nodeAction", "containers_to_cleanup", "applications_to_cleanup", "nextHeartBeatInterval", "diagnostics_message", "containers_to_be_removed_from_nm", "system_credentials_for_apps", "areNodeLabelsAcceptedByRM", "containers_to_decrease", "containers_to_signal", "resource", "container_queuing_limit", "app_collectors", "containers_to_update", "areNodeAttributesAcceptedByRM", "tokenSequenceNo", "yaq_orders", "yaq_cores")
    RESPONSE_ID_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_TOKEN_MASTER_KEY_FIELD_NUMBER: _ClassVar[int]
    NM_TOKEN_MASTER_KEY_FIELD_NUMBER: _ClassVar[int]
    NODEACTION_FIELD_NUMBER: _ClassVar[int]
    CONTAINERS_TO_CLEANUP_FIELD_NUMBER: _ClassVar[int]
    APPLICATIONS_TO_CLEANUP_FIELD_NUMBER: _ClassVar[int]
    NEXTHEARTBEATINTERVAL_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSTICS_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CONTAINERS_TO_BE_REMOVED_FROM_NM_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_CREDENTIALS_FOR_APPS_FIELD_NUMBER: _ClassVar[int]
    ARENODELABELSACCEPTEDBYRM_FIELD_NUMBER: _ClassVar[int]
    CONTAINERS_TO_DECREASE_FIELD_NUMBER: _ClassVar[int]
    CONTAINERS_TO_SIGNAL_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_QUEUING_LIMIT_FIELD_NUMBER: _ClassVar[int]
    APP_COLLECTORS_FIELD_NUMBER: _ClassVar[int]
    CONTAINERS_TO_UPDATE_FIELD_NUMBER: _ClassVar[int]
    ARENODEATTRIBUTESACCEPTEDBYRM_FIELD_NUMBER: _ClassVar[int]
    TOKENSEQUENCENO_FIELD_NUMBER: _ClassVar[int]
    YAQ_ORDERS_FIELD_NUMBER: _ClassVar[int]
    YAQ_CORES_FIELD_NUMBER: _ClassVar[int]
    response_id: int
    container_token_master_key: MasterKey
    nm_token_master_key: MasterKey
    nodeAction: NodeAction
    containers_to_cleanup: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.ContainerId]
    applications_to_cleanup: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.ApplicationId]
    nextHeartBeatInterval: int
    diagnostics_message: str
    containers_to_be_removed_from_nm: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.ContainerId]
    system_credentials_for_apps: _containers.RepeatedCompositeFieldContainer[SystemCredentialsForApps]
    areNodeLabelsAcceptedByRM: bool
    containers_to_decrease: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.Container]
    containers_to_signal: _containers.RepeatedCompositeFieldContainer[_yarn_service_pb2.SignalContainerRequest]
    resource: _yarn_common_pb2.Resource
    container_queuing_limit: ContainerQueuingLimit
    app_collectors: _containers.RepeatedCompositeFieldContainer[AppCollectorData]
    containers_to_update: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.Container]
    areNodeAttributesAcceptedByRM: bool
    tokenSequenceNo: int
    yaq_orders: NodeQueueOrders
    yaq_cores: AppsCores
    def __init__(self, response_id: _Optional[int] = ..., container_token_master_key: _Optional[_Union[MasterKey, _Mapping]] = ..., nm_token_master_key: _Optional[_Union[MasterKey, _Mapping]] = ..., nodeAction: _Optional[_Union[NodeAction, str]] = ..., containers_to_cleanup: _Optional[_Iterable[_Union[_yarn_common_pb2.ContainerId, _Mapping]]] = ..., applications_to_cleanup: _Optional[_Iterable[_Union[_yarn_common_pb2.ApplicationId, _Mapping]]] = ..., nextHeartBeatInterval: _Optional[int] = ..., diagnostics_message: _Optional[str] = ..., containers_to_be_removed_from_nm: _Optional[_Iterable[_Union[_yarn_common_pb2.ContainerId, _Mapping]]] = ..., system_credentials_for_apps: _Optional[_Iterable[_Union[SystemCredentialsForApps, _Mapping]]] = ..., areNodeLabelsAcceptedByRM: _Optional[bool] = ..., containers_to_decrease: _Optional[_Iterable[_Union[_yarn_common_pb2.Container, _Mapping]]] = ..., containers_to_signal: _Optional[_Iterable[_Union[_yarn_service_pb2.SignalContainerRequest, _Mapping]]] = ..., resource: _Optional[_Union[_yarn_common_pb2.Resource, _Mapping]] = ..., container_queuing_limit: _Optional[_Union[ContainerQueuingLimit, _Mapping]] = ..., app_collectors: _Optional[_Iterable[_Union[AppCollectorData, _Mapping]]] = ..., containers_to_update: _Optional[_Iterable[_Union[_yarn_common_pb2.Container, _Mapping]]] = ..., areNodeAttributesAcceptedByRM: _Optional[bool] = ..., tokenSequenceNo: _Optional[int] = ..., yaq_orders: _Optional[_Union[NodeQueueOrders, _Mapping]] = ..., yaq_cores: _Optional[_Union[AppsCores, _Mapping]] = ...) -> None: ...

class AppsCores(_message.Message):
    __slots__ = ("apps",)
    APPS_FIELD_NUMBER: _ClassVar[int]
    apps: _containers.RepeatedCompositeFieldContainer[AppCores]
    def __init__(self, apps: _Optional[_Iterable[_Union[AppCores, _Mapping]]] = ...) -> None: ...

class AppCores(_message.Message):
    __slots__ = ("application_id", "milli")
    APPLICATION_ID_FIELD_NUMBER: _ClassVar[int]
    MILLI_FIELD_NUMBER: _ClassVar[int]
    application_id: _yarn_common_pb2.ApplicationId
    milli: int
    def __init__(self, application_id: _Optional[_Union[_yarn_common_pb2.ApplicationId, _Mapping]] = ..., milli: _Optional[int] = ...) -> None: ...

class AppCpu(_message.Message):
    __slots__ = ("application_id", "total_ms")
    APPLICATION_ID_FIELD_NUMBER: _ClassVar[int]
    TOTAL_MS_FIELD_NUMBER: _ClassVar[int]
    application_id: _yarn_common_pb2.ApplicationId
    total_ms: int
    def __init__(self, application_id: _Optional[_Union[_yarn_common_pb2.ApplicationId, _Mapping]] = ..., total_ms: _Optional[int] = ...) -> None: ...

class LogAggregationReport(_message.Message):
    __slots__ = ("application_id", "log_aggregation_status", "diagnostics")
    APPLICATION_ID_FIELD_NUMBER: _ClassVar[int]
    LOG_AGGREGATION_STATUS_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSTICS_FIELD_NUMBER: _ClassVar[int]
    application_id: _yarn_common_pb2.ApplicationId
    log_aggregation_status: _yarn_common_pb2.LogAggregationStatus
    diagnostics: str
    def __init__(self, application_id: _Optional[_Union[_yarn_common_pb2.ApplicationId, _Mapping]] = ..., log_aggregation_status: _Optional[_Union[_yarn_common_pb2.LogAggregationStatus, str]] = ..., diagnostics: _Optional[str] = ...) -> None: ...

class ContainerQueuingLimit(_message.Message):
    __slots__ = ("max_queue_length", "max_queue_wait_time_in_ms")
    MAX_QUEUE_LENGTH_FIELD_NUMBER: _ClassVar[int]
    MAX_QUEUE_WAIT_TIME_IN_MS_FIELD_NUMBER: _ClassVar[int]
    max_queue_length: int
    max_queue_wait_time_in_ms: int
    def __init__(self, max_queue_length: _Optional[int] = ..., max_queue_wait_time_in_ms: _Optional[int] = ...) -> None: ...

class SystemCredentialsForApps(_message.Message):
    __slots__ = ("appId", "credentialsForApp")
    APPID_FIELD_NUMBER: _ClassVar[int]
    CREDENTIALSFORAPP_FIELD_NUMBER: _ClassVar[int]
    appId: _yarn_common_pb2.ApplicationId
    credentialsForApp: bytes
    def __init__(self, appId: _Optional[_Union[_yarn_common_pb2.ApplicationId, _Mapping]] = ..., credentialsForApp: _Optional[bytes] = ...) -> None: ...

class AppCollectorData(_message.Message):
    __slots__ = ("app_id", "app_collector_addr", "rm_identifier", "version", "app_collector_token")
    APP_ID_FIELD_NUMBER: _ClassVar[int]
    APP_COLLECTOR_ADDR_FIELD_NUMBER: _ClassVar[int]
    RM_IDENTIFIER_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    APP_COLLECTOR_TOKEN_FIELD_NUMBER: _ClassVar[int]
    app_id: _yarn_common_pb2.ApplicationId
    app_collector_addr: str
    rm_identifier: int
    version: int
    app_collector_token: _yarn_common_pb2.Token
    def __init__(self, app_id: _Optional[_Union[_yarn_common_pb2.ApplicationId, _Mapping]] = ..., app_collector_addr: _Optional[str] = ..., rm_identifier: _Optional[int] = ..., version: _Optional[int] = ..., app_collector_token: _Optional[_Union[_yarn_common_pb2.Token, _Mapping]] = ...) -> None: ...

class NodeStatus(_message.Message):
    __slots__ = ("node_id", "response_id", "containersStatuses", "nodeHealthStatus", "keep_alive_applications", "containers_utilization", "node_utilization", "increased_containers", "opportunistic_containers_status", "yaq_queue", "yaq_cpu")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_ID_FIELD_NUMBER: _ClassVar[int]
    CONTAINERSSTATUSES_FIELD_NUMBER: _ClassVar[int]
    NODEHEALTHSTATUS_FIELD_NUMBER: _ClassVar[int]
    KEEP_ALIVE_APPLICATIONS_FIELD_NUMBER: _ClassVar[int]
    CONTAINERS_UTILIZATION_FIELD_NUMBER: _ClassVar[int]
    NODE_UTILIZATION_FIELD_NUMBER: _ClassVar[int]
    INCREASED_CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    OPPORTUNISTIC_CONTAINERS_STATUS_FIELD_NUMBER: _ClassVar[int]
    YAQ_QUEUE_FIELD_NUMBER: _ClassVar[int]
    YAQ_CPU_FIELD_NUMBER: _ClassVar[int]
    node_id: _yarn_common_pb2.NodeId
    response_id: int
    containersStatuses: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.ContainerStatus]
    nodeHealthStatus: NodeHealthStatus
    keep_alive_applications: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.ApplicationId]
    containers_utilization: _yarn_common_pb2.ResourceUtilization
    node_utilization: _yarn_common_pb2.ResourceUtilization
    increased_containers: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.Container]
    opportunistic_containers_status: OpportunisticContainersStatus
    yaq_queue: NodeQueue
    yaq_cpu: _containers.RepeatedCompositeFieldContainer[AppCpu]
    def __init__(self, node_id: _Optional[_Union[_yarn_common_pb2.NodeId, _Mapping]] = ..., response_id: _Optional[int] = ..., containersStatuses: _Optional[_Iterable[_Union[_yarn_common_pb2.ContainerStatus, _Mapping]]] = ..., nodeHealthStatus: _Optional[_Union[NodeHealthStatus, _Mapping]] = ..., keep_alive_applications: _Optional[_Iterable[_Union[_yarn_common_pb2.ApplicationId, _Mapping]]] = ..., containers_utilization: _Optional[_Union[_yarn_common_pb2.ResourceUtilization, _Mapping]] = ..., node_utilization: _Optional[_Union[_yarn_common_pb2.ResourceUtilization, _Mapping]] = ..., increased_containers: _Optional[_Iterable[_Union[_yarn_common_pb2.Container, _Mapping]]] = ..., opportunistic_containers_status: _Optional[_Union[OpportunisticContainersStatus, _Mapping]] = ..., yaq_queue: _Optional[_Union[NodeQueue, _Mapping]] = ..., yaq_cpu: _Optional[_Iterable[_Union[AppCpu, _Mapping]]] = ...) -> None: ...

class OpportunisticContainersStatus(_message.Message):
    __slots__ = ("running_opport_containers", "opport_memory_used", "opport_cores_used", "queued_opport_containers", "wait_queue_length", "estimated_queue_wait_time", "opport_queue_capacity")
    RUNNING_OPPORT_CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    OPPORT_MEMORY_USED_FIELD_NUMBER: _ClassVar[int]
    OPPORT_CORES_USED_FIELD_NUMBER: _ClassVar[int]
    QUEUED_OPPORT_CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    WAIT_QUEUE_LENGTH_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_QUEUE_WAIT_TIME_FIELD_NUMBER: _ClassVar[int]
    OPPORT_QUEUE_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    running_opport_containers: int
    opport_memory_used: int
    opport_cores_used: int
    queued_opport_containers: int
    wait_queue_length: int
    estimated_queue_wait_time: int
    opport_queue_capacity: int
    def __init__(self, running_opport_containers: _Optional[int] = ..., opport_memory_used: _Optional[int] = ..., opport_cores_used: _Optional[int] = ..., queued_opport_containers: _Optional[int] = ..., wait_queue_length: _Optional[int] = ..., estimated_queue_wait_time: _Optional[int] = ..., opport_queue_capacity: _Optional[int] = ...) -> None: ...

class MasterKey(_message.Message):
    __slots__ = ("key_id", "bytes")
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    key_id: int
    bytes: bytes
    def __init__(self, key_id: _Optional[int] = ..., bytes: _Optional[bytes] = ...) -> None: ...

class NodeHealthStatus(_message.Message):
    __slots__ = ("is_node_healthy", "health_report", "last_health_report_time")
    IS_NODE_HEALTHY_FIELD_NUMBER: _ClassVar[int]
    HEALTH_REPORT_FIELD_NUMBER: _ClassVar[int]
    LAST_HEALTH_REPORT_TIME_FIELD_NUMBER: _ClassVar[int]
    is_node_healthy: bool
    health_report: str
    last_health_report_time: int
    def __init__(self, is_node_healthy: _Optional[bool] = ..., health_report: _Optional[str] = ..., last_health_report_time: _Optional[int] = ...) -> None: ...

class LocalResourceStatus(_message.Message):
    __slots__ = ("resource", "status", "localPath", "localSize", "exception")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    LOCALPATH_FIELD_NUMBER: _ClassVar[int]
    LOCALSIZE_FIELD_NUMBER: _ClassVar[int]
    EXCEPTION_FIELD_NUMBER: _ClassVar[int]
    resource: _yarn_common_pb2.LocalResource
    status: ResourceStatusType
    localPath: _yarn_common_pb2.URL
    localSize: int
    exception: _yarn_common_pb2.SerializedException
    def __init__(self, resource: _Optional[_Union[_yarn_common_pb2.LocalResource, _Mapping]] = ..., status: _Optional[_Union[ResourceStatusType, str]] = ..., localPath: _Optional[_Union[_yarn_common_pb2.URL, _Mapping]] = ..., localSize: _Optional[int] = ..., exception: _Optional[_Union[_yarn_common_pb2.SerializedException, _Mapping]] = ...) -> None: ...

class LocalizerStatus(_message.Message):
    __slots__ = ("localizer_id", "resources")
    LOCALIZER_ID_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    localizer_id: str
    resources: _containers.RepeatedCompositeFieldContainer[LocalResourceStatus]
    def __init__(self, localizer_id: _Optional[str] = ..., resources: _Optional[_Iterable[_Union[LocalResourceStatus, _Mapping]]] = ...) -> None: ...

class ResourceLocalizationSpec(_message.Message):
    __slots__ = ("resource", "destination_directory")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    resource: _yarn_common_pb2.LocalResource
    destination_directory: _yarn_common_pb2.URL
    def __init__(self, resource: _Optional[_Union[_yarn_common_pb2.LocalResource, _Mapping]] = ..., destination_directory: _Optional[_Union[_yarn_common_pb2.URL, _Mapping]] = ...) -> None: ...

class LocalizerHeartbeatResponse(_message.Message):
    __slots__ = ("action", "resources")
    ACTION_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    action: LocalizerAction
    resources: _containers.RepeatedCompositeFieldContainer[ResourceLocalizationSpec]
    def __init__(self, action: _Optional[_Union[LocalizerAction, str]] = ..., resources: _Optional[_Iterable[_Union[ResourceLocalizationSpec, _Mapping]]] = ...) -> None: ...

class TaskFacts(_message.Message):
    __slots__ = ("estimate_ms", "job_arrival_ms", "leaf_queue", "waited_ms", "most_wait_ms")
    ESTIMATE_MS_FIELD_NUMBER: _ClassVar[int]
    JOB_ARRIVAL_MS_FIELD_NUMBER: _ClassVar[int]
    LEAF_QUEUE_FIELD_NUMBER: _ClassVar[int]
    WAITED_MS_FIELD_NUMBER: _ClassVar[int]
    MOST_WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    estimate_ms: int
    job_arrival_ms: int
    leaf_queue: str
    waited_ms: int
    most_wait_ms: int
    def __init__(self, estimate_ms: _Optional[int] = ..., job_arrival_ms: _Optional[int] = ..., leaf_queue: _Optional[str] = ..., waited_ms: _Optional[int] = ..., most_wait_ms: _Optional[int] = ...) -> None: ...

class QueuedContainer(_message.Message):
    __slots__ = ("container_id", "waited_ms", "expected_ms")
    CONTAINER_ID_FIELD_NUMBER: _ClassVar[int]
    WAITED_MS_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_MS_FIELD_NUMBER: _ClassVar[int]
    container_id: _yarn_common_pb2.ContainerId
    waited_ms: int
    expected_ms: int
    def __init__(self, container_id: _Optional[_Union[_yarn_common_pb2.ContainerId, _Mapping]] = ..., waited_ms: _Optional[int] = ..., expected_ms: _Optional[int] = ...) -> None: ...

class NodeQueue(_message.Message):
    __slots__ = ("running", "queued", "wait_ms", "waiting", "free", "room_ms", "refill_ms", "tells_ends")
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    QUEUED_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    FREE_FIELD_NUMBER: _ClassVar[int]
    ROOM_MS_FIELD_NUMBER: _ClassVar[int]
    REFILL_MS_FIELD_NUMBER: _ClassVar[int]
    TELLS_ENDS_FIELD_NUMBER: _ClassVar[int]
    running: int
    queued: int
    wait_ms: int
    waiting: _containers.RepeatedCompositeFieldContainer[QueuedContainer]
    free: _yarn_common_pb2.Resource
    room_ms: int
    refill_ms: int
    tells_ends: bool
    def __init__(self, running: _Optional[int] = ..., queued: _Optional[int] = ..., wait_ms: _Optional[int] = ..., waiting: _Optional[_Iterable[_Union[QueuedContainer, _Mapping]]] = ..., free: _Optional[_Union[_yarn_common_pb2.Resource, _Mapping]] = ..., room_ms: _Optional[int] = ..., refill_ms: _Optional[int] = ..., tells_ends: _Optional[bool] = ...) -> None: ...

class MasterRoom(_message.Message):
    __slots__ = ("application_id", "resource")
    APPLICATION_ID_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    application_id: _yarn_common_pb2.ApplicationId
    resource: _yarn_common_pb2.Resource
    def __init__(self, application_id: _Optional[_Union[_yarn_common_pb2.ApplicationId, _Mapping]] = ..., resource: _Optional[_Union[_yarn_common_pb2.Resource, _Mapping]] = ...) -> None: ...

class MasterRooms(_message.Message):
    __slots__ = ("rooms",)
    ROOMS_FIELD_NUMBER: _ClassVar[int]
    rooms: _containers.RepeatedCompositeFieldContainer[MasterRoom]
    def __init__(self, rooms: _Optional[_Iterable[_Union[MasterRoom, _Mapping]]] = ...) -> None: ...

class StageEstimate(_message.Message):
    __slots__ = ("priority", "estimate_ms")
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    ESTIMATE_MS_FIELD_NUMBER: _ClassVar[int]
    priority: int
    estimate_ms: int
    def __init__(self, priority: _Optional[int] = ..., estimate_ms: _Optional[int] = ...) -> None: ...

class JobFacts(_message.Message):
    __slots__ = ("application_id", "remaining_work_ms", "remaining_tasks", "arrival_ms", "estimates", "critical_path_ms")
    APPLICATION_ID_FIELD_NUMBER: _ClassVar[int]
    REMAINING_WORK_MS_FIELD_NUMBER: _ClassVar[int]
    REMAINING_TASKS_FIELD_NUMBER: _ClassVar[int]
    ARRIVAL_MS_FIELD_NUMBER: _ClassVar[int]
    ESTIMATES_FIELD_NUMBER: _ClassVar[int]
    CRITICAL_PATH_MS_FIELD_NUMBER: _ClassVar[int]
    application_id: _yarn_common_pb2.ApplicationId
    remaining_work_ms: int
    remaining_tasks: int
    arrival_ms: int
    estimates: _containers.RepeatedCompositeFieldContainer[StageEstimate]
    critical_path_ms: int
    def __init__(self, application_id: _Optional[_Union[_yarn_common_pb2.ApplicationId, _Mapping]] = ..., remaining_work_ms: _Optional[int] = ..., remaining_tasks: _Optional[int] = ..., arrival_ms: _Optional[int] = ..., estimates: _Optional[_Iterable[_Union[StageEstimate, _Mapping]]] = ..., critical_path_ms: _Optional[int] = ...) -> None: ...

class NodeQueueSettings(_message.Message):
    __slots__ = ("enabled", "max_queued", "order", "starve_ms", "starve_ratio", "scope", "max_wait_ms", "leaves")
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    MAX_QUEUED_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    STARVE_MS_FIELD_NUMBER: _ClassVar[int]
    STARVE_RATIO_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    MAX_WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    LEAVES_FIELD_NUMBER: _ClassVar[int]
    enabled: bool
    max_queued: int
    order: str
    starve_ms: int
    starve_ratio: float
    scope: str
    max_wait_ms: int
    leaves: _containers.RepeatedCompositeFieldContainer[LeafOrder]
    def __init__(self, enabled: _Optional[bool] = ..., max_queued: _Optional[int] = ..., order: _Optional[str] = ..., starve_ms: _Optional[int] = ..., starve_ratio: _Optional[float] = ..., scope: _Optional[str] = ..., max_wait_ms: _Optional[int] = ..., leaves: _Optional[_Iterable[_Union[LeafOrder, _Mapping]]] = ...) -> None: ...

class LeafOrder(_message.Message):
    __slots__ = ("queue", "order", "starve_ms", "starve_ratio")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    STARVE_MS_FIELD_NUMBER: _ClassVar[int]
    STARVE_RATIO_FIELD_NUMBER: _ClassVar[int]
    queue: str
    order: str
    starve_ms: int
    starve_ratio: float
    def __init__(self, queue: _Optional[str] = ..., order: _Optional[str] = ..., starve_ms: _Optional[int] = ..., starve_ratio: _Optional[float] = ...) -> None: ...

class NodeQueueOrders(_message.Message):
    __slots__ = ("settings", "jobs", "files_read_ms", "masters")
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    FILES_READ_MS_FIELD_NUMBER: _ClassVar[int]
    MASTERS_FIELD_NUMBER: _ClassVar[int]
    settings: NodeQueueSettings
    jobs: _containers.RepeatedCompositeFieldContainer[JobFacts]
    files_read_ms: int
    masters: MasterRooms
    def __init__(self, settings: _Optional[_Union[NodeQueueSettings, _Mapping]] = ..., jobs: _Optional[_Iterable[_Union[JobFacts, _Mapping]]] = ..., files_read_ms: _Optional[int] = ..., masters: _Optional[_Union[MasterRooms, _Mapping]] = ...) -> None: ...

class ProxiedMaster(_message.Message):
    __slots__ = ("attempt_id", "user", "job_arrival_ms", "master", "token", "registration", "lowest_id", "response_id", "placed", "asks", "blacklist", "live", "placed_for")
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    JOB_ARRIVAL_MS_FIELD_NUMBER: _ClassVar[int]
    MASTER_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    REGISTRATION_FIELD_NUMBER: _ClassVar[int]
    LOWEST_ID_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_ID_FIELD_NUMBER: _ClassVar[int]
    PLACED_FIELD_NUMBER: _ClassVar[int]
    ASKS_FIELD_NUMBER: _ClassVar[int]
    BLACKLIST_FIELD_NUMBER: _ClassVar[int]
    LIVE_FIELD_NUMBER: _ClassVar[int]
    PLACED_FOR_FIELD_NUMBER: _ClassVar[int]
    attempt_id: _yarn_common_pb2.ApplicationAttemptId
    user: str
    job_arrival_ms: int
    master: _yarn_common_pb2.ContainerId
    token: _yarn_common_pb2.Token
    registration: _yarn_service_pb2.RegisterDistributedSchedulingAMResponse
    lowest_id: int
    response_id: int
    placed: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.Container]
    asks: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.ResourceRequest]
    blacklist: _containers.RepeatedScalarFieldContainer[str]
    live: _containers.RepeatedScalarFieldContainer[int]
    placed_for: _containers.RepeatedCompositeFieldContainer[PlacedFor]
    def __init__(self, attempt_id: _Optional[_Union[_yarn_common_pb2.ApplicationAttemptId, _Mapping]] = ..., user: _Optional[str] = ..., job_arrival_ms: _Optional[int] = ..., master: _Optional[_Union[_yarn_common_pb2.ContainerId, _Mapping]] = ..., token: _Optional[_Union[_yarn_common_pb2.Token, _Mapping]] = ..., registration: _Optional[_Union[_yarn_service_pb2.RegisterDistributedSchedulingAMResponse, _Mapping]] = ..., lowest_id: _Optional[int] = ..., response_id: _Optional[int] = ..., placed: _Optional[_Iterable[_Union[_yarn_common_pb2.Container, _Mapping]]] = ..., asks: _Optional[_Iterable[_Union[_yarn_common_pb2.ResourceRequest, _Mapping]]] = ..., blacklist: _Optional[_Iterable[str]] = ..., live: _Optional[_Iterable[int]] = ..., placed_for: _Optional[_Iterable[_Union[PlacedFor, _Mapping]]] = ...) -> None: ...

class PlacedFor(_message.Message):
    __slots__ = ("container", "names", "strict")
    CONTAINER_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    STRICT_FIELD_NUMBER: _ClassVar[int]
    container: int
    names: _containers.RepeatedScalarFieldContainer[str]
    strict: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, container: _Optional[int] = ..., names: _Optional[_Iterable[str]] = ..., strict: _Optional[_Iterable[str]] = ...) -> None: ...

class ProxyKeys(_message.Message):
    __slots__ = ("current", "next")
    CURRENT_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    current: MasterKey
    next: MasterKey
    def __init__(self, current: _Optional[_Union[MasterKey, _Mapping]] = ..., next: _Optional[_Union[MasterKey, _Mapping]] = ...) -> None: ...
