"""Queues at nodes among liars: absurd numbers, nodes that say what cannot be, clocks that jump, storms of asks."""

import asyncio
import json
import math
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rm.settings.queues import QueueSettings
from tests.rm.rm_commands import command, get
from tests.rm.rm_harness import FakeNode, Harness, ManualClock, ask, cluster
from tests.rm.rm_queueing import ON, OURS, beat, given, queueing_node, site
from yaqd.config import ConfigError
from yaqd.ipc import RpcClient
from yaqd.ipc.errors import InvalidResourceRequest
from yaqd.model import ApplicationId, ContainerId
from yaqd.policies.queueing.estimates import stage_key
from yaqd.proto import convert
from yaqd.proto import yarn_admin_pb2 as admin
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto.protocols import ResourceManagerAdministrationProtocol, ResourceTracker

UNKNOWN = {**ON, "yaq.queue.default-estimate": ""}
LONGEST_MS = 10**12


class JumpingClock(ManualClock):
    """Its wall clock is set by somebody else."""

    jumped_ms = 0

    def wall_ms(self) -> int:
        return super().wall_ms() + self.jumped_ms


# ---- configuration


@pytest.mark.parametrize("value", ["999999999999999999d", "1e30s", "-1", "nan", "inf", "9" * 40])
@pytest.mark.parametrize(
    "key",
    ["starve-ms", "max-wait", "max-wait-estimate", "default-estimate", "poll-gap", "bound", "node.127.0.0.1.bound"],
)
def test_absurd_amounts_are_refused_with_file_and_line(tmp_path: Path, key: str, value: str) -> None:
    with pytest.raises(ConfigError) as refused:
        QueueSettings.read(site(tmp_path, **{f"yaq.queue.{key}": value}))
    assert f"yaq-site.xml:2: yaq.queue.{key}" in str(refused.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("starve-ms", "999999999s"),
        ("starve-ms", "0"),
        ("starve-ratio", "1e308"),
        ("max-wait", "999999999s"),
        ("max-wait-estimate", "0"),
        ("default-estimate", "999999999s"),
        ("default-estimate", "0"),
        ("bound", "0"),
        ("bound", "10000"),
        ("free-share", "1"),
        ("target-utilization", "1"),
        ("target-utilization", "0"),
        ("poll-gap", "999999999s"),
    ],
)
async def test_the_last_amount_that_is_taken_works(key: str, value: str) -> None:
    tuned = {k: v for k, v in ON.items() if k != "yaq.queue.bound" or key not in ("target-utilization", "poll-gap")}
    async with cluster({**tuned, f"yaq.queue.{key}": value}) as rm:
        node = await queueing_node(rm)
        _, master = await rm.running(node)
        assert 3 <= len(given(await master.allocate(ask(2000)))) <= 2000
        assert (await beat(node, running=4, queued=3)).nodeAction == server.NORMAL


# ---- nodes


def set_queue(request: server.NodeHeartbeatRequest, waiting: list[ContainerId], *, waited_ms: int) -> None:
    said = request.node_status.yaq_queue
    said.running, said.queued, said.wait_ms = 4, len(waiting), 1000
    for container_id in waiting:
        entry = said.waiting.add(waited_ms=waited_ms, expected_ms=-waited_ms)
        convert.put_container_id(entry.container_id, container_id)


async def send(node: FakeNode, request: server.NodeHeartbeatRequest) -> server.NodeHeartbeatResponse:
    response = await node.tracker.call(ResourceTracker.nodeHeartbeat, request)
    node.response_id = response.response_id
    return response


async def test_a_node_that_speaks_for_others_changes_nothing_there() -> None:
    async with cluster(ON) as rm:
        honest = await queueing_node(rm)
        app_id, master = await rm.running(honest)
        containers = given(await master.allocate(ask(6)))
        for container_id in containers:
            honest.run(container_id)
        await beat(honest, running=4, queued=3)
        liar = await queueing_node(rm)
        request = liar.heartbeat()
        stranger = ContainerId(containers[0].attempt_id, 4711)
        from_nowhere = ContainerId.parse("container_1_0001_01_000001")
        for lie in (*containers, stranger, from_nowhere):
            status = request.node_status.containersStatuses.add(state=common.C_COMPLETE, exit_status=0)
            status.yaq_times.queued_ms, status.yaq_times.run_ms = -(2**62), 2**62
            convert.put_container_id(status.container_id, lie)
            running = request.node_status.containersStatuses.add(state=common.C_RUNNING, exit_status=-1000)
            convert.put_container_id(running.container_id, lie)
        set_queue(request, [*containers, stranger, from_nowhere] * 2000, waited_ms=-(2**62))
        response = await send(liar, request)
        # what does not belong to it is to be stopped and forgotten there, and goes on where it is
        assert {convert.container_id(c) for c in response.containers_to_cleanup} >= {*containers, stranger}
        assert len(rm.manager.scheduler.view.containers) == 7
        assert not (await master.allocate()).completed_container_statuses
        assert rm.manager.scheduler.node_queues.estimate(app_id, 1) == 10.0
        text = await command(rm, "explain", str(app_id))
        assert "3 wait at nodes" in text and str(liar.id) not in text
        assert rm.manager.cluster.nodes[liar.id].status.ByteSize() < 100_000, "a large report is not kept"


async def test_times_that_cannot_be_are_not_learnt_and_fit_every_message() -> None:
    async with cluster(UNKNOWN) as rm:
        node = await queueing_node(rm)
        app_id, master = await rm.running(node)
        rows = [ask(10_000_000, priority=priority) for priority in range(1, 30)]
        containers = given(await master.allocate(*rows))
        for container_id in containers:
            node.run(container_id)
        await beat(node, running=4)
        queues = rm.manager.scheduler.node_queues
        # -5 s, and longer than a life
        for container_id, times in zip(containers, ((0, -5000), (0, 2**62), (-1, 5000)), strict=False):
            node.end(container_id)
            await beat(node, running=3, times=times)
            assert queues.estimate(app_id, 1) is None
        [another] = given(await master.allocate())[:1]
        node.run(another)
        await beat(node, running=4)
        node.end(another)
        # thirty years, which is not known to be a lie; times 10,000,000 it is more than a message holds
        orders = (await beat(node, running=3, times=(0, LONGEST_MS))).yaq_orders
        assert queues.estimate(app_id, 1) == LONGEST_MS / 1000
        [job] = orders.jobs
        assert job.remaining_work_ms == LONGEST_MS and job.estimates[0].estimate_ms == LONGEST_MS
        assert json.loads(await command(rm, "explain", str(app_id), "--json"))["askedFor"] > 10**8


async def test_explain_shows_no_time_before_now_whatever_a_node_says() -> None:
    async with cluster(ON, clock=ManualClock()) as rm:
        node = await queueing_node(rm)
        app_id, master = await rm.running(node)
        containers = given(await master.allocate(ask(6)))
        for container_id in containers:
            node.run(container_id)
        request = node.heartbeat()
        set_queue(request, containers[3:], waited_ms=-(2**62))
        await send(node, request)
        found = (await get(rm, f"/ws/v1/yaq/explain/{app_id}"))["explanation"]
        assert isinstance(found, dict)
        assert len(found["waiting"]) == 3
        for entry in found["waiting"]:
            assert entry["placedAgoS"] >= 0 and entry["waitedS"] == 0.0 and entry["expectedStartInS"] is None


# ---- clocks


@pytest.mark.parametrize("jump_s", [400 * 86_400, -400 * 86_400])
async def test_a_wall_clock_that_jumps_teaches_and_ends_nothing(jump_s: int) -> None:
    clock = JumpingClock()
    async with cluster(UNKNOWN, clock=clock) as rm:
        node = await queueing_node(rm)
        app_id, master = await rm.running(node)
        stock = await rm.node(memory_mb=2048, vcores=2)
        containers = given(await master.allocate(ask(9)))
        on_stock = [c for c in containers if rm.manager.cluster.containers[c].node_id == stock.id]
        for container_id in containers:
            (stock if container_id in on_stock else node).run(container_id)
        await stock.beat()
        await beat(node, running=4)
        clock.jumped_ms = jump_s * 1000
        clock.seconds += 7
        stock.end(on_stock[0])
        await stock.beat()
        assert rm.manager.scheduler.node_queues.estimate(app_id, 1) == 7.0, "a stock node says nothing: it was measured"
        await beat(node, running=4)  # it had been silent for so long that nobody sent it more
        assert len(given(await master.allocate())) >= 1 + 3, "and what can end waits at the other"
        await beat(node, running=4, queued=3)
        found = json.loads(await command(rm, "explain", str(app_id), "--json"))
        assert found["waitingCount"] == 3 and all(0 <= entry["placedAgoS"] < 60 for entry in found["waiting"])
        assert len(rm.manager.scheduler.view.nodes) == 2


# ---- storms


async def test_a_storm_of_asks_leaves_others_alone_and_is_refused_beyond_the_limit() -> None:
    async with cluster({**ON, "yaq.rm.scheduler.resource-requests-max": "1000"}) as rm:
        node = await rm.node(memory_mb=8192, vcores=8, capabilities=OURS)
        await beat(node)
        _, other = await rm.running(node)
        app_id, master = await rm.running(node)
        storm = [ask(1, request_id=number) for number in range(900)]
        assert len(given(await master.allocate(*storm))) == 6 + 3
        with pytest.raises(InvalidResourceRequest, match="more than 1000 resource requests would be pending"):
            await master.allocate(*(ask(1, request_id=number) for number in range(2000, 2500)))
        attempt = rm.manager.scheduler.view.applications[app_id].attempt
        assert attempt is not None and attempt.asks.pending == 900 - 9, "nothing of what was refused is kept"
        await beat(node, running=8, queued=3)
        await other.allocate(ask(1))
        containers = [c for c in rm.manager.scheduler.view.containers if c.application_id == app_id]
        for container_id in sorted(containers, key=lambda c: c.sequence)[1:5]:
            node.run(container_id)
            await beat(node, running=8, queued=3)
            node.end(container_id)
            await beat(node, running=7, queued=3, times=(0, 1000))
        assert len(given(await other.allocate())) == 1, "the other's single task has its turn among them"


# ---- the store


async def test_a_store_with_absurd_estimates_is_read_for_what_makes_sense(tmp_path: Path) -> None:
    path = tmp_path / "store"
    async with cluster(UNKNOWN, store=path):
        pass
    rows = [("nan", 3, "soon"), ("count", "many", 1.0), ("inf", 3, math.inf), ("minus", 3, -1.0), ("none", 0, 1.0)]
    with closing(sqlite3.connect(path)) as store, store:
        good = stage_key("nightly 1", "alice", 1)
        store.executemany("INSERT INTO task_estimate VALUES (?, ?, ?)", [*rows, (good, 3, 5.0), (b"\xff", 3, 1e300)])
    async with cluster(UNKNOWN, store=path) as rm:
        node = await queueing_node(rm)
        app_id, master = await rm.running(node, application_name="nightly 2")
        assert len(given(await master.allocate(ask(9)))) == 3 + 3
        assert rm.manager.scheduler.node_queues.estimate(app_id, 1) == 5.0


# ---- learnt while off


async def test_what_was_learnt_while_queues_were_off_counts_as_soon_as_they_are_on(tmp_path: Path) -> None:
    async with cluster(conf=site(tmp_path, **{"yaq.queue.enabled": "false", "yaq.queue.job-order": "fifo"})) as rm:
        node = await queueing_node(rm)
        before, master = await rm.running(node, application_name="nightly 17")
        [container_id] = given(await master.allocate(ask(1)))
        node.run(container_id)
        await beat(node)
        node.end(container_id)
        assert not (await beat(node, times=(0, 4000))).HasField("yaq_orders")
        assert rm.manager.scheduler.node_queues.estimate(before, 1) is None, "off is off"
        await master.finish()
        await finished(rm, before, node)
        app_id, master = await rm.running(node, application_name="nightly 18")
        assert len(given(await master.allocate(ask(9)))) == 3
        site(tmp_path, **{**UNKNOWN, "yaq.queue.default-estimate": " "})
        operator = RpcClient("127.0.0.1", rm.manager.servers.admin.port, user="root")
        try:
            call = ResourceManagerAdministrationProtocol.refreshQueues
            await operator.call(call, admin.RefreshQueuesRequest())
        finally:
            await operator.close()
        assert rm.manager.scheduler.node_queues.estimate(app_id, 1) == 4.0
        await beat(node, running=4)
        assert len(given(await master.allocate())) == 3, "asked for before they were switched on"


async def finished(rm: Harness, app_id: ApplicationId, node: FakeNode) -> None:
    for container_id in list(node.running):
        node.end(container_id)
    await beat(node)
    await asyncio.sleep(0)
    await rm.until(lambda: app_id not in rm.manager.scheduler.view.applications)
