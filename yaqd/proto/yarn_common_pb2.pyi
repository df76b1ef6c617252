from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TargetType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NODE_ATTRIBUTE: _ClassVar[TargetType]
    ALLOCATION_TAG: _ClassVar[TargetType]
    SELF: _ClassVar[TargetType]

class DelayUnit(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DELAY_MILLISECONDS: _ClassVar[DelayUnit]
    DELAY_OPPORTUNITIES: _ClassVar[DelayUnit]

class CompositeType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AND: _ClassVar[CompositeType]
    OR: _ClassVar[CompositeType]
    DELAYED_OR: _ClassVar[CompositeType]

class ResourceTypes(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COUNTABLE: _ClassVar[ResourceTypes]

class ContainerState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    C_NEW: _ClassVar[ContainerState]
    C_RUNNING: _ClassVar[ContainerState]
    C_COMPLETE: _ClassVar[ContainerState]

class ContainerSubState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CSS_SCHEDULED: _ClassVar[ContainerSubState]
    CSS_RUNNING: _ClassVar[ContainerSubState]
    CSS_PAUSED: _ClassVar[ContainerSubState]
    CSS_COMPLETING: _ClassVar[ContainerSubState]
    CSS_DONE: _ClassVar[ContainerSubState]

class ExecutionType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GUARANTEED: _ClassVar[ExecutionType]
    OPPORTUNISTIC: _ClassVar[ExecutionType]

class ContainerType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    APPLICATION_MASTER: _ClassVar[ContainerType]
    TASK: _ClassVar[ContainerType]

class ContainerExitStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SUCCESS: _ClassVar[ContainerExitStatus]
    INVALID: _ClassVar[ContainerExitStatus]
    ABORTED: _ClassVar[ContainerExitStatus]
    DISKS_FAILED: _ClassVar[ContainerExitStatus]

class YarnApplicationState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NEW: _ClassVar[YarnApplicationState]
    NEW_SAVING: _ClassVar[YarnApplicationState]
    SUBMITTED: _ClassVar[YarnApplicationState]
    ACCEPTED: _ClassVar[YarnApplicationState]
    RUNNING: _ClassVar[YarnApplicationState]
    FINISHED: _ClassVar[YarnApplicationState]
    FAILED: _ClassVar[YarnApplicationState]
    KILLED: _ClassVar[YarnApplicationState]

class YarnApplicationAttemptState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    APP_ATTEMPT_NEW: _ClassVar[YarnApplicationAttemptState]
    APP_ATTEMPT_SUBMITTED: _ClassVar[YarnApplicationAttemptState]
    APP_ATTEMPT_SCHEDULED: _ClassVar[YarnApplicationAttemptState]
    APP_ATTEMPT_ALLOCATED_SAVING: _ClassVar[YarnApplicationAttemptState]
    APP_ATTEMPT_ALLOCATED: _ClassVar[YarnApplicationAttemptState]
    APP_ATTEMPT_LAUNCHED: _ClassVar[YarnApplicationAttemptState]
    APP_ATTEMPT_FAILED: _ClassVar[YarnApplicationAttemptState]
    APP_ATTEMPT_RUNNING: _ClassVar[YarnApplicationAttemptState]
    APP_ATTEMPT_FINISHING: _ClassVar[YarnApplicationAttemptState]
    APP_ATTEMPT_FINISHED: _ClassVar[YarnApplicationAttemptState]
    APP_ATTEMPT_KILLED: _ClassVar[YarnApplicationAttemptState]

class FinalApplicationStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    APP_UNDEFINED: _ClassVar[FinalApplicationStatus]
    APP_SUCCEEDED: _ClassVar[FinalApplicationStatus]
    APP_FAILED: _ClassVar[FinalApplicationStatus]
    APP_KILLED: _ClassVar[FinalApplicationStatus]
    APP_ENDED: _ClassVar[FinalApplicationStatus]

class LocalResourceVisibility(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PUBLIC: _ClassVar[LocalResourceVisibility]
    PRIVATE: _ClassVar[LocalResourceVisibility]
    APPLICATION: _ClassVar[LocalResourceVisibility]

class LocalResourceType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ARCHIVE: _ClassVar[LocalResourceType]
    FILE: _ClassVar[LocalResourceType]
    PATTERN: _ClassVar[LocalResourceType]

class LogAggregationStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LOG_DISABLED: _ClassVar[LogAggregationStatus]
    LOG_NOT_START: _ClassVar[LogAggregationStatus]
    LOG_RUNNING: _ClassVar[LogAggregationStatus]
    LOG_SUCCEEDED: _ClassVar[LogAggregationStatus]
    LOG_FAILED: _ClassVar[LogAggregationStatus]
    LOG_TIME_OUT: _ClassVar[LogAggregationStatus]
    LOG_RUNNING_WITH_FAILURE: _ClassVar[LogAggregationStatus]

class NodeState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NS_NEW: _ClassVar[NodeState]
    NS_RUNNING: _ClassVar[NodeState]
    NS_UNHEALTHY: _ClassVar[NodeState]
    NS_DECOMMISSIONED: _ClassVar[NodeState]
    NS_LOST: _ClassVar[NodeState]
    NS_REBOOTED: _ClassVar[NodeState]
    NS_DECOMMISSIONING: _ClassVar[NodeState]
    NS_SHUTDOWN: _ClassVar[NodeState]

class NodeUpdateType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NODE_USABLE: _ClassVar[NodeUpdateType]
    NODE_UNUSABLE: _ClassVar[NodeUpdateType]
    NODE_DECOMMISSIONING: _ClassVar[NodeUpdateType]

class NodeAttributeType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STRING: _ClassVar[NodeAttributeType]

class AMCommand(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AM_RESYNC: _ClassVar[AMCommand]
    AM_SHUTDOWN: _ClassVar[AMCommand]

class RejectionReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RRP_COULD_NOT_PLACE_ON_NODE: _ClassVar[RejectionReason]
    RRP_COULD_NOT_SCHEDULE_ON_NODE: _ClassVar[RejectionReason]

class ApplicationTimeoutType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    APP_TIMEOUT_LIFETIME: _ClassVar[ApplicationTimeoutType]

class ApplicationAccessType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    APPACCESS_VIEW_APP: _ClassVar[ApplicationAccessType]
    APPACCESS_MODIFY_APP: _ClassVar[ApplicationAccessType]

class ContainerRetryPolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NEVER_RETRY: _ClassVar[ContainerRetryPolicy]
    RETRY_ON_ALL_ERRORS: _ClassVar[ContainerRetryPolicy]
    RETRY_ON_SPECIFIC_ERROR_CODES: _ClassVar[ContainerRetryPolicy]

class QueueState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    Q_STOPPED: _ClassVar[QueueState]
    Q_RUNNING: _ClassVar[QueueState]
    Q_DRAINING: _ClassVar[QueueState]

class QueueACL(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    QACL_SUBMIT_APPLICATIONS: _ClassVar[QueueACL]
    QACL_ADMINISTER_QUEUE: _ClassVar[QueueACL]

class SignalContainerCommand(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OUTPUT_THREAD_DUMP: _ClassVar[SignalContainerCommand]
    GRACEFUL_SHUTDOWN: _ClassVar[SignalContainerCommand]
    FORCEFUL_SHUTDOWN: _ClassVar[SignalContainerCommand]

class NodeAttributeOpCode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NO_OP: _ClassVar[NodeAttributeOpCode]
    EQ: _ClassVar[NodeAttributeOpCode]
    NE: _ClassVar[NodeAttributeOpCode]
NODE_ATTRIBUTE: TargetType
ALLOCATION_TAG: TargetType
SELF: TargetType
DELAY_MILLISECONDS: DelayUnit
DELAY_OPPORTUNITIES: DelayUnit
AND: CompositeType
OR: CompositeType
DELAYED_OR: CompositeType
COUNTABLE: ResourceTypes
C_NEW: ContainerState
C_RUNNING: ContainerState
C_COMPLETE: ContainerState
CSS_SCHEDULED: ContainerSubState
CSS_RUNNING: ContainerSubState
CSS_PAUSED: ContainerSubState
CSS_COMPLETING: ContainerSubState
CSS_DONE: ContainerSubState
GUARANTEED: ExecutionType
OPPORTUNISTIC: ExecutionType
APPLICATION_MASTER: ContainerType
TASK: ContainerType
SUCCESS: ContainerExitStatus
INVALID: ContainerExitStatus
ABORTED: ContainerExitStatus
DISKS_FAILED: ContainerExitStatus
NEW: YarnApplicationState
NEW_SAVING: YarnApplicationState
SUBMITTED: YarnApplicationState
ACCEPTED: YarnApplicationState
RUNNING: YarnApplicationState
FINISHED: YarnApplicationState
FAILED: YarnApplicationState
KILLED: YarnApplicationState
APP_ATTEMPT_NEW: YarnApplicationAttemptState
APP_ATTEMPT_SUBMITTED: YarnApplicationAttemptState
APP_ATTEMPT_SCHEDULED: YarnApplicationAttemptState
APP_ATTEMPT_ALLOCATED_SAVING: YarnApplicationAttemptState
APP_ATTEMPT_ALLOCATED: YarnApplicationAttemptState
APP_ATTEMPT_LAUNCHED: YarnApplicationAttemptState
APP_ATTEMPT_FAILED: YarnApplicationAttemptState
APP_ATTEMPT_RUNNING: YarnApplicationAttemptState
APP_ATTEMPT_FINISHING: YarnApplicationAttemptState
APP_ATTEMPT_FINISHED: YarnApplicationAttemptState
APP_ATTEMPT_KILLED: YarnApplicationAttemptState
APP_UNDEFINED: FinalApplicationStatus
APP_SUCCEEDED: FinalApplicationStatus
APP_FAILED: FinalApplicationStatus
APP_KILLED: FinalApplicationStatus
APP_ENDED: FinalApplicationStatus
PUBLIC: LocalResourceVisibility
PRIVATE: LocalResourceVisibility
APPLICATION: LocalResourceVisibility
ARCHIVE: LocalResourceType
FILE: LocalResourceType
PATTERN: LocalResourceType
LOG_DISABLED: LogAggregationStatus
LOG_NOT_START: LogAggregationStatus
LOG_RUNNING: LogAggregationStatus
LOG_SUCCEEDED: LogAggregationStatus
LOG_FAILED: LogAggregationStatus
LOG_TIME_OUT: LogAggregationStatus
LOG_RUNNING_WITH_FAILURE: LogAggregationStatus
NS_NEW: NodeState
NS_RUNNING: NodeState
NS_UNHEALTHY: NodeState
NS_DECOMMISSIONED: NodeState
NS_LOST: NodeState
NS_REBOOTED: NodeState
NS_DECOMMISSIONING: NodeState
NS_SHUTDOWN: NodeState
NODE_USABLE: NodeUpdateType
NODE_UNUSABLE: NodeUpdateType
NODE_DECOMMISSIONING: NodeUpdateType
STRING: NodeAttributeType
AM_RESYNC: AMCommand
AM_SHUTDOWN: AMCommand
RRP_COULD_NOT_PLACE_ON_NODE: RejectionReason
RRP_COULD_NOT_SCHEDULE_ON_NODE: RejectionReason
APP_TIMEOUT_LIFETIME: ApplicationTimeoutType
APPACCESS_VIEW_APP: ApplicationAccessType
APPACCESS_MODIFY_APP: ApplicationAccessType
NEVER_RETRY: ContainerRetryPolicy
RETRY_ON_ALL_ERRORS: ContainerRetryPolicy
RETRY_ON_SPECIFIC_ERROR_CODES: ContainerRetryPolicy
Q_STOPPED: QueueState
Q_RUNNING: QueueState
Q_DRAINING: QueueState
QACL_SUBMIT_APPLICATIONS: QueueACL
QACL_ADMINISTER_QUEUE: QueueACL
OUTPUT_THREAD_DUMP: SignalContainerCommand
GRACEFUL_SHUTDOWN: SignalContainerCommand
FORCEFUL_SHUTDOWN: SignalContainerCommand
NO_OP: NodeAttributeOpCode
EQ: NodeAttributeOpCode
NE: NodeAttributeOpCode

class Token(_message.Message):
    __slots__ = ("identifier", "password", "kind", "service")
    IDENTIFIER_FIELD_NUMBER: _ClassVar[int]
    PASSWORD_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    identifier: bytes
    password: bytes
    kind: str
    service: str
    def __init__(self, identifier: _Optional[bytes] = ..., password: _Optional[bytes] = ..., kind: _Optional[str] = ..., service: _Optional[str] = ...) -> None: ...

class SerializedException(_message.Message):
    __slots__ = ("message", "trace", "class_name", "cause")
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    CLASS_NAME_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    message: str
    trace: str
    class_name: str
    cause: SerializedException
    def __init__(self, message: _Optional[str] = ..., trace: _Optional[str] = ..., class_name: _Optional[str] = ..., cause: _Optional[_Union[SerializedException, _Mapping]] = ...) -> None: ...

class ApplicationId(_message.Message):
    __slots__ = ("id", "cluster_timestamp")
    ID_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    id: int
    cluster_timestamp: int
    def __init__(self, id: _Optional[int] = ..., cluster_timestamp: _Optional[int] = ...) -> None: ...

class ApplicationAttemptId(_message.Message):
    __slots__ = ("application_id", "attemptId")
    APPLICATION_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTID_FIELD_NUMBER: _ClassVar[int]
    application_id: ApplicationId
    attemptId: int
    def __init__(self, application_id: _Optional[_Union[ApplicationId, _Mapping]] = ..., attemptId: _Optional[int] = ...) -> None: ...

class ContainerId(_message.Message):
    __slots__ = ("app_id", "app_attempt_id", "id")
    APP_ID_FIELD_NUMBER: _ClassVar[int]
    APP_ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    app_id: ApplicationId
    app_attempt_id: ApplicationAttemptId
    id: int
    def __init__(self, app_id: _Optional[_Union[ApplicationId, _Mapping]] = ..., app_attempt_id: _Optional[_Union[ApplicationAttemptId, _Mapping]] = ..., id: _Optional[int] = ...) -> None: ...

class NodeId(_message.Message):
    __slots__ = ("host", "port")
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    host: str
    port: int
    def __init__(self, host: _Optional[str] = ..., port: _Optional[int] = ...) -> None: ...

class Priority(_message.Message):
    __slots__ = ("priority",)
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    priority: int
    def __init__(self, priority: _Optional[int] = ...) -> None: ...

class ResourceInformation(_message.Message):
    __slots__ = ("key", "value", "units", "type", "tags", "attributes")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    UNITS_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: int
    units: str
    type: ResourceTypes
    tags: _containers.RepeatedScalarFieldContainer[str]
    attributes: _containers.RepeatedCompositeFieldContainer[StringStringMap]
    def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ..., units: _Optional[str] = ..., type: _Optional[_Union[ResourceTypes, str]] = ..., tags: _Optional[_Iterable[str]] = ..., attributes: _Optional[_Iterable[_Union[StringStringMap, _Mapping]]] = ...) -> None: ...

class ResourceTypeInfo(_message.Message):
    __slots__ = ("name", "units", "type")
    NAME_FIELD_NUMBER: _ClassVar[int]
    UNITS_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    name: str
    units: str
    type: ResourceTypes
    def __init__(self, name: _Optional[str] = ..., units: _Optional[str] = ..., type: _Optional[_Union[ResourceTypes, str]] = ...) -> None: ...

class Resource(_message.Message):
    __slots__ = ("memory", "virtual_cores", "resource_value_map")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    VIRTUAL_CORES_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_VALUE_MAP_FIELD_NUMBER: _ClassVar[int]
    memory: int
    virtual_cores: int
    resource_value_map: _containers.RepeatedCompositeFieldContainer[ResourceInformation]
    def __init__(self, memory: _Optional[int] = ..., virtual_cores: _Optional[int] = ..., resource_value_map: _Optional[_Iterable[_Union[ResourceInformation, _Mapping]]] = ...) -> None: ...

class ResourceUtilization(_message.Message):
    __slots__ = ("pmem", "vmem", "cpu", "customResources")
    PMEM_FIELD_NUMBER: _ClassVar[int]
    VMEM_FIELD_NUMBER: _ClassVar[int]
    CPU_FIELD_NUMBER: _ClassVar[int]
    CUSTOMRESOURCES_FIELD_NUMBER: _ClassVar[int]
    pmem: int
    vmem: int
    cpu: float
    customResources: _containers.RepeatedCompositeFieldContainer[StringFloatMap]
    def __init__(self, pmem: _Optional[int] = ..., vmem: _Optional[int] = ..., cpu: _Optional[float] = ..., customResources: _Optional[_Iterable[_Union[StringFloatMap, _Mapping]]] = ...) -> None: ...

class ResourceOption(_message.Message):
    __slots__ = ("resource", "over_commit_timeout")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    OVER_COMMIT_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    resource: Resource
    over_commit_timeout: int
    def __init__(self, resource: _Optional[_Union[Resource, _Mapping]] = ..., over_commit_timeout: _Optional[int] = ...) -> None: ...

class NodeResourceMap(_message.Message):
    __slots__ = ("node_id", "resource_option")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_OPTION_FIELD_NUMBER: _ClassVar[int]
    node_id: NodeId
    resource_option: ResourceOption
    def __init__(self, node_id: _Optional[_Union[NodeId, _Mapping]] = ..., resource_option: _Optional[_Union[ResourceOption, _Mapping]] = ...) -> None: ...

class ResourceProfileEntry(_message.Message):
    __slots__ = ("name", "resources")
    NAME_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    name: str
    resources: Resource
    def __init__(self, name: _Optional[str] = ..., resources: _Optional[_Union[Resource, _Mapping]] = ...) -> None: ...

class ResourceProfiles(_message.Message):
    __slots__ = ("resource_profiles_map",)
    RESOURCE_PROFILES_MAP_FIELD_NUMBER: _ClassVar[int]
    resource_profiles_map: _containers.RepeatedCompositeFieldContainer[ResourceProfileEntry]
    def __init__(self, resource_profiles_map: _Optional[_Iterable[_Union[ResourceProfileEntry, _Mapping]]] = ...) -> None: ...

class ExecutionTypeRequest(_message.Message):
    __slots__ = ("execution_type", "enforce_execution_type")
    EXECUTION_TYPE_FIELD_NUMBER: _ClassVar[int]
    ENFORCE_EXECUTION_TYPE_FIELD_NUMBER: _ClassVar[int]
    execution_type: ExecutionType
    enforce_execution_type: bool
    def __init__(self, execution_type: _Optional[_Union[ExecutionType, str]] = ..., enforce_execution_type: _Optional[bool] = ...) -> None: ...

class Container(_message.Message):
    __slots__ = ("id", "nodeId", "node_http_address", "resource", "priority", "container_token", "execution_type", "allocation_request_id", "version", "allocation_tags", "exposed_ports")
    ID_FIELD_NUMBER: _ClassVar[int]
    NODEID_FIELD_NUMBER: _ClassVar[int]
    NODE_HTTP_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_TOKEN_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_TYPE_FIELD_NUMBER: _ClassVar[int]
    ALLOCATION_REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ALLOCATION_TAGS_FIELD_NUMBER: _ClassVar[int]
    EXPOSED_PORTS_FIELD_NUMBER: _ClassVar[int]
    id: ContainerId
    nodeId: NodeId
    node_http_address: str
    resource: Resource
    priority: Priority
    container_token: Token
    execution_type: ExecutionType
    allocation_request_id: int
    version: int
    allocation_tags: _containers.RepeatedScalarFieldContainer[str]
    exposed_ports: str
    def __init__(self, id: _Optional[_Union[ContainerId, _Mapping]] = ..., nodeId: _Optional[_Union[NodeId, _Mapping]] = ..., node_http_address: _Optional[str] = ..., resource: _Optional[_Union[Resource, _Mapping]] = ..., priority: _Optional[_Union[Priority, _Mapping]] = ..., container_token: _Optional[_Union[Token, _Mapping]] = ..., execution_type: _Optional[_Union[ExecutionType, str]] = ..., allocation_request_id: _Optional[int] = ..., version: _Optional[int] = ..., allocation_tags: _Optional[_Iterable[str]] = ..., exposed_ports: _Optional[str] = ...) -> None: ...

class ContainerReport(_message.Message):
    __slots__ = ("container_id", "resource", "node_id", "priority", "creation_time", "finish_time", "diagnostics_info", "log_url", "container_exit_status", "container_state", "node_http_address", "executionType", "exposed_ports")
    CONTAINER_ID_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    CREATION_TIME_FIELD_NUMBER: _ClassVar[int]
    FINISH_TIME_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSTICS_INFO_FIELD_NUMBER: _ClassVar[int]
    LOG_URL_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_EXIT_STATUS_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_STATE_FIELD_NUMBER: _ClassVar[int]
    NODE_HTTP_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    EXECUTIONTYPE_FIELD_NUMBER: _ClassVar[int]
    EXPOSED_PORTS_FIELD_NUMBER: _ClassVar[int]
    container_id: ContainerId
    resource: Resource
    node_id: NodeId
    priority: Priority
    creation_time: int
    finish_time: int
    diagnostics_info: str
    log_url: str
    container_exit_status: int
    container_state: ContainerState
    node_http_address: str
    executionType: ExecutionType
    exposed_ports: str
    def __init__(self, container_id: _Optional[_Union[ContainerId, _Mapping]] = ..., resource: _Optional[_Union[Resource, _Mapping]] = ..., node_id: _Optional[_Union[NodeId, _Mapping]] = ..., priority: _Optional[_Union[Priority, _Mapping]] = ..., creation_time: _Optional[int] = ..., finish_time: _Optional[int] = ..., diagnostics_info: _Optional[str] = ..., log_url: _Optional[str] = ..., container_exit_status: _Optional[int] = ..., container_state: _Optional[_Union[ContainerState, str]] = ..., node_http_address: _Optional[str] = ..., executionType: _Optional[_Union[ExecutionType, str]] = ..., exposed_ports: _Optional[str] = ...) -> None: ...

class ContainerStatus(_message.Message):
    __slots__ = ("container_id", "state", "diagnostics", "exit_status", "capability", "executionType", "container_attributes", "container_sub_state", "yaq_times")
    CONTAINER_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSTICS_FIELD_NUMBER: _ClassVar[int]
    EXIT_STATUS_FIELD_NUMBER: _ClassVar[int]
    CAPABILITY_FIELD_NUMBER: _ClassVar[int]
    EXECUTIONTYPE_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_SUB_STATE_FIELD_NUMBER: _ClassVar[int]
    YAQ_TIMES_FIELD_NUMBER: _ClassVar[int]
    container_id: ContainerId
    state: ContainerState
    diagnostics: str
    exit_status: int
    capability: Resource
    executionType: ExecutionType
    container_attributes: _containers.RepeatedCompositeFieldContainer[StringStringMap]
    container_sub_state: ContainerSubState
    yaq_times: TaskTimes
    def __init__(self, container_id: _Optional[_Union[ContainerId, _Mapping]] = ..., state: _Optional[_Union[ContainerState, str]] = ..., diagnostics: _Optional[str] = ..., exit_status: _Optional[int] = ..., capability: _Optional[_Union[Resource, _Mapping]] = ..., executionType: _Optional[_Union[ExecutionType, str]] = ..., container_attributes: _Optional[_Iterable[_Union[StringStringMap, _Mapping]]] = ..., container_sub_state: _Optional[_Union[ContainerSubState, str]] = ..., yaq_times: _Optional[_Union[TaskTimes, _Mapping]] = ...) -> None: ...

class TaskTimes(_message.Message):
    __slots__ = ("queued_ms", "run_ms", "held_ms", "starts_in_ms", "peak_memory_bytes", "cpu_ms")
    QUEUED_MS_FIELD_NUMBER: _ClassVar[int]
    RUN_MS_FIELD_NUMBER: _ClassVar[int]
    HELD_MS_FIELD_NUMBER: _ClassVar[int]
    STARTS_IN_MS_FIELD_NUMBER: _ClassVar[int]
    PEAK_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    CPU_MS_FIELD_NUMBER: _ClassVar[int]
    queued_ms: int
    run_ms: int
    held_ms: int
    starts_in_ms: int
    peak_memory_bytes: int
    cpu_ms: int
    def __init__(self, queued_ms: _Optional[int] = ..., run_ms: _Optional[int] = ..., held_ms: _Optional[int] = ..., starts_in_ms: _Optional[int] = ..., peak_memory_bytes: _Optional[int] = ..., cpu_ms: _Optional[int] = ...) -> None: ...

class URL(_message.Message):
    __slots__ = ("scheme", "host", "port", "file", "userInfo")
    SCHEME_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    USERINFO_FIELD_NUMBER: _ClassVar[int]
    scheme: str
    host: str
    port: int
    file: str
    userInfo: str
    def __init__(self, scheme: _Optional[str] = ..., host: _Optional[str] = ..., port: _Optional[int] = ..., file: _Optional[str] = ..., userInfo: _Optional[str] = ...) -> None: ...

class LocalResource(_message.Message):
    __slots__ = ("resource", "size", "timestamp", "type", "visibility", "pattern", "should_be_uploaded_to_shared_cache")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    VISIBILITY_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    SHOULD_BE_UPLOADED_TO_SHARED_CACHE_FIELD_NUMBER: _ClassVar[int]
    resource: URL
    size: int
    timestamp: int
    type: LocalResourceType
    visibility: LocalResourceVisibility
    pattern: str
    should_be_uploaded_to_shared_cache: bool
    def __init__(self, resource: _Optional[_Union[URL, _Mapping]] = ..., size: _Optional[int] = ..., timestamp: _Optional[int] = ..., type: _Optional[_Union[LocalResourceType, str]] = ..., visibility: _Optional[_Union[LocalResourceVisibility, str]] = ..., pattern: _Optional[str] = ..., should_be_uploaded_to_shared_cache: _Optional[bool] = ...) -> None: ...

class StringLocalResourceMap(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: LocalResource
    def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[LocalResource, _Mapping]] = ...) -> None: ...

class StringStringMap(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class StringBytesMap(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: bytes
    def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...

class StringLongMap(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: int
    def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...

class StringFloatMap(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: float
    def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...

class ApplicationResourceUsageReport(_message.Message):
    __slots__ = ("num_used_containers", "num_reserved_containers", "used_resources", "reserved_resources", "needed_resources", "memory_seconds", "vcore_seconds", "queue_usage_percentage", "cluster_usage_percentage", "preempted_memory_seconds", "preempted_vcore_seconds", "application_resource_usage_map", "application_preempted_resource_usage_map", "yaq_waiting", "yaq_waiting_resources")
    NUM_USED_CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    NUM_RESERVED_CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    USED_RESOURCES_FIELD_NUMBER: _ClassVar[int]
    RESERVED_RESOURCES_FIELD_NUMBER: _ClassVar[int]
    NEEDED_RESOURCES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_SECONDS_FIELD_NUMBER: _ClassVar[int]
    VCORE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_USAGE_PERCENTAGE_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_USAGE_PERCENTAGE_FIELD_NUMBER: _ClassVar[int]
    PREEMPTED_MEMORY_SECONDS_FIELD_NUMBER: _ClassVar[int]
    PREEMPTED_VCORE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    APPLICATION_RESOURCE_USAGE_MAP_FIELD_NUMBER: _ClassVar[int]
    APPLICATION_PREEMPTED_RESOURCE_USAGE_MAP_FIELD_NUMBER: _ClassVar[int]
    YAQ_WAITING_FIELD_NUMBER: _ClassVar[int]
    YAQ_WAITING_RESOURCES_FIELD_NUMBER: _ClassVar[int]
    num_used_containers: int
    num_reserved_containers: int
    used_resources: Resource
    reserved_resources: Resource
    needed_resources: Resource
    memory_seconds: int
    vcore_seconds: int
    queue_usage_percentage: float
    cluster_usage_percentage: float
    preempted_memory_seconds: int
    preempted_vcore_seconds: int
    application_resource_usage_map: _containers.RepeatedCompositeFieldContainer[StringLongMap]
    application_preempted_resource_usage_map: _containers.RepeatedCompositeFieldContainer[StringLongMap]
    yaq_waiting: int
    yaq_waiting_resources: Resource
    def __init__(self, num_used_containers: _Optional[int] = ..., num_reserved_containers: _Optional[int] = ..., used_resources: _Optional[_Union[Resource, _Mapping]] = ..., reserved_resources: _Optional[_Union[Resource, _Mapping]] = ..., needed_resources: _Optional[_Union[Resource, _Mapping]] = ..., memory_seconds: _Optional[int] = ..., vcore_seconds: _Optional[int] = ..., queue_usage_percentage: _Optional[float] = ..., cluster_usage_percentage: _Optional[float] = ..., preempted_memory_seconds: _Optional[int] = ..., preempted_vcore_seconds: _Optional[int] = ..., application_resource_usage_map: _Optional[_Iterable[_Union[StringLongMap, _Mapping]]] = ..., application_preempted_resource_usage_map: _Optional[_Iterable[_Union[StringLongMap, _Mapping]]] = ..., yaq_waiting: _Optional[int] = ..., yaq_waiting_resources: _Optional[_Union[Resource, _Mapping]] = ...) -> None: ...

class ApplicationReport(_message.Message):
    __slots__ = ("applicationId", "user", "queue", "name", "host", "rpc_port", "client_to_am_token", "yarn_application_state", "trackingUrl", "diagnostics", "startTime", "finishTime", "final_application_status", "app_resource_Usage", "originalTrackingUrl", "currentApplicationAttemptId", "progress", "applicationType", "am_rm_token", "applicationTags", "log_aggregation_status", "unmanaged_application", "priority", "appNodeLabelExpression", "amNodeLabelExpression", "appTimeouts", "launchTime", "submitTime", "rmClusterId")
    APPLICATIONID_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    RPC_PORT_FIELD_NUMBER: _ClassVar[int]
    CLIENT_TO_AM_TOKEN_FIELD_NUMBER: _ClassVar[int]
    YARN_APPLICATION_STATE_FIELD_NUMBER: _ClassVar[int]
    TRACKINGURL_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSTICS_FIELD_NUMBER: _ClassVar[int]
    STARTTIME_FIELD_NUMBER: _ClassVar[int]
    FINISHTIME_FIELD_NUMBER: _ClassVar[int]
    FINAL_APPLICATION_STATUS_FIELD_NUMBER: _ClassVar[int]
    APP_RESOURCE_USAGE_FIELD_NUMBER: _ClassVar[int]
    ORIGINALTRACKINGURL_FIELD_NUMBER: _ClassVar[int]
    CURRENTAPPLICATIONATTEMPTID_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    APPLICATIONTYPE_FIELD_NUMBER: _ClassVar[int]
    AM_RM_TOKEN_FIELD_NUMBER: _ClassVar[int]
    APPLICATIONTAGS_FIELD_NUMBER: _ClassVar[int]
    LOG_AGGREGATION_STATUS_FIELD_NUMBER: _ClassVar[int]
    UNMANAGED_APPLICATION_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    APPNODELABELEXPRESSION_FIELD_NUMBER: _ClassVar[int]
    AMNODELABELEXPRESSION_FIELD_NUMBER: _ClassVar[int]
    APPTIMEOUTS_FIELD_NUMBER: _ClassVar[int]
    LAUNCHTIME_FIELD_NUMBER: _ClassVar[int]
    SUBMITTIME_FIELD_NUMBER: _ClassVar[int]
    RMCLUSTERID_FIELD_NUMBER: _ClassVar[int]
    applicationId: ApplicationId
    user: str
    queue: str
    name: str
    host: str
    rpc_port: int
    client_to_am_token: Token
    yarn_application_state: YarnApplicationState
    trackingUrl: str
    diagnostics: str
    startTime: int
    finishTime: int
    final_application_status: FinalApplicationStatus
    app_resource_Usage: ApplicationResourceUsageReport
    originalTrackingUrl: str
    currentApplicationAttemptId: ApplicationAttemptId
    progress: float
    applicationType: str
    am_rm_token: Token
    applicationTags: _containers.RepeatedScalarFieldContainer[str]
    log_aggregation_status: LogAggregationStatus
    unmanaged_application: bool
    priority: Priority
    appNodeLabelExpression: str
    amNodeLabelExpression: str
    appTimeouts: _containers.RepeatedCompositeFieldContainer[AppTimeoutsMap]
    launchTime: int
    submitTime: int
    rmClusterId: str
    def __init__(self, applicationId: _Optional[_Union[ApplicationId, _Mapping]] = ..., user: _Optional[str] = ..., queue: _Optional[str] = ..., name: _Optional[str] = ..., host: _Optional[str] = ..., rpc_port: _Optional[int] = ..., client_to_am_token: _Optional[_Union[Token, _Mapping]] = ..., yarn_application_state: _Optional[_Union[YarnApplicationState, str]] = ..., trackingUrl: _Optional[str] = ..., diagnostics: _Optional[str] = ..., startTime: _Optional[int] = ..., finishTime: _Optional[int] = ..., final_application_status: _Optional[_Union[FinalApplicationStatus, str]] = ..., app_resource_Usage: _Optional[_Union[ApplicationResourceUsageReport, _Mapping]] = ..., originalTrackingUrl: _Optional[str] = ..., currentApplicationAttemptId: _Optional[_Union[ApplicationAttemptId, _Mapping]] = ..., progress: _Optional[float] = ..., applicationType: _Optional[str] = ..., am_rm_token: _Optional[_Union[Token, _Mapping]] = ..., applicationTags: _Optional[_Iterable[str]] = ..., log_aggregation_status: _Optional[_Union[LogAggregationStatus, str]] = ..., unmanaged_application: _Optional[bool] = ..., priority: _Optional[_Union[Priority, _Mapping]] = ..., appNodeLabelExpression: _Optional[str] = ..., amNodeLabelExpression: _Optional[str] = ..., appTimeouts: _Optional[_Iterable[_Union[AppTimeoutsMap, _Mapping]]] = ..., launchTime: _Optional[int] = ..., submitTime: _Optional[int] = ..., rmClusterId: _Optional[str] = ...) -> None: ...

class AppTimeoutsMap(_message.Message):
    __slots__ = ("application_timeout_type", "application_timeout")
    APPLICATION_TIMEOUT_TYPE_FIELD_NUMBER: _ClassVar[int]
    APPLICATION_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    application_timeout_type: ApplicationTimeoutType
    application_timeout: ApplicationTimeout
    def __init__(self, application_timeout_type: _Optional[_Union[ApplicationTimeoutType, str]] = ..., application_timeout: _Optional[_Union[ApplicationTimeout, _Mapping]] = ...) -> None: ...

class ApplicationTimeout(_message.Message):
    __slots__ = ("application_timeout_type", "expire_time", "remaining_time")
    APPLICATION_TIMEOUT_TYPE_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    REMAINING_TIME_FIELD_NUMBER: _ClassVar[int]
    application_timeout_type: ApplicationTimeoutType
    expire_time: str
    remaining_time: int
    def __init__(self, application_timeout_type: _Optional[_Union[ApplicationTimeoutType, str]] = ..., expire_time: _Optional[str] = ..., remaining_time: _Optional[int] = ...) -> None: ...

class ApplicationAttemptReport(_message.Message):
    __slots__ = ("application_attempt_id", "host", "rpc_port", "tracking_url", "diagnostics", "yarn_application_attempt_state", "am_container_id", "original_tracking_url", "startTime", "finishTime")
    APPLICATION_ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    RPC_PORT_FIELD_NUMBER: _ClassVar[int]
    TRACKING_URL_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSTICS_FIELD_NUMBER: _ClassVar[int]
    YARN_APPLICATION_ATTEMPT_STATE_FIELD_NUMBER: _ClassVar[int]
    AM_CONTAINER_ID_FIELD_NUMBER: _ClassVar[int]
    ORIGINAL_TRACKING_URL_FIELD_NUMBER: _ClassVar[int]
    STARTTIME_FIELD_NUMBER: _ClassVar[int]
    FINISHTIME_FIELD_NUMBER: _ClassVar[int]
    application_attempt_id: ApplicationAttemptId
    host: str
    rpc_port: int
    tracking_url: str
    diagnostics: str
    yarn_application_attempt_state: YarnApplicationAttemptState
    am_container_id: ContainerId
    original_tracking_url: str
    startTime: int
    finishTime: int
    def __init__(self, application_attempt_id: _Optional[_Union[ApplicationAttemptId, _Mapping]] = ..., host: _Optional[str] = ..., rpc_port: _Optional[int] = ..., tracking_url: _Optional[str] = ..., diagnostics: _Optional[str] = ..., yarn_application_attempt_state: _Optional[_Union[YarnApplicationAttemptState, str]] = ..., am_container_id: _Optional[_Union[ContainerId, _Mapping]] = ..., original_tracking_url: _Optional[str] = ..., startTime: _Optional[int] = ..., finishTime: _Optional[int] = ...) -> None: ...

class NodeReport(_message.Message):
    __slots__ = ("nodeId", "httpAddress", "rackName", "used", "capability", "numContainers", "node_state", "health_report", "last_health_report_time", "node_labels", "containers_utilization", "node_utilization", "decommissioning_timeout", "node_update_type", "node_attributes", "yaq_waiting")
    NODEID_FIELD_NUMBER: _ClassVar[int]
    HTTPADDRESS_FIELD_NUMBER: _ClassVar[int]
    RACKNAME_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    CAPABILITY_FIELD_NUMBER: _ClassVar[int]
    NUMCONTAINERS_FIELD_NUMBER: _ClassVar[int]
    NODE_STATE_FIELD_NUMBER: _ClassVar[int]
    HEALTH_REPORT_FIELD_NUMBER: _ClassVar[int]
    LAST_HEALTH_REPORT_TIME_FIELD_NUMBER: _ClassVar[int]
    NODE_LABELS_FIELD_NUMBER: _ClassVar[int]
    CONTAINERS_UTILIZATION_FIELD_NUMBER: _ClassVar[int]
    NODE_UTILIZATION_FIELD_NUMBER: _ClassVar[int]
    DECOMMISSIONING_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    NODE_UPDATE_TYPE_FIELD_NUMBER: _ClassVar[int]
    NODE_ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    YAQ_WAITING_FIELD_NUMBER: _ClassVar[int]
    nodeId: NodeId
    httpAddress: str
    rackName: str
    used: Resource
    capability: Resource
    numContainers: int
    node_state: NodeState
    health_report: str
    last_health_report_time: int
    node_labels: _containers.RepeatedScalarFieldContainer[str]
    containers_utilization: ResourceUtilization
    node_utilization: ResourceUtilization
    decommissioning_timeout: int
    node_update_type: NodeUpdateType
    node_attributes: _containers.RepeatedCompositeFieldContainer[NodeAttribute]
    yaq_waiting: int
    def __init__(self, nodeId: _Optional[_Union[NodeId, _Mapping]] = ..., httpAddress: _Optional[str] = ..., rackName: _Optional[str] = ..., used: _Optional[_Union[Resource, _Mapping]] = ..., capability: _Optional[_Union[Resource, _Mapping]] = ..., numContainers: _Optional[int] = ..., node_state: _Optional[_Union[NodeState, str]] = ..., health_report: _Optional[str] = ..., last_health_report_time: _Optional[int] = ..., node_labels: _Optional[_Iterable[str]] = ..., containers_utilization: _Optional[_Union[ResourceUtilization, _Mapping]] = ..., node_utilization: _Optional[_Union[ResourceUtilization, _Mapping]] = ..., decommissioning_timeout: _Optional[int] = ..., node_update_type: _Optional[_Union[NodeUpdateType, str]] = ..., node_attributes: _Optional[_Iterable[_Union[NodeAttribute, _Mapping]]] = ..., yaq_waiting: _Optional[int] = ...) -> None: ...

class NodeLabel(_message.Message):
    __slots__ = ("name", "isExclusive")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ISEXCLUSIVE_FIELD_NUMBER: _ClassVar[int]
    name: str
    isExclusive: bool
    def __init__(self, name: _Optional[str] = ..., isExclusive: _Optional[bool] = ...) -> None: ...

class NodeIdToLabels(_message.Message):
    __slots__ = ("nodeId", "nodeLabels")
    NODEID_FIELD_NUMBER: _ClassVar[int]
    NODELABELS_FIELD_NUMBER: _ClassVar[int]
    nodeId: NodeId
    nodeLabels: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, nodeId: _Optional[_Union[NodeId, _Mapping]] = ..., nodeLabels: _Optional[_Iterable[str]] = ...) -> None: ...

class LabelsToNodeIds(_message.Message):
    __slots__ = ("nodeLabels", "nodeId")
    NODELABELS_FIELD_NUMBER: _ClassVar[int]
    NODEID_FIELD_NUMBER: _ClassVar[int]
    nodeLabels: str
    nodeId: _containers.RepeatedCompositeFieldContainer[NodeId]
    def __init__(self, nodeLabels: _Optional[str] = ..., nodeId: _Optional[_Iterable[_Union[NodeId, _Mapping]]] = ...) -> None: ...

class NodeAttributeKey(_message.Message):
    __slots__ = ("attributePrefix", "attributeName")
    ATTRIBUTEPREFIX_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTENAME_FIELD_NUMBER: _ClassVar[int]
    attributePrefix: str
    attributeName: str
    def __init__(self, attributePrefix: _Optional[str] = ..., attributeName: _Optional[str] = ...) -> None: ...

class NodeAttribute(_message.Message):
    __slots__ = ("attributeKey", "attributeType", "attributeValue")
    ATTRIBUTEKEY_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTETYPE_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTEVALUE_FIELD_NUMBER: _ClassVar[int]
    attributeKey: NodeAttributeKey
    attributeType: NodeAttributeType
    attributeValue: str
    def __init__(self, attributeKey: _Optional[_Union[NodeAttributeKey, _Mapping]] = ..., attributeType: _Optional[_Union[NodeAttributeType, str]] = ..., attributeValue: _Optional[str] = ...) -> None: ...

class NodeAttributeInfo(_message.Message):
    __slots__ = ("attributeKey", "attributeType")
    ATTRIBUTEKEY_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTETYPE_FIELD_NUMBER: _ClassVar[int]
    attributeKey: NodeAttributeKey
    attributeType: NodeAttributeType
    def __init__(self, attributeKey: _Optional[_Union[NodeAttributeKey, _Mapping]] = ..., attributeType: _Optional[_Union[NodeAttributeType, str]] = ...) -> None: ...

class NodeToAttributeValue(_message.Message):
    __slots__ = ("hostname", "attributeValue")
    HOSTNAME_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTEVALUE_FIELD_NUMBER: _ClassVar[int]
    hostname: str
    attributeValue: str
    def __init__(self, hostname: _Optional[str] = ..., attributeValue: _Optional[str] = ...) -> None: ...

class AttributeToNodes(_message.Message):
    __slots__ = ("nodeAttribute", "nodeValueMap")
    NODEATTRIBUTE_FIELD_NUMBER: _ClassVar[int]
    NODEVALUEMAP_FIELD_NUMBER: _ClassVar[int]
    nodeAttribute: NodeAttributeKey
    nodeValueMap: _containers.RepeatedCompositeFieldContainer[NodeToAttributeValue]
    def __init__(self, nodeAttribute: _Optional[_Union[NodeAttributeKey, _Mapping]] = ..., nodeValueMap: _Optional[_Iterable[_Union[NodeToAttributeValue, _Mapping]]] = ...) -> None: ...

class NodeToAttributes(_message.Message):
    __slots__ = ("node", "nodeAttributes")
    NODE_FIELD_NUMBER: _ClassVar[int]
    NODEATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    node: str
    nodeAttributes: _containers.RepeatedCompositeFieldContainer[NodeAttribute]
    def __init__(self, node: _Optional[str] = ..., nodeAttributes: _Optional[_Iterable[_Union[NodeAttribute, _Mapping]]] = ...) -> None: ...

class ResourceRequest(_message.Message):
    __slots__ = ("priority", "resource_name", "capability", "num_containers", "relax_locality", "node_label_expression", "execution_type_request", "allocation_request_id")
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_NAME_FIELD_NUMBER: _ClassVar[int]
    CAPABILITY_FIELD_NUMBER: _ClassVar[int]
    NUM_CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    RELAX_LOCALITY_FIELD_NUMBER: _ClassVar[int]
    NODE_LABEL_EXPRESSION_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_TYPE_REQUEST_FIELD_NUMBER: _ClassVar[int]
    ALLOCATION_REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    priority: Priority
    resource_name: str
    capability: Resource
    num_containers: int
    relax_locality: bool
    node_label_expression: str
    execution_type_request: ExecutionTypeRequest
    allocation_request_id: int
    def __init__(self, priority: _Optional[_Union[Priority, _Mapping]] = ..., resource_name: _Optional[str] = ..., capability: _Optional[_Union[Resource, _Mapping]] = ..., num_containers: _Optional[int] = ..., relax_locality: _Optional[bool] = ..., node_label_expression: _Optional[str] = ..., execution_type_request: _Optional[_Union[ExecutionTypeRequest, _Mapping]] = ..., allocation_request_id: _Optional[int] = ...) -> None: ...

class SchedulingRequest(_message.Message):
    __slots__ = ("allocationRequestId", "priority", "executionType", "allocationTags", "resourceSizing", "placementConstraint")
    ALLOCATIONREQUESTID_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    EXECUTIONTYPE_FIELD_NUMBER: _ClassVar[int]
    ALLOCATIONTAGS_FIELD_NUMBER: _ClassVar[int]
    RESOURCESIZING_FIELD_NUMBER: _ClassVar[int]
    PLACEMENTCONSTRAINT_FIELD_NUMBER: _ClassVar[int]
    allocationRequestId: int
    priority: Priority
    executionType: ExecutionTypeRequest
    allocationTags: _containers.RepeatedScalarFieldContainer[str]
    resourceSizing: ResourceSizing
    placementConstraint: PlacementConstraint
    def __init__(self, allocationRequestId: _Optional[int] = ..., priority: _Optional[_Union[Priority, _Mapping]] = ..., executionType: _Optional[_Union[ExecutionTypeRequest, _Mapping]] = ..., allocationTags: _Optional[_Iterable[str]] = ..., resourceSizing: _Optional[_Union[ResourceSizing, _Mapping]] = ..., placementConstraint: _Optional[_Union[PlacementConstraint, _Mapping]] = ...) -> None: ...

class ResourceSizing(_message.Message):
    __slots__ = ("numAllocations", "resources")
    NUMALLOCATIONS_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    numAllocations: int
    resources: Resource
    def __init__(self, numAllocations: _Optional[int] = ..., resources: _Optional[_Union[Resource, _Mapping]] = ...) -> None: ...

class RejectedSchedulingRequest(_message.Message):
    __slots__ = ("reason", "request")
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    reason: RejectionReason
    request: SchedulingRequest
    def __init__(self, reason: _Optional[_Union[RejectionReason, str]] = ..., request: _Optional[_Union[SchedulingRequest, _Mapping]] = ...) -> None: ...

class PreemptionMessage(_message.Message):
    __slots__ = ("strictContract", "contract")
    STRICTCONTRACT_FIELD_NUMBER: _ClassVar[int]
    CONTRACT_FIELD_NUMBER: _ClassVar[int]
    strictContract: StrictPreemptionContract
    contract: PreemptionContract
    def __init__(self, strictContract: _Optional[_Union[StrictPreemptionContract, _Mapping]] = ..., contract: _Optional[_Union[PreemptionContract, _Mapping]] = ...) -> None: ...

class StrictPreemptionContract(_message.Message):
    __slots__ = ("container",)
    CONTAINER_FIELD_NUMBER: _ClassVar[int]
    container: _containers.RepeatedCompositeFieldContainer[PreemptionContainer]
    def __init__(self, container: _Optional[_Iterable[_Union[PreemptionContainer, _Mapping]]] = ...) -> None: ...

class PreemptionContract(_message.Message):
    __slots__ = ("resource", "container")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_FIELD_NUMBER: _ClassVar[int]
    resource: _containers.RepeatedCompositeFieldContainer[PreemptionResourceRequest]
    container: _containers.RepeatedCompositeFieldContainer[PreemptionContainer]
    def __init__(self, resource: _Optional[_Iterable[_Union[PreemptionResourceRequest, _Mapping]]] = ..., container: _Optional[_Iterable[_Union[PreemptionContainer, _Mapping]]] = ...) -> None: ...

class PreemptionContainer(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: ContainerId
    def __init__(self, id: _Optional[_Union[ContainerId, _Mapping]] = ...) -> None: ...

class PreemptionResourceRequest(_message.Message):
    __slots__ = ("resource",)
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    resource: ResourceRequest
    def __init__(self, resource: _Optional[_Union[ResourceRequest, _Mapping]] = ...) -> None: ...

class ResourceBlacklistRequest(_message.Message):
    __slots__ = ("blacklist_additions", "blacklist_removals")
    BLACKLIST_ADDITIONS_FIELD_NUMBER: _ClassVar[int]
    BLACKLIST_REMOVALS_FIELD_NUMBER: _ClassVar[int]
    blacklist_additions: _containers.RepeatedScalarFieldContainer[str]
    blacklist_removals: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, blacklist_additions: _Optional[_Iterable[str]] = ..., blacklist_removals: _Optional[_Iterable[str]] = ...) -> None: ...

class ApplicationSubmissionContext(_message.Message):
    __slots__ = ("application_id", "application_name", "queue", "priority", "am_container_spec", "cancel_tokens_when_complete", "unmanaged_am", "maxAppAttempts", "resource", "applicationType", "keep_containers_across_application_attempts", "applicationTags", "attempt_failures_validity_interval", "log_aggregation_context", "reservation_id", "node_label_expression", "am_container_resource_request", "application_timeouts", "application_scheduling_properties")
    APPLICATION_ID_FIELD_NUMBER: _ClassVar[int]
    APPLICATION_NAME_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    AM_CONTAINER_SPEC_FIELD_NUMBER: _ClassVar[int]
    CANCEL_TOKENS_WHEN_COMPLETE_FIELD_NUMBER: _ClassVar[int]
    UNMANAGED_AM_FIELD_NUMBER: _ClassVar[int]
    MAXAPPATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    APPLICATIONTYPE_FIELD_NUMBER: _ClassVar[int]
    KEEP_CONTAINERS_ACROSS_APPLICATION_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    APPLICATIONTAGS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FAILURES_VALIDITY_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    LOG_AGGREGATION_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    RESERVATION_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_LABEL_EXPRESSION_FIELD_NUMBER: _ClassVar[int]
    AM_CONTAINER_RESOURCE_REQUEST_FIELD_NUMBER: _ClassVar[int]
    APPLICATION_TIMEOUTS_FIELD_NUMBER: _ClassVar[int]
    APPLICATION_SCHEDULING_PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    application_id: ApplicationId
    application_name: str
    queue: str
    priority: Priority
    am_container_spec: ContainerLaunchContext
    cancel_tokens_when_complete: bool
    unmanaged_am: bool
    maxAppAttempts: int
    resource: Resource
    applicationType: str
    keep_containers_across_application_attempts: bool
    applicationTags: _containers.RepeatedScalarFieldContainer[str]
    attempt_failures_validity_interval: int
    log_aggregation_context: LogAggregationContext
    reservation_id: ReservationId
    node_label_expression: str
    am_container_resource_request: _containers.RepeatedCompositeFieldContainer[ResourceRequest]
    application_timeouts: _containers.RepeatedCompositeFieldContainer[ApplicationTimeoutMap]
    application_scheduling_properties: _containers.RepeatedCompositeFieldContainer[StringStringMap]
    def __init__(self, application_id: _Optional[_Union[ApplicationId, _Mapping]] = ..., application_name: _Optional[str] = ..., queue: _Optional[str] = ..., priority: _Optional[_Union[Priority, _Mapping]] = ..., am_container_spec: _Optional[_Union[ContainerLaunchContext, _Mapping]] = ..., cancel_tokens_when_complete: _Optional[bool] = ..., unmanaged_am: _Optional[bool] = ..., maxAppAttempts: _Optional[int] = ..., resource: _Optional[_Union[Resource, _Mapping]] = ..., applicationType: _Optional[str] = ..., keep_containers_across_application_attempts: _Optional[bool] = ..., applicationTags: _Optional[_Iterable[str]] = ..., attempt_failures_validity_interval: _Optional[int] = ..., log_aggregation_context: _Optional[_Union[LogAggregationContext, _Mapping]] = ..., reservation_id: _Optional[_Union[ReservationId, _Mapping]] = ..., node_label_expression: _Optional[str] = ..., am_container_resource_request: _Optional[_Iterable[_Union[ResourceRequest, _Mapping]]] = ..., application_timeouts: _Optional[_Iterable[_Union[ApplicationTimeoutMap, _Mapping]]] = ..., application_scheduling_properties: _Optional[_Iterable[_Union[StringStringMap, _Mapping]]] = ...) -> None: ...

class ReservationId(_message.Message):
    __slots__ = ("id", "cluster_timestamp")
    ID_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    id: int
    cluster_timestamp: int
    def __init__(self, id: _Optional[int] = ..., cluster_timestamp: _Optional[int] = ...) -> None: ...

class ApplicationTimeoutMap(_message.Message):
    __slots__ = ("application_timeout_type", "timeout")
    APPLICATION_TIMEOUT_TYPE_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    application_timeout_type: ApplicationTimeoutType
    timeout: int
    def __init__(self, application_timeout_type: _Optional[_Union[ApplicationTimeoutType, str]] = ..., timeout: _Optional[int] = ...) -> None: ...

class ApplicationUpdateTimeoutMap(_message.Message):
    __slots__ = ("application_timeout_type", "expire_time")
    APPLICATION_TIMEOUT_TYPE_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    application_timeout_type: ApplicationTimeoutType
    expire_time: str
    def __init__(self, application_timeout_type: _Optional[_Union[ApplicationTimeoutType, str]] = ..., expire_time: _Optional[str] = ...) -> None: ...

class LogAggregationContext(_message.Message):
    __slots__ = ("include_pattern", "exclude_pattern", "rolled_logs_include_pattern", "rolled_logs_exclude_pattern", "log_aggregation_policy_class_name", "log_aggregation_policy_parameters")
    INCLUDE_PATTERN_FIELD_NUMBER: _ClassVar[int]
    EXCLUDE_PATTERN_FIELD_NUMBER: _ClassVar[int]
    ROLLED_LOGS_INCLUDE_PATTERN_FIELD_NUMBER: _ClassVar[int]
    ROLLED_LOGS_EXCLUDE_PATTERN_FIELD_NUMBER: _ClassVar[int]
    LOG_AGGREGATION_POLICY_CLASS_NAME_FIELD_NUMBER: _ClassVar[int]
    LOG_AGGREGATION_POLICY_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    include_pattern: str
    exclude_pattern: str
    rolled_logs_include_pattern: str
    rolled_logs_exclude_pattern: str
    log_aggregation_policy_class_name: str
    log_aggregation_policy_parameters: str
    def __init__(self, include_pattern: _Optional[str] = ..., exclude_pattern: _Optional[str] = ..., rolled_logs_include_pattern: _Optional[str] = ..., rolled_logs_exclude_pattern: _Optional[str] = ..., log_aggregation_policy_class_name: _Optional[str] = ..., log_aggregation_policy_parameters: _Optional[str] = ...) -> None: ...

class ApplicationACLMap(_message.Message):
    __slots__ = ("accessType", "acl")
    ACCESSTYPE_FIELD_NUMBER: _ClassVar[int]
    ACL_FIELD_NUMBER: _ClassVar[int]
    accessType: ApplicationAccessType
    acl: str
    def __init__(self, accessType: _Optional[_Union[ApplicationAccessType, str]] = ..., acl: _Optional[str] = ...) -> None: ...

class ContainerLaunchContext(_message.Message):
    __slots__ = ("localResources", "tokens", "service_data", "environment", "command", "application_ACLs", "container_retry_context", "tokens_conf", "yaq_left")
    LOCALRESOURCES_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    SERVICE_DATA_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    APPLICATION_ACLS_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_RETRY_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    TOKENS_CONF_FIELD_NUMBER: _ClassVar[int]
    YAQ_LEFT_FIELD_NUMBER: _ClassVar[int]
    localResources: _containers.RepeatedCompositeFieldContainer[StringLocalResourceMap]
    tokens: bytes
    service_data: _containers.RepeatedCompositeFieldContainer[StringBytesMap]
    environment: _containers.RepeatedCompositeFieldContainer[StringStringMap]
    command: _containers.RepeatedScalarFieldContainer[str]
    application_ACLs: _containers.RepeatedCompositeFieldContainer[ApplicationACLMap]
    container_retry_context: ContainerRetryContext
    tokens_conf: bytes
    yaq_left: JobLeft
    def __init__(self, localResources: _Optional[_Iterable[_Union[StringLocalResourceMap, _Mapping]]] = ..., tokens: _Optional[bytes] = ..., service_data: _Optional[_Iterable[_Union[StringBytesMap, _Mapping]]] = ..., environment: _Optional[_Iterable[_Union[StringStringMap, _Mapping]]] = ..., command: _Optional[_Iterable[str]] = ..., application_ACLs: _Optional[_Iterable[_Union[ApplicationACLMap, _Mapping]]] = ..., container_retry_context: _Optional[_Union[ContainerRetryContext, _Mapping]] = ..., tokens_conf: _Optional[bytes] = ..., yaq_left: _Optional[_Union[JobLeft, _Mapping]] = ...) -> None: ...

class StageLeft(_message.Message):
    __slots__ = ("priority", "tasks", "task_ms", "work_ms", "longest_ms", "after", "running", "name")
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    TASK_MS_FIELD_NUMBER: _ClassVar[int]
    WORK_MS_FIELD_NUMBER: _ClassVar[int]
    LONGEST_MS_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    priority: int
    tasks: int
    task_ms: int
    work_ms: int
    longest_ms: int
    after: _containers.RepeatedScalarFieldContainer[int]
    running: int
    name: str
    def __init__(self, priority: _Optional[int] = ..., tasks: _Optional[int] = ..., task_ms: _Optional[int] = ..., work_ms: _Optional[int] = ..., longest_ms: _Optional[int] = ..., after: _Optional[_Iterable[int]] = ..., running: _Optional[int] = ..., name: _Optional[str] = ...) -> None: ...

class JobLeft(_message.Message):
    __slots__ = ("stages", "without_task", "idle")
    STAGES_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_TASK_FIELD_NUMBER: _ClassVar[int]
    IDLE_FIELD_NUMBER: _ClassVar[int]
    stages: _containers.RepeatedCompositeFieldContainer[StageLeft]
    without_task: _containers.RepeatedCompositeFieldContainer[ContainerId]
    idle: int
    def __init__(self, stages: _Optional[_Iterable[_Union[StageLeft, _Mapping]]] = ..., without_task: _Optional[_Iterable[_Union[ContainerId, _Mapping]]] = ..., idle: _Optional[int] = ...) -> None: ...

class ContainerRetryContext(_message.Message):
    __slots__ = ("retry_policy", "error_codes", "max_retries", "retry_interval", "failures_validity_interval")
    RETRY_POLICY_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODES_FIELD_NUMBER: _ClassVar[int]
    MAX_RETRIES_FIELD_NUMBER: _ClassVar[int]
    RETRY_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    FAILURES_VALIDITY_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    retry_policy: ContainerRetryPolicy
    error_codes: _containers.RepeatedScalarFieldContainer[int]
    max_retries: int
    retry_interval: int
    failures_validity_interval: int
    def __init__(self, retry_policy: _Optional[_Union[ContainerRetryPolicy, str]] = ..., error_codes: _Optional[_Iterable[int]] = ..., max_retries: _Optional[int] = ..., retry_interval: _Optional[int] = ..., failures_validity_interval: _Optional[int] = ...) -> None: ...

class YarnClusterMetrics(_message.Message):
    __slots__ = ("num_node_managers", "num_decommissioned_nms", "num_active_nms", "num_lost_nms", "num_unhealthy_nms", "num_rebooted_nms", "num_decommissioning_nms", "num_shutdown_nms")
    NUM_NODE_MANAGERS_FIELD_NUMBER: _ClassVar[int]
    NUM_DECOMMISSIONED_NMS_FIELD_NUMBER: _ClassVar[int]
    NUM_ACTIVE_NMS_FIELD_NUMBER: _ClassVar[int]
    NUM_LOST_NMS_FIELD_NUMBER: _ClassVar[int]
    NUM_UNHEALTHY_NMS_FIELD_NUMBER: _ClassVar[int]
    NUM_REBOOTED_NMS_FIELD_NUMBER: _ClassVar[int]
    NUM_DECOMMISSIONING_NMS_FIELD_NUMBER: _ClassVar[int]
    NUM_SHUTDOWN_NMS_FIELD_NUMBER: _ClassVar[int]
    num_node_managers: int
    num_decommissioned_nms: int
    num_active_nms: int
    num_lost_nms: int
    num_unhealthy_nms: int
    num_rebooted_nms: int
    num_decommissioning_nms: int
    num_shutdown_nms: int
    def __init__(self, num_node_managers: _Optional[int] = ..., num_decommissioned_nms: _Optional[int] = ..., num_active_nms: _Optional[int] = ..., num_lost_nms: _Optional[int] = ..., num_unhealthy_nms: _Optional[int] = ..., num_rebooted_nms: _Optional[int] = ..., num_decommissioning_nms: _Optional[int] = ..., num_shutdown_nms: _Optional[int] = ...) -> None: ...

class QueueStatistics(_message.Message):
    __slots__ = ("numAppsSubmitted", "numAppsRunning", "numAppsPending", "numAppsCompleted", "numAppsKilled", "numAppsFailed", "numActiveUsers", "availableMemoryMB", "allocatedMemoryMB", "pendingMemoryMB", "reservedMemoryMB", "availableVCores", "allocatedVCores", "pendingVCores", "reservedVCores", "allocatedContainers", "pendingContainers", "reservedContainers")
    NUMAPPSSUBMITTED_FIELD_NUMBER: _ClassVar[int]
    NUMAPPSRUNNING_FIELD_NUMBER: _ClassVar[int]
    NUMAPPSPENDING_FIELD_NUMBER: _ClassVar[int]
    NUMAPPSCOMPLETED_FIELD_NUMBER: _ClassVar[int]
    NUMAPPSKILLED_FIELD_NUMBER: _ClassVar[int]
    NUMAPPSFAILED_FIELD_NUMBER: _ClassVar[int]
    NUMACTIVEUSERS_FIELD_NUMBER: _ClassVar[int]
    AVAILABLEMEMORYMB_FIELD_NUMBER: _ClassVar[int]
    ALLOCATEDMEMORYMB_FIELD_NUMBER: _ClassVar[int]
    PENDINGMEMORYMB_FIELD_NUMBER: _ClassVar[int]
    RESERVEDMEMORYMB_FIELD_NUMBER: _ClassVar[int]
    AVAILABLEVCORES_FIELD_NUMBER: _ClassVar[int]
    ALLOCATEDVCORES_FIELD_NUMBER: _ClassVar[int]
    PENDINGVCORES_FIELD_NUMBER: _ClassVar[int]
    RESERVEDVCORES_FIELD_NUMBER: _ClassVar[int]
    ALLOCATEDCONTAINERS_FIELD_NUMBER: _ClassVar[int]
    PENDINGCONTAINERS_FIELD_NUMBER: _ClassVar[int]
    RESERVEDCONTAINERS_FIELD_NUMBER: _ClassVar[int]
    numAppsSubmitted: int
    numAppsRunning: int
    numAppsPending: int
    numAppsCompleted: int
    numAppsKilled: int
    numAppsFailed: int
    numActiveUsers: int
    availableMemoryMB: int
    allocatedMemoryMB: int
    pendingMemoryMB: int
    reservedMemoryMB: int
    availableVCores: int
    allocatedVCores: int
    pendingVCores: int
    reservedVCores: int
    allocatedContainers: int
    pendingContainers: int
    reservedContainers: int
    def __init__(self, numAppsSubmitted: _Optional[int] = ..., numAppsRunning: _Optional[int] = ..., numAppsPending: _Optional[int] = ..., numAppsCompleted: _Optional[int] = ..., numAppsKilled: _Optional[int] = ..., numAppsFailed: _Optional[int] = ..., numActiveUsers: _Optional[int] = ..., availableMemoryMB: _Optional[int] = ..., allocatedMemoryMB: _Optional[int] = ..., pendingMemoryMB: _Optional[int] = ..., reservedMemoryMB: _Optional[int] = ..., availableVCores: _Optional[int] = ..., allocatedVCores: _Optional[int] = ..., pendingVCores: _Optional[int] = ..., reservedVCores: _Optional[int] = ..., allocatedContainers: _Optional[int] = ..., pendingContainers: _Optional[int] = ..., reservedContainers: _Optional[int] = ...) -> None: ...

class QueueInfo(_message.Message):
    __slots__ = ("queueName", "capacity", "maximumCapacity", "currentCapacity", "state", "childQueues", "applications", "accessibleNodeLabels", "defaultNodeLabelExpression", "queueStatistics", "preemptionDisabled", "queueConfigurationsMap", "intraQueuePreemptionDisabled", "weight", "queuePath", "maxParallelApps", "schedulerType", "minResourceVCore", "minResourceMemory", "maxResourceVCore", "maxResourceMemory", "reservedResourceVCore", "reservedResourceMemory", "steadyFairShareVCore", "steadyFairShareMemory", "subClusterId", "maxRunningApp")
    QUEUENAME_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    MAXIMUMCAPACITY_FIELD_NUMBER: _ClassVar[int]
    CURRENTCAPACITY_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    CHILDQUEUES_FIELD_NUMBER: _ClassVar[int]
    APPLICATIONS_FIELD_NUMBER: _ClassVar[int]
    ACCESSIBLENODELABELS_FIELD_NUMBER: _ClassVar[int]
    DEFAULTNODELABELEXPRESSION_FIELD_NUMBER: _ClassVar[int]
    QUEUESTATISTICS_FIELD_NUMBER: _ClassVar[int]
    PREEMPTIONDISABLED_FIELD_NUMBER: _ClassVar[int]
    QUEUECONFIGURATIONSMAP_FIELD_NUMBER: _ClassVar[int]
    INTRAQUEUEPREEMPTIONDISABLED_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    QUEUEPATH_FIELD_NUMBER: _ClassVar[int]
    MAXPARALLELAPPS_FIELD_NUMBER: _ClassVar[int]
    SCHEDULERTYPE_FIELD_NUMBER: _ClassVar[int]
    MINRESOURCEVCORE_FIELD_NUMBER: _ClassVar[int]
    MINRESOURCEMEMORY_FIELD_NUMBER: _ClassVar[int]
    MAXRESOURCEVCORE_FIELD_NUMBER: _ClassVar[int]
    MAXRESOURCEMEMORY_FIELD_NUMBER: _ClassVar[int]
    RESERVEDRESOURCEVCORE_FIELD_NUMBER: _ClassVar[int]
    RESERVEDRESOURCEMEMORY_FIELD_NUMBER: _ClassVar[int]
    STEADYFAIRSHAREVCORE_FIELD_NUMBER: _ClassVar[int]
    STEADYFAIRSHAREMEMORY_FIELD_NUMBER: _ClassVar[int]
    SUBCLUSTERID_FIELD_NUMBER: _ClassVar[int]
    MAXRUNNINGAPP_FIELD_NUMBER: _ClassVar[int]
    queueName: str
    capacity: float
    maximumCapacity: float
    currentCapacity: float
    state: QueueState
    childQueues: _containers.RepeatedCompositeFieldContainer[QueueInfo]
    applications: _containers.RepeatedCompositeFieldContainer[ApplicationReport]
    accessibleNodeLabels: _containers.RepeatedScalarFieldContainer[str]
    defaultNodeLabelExpression: str
    queueStatistics: QueueStatistics
    preemptionDisabled: bool
    queueConfigurationsMap: _containers.RepeatedCompositeFieldContainer[QueueConfigurationsMap]
    intraQueuePreemptionDisabled: bool
    weight: float
    queuePath: str
    maxParallelApps: int
    schedulerType: str
    minResourceVCore: int
    minResourceMemory: int
    maxResourceVCore: int
    maxResourceMemory: int
    reservedResourceVCore: int
    reservedResourceMemory: int
    steadyFairShareVCore: int
    steadyFairShareMemory: int
    subClusterId: str
    maxRunningApp: int
    def __init__(self, queueName: _Optional[str] = ..., capacity: _Optional[float] = ..., maximumCapacity: _Optional[float] = ..., currentCapacity: _Optional[float] = ..., state: _Optional[_Union[QueueState, str]] = ..., childQueues: _Optional[_Iterable[_Union[QueueInfo, _Mapping]]] = ..., applications: _Optional[_Iterable[_Union[ApplicationReport, _Mapping]]] = ..., accessibleNodeLabels: _Optional[_Iterable[str]] = ..., defaultNodeLabelExpression: _Optional[str] = ..., queueStatistics: _Optional[_Union[QueueStatistics, _Mapping]] = ..., preemptionDisabled: _Optional[bool] = ..., queueConfigurationsMap: _Optional[_Iterable[_Union[QueueConfigurationsMap, _Mapping]]] = ..., intraQueuePreemptionDisabled: _Optional[bool] = ..., weight: _Optional[float] = ..., queuePath: _Optional[str] = ..., maxParallelApps: _Optional[int] = ..., schedulerType: _Optional[str] = ..., minResourceVCore: _Optional[int] = ..., minResourceMemory: _Optional[int] = ..., maxResourceVCore: _Optional[int] = ..., maxResourceMemory: _Optional[int] = ..., reservedResourceVCore: _Optional[int] = ..., reservedResourceMemory: _Optional[int] = ..., steadyFairShareVCore: _Optional[int] = ..., steadyFairShareMemory: _Optional[int] = ..., subClusterId: _Optional[str] = ..., maxRunningApp: _Optional[int] = ...) -> None: ...

class QueueConfigurations(_message.Message):
    __slots__ = ("capacity", "absoluteCapacity", "maxCapacity", "absoluteMaxCapacity", "maxAMPercentage", "effectiveMinCapacity", "effectiveMaxCapacity", "configuredMinCapacity", "configuredMaxCapacity")
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    ABSOLUTECAPACITY_FIELD_NUMBER: _ClassVar[int]
    MAXCAPACITY_FIELD_NUMBER: _ClassVar[int]
    ABSOLUTEMAXCAPACITY_FIELD_NUMBER: _ClassVar[int]
    MAXAMPERCENTAGE_FIELD_NUMBER: _ClassVar[int]
    EFFECTIVEMINCAPACITY_FIELD_NUMBER: _ClassVar[int]
    EFFECTIVEMAXCAPACITY_FIELD_NUMBER: _ClassVar[int]
    CONFIGUREDMINCAPACITY_FIELD_NUMBER: _ClassVar[int]
    CONFIGUREDMAXCAPACITY_FIELD_NUMBER: _ClassVar[int]
    capacity: float
    absoluteCapacity: float
    maxCapacity: float
    absoluteMaxCapacity: float
    maxAMPercentage: float
    effectiveMinCapacity: Resource
    effectiveMaxCapacity: Resource
    configuredMinCapacity: Resource
    configuredMaxCapacity: Resource
    def __init__(self, capacity: _Optional[float] = ..., absoluteCapacity: _Optional[float] = ..., maxCapacity: _Optional[float] = ..., absoluteMaxCapacity: _Optional[float] = ..., maxAMPercentage: _Optional[float] = ..., effectiveMinCapacity: _Optional[_Union[Resource, _Mapping]] = ..., effectiveMaxCapacity: _Optional[_Union[Resource, _Mapping]] = ..., configuredMinCapacity: _Optional[_Union[Resource, _Mapping]] = ..., configuredMaxCapacity: _Optional[_Union[Resource, _Mapping]] = ...) -> None: ...

class QueueConfigurationsMap(_message.Message):
    __slots__ = ("partitionName", "queueConfigurations")
    PARTITIONNAME_FIELD_NUMBER: _ClassVar[int]
    QUEUECONFIGURATIONS_FIELD_NUMBER: _ClassVar[int]
    partitionName: str
    queueConfigurations: QueueConfigurations
    def __init__(self, partitionName: _Optional[str] = ..., queueConfigurations: _Optional[_Union[QueueConfigurations, _Mapping]] = ...) -> None: ...

class QueueUserACLInfo(_message.Message):
    __slots__ = ("queueName", "userAcls")
    QUEUENAME_FIELD_NUMBER: _ClassVar[int]
    USERACLS_FIELD_NUMBER: _ClassVar[int]
    queueName: str
    userAcls: _containers.RepeatedScalarFieldContainer[QueueACL]
    def __init__(self, queueName: _Optional[str] = ..., userAcls: _Optional[_Iterable[_Union[QueueACL, str]]] = ...) -> None: ...

class CollectorInfo(_message.Message):
    __slots__ = ("collector_addr", "collector_token")
    COLLECTOR_ADDR_FIELD_NUMBER: _ClassVar[int]
    COLLECTOR_TOKEN_FIELD_NUMBER: _ClassVar[int]
    collector_addr: str
    collector_token: Token
    def __init__(self, collector_addr: _Optional[str] = ..., collector_token: _Optional[_Union[Token, _Mapping]] = ...) -> None: ...

class PlacementConstraint(_message.Message):
    __slots__ = ("simpleConstraint", "compositeConstraint")
    SIMPLECONSTRAINT_FIELD_NUMBER: _ClassVar[int]
    COMPOSITECONSTRAINT_FIELD_NUMBER: _ClassVar[int]
    simpleConstraint: SimplePlacementConstraint
    compositeConstraint: CompositePlacementConstraint
    def __init__(self, simpleConstraint: _Optional[_Union[SimplePlacementConstraint, _Mapping]] = ..., compositeConstraint: _Optional[_Union[CompositePlacementConstraint, _Mapping]] = ...) -> None: ...

class SimplePlacementConstraint(_message.Message):
    __slots__ = ("scope", "targetExpressions", "minCardinality", "maxCardinality", "attributeOpCode")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    TARGETEXPRESSIONS_FIELD_NUMBER: _ClassVar[int]
    MINCARDINALITY_FIELD_NUMBER: _ClassVar[int]
    MAXCARDINALITY_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTEOPCODE_FIELD_NUMBER: _ClassVar[int]
    scope: str
    targetExpressions: _containers.RepeatedCompositeFieldContainer[PlacementConstraintTarget]
    minCardinality: int
    maxCardinality: int
    attributeOpCode: NodeAttributeOpCode
    def __init__(self, scope: _Optional[str] = ..., targetExpressions: _Optional[_Iterable[_Union[PlacementConstraintTarget, _Mapping]]] = ..., minCardinality: _Optional[int] = ..., maxCardinality: _Optional[int] = ..., attributeOpCode: _Optional[_Union[NodeAttributeOpCode, str]] = ...) -> None: ...

class PlacementConstraintTarget(_message.Message):
    __slots__ = ("targetType", "targetKey", "targetValues")
    TARGETTYPE_FIELD_NUMBER: _ClassVar[int]
    TARGETKEY_FIELD_NUMBER: _ClassVar[int]
    TARGETVALUES_FIELD_NUMBER: _ClassVar[int]
    targetType: TargetType
    targetKey: str
    targetValues: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, targetType: _Optional[_Union[TargetType, str]] = ..., targetKey: _Optional[str] = ..., targetValues: _Optional[_Iterable[str]] = ...) -> None: ...

class TimedPlacementConstraint(_message.Message):
    __slots__ = ("placementConstraint", "schedulingDelay", "delayUnit")
    PLACEMENTCONSTRAINT_FIELD_NUMBER: _ClassVar[int]
    SCHEDULINGDELAY_FIELD_NUMBER: _ClassVar[int]
    DELAYUNIT_FIELD_NUMBER: _ClassVar[int]
    placementConstraint: PlacementConstraint
    schedulingDelay: int
    delayUnit: DelayUnit
    def __init__(self, placementConstraint: _Optional[_Union[PlacementConstraint, _Mapping]] = ..., schedulingDelay: _Optional[int] = ..., delayUnit: _Optional[_Union[DelayUnit, str]] = ...) -> None: ...

class CompositePlacementConstraint(_message.Message):
    __slots__ = ("compositeType", "childConstraints", "timedChildConstraints")
    COMPOSITETYPE_FIELD_NUMBER: _ClassVar[int]
    CHILDCONSTRAINTS_FIELD_NUMBER: _ClassVar[int]
    TIMEDCHILDCONSTRAINTS_FIELD_NUMBER: _ClassVar[int]
    compositeType: CompositeType
    childConstraints: _containers.RepeatedCompositeFieldContainer[PlacementConstraint]
    timedChildConstraints: _containers.RepeatedCompositeFieldContainer[TimedPlacementConstraint]
    def __init__(self, compositeType: _Optional[_Union[CompositeType, str]] = ..., childConstraints: _Optional[_Iterable[_Union[PlacementConstraint, _Mapping]]] = ..., timedChildConstraints: _Optional[_Iterable[_Union[TimedPlacementConstraint, _Mapping]]] = ...) -> None: ...

class PlacementConstraintMapEntry(_message.Message):
    __slots__ = ("allocation_tags", "placement_constraint")
    ALLOCATION_TAGS_FIELD_NUMBER: _ClassVar[int]
    PLACEMENT_CONSTRAINT_FIELD_NUMBER: _ClassVar[int]
    allocation_tags: _containers.RepeatedScalarFieldContainer[str]
    placement_constraint: PlacementConstraint
    def __init__(self, allocation_tags: _Optional[_Iterable[str]] = ..., placement_constraint: _Optional[_Union[PlacementConstraint, _Mapping]] = ...) -> None: ...
