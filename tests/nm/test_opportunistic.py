"""Opportunistic containers on a real node: they wait, make room, are told of in heartbeats, change their type."""

from collections.abc import Callable
from typing import Any

import pytest

from nm.containers.states import Stage
from nm.daemon import NodeManager
from tests.nm.nm_cluster import FakeResourceManager, Master, container_id, launch_context
from yaqd.config import ConfigError
from yaqd.model import ContainerState, ContainerSubState, ExecutionType, ExitStatus, Resource
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto import yarn_service_pb2 as service
from yaqd.proto.protocols import ContainerManagementProtocol

ONE, TWO, THREE = container_id(1), container_id(2), container_id(3)
SETTINGS = {
    "yarn.nodemanager.resource.memory-mb": "1000",
    "yarn.nodemanager.opportunistic-containers-max-queue-length": "1",
}
SPARE = {"executionType": common.OPPORTUNISTIC, "resource": Resource(600, 1)}


@pytest.fixture
async def node(start_node: Callable[..., Any]) -> NodeManager:
    return await start_node(SETTINGS)


async def test_waits_while_the_node_is_full_and_says_so(
    rm: FakeResourceManager, node: NodeManager, master: Master
) -> None:
    await master.run(ONE, launch_context("sleep 1000"), **SPARE)
    await rm.until(lambda: rm.sub_state(ONE) == ContainerSubState.RUNNING)
    await master.run(TWO, launch_context("true"), **SPARE)
    status = await rm.until(
        lambda: (
            (found := rm.heartbeats[-1].node_status.opportunistic_containers_status).queued_opport_containers and found
        )
    )
    assert (status.running_opport_containers, status.opport_cores_used, status.wait_queue_length) == (1, 1, 1)
    assert status.opport_queue_capacity == 1
    waiting = (await master.statuses(TWO)).status[0]
    assert waiting.state == ContainerState.RUNNING and waiting.container_sub_state == ContainerSubState.SCHEDULED
    assert waiting.executionType == common.OPPORTUNISTIC and waiting.exit_status == ExitStatus.INVALID
    await master.run(THREE, launch_context("true"), **SPARE)
    end = await rm.end_of(THREE)
    assert end.exit_status == ExitStatus.KILLED_BY_CONTAINER_SCHEDULER
    assert "Opportunistic container queue is full." in end.diagnostics
    assert end.executionType == common.OPPORTUNISTIC
    await master.stop(ONE)
    assert (await rm.end_of(TWO)).exit_status == 0


async def test_makes_room_for_a_guaranteed_one(rm: FakeResourceManager, node: NodeManager, master: Master) -> None:
    await master.run(ONE, launch_context("sleep 1000"), **SPARE)
    await rm.until(lambda: rm.sub_state(ONE) == ContainerSubState.RUNNING)
    await master.run(TWO, launch_context("true"), resource=Resource(600, 1))
    end = await rm.end_of(ONE)
    assert end.exit_status == ExitStatus.KILLED_BY_CONTAINER_SCHEDULER
    assert end.diagnostics.startswith("Container Killed to make room for Guaranteed Container.")
    assert (await rm.end_of(TWO)).exit_status == 0


async def test_the_resource_manager_may_shorten_the_queue(
    rm: FakeResourceManager, node: NodeManager, master: Master
) -> None:
    await master.run(ONE, launch_context("sleep 1000"), **SPARE)
    await rm.until(lambda: rm.sub_state(ONE) == ContainerSubState.RUNNING)
    await master.run(TWO, launch_context("true"), **SPARE)
    await rm.until(lambda: node.runtime.containers[TWO].stage is Stage.SCHEDULED)

    def shorten(response: server.NodeHeartbeatResponse) -> None:
        response.container_queuing_limit.max_queue_length = 0

    rm.orders.append(shorten)
    end = await rm.end_of(TWO)
    assert end.exit_status == ExitStatus.KILLED_BY_CONTAINER_SCHEDULER
    assert "De-queued" in end.diagnostics


@pytest.mark.parametrize("by_heartbeat", [False, True])
async def test_a_promoted_one_stays(
    rm: FakeResourceManager, node: NodeManager, master: Master, by_heartbeat: bool
) -> None:
    await master.run(ONE, launch_context("sleep 1000"), **SPARE)
    await rm.until(lambda: rm.sub_state(ONE) == ContainerSubState.RUNNING)
    token = rm.container_token(ONE, node.node_id, resource=Resource(600, 1), version=1)
    if by_heartbeat:

        def promote(response: server.NodeHeartbeatResponse) -> None:
            response.containers_to_update.add(container_token=token)

        rm.orders.append(promote)
        await rm.until(lambda: node.runtime.containers[ONE].grant.version == 1)
    else:
        request = service.ContainerUpdateRequest(update_container_token=[token])
        await master.client.call(ContainerManagementProtocol.updateContainer, request)
    await master.run(TWO, launch_context("true"), resource=Resource(600, 1))
    await rm.until(lambda: node.runtime.containers[TWO].stage is Stage.SCHEDULED)
    status = (await master.statuses(ONE)).status[0]
    assert status.executionType == common.GUARANTEED == ExecutionType.GUARANTEED
    assert status.container_sub_state == ContainerSubState.RUNNING
    await master.stop(ONE)
    assert (await rm.end_of(TWO)).exit_status == 0


async def test_none_is_taken_by_default(rm: FakeResourceManager, start_node: Callable[..., Any]) -> None:
    master = Master(rm, await start_node())
    await master.run(ONE, launch_context("true"), **SPARE)
    assert (await rm.end_of(ONE)).exit_status == ExitStatus.KILLED_BY_CONTAINER_SCHEDULER
    await master.client.close()


async def test_an_unknown_queue_policy_is_refused(start_node: Callable[..., Any]) -> None:
    with pytest.raises(ConfigError, match="BY_QUEUE_LEN, BY_RESOURCES"):
        await start_node({"yarn.nodemanager.opportunistic-containers-queue-policy": "BY_LUCK"})


@pytest.mark.slow
@pytest.mark.parametrize(("name", "turns"), [("ejf", [1, 2]), ("stf", [2, 1])])
async def test_waiting_ones_start_by_the_nodes_own_order(
    rm: FakeResourceManager, start_node: Callable[..., Any], name: str, turns: list[int]
) -> None:
    """Nobody tells anything of the jobs: their ids say which came first, their first containers how long they run."""
    queue = {"yarn.nodemanager.opportunistic-containers-max-queue-length": "9", "yaq.nm.queue.order": name}
    node: NodeManager = await start_node({**SETTINGS, **queue})
    masters = {app: Master(rm, node, app=app) for app in (1, 2)}
    for app, seconds in ((1, 0.3), (2, 0)):
        await masters[app].run(container_id(1, app), launch_context(f"sleep {seconds}"), **SPARE)
        await rm.end_of(container_id(1, app))
    blocker = container_id(2, 1)
    await masters[1].run(blocker, launch_context("sleep 1000"), **SPARE)
    await rm.until(lambda: rm.sub_state(blocker) == ContainerSubState.RUNNING)
    waiting = [container_id(3, app) for app in reversed(turns)]
    for number, one in enumerate(waiting, 1):
        await masters[one.application_id.id].run(one, launch_context("true"), **SPARE)
        await rm.until(lambda number=number: node.runtime.queue_statistics().queued == number)  # type: ignore[misc]
    shown = [view.container_id.application_id.id for view in node.runtime.queue_snapshot().waiting]
    assert shown == turns, "not as they came"
    await masters[1].stop(blocker)
    for one in waiting:
        assert (await rm.end_of(one)).exit_status == 0
    for master in masters.values():
        await master.client.close()


def left(*stages: tuple[int, int, int, tuple[int, ...]]) -> common.JobLeft:
    message = common.JobLeft()
    for priority, tasks, task_ms, after in stages:
        message.stages.add(priority=priority, tasks=tasks, task_ms=task_ms, after=after)
    return message


#: of three jobs: much work in one stage, little in a chain of three, and nothing said with one container here
WIDE, CHAIN = left((1, 90, 1000, ())), left((1, 2, 4000, ()), (2, 2, 4000, (1,)), (3, 2, 4000, (2,)))


@pytest.mark.parametrize(("name", "turns"), [("srjf", [2, 1, 3]), ("lrtf", [3, 2, 1]), ("cpath", [1, 2, 3])])
async def test_what_masters_and_the_node_itself_know_of_jobs_orders_them(
    rm: FakeResourceManager, start_node: Callable[..., Any], name: str, turns: list[int]
) -> None:
    queue = {"yarn.nodemanager.opportunistic-containers-max-queue-length": "9", "yaq.nm.queue.order": name}
    node: NodeManager = await start_node({**SETTINGS, **queue})
    masters = {app: Master(rm, node, app=app) for app in (1, 2, 3)}
    blocker = container_id(2, 1)
    await masters[1].run(blocker, launch_context("sleep 1000", left=WIDE), **SPARE)
    await rm.until(lambda: rm.sub_state(blocker) == ContainerSubState.RUNNING)
    for app, told in ((1, WIDE), (2, CHAIN), (3, None)):
        one = container_id(3, app)
        await masters[app].run(one, launch_context("true", left=told), priority=common.Priority(priority=1), **SPARE)
        await rm.until(lambda app=app: node.runtime.queue_statistics().queued == app)  # type: ignore[misc]
    shown = [view.container_id.application_id.id for view in node.runtime.queue_snapshot().waiting]
    assert shown == turns
    await masters[1].stop(blocker)
    for app, master in masters.items():
        assert (await rm.end_of(container_id(3, app))).exit_status == 0
        await master.client.close()
