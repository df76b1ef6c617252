"""Records to messages, for the services that speak to masters and nodes."""

from collections.abc import Iterable
from enum import IntEnum
from typing import Any

from rm.applications.records import Completion, RmContainer
from rm.applications.states import ContainerStage
from rm.nodes.node import RmNode
from yaqd.config.resource_types import ResourceType
from yaqd.model import ContainerState, NodeState
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.security import Token


def wire(value: IntEnum) -> Any:
    """Return an enum of ours where a message wants one of its own: the numbers are the same by construction."""
    return value


def put_container(message: common.Container, container: RmContainer, token: Token) -> None:
    """Write what a master is given into a field of its answer."""
    allocation = container.allocation
    message.node_http_address = container.http_address
    message.execution_type = wire(allocation.execution_type)
    message.allocation_request_id = allocation.allocation_request_id
    if allocation.tags:
        message.allocation_tags.extend(allocation.tags)
    message.version = container.version
    convert.put_container_id(message.id, container.id)
    message.nodeId.host, message.nodeId.port = container.node_id.host, container.node_id.port
    convert.put_resource(message.resource, allocation.resource)
    message.priority.priority = allocation.priority
    token.put(message.container_token)


def put_completion(message: common.ContainerStatus, completion: Completion, *, with_times: bool) -> None:
    """Write a container's end into a field of the master's answer; `with_times`: it reads extensions."""
    if with_times and completion.times_ms is not None:
        message.yaq_times.queued_ms, message.yaq_times.run_ms = completion.times_ms
    message.state = wire(ContainerState.COMPLETE)
    message.diagnostics = completion.diagnostics
    message.exit_status = completion.exit_status
    message.executionType = wire(completion.execution_type)
    convert.put_container_id(message.container_id, completion.container_id)
    convert.put_resource(message.capability, completion.resource)


def node_report_pb(node: RmNode) -> common.NodeReport:
    message = common.NodeReport(
        httpAddress=node.http_address,
        rackName=node.rack,
        numContainers=len(node.containers),
        node_state=wire(node.state),
        health_report=node.health_report,
        last_health_report_time=node.health_reported_ms,
    )
    if node.queue_told is not None:
        message.yaq_waiting = max(0, min(node.status.yaq_queue.queued, len(node.containers)))
    message.nodeId.CopyFrom(convert.node_id_pb(node.id))
    convert.put_resource(message.used, node.used)
    is_draining = node.state is NodeState.DECOMMISSIONING
    convert.put_resource(message.capability, node.used if is_draining else node.total)
    if node.status.HasField("containers_utilization"):
        message.containers_utilization.CopyFrom(node.status.containers_utilization)
    if node.status.HasField("node_utilization"):
        message.node_utilization.CopyFrom(node.status.node_utilization)
    message.node_update_type = common.NODE_USABLE if node.state is NodeState.RUNNING else common.NODE_UNUSABLE
    if is_draining:
        message.node_update_type = common.NODE_DECOMMISSIONING
        if node.drain_timeout_s >= 0:
            message.decommissioning_timeout = node.drain_timeout_s
    return message


def container_report_pb(container: RmContainer, user: str) -> common.ContainerReport:
    allocation, over = container.allocation, container.completion
    started = over is not None or container.stage is ContainerStage.RUNNING
    state = ContainerState.COMPLETE if over is not None else ContainerState.RUNNING
    message = common.ContainerReport(
        creation_time=container.created_ms,
        finish_time=container.finished_ms,
        container_exit_status=over.exit_status if over is not None else 0,
        container_state=wire(state if started else ContainerState.NEW),
        node_http_address=f"http://{container.http_address}",
        log_url=f"http://{container.http_address}/node/containerlogs/{container.id}/{user}",
        executionType=wire(allocation.execution_type),
    )
    convert.put_container_id(message.container_id, container.id)
    convert.put_resource(message.resource, allocation.resource)
    message.node_id.CopyFrom(convert.node_id_pb(container.node_id))
    message.priority.priority = allocation.priority
    if over is not None:  # clients print `null` of a container that runs, as Hadoop's ResourceManager has them do
        message.diagnostics_info = over.diagnostics
    return message


def resource_types_pb(further: Iterable[ResourceType]) -> list[common.ResourceTypeInfo]:
    """List all resource types, as masters and clients learn of them."""
    return [
        common.ResourceTypeInfo(name="memory-mb", units="Mi", type=common.COUNTABLE),
        common.ResourceTypeInfo(name="vcores", units="", type=common.COUNTABLE),
        *(common.ResourceTypeInfo(name=kind.name, units=kind.unit, type=common.COUNTABLE) for kind in further),
    ]
