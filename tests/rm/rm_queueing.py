"""Nodes with node queues on a real ResourceManager: settings, heartbeats, and what a master was given."""

from pathlib import Path

from tests.rm.rm_harness import FakeNode, Harness
from yaqd.config import Configuration
from yaqd.model import ContainerId
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ResourceTracker

OURS = ("yaq-1", "yaq-queue")
ON = {"yaq.queue.enabled": "true", "yaq.queue.bound": "3", "yaq.queue.default-estimate": "10s"}
OFF = {"yaq.queue.enabled": "false"}


async def beat(
    node: FakeNode,
    *,
    running: int = 0,
    queued: int = 0,
    wait_ms: int = 500,
    times: tuple[int, int] | None = None,
    refill_ms: int | None = None,
) -> server.NodeHeartbeatResponse:
    """A heartbeat that says how the node's queue is, and how long what ended had waited and run.

    `refill_ms`: the node tells of ends at once, and takes so long besides.
    """
    request = node.heartbeat()
    said = request.node_status.yaq_queue
    said.running, said.queued, said.wait_ms = running, queued, wait_ms
    said.tells_ends, said.refill_ms = refill_ms is not None, refill_ms or 0
    for status in request.node_status.containersStatuses:
        if times is not None and status.state == common.C_COMPLETE:
            status.yaq_times.queued_ms, status.yaq_times.run_ms = times
    response = await node.tracker.call(ResourceTracker.nodeHeartbeat, request)
    node.response_id = response.response_id
    for forgotten in response.containers_to_be_removed_from_nm:
        node.ended.pop(convert.container_id(forgotten), None)
    return response


def given(response: pb.AllocateResponse) -> list[ContainerId]:
    return [convert.container_id(c.id) for c in response.allocated_containers]


def token_of(container: common.Container) -> server.ContainerTokenIdentifier:
    return server.ContainerTokenIdentifier.FromString(container.container_token.identifier)


async def queueing_node(rm: Harness) -> FakeNode:
    node = await rm.node(memory_mb=4096, vcores=4, capabilities=OURS)
    await beat(node)
    return node


def left(*stages: tuple[int, int, int, tuple[int, ...]]) -> common.JobLeft:
    message = common.JobLeft()
    for priority, tasks, task_ms, after in stages:
        message.stages.add(priority=priority, tasks=tasks, task_ms=task_ms, after=after)
    return message


def site(folder: Path, **settings: str) -> Configuration:
    rows = "".join(f"<property><name>{k}</name><value>{v}</value></property>\n" for k, v in settings.items())
    (folder / "yaq-site.xml").write_text(f"<configuration>\n{rows}</configuration>\n")
    overrides = {
        f"yarn.resourcemanager.{name}": "127.0.0.1:0"
        for name in ("address", "scheduler.address", "resource-tracker.address", "admin.address", "webapp.address")
    }
    return Configuration.load(
        folder,
        overrides={
            **overrides,
            "yarn.resourcemanager.hostname": "127.0.0.1",
            "yaq.rm.state-store.path": "memory",
            "yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
        },
        environ={},
    )
