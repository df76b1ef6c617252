"""Registration and heartbeats: what is kept, repeated, carried out; a ResourceManager that goes and comes back."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nm.daemon import NodeManager
from tests.nm.nm_cluster import (
    FakeResourceManager,
    Master,
    application,
    container_id,
    launch_context,
    node_configuration,
)
from tests.nm.nm_faults import gone
from yaqd.model import ContainerSubState, ExitStatus
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server

ONE, TWO = container_id(1), container_id(2)


async def test_registration_says_what_the_node_is(rm: FakeResourceManager, node: NodeManager) -> None:
    (request,) = rm.registrations
    assert convert.node_id(request.node_id) == node.node_id
    assert request.http_port == node.web_address[1]
    assert (request.resource.memory, request.resource.virtual_cores) == (8192, 8)
    assert "warm-start" in request.yaq_capabilities.understands
    assert request.nodeStatus.nodeHealthStatus.is_node_healthy


async def test_who_starts_a_node_is_told_once_that_no_resource_manager_answers(
    rm: FakeResourceManager, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    port = rm.rpc.port
    await rm.rpc.stop()
    said: list[str] = []
    node = NodeManager(node_configuration(tmp_path, port), say=said.append)
    await node.start()
    try:
        assert await gone(lambda: caplog.text.count("cannot register with the ResourceManager") < 2)
        [line] = said
        assert line.startswith(f"not registered with the ResourceManager at 127.0.0.1:{port} yet, trying again until")
    finally:
        await node.stop()


async def test_heartbeats_count_up_echo_keys_and_carry_what_stock_managers_read(
    rm: FakeResourceManager, node: NodeManager
) -> None:
    await rm.until(lambda: len(rm.heartbeats) >= 3)
    assert [h.node_status.response_id for h in rm.heartbeats[:3]] == [0, 1, 2]
    last = rm.heartbeats[-1]
    assert last.last_known_container_token_master_key.key_id == rm.container_keys.current.key_id
    assert last.last_known_nm_token_master_key.key_id == rm.nm_keys.current.key_id
    assert last.node_status.HasField("node_utilization") and last.node_status.HasField("containers_utilization")


async def test_ends_are_repeated_until_a_heartbeat_is_answered(
    rm: FakeResourceManager, node: NodeManager, master: Master
) -> None:
    """The ResourceManager dies on the heartbeat that brings the end; the next one brings it again."""
    rm.removes_completed = False
    await master.run(ONE, launch_context("sleep 1000"))
    await rm.until(lambda: rm.sub_state(ONE) == ContainerSubState.RUNNING)
    port = rm.rpc.port
    await rm.rpc.stop()
    await master.stop(ONE)
    assert await gone(lambda: not node.runtime.containers[ONE].is_done)
    rm.completed.clear()
    again = FakeResourceManager()
    again.nm_keys, again.container_keys, again.removes_completed = rm.nm_keys, rm.container_keys, False
    await again.start(port)
    assert (await again.end_of(ONE)).exit_status == ExitStatus.KILLED_BY_APPMASTER
    seen = len(again.heartbeats)
    await again.until(lambda: len(again.heartbeats) > seen + 2)
    assert len(again.completed[ONE]) == 1  # answered, so not said again
    assert ONE in node.runtime.containers  # but kept until its removal is ordered
    again.orders.append(lambda answer: answer.containers_to_be_removed_from_nm.append(convert.container_id_pb(ONE)))
    await again.until(lambda: ONE not in node.runtime.containers)
    await again.rpc.stop()


async def test_work_goes_on_while_the_resource_manager_is_away(
    rm: FakeResourceManager, node: NodeManager, master: Master
) -> None:
    await master.run(ONE, launch_context("echo on >$PWD/../kept; sleep 1000"))
    await rm.until(lambda: rm.sub_state(ONE) == ContainerSubState.RUNNING)
    port = rm.rpc.port
    await rm.rpc.stop()
    await master.run(TWO, launch_context("sleep 1000"))
    again = FakeResourceManager()
    again.nm_keys, again.container_keys = rm.nm_keys, rm.container_keys
    await again.start(port)
    await again.until(lambda: again.sub_state(ONE) == again.sub_state(TWO) == ContainerSubState.RUNNING)
    await again.rpc.stop()


async def test_resync_registers_again_with_everything(
    rm: FakeResourceManager, node: NodeManager, master: Master
) -> None:
    rm.removes_completed = False
    await master.run(ONE, launch_context("sleep 1000"))
    await master.run(TWO, launch_context("exit 5"))
    await rm.end_of(TWO)
    rm.orders.append(lambda answer: setattr(answer, "nodeAction", server.RESYNC))
    await rm.until(lambda: len(rm.registrations) == 2)
    known = {convert.container_id(c.container_id): c for c in rm.registrations[1].container_statuses}
    assert known[ONE].container_state == common.C_RUNNING
    assert (known[TWO].container_state, known[TWO].container_exit_status) == (common.C_COMPLETE, 5)
    assert list(map(convert.application_id, rm.registrations[1].runningApplications)) == [application()]
    await rm.until(lambda: len(rm.completed[TWO]) >= 2)
    assert not node.runtime.containers[ONE].is_done


async def test_orders_are_carried_out(rm: FakeResourceManager, node: NodeManager, master: Master) -> None:
    await master.run(ONE, launch_context("sleep 1000"))
    await rm.until(lambda: rm.sub_state(ONE) == ContainerSubState.RUNNING)
    rm.orders.append(lambda answer: answer.containers_to_cleanup.append(convert.container_id_pb(ONE)))
    assert (await rm.end_of(ONE)).exit_status == ExitStatus.KILLED_BY_RESOURCEMANAGER


async def test_ended_application_loses_containers_folders_and_key(
    rm: FakeResourceManager, node: NodeManager, master: Master
) -> None:
    await master.run(ONE, launch_context("echo x >$LOCAL_DIRS/output; sleep 1000"))
    await rm.until(lambda: rm.sub_state(ONE) == ContainerSubState.RUNNING)
    folder = node.directories.app_dirs("alice", application())[0]
    assert folder.is_dir()
    rm.orders.append(lambda answer: answer.applications_to_cleanup.append(convert.application_id_pb(application())))
    assert (await rm.end_of(ONE)).exit_status == ExitStatus.KILLED_AFTER_APP_COMPLETION
    assert await gone(folder.exists)
    assert await gone(lambda: node.runtime.applications or node.runtime.containers)
    assert (node.settings.log_dirs[0] / str(application())).is_dir()  # logs stay for their retention


@pytest.mark.parametrize("said", ["", "2s"])
async def test_a_manager_that_wants_stock_ways_gets_them_unless_the_node_says_otherwise(
    rm: FakeResourceManager, start_node: Callable[..., Any], said: str
) -> None:
    rm.capabilities.append("stock")
    node: NodeManager = await start_node({"yaq.nm.containers.start-moment": said} if said else {})
    assert node._pacer._pace.moment_s == (2 if said else 0)


async def test_an_end_is_told_at_once_and_a_start_is_not(
    rm: FakeResourceManager, start_node: Callable[..., Any]
) -> None:
    """With an interval of a minute only a heartbeat out of turn can bring the end in time, and it is the first."""
    rm.interval_ms = 60_000
    node = await start_node()
    master = Master(rm, node)
    before = len(rm.heartbeats)
    await master.run(ONE, launch_context("true"))
    assert (await rm.end_of(ONE, timeout_s=10)).exit_status == 0
    assert len(rm.heartbeats) == before + 1
    await master.client.close()


async def test_master_keys_roll_over(rm: FakeResourceManager, node: NodeManager, master: Master) -> None:
    old = rm.container_token(ONE, node.node_id)
    rm.container_keys.roll(86_400.0)
    new = rm.container_keys.newest
    rm.orders.append(lambda answer: answer.container_token_master_key.CopyFrom(new.to_pb()))
    await rm.until(lambda: rm.heartbeats[-1].last_known_container_token_master_key.key_id == new.key_id)
    rm.container_keys.roll(90_000.0)
    assert rm.container_keys.current == new
    await master.run(TWO, launch_context("true"))  # minted with the new key
    from tests.nm.nm_cluster import start

    assert (await start(master, old)).succeeded_requests  # made with the key before


@pytest.mark.parametrize("when", ["register", "heartbeat"])
async def test_shutdown_ends_the_daemon(rm: FakeResourceManager, tmp_path: Any, when: str) -> None:
    if when == "register":
        rm.register_action = server.SHUTDOWN
    node = NodeManager(node_configuration(tmp_path, rm.rpc.port))
    await node.start()
    if when == "heartbeat":
        rm.orders.append(lambda answer: setattr(answer, "nodeAction", server.SHUTDOWN))
    async with asyncio.timeout(10):
        assert "ResourceManager" in await node.ended
    await node.stop()


async def test_stop_kills_containers_and_unregisters(rm: FakeResourceManager, start_node: Callable[..., Any]) -> None:
    node = await start_node()
    master = Master(rm, node)
    await master.run(ONE, launch_context("trap '' TERM; sleep 1000"))
    await rm.until(lambda: rm.sub_state(ONE) == ContainerSubState.RUNNING)
    process = node.runtime.containers[ONE].process
    began = asyncio.get_running_loop().time()
    await node.stop()
    assert asyncio.get_running_loop().time() - began < 4
    assert process.exited.done() and rm.unregistered == [node.node_id]
    await master.client.close()


async def test_a_master_that_comes_before_the_node_is_registered_is_answered_then(
    rm: FakeResourceManager, tmp_path: Any
) -> None:
    """The ResourceManager sends it at once, and the node knows no key yet."""
    rm.answers_registrations.clear()
    node = NodeManager(node_configuration(tmp_path, rm.rpc.port))
    await node.start()
    await rm.until(lambda: rm.registrations)
    master = Master(rm, node)
    start = asyncio.ensure_future(master.run(ONE, launch_context("true")))
    assert not (await asyncio.wait((start,), timeout=0.3))[0]
    rm.answers_registrations.set()
    await start
    assert (await rm.end_of(ONE)).exit_status == ExitStatus.SUCCESS
    await master.client.close()
    await node.stop()
