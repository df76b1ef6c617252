from yaqd.proto import yarn_common_pb2 as _yarn_common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DecommissionType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NORMAL: _ClassVar[DecommissionType]
    GRACEFUL: _ClassVar[DecommissionType]
    FORCEFUL: _ClassVar[DecommissionType]

class HAServiceState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HA_INITIALIZING: _ClassVar[HAServiceState]
    HA_ACTIVE: _ClassVar[HAServiceState]
    HA_STANDBY: _ClassVar[HAServiceState]
    HA_OBSERVER: _ClassVar[HAServiceState]
NORMAL: DecommissionType
GRACEFUL: DecommissionType
FORCEFUL: DecommissionType
HA_INITIALIZING: HAServiceState
HA_ACTIVE: HAServiceState
HA_STANDBY: HAServiceState
HA_OBSERVER: HAServiceState

class RefreshQueuesRequest(_message.Message):
    __slots__ = ("sub_cluster_id",)
    SUB_CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    sub_cluster_id: str
    def __init__(self, sub_cluster_id: _Optional[str] = ...) -> None: ...

class RefreshNodesRequest(_message.Message):
    __slots__ = ("decommissionType", "decommissionTimeout", "sub_cluster_id", "yaq_drain", "yaq_undrain")
    DECOMMISSIONTYPE_FIELD_NUMBER: _ClassVar[int]
    DECOMMISSIONTIMEOUT_FIELD_NUMBER: _ClassVar[int]
    SUB_CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    YAQ_DRAIN_FIELD_NUMBER: _ClassVar[int]
    YAQ_UNDRAIN_FIELD_NUMBER: _ClassVar[int]
    decommissionType: DecommissionType
    decommissionTimeout: int
    sub_cluster_id: str
    yaq_drain: _containers.RepeatedScalarFieldContainer[str]
    yaq_undrain: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, decommissionType: _Optional[_Union[DecommissionType, str]] = ..., decommissionTimeout: _Optional[int] = ..., sub_cluster_id: _Optional[str] = ..., yaq_drain: _Optional[_Iterable[str]] = ..., yaq_undrain: _Optional[_Iterable[str]] = ...) -> None: ...

class GetGroupsForUserRequest(_message.Message):
    __slots__ = ("user",)
    USER_FIELD_NUMBER: _ClassVar[int]
    user: str
    def __init__(self, user: _Optional[str] = ...) -> None: ...

class GetGroupsForUserResponse(_message.Message):
    __slots__ = ("groups",)
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    groups: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, groups: _Optional[_Iterable[str]] = ...) -> None: ...

class UpdateNodeResourceRequest(_message.Message):
    __slots__ = ("node_resource_map", "sub_cluster_id")
    NODE_RESOURCE_MAP_FIELD_NUMBER: _ClassVar[int]
    SUB_CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    node_resource_map: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.NodeResourceMap]
    sub_cluster_id: str
    def __init__(self, node_resource_map: _Optional[_Iterable[_Union[_yarn_common_pb2.NodeResourceMap, _Mapping]]] = ..., sub_cluster_id: _Optional[str] = ...) -> None: ...

class AddToClusterNodeLabelsRequest(_message.Message):
    __slots__ = ("deprecatedNodeLabels", "nodeLabels", "sub_cluster_id")
    DEPRECATEDNODELABELS_FIELD_NUMBER: _ClassVar[int]
    NODELABELS_FIELD_NUMBER: _ClassVar[int]
    SUB_CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    deprecatedNodeLabels: _containers.RepeatedScalarFieldContainer[str]
    nodeLabels: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.NodeLabel]
    sub_cluster_id: str
    def __init__(self, deprecatedNodeLabels: _Optional[_Iterable[str]] = ..., nodeLabels: _Optional[_Iterable[_Union[_yarn_common_pb2.NodeLabel, _Mapping]]] = ..., sub_cluster_id: _Optional[str] = ...) -> None: ...

class RemoveFromClusterNodeLabelsRequest(_message.Message):
    __slots__ = ("nodeLabels", "sub_cluster_id")
    NODELABELS_FIELD_NUMBER: _ClassVar[int]
    SUB_CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    nodeLabels: _containers.RepeatedScalarFieldContainer[str]
    sub_cluster_id: str
    def __init__(self, nodeLabels: _Optional[_Iterable[str]] = ..., sub_cluster_id: _Optional[str] = ...) -> None: ...

class ReplaceLabelsOnNodeRequest(_message.Message):
    __slots__ = ("nodeToLabels", "failOnUnknownNodes", "sub_cluster_id")
    NODETOLABELS_FIELD_NUMBER: _ClassVar[int]
    FAILONUNKNOWNNODES_FIELD_NUMBER: _ClassVar[int]
    SUB_CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    nodeToLabels: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.NodeIdToLabels]
    failOnUnknownNodes: bool
    sub_cluster_id: str
    def __init__(self, nodeToLabels: _Optional[_Iterable[_Union[_yarn_common_pb2.NodeIdToLabels, _Mapping]]] = ..., failOnUnknownNodes: _Optional[bool] = ..., sub_cluster_id: _Optional[str] = ...) -> None: ...

class CheckForDecommissioningNodesRequest(_message.Message):
    __slots__ = ("sub_cluster_id",)
    SUB_CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    sub_cluster_id: str
    def __init__(self, sub_cluster_id: _Optional[str] = ...) -> None: ...

class CheckForDecommissioningNodesResponse(_message.Message):
    __slots__ = ("decommissioningNodes",)
    DECOMMISSIONINGNODES_FIELD_NUMBER: _ClassVar[int]
    decommissioningNodes: _containers.RepeatedCompositeFieldContainer[_yarn_common_pb2.NodeId]
    def __init__(self, decommissioningNodes: _Optional[_Iterable[_Union[_yarn_common_pb2.NodeId, _Mapping]]] = ...) -> None: ...

class RefreshClusterMaxPriorityRequest(_message.Message):
    __slots__ = ("sub_cluster_id",)
    SUB_CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    sub_cluster_id: str
    def __init__(self, sub_cluster_id: _Optional[str] = ...) -> None: ...

class GetServiceStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetServiceStatusResponse(_message.Message):
    __slots__ = ("state", "readyToBecomeActive", "notReadyReason")
    STATE_FIELD_NUMBER: _ClassVar[int]
    READYTOBECOMEACTIVE_FIELD_NUMBER: _ClassVar[int]
    NOTREADYREASON_FIELD_NUMBER: _ClassVar[int]
    state: HAServiceState
    readyToBecomeActive: bool
    notReadyReason: str
    def __init__(self, state: _Optional[_Union[HAServiceState, str]] = ..., readyToBecomeActive: _Optional[bool] = ..., notReadyReason: _Optional[str] = ...) -> None: ...

class RefreshQueuesResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RefreshNodesResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RefreshSuperUserGroupsConfigurationResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RefreshUserToGroupsMappingsResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RefreshAdminAclsResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RefreshServiceAclsResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class UpdateNodeResourceResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RefreshNodesResourcesResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AddToClusterNodeLabelsResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RemoveFromClusterNodeLabelsResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReplaceLabelsOnNodeResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RefreshClusterMaxPriorityResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class MapAttributesToNodesResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RefreshSuperUserGroupsConfigurationRequest(_message.Message):
    __slots__ = ("sub_cluster_id",)
    SUB_CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    sub_cluster_id: str
    def __init__(self, sub_cluster_id: _Optional[str] = ...) -> None: ...

class RefreshUserToGroupsMappingsRequest(_message.Message):
    __slots__ = ("sub_cluster_id",)
    SUB_CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    sub_cluster_id: str
    def __init__(self, sub_cluster_id: _Optional[str] = ...) -> None: ...

class RefreshAdminAclsRequest(_message.Message):
    __slots__ = ("sub_cluster_id",)
    SUB_CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    sub_cluster_id: str
    def __init__(self, sub_cluster_id: _Optional[str] = ...) -> None: ...

class RefreshServiceAclsRequest(_message.Message):
    __slots__ = ("sub_cluster_id",)
    SUB_CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    sub_cluster_id: str
    def __init__(self, sub_cluster_id: _Optional[str] = ...) -> None: ...

class RefreshNodesResourcesRequest(_message.Message):
    __slots__ = ("sub_cluster_id",)
    SUB_CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    sub_cluster_id: str
    def __init__(self, sub_cluster_id: _Optional[str] = ...) -> None: ...

class FederationRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class FederationResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class NodesToAttributesMappingRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
