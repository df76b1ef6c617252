"""The proxy on a real node: whose token is whose, what is passed on, what is placed, and what survives kill -9."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nm.amrm_proxy.messages import lowered
from nm.daemon import NodeManager
from tests.nm.nm_cluster import USER, FakeResourceManager, Master, attempt, container_id, launch_context
from tests.nm.nm_faults import NodeProcess
from tests.nm.nm_proxied import FakeScheduler, ProxiedMaster, ask, numbers, proxy_settings
from yaqd.cli.local.site import free_ports
from yaqd.config import ConfigError
from yaqd.ipc import NO_RETRY, RpcClient, RpcError
from yaqd.ipc.errors import (
    ApplicationMasterNotRegistered,
    InvalidResourceBlacklistRequest,
    InvalidResourceRequest,
    InvalidToken,
    Retriable,
)
from yaqd.model import ContainerId, Resource
from yaqd.policies.asks.rows import AskRow
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationMasterProtocol, ContainerManagementProtocol
from yaqd.security import Token


async def test_the_real_token_stays_at_the_node_and_the_local_one_opens_the_proxy_alone(
    proxied: ProxiedMaster, scheduler: FakeScheduler
) -> None:
    refused = RpcClient("127.0.0.1", scheduler.rpc.port, user="x", token=proxied.token, connect_retries=NO_RETRY)
    request = pb.RegisterApplicationMasterRequest()
    with pytest.raises((InvalidToken, RpcError)):
        await refused.call(ApplicationMasterProtocol.registerApplicationMaster, request)
    await refused.close()
    real = RpcClient(*proxied.address, user="x", token=scheduler.tokens.mint(attempt()), connect_retries=NO_RETRY)
    with pytest.raises((InvalidToken, RpcError)):
        await real.call(ApplicationMasterProtocol.registerApplicationMaster, request)
    await real.close()
    assert (await proxied.register()).queue == "root.default" and scheduler.registrations == 1
    assert scheduler.tolerates_waiting, "what the master says of itself is passed on"


async def test_opportunistic_asks_stay_and_what_is_placed_for_them_runs(
    proxied: ProxiedMaster, scheduler: FakeScheduler, rm: FakeResourceManager, node: NodeManager
) -> None:
    await proxied.register()
    guaranteed = ask(2, kind=common.GUARANTEED)
    first = await proxied.allocate(ask(3), guaranteed)
    assert list(scheduler.requests[0].allocate_request.ask) == [guaranteed]
    (container,) = first.allocated_containers
    assert list(scheduler.requests[0].allocated_containers) == [container]
    assert [numbers(await proxied.allocate()) for _ in range(3)] == [[-2], [-3], []], "one a heartbeat, as Hadoop"
    assert (container.execution_type, container.priority.priority, container.resource.memory) == (2, 19, 256)
    identifier = server.ContainerTokenIdentifier.FromString(container.container_token.identifier)
    assert (identifier.nmHostAddr, identifier.appSubmitter, identifier.rmIdentifier) == (
        str(node.node_id),
        USER,
        node.registration.rm_identifier,
    )
    assert (identifier.containerType, identifier.executionType) == (common.TASK, common.OPPORTUNISTIC)
    assert not identifier.HasField("logAggregationContext") and not identifier.HasField("yaq_task")
    assert identifier.HasField("version") and identifier.nodeLabelExpression == "" and identifier.creationTime > 0
    await _start(first, node)
    assert (await rm.end_of(ContainerId(attempt(), -1))).exit_status == 0


async def _start(given: pb.AllocateResponse, node: NodeManager) -> None:
    """As the master does: with the tokens that came with the container."""
    (nm_token,) = given.nm_tokens
    client = RpcClient("127.0.0.1", node.node_id.port, user="x", token=Token.from_pb(nm_token.token))
    request = pb.StartContainersRequest()
    item = request.start_container_request.add()
    item.container_launch_context.CopyFrom(launch_context("true"))
    item.container_token.CopyFrom(given.allocated_containers[0].container_token)
    response = await client.call(ContainerManagementProtocol.startContainers, request)
    await client.close()
    assert not response.failed_requests, response.failed_requests


async def test_nodes_that_read_them_get_the_facts_of_the_job(proxied: ProxiedMaster, scheduler: FakeScheduler) -> None:
    scheduler.nodes[0].yaq_reads_tasks = True
    scheduler.nodes[0].yaq_wait_ms = 0
    scheduler.nodes[0].yaq_free.memory, scheduler.nodes[0].yaq_free.virtual_cores = 2048, 4
    await proxied.register()
    (container, _) = (await proxied.allocate(ask(2))).allocated_containers
    facts = server.ContainerTokenIdentifier.FromString(container.container_token.identifier).yaq_task
    assert (facts.job_arrival_ms, facts.leaf_queue) == (1_700_000_000_123, "root.default")
    assert not facts.HasField("estimate_ms")


@pytest.mark.parametrize(("said_ms", "placed"), [(2**63 - 1, 0), (-(2**63), 0), (-1, 0), (10**12, 2), (0, 2)])
async def test_a_wait_that_cannot_be_places_nothing_and_every_other_fits_its_message(
    proxied: ProxiedMaster, scheduler: FakeScheduler, said_ms: int, placed: int
) -> None:
    (node,) = scheduler.nodes
    node.yaq_reads_tasks, node.yaq_wait_ms = True, said_ms
    node.yaq_free.memory, node.yaq_queued, node.yaq_queue_max = -(2**62), -7, 2**31 - 1
    await proxied.register()
    assert len((await proxied.allocate(ask(2))).allocated_containers) == placed
    assert all(0 < why.wait_ms <= 10**13 for why in scheduler.requests[0].yaq_placed)


async def test_a_repeated_request_gets_the_same_containers_and_no_more(
    proxied: ProxiedMaster, scheduler: FakeScheduler
) -> None:
    await proxied.register()
    first = await proxied.allocate(ask(2))
    proxied.response_id -= 1
    again = await proxied.allocate(ask(2))
    assert numbers(first) == [-1] and numbers(again)[0] == -1
    rest = [number for _ in range(3) for number in numbers(await proxied.allocate())]
    assert sorted([*numbers(again), *rest], reverse=True) == [-1, -2] == scheduler.booked


def test_a_repeated_request_wants_less_of_every_row_that_was_served() -> None:
    given = common.Container(allocation_request_id=-1)
    given.id.id, given.priority.priority, given.nodeId.host, given.nodeId.port = 7, 1, "a", 1
    rows = tuple(AskRow(1, -1, name, Resource(1, 1), 2) for name in ("a", "/r", "/s", "*"))
    for names, left in ((["a", "/r", "*"], [1, 1, 2, 1]), (["/r", "*"], [2, 1, 2, 1])):
        wanted_by = [server.PlacedFor(container=7, names=names)]
        assert [row.count for row in lowered(rows, [given], wanted_by)] == left
    assert [row.count for row in lowered(rows, [given], [])] == [1, 2, 2, 1], "of what was kept by an older one"


async def test_a_blacklist_that_is_too_long_goes_no_further(proxied: ProxiedMaster, scheduler: FakeScheduler) -> None:
    await proxied.register()
    request = pb.AllocateRequest(response_id=proxied.response_id)
    request.blacklist_request.blacklist_additions.extend(f"host-{n}" for n in range(10_001))
    before = len(scheduler.requests)
    with pytest.raises(InvalidResourceBlacklistRequest, match="more than 10000 names"):
        await proxied.rpc.call(ApplicationMasterProtocol.allocate, request)
    assert len(scheduler.requests) == before
    assert numbers(await proxied.allocate(ask(1))) == [-1]


async def test_node_tokens_come_once_from_whoever_is_first(
    proxied: ProxiedMaster, scheduler: FakeScheduler, rm: FakeResourceManager, node: NodeManager
) -> None:
    await proxied.register()
    token = rm.nm_tokens.mint(attempt(), node.node_id, USER).to_pb()
    scheduler.news.nm_tokens.add(nodeId=convert.node_id_pb(node.node_id), token=token)
    assert [len((await proxied.allocate(*asks)).nm_tokens) for asks in ([ask(2)], [])] == [1, 0]


async def test_what_ended_before_its_master_heard_of_it_is_told_as_ended_alone(
    proxied: ProxiedMaster, scheduler: FakeScheduler
) -> None:
    await proxied.register()
    status = scheduler.news.completed_container_statuses.add(state=common.C_COMPLETE, exit_status=-100)
    convert.put_container_id(status.container_id, ContainerId(attempt(), -1))
    response = await proxied.allocate(ask(1))
    assert not response.allocated_containers and len(response.completed_container_statuses) == 1


async def test_a_new_key_of_the_resource_manager_is_the_proxys_business(
    proxied: ProxiedMaster, scheduler: FakeScheduler
) -> None:
    await proxied.register()
    scheduler.keys.roll(1e6)
    scheduler.news.am_rm_token.CopyFrom(scheduler.tokens.mint(attempt()).to_pb())
    before = proxied.token
    await proxied.allocate()
    scheduler.keys.roll(2e6)
    await proxied.allocate()
    assert proxied.token == before


async def test_a_new_key_of_the_proxy_is_shown_to_the_master(proxied: ProxiedMaster, node: NodeManager) -> None:
    await proxied.register()
    assert node.proxy is not None
    before = proxied.token
    node.proxy._keys.roll(float("inf"))
    await proxied.allocate()
    assert proxied.token != before
    await proxied.allocate()


async def test_a_resource_manager_without_distributed_scheduling_gets_everything(
    start_node: Callable[..., Any], scheduler: FakeScheduler, rm: FakeResourceManager, tmp_path: Path
) -> None:
    settings = dict(proxy_settings(scheduler))
    del settings["yarn.nodemanager.distributed-scheduling.enabled"]
    node = await start_node({**settings, "yarn.nodemanager.amrmproxy.enabled": "true"})
    master = Master(rm, node)
    proxied = await ProxiedMaster.launch(master, scheduler, tmp_path)
    assert (await proxied.register()).queue == "plain"
    await proxied.allocate(ask(2))
    assert scheduler.plain[0].ask[0] == ask(2) and not scheduler.requests
    await proxied.rpc.close()
    await master.client.close()


async def test_before_it_registered_or_after_its_container_ended_nothing_is_passed_on(
    proxied: ProxiedMaster, scheduler: FakeScheduler, rm: FakeResourceManager, master: Master, node: NodeManager
) -> None:
    with pytest.raises(ApplicationMasterNotRegistered):
        await proxied.allocate(ask(1))
    await proxied.register()
    with pytest.raises(InvalidResourceRequest):
        await proxied.allocate(ask(-1))
    assert not scheduler.requests
    state = node.settings.local_dirs[0] / "amrmproxy" / str(attempt())
    assert state.stat().st_mode & 0o77 == 0
    await master.stop(container_id(1))
    await rm.end_of(container_id(1))
    with pytest.raises((InvalidToken, RpcError)):
        await proxied.allocate()
    assert node.proxy is not None
    await node.proxy._tasks.wait()
    assert not state.exists()


async def test_a_resource_manager_that_is_away_is_worth_another_try(
    proxied: ProxiedMaster, scheduler: FakeScheduler, node: NodeManager
) -> None:
    assert node.proxy is not None
    node.proxy._sessions[attempt()]._link._client._retries = NO_RETRY
    await proxied.register()
    port = scheduler.rpc.port
    await scheduler.rpc.stop()
    with pytest.raises(Retriable):
        await proxied.allocate(ask(1))
    scheduler.rpc._port = port
    await scheduler.rpc.start()
    assert numbers(await proxied.allocate(ask(1))) == [-1]
    assert numbers(await proxied.allocate()) == [] and scheduler.booked == [-1]


async def test_its_own_address_is_not_the_resource_managers(start_node: Callable[..., Any]) -> None:
    address = {
        "yarn.nodemanager.amrmproxy.address": "127.0.0.1:1",
        "yarn.resourcemanager.scheduler.address": "127.0.0.1:1",
    }
    with pytest.raises(ConfigError, match="this node's own proxy"):
        await start_node({"yarn.nodemanager.amrmproxy.enabled": "true", **address})


@pytest.mark.slow
async def test_killed_between_question_and_answer_it_gives_each_container_once(
    rm: FakeResourceManager, scheduler: FakeScheduler, tmp_path: Path
) -> None:
    proxy_port, node_port = free_ports([0, 0])
    settings = {**proxy_settings(scheduler, proxy_port), "yarn.nodemanager.address": f"127.0.0.1:{node_port}"}
    first = await NodeProcess.start(rm, tmp_path, settings)
    scheduler.publish(first.node_id)
    master = first.master(rm)
    proxied = await ProxiedMaster.launch(master, scheduler, tmp_path)
    await proxied.register()
    got = numbers(await proxied.allocate(ask(5)))
    got += numbers(await proxied.allocate())
    scheduler.holds = True
    unanswered = asyncio.ensure_future(proxied.allocate())
    await scheduler.held.wait()
    first.process.kill()
    await first.process.wait()
    with pytest.raises(RpcError):
        await unanswered
    scheduler.holds = False
    assert scheduler.booked == [-1, -2, -3] and got == [-1, -2], "the third was booked, nobody was told"
    rm.heartbeats.clear()
    second = await NodeProcess.start(rm, tmp_path, settings)
    try:
        await proxied.reconnect()
        again = await proxied.allocate()
        assert numbers(again) == [-3], "its answer was lost: it is given again"
        got += numbers(again)
        for _ in range(4):
            got += numbers(await proxied.allocate())
        assert got == [-1, -2, -3, -4, -5] == scheduler.booked, "what is still wanted is known, no id comes twice"
        assert scheduler.registrations == 1
    finally:
        second.process.terminate()
        await second.process.wait()
        await proxied.rpc.close()
        await master.client.close()
