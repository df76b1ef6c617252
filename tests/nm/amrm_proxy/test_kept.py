"""What a proxy keeps: asks that no node takes yet, and containers that were not booked or came back."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nm.daemon import NodeManager
from nm.node_queue.words import DEQUEUED, MAKE_ROOM, QUEUE_FULL, WAITED_TOO_LONG
from tests.nm.nm_cluster import FakeResourceManager, Master, attempt
from tests.nm.nm_proxied import FakeScheduler, ProxiedMaster, ask, numbers, proxy_settings
from yaqd.model import NodeId
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto import yarn_service_pb2 as pb


async def test_the_resource_managers_estimates_go_with_the_containers_and_it_hears_what_is_kept(
    start_node: Callable[..., Any], scheduler: FakeScheduler, rm: FakeResourceManager, tmp_path: Path
) -> None:
    rm.capabilities.append("yaq-queue")
    node = await start_node(proxy_settings(scheduler))
    scheduler.publish(node.node_id)
    scheduler.nodes[0].yaq_reads_tasks = True
    master = Master(rm, node)
    proxied = await ProxiedMaster.launch(master, scheduler, tmp_path)

    def estimate(response: server.NodeHeartbeatResponse) -> None:
        job = response.yaq_orders.jobs.add()
        job.application_id.CopyFrom(convert.application_id_pb(attempt().application_id))
        job.estimates.add(priority=19, estimate_ms=2500)

    rm.orders.append(estimate)
    await rm.until(lambda: node.runtime.estimates(attempt().application_id))
    await proxied.register()
    (container,) = (await proxied.allocate(ask(3))).allocated_containers
    facts = server.ContainerTokenIdentifier.FromString(container.container_token.identifier).yaq_task
    assert facts.estimate_ms == 2500
    size = common.Resource(memory=256, virtual_cores=1)
    assert list(scheduler.requests[0].yaq_kept) == [pb.PendingStage(priority=19, count=2, size=size)]
    (why,) = scheduler.requests[0].yaq_placed
    assert (why.container_id, why.estimate_ms, why.HasField("wait_ms")) == (container.id, 2500, False)
    assert why.rule == "the ResourceManager named it and says nothing of its load"
    await proxied.allocate()
    assert [why.container_id.id for why in scheduler.requests[1].yaq_placed] == [-2]
    await proxied.rpc.close()
    await master.client.close()


@pytest.mark.parametrize("tells_more", [True, False])
async def test_the_resource_manager_hears_on_which_places_what_is_kept_insists(
    tells_more: bool,
    start_node: Callable[..., Any],
    scheduler: FakeScheduler,
    rm: FakeResourceManager,
    tmp_path: Path,
) -> None:
    if tells_more:
        rm.capabilities.append("yaq-queue")
    node = await start_node(proxy_settings(scheduler))
    scheduler.publish(node.node_id)
    master = Master(rm, node)
    proxied = await ProxiedMaster.launch(master, scheduler, tmp_path)
    await proxied.register()
    anywhere = ask(2)
    anywhere.relax_locality = False
    await proxied.allocate(ask(2, name="h7"), ask(2, name="/r7"), anywhere)
    expected = pb.BoundWish(count=2, size=common.Resource(memory=256, virtual_cores=1), places=["/r7", "h7"])
    assert list(scheduler.requests[0].yaq_bound) == ([expected] if tells_more else [])
    await proxied.rpc.close()
    await master.client.close()


async def test_what_its_master_takes_for_running_goes_where_it_starts_soon_also_by_a_proxy_that_starts_again(
    proxied: ProxiedMaster, scheduler: FakeScheduler, node: NodeManager
) -> None:
    (published,) = scheduler.nodes
    published.yaq_reads_tasks, published.yaq_queued, published.yaq_wait_ms = True, 1, 2500
    scheduler.most_wait_ms = 2000
    await proxied.register()
    assert not (await proxied.allocate(ask(5))).allocated_containers
    published.yaq_wait_ms = 1500
    await proxied.allocate()
    (container,) = (await proxied.allocate()).allocated_containers
    facts = server.ContainerTokenIdentifier.FromString(container.container_token.identifier).yaq_task
    assert facts.most_wait_ms == 2000
    assert node.proxy is not None
    folder = node.settings.local_dirs[0] / "amrmproxy"

    def start_again() -> None:
        assert node.proxy is not None
        node.proxy._open(server.ProxiedMaster.FromString((folder / str(attempt())).read_bytes()))

    start_again()
    got = [numbers(await proxied.allocate()) for _ in range(3)]
    assert got == [[], [-2], [-3]], "it knows of no node at first, and then still of the limit"
    scheduler.most_wait_ms = None
    await proxied.allocate()
    start_again()
    await proxied.allocate()
    published.yaq_wait_ms = 90_000
    assert numbers(await proxied.allocate()) == [-5], "the limit was lifted"
    assert sorted(scheduler.booked, reverse=True) == scheduler.booked == [-1, -2, -3, -4, -5]


async def test_what_is_not_booked_its_master_never_hears_of_and_gets_later(
    start_node: Callable[..., Any], scheduler: FakeScheduler, rm: FakeResourceManager, tmp_path: Path
) -> None:
    rm.capabilities.append("yaq-queue")
    node = await start_node(proxy_settings(scheduler))
    scheduler.publish(node.node_id)
    (published,) = scheduler.nodes
    published.yaq_free.memory, published.yaq_free.virtual_cores = 2048, 8
    master = Master(rm, node)
    proxied = await ProxiedMaster.launch(master, scheduler, tmp_path)
    await proxied.register()
    scheduler.refuses = {-2, -3}
    first = await proxied.allocate(ask(3))
    assert numbers(first) == [-1] and not first.completed_container_statuses
    assert scheduler.requests[-1].yaq_takes_back and len(scheduler.requests[-1].allocated_containers) == 3
    proxied.response_id -= 1
    again = await proxied.allocate(ask(3))
    assert numbers(again) == [-1, -4, -5], "as its master asks again"
    assert not numbers(await proxied.allocate()) and scheduler.booked == [-1, -4, -5]
    await proxied.rpc.close()
    await master.client.close()


async def test_what_is_not_booked_stays_where_it_must_run_also_by_a_proxy_that_starts_again(
    proxied: ProxiedMaster, scheduler: FakeScheduler, node: NodeManager
) -> None:
    """The proxy ends when the ResourceManager has what it placed; the answer that refuses it comes to the next."""
    here, there = node.node_id, NodeId("127.0.0.9", 1)
    await proxied.register()
    scheduler.publish(there)
    scheduler.refuses, scheduler.holds = {-1}, True
    rows = (ask(1, name=here.host), ask(1))
    rows[1].relax_locality = False
    lost = asyncio.ensure_future(proxied.allocate(*rows))
    await scheduler.held.wait()
    assert node.proxy is not None
    saved = node.settings.local_dirs[0] / "amrmproxy" / str(attempt())
    node.proxy._open(server.ProxiedMaster.FromString(saved.read_bytes()))
    lost.cancel()
    scheduler.holds = False
    await proxied.reconnect()
    assert numbers(await proxied.allocate(*rows)) == [] == scheduler.booked
    assert numbers(await proxied.allocate()) == [], "there is room elsewhere alone"
    scheduler.publish(here)
    await proxied.allocate()
    (container,) = (await proxied.allocate()).allocated_containers
    assert (container.id.id, convert.node_id(container.nodeId)) == (-2, here)
    assert numbers(await proxied.allocate()) == [] and scheduler.booked == [-2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("exit_status", "words", "moved"),
    [
        (-108, DEQUEUED, True),
        (-108, QUEUE_FULL, True),
        (-102, WAITED_TOO_LONG, True),
        (-108, MAKE_ROOM, False),
        (1, DEQUEUED, False),
    ],
)
async def test_a_container_that_its_node_gave_up_has_waited_already(
    exit_status: int, words: str, moved: bool, proxied: ProxiedMaster, scheduler: FakeScheduler
) -> None:
    scheduler.nodes[0].yaq_reads_tasks = True
    await proxied.register()
    (container,) = (await proxied.allocate(ask(1))).allocated_containers
    await asyncio.sleep(0.01)  # the wait that is to be told
    status = scheduler.news.completed_container_statuses.add(state=common.C_COMPLETE, exit_status=exit_status)
    status.container_id.CopyFrom(container.id)
    status.diagnostics = words + "\n"
    await proxied.allocate()
    (again,) = (await proxied.allocate(ask(1))).allocated_containers
    facts = server.ContainerTokenIdentifier.FromString(again.container_token.identifier).yaq_task
    assert (facts.waited_ms >= 10) == moved
