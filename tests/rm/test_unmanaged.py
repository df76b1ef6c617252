"""Masters that run outside the cluster: handed their token in the report, watched like any other."""

import pytest

from tests.rm.rm_harness import LOOPBACK, FakeMaster, Harness, ManualClock, ask, cluster
from yaqd.ipc import RpcClient
from yaqd.ipc.errors import ApplicationAttemptNotFound, InvalidToken
from yaqd.model import ApplicationId
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Client
from yaqd.security import Token


async def attached(rm: Harness) -> tuple[ApplicationId, FakeMaster]:
    app_id = await rm.submit(unmanaged_am=True)
    report = await rm.report(app_id)
    assert report.unmanaged_application and report.yarn_application_state == common.ACCEPTED
    master = FakeMaster(rm.manager, Token.from_pb(report.am_rm_token))
    rm.masters.append(master)
    return app_id, master


async def test_works_as_any_other_without_a_container_of_its_own() -> None:
    async with cluster() as rm:
        node = await rm.node()
        app_id, master = await attached(rm)
        assert not node.started and rm.manager.scheduler.view.root.containers == 0
        await master.register()
        assert (await rm.report(app_id)).yarn_application_state == common.RUNNING
        given = await master.allocate(ask(2))
        assert [c.id.id for c in given.allocated_containers] == [1, 2]
        assert await master.finish()
        await rm.until(lambda: rm.manager.cluster.applications[app_id].is_over)
        report = await rm.report(app_id)
        assert (report.yarn_application_state, report.final_application_status) == (
            common.FINISHED,
            common.APP_SUCCEEDED,
        )
        assert rm.manager.scheduler.view.root.containers == 0


async def test_token_is_its_owners_alone_and_only_until_it_registers() -> None:
    async with cluster() as rm:
        app_id, master = await attached(rm)
        stranger = RpcClient(LOOPBACK, rm.manager.servers.client.port, user="root")
        request = pb.GetApplicationReportRequest(application_id=convert.application_id_pb(app_id))
        report = (await stranger.call(Client.getApplicationReport, request)).application_report
        await stranger.close()
        assert not report.HasField("am_rm_token")
        await master.register()
        assert not (await rm.report(app_id)).HasField("am_rm_token")


@pytest.mark.parametrize("registered", [True, False])
async def test_silent_master_fails_the_application_at_once(registered: bool) -> None:
    clock = ManualClock()
    async with cluster({"yarn.am.liveness-monitor.expiry-interval-ms": "60000"}, clock=clock) as rm:
        app_id, master = await attached(rm)
        if registered:
            await master.register()
        clock.seconds += 61
        await rm.until(lambda: rm.manager.cluster.applications[app_id].is_over)
        report = await rm.report(app_id)
        assert report.yarn_application_state == common.FAILED
        assert report.diagnostics.startswith(f"Unmanaged application {app_id} failed due to ")
        assert len(rm.manager.cluster.applications[app_id].attempts) == 1
        with pytest.raises((ApplicationAttemptNotFound, InvalidToken)):
            await master.allocate()


async def test_kill_does_not_wait_for_a_master_that_is_elsewhere() -> None:
    async with cluster() as rm:
        app_id, master = await attached(rm)
        await master.register()
        request = pb.KillApplicationRequest(application_id=convert.application_id_pb(app_id))
        assert (await rm.client.call(Client.forceKillApplication, request)).is_kill_completed
