"""Containers through a real node: started over RPC, run as processes, reported in heartbeats."""

import os
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from nm.daemon import NodeManager
from nm.launch.prepare import NodeIdentity
from tests.nm.nm_cluster import FakeResourceManager, Master, container_id, launch_context, log_text
from yaqd.model import ContainerSubState, ExitStatus
from yaqd.proto import yarn_common_pb2 as common


async def test_command_runs_and_its_end_is_reported(rm: FakeResourceManager, node: NodeManager, master: Master) -> None:
    one = container_id(1)
    await master.run(one, launch_context("echo hello from $CONTAINER_ID 1><LOG_DIR>/stdout 2><LOG_DIR>/stderr"))
    end = await rm.end_of(one)
    assert end.exit_status == 0
    assert log_text(node, one, "stdout") == f"hello from {one}\n"


async def test_exit_code_and_the_end_of_stderr_are_reported(rm: FakeResourceManager, master: Master) -> None:
    one = container_id(1)
    await master.run(one, launch_context("{ echo no such thing >&2; exit 7; } 2><LOG_DIR>/stderr"))
    end = await rm.end_of(one)
    assert end.exit_status == 7
    assert "no such thing" in end.diagnostics
    assert "exit code 7" in end.diagnostics


async def test_stop_ends_the_whole_group(rm: FakeResourceManager, master: Master) -> None:
    one = container_id(1)
    await master.run(one, launch_context("sleep 1000 & sleep 1000"))
    await rm.until(lambda: rm.sub_state(one) == ContainerSubState.RUNNING)
    response = await master.stop(one)
    assert len(response.succeeded_requests) == 1
    assert (await rm.end_of(one)).exit_status == ExitStatus.KILLED_BY_APPMASTER


@pytest.mark.slow
async def test_environment_too_long_for_a_process(rm: FakeResourceManager, node: NodeManager, master: Master) -> None:
    one, two = container_id(1), container_id(2)
    await master.run(one, launch_context("true", environment={"LONG": "x" * (9 << 20)}))
    await master.run(two, launch_context("true " + "x" * (3 << 20)))
    assert (await rm.end_of(one)).exit_status != 0
    end = await rm.end_of(two)
    assert end.exit_status == 126 and "Argument list too long" in end.diagnostics


async def test_a_fault_of_ours_fails_the_container_and_nothing_else(
    rm: FakeResourceManager, node: NodeManager, master: Master, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> NodeIdentity:
        raise RuntimeError("broken on purpose")

    launcher = node.runtime._course._launcher
    with monkeypatch.context() as patch:
        patch.setattr(launcher, "_parts", replace(launcher._parts, identity=broken))
        await master.run(container_id(1), launch_context("true"))
        end = await rm.end_of(container_id(1))
    assert end.exit_status == ExitStatus.INVALID and "broken on purpose" in end.diagnostics
    await master.run(container_id(2), launch_context("true"))
    assert (await rm.end_of(container_id(2))).exit_status == 0


@pytest.mark.parametrize("is_on", [True, False])
async def test_tasks_run_in_the_batch_class_and_masters_do_not(
    start_node: Callable[..., Awaitable[NodeManager]], rm: FakeResourceManager, is_on: bool
) -> None:
    node = await start_node({"yaq.nm.containers.batch-class": str(is_on).lower()})
    master = Master(rm, node)
    tell = launch_context("exec cut -d ' ' -f 41 /proc/self/stat 1><LOG_DIR>/stdout 2><LOG_DIR>/stderr")
    await master.run(container_id(1), tell)
    await master.run(container_id(2), tell, containerType=common.APPLICATION_MASTER)
    classes = []
    for container in (container_id(1), container_id(2)):
        await rm.end_of(container)
        classes.append(int(log_text(node, container, "stdout")))
    await master.client.close()
    assert classes == [os.SCHED_BATCH if is_on else os.SCHED_OTHER, os.SCHED_OTHER]
