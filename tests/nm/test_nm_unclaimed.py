"""What lost mark, environment and parents between two looks ends with the last container that may have started it."""

import asyncio
import os
from collections.abc import Awaitable, Callable

import pytest
from nm_cluster import FakeResourceManager, container_id, launch_context
from nm_faults import NodeProcess, gone
from nm_processes import is_over
from nm_survivors import Survivors

from nm.resources.unclaimed import Unclaimed
from nm.warm.marks import mark_of
from yaqd.model import ContainerSubState

ONE, TWO = container_id(1), container_id(2)
MARKS = {"yarn.nodemanager.resource-monitor.interval-ms": "300"}
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="su asks for a password")
StartProcess = Callable[..., Awaitable[NodeProcess]]


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


@needs_root
async def test_it_is_let_be_while_another_runs_that_may_have_started_it(
    rm: FakeResourceManager, start_process: StartProcess, survivors: Survivors
) -> None:
    node = await start_process({**MARKS, "yaq.riffle.enabled": "true", "yaq.nm.warm-start.enabled": "true"})
    master = node.master(rm)
    await asyncio.sleep(1)  # a merger and two forkers
    own = {pid for pid in node.children() if mark_of(pid) == mark_of(node.process.pid)}
    assert len(own) == 3
    await master.run(TWO, launch_context("env -i setsid sleep 1001 & exec sleep 1000"))
    await rm.until(lambda: rm.sub_state(TWO) == ContainerSubState.RUNNING)
    await master.run(ONE, launch_context(survivors.command()))
    assert (await rm.end_of(ONE)).exit_status == 0
    processes = await survivors.processes()
    await asyncio.sleep(1.2)  # some looks of the monitor
    assert not all(is_over(process) for process in processes)
    assert rm.sub_state(TWO) == ContainerSubState.RUNNING
    await master.stop(TWO)
    await rm.end_of(TWO)
    assert await gone(lambda: not all(is_over(process) for process in processes), 3)
    assert own <= set(node.children()), "nothing that the NodeManager has started itself is hurt"
    await master.client.close()


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
