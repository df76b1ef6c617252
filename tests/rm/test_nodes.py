"""Nodes that join, fall silent, come back, get sick."""

import pytest

from tests.rm.rm_harness import LOOPBACK, ManualClock, ask, cluster
from yaqd.ipc import RpcClient
from yaqd.model import NodeState
from yaqd.proto import convert
from yaqd.proto import yarn_admin_pb2 as admin
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Client
from yaqd.proto.protocols import ResourceManagerAdministrationProtocol, ResourceTracker


async def test_registration_brings_keys_and_answers_extensions_only_to_those_who_have_them() -> None:
    async with cluster() as rm:
        stock = await rm.node()
        assert stock.registration is not None
        assert stock.registration.nodeAction == server.NORMAL
        assert stock.registration.rm_identifier == rm.manager.started_ms
        assert stock.registration.container_token_master_key.bytes
        assert not stock.registration.HasField("yaq_capabilities")
        ours = await rm.node(capabilities=("yaq-1",))
        assert ours.registration is not None and ours.registration.yaq_capabilities.understands


async def test_newest_health_report_is_shown_of_healthy_nodes_too() -> None:
    async with cluster() as rm:
        node = await rm.node()
        request = node.heartbeat()
        health = request.node_status.nodeHealthStatus
        health.last_health_report_time, health.health_report = 12345, "1/2 local-dirs are full"
        await node.tracker.call(ResourceTracker.nodeHeartbeat, request)
        (report,) = (await rm.client.call(Client.getClusterNodes, pb.GetClusterNodesRequest())).nodeReports
        assert (report.last_health_report_time, report.health_report) == (12345, "1/2 local-dirs are full")
        assert report.node_state == common.NS_RUNNING


@pytest.mark.parametrize(("calculator", "counts"), [("Default", False), ("Dominant", True)])
async def test_nodes_learn_whether_cores_are_scheduled(calculator: str, counts: bool) -> None:
    name = f"org.apache.hadoop.yarn.util.resource.{calculator}ResourceCalculator"
    async with cluster({"yarn.scheduler.capacity.resource-calculator": name}) as rm:
        node = await rm.node(capabilities=("yaq-1",))
        assert node.registration is not None
        assert "stock" not in node.registration.yaq_capabilities.understands
        assert ("counts-vcores" in node.registration.yaq_capabilities.understands) is counts


async def test_nodes_learn_that_stock_ways_are_wanted() -> None:
    async with cluster({"yaq.compat": "stock"}) as rm:
        node = await rm.node(capabilities=("yaq-1",))
        assert node.registration is not None and "stock" in node.registration.yaq_capabilities.understands
        stock = await rm.node(host="127.0.0.2")
        assert stock.registration is not None and not stock.registration.HasField("yaq_capabilities")


async def test_node_too_small_for_any_container_is_sent_away() -> None:
    async with cluster() as rm:
        small = await rm.node(512, 1)
        assert small.registration is not None
        assert small.registration.nodeAction == server.SHUTDOWN
        assert "minimum allocations" in small.registration.diagnostics_message
        assert (await small.beat()).nodeAction == server.RESYNC


async def test_node_that_claims_the_impossible_is_sent_away() -> None:
    async with cluster() as rm:
        boaster = await rm.node(2**60, 8)
        assert boaster.registration is not None
        assert boaster.registration.nodeAction == server.SHUTDOWN
        assert "no machine has" in boaster.registration.diagnostics_message


async def test_lost_answer_is_repeated_and_a_gap_resynchronizes() -> None:
    async with cluster() as rm:
        node = await rm.node()
        first = await node.beat()
        assert first.response_id == 1 and first.nextHeartBeatInterval == 1000
        node.response_id = 0
        assert await node.beat() == first
        node.response_id = 9
        assert (await node.beat()).nodeAction == server.RESYNC


async def test_silent_node_is_lost_with_its_containers() -> None:
    clock = ManualClock()
    async with cluster({"yarn.nm.liveness-monitor.expiry-interval-ms": "3000"}, clock=clock) as rm:
        silent, other = await rm.node(2048), await rm.node()
        app_id = await rm.submit()
        await rm.until(lambda: bool(silent.started or other.started))
        home = other if other.started else silent
        away = silent if home is other else other
        master = await rm.launched(app_id, home)
        await master.register()
        response = await master.allocate(ask(9))
        there = [c for c in response.allocated_containers if c.nodeId.port == away.id.port]
        assert there
        for container in there:
            away.run(convert.container_id(container.id))
        await away.beat()
        clock.seconds += 2
        await home.beat()
        clock.seconds += 2
        await rm.until(lambda: rm.manager.cluster.nodes[away.id].state is NodeState.LOST)
        response = await master.allocate(ask(0))
        lost = {s.container_id.id: s for s in response.completed_container_statuses}
        assert set(lost) == {c.id.id for c in there}
        assert {s.exit_status for s in lost.values()} == {-100}
        assert [n.node_state for n in response.updated_nodes][-1] == common.NS_LOST
        assert (await away.beat()).nodeAction == server.RESYNC
        await away.register()
        assert rm.manager.cluster.usable_nodes == 2


async def test_node_that_comes_back_keeps_what_it_brings_and_loses_the_rest() -> None:
    async with cluster() as rm:
        node = await rm.node()
        _, master = await rm.running(node)
        given = [convert.container_id(c.id) for c in (await master.allocate(ask(2))).allocated_containers]
        for container_id in given:
            node.run(container_id)
        await node.beat()
        del node.running[given[1]]
        await node.register(keep=True)
        rm.manager.scheduler.validate()
        response = await master.allocate()
        assert [s.container_id.id for s in response.completed_container_statuses] == [given[1].id]
        assert "lost" in response.completed_container_statuses[0].diagnostics
        await node.beat()
        assert given[0] in node.running


async def test_unknown_container_is_stopped_and_a_missing_one_is_lost() -> None:
    async with cluster() as rm:
        node = await rm.node()
        _, master = await rm.running(node)
        given = convert.container_id((await master.allocate(ask(1))).allocated_containers[0].id)
        node.run(given)
        await node.beat()
        del node.running[given]
        await node.beat()
        response = await master.allocate()
        assert "was running but not reported" in response.completed_container_statuses[0].diagnostics
        stranger = type(given).make(given.attempt_id, 99)
        node.run(stranger)
        orders = await node.beat()
        assert stranger in [convert.container_id(c) for c in orders.containers_to_cleanup]


async def test_a_node_that_reports_neither_master_nor_task_any_more_loses_both() -> None:
    async with cluster() as rm:
        node = await rm.node()
        app_id, master = await rm.running(node)
        (given,) = (await master.allocate(ask(1))).allocated_containers
        node.run(convert.container_id(given.id))
        await node.beat()
        node.running.clear()
        assert (await node.beat()).nodeAction == server.NORMAL
        app = rm.manager.cluster.applications[app_id]
        assert app.attempts[0].is_over and not app.attempts[0].containers


async def test_sick_node_gives_up_its_containers_and_recovers() -> None:
    async with cluster() as rm:
        healthy, sick = await rm.node(), await rm.node()
        app_id = await rm.submit()
        await rm.until(lambda: bool(healthy.started or sick.started))
        if sick.started:
            healthy, sick = sick, healthy
        master = await rm.launched(app_id, healthy)
        await master.register()
        await master.allocate(ask(10))
        orders = await sick.beat(is_healthy=False)
        assert orders.containers_to_cleanup
        ended = (await master.allocate()).completed_container_statuses
        assert {s.exit_status for s in ended} == {-100}
        request = pb.GetClusterNodesRequest(nodeStates=[common.NS_UNHEALTHY])
        reports = (await rm.client.call(Client.getClusterNodes, request)).nodeReports
        assert [(r.nodeId.port, r.health_report) for r in reports] == [(sick.id.port, "disk is full")]
        await sick.beat()
        assert rm.manager.cluster.usable_nodes == 2


async def test_container_that_nobody_starts_expires() -> None:
    clock = ManualClock()
    overrides = {
        "yarn.resourcemanager.rm.container-allocation.expiry-interval-ms": "10000",
        "yarn.am.liveness-monitor.expiry-interval-ms": "90000000",
    }
    async with cluster(overrides, clock=clock) as rm:
        node = await rm.node()
        _, master = await rm.running(node)
        await node.beat()
        await master.allocate(ask(1))
        clock.seconds += 11
        await rm.until(lambda: len(rm.manager.cluster.containers) == 1)
        response = await master.allocate()
        assert [s.exit_status for s in response.completed_container_statuses] == [-100]
        assert "expired since it was unused" in response.completed_container_statuses[0].diagnostics


async def test_node_unregisters() -> None:
    async with cluster() as rm:
        node = await rm.node()
        await node.unregister()
        assert rm.manager.cluster.nodes[node.id].state is NodeState.SHUTDOWN
        metrics = await rm.client.call(Client.getClusterMetrics, pb.GetClusterMetricsRequest())
        assert metrics.cluster_metrics.num_shutdown_nms == 1


async def test_administrator_resizes_a_node() -> None:
    async with cluster() as rm:
        node = await rm.node()
        client = RpcClient(LOOPBACK, rm.manager.servers.admin.port, user="root")
        request = admin.UpdateNodeResourceRequest()
        change = request.node_resource_map.add()
        change.node_id.CopyFrom(convert.node_id_pb(node.id))
        change.resource_option.resource.memory, change.resource_option.resource.virtual_cores = 4096, 2
        await client.call(ResourceManagerAdministrationProtocol.updateNodeResource, request)
        await client.close()
        assert rm.manager.scheduler.view.nodes.total.memory_mb == 4096
        assert (await node.beat()).resource.memory == 4096
