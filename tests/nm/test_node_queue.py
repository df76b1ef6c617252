"""Guaranteed containers that the ResourceManager has wait at a real node: order, bound, what heartbeats say of them."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from nm.containers.states import Stage
from nm.daemon import NodeManager
from tests.nm.nm_cluster import USER, FakeResourceManager, Master, application, container_id, launch_context, log_text
from tests.nm.nm_faults import gone
from tests.nm.nm_ordered_queue import (
    FOUR,
    ONE,
    SLOT,
    THREE,
    TWO,
    TWO_SLOTS,
    known,
    order,
    queue_of,
    read_all,
    run,
    settings,
)
from yaqd.ipc import RemoteException
from yaqd.model import ContainerState, ContainerSubState, ExitStatus, Resource
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto.protocols import ContainerManagementProtocol


@pytest.fixture
async def node(rm: FakeResourceManager, start_node: Callable[..., Any]) -> NodeManager:
    rm.capabilities = ["counts-vcores", "yaq-queue"]
    started: NodeManager = await start_node(TWO_SLOTS)
    return started


async def test_waiting_ones_start_by_the_order_and_are_told_of(
    rm: FakeResourceManager, node: NodeManager, master: Master
) -> None:
    assert "yaq-queue" in rm.registrations[0].yaq_capabilities.understands
    await order(rm, settings())
    for one in (ONE, TWO):
        await run(master, one, "sleep 1000", known(60_000))
    await rm.until(lambda: queue_of(rm).running == 2)
    await rm.until(lambda: rm.sub_state(ONE) == ContainerSubState.RUNNING)  # on a busy machine a moment later
    await run(master, THREE, "sleep 1000", known(5_000))
    await run(master, FOUR, "true", known(1_000))
    await rm.until(lambda: queue_of(rm).queued == 2)
    queue = queue_of(rm)
    assert queue.tells_ends and queue.refill_ms >= 0
    assert [convert.container_id(w.container_id) for w in queue.waiting] == [FOUR, THREE], "the shorter one first"
    # both slots are free in a minute; then come the second, the one behind it and the newcomer
    assert 50_000 < queue.waiting[0].expected_ms <= 60_000 <= queue.wait_ms + 2_000
    load = rm.heartbeats[-1].node_status.opportunistic_containers_status
    assert (load.wait_queue_length, load.estimated_queue_wait_time) == (2, queue.wait_ms)
    waiting = (await master.statuses(FOUR)).status[0]
    assert (waiting.state, waiting.container_sub_state) == (ContainerState.RUNNING, ContainerSubState.SCHEDULED)
    await master.stop(ONE)
    end = await rm.end_of(FOUR)
    assert end.exit_status == 0 and end.HasField("yaq_times") and end.yaq_times.queued_ms > 0
    await rm.until(lambda: node.runtime.containers[THREE].stage is Stage.RUNNING)
    ended = await rm.end_of(ONE)
    assert ended.yaq_times.run_ms > 0


async def test_a_node_that_has_run_a_master_alone_says_that_nobody_knows_when_it_ends(
    rm: FakeResourceManager, node: NodeManager, master: Master
) -> None:
    await rm.until(lambda: queue_of(rm).HasField("wait_ms"))
    assert queue_of(rm).wait_ms == 0
    fields = {"resource": Resource(1000, 2), "containerType": common.APPLICATION_MASTER}
    await master.run(ONE, launch_context("sleep 1000"), **fields)
    await rm.until(lambda: queue_of(rm).running == 1)
    assert queue_of(rm).wait_ms == -1


async def test_beyond_the_hard_bound_goes_back_without_blame(
    rm: FakeResourceManager, node: NodeManager, master: Master
) -> None:
    await order(rm, settings(max_queued=0))
    assert node.runtime.queue_settings.enabled
    await run(master, ONE, "sleep 1000", resource=Resource(1000, 1))
    waiting = [container_id(n) for n in range(2, 2 + 16)]
    for one in waiting:
        await run(master, one, "true")
    await rm.until(lambda: queue_of(rm).queued == 16)
    assert queue_of(rm).wait_ms == -1 and not queue_of(rm).waiting[0].HasField("expected_ms"), "nobody knows how long"
    assert rm.heartbeats[-1].node_status.opportunistic_containers_status.estimated_queue_wait_time == -1
    await run(master, container_id(100), "true")
    end = await rm.end_of(container_id(100))
    assert end.exit_status == ExitStatus.PREEMPTED and "queue is full (16 containers wait)" in end.diagnostics


async def test_a_master_starts_at_once(rm: FakeResourceManager, node: NodeManager, master: Master) -> None:
    await order(rm, settings())
    for one in (ONE, TWO):
        await run(master, one, "sleep 1000")
    await run(master, THREE, "sleep 1000")
    await rm.until(lambda: queue_of(rm).queued == 1)
    fields = {"resource": SLOT, "containerType": common.APPLICATION_MASTER}
    await master.run(FOUR, launch_context("sleep 1000"), **fields)
    await rm.until(lambda: rm.sub_state(FOUR) == ContainerSubState.RUNNING)
    assert rm.sub_state(THREE) == ContainerSubState.SCHEDULED


async def test_who_waited_too_long_goes_back(rm: FakeResourceManager, node: NodeManager, master: Master) -> None:
    await order(rm, settings(max_wait_ms=300))
    await run(master, ONE, "sleep 1000", resource=Resource(1000, 1))
    await run(master, TWO, "true")
    end = await rm.end_of(TWO)
    assert end.exit_status == ExitStatus.PREEMPTED
    assert "yaq.queue.max-wait" in end.diagnostics and end.yaq_times.queued_ms >= 300 and end.yaq_times.run_ms == 0


async def test_later_estimates_change_the_order(rm: FakeResourceManager, node: NodeManager, master: Master) -> None:
    await order(rm, settings(order="srjf"))
    other = Master(rm, node, app=2)
    rival = container_id(1, app=2)
    await run(master, ONE, "sleep 1000", known(1_000), Resource(1000, 1))
    await run(master, TWO, "sleep 1000", known(1_000), Resource(1000, 1))
    await other.run(rival, launch_context("sleep 1000"), resource=Resource(1000, 1), yaq_task=known(1_000))
    await rm.until(lambda: queue_of(rm).queued == 2)

    def works(mine_ms: int, other_ms: int) -> server.NodeQueueOrders:
        orders = server.NodeQueueOrders()
        for number, work_ms in ((1, mine_ms), (2, other_ms)):
            job = orders.jobs.add(remaining_work_ms=work_ms, arrival_ms=1000)
            job.application_id.CopyFrom(convert.application_id_pb(application(number)))
            job.estimates.add(priority=20, estimate_ms=90_000)
        return orders

    await order(rm, works(500_000, 400_000))
    await rm.until(lambda: convert.container_id(queue_of(rm).waiting[0].container_id) == rival)
    assert 80_000 < queue_of(rm).waiting[0].expected_ms <= 90_000, "of the running one, too"
    await order(rm, works(300_000, 400_000))
    await rm.until(lambda: convert.container_id(queue_of(rm).waiting[0].container_id) == TWO)
    await other.client.close()


async def test_absurd_orders_do_no_harm(
    rm: FakeResourceManager, node: NodeManager, master: Master, caplog: pytest.LogCaptureFixture
) -> None:
    absurd = settings(
        max_queued=-5, order="by-luck", starve_ms=-(1 << 62), starve_ratio=float("nan"), max_wait_ms=-1, scope="moon"
    )
    for _ in range(2):
        await order(rm, absurd)
    assert len([r for r in caplog.records if "by-luck" in r.getMessage()]) == 1
    await order(rm, settings(max_queued=(1 << 31) - 1, starve_ratio=float("inf"), max_wait_ms=(1 << 63) - 1))
    await run(master, ONE, "sleep 1000", known(-7, -(1 << 63)), Resource(1000, 1))
    await run(master, TWO, "true", known((1 << 63) - 1))
    await rm.until(lambda: queue_of(rm).queued == 1)
    await master.stop(ONE)
    assert (await rm.end_of(TWO)).exit_status == 0


async def test_a_third_partys_order_that_raises_ends_no_node(
    rm: FakeResourceManager,
    node: NodeManager,
    master: Master,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (tmp_path / "upset_policies.py").write_text("def upset(task, job): return 1 / 0\n")
    info = tmp_path / "upset_policies-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: upset-policies\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[yaqd.order]\nupset = upset_policies:upset\n")
    monkeypatch.syspath_prepend(tmp_path)
    await run(master, ONE, "sleep 1000", resource=Resource(1000, 1))
    await order(rm, settings(order="upset", scope="queue"))
    for one in (TWO, THREE):
        await run(master, one, "sleep 1000", resource=Resource(1000, 1))
    await rm.until(lambda: queue_of(rm).queued == 2)
    assert [convert.container_id(w.container_id) for w in queue_of(rm).waiting] == [TWO, THREE]
    await master.stop(ONE)
    await rm.until(lambda: rm.sub_state(TWO) == ContainerSubState.RUNNING)
    assert rm.sub_state(THREE) == ContainerSubState.SCHEDULED and not node.ended.done()
    (said,) = [r.getMessage() for r in caplog.records if "upset" in r.getMessage() and r.levelname == "ERROR"]
    assert "gives way to fifo until a restart: ZeroDivisionError: division by zero" in said and "line 1" in said


def the_file(root: Path, pattern: str) -> str:
    (found,) = root.glob(pattern)
    return found.read_text()


def work_folder(node: NodeManager, container: Any) -> Path:
    return node.directories.app_dirs(USER, container.application_id)[0] / str(container)


async def test_what_waits_is_written_already_and_leaves_nothing_when_it_goes_back(
    rm: FakeResourceManager, node: NodeManager, master: Master
) -> None:
    await order(rm, settings())
    await run(master, ONE, "sleep 1000", resource=Resource(1000, 1))
    for one in (TWO, THREE):
        await run(master, one, f"echo {one}")
    await rm.until(lambda: all((work_folder(node, c) / "launch_container.sh").exists() for c in (TWO, THREE)))
    logs = node.settings.log_dirs[0] / str(THREE.application_id)
    await master.stop(THREE)
    assert (await rm.end_of(THREE)).exit_status == ExitStatus.KILLED_BY_APPMASTER
    await rm.until(lambda: not work_folder(node, THREE).exists())
    assert not (logs / str(THREE)).exists() and (logs / str(TWO)).exists()
    await master.stop(ONE)
    assert (await rm.end_of(TWO)).exit_status == 0
    assert log_text(node, TWO, "prelaunch.out")


async def test_a_disk_that_goes_bad_while_a_container_waits_is_not_used(
    rm: FakeResourceManager, node: NodeManager, master: Master, tmp_path: Path
) -> None:
    await order(rm, settings())
    await run(master, ONE, "sleep 1000", resource=Resource(1000, 1))
    await run(master, TWO, "pwd > $PWD/../where")
    await rm.until(lambda: (work_folder(node, TWO) / "launch_container.sh").exists())
    (tmp_path / "other").mkdir()
    node.directories.set_usable([tmp_path / "other"], node.settings.log_dirs, "")
    await master.stop(ONE)
    assert (await rm.end_of(TWO)).exit_status == 0
    assert the_file(tmp_path, "other/usercache/*/appcache/*/where").strip().endswith(str(TWO))


async def test_the_next_starts_before_the_last_ones_exit_code_is_known(
    rm: FakeResourceManager, node: NodeManager, master: Master, monkeypatch: pytest.MonkeyPatch
) -> None:
    await order(rm, settings())
    await run(master, ONE, "sleep 1000", resource=Resource(1000, 1))
    await run(master, TWO, "sleep 1000")
    await rm.until(lambda: rm.sub_state(ONE) == ContainerSubState.RUNNING and queue_of(rm).queued == 1)
    may_be_reaped = asyncio.Event()
    reap = node.bare.reap

    async def late(pid: int) -> Any:
        await may_be_reaped.wait()
        return await reap(pid)

    process = node.runtime.containers[ONE].process
    assert process is not None
    monkeypatch.setattr(process, "_reap_by_forker", late)
    await master.stop(ONE)
    await rm.until(lambda: rm.sub_state(TWO) == ContainerSubState.RUNNING)
    assert node.runtime.containers[ONE].stage is Stage.KILLING
    may_be_reaped.set()
    assert (await rm.end_of(ONE)).exit_status == ExitStatus.KILLED_BY_APPMASTER


async def test_one_whose_process_has_just_ended_cannot_be_restarted(
    rm: FakeResourceManager, node: NodeManager, master: Master, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its place may be another's already."""
    await order(rm, settings())
    await run(master, ONE, "sleep 1000", resource=Resource(1000, 1))
    await run(master, TWO, "sleep 1000", resource=Resource(1000, 1))
    await rm.until(lambda: rm.sub_state(ONE) == ContainerSubState.RUNNING and queue_of(rm).queued == 1)
    may_be_reaped = asyncio.Event()
    reap = node.bare.reap

    async def late(pid: int) -> Any:
        await may_be_reaped.wait()
        return await reap(pid)

    process = node.runtime.containers[ONE].process
    assert process is not None
    monkeypatch.setattr(process, "_reap_by_forker", late)
    os.kill(process.pid, signal.SIGKILL)
    await rm.until(lambda: rm.sub_state(TWO) == ContainerSubState.RUNNING)
    assert node.runtime.containers[ONE].stage is Stage.RUNNING
    with pytest.raises(RemoteException, match="Cannot perform RE_INIT"):
        await master.client.call(ContainerManagementProtocol.restartContainer, convert.container_id_pb(ONE))
    may_be_reaped.set()
    assert (await rm.end_of(ONE)).exit_status == 128 + signal.SIGKILL


async def test_one_that_may_run_again_keeps_its_place(
    rm: FakeResourceManager, node: NodeManager, master: Master, tmp_path: Path
) -> None:
    await order(rm, settings())
    context = launch_context(f"echo x >> {tmp_path}/tries; exit \\$(( \\$(wc -l < {tmp_path}/tries) < 3 ))")
    context.container_retry_context.retry_policy = common.RETRY_ON_ALL_ERRORS
    context.container_retry_context.max_retries = 5
    await master.run(ONE, context, resource=Resource(1000, 1))
    await run(master, TWO, f"cp {tmp_path}/tries {tmp_path}/seen")
    assert (await rm.end_of(TWO)).exit_status == (await rm.end_of(ONE)).exit_status == 0
    assert (tmp_path / "seen").read_text() == "x\n" * 3


async def test_pages_show_places_and_expected_starts(
    rm: FakeResourceManager, node: NodeManager, master: Master
) -> None:
    await order(rm, settings(order="ejf"))
    await run(master, ONE, "sleep 1000", known(30_000), Resource(1000, 1))
    await run(master, TWO, "sleep 1000", known(7_000), Resource(1000, 1))
    await run(master, THREE, "sleep 1000", resource=Resource(1000, 1))
    await rm.until(lambda: queue_of(rm).queued == 2 and queue_of(rm).running == 1)
    base = f"http://{node.web_address[0]}:{node.web_address[1]}"
    async with aiohttp.ClientSession() as web:

        async def get(path: str) -> Any:
            async with web.get(base + path) as response:
                return await (response.json() if path.startswith("/ws") else response.text())

        info = (await get("/ws/v1/node/info"))["nodeInfo"]["queue"]
        assert (info["running"], info["queued"], info["waitMs"]) == (1, 2, None), "the last one never ends"
        assert (info["order"], info["maxQueued"], info["maxWaitMs"]) == ("ejf", 4, 60_000)
        listed = (await get("/ws/v1/node/containers"))["containers"]["container"]
        places = {c["id"]: c["queue"] for c in listed}
        assert places[str(ONE)] is None
        two, three = places[str(TWO)], places[str(THREE)]
        assert (two["place"], three["place"]) == (1, 2)
        assert 20_000 < two["expectedMs"] <= 30_000 and three["expectedMs"] == two["expectedMs"] + 7_000
        assert two["waitedMs"] >= 0
        assert (await get(f"/ws/v1/node/containers/{TWO}"))["container"]["queue"]["place"] == 1
        page = await get("/node")
        assert "1 run, 2 wait; one more would start nobody knows when" in page and "1. to start, in " in page


async def test_the_queue_goes_on_while_the_resource_manager_is_away(
    rm: FakeResourceManager, node: NodeManager, master: Master, tmp_path: Path
) -> None:
    await order(rm, settings())
    await run(master, ONE, f"until test -e {tmp_path}/end; do sleep 0.01; done", resource=Resource(1000, 1))
    for one in (TWO, THREE):
        await run(master, one, f"echo x >> {tmp_path}/{one.sequence}")
    await rm.until(lambda: queue_of(rm).queued == 2)
    port = rm.rpc.port
    await rm.rpc.stop()
    (tmp_path / "end").touch()
    assert await gone(lambda: not all(node.runtime.containers[c].is_done for c in (ONE, TWO, THREE)), 20)
    await rm.start(port)
    for one in (ONE, TWO, THREE):
        assert (await rm.end_of(one)).exit_status == 0
    assert read_all(tmp_path, "2", "3") == "x\nx\n"
