"""Queues at the nodes corrected: who is told to let fewer wait, whatever nodes and policies of others say."""

from pathlib import Path

import pytest

from tests.rm.rm_harness import FakeNode, ManualClock, cluster
from yaqd.proto.protocols import ResourceTracker

ENABLED = {
    "yarn.resourcemanager.opportunistic-container-allocation.enabled": "true",
    "yarn.nodemanager.distributed-scheduling.enabled": "true",
}
MOVING = {**ENABLED, "yaq.distributed.rebalance.min-gain-ms": "2000"}


async def waiting(
    node: FakeNode, *expected_ms: int, waited_ms: int = 0, wait_ms: int = 0, running: int = 1, places: int = 20
) -> int:
    """A heartbeat of a node where so many opportunistic containers wait; how many it is told to let wait."""
    request = node.heartbeat()
    said, queue = request.node_status.opportunistic_containers_status, request.node_status.yaq_queue
    said.queued_opport_containers = said.wait_queue_length = queue.queued = len(expected_ms)
    said.opport_queue_capacity, queue.running, queue.wait_ms = places, running, wait_ms
    for expected in expected_ms:
        queue.waiting.add(expected_ms=expected, waited_ms=waited_ms)
    response = await node.tracker.call(ResourceTracker.nodeHeartbeat, request)
    node.response_id = response.response_id
    return response.container_queuing_limit.max_queue_length


async def test_queues_give_up_what_would_start_sooner_elsewhere() -> None:
    clock = ManualClock()
    async with cluster(MOVING, clock=clock) as rm:
        long, idle = await rm.node(capabilities=("yaq-queue",)), await rm.node(host="127.0.0.2")
        await waiting(idle)
        ten_each = [10_000 * n for n in range(1, 5)]
        await waiting(long, *ten_each, wait_ms=50_000)
        clock.seconds += 1
        limit = await waiting(long, *ten_each, wait_ms=50_000)
        assert limit == 2, "two of four leave: then a newcomer waits as long here as there"
        assert await waiting(long, *ten_each[:2], wait_ms=30_000) >= 5, "once; the next look is a second later"


async def test_moves_of_a_foreign_policy_that_are_none_fail_no_heartbeat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "listed_moves.py").write_text(
        "from yaqd.policies.queueing.rebalance import Move\n"
        "def listed(loads, gain): return [Move([load.node.host], None, 1, 0.0) for load in loads]\n"
    )
    info = tmp_path / "listed_moves-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: listed-moves\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[yaqd.rebalance]\nlisted = listed_moves:listed\n")
    monkeypatch.syspath_prepend(tmp_path)
    clock = ManualClock()
    async with cluster({**MOVING, "yaq.distributed.rebalance.policy": "listed"}, clock=clock) as rm:
        long, idle = await rm.node(capabilities=("yaq-queue",)), await rm.node(host="127.0.0.2")
        for limit in (5, 2):
            await waiting(idle)
            assert await waiting(long, *[10_000] * 4, wait_ms=50_000) == limit, "the shipped one answers in its place"
            clock.seconds += 1
    (said,) = [record.getMessage() for record in caplog.records if "gives way to" in record.getMessage()]
    assert said.startswith(
        "rebalance policy 'listed' (listed_moves:listed) gives way to gain until a restart: TypeError"
    )


async def test_queues_that_wait_alike_give_up_nothing() -> None:
    clock = ManualClock()
    async with cluster(MOVING, clock=clock) as rm:
        nodes = [await rm.node(host=f"127.0.0.{n}", capabilities=("yaq-queue",)) for n in (1, 2)]
        for _ in range(3):
            for node, wait_ms in zip(nodes, (20_000, 21_000), strict=True):
                clock.seconds += 1
                assert await waiting(node, 10_000, wait_ms=wait_ms) >= 5


async def test_what_never_starts_is_given_up_after_long_and_only_that() -> None:
    async with cluster(ENABLED) as rm:
        node = await rm.node(capabilities=("yaq-queue",))
        assert await waiting(node, 5_000, -1, -1, waited_ms=59_000, wait_ms=-1) >= 5
        assert await waiting(node, 5_000, -1, -1, waited_ms=60_000, wait_ms=-1) == 1
        assert await waiting(node, 5_000, 9_000, waited_ms=90_000, wait_ms=15_000) >= 5


async def test_lies_about_queues_move_no_more_than_there_is() -> None:
    clock = ManualClock()
    async with cluster(MOVING, clock=clock) as rm:
        liar, idle = await rm.node(capabilities=("yaq-queue",)), await rm.node(host="127.0.0.2")
        for wait_ms in (-(1 << 62), (1 << 63) - 1):
            clock.seconds += 2
            await waiting(idle)
            assert 0 <= await waiting(liar, -5, (1 << 62), waited_ms=-(1 << 40), wait_ms=wait_ms) <= 15


async def test_a_node_that_runs_a_million_draws_no_more_from_others_than_one_of_its_size() -> None:
    clock = ManualClock()
    async with cluster(MOVING, clock=clock) as rm:
        long, other = await rm.node(capabilities=("yaq-queue",)), await rm.node(host="127.0.0.2")
        limits = []
        for running in (8, 1_000_000):
            await waiting(other, running=running, places=1_000_000)
            await waiting(long, *[4_000] * 12, wait_ms=80_000)
            clock.seconds += 1
            limits.append(await waiting(long, *[4_000] * 12, wait_ms=80_000))
        assert limits[0] == limits[1] > 0


@pytest.mark.parametrize(("wait_ms", "places"), [(0, 20), (1, 1_000_000), (50, 20), (500, 20), (2_000, 20)])
async def test_a_node_where_one_is_about_to_end_draws_half_of_anothers_queue_and_no_more(
    wait_ms: int, places: int
) -> None:
    clock = ManualClock()
    async with cluster(MOVING, clock=clock) as rm:
        long, other = await rm.node(capabilities=("yaq-queue",)), await rm.node(host="127.0.0.2")
        expected = [4_000 * n for n in range(1, 13)]
        await waiting(other, running=8, wait_ms=wait_ms, places=places)
        await waiting(long, *expected, wait_ms=52_000, running=8)
        clock.seconds += 1
        assert await waiting(long, *expected, wait_ms=52_000, running=8) == 6
