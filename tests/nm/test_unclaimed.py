"""What lost mark, environment and parents between two looks ends with the last container that may have started it."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from nm.resources.unclaimed import Unclaimed
from tests.nm.nm_cluster import FakeResourceManager, container_id, launch_context
from tests.nm.nm_faults import NodeProcess, gone
from tests.nm.nm_processes import is_over
from tests.nm.nm_survivors import Survivors
from yaqd.model import ContainerSubState
from yaqd.model.child_processes import children_of

ONE, TWO = container_id(1), container_id(2)
MARKS = {"yarn.nodemanager.resource-monitor.interval-ms": "100"}
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="su asks for a password")
_APART = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
needs_namespaces = pytest.mark.skipif(
    subprocess.run([*_APART, "true"], capture_output=True).returncode != 0, reason="namespaces are not to be had here"
)
StartProcess = Callable[..., Awaitable[NodeProcess]]


@pytest.mark.slow
@needs_root
async def test_it_ends_soon_after_the_only_container(
    rm: FakeResourceManager, start_process: StartProcess, survivors: Survivors
) -> None:
    node = await start_process(MARKS)
    master = node.master(rm)
    await master.run(ONE, launch_context(survivors.command()))
    assert (await rm.end_of(ONE)).exit_status == 0
    processes = await survivors.processes()
    assert await gone(lambda: not all(is_over(process) for process in processes), 3)
    await master.client.close()


@pytest.mark.slow
@needs_root
async def test_it_is_let_be_while_another_runs_that_may_have_started_it(
    rm: FakeResourceManager, start_process: StartProcess, survivors: Survivors
) -> None:
    node = await start_process({**MARKS, "yaq.riffle.enabled": "true", "yaq.nm.warm-start.enabled": "true"})
    master = node.master(rm)
    assert await gone(lambda: len(node.helpers()) < 3), "a merger and two forkers"
    own = node.helpers()
    await master.run(TWO, launch_context("env -i setsid sleep 1001 & exec sleep 1000"))
    await rm.until(lambda: rm.sub_state(TWO) == ContainerSubState.RUNNING)
    await master.run(ONE, launch_context(survivors.command()))
    assert (await rm.end_of(ONE)).exit_status == 0
    processes = await survivors.processes()
    await asyncio.sleep(0.5)  # some looks of the monitor
    assert not all(is_over(process) for process in processes)
    assert rm.sub_state(TWO) == ContainerSubState.RUNNING
    await master.stop(TWO)
    await rm.end_of(TWO)
    assert await gone(lambda: not all(is_over(process) for process in processes), 3)
    assert own <= node.children(), "nothing that the NodeManager has started itself is hurt"
    await master.client.close()


@pytest.mark.slow
@needs_namespaces
async def test_the_first_process_of_a_namespace_lets_strangers_be(rm: FakeResourceManager, tmp_path: Path) -> None:
    """As in a Docker container, where it is given what `docker exec` leaves running."""
    node = await NodeProcess.start(rm, tmp_path, MARKS, before=_APART)
    (daemon,) = node.children()
    as_docker_exec = ("nsenter", "--target", str(daemon), "--pid", "--mount", "sh", "-c", "sleep 1003 &")
    assert await (await asyncio.create_subprocess_exec(*as_docker_exec)).wait() == 0
    assert await gone(lambda: not strangers(daemon))
    master = node.master(rm)
    await master.run(ONE, launch_context("true"))
    assert (await rm.end_of(ONE)).exit_status == 0
    await asyncio.sleep(0.5)  # some looks of the monitor
    assert strangers(daemon)
    await master.client.close()
    os.kill(daemon, signal.SIGTERM)
    await node.process.communicate()


def strangers(daemon: int) -> list[int]:
    return [pid for pid in children_of(daemon) if b"1003" in Path(f"/proc/{pid}/cmdline").read_bytes()]


class Held:
    is_over = False


def test_those_that_ran_when_it_was_first_seen_are_suspects_and_no_later_ones() -> None:
    unclaimed, first, second, third = Unclaimed(), Held(), Held(), Held()
    stray = (10, 1)
    assert unclaimed.look({stray}, [first, second]) == []
    first.is_over = True
    assert unclaimed.look({stray}, [second, third]) == []
    second.is_over = True
    assert unclaimed.look({stray}, [third]) == [stray]
    assert unclaimed.look({(10, 2)}, [third]) == [], "another process with the number"
    assert unclaimed.look({(11, 2)}, []) == [(11, 2)]
    assert unclaimed.new([stray]) == [stray] and unclaimed.new([stray]) == []
