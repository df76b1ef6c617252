"""The state of an application's logs, as its report shows it."""

from tests.rm.rm_harness import FakeNode, Harness, ManualClock, cluster
from yaqd.model import ApplicationId
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto.protocols import ResourceTracker

_ON = {"yarn.log-aggregation-enable": "true", "yarn.log-aggregation-status.time-out.ms": "60000"}


async def _say(node: FakeNode, app: ApplicationId, status: "common.LogAggregationStatus") -> None:
    request = node.heartbeat()
    report = request.log_aggregation_reports_for_apps.add(log_aggregation_status=status, diagnostics="why")
    report.application_id.CopyFrom(convert.application_id_pb(app))
    node.response_id = (await node.tracker.call(ResourceTracker.nodeHeartbeat, request)).response_id


async def _status(harness: Harness, app: ApplicationId) -> int:
    return int((await harness.report(app)).log_aggregation_status)


async def _end(harness: Harness, node: FakeNode, app: ApplicationId) -> None:
    """The master unregisters and its container ends."""
    await harness.masters[-1].finish()
    for container in [c for c in node.running if c.application_id == app]:
        node.end(container)
    await node.beat()
    await harness.until(lambda: harness.manager.cluster.applications[app].is_over)


async def test_off_is_disabled() -> None:
    async with cluster() as harness:
        node = await harness.node()
        app, _ = await harness.running(node)
        await _say(node, app, common.LOG_SUCCEEDED)
        assert await _status(harness, app) == common.LOG_DISABLED


async def test_from_not_started_to_succeeded_when_every_node_has_said_so() -> None:
    async with cluster(_ON) as harness:
        node, other = await harness.node(), await harness.node()
        app = await harness.submit()
        assert await _status(harness, app) == common.LOG_NOT_START
        runs, idle = (node, other)
        await harness.until(lambda: bool(node.started or other.started))
        if other.started:
            runs, idle = other, node
        master = await harness.launched(app, runs)
        await master.register()
        await runs.beat()
        assert await _status(harness, app) == common.LOG_NOT_START
        await _say(runs, app, common.LOG_RUNNING)
        assert await _status(harness, app) == common.LOG_RUNNING
        # a node of which the ResourceManager did not know that it ran something
        await _say(idle, app, common.LOG_RUNNING)
        await _end(harness, runs, app)
        await _say(runs, app, common.LOG_SUCCEEDED)
        assert await _status(harness, app) == common.LOG_RUNNING
        await _say(idle, app, common.LOG_SUCCEEDED)
        assert await _status(harness, app) == common.LOG_SUCCEEDED
        await _say(idle, app, common.LOG_FAILED)
        assert await _status(harness, app) == common.LOG_SUCCEEDED


async def test_a_failure_is_shown_until_the_end_and_one_failed_node_is_enough() -> None:
    async with cluster(_ON) as harness:
        node = await harness.node()
        app, _ = await harness.running(node)
        await node.beat()
        await _say(node, app, common.LOG_RUNNING_WITH_FAILURE)
        await _say(node, app, common.LOG_RUNNING)
        assert await _status(harness, app) == common.LOG_RUNNING_WITH_FAILURE
        await _end(harness, node, app)
        await _say(node, app, common.LOG_FAILED)
        assert await _status(harness, app) == common.LOG_FAILED


async def test_nodes_that_say_nothing_time_out_and_may_still_come_later() -> None:
    clock = ManualClock()
    async with cluster(_ON, clock=clock) as harness:
        node = await harness.node()
        app, _ = await harness.running(node)
        await node.beat()
        await _end(harness, node, app)
        assert await _status(harness, app) == common.LOG_NOT_START
        await _say(node, app, common.LOG_RUNNING)
        clock.seconds += 61
        assert await _status(harness, app) == common.LOG_TIME_OUT
        await _say(node, app, common.LOG_SUCCEEDED)
        assert await _status(harness, app) == common.LOG_SUCCEEDED


async def test_a_node_that_registers_says_what_a_new_resource_manager_cannot_know() -> None:
    async with cluster(_ON) as harness:
        node = await harness.node()
        app, _ = await harness.running(node)
        await node.beat()
        await _end(harness, node, app)
        from yaqd.proto import yarn_server_pb2 as server

        request = server.RegisterNodeManagerRequest(http_port=8042, nm_version="3.4.1")
        request.node_id.host, request.node_id.port = node.id.host, node.id.port
        request.resource.CopyFrom(node.size)
        report = request.log_aggregation_reports_for_apps.add(log_aggregation_status=common.LOG_SUCCEEDED)
        report.application_id.CopyFrom(convert.application_id_pb(app))
        await node.tracker.call(ResourceTracker.registerNodeManager, request)
        assert await _status(harness, app) == common.LOG_SUCCEEDED
