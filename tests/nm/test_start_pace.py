"""Programs that start one after another where the processors are busy: who is held, and for how long."""

import asyncio
import errno
import math
import signal
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nm.containers.executor import ProcessSpec
from nm.daemon import NodeManager
from nm.launch.prepare import prepare
from nm.node_queue import JobReport, JobsReported
from nm.resources.process_scan import ProcessorNeed, processor_need
from nm.resources.processes import become_subreaper
from nm.resources.start_pace import REST_S, WINDOW_S, StartPace
from tests.nm.nm_cluster import FakeResourceManager, Master, container_id, launch_context
from yaqd.model import ContainerId, ContainerSubState, ExitStatus, Resource
from yaqd.policies.queueing.facts import JobFacts
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common

MOMENT_S = 2.5
ONE, TWO, THREE, FOUR = map(container_id, range(1, 5))


class Machine:
    """Processors, of which so many are busy from a time on."""

    def __init__(self, processors: int, moment_s: float = MOMENT_S) -> None:
        self.pace = StartPace(processors, moment_s)
        self.now = self.busy_s = 0.0
        #: of those that run: since when and until when each wants which part of a processor
        self.began: dict[ContainerId, tuple[float, float, float]] = {}

    def passes(self, seconds: float, busy: float) -> list[ContainerId]:
        """Those that start at the end of that time."""
        self.now += seconds
        self.busy_s += busy * seconds
        found = self.pace.due(self.now, self.busy_s, self.need)
        self.pace.validate()
        return found

    def begins(self, container: ContainerId, wants: float) -> None:
        self.pace.began(container, self.now)
        self.began[container] = self.now, math.inf, wants

    def rests(self, container: ContainerId) -> None:
        since, _, wants = self.began[container]
        self.began[container] = since, self.now, wants

    def need(self, container: ContainerId) -> ProcessorNeed | None:
        if container not in self.began:
            return None
        since, until, wants = self.began[container]
        return ProcessorNeed(wants * (min(self.now, until) - since), wants > 0.5 and until > self.now)

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


def test_nobody_waits_for_a_program_at_rest_however_busy_others_keep_the_processors() -> None:
    machine = Machine(2)
    machine.passes(10, busy=2)
    machine.passes(10, busy=2)
    containers = [container_id(number) for number in range(1, 12)]
    assert machine.ask(*containers) == [ONE]
    assert machine.passes(WINDOW_S, busy=2) == [], "it has no process yet"
    machine.begins(ONE, 0.01)
    assert machine.passes(REST_S / 2, busy=2) == [], "too soon to say"
    assert machine.passes(REST_S / 2, busy=2) == [TWO, THREE]
    machine.begins(TWO, 1)
    machine.begins(THREE, 0.01)
    assert machine.passes(2 * REST_S, busy=2) == containers[3:5]
    for container in containers[3:5]:
        machine.begins(container, 1)
    assert machine.passes(2 * REST_S, busy=2) == [], "all are at work"
    machine.rests(TWO)
    assert machine.passes(2 * REST_S, busy=2) == containers[5:7]


def test_how_long_starts_are_held_is_learned_from_the_last_ones() -> None:
    machine = Machine(2)
    machine.passes(10, busy=2)
    machine.passes(10, busy=2)
    assert machine.pace.held(machine.now).left_s == {}
    assert machine.ask(ONE, TWO, THREE) == [ONE]
    machine.passes(0.5, busy=2)
    held = machine.pace.held(machine.now)
    assert (dict(held.left_s), held.usual_s) == ({TWO: 2.0, THREE: 2.0}, MOMENT_S), "as long as may be"
    machine.pace.forget(ONE)
    assert machine.passes(0, busy=2) == [TWO]
    held = machine.pace.held(machine.now + 0.75)
    assert (dict(held.left_s), held.usual_s) == ({THREE: 0.0}, 0.5), "any moment: the last one was held no longer"
    machine.pace.forget(THREE)
    assert machine.pace.held(machine.now).left_s == {}, "it starts no more"


def test_nothing_is_held_where_that_is_switched_off() -> None:
    machine = Machine(2, moment_s=0)
    machine.passes(10, busy=2)
    machine.passes(10, busy=2)
    assert machine.ask(ONE, TWO, THREE) == [ONE, TWO, THREE]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(("ask", "begin", "over", "wait")), st.integers(1, 12), st.floats(0.01, 3), st.floats(0, 4)
    ),
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
        elif step == "begin" and container in running:
            machine.begins(container, seconds / 3)
        elif step == "over":
            machine.pace.forget(container)
            machine.began.pop(container, None)
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
    """Whose processors are always busy, with its programs too, and where one counts as starting for a minute."""
    monkeypatch.setattr("nm.daemon.machine_cpu_s", lambda: 1000 * time.monotonic())
    monkeypatch.setattr("nm.daemon.processor_need", lambda pid: ProcessorNeed(time.monotonic(), True))
    return await start_node({"yaq.nm.containers.start-moment": "60s"})


def runs(rm: FakeResourceManager, container: ContainerId) -> Awaitable[None]:
    return rm.until(lambda: rm.sub_state(container) == ContainerSubState.RUNNING)


async def test_held_programs_start_when_others_end_and_masters_at_once(
    rm: FakeResourceManager, busy_node: NodeManager
) -> None:
    master = Master(rm, busy_node)
    sleeps = launch_context("sleep 1000")
    await master.run(ONE, sleeps)
    await runs(rm, ONE)
    await master.run(TWO, sleeps)
    await master.run(THREE, sleeps)
    await master.run(FOUR, sleeps, containerType=common.APPLICATION_MASTER)
    await runs(rm, FOUR)
    assert [rm.sub_state(c) for c in (TWO, THREE)] == [ContainerSubState.SCHEDULED] * 2
    await master.stop(TWO)
    assert (await rm.end_of(TWO)).exit_status == ExitStatus.KILLED_BY_APPMASTER
    assert rm.sub_state(THREE) == ContainerSubState.SCHEDULED
    runtime = busy_node.runtime
    estimates = {runtime.containers[ONE].grant.priority: 100.0}
    runtime.order([JobsReported((JobReport(ONE.application_id, JobFacts(), estimates=estimates),))])
    runtime.set_capacity(Resource())
    # a newcomer starts when all have ended: THREE, which has 100 s once it starts, held for as long as one may be
    assert 150 < runtime.queue_snapshot().wait_s <= 160
    process = busy_node.runtime.containers[ONE].process
    assert process is not None
    process.signal_group(signal.SIGKILL)
    await runs(rm, THREE)
    three = runtime.containers[THREE]
    began_at = runtime._driver.queue._room.running[THREE].task.since
    assert began_at >= three.turn_at + three.held_s > three.turn_at, "its time does not count from its turn"
    await master.client.close()


@pytest.mark.parametrize("reads_times", [True, False])
async def test_how_long_one_is_held_is_told_by_itself_while_it_is_and_at_its_end(
    rm: FakeResourceManager,
    start_node: Callable[..., Awaitable[NodeManager]],
    monkeypatch: pytest.MonkeyPatch,
    reads_times: bool,
) -> None:
    monkeypatch.setattr("nm.daemon.machine_cpu_s", lambda: 1000 * time.monotonic())
    monkeypatch.setattr("nm.daemon.processor_need", lambda pid: ProcessorNeed(time.monotonic(), True))
    rm.capabilities = ["counts-vcores", *["yaq-queue"] * reads_times]
    node = await start_node({"yaq.nm.containers.start-moment": "60s"})
    master = Master(rm, node)

    def told(container: ContainerId) -> common.ContainerStatus | None:
        said = rm.heartbeats[-1].node_status.containersStatuses
        return next((one for one in said if convert.container_id(one.container_id) == container), None)

    await master.run(ONE, launch_context("sleep 1000"))
    await runs(rm, ONE)
    await master.run(TWO, launch_context("true"))
    await rm.until(lambda: node.runtime.containers[TWO].is_held)
    held = await rm.until(
        lambda: (one := told(TWO)) is not None and (one.yaq_times.held_ms > 100 or not reads_times) and one
    )
    # nobody was held before: as long as may be
    starts_in_ms, since_ms = held.yaq_times.starts_in_ms, held.yaq_times.held_ms
    assert starts_in_ms == pytest.approx(60_000 - since_ms, abs=20) if reads_times else not starts_in_ms
    assert held.HasField("yaq_times") is reads_times
    assert (one := told(ONE)) is not None and not one.HasField("yaq_times")
    process = node.runtime.containers[ONE].process
    assert process is not None
    process.signal_group(signal.SIGKILL)
    end = await rm.end_of(TWO)
    assert end.HasField("yaq_times") is reads_times
    if reads_times:
        times = end.yaq_times
        assert times.held_ms >= held.yaq_times.held_ms > times.queued_ms, "no time in the queue"
        first = (await rm.end_of(ONE)).yaq_times
        assert first.HasField("held_ms") and first.held_ms < 100, "its turn came at once"
    await master.client.close()


async def test_a_program_that_sleeps_holds_nobody_and_one_that_works_does(
    rm: FakeResourceManager, start_node: Callable[..., Awaitable[NodeManager]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they want is read from the kernel."""
    monkeypatch.setattr("nm.daemon.machine_cpu_s", lambda: 1000 * time.monotonic())
    node = await start_node({"yaq.nm.containers.start-moment": "60s"})
    master = Master(rm, node)
    await master.run(ONE, launch_context("sleep 1000"))
    await runs(rm, ONE)
    others = (TWO, THREE, FOUR)
    for container in others:
        await master.run(container, launch_context("bash -c 'while :; do :; done'; true"))
    # where one is at rest two more start, whichever were ready first
    first, second = await rm.until(
        lambda: len(found := [p for c in others if (p := node.runtime.containers[c].process)]) == 2 and found
    )
    held = next(c for c in others if node.runtime.containers[c].process not in (first, second))
    await rm.until(lambda: node.runtime.containers[held].is_held)
    await rm.until(lambda: min(had_s(first.pid), had_s(second.pid)) > 0.5)
    assert node.runtime.containers[held].is_held
    for process in (first, second):
        process.signal_group(signal.SIGKILL)
    await runs(rm, held)
    await master.client.close()


def had_s(pid: int) -> float:
    need = processor_need(pid)
    assert need is not None, "the kernel tells"
    return need.had_s


async def test_a_kill_while_it_is_prepared_waits_for_no_turn_and_nothing_is_started(
    rm: FakeResourceManager, busy_node: NodeManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared, may_go_on = threading.Event(), threading.Event()

    def slow(**given: Any) -> ProcessSpec:
        prepared.set()
        assert may_go_on.wait(30)
        return prepare(**given)

    master = Master(rm, busy_node)
    await master.run(ONE, launch_context("sleep 1000"))
    await runs(rm, ONE)
    monkeypatch.setattr("nm.containers.launcher.prepare", slow)
    await master.run(TWO, launch_context("sleep 1000"))
    await asyncio.to_thread(prepared.wait, 30)
    await master.stop(TWO)
    may_go_on.set()
    end = await rm.end_of(TWO)
    assert end.exit_status == ExitStatus.KILLED_BY_APPMASTER
    assert "could not be launched" not in end.diagnostics
    assert "Exit code" not in end.diagnostics, "it had no process"
    await master.client.close()


async def test_where_nobody_can_say_how_busy_it_is_nothing_is_held_and_nothing_breaks(
    rm: FakeResourceManager, busy_node: NodeManager
) -> None:
    pacer = busy_node.runtime._course._launcher._parts.pacer
    busy_s, fails = pacer._busy_s, False

    def fallible() -> float:
        if fails:
            raise OSError(errno.EMFILE, "Too many open files")
        return busy_s()

    pacer._busy_s = fallible
    master = Master(rm, busy_node)
    for container in (ONE, TWO, THREE):
        await master.run(container, launch_context("sleep 1000"))
    await rm.until(lambda: sum(held.is_held for held in busy_node.runtime.containers.values()) == 2)
    fails = True
    await runs(rm, TWO)
    await runs(rm, THREE)
    await master.stop(ONE)
    assert (await rm.end_of(ONE)).exit_status == ExitStatus.KILLED_BY_APPMASTER
    await master.client.close()


async def test_what_is_left_of_others_is_reaped_while_one_is_held(
    rm: FakeResourceManager, busy_node: NodeManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    become_subreaper()
    monkeypatch.setattr(busy_node._monitor, "_owns_process", True)
    master = Master(rm, busy_node)
    await master.run(ONE, launch_context("(setsid true &) ; sleep 1000"))
    await runs(rm, ONE)
    await master.run(TWO, launch_context("sleep 1000"))
    await rm.until(lambda: busy_node.runtime.containers[TWO].is_held)

    def orphans() -> list[psutil.Process]:
        return [child for child in psutil.Process().children() if child.status() == psutil.STATUS_ZOMBIE]

    await rm.until(orphans)
    while orphans():
        await busy_node._monitor.tick()
    assert busy_node.runtime.containers[TWO].is_held
    await master.client.close()
