"""Cores of applications at nodes: what each is told, what is believed of what it says, and who is told nothing."""

from collections.abc import AsyncIterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rm.nodes.cores import ApplicationCores, beat_after, divide
from tests.rm.rm_harness import FakeMaster, FakeNode, Harness, ManualClock, ask, cluster
from yaqd.model import ApplicationId, ContainerId, NodeId
from yaqd.proto import convert, training
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto.protocols import ResourceTracker

NODES = [NodeId(f"node-{number}", 1) for number in range(5)]
UNKNOWN = ApplicationId(1, 1)


@given(
    st.integers(0, 100_000),
    st.lists(st.tuples(st.integers(1, 64), st.integers(1, 64_000)), min_size=1, max_size=5),
)
@example(3, [(1, 1), (1, 1), (1, 1), (2, 1), (2, 1)])
def test_the_parts_make_up_the_whole(milli: int, nodes: list[tuple[int, int]]) -> None:
    weights = {node: weight for node, (weight, _) in zip(NODES, nodes, strict=False)}
    most = {node: limit for node, (_, limit) in zip(NODES, nodes, strict=False)}
    shares = divide(milli, weights, most)
    assert shares.keys() == weights.keys()
    assert sum(shares.values()) == min(milli, sum(most.values()))
    assert all(0 <= shares[node] <= most[node] for node in shares)
    open_nodes = [node for node in shares if shares[node] < most[node]]
    each = [shares[node] / weights[node] for node in open_nodes]
    # among those that are not full, by their weights but for the rounding
    assert not each or max(each) - min(each) <= 1


def test_nobody_at_all_gets_nothing() -> None:
    assert divide(500, {}, {}) == {}


@given(st.floats(0.05, 10.0), st.floats(-100.0, 100.0), st.floats(0.2, 10.0))
def test_a_node_comes_after_a_division_and_hardly_later_than_always(most: float, at: float, epoch: float) -> None:
    found = beat_after(most, at, epoch)
    assert min(most, 0.1) <= found <= most + 0.1 + 1e-9
    if epoch <= most:
        off = (found - at) % epoch
        assert min(off, epoch - off) < 1e-6


class World:
    def __init__(self, harness: Harness, clock: ManualClock, node: FakeNode, app_id: ApplicationId, master: FakeMaster):
        self.harness, self.clock, self.node, self.app_id, self.master = harness, clock, node, app_id, master
        self.cores: ApplicationCores = harness.manager.tracker.cores

    async def workers(self, count: int, *nodes: FakeNode, priority: int = 1) -> list[ContainerId]:
        """Containers that run."""
        found: list[ContainerId] = []
        here = {node.id: node for node in nodes or (self.node,)}
        response = await self.master.allocate(ask(count, priority=priority))
        while True:
            for one in response.allocated_containers:
                found.append(convert.container_id(one.id))
                here[convert.node_id(one.nodeId)].run(found[-1])
            for node in here.values():
                await node.beat()
            if len(found) == count:
                return found
            response = await self.master.allocate()

    async def told(self, node: FakeNode | None = None) -> dict[ApplicationId, int | None] | None:
        """What the node is told of cores in the answer to its next heartbeat."""
        response = await (node or self.node).beat()
        return training.apps_cores(response.yaq_cores) if response.HasField("yaq_cores") else None

    async def say(self, total_ms: int, app_id: ApplicationId | None = None) -> None:
        """A heartbeat with this total of an application."""
        request = self.node.heartbeat()
        request.node_status.yaq_cpu.append(training.cpu_pb(app_id or self.app_id, 0.0))
        request.node_status.yaq_cpu[0].total_ms = total_ms
        response = await self.node.tracker.call(ResourceTracker.nodeHeartbeat, request)
        assert response.nodeAction == server.NORMAL
        self.node.response_id = response.response_id


async def register(node: FakeNode, *, processors: int = 2, since_ms: int = 5, keep: bool = False) -> None:
    """As a node that holds applications to their cores."""
    node.processors, node.counts_since_ms = processors, since_ms
    await node.register(capabilities=("cores",), keep=keep)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    clock = ManualClock()
    async with cluster(clock=clock) as harness:
        node = await harness.node()
        await register(node)
        app_id, master = await harness.running(node)
        yield World(harness, clock, node, app_id, master)


async def test_a_node_is_told_what_has_changed_and_no_more(world: World) -> None:
    assert world.node.registration is not None and "cores" in world.node.registration.yaq_capabilities.understands
    await world.workers(2)
    assert await world.told() is None
    assert world.cores.set_cores(world.app_id, 500)
    assert await world.told() == {world.app_id: 500}
    assert await world.told() is None
    world.cores.set_cores(world.app_id, None)
    assert await world.told() == {world.app_id: None}
    world.cores.forget(world.app_id)
    assert await world.told() == {} and await world.told() is None


async def test_a_node_that_holds_a_job_to_its_cores_comes_right_after_they_are_divided(world: World) -> None:
    async def next_ms() -> int:
        return (await world.node.beat()).nextHeartBeatInterval

    await world.workers(1)
    world.cores.divided(1.0)
    assert await next_ms() == 1000, "nobody has set its cores"
    world.cores.set_cores(world.app_id, 500)
    world.clock.seconds += 0.4
    assert 630 <= await next_ms() <= 680
    world.clock.seconds += 0.64
    assert 990 <= await next_ms() <= 1040, "it has just come"
    world.cores.divided(None)
    assert await next_ms() == 1000


async def test_a_node_that_registers_again_is_told_again(world: World) -> None:
    await world.workers(1)
    world.cores.set_cores(world.app_id, 500)
    assert await world.told() == {world.app_id: 500}
    await register(world.node, keep=True)
    assert await world.told() == {world.app_id: 500}


async def test_stock_nodes_are_told_nothing_and_are_named(world: World) -> None:
    stock = await world.harness.node(host="127.0.0.2")
    containers = await world.workers(12, world.node, stock)
    assert {container.attempt_id.application_id for container in containers} == {world.app_id}
    world.cores.set_cores(world.app_id, 1000)
    assert await world.told(stock) is None
    shares = world.cores.shares(world.app_id)
    assert shares.keys() == {world.node.id, stock.id}
    assert await world.told() == {world.app_id: shares[world.node.id]}
    assert world.cores.unaware_nodes(world.app_id) == [stock.id]
    await world.say(300)
    assert world.cores.cpu_s(world.app_id) == 0.3


async def test_cores_follow_the_containers(world: World) -> None:
    other = await world.harness.node(host="127.0.0.2")
    await register(other, processors=4)
    await world.workers(12, world.node, other)
    world.cores.set_cores(world.app_id, 3000)
    shares = world.cores.shares(world.app_id)
    told = await world.told(), await world.told(other)
    assert told == ({world.app_id: shares[world.node.id]}, {world.app_id: shares[other.id]})
    assert sum(share or 0 for share in shares.values()) == 3000
    for container in list(other.running):
        other.end(container)
    await other.beat()
    world.clock.seconds += 1.0
    assert await world.told() == {world.app_id: 2000}, "no more than it has processors"
    assert await world.told(other) == {}


async def test_a_driver_takes_no_cores_from_the_workers_unless_the_job_uses_more_than_it_has(world: World) -> None:
    await world.workers(1)  # the driver: its priority comes first
    world.cores.set_cores(world.app_id, 400)
    assert world.cores.shares(world.app_id) == {world.node.id: 400}
    other = await world.harness.node(host="127.0.0.2")
    await register(other, processors=4)
    await world.workers(1, other, priority=2)
    world.clock.seconds += 1.0
    shares = world.cores.shares(world.app_id)
    assert shares == {world.node.id: 400, other.id: 400}, "the worker has all that was ordered, the driver as much"
    used_ms = 0
    for _ in range(12):
        world.clock.seconds += 1.0
        used_ms += 800
        await world.say(used_ms)
    assert world.cores.shares(world.app_id) == {world.node.id: 400, other.id: 400}, "that is what its start took"
    for _ in range(11):
        world.clock.seconds += 1.0
        used_ms += 1000
        await world.say(used_ms)
    shares = world.cores.shares(world.app_id)
    assert sum(share or 0 for share in shares.values()) == 400, "it has used much more than it was ordered"
    for _ in range(40):
        world.clock.seconds += 1.0
        used_ms += 400
        await world.say(used_ms)
    assert world.cores.shares(world.app_id) == {world.node.id: 400, other.id: 400}


async def test_a_master_alone_is_not_bound(world: World) -> None:
    world.cores.set_cores(world.app_id, 500)
    assert await world.told() is None


async def test_totals_add_up_over_lives_of_the_node(world: World) -> None:
    await world.workers(1)
    assert world.cores.cpu_s(world.app_id) is None
    await world.say(100)
    assert world.cores.cpu_s(world.app_id) is None, "nobody asked"
    world.cores.set_cores(world.app_id, None)
    assert world.cores.cpu_s(world.app_id) == 0.0
    await world.say(1000)
    await world.say(1000)
    assert world.cores.cpu_s(world.app_id) == 1.0
    await world.say(1500)
    await register(world.node, keep=True)
    await world.say(1700)
    assert world.cores.cpu_s(world.app_id) == 1.7, "the same life goes on counting"
    await register(world.node, since_ms=6, keep=True)
    await world.say(1800)
    assert world.cores.cpu_s(world.app_id) == 3.5, "another one began at 0"
    await world.say(100)
    assert world.cores.cpu_s(world.app_id) == 3.6, "it dropped its count, as nothing of it was there"


async def test_what_a_node_cannot_have_done_is_bounded(world: World, caplog: pytest.LogCaptureFixture) -> None:
    await world.workers(1)
    world.clock.seconds += 10.0
    world.cores.set_cores(world.app_id, 500)
    for absurd in (2**63 - 1, 2**62, 0, 2**63 - 1, -(2**63)):
        await world.say(absurd)
    most_s = world.cores.cpu_s(world.app_id)
    assert most_s is not None and 0 < most_s <= 2 * (10 + 2) + 1, "2 processors since the application began"
    for absurd in (0, 2**63 - 1) * 10:
        await world.say(absurd)
    assert world.cores.cpu_s(world.app_id) == most_s
    world.clock.seconds += 3.0
    await world.say(0)
    await world.say(2**63 - 1)
    assert world.cores.cpu_s(world.app_id) == pytest.approx(most_s + 6.0)
    assert caplog.text.count("cannot have done") == 1


async def test_a_node_that_was_not_heard_of_for_long_says_no_more_than_that(world: World) -> None:
    await world.workers(1)
    world.cores.set_cores(world.app_id, 500)
    await world.say(0)
    world.clock.seconds += 30.0
    await world.say(60_000)
    assert world.cores.cpu_s(world.app_id) == 60.0


async def test_processors_that_cannot_be_are_bounded(world: World) -> None:
    await register(world.node, processors=2**31 - 1, keep=True)
    assert world.harness.manager.cluster.nodes[world.node.id].processors == 4096
    await register(world.node, processors=-5, keep=True)
    assert world.harness.manager.cluster.nodes[world.node.id].processors == 8, "as many as its vcores"


async def test_applications_that_a_node_has_nothing_of_are_not_believed(world: World) -> None:
    other, _ = await world.harness.running(world.node)
    world.cores.set_cores(world.app_id, 500)
    world.harness.manager.cluster.applications[world.app_id].nodes.clear()
    await world.say(100)
    await world.say(100, UNKNOWN)
    assert world.cores.cpu_s(world.app_id) == 0.0
    assert world.cores.cpu_s(other) is None and world.cores.cpu_s(UNKNOWN) is None


async def test_applications_that_are_gone_have_no_cores(world: World) -> None:
    await world.workers(1)
    assert not world.cores.set_cores(UNKNOWN, 500)
    world.cores.set_cores(world.app_id, 500)
    assert await world.told() == {world.app_id: 500}
    await world.master.finish()
    manager = world.harness.manager
    for container in list(world.node.running):
        world.node.end(container)
    await world.node.beat()
    await world.harness.until(lambda: manager.cluster.applications[world.app_id].is_over)
    assert not world.cores.set_cores(world.app_id, 100)
    assert world.cores.cpu_s(world.app_id) is None and not world.cores.shares(world.app_id)
    assert manager.cluster.nodes[world.node.id].cores_told == {}


@pytest.mark.parametrize("milli", [-(2**31), 2**62])
async def test_cores_that_cannot_be_are_bounded(world: World, milli: int) -> None:
    await world.workers(1)
    world.cores.set_cores(world.app_id, milli)
    assert await world.told() == {world.app_id: 0 if milli < 0 else 2000}
