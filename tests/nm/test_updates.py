"""Containers whose size changes while they run: by their master's call, by the heartbeat, and what follows from it."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from nm.daemon import NodeManager
from tests.nm.nm_cluster import FakeResourceManager, Master, add_update, container_id, launch_context
from yaqd.model import ContainerSubState, ExitStatus, Resource
from yaqd.proto import convert
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto import yarn_service_pb2 as service
from yaqd.proto.protocols import ContainerManagementProtocol as Protocol

ONE = container_id(1)
FILL = "python3 -c 'import time; held = bytearray(100 << 20); time.sleep(1000)'"


async def test_the_memory_limit_follows_a_decrease_from_the_heartbeat(
    rm: FakeResourceManager, start_node: Callable[..., Any]
) -> None:
    node: NodeManager = await start_node({"yarn.nodemanager.resource-monitor.interval-ms": "50"})
    master = Master(rm, node)
    await master.run(ONE, launch_context(FILL), resource=Resource(1024, 1))
    container = node.runtime.containers[ONE]
    await rm.until(lambda: container.physical_bytes > 90 << 20)
    token = rm.container_token(ONE, node.node_id, resource=Resource(40, 1), version=1)

    def shrink(response: server.NodeHeartbeatResponse) -> None:
        # a stock ResourceManager fills both fields
        response.containers_to_update.add(container_token=token)
        response.containers_to_decrease.add(container_token=token)

    rm.orders.append(shrink)
    end = await rm.end_of(ONE)
    assert end.exit_status in (ExitStatus.KILLED_EXCEEDED_PMEM, ExitStatus.KILLED_EXCEEDED_VMEM)
    assert end.capability.memory == 40
    await master.client.close()


@pytest.mark.parametrize("counts_vcores", [False, True])
async def test_containers_wait_for_cores_only_where_cores_are_scheduled(
    rm: FakeResourceManager, start_node: Callable[..., Any], counts_vcores: bool
) -> None:
    rm.capabilities = ["counts-vcores"] if counts_vcores else ["yaq-1"]
    node: NodeManager = await start_node({"yarn.nodemanager.resource.cpu-vcores": "2"})
    master = Master(rm, node)
    for number in (1, 2):
        await master.run(container_id(number), launch_context("sleep 1000"), resource=Resource(512, 2))
    second = ContainerSubState.SCHEDULED if counts_vcores else ContainerSubState.RUNNING
    await rm.until(lambda: rm.sub_state(ONE) == ContainerSubState.RUNNING and rm.sub_state(container_id(2)) == second)
    assert node.runtime.queue_statistics().queued == int(counts_vcores)
    await master.client.close()


@pytest.mark.parametrize("counts_vcores", [False, True])
@pytest.mark.parametrize("when", ["at registration", "in a heartbeat"])
async def test_resource_manager_gives_the_node_another_size(
    rm: FakeResourceManager, start_node: Callable[..., Any], counts_vcores: bool, when: str
) -> None:
    """Two of its 8 cores; they count only where cores are scheduled, however the node hears of them."""
    rm.capabilities = ["counts-vcores"] if counts_vcores else ["yaq-1"]
    two = Resource(8192, 2)
    if when == "at registration":
        rm.size = two
    node: NodeManager = await start_node()
    if when == "in a heartbeat":
        rm.orders.append(lambda response: convert.put_resource(response.resource, two))
        await rm.until(lambda: not rm.orders)
        seen = len(rm.heartbeats)
        await rm.until(lambda: len(rm.heartbeats) > seen)
    master = Master(rm, node)
    for number in (1, 2):
        await master.run(container_id(number), launch_context("sleep 1000"), resource=Resource(512, 2))
    second = ContainerSubState.SCHEDULED if counts_vcores else ContainerSubState.RUNNING
    await rm.until(lambda: rm.sub_state(ONE) == ContainerSubState.RUNNING and rm.sub_state(container_id(2)) == second)
    await master.client.close()


async def test_the_older_call_for_an_increase_works_too(
    rm: FakeResourceManager, node: NodeManager, master: Master
) -> None:
    await master.run(ONE, launch_context("sleep 1000"))
    await rm.until(lambda: rm.sub_state(ONE) == ContainerSubState.RUNNING)
    token = rm.container_token(ONE, node.node_id, resource=Resource(2048, 2), version=1)
    for is_new in (True, False):
        request = service.IncreaseContainersResourceRequest(increase_containers=[token])
        response = await master.client.call(Protocol.increaseContainersResource, request)
        assert (len(response.succeeded_requests), len(response.failed_requests)) == (is_new, not is_new)
    assert "has update version [1] >= requested version [1]" in response.failed_requests[0].exception.message
    (status,) = (await master.statuses(ONE)).status
    assert status.capability.memory == 2048


@pytest.mark.parametrize("is_forged", [False, True])
async def test_heartbeat_updates_need_a_genuine_token_and_a_known_container(
    rm: FakeResourceManager, node: NodeManager, master: Master, is_forged: bool
) -> None:
    await master.run(ONE, launch_context("sleep 1000"))
    before = node.runtime.containers[ONE].grant
    token = rm.container_token(ONE if is_forged else container_id(7), node.node_id, version=5)
    if is_forged:
        token.password = b"x" * 20
    seen = len(rm.heartbeats)
    rm.orders.append(partial(add_update, token))
    await rm.until(lambda: len(rm.heartbeats) > seen + 2)
    assert node.runtime.containers[ONE].grant is before
