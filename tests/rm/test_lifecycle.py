"""An application from submission to clean-up, over real RPC."""

from tests.rm.rm_harness import ManualClock, ask, cluster
from yaqd.model import ContainerId
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common


async def test_application_runs_from_submission_to_clean_up() -> None:
    async with cluster() as rm:
        node = await rm.node()
        app_id = await rm.submit()
        master = await rm.launched(app_id, node)

        context = next(iter(node.started.values()))
        environment = {e.key: e.value for e in context.environment}
        assert environment["APPLICATION_WEB_PROXY_BASE"] == f"/proxy/{app_id}"
        assert environment["APP_SUBMIT_TIME_ENV"].isdigit()

        registered = await master.register()
        assert registered.maximumCapability.memory == 8192
        assert registered.queue == "root.default"
        report = await rm.report(app_id)
        assert report.yarn_application_state == common.RUNNING
        assert (report.host, report.rpc_port) == ("am.example", 4711)

        # The ask is answered in the very same call.
        response = await master.allocate(ask(2))
        assert len(response.allocated_containers) == 2
        assert [t.nodeId.port for t in response.nm_tokens] == [node.id.port]
        assert response.limit.memory == 8192 - 3 * 1024
        first, second = (convert.container_id(c.id) for c in response.allocated_containers)
        assert str(first).endswith("_01_000002")
        node.run(first)
        node.run(second)
        await node.beat()
        node.end(first, 0)
        node.end(second, 7, "boom")
        await node.beat()
        response = await master.allocate()
        ends = {convert.container_id(s.container_id): s for s in response.completed_container_statuses}
        assert ends[first].exit_status == 0
        assert (ends[second].exit_status, ends[second].diagnostics) == (7, "boom")
        assert len(node.ended) == 2
        await node.beat()
        assert len(node.ended) == 2, "the master may not have had that answer, and may still ask the node"
        await master.allocate()
        await node.beat()
        assert not node.ended, "the node forgets what the master knows"

        assert await master.finish()
        report = await rm.report(app_id)
        assert report.yarn_application_state == common.FINISHED
        assert report.final_application_status == common.APP_SUCCEEDED
        assert report.diagnostics == "all done"
        node.end(ContainerId.make(first.attempt_id, 1))
        response_to_node = await node.beat()
        assert [convert.application_id(a) for a in response_to_node.applications_to_cleanup] == [app_id]
        assert rm.manager.scheduler.view.root.used.is_zero()


async def test_what_running_containers_hold_counts_too() -> None:
    clock = ManualClock()
    async with cluster(clock=clock) as rm:
        node = await rm.node()
        app_id, _ = await rm.running(node)
        clock.seconds += 2.5
        usage = (await rm.report(app_id)).app_resource_Usage
        held = usage.used_resources
        assert (usage.memory_seconds, usage.vcore_seconds) == (int(held.memory * 2.5), int(held.virtual_cores * 2.5))
