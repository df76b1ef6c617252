"""The cluster in numbers as Hadoop's REST shows it (ClusterMetricsInfo)."""

from collections import Counter
from typing import Any

from rm.cluster import Cluster
from rm.services.queue_statistics import queue_statistics
from rm.web.resources import resource_json
from yaqd.model import NodeState, Resource


def metrics_json(cluster: Cluster) -> dict[str, Any]:
    """Return the cluster's metrics. Ended applications count as far as they are still remembered."""
    facts = cluster.scheduler.facts
    queues = queue_statistics(facts.root, cluster)
    used, total = facts.root.used, facts.total
    free, reserved = total - used, Resource(queues.reservedMemoryMB, queues.reservedVCores)
    return {
        "appsSubmitted": queues.numAppsSubmitted,
        "appsCompleted": queues.numAppsCompleted,
        "appsPending": queues.numAppsPending,
        "appsRunning": queues.numAppsRunning,
        "appsFailed": queues.numAppsFailed,
        "appsKilled": queues.numAppsKilled,
        "reservedMB": queues.reservedMemoryMB,
        "availableMB": free.memory_mb,
        "allocatedMB": used.memory_mb,
        "pendingMB": queues.pendingMemoryMB,
        "reservedVirtualCores": queues.reservedVCores,
        "availableVirtualCores": free.vcores,
        "allocatedVirtualCores": used.vcores,
        "pendingVirtualCores": queues.pendingVCores,
        "containersAllocated": facts.root.containers,
        "containersReserved": queues.reservedContainers,
        "containersPending": queues.pendingContainers,
        "totalMB": total.memory_mb,
        "totalVirtualCores": total.vcores,
        **_utilization(cluster, total.memory_mb, total.vcores),
        **_nodes(cluster),
        "totalUsedResourcesAcrossPartition": resource_json(used, cluster.resource_types),
        "totalClusterResourcesAcrossPartition": resource_json(total, cluster.resource_types),
        "totalReservedResourcesAcrossPartition": resource_json(reserved, cluster.resource_types),
        "totalAllocatedContainersAcrossPartition": facts.root.containers,
        "crossPartitionMetricsAvailable": True,
    }


def _utilization(cluster: Cluster, total_mb: int, total_vcores: int) -> dict[str, int]:
    """What the nodes' machines use, whoever uses it."""
    told = [node.status.node_utilization for node in cluster.nodes.values() if node.state is NodeState.RUNNING]
    used_mb, used_vcores = sum(u.pmem for u in told), int(sum(u.cpu for u in told))
    return {
        "utilizedMB": used_mb,
        "utilizedVirtualCores": used_vcores,
        "utilizedMBPercent": used_mb * 100 // total_mb if total_mb > 0 else 0,
        "utilizedVirtualCoresPercent": used_vcores * 100 // total_vcores if total_vcores > 0 else 0,
    }


def _nodes(cluster: Cluster) -> dict[str, int]:
    states = Counter(node.state for node in cluster.nodes.values())
    return {
        "totalNodes": states.total(),
        "activeNodes": states[NodeState.RUNNING],
        "lostNodes": states[NodeState.LOST],
        "unhealthyNodes": states[NodeState.UNHEALTHY],
        "decommissioningNodes": states[NodeState.DECOMMISSIONING],
        "decommissionedNodes": states[NodeState.DECOMMISSIONED],
        "rebootedNodes": states[NodeState.REBOOTED],
        "shutdownNodes": states[NodeState.SHUTDOWN],
    }
