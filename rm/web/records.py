"""The records of the ResourceManager as Hadoop's REST shows them (AppInfo, AppAttemptInfo, ContainerInfo, NodeInfo)."""

from collections.abc import Iterable
from typing import Any, Final

from rm.applications.records import Application, Attempt, RmContainer
from rm.cluster import Cluster
from rm.nodes.node import RmNode
from rm.services.messages import container_report_pb
from rm.services.reports import Reports
from rm.web.resources import resource_json, usages_json
from yaqd.config.resource_types import ResourceType
from yaqd.model import ContainerState, Resource, YarnApplicationState
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common

#: states in which AppInfo gives no tracking address
_UNASSIGNED: Final = (
    YarnApplicationState.NEW,
    YarnApplicationState.NEW_SAVING,
    YarnApplicationState.SUBMITTED,
    YarnApplicationState.ACCEPTED,
)


def application_json(app: Application, reports: Reports, cluster: Cluster, *, may_view: bool) -> dict[str, Any]:
    """Write an application; without `may_view` only what a list of applications shows to everybody."""
    report = reports.application(app)
    public: dict[str, Any] = {
        "id": str(app.id),
        "user": app.user,
        "name": app.name,
        "queue": report.queue,
        "state": app.state.name,
        "finalStatus": final_status(app),
        "progress": report.progress * 100,
        "trackingUI": "UNASSIGNED",
        "diagnostics": "",
        "clusterId": app.id.cluster_timestamp,
        "applicationType": app.type,
        "applicationTags": ",".join(app.tags),
        "priority": app.priority,
    }
    if not may_view:
        return public
    finished = report.finishTime
    if app.state not in _UNASSIGNED and report.trackingUrl not in ("", "N/A"):
        public["trackingUI"] = "History" if finished else "ApplicationMaster"
        public["trackingUrl"] = report.trackingUrl
    public["diagnostics"] = report.diagnostics
    shown = public | _times(app, finished, cluster.clock.wall_ms()) | _usage(report) | _master(app)
    shown["amNodeLabelExpression"] = ""
    if not finished:
        shown["resourceInfo"] = _held(app, report, cluster)
    if requests := _requests(app, cluster):
        shown["resourceRequests"] = requests
    return shown


def _times(app: Application, finished_ms: int, now_ms: int) -> dict[str, Any]:
    return {
        "startedTime": app.submitted_ms,
        "launchTime": app.launched_ms,
        "finishedTime": finished_ms,
        "elapsedTime": (finished_ms or now_ms) - app.submitted_ms,
        "unmanagedApplication": app.is_unmanaged,
    }


def _usage(report: common.ApplicationReport) -> dict[str, Any]:
    usage = report.app_resource_Usage
    return {
        "allocatedMB": usage.used_resources.memory,
        "allocatedVCores": usage.used_resources.virtual_cores,
        "reservedMB": usage.reserved_resources.memory,
        "reservedVCores": usage.reserved_resources.virtual_cores,
        "runningContainers": usage.num_used_containers,
        "memorySeconds": usage.memory_seconds,
        "vcoreSeconds": usage.vcore_seconds,
        "queueUsagePercentage": usage.queue_usage_percentage,
        "clusterUsagePercentage": usage.cluster_usage_percentage,
        "resourceSecondsMap": _map(usage.application_resource_usage_map),
        "preemptedMemorySeconds": usage.preempted_memory_seconds,
        "preemptedVcoreSeconds": usage.preempted_vcore_seconds,
        "preemptedResourceSecondsMap": _map(usage.application_preempted_resource_usage_map),
        "logAggregationStatus": common.LogAggregationStatus.Name(report.log_aggregation_status)[4:],
        "timeouts": {"timeout": timeouts_json(report)},
    }


def timeouts_json(report: common.ApplicationReport) -> list[dict[str, Any]]:
    return [
        {
            "type": "LIFETIME",
            "expiryTime": entry.application_timeout.expire_time,
            "remainingTimeInSeconds": entry.application_timeout.remaining_time,
        }
        for entry in report.appTimeouts
    ]


def _requests(app: Application, cluster: Cluster) -> list[dict[str, Any]]:
    """What its master waits for, a row for each host, rack and `*` that it names."""
    scheduled = cluster.scheduler.facts.application(app.id)
    attempt = scheduled.attempt if scheduled is not None else None
    return [
        {
            "allocationRequestId": ask.key[1],
            "capability": resource_json(ask.capability, cluster.resource_types),
            "executionTypeRequest": {"enforceExecutionType": False, "executionType": ask.execution_type.name},
            "nodeLabelExpression": "",
            "numContainers": count,
            "priority": ask.key[0],
            "relaxLocality": name not in ask.strict,
            "resourceName": name,
        }
        for ask in (attempt.asks if attempt is not None else ())
        for name, count in ask.counts.items()
    ]


def _held(app: Application, report: common.ApplicationReport, cluster: Cluster) -> dict[str, Any]:
    usage, nothing = report.app_resource_Usage, Resource()
    used, reserved, needed = (
        convert.resource(amount).floored()
        for amount in (usage.used_resources, usage.reserved_resources, usage.needed_resources)
    )
    master = app.attempt.master if app.attempt is not None else None
    amounts = {
        "used": used,
        "reserved": reserved,
        "pending": (needed - used).floored(),
        "amUsed": master.allocation.resource if master is not None else nothing,
        "amLimit": nothing,
        "userAmLimit": nothing,
    }
    return usages_json(amounts, cluster.resource_types)


def _map(entries: Iterable[common.StringLongMap]) -> dict[str, Any]:
    """{} for none. (Hadoop's writer repeats the name `entry`, of which JSON parsers keep the last.)"""
    shown = [{"key": entry.key, "value": str(entry.value)} for entry in entries]
    return {"entry": shown} if shown else {}


def _master(app: Application) -> dict[str, Any]:
    attempt = app.attempt
    if attempt is None or attempt.master is None:
        return {}
    shown = {
        "amContainerLogs": logs_url(attempt.master, app.user),
        "amHostHttpAddress": attempt.master.http_address,
        "masterNodeId": str(attempt.master.node_id),
    }
    return shown | ({"amRPCAddress": f"{attempt.host}:{attempt.rpc_port}"} if attempt.rpc_port >= 0 else {})


def final_status(app: Application) -> str:
    if app.conclusion is None or not app.state.is_final:
        return "UNDEFINED"
    return app.conclusion.final_status.name


def logs_url(container: RmContainer, user: str) -> str:
    return f"http://{container.http_address}/node/containerlogs/{container.id}/{user}"


def attempt_json(attempt: Attempt) -> dict[str, Any]:
    master = attempt.master
    return {
        "id": attempt.id.attempt,
        "startTime": attempt.started_ms,
        "finishedTime": attempt.finished_ms,
        "containerId": str(master.id) if master is not None else "",
        "nodeHttpAddress": master.http_address if master is not None else "",
        "nodeId": str(master.node_id) if master is not None else "",
        "logsLink": logs_url(master, attempt.app.user) if master is not None else "",
        "blacklistedNodes": "",
        "nodesBlacklistedBySystem": "",
        "appAttemptId": str(attempt.id),
        "appAttemptState": attempt.state.name,
        "diagnostics": attempt.diagnostics,
    }


def container_json(
    container: RmContainer, user: str, now_ms: int, types: Iterable[ResourceType] = ()
) -> dict[str, Any]:
    """Write a container. Every value is a text, amounts and times (epoch ms) too, as Hadoop's is written.

    That holds for this record alone.
    """
    report = container_report_pb(container, user)
    resource = container.allocation.resource
    amounts = {"memory-mb": resource.memory_mb, "vcores": resource.vcores}
    amounts |= {kind.name: 0 for kind in types} | dict(resource.extras)
    shown: dict[str, Any] = {
        "containerId": container.id,
        "allocatedMB": resource.memory_mb,
        "allocatedVCores": resource.vcores,
        "assignedNodeId": container.node_id,
        "priority": report.priority.priority,
        "startedTime": report.creation_time,
        "finishedTime": report.finish_time,
        "elapsedTime": (report.finish_time or now_ms) - report.creation_time,
        "logUrl": report.log_url,
        "containerExitStatus": report.container_exit_status,
        "containerState": ContainerState(report.container_state).name,
        "nodeHttpAddress": report.node_http_address,
        "nodeId": container.node_id,
        "exposedPorts": "",
    }
    if report.HasField("diagnostics_info"):
        shown["diagnosticsInfo"] = report.diagnostics_info
    entries = [{"key": name, "value": str(amount)} for name, amount in sorted(amounts.items())]
    return {name: str(value) for name, value in shown.items()} | {"allocatedResources": {"entry": entries}}


def node_json(node: RmNode, cluster: Cluster) -> dict[str, Any]:
    used = node.used
    free = (node.total - used).floored() if node.is_usable else Resource()
    return {
        "rack": node.rack,
        "state": node.state.name,
        "id": str(node.id),
        "nodeHostName": node.id.host,
        "nodeHTTPAddress": node.http_address,
        "lastHealthUpdate": node.health_reported_ms,
        "version": node.version,
        "healthReport": node.health_report,
        "numContainers": len(node.containers),
        "usedMemoryMB": used.memory_mb,
        "availMemoryMB": free.memory_mb,
        "usedVirtualCores": used.vcores,
        "availableVirtualCores": free.vcores,
        **_use(node),
        "allocationTags": {},
        "nodeAttributesInfo": {},
        "usedResource": resource_json(used, cluster.resource_types),
        "availableResource": resource_json(free, cluster.resource_types),
        "totalResource": resource_json(node.total, cluster.resource_types),
    }


def _use(node: RmNode) -> dict[str, Any]:
    """What the node said of its machine, its containers and the opportunistic ones among them."""
    machine, held = node.status.node_utilization, node.status.containers_utilization
    opportunistic = node.status.opportunistic_containers_status
    return {
        "memUtilization": 100 * machine.pmem / node.total.memory_mb if node.total.memory_mb else 0.0,
        "cpuUtilization": 100 * machine.cpu / node.total.vcores if node.total.vcores else 0.0,
        "numRunningOpportContainers": opportunistic.running_opport_containers,
        "usedMemoryOpportGB": opportunistic.opport_memory_used >> 10,
        "usedVirtualCoresOpport": opportunistic.opport_cores_used,
        "numQueuedContainers": opportunistic.wait_queue_length,
        "resourceUtilization": {
            "nodePhysicalMemoryMB": machine.pmem,
            "nodeVirtualMemoryMB": machine.vmem,
            "nodeCPUUsage": machine.cpu,
            "aggregatedContainersPhysicalMemoryMB": held.pmem,
            "aggregatedContainersVirtualMemoryMB": held.vmem,
            "containersCPUUsage": held.cpu,
        },
    }
