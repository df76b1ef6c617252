"""How many containers may wait on a node: what fits is none of them, and what is too much costs no attempt."""

from typing import Any

import pytest

import nm.containers.runtime
from nm.daemon import NodeManager
from tests.nm.nm_cluster import FakeResourceManager, Master, container_id, launch_context
from yaqd.ipc.errors import NMNotYetReady
from yaqd.model import ContainerId, ContainerSubState, ExitStatus, Resource
from yaqd.proto import yarn_common_pb2 as common

KEY = "yaq.nm.queue.max-length"
ONE = container_id(1)
LONG, SHORT = launch_context("sleep 1000"), launch_context("true")


def whole(node: NodeManager) -> Resource:
    return node.settings.resource


async def refused(master: Master, container: ContainerId, **token: Any) -> common.SerializedException:
    (failed,) = (await master.start(container, SHORT, **token)).failed_requests
    return failed.exception


@pytest.mark.slow
@pytest.mark.parametrize("most", [0, 1])
async def test_what_fits_does_not_wait(
    rm: FakeResourceManager, start_node: Any, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(nm.containers.runtime, "_BEYOND_MAX", 0)
    node = await start_node({KEY: str(most)})
    assert rm.registrations[0].yaq_capabilities.queue_max == most
    master = Master(rm, node)
    share = Resource(whole(node).memory_mb // 8, whole(node).vcores // 8)
    containers = [container_id(number) for number in range(1, 9)]
    for one in containers:
        await master.run(one, LONG, resource=share)
    await rm.until(lambda: all(rm.sub_state(one) == ContainerSubState.RUNNING for one in containers))
    await master.client.close()


@pytest.mark.parametrize("most", [0, 1, 2])
async def test_one_too_many_is_taken_on_and_given_back(rm: FakeResourceManager, start_node: Any, most: int) -> None:
    node = await start_node({KEY: str(most)})
    master = Master(rm, node)
    await master.run(ONE, LONG, resource=whole(node))
    await rm.until(lambda: rm.sub_state(ONE) == ContainerSubState.RUNNING)
    waiting = [container_id(number) for number in range(2, 2 + most)]
    for one in waiting:
        await master.run(one, SHORT, resource=whole(node))
    await rm.until(lambda: node.runtime.queue_statistics().queued == most)
    late, chief = container_id(9), container_id(10)
    await master.run(late, SHORT, resource=whole(node))
    end = await rm.end_of(late)
    assert end.exit_status == ExitStatus.PREEMPTED, end.diagnostics
    assert f"queue is full ({most} containers wait)" in end.diagnostics
    await master.run(chief, SHORT, resource=whole(node), containerType=common.APPLICATION_MASTER)
    await rm.until(lambda: node.runtime.queue_statistics().queued == most + 1)
    await master.stop(ONE)
    for one in (*waiting, chief):
        assert (await rm.end_of(one)).exit_status == 0
    await master.client.close()


async def test_containers_without_number_are_not_taken_on(
    rm: FakeResourceManager, start_node: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nm.containers.runtime, "_BEYOND_MAX", 5)
    rm.interval_ms = 60_000
    node = await start_node({KEY: "1", "yaq.nm.out-of-turn-heartbeats": "false"})
    master = Master(rm, node)
    large = Resource(whole(node).memory_mb - 1024, 1)
    await master.run(ONE, LONG, resource=large)
    # no heartbeat meanwhile: what was given back is not forgotten either, while the ResourceManager knows nothing of it
    taken = 0
    while not (answer := await master.start(container_id(2 + taken), SHORT, resource=large)).failed_requests:
        taken += 1
        assert taken < 20
    error = answer.failed_requests[0].exception
    assert 5 <= taken <= 6, "the first one counts as long as it has not started"
    assert error.class_name == NMNotYetReady.JAVA_CLASS and "too many containers wait on this node" in error.message
    await master.run(container_id(50), SHORT, resource=large, containerType=common.APPLICATION_MASTER)
    assert "too many" in (await refused(master, container_id(51), resource=Resource(0, 0))).message
    await master.client.close()


async def test_a_node_that_stops_says_so(rm: FakeResourceManager, node: NodeManager, master: Master) -> None:
    node.runtime.refuse_all()
    error = await refused(master, ONE)
    assert error.class_name == NMNotYetReady.JAVA_CLASS and "about to stop" in error.message
