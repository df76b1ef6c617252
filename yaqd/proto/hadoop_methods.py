"""Every method of the protocols that a stock ResourceManager or NodeManager serves, by protocol name. They stand in the
order of Hadoop 3.4.2's .proto files (its generated `BlockingInterface`s). What our own tables lack shows against this.
"""

from typing import Final

HADOOP_VERSION: Final = "3.4.2"

HADOOP_METHODS: Final[dict[str, tuple[str, ...]]] = {
    "org.apache.hadoop.yarn.api.ApplicationClientProtocolPB": (
        *("getNewApplication", "getApplicationReport", "submitApplication", "failApplicationAttempt"),
        *("forceKillApplication", "getClusterMetrics", "getApplications", "getClusterNodes", "getQueueInfo"),
        *("getQueueUserAcls", "getDelegationToken", "renewDelegationToken", "cancelDelegationToken"),
        *("moveApplicationAcrossQueues", "getApplicationAttemptReport", "getApplicationAttempts"),
        *("getContainerReport", "getContainers", "getNewReservation", "submitReservation", "updateReservation"),
        *("deleteReservation", "listReservations", "getNodeToLabels", "getLabelsToNodes", "getClusterNodeLabels"),
        *("updateApplicationPriority", "signalToContainer", "updateApplicationTimeouts", "getResourceProfiles"),
        *("getResourceProfile", "getResourceTypeInfo", "getClusterNodeAttributes", "getAttributesToNodes"),
        "getNodesToAttributes",
    ),
    "org.apache.hadoop.yarn.api.ApplicationMasterProtocolPB": (
        *("registerApplicationMaster", "finishApplicationMaster", "allocate"),
    ),
    "org.apache.hadoop.yarn.server.api.DistributedSchedulingAMProtocolPB": (
        *("registerApplicationMasterForDistributedScheduling", "allocateForDistributedScheduling"),
        "finishApplicationMaster",
    ),
    "org.apache.hadoop.yarn.server.api.ResourceTrackerPB": (
        *("registerNodeManager", "nodeHeartbeat", "unRegisterNodeManager"),
    ),
    "org.apache.hadoop.yarn.server.api.ResourceManagerAdministrationProtocolPB": (
        *("refreshQueues", "refreshNodes", "refreshSuperUserGroupsConfiguration", "refreshUserToGroupsMappings"),
        *("refreshAdminAcls", "refreshServiceAcls", "getGroupsForUser", "updateNodeResource"),
        *("refreshNodesResources", "addToClusterNodeLabels", "removeFromClusterNodeLabels", "replaceLabelsOnNodes"),
        *("checkForDecommissioningNodes", "refreshClusterMaxPriority", "mapAttributesToNodes"),
        *("deregisterSubCluster", "saveFederationQueuePolicy", "batchSaveFederationQueuePolicies"),
        *("listFederationQueuePolicies", "deleteFederationApplication", "getFederationSubClusters"),
        "deleteFederationPoliciesByQueues",
    ),
    "org.apache.hadoop.ha.HAServiceProtocol": (
        *("monitorHealth", "transitionToActive", "transitionToStandby", "transitionToObserver", "getServiceStatus"),
    ),
    "org.apache.hadoop.yarn.api.ContainerManagementProtocolPB": (
        *("startContainers", "stopContainers", "getContainerStatuses", "increaseContainersResource"),
        *("updateContainer", "signalToContainer", "localize", "reInitializeContainer", "restartContainer"),
        *("rollbackLastReInitialization", "commitLastReInitialization", "getLocalizationStatuses"),
    ),
    "org.apache.hadoop.yarn.server.nodemanager.api.LocalizationProtocolPB": ("heartbeat",),
    "org.apache.hadoop.yarn.server.api.CollectorNodemanagerProtocolPB": (
        *("reportNewCollectorInfo", "getTimelineCollectorContext"),
    ),
}
