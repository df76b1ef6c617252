"""The protocols as data: who serves what, under which name, with which messages.

A `Method` is all that a client needs to call and a server needs to dispatch; its type parameters carry the
messages to the type checker. Method names are the wire's spelling.
"""

from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from google.protobuf.message import Message

from yaqd.proto import hdfs_pb2 as hdfs
from yaqd.proto import yarn_admin_pb2 as admin
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto import yarn_service_pb2 as service

Req = TypeVar("Req", bound=Message)
Resp = TypeVar("Resp", bound=Message)


@dataclass(frozen=True, slots=True)
class Method(Generic[Req, Resp]):
    """One remote procedure."""

    #: protocol name as it travels in RequestHeader.declaringClassProtocolName
    protocol: str
    #: method name as it travels in RequestHeader.methodName
    name: str
    request: type[Req]
    response: type[Resp]
    version: int = 1


class ApplicationClientProtocol:
    """Client to ResourceManager, port 8032."""

    NAME: Final = "org.apache.hadoop.yarn.api.ApplicationClientProtocolPB"
    getNewApplication: Final = Method(
        NAME, "getNewApplication", service.GetNewApplicationRequest, service.GetNewApplicationResponse
    )
    getApplicationReport: Final = Method(
        NAME, "getApplicationReport", service.GetApplicationReportRequest, service.GetApplicationReportResponse
    )
    submitApplication: Final = Method(
        NAME, "submitApplication", service.SubmitApplicationRequest, service.SubmitApplicationResponse
    )
    failApplicationAttempt: Final = Method(
        NAME, "failApplicationAttempt", service.FailApplicationAttemptRequest, service.FailApplicationAttemptResponse
    )
    forceKillApplication: Final = Method(
        NAME, "forceKillApplication", service.KillApplicationRequest, service.KillApplicationResponse
    )
    getClusterMetrics: Final = Method(
        NAME, "getClusterMetrics", service.GetClusterMetricsRequest, service.GetClusterMetricsResponse
    )
    getApplications: Final = Method(
        NAME, "getApplications", service.GetApplicationsRequest, service.GetApplicationsResponse
    )
    getClusterNodes: Final = Method(
        NAME, "getClusterNodes", service.GetClusterNodesRequest, service.GetClusterNodesResponse
    )
    getQueueInfo: Final = Method(NAME, "getQueueInfo", service.GetQueueInfoRequest, service.GetQueueInfoResponse)
    getQueueUserAcls: Final = Method(
        NAME, "getQueueUserAcls", service.GetQueueUserAclsInfoRequest, service.GetQueueUserAclsInfoResponse
    )
    getDelegationToken: Final = Method(
        NAME, "getDelegationToken", service.GetDelegationTokenRequest, service.GetDelegationTokenResponse
    )
    renewDelegationToken: Final = Method(
        NAME, "renewDelegationToken", service.RenewDelegationTokenRequest, service.RenewDelegationTokenResponse
    )
    cancelDelegationToken: Final = Method(
        NAME, "cancelDelegationToken", service.CancelDelegationTokenRequest, service.CancelDelegationTokenResponse
    )
    moveApplicationAcrossQueues: Final = Method(
        NAME,
        "moveApplicationAcrossQueues",
        service.MoveApplicationAcrossQueuesRequest,
        service.MoveApplicationAcrossQueuesResponse,
    )
    getApplicationAttemptReport: Final = Method(
        NAME,
        "getApplicationAttemptReport",
        service.GetApplicationAttemptReportRequest,
        service.GetApplicationAttemptReportResponse,
    )
    getApplicationAttempts: Final = Method(
        NAME, "getApplicationAttempts", service.GetApplicationAttemptsRequest, service.GetApplicationAttemptsResponse
    )
    getContainerReport: Final = Method(
        NAME, "getContainerReport", service.GetContainerReportRequest, service.GetContainerReportResponse
    )
    getContainers: Final = Method(NAME, "getContainers", service.GetContainersRequest, service.GetContainersResponse)
    getNewReservation: Final = Method(
        NAME, "getNewReservation", service.GetNewReservationRequest, service.GetNewReservationResponse
    )
    submitReservation: Final = Method(
        NAME, "submitReservation", service.ReservationSubmissionRequest, service.ReservationSubmissionResponse
    )
    updateReservation: Final = Method(
        NAME, "updateReservation", service.ReservationUpdateRequest, service.ReservationUpdateResponse
    )
    deleteReservation: Final = Method(
        NAME, "deleteReservation", service.ReservationDeleteRequest, service.ReservationDeleteResponse
    )
    listReservations: Final = Method(
        NAME, "listReservations", service.ReservationListRequest, service.ReservationListResponse
    )
    getNodeToLabels: Final = Method(
        NAME, "getNodeToLabels", service.GetNodesToLabelsRequest, service.GetNodesToLabelsResponse
    )
    getLabelsToNodes: Final = Method(
        NAME, "getLabelsToNodes", service.GetLabelsToNodesRequest, service.GetLabelsToNodesResponse
    )
    getClusterNodeLabels: Final = Method(
        NAME, "getClusterNodeLabels", service.GetClusterNodeLabelsRequest, service.GetClusterNodeLabelsResponse
    )
    updateApplicationPriority: Final = Method(
        NAME,
        "updateApplicationPriority",
        service.UpdateApplicationPriorityRequest,
        service.UpdateApplicationPriorityResponse,
    )
    signalToContainer: Final = Method(
        NAME, "signalToContainer", service.SignalContainerRequest, service.SignalContainerResponse
    )
    updateApplicationTimeouts: Final = Method(
        NAME,
        "updateApplicationTimeouts",
        service.UpdateApplicationTimeoutsRequest,
        service.UpdateApplicationTimeoutsResponse,
    )
    getResourceProfiles: Final = Method(
        NAME, "getResourceProfiles", service.GetAllResourceProfilesRequest, service.GetAllResourceProfilesResponse
    )
    getResourceProfile: Final = Method(
        NAME, "getResourceProfile", service.GetResourceProfileRequest, service.GetResourceProfileResponse
    )
    getResourceTypeInfo: Final = Method(
        NAME, "getResourceTypeInfo", service.GetAllResourceTypeInfoRequest, service.GetAllResourceTypeInfoResponse
    )
    getClusterNodeAttributes: Final = Method(
        NAME,
        "getClusterNodeAttributes",
        service.GetClusterNodeAttributesRequest,
        service.GetClusterNodeAttributesResponse,
    )
    getAttributesToNodes: Final = Method(
        NAME, "getAttributesToNodes", service.GetAttributesToNodesRequest, service.GetAttributesToNodesResponse
    )
    getNodesToAttributes: Final = Method(
        NAME, "getNodesToAttributes", service.GetNodesToAttributesRequest, service.GetNodesToAttributesResponse
    )


class ApplicationMasterProtocol:
    """Application master to ResourceManager, port 8030, authenticated by AMRMToken."""

    NAME: Final = "org.apache.hadoop.yarn.api.ApplicationMasterProtocolPB"
    registerApplicationMaster: Final = Method(
        NAME,
        "registerApplicationMaster",
        service.RegisterApplicationMasterRequest,
        service.RegisterApplicationMasterResponse,
    )
    finishApplicationMaster: Final = Method(
        NAME, "finishApplicationMaster", service.FinishApplicationMasterRequest, service.FinishApplicationMasterResponse
    )
    allocate: Final = Method(NAME, "allocate", service.AllocateRequest, service.AllocateResponse)


class DistributedSchedulingAMProtocol:
    """NodeManager's scheduler proxy to ResourceManager, port 8030, authenticated by AMRMToken."""

    NAME: Final = "org.apache.hadoop.yarn.server.api.DistributedSchedulingAMProtocolPB"
    registerApplicationMasterForDistributedScheduling: Final = Method(
        NAME,
        "registerApplicationMasterForDistributedScheduling",
        service.RegisterApplicationMasterRequest,
        service.RegisterDistributedSchedulingAMResponse,
    )
    allocateForDistributedScheduling: Final = Method(
        NAME,
        "allocateForDistributedScheduling",
        service.DistributedSchedulingAllocateRequest,
        service.DistributedSchedulingAllocateResponse,
    )
    finishApplicationMaster: Final = Method(
        NAME,
        "finishApplicationMaster",
        service.FinishApplicationMasterRequest,
        service.FinishApplicationMasterResponse,
    )


class ContainerManagementProtocol:
    """Application masters and the ResourceManager to NodeManager, authenticated by NMToken."""

    NAME: Final = "org.apache.hadoop.yarn.api.ContainerManagementProtocolPB"
    startContainers: Final = Method(
        NAME, "startContainers", service.StartContainersRequest, service.StartContainersResponse
    )
    stopContainers: Final = Method(
        NAME, "stopContainers", service.StopContainersRequest, service.StopContainersResponse
    )
    getContainerStatuses: Final = Method(
        NAME, "getContainerStatuses", service.GetContainerStatusesRequest, service.GetContainerStatusesResponse
    )
    increaseContainersResource: Final = Method(
        NAME,
        "increaseContainersResource",
        service.IncreaseContainersResourceRequest,
        service.IncreaseContainersResourceResponse,
    )
    updateContainer: Final = Method(
        NAME, "updateContainer", service.ContainerUpdateRequest, service.ContainerUpdateResponse
    )
    signalToContainer: Final = Method(
        NAME, "signalToContainer", service.SignalContainerRequest, service.SignalContainerResponse
    )
    localize: Final = Method(
        NAME, "localize", service.ResourceLocalizationRequest, service.ResourceLocalizationResponse
    )
    reInitializeContainer: Final = Method(
        NAME, "reInitializeContainer", service.ReInitializeContainerRequest, service.ReInitializeContainerResponse
    )
    getLocalizationStatuses: Final = Method(
        NAME, "getLocalizationStatuses", service.GetLocalizationStatusesRequest, service.GetLocalizationStatusesResponse
    )
    restartContainer: Final = Method(NAME, "restartContainer", common.ContainerId, service.RestartContainerResponse)
    rollbackLastReInitialization: Final = Method(
        NAME, "rollbackLastReInitialization", common.ContainerId, service.RollbackResponse
    )
    commitLastReInitialization: Final = Method(
        NAME, "commitLastReInitialization", common.ContainerId, service.CommitResponse
    )


class ResourceTracker:
    """NodeManager to ResourceManager, port 8031."""

    NAME: Final = "org.apache.hadoop.yarn.server.api.ResourceTrackerPB"
    registerNodeManager: Final = Method(
        NAME, "registerNodeManager", server.RegisterNodeManagerRequest, server.RegisterNodeManagerResponse
    )
    nodeHeartbeat: Final = Method(NAME, "nodeHeartbeat", server.NodeHeartbeatRequest, server.NodeHeartbeatResponse)
    unRegisterNodeManager: Final = Method(
        NAME, "unRegisterNodeManager", server.UnRegisterNodeManagerRequest, server.UnRegisterNodeManagerResponse
    )


class ResourceManagerAdministrationProtocol:
    """Administrator to ResourceManager, port 8033."""

    NAME: Final = "org.apache.hadoop.yarn.server.api.ResourceManagerAdministrationProtocolPB"
    refreshQueues: Final = Method(NAME, "refreshQueues", admin.RefreshQueuesRequest, admin.RefreshQueuesResponse)
    refreshNodes: Final = Method(NAME, "refreshNodes", admin.RefreshNodesRequest, admin.RefreshNodesResponse)
    refreshSuperUserGroupsConfiguration: Final = Method(
        NAME,
        "refreshSuperUserGroupsConfiguration",
        admin.RefreshSuperUserGroupsConfigurationRequest,
        admin.RefreshSuperUserGroupsConfigurationResponse,
    )
    refreshUserToGroupsMappings: Final = Method(
        NAME,
        "refreshUserToGroupsMappings",
        admin.RefreshUserToGroupsMappingsRequest,
        admin.RefreshUserToGroupsMappingsResponse,
    )
    refreshAdminAcls: Final = Method(
        NAME, "refreshAdminAcls", admin.RefreshAdminAclsRequest, admin.RefreshAdminAclsResponse
    )
    refreshServiceAcls: Final = Method(
        NAME, "refreshServiceAcls", admin.RefreshServiceAclsRequest, admin.RefreshServiceAclsResponse
    )
    getGroupsForUser: Final = Method(
        NAME, "getGroupsForUser", admin.GetGroupsForUserRequest, admin.GetGroupsForUserResponse
    )
    updateNodeResource: Final = Method(
        NAME, "updateNodeResource", admin.UpdateNodeResourceRequest, admin.UpdateNodeResourceResponse
    )
    refreshNodesResources: Final = Method(
        NAME, "refreshNodesResources", admin.RefreshNodesResourcesRequest, admin.RefreshNodesResourcesResponse
    )
    addToClusterNodeLabels: Final = Method(
        NAME, "addToClusterNodeLabels", admin.AddToClusterNodeLabelsRequest, admin.AddToClusterNodeLabelsResponse
    )
    removeFromClusterNodeLabels: Final = Method(
        NAME,
        "removeFromClusterNodeLabels",
        admin.RemoveFromClusterNodeLabelsRequest,
        admin.RemoveFromClusterNodeLabelsResponse,
    )
    replaceLabelsOnNodes: Final = Method(
        NAME, "replaceLabelsOnNodes", admin.ReplaceLabelsOnNodeRequest, admin.ReplaceLabelsOnNodeResponse
    )
    checkForDecommissioningNodes: Final = Method(
        NAME,
        "checkForDecommissioningNodes",
        admin.CheckForDecommissioningNodesRequest,
        admin.CheckForDecommissioningNodesResponse,
    )
    deregisterSubCluster: Final = Method(
        NAME, "deregisterSubCluster", admin.FederationRequest, admin.FederationResponse
    )
    saveFederationQueuePolicy: Final = Method(
        NAME, "saveFederationQueuePolicy", admin.FederationRequest, admin.FederationResponse
    )
    batchSaveFederationQueuePolicies: Final = Method(
        NAME, "batchSaveFederationQueuePolicies", admin.FederationRequest, admin.FederationResponse
    )
    listFederationQueuePolicies: Final = Method(
        NAME, "listFederationQueuePolicies", admin.FederationRequest, admin.FederationResponse
    )
    deleteFederationApplication: Final = Method(
        NAME, "deleteFederationApplication", admin.FederationRequest, admin.FederationResponse
    )
    getFederationSubClusters: Final = Method(
        NAME, "getFederationSubClusters", admin.FederationRequest, admin.FederationResponse
    )
    deleteFederationPoliciesByQueues: Final = Method(
        NAME, "deleteFederationPoliciesByQueues", admin.FederationRequest, admin.FederationResponse
    )
    mapAttributesToNodes: Final = Method(
        NAME, "mapAttributesToNodes", admin.NodesToAttributesMappingRequest, admin.MapAttributesToNodesResponse
    )
    refreshClusterMaxPriority: Final = Method(
        NAME,
        "refreshClusterMaxPriority",
        admin.RefreshClusterMaxPriorityRequest,
        admin.RefreshClusterMaxPriorityResponse,
    )


class NamenodeProtocol:
    """Client to NameNode: what the HDFS library does not give."""

    NAME: Final = "org.apache.hadoop.hdfs.protocol.ClientProtocol"
    getBlockLocations: Final = Method(
        NAME, "getBlockLocations", hdfs.GetBlockLocationsRequest, hdfs.GetBlockLocationsResponse
    )
    checkAccess: Final = Method(NAME, "checkAccess", hdfs.CheckAccessRequest, hdfs.CheckAccessResponse)
    append: Final = Method(NAME, "append", hdfs.AppendRequest, hdfs.AppendResponse)
    abandonBlock: Final = Method(NAME, "abandonBlock", hdfs.AbandonBlockRequest, hdfs.AbandonBlockResponse)
    complete: Final = Method(NAME, "complete", hdfs.CompleteRequest, hdfs.CompleteResponse)
    recoverLease: Final = Method(NAME, "recoverLease", hdfs.RecoverLeaseRequest, hdfs.RecoverLeaseResponse)
