"""Applications are held to their cores by signals, counted, and let go of whatever happens: real processes."""

import asyncio
import itertools
import os
import resource
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import psutil
import pytest

from nm.daemon import NodeManager
from nm.resources.process_scan import machine_cpu_s
from tests.nm.nm_cluster import FakeResourceManager, Master, container_id, launch_context
from tests.nm.nm_faults import NodeProcess, gone, processes_of
from tests.nm.nm_processes import is_over
from tests.nm.throttle.nm_throttled import (
    APP,
    BUSY,
    ONE,
    SIGNALS,
    kernel_s,
    order,
    run_busy,
    said_s,
    stopped,
    used_s,
)
from yaqd.model import ContainerSubState, ExitStatus
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server

StartNode = Callable[..., Awaitable[NodeManager]]
StartProcess = Callable[..., Awaitable[NodeProcess]]


@pytest.fixture
async def busy(rm: FakeResourceManager, start_node: StartNode) -> AsyncIterator[NodeManager]:
    """A node with a container of four busy workers, under a ResourceManager that orders cores."""
    rm.capabilities.append("cores")
    node = await start_node(SIGNALS)
    master = await run_busy(rm, node)
    yield node
    await master.client.close()


async def test_a_node_says_that_it_holds_cores(rm: FakeResourceManager, node: NodeManager) -> None:
    said = rm.registrations[0].yaq_capabilities
    assert "cores" in said.understands and said.processors == psutil.cpu_count()
    assert abs(said.counts_since_ms - time.time() * 1000) < 60_000


async def test_a_node_that_is_not_to_says_nothing(rm: FakeResourceManager, start_node: StartNode) -> None:
    await start_node({"yaq.nm.throttle": "off"})
    said = rm.registrations[0].yaq_capabilities
    assert "cores" not in said.understands and not said.HasField("counts_since_ms")


async def test_a_resource_manager_that_does_not_say_the_word_is_told_nothing(
    rm: FakeResourceManager, start_node: StartNode
) -> None:
    node = await start_node(SIGNALS)
    master = await run_busy(rm, node)
    order(rm, {APP: 50})
    await rm.until(lambda: not rm.orders)
    seen = len(rm.heartbeats)
    await rm.until(lambda: len(rm.heartbeats) > seen + 5)
    assert not any(h.node_status.yaq_cpu for h in rm.heartbeats) and not stopped()
    await master.client.close()


async def test_what_is_counted_is_what_the_kernel_counts(rm: FakeResourceManager, busy: NodeManager) -> None:
    order(rm, {APP: None})
    await rm.until(lambda: said_s(rm))
    before_s = used_s()
    said = await rm.until(lambda: (s := said_s(rm)) is not None and s > before_s and s)
    assert said <= used_s() + 0.1 and not stopped()


@pytest.mark.slow
async def test_four_busy_workers_are_held_to_a_fifth_of_a_core(rm: FakeResourceManager, busy: NodeManager) -> None:
    order(rm, {APP: 200})
    assert await gone(lambda: not stopped())
    began_s, began = used_s(), time.monotonic()
    await asyncio.sleep(4.0)  # what it is about: how much is used in a given time
    used, passed = used_s() - began_s, time.monotonic() - began
    assert 0.2 * passed * 0.6 <= used <= 0.2 * passed * 1.05 + 0.1
    assert said_s(rm) == pytest.approx(used_s(), abs=0.15)
    order(rm, {APP: None})
    await rm.until(lambda: not rm.orders)
    assert await gone(stopped) and not stopped()


async def test_what_is_not_listed_any_more_goes_on(rm: FakeResourceManager, busy: NodeManager) -> None:
    order(rm, {APP: 10})
    assert await gone(lambda: len(stopped()) < 5)
    order(rm, {})
    await rm.until(lambda: not rm.orders)
    assert await gone(stopped)
    seen = len(rm.heartbeats)
    await rm.until(lambda: len(rm.heartbeats) > seen + 3)
    assert said_s(rm) is None and not stopped()


async def test_a_new_registration_lets_everything_go_on(rm: FakeResourceManager, busy: NodeManager) -> None:
    order(rm, {APP: 10})
    assert await gone(lambda: len(stopped()) < 5)
    rm.orders.append(lambda response: setattr(response, "nodeAction", 1))
    await rm.until(lambda: len(rm.registrations) > 1)
    assert await gone(stopped)


async def test_masters_are_never_held(rm: FakeResourceManager, start_node: StartNode) -> None:
    rm.capabilities.append("cores")
    node = await start_node(SIGNALS)
    master = Master(rm, node)
    await master.run(container_id(2), launch_context(BUSY), containerType=common.APPLICATION_MASTER)
    await rm.until(lambda: rm.sub_state(container_id(2)) == ContainerSubState.RUNNING)
    await master.run(ONE, launch_context(BUSY))
    await rm.until(lambda: rm.sub_state(ONE) == ContainerSubState.RUNNING)
    order(rm, {APP: 20})
    assert await gone(lambda: len(stopped()) < 5)
    assert not stopped(container_id(2))
    said = await rm.until(lambda: said_s(rm))
    assert said < used_s() + 0.2, "nor counted"
    await master.client.close()


async def test_what_is_held_hears_that_it_is_to_end(
    rm: FakeResourceManager, start_node: StartNode, tmp_path: Path
) -> None:
    """SIGTERM does nothing to a stopped process until it goes on."""
    rm.capabilities.append("cores")
    node = await start_node(SIGNALS | {"yarn.nodemanager.sleep-delay-before-sigkill.ms": "20000"})
    (tmp_path / "hears.sh").write_text(
        f"trap 'echo ended > {tmp_path}/said; exit 3' TERM; touch {tmp_path}/ready; while :; do :; done"
    )
    master = await run_busy(rm, node, f"exec bash {tmp_path}/hears.sh", 1)
    assert await gone(lambda: not (tmp_path / "ready").exists())
    order(rm, {APP: 5})
    assert await gone(lambda: not stopped())
    await master.stop(ONE)
    assert (await rm.end_of(ONE)).exit_status == ExitStatus.KILLED_BY_APPMASTER
    assert (tmp_path / "said").read_text() == "ended\n"
    await master.client.close()


@pytest.mark.slow
async def test_every_group_runs_at_least_once_a_second(
    rm: FakeResourceManager, start_node: StartNode, tmp_path: Path
) -> None:
    rm.capabilities.append("cores")
    node = await start_node(SIGNALS)
    count = "import time, sys\nwhile True:\n open(sys.argv[1], 'a').write(f'{time.monotonic()}\\n')\n sum(range(20000))"
    (tmp_path / "count.py").write_text(count)
    master = await run_busy(rm, node, f"exec python3 {tmp_path}/count.py {tmp_path}/beats", 1)
    assert await gone(lambda: not (tmp_path / "beats").exists())
    order(rm, {APP: 0})
    assert await gone(lambda: not stopped())
    await asyncio.sleep(4.0)  # what it is about: how often it runs in a given time
    beats = [float(line) for line in (tmp_path / "beats").read_text().split()[:-1]]
    since = [after - before for before, after in itertools.pairwise(beats)]
    assert max(since) < 2 and sum(1 for pause in since if pause > 0.5) >= 2
    await master.client.close()


@pytest.mark.slow
async def test_daemons_that_left_the_process_group_are_held_too(
    rm: FakeResourceManager, start_node: StartNode, tmp_path: Path
) -> None:
    rm.capabilities.append("cores")
    node = await start_node(SIGNALS)
    (tmp_path / "daemons.sh").write_text(
        f"env -i setsid bash -c 'echo $$ > {tmp_path}/first; while :; do :; done' &\n"
        f"env -i setsid bash -c '(echo $BASHPID > {tmp_path}/second; while :; do :; done) & exit' &\n"
        "exec sleep 1000\n"
    )
    master = await run_busy(rm, node, f"bash {tmp_path}/daemons.sh", 1)
    assert await gone(lambda: not all((tmp_path / name).exists() for name in ("first", "second")))
    pids = [int((tmp_path / name).read_text()) for name in ("first", "second")]
    daemons = [psutil.Process(pid) for pid in pids]
    order(rm, {APP: 100})
    assert await gone(lambda: any(one.status() != psutil.STATUS_STOPPED for one in daemons))
    # By the kernel: what the node says is a heartbeat old, and what ran before the order came would be counted too.
    began_s, began = kernel_s(pids), time.monotonic()
    await asyncio.sleep(3.0)  # what it is about: how much is used in a given time
    assert kernel_s(pids) - began_s <= 0.1 * (time.monotonic() - began) * 1.1 + 0.1
    assert said_s(rm) == pytest.approx(kernel_s(pids), abs=0.15)
    await master.stop(ONE)
    await rm.end_of(ONE)
    assert all(is_over(one) for one in daemons)
    await master.client.close()


async def test_what_lost_its_mark_is_charged_and_not_held(
    rm: FakeResourceManager, start_node: StartNode, tmp_path: Path
) -> None:
    """It would stay stopped for ever if its node were killed. The others pay for it."""
    rm.capabilities.append("cores")
    node = await start_node(SIGNALS | {"yarn.nodemanager.resource-monitor.interval-ms": "50"})
    (tmp_path / "lost.sh").write_text(
        f"(ulimit -S -x unlimited; setsid bash -c 'echo $$ > {tmp_path}/lost; while :; do :; done') &\n"
        "while :; do :; done\n"
    )
    master = await run_busy(rm, node, f"exec bash {tmp_path}/lost.sh", 2)
    assert await gone(lambda: not (tmp_path / "lost").exists() or not (tmp_path / "lost").read_text())
    lost = psutil.Process(int((tmp_path / "lost").read_text()))
    order(rm, {APP: 100})
    held = await rm.until(lambda: node.runtime.containers[ONE].process)
    assert await gone(lambda: held.pid not in {one.pid for one in stopped()})
    assert await gone(lambda: (said_s(rm) or 0.0) < sum(lost.cpu_times()[:2]))
    assert lost.status() != psutil.STATUS_STOPPED
    await master.client.close()


@pytest.mark.slow
async def test_a_resource_manager_that_is_not_heard_of_holds_nothing(
    rm: FakeResourceManager, busy: NodeManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nm.throttle.throttle._SILENT_S", 1.0)
    order(rm, {APP: 10})
    assert await gone(lambda: len(stopped()) < 5)
    await rm.rpc.stop()
    assert await gone(stopped)
    assert busy.runtime.is_running(ONE)


@pytest.mark.slow
async def test_orders_that_cannot_be_do_no_harm(rm: FakeResourceManager, busy: NodeManager) -> None:
    def absurd(response: server.NodeHeartbeatResponse) -> None:
        for number in range(20_000):
            response.yaq_cores.apps.add(milli=-5).application_id.id = number
        response.yaq_cores.apps.add(milli=2**31 - 1)
        response.yaq_cores.apps.add()

    rm.orders.append(absurd)
    await rm.until(lambda: not rm.orders)
    order(rm, {APP: 2**31 - 1})
    assert await rm.until(lambda: said_s(rm)) and not stopped()
    assert len(rm.heartbeats[-1].node_status.yaq_cpu) == 1, "of what is here alone"


async def test_an_application_that_is_gone_is_forgotten(rm: FakeResourceManager, busy: NodeManager) -> None:
    order(rm, {APP: 10})
    assert await gone(lambda: len(stopped()) < 5)
    rm.orders.append(lambda response: response.applications_to_cleanup.append(convert.application_id_pb(APP)))
    await rm.end_of(ONE)
    assert await rm.until(lambda: said_s(rm) is None) and not processes_of(ONE)
    order(rm, {APP: 20, container_id(1, 2).application_id: 30})
    seen = len(rm.heartbeats)
    await rm.until(lambda: len(rm.heartbeats) > seen + 3)
    assert said_s(rm) is None


SHORT = "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done"


@pytest.mark.slow
@pytest.mark.parametrize("daemons", [False, True])
async def test_processes_that_come_and_go_between_looks_are_counted(
    daemons: bool, rm: FakeResourceManager, start_node: StartNode, tmp_path: Path
) -> None:
    """By what their parents waited for, or where nobody waits as what this node has to clear away."""
    rm.capabilities.append("cores")
    node = await start_node(SIGNALS)
    how = f"(setsid bash -c '{SHORT}' &)" if daemons else f"bash -c '{SHORT}'"
    script = f"for round in {' '.join('x' * 60)}; do {how}; done; sleep 0.5; touch {tmp_path}/done; exec sleep 1000\n"
    (tmp_path / "short.sh").write_text(script)
    master = Master(rm, node)
    order(rm, {APP: None})
    await master.run(ONE, launch_context(f"exec bash {tmp_path}/short.sh"))
    began = machine_cpu_s()
    assert await gone(lambda: not (tmp_path / "done").exists(), 60.0)
    seen = len(rm.heartbeats)
    assert await gone(lambda: len(rm.heartbeats) < seen + 30)
    said, spent = said_s(rm), machine_cpu_s() - began
    one_s = await asyncio.to_thread(_cost_s)
    assert said is not None and 60 * one_s * 0.6 <= said <= spent
    await master.client.close()


def _cost_s() -> float:
    """Processor time of one of the short processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(5):
        subprocess.run(("bash", "-c", SHORT), check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / 5


async def test_what_somebody_lets_go_on_is_stopped_again(rm: FakeResourceManager, busy: NodeManager) -> None:
    order(rm, {APP: 20})
    assert await gone(lambda: len(stopped()) < 5)
    for _ in range(3):
        for pid in processes_of(ONE):
            os.kill(pid, signal.SIGCONT)
        assert await gone(lambda: len(stopped()) < 5)


@pytest.mark.slow
@pytest.mark.parametrize("with_forkers", [False, True])
async def test_nothing_stays_stopped_when_the_node_is_killed(
    with_forkers: bool, rm: FakeResourceManager, start_process: StartProcess
) -> None:
    """Its forkers end what it held, or where they are killed too the next node there."""
    rm.capabilities.append("cores")
    node = await start_process(SIGNALS)
    master = node.master(rm)
    await master.run(ONE, launch_context(BUSY))
    await rm.until(lambda: rm.sub_state(ONE) == ContainerSubState.RUNNING)
    assert await gone(lambda: len(processes_of(ONE)) < 5)
    order(rm, {APP: 10})
    assert await gone(lambda: len(stopped()) < 5)
    held = stopped()
    await master.client.close()
    await node.kill(with_forkers=with_forkers)
    if with_forkers:
        again = await start_process(SIGNALS)
        assert await gone(lambda: processes_of(ONE))
        again.process.terminate()
        assert await again.process.wait() == 0
    assert await gone(lambda: not all(is_over(process) for process in held)) and not processes_of(ONE)


@pytest.mark.slow
async def test_what_was_stopped_and_lost_its_mark_goes_on_at_the_next_start(
    rm: FakeResourceManager, start_process: StartProcess, tmp_path: Path
) -> None:
    """It is in its container's process group, which nobody ends where the node dies with its forkers."""
    rm.capabilities.append("cores")
    node = await start_process(SIGNALS)
    master = node.master(rm)
    (tmp_path / "lost.sh").write_text(
        f"(ulimit -S -x unlimited; exec bash -c 'echo $$ > {tmp_path}/lost; while :; do :; done') & wait\n"
    )
    await master.run(ONE, launch_context(f"exec bash {tmp_path}/lost.sh"))
    assert await gone(lambda: not (tmp_path / "lost").exists() or not (tmp_path / "lost").read_text())
    lost = psutil.Process(int((tmp_path / "lost").read_text()))
    await rm.until(lambda: rm.sub_state(ONE) == ContainerSubState.RUNNING)
    order(rm, {APP: 10})
    assert await gone(lambda: lost.status() != psutil.STATUS_STOPPED)
    await master.client.close()
    await node.kill(with_forkers=True)
    lost.suspend()  # where its node died while it ran
    await start_process(SIGNALS)
    assert await gone(lambda: not is_over(lost) and lost.status() == psutil.STATUS_STOPPED)
    lost.kill()
