"""Containers through a real node: started over RPC, run as processes, reported in heartbeats."""

from nm_cluster import FakeResourceManager, Master, container_id, launch_context, log_text

from nm.daemon import NodeManager
from yaqd.model import ContainerSubState, ExitStatus


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
