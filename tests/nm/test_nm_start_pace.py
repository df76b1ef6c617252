"""Programs that start one after another where the processors are busy: who is held, and for how long."""

import signal
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nm_cluster import FakeResourceManager, Master, container_id, launch_context

from nm.daemon import NodeManager
from nm.start_pace import WINDOW_S, StartPace
from yaqd.model import ContainerId, ContainerSubState, ExitStatus
from yaqd.proto import yarn_common_pb2 as common

MOMENT_S = 2.5
ONE, TWO, THREE, FOUR = map(container_id, range(1, 5))


class Machine:
    """Processors, of which so many are busy from a time on."""

    def __init__(self, processors: int, moment_s: float = MOMENT_S) -> None:
        self.pace = StartPace(processors, moment_s)
        self.now = self.busy_s = 0.0

    def passes(self, seconds: float, busy: float) -> list[ContainerId]:
        """Those that start at the end of that time."""
        self.now += seconds
        self.busy_s += busy * seconds
        found = self.pace.due(self.now, self.busy_s)
        self.pace.validate()
        return found

    def ask(self, *containers: ContainerId) -> list[ContainerId]:
        for container in containers:
            self.pace.ask(container, self.now)
        return self.passes(0, 0)


def test_one_at_a_time_starts_while_the_processors_are_busy() -> None:
    machine = Machine(2)
    machine.passes(10, busy=1.9)
    machine.passes(10, busy=1.9)
    assert machine.ask(ONE, TWO, THREE) == [ONE]
    assert machine.passes(1, busy=2) == []
    machine.pace.forget(ONE)
    assert machine.passes(0.01, busy=2) == [TWO], "the one that was starting has ended"
    assert machine.passes(MOMENT_S - 1.1, busy=2) == []
    assert machine.passes(0.1, busy=2) == [THREE], "it has been held for as long as one may be"


def test_a_processor_that_idles_has_the_next_one_start() -> None:
    machine = Machine(2)
    machine.passes(10, busy=1)
    machine.passes(10, busy=1)
    assert machine.ask(ONE, TWO, THREE, FOUR) == [ONE], "on the processor that idled"
    assert machine.passes(WINDOW_S, busy=1.9) == []
    assert machine.passes(WINDOW_S, busy=1.4) == [TWO]
    assert machine.passes(WINDOW_S / 2, busy=0) == [], "too soon to say"
    assert machine.passes(WINDOW_S / 2, busy=2.8) == [THREE]


def test_an_idle_node_starts_as_many_as_it_has_processors_and_soon_all() -> None:
    machine = Machine(16)
    machine.passes(10, busy=0.2)
    machine.passes(10, busy=0.2)
    containers = [container_id(number) for number in range(1, 101)]
    assert machine.ask(*containers) == containers[:16]
    assert machine.passes(WINDOW_S, busy=1) == containers[16:48], "those need little"
    assert machine.passes(WINDOW_S, busy=2) == containers[48:]


def test_nothing_is_held_where_that_is_switched_off() -> None:
    machine = Machine(2, moment_s=0)
    machine.passes(10, busy=2)
    machine.passes(10, busy=2)
    assert machine.ask(ONE, TWO, THREE) == [ONE, TWO, THREE]


STEPS = st.lists(
    st.tuples(st.sampled_from(("ask", "over", "wait")), st.integers(1, 12), st.floats(0.01, 3), st.floats(0, 4)),
    max_size=80,
)


@given(processors=st.integers(1, 4), steps=STEPS)
def test_every_start_comes_once_in_order_and_in_time(
    processors: int, steps: list[tuple[str, int, float, float]]
) -> None:
    machine = Machine(processors)
    asked: dict[ContainerId, float] = {}
    running: set[ContainerId] = set()
    for step, number, seconds, busy in steps:
        container = container_id(number)
        if step == "ask" and container not in asked and container not in running:
            machine.pace.ask(container, machine.now)
            asked[container] = machine.now
        elif step == "over":
            machine.pace.forget(container)
            asked.pop(container, None)
            running.discard(container)
        due = machine.passes(seconds if step == "wait" else 0, min(busy, processors))
        assert due == list(asked)[: len(due)]
        running |= set(due)
        asked = {c: at for c, at in asked.items() if c not in due}
        assert machine.pace.is_holding == bool(asked)
        assert not asked or running, "held though no other starts"
        assert all(machine.now - at < MOMENT_S for at in asked.values())


@pytest.fixture
async def busy_node(start_node: Callable[..., Awaitable[NodeManager]], monkeypatch: pytest.MonkeyPatch) -> NodeManager:
    """Whose processors are always busy, and where a program counts as starting for a minute."""
    monkeypatch.setattr("nm.daemon.machine_cpu_s", lambda: 1000 * time.monotonic())
    return await start_node({"yaq.nm.containers.start-moment": "60s"})


async def test_held_programs_start_when_others_end_and_masters_at_once(
    rm: FakeResourceManager, busy_node: NodeManager
) -> None:
    master = Master(rm, busy_node)
    sleeps = launch_context("sleep 1000")

    def runs(container: ContainerId) -> Any:
        return rm.until(lambda: rm.sub_state(container) == ContainerSubState.RUNNING)

    await master.run(ONE, sleeps)
    await runs(ONE)
    await master.run(TWO, sleeps)
    await master.run(THREE, sleeps)
    await master.run(FOUR, sleeps, containerType=common.APPLICATION_MASTER)
    await runs(FOUR)
    assert [rm.sub_state(c) for c in (TWO, THREE)] == [ContainerSubState.SCHEDULED] * 2
    await master.stop(TWO)
    assert (await rm.end_of(TWO)).exit_status == ExitStatus.KILLED_BY_APPMASTER
    assert rm.sub_state(THREE) == ContainerSubState.SCHEDULED
    process = busy_node.runtime.containers[ONE].process
    assert process is not None
    process.signal_group(signal.SIGKILL)
    await runs(THREE)
    await master.client.close()
