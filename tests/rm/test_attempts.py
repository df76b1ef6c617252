"""What becomes of attempts whose masters fail, hang, are killed, or never start."""

import pytest

from tests.rm.rm_harness import FakeMaster, ManualClock, ask, cluster
from yaqd.ipc.errors import ApplicationAttemptNotFound, InvalidResourceRequest, RemoteException, YarnError
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Client
from yaqd.security import Token


def master_container(app_id: ApplicationId, attempt: int) -> ContainerId:
    return ContainerId.make(ApplicationAttemptId(app_id, attempt), 1)


async def test_failed_master_is_tried_again_until_the_limit() -> None:
    async with cluster() as rm:
        node = await rm.node()
        app_id, first = await rm.running(node)
        given = await first.allocate(ask(1))
        task = convert.container_id(given.allocated_containers[0].id)
        node.run(task)
        await node.beat()
        node.end(master_container(app_id, 1), 1, "no such file")
        orders = await node.beat()
        assert [convert.container_id(c) for c in orders.containers_to_cleanup] == [task], "its tasks are stopped"
        second = await rm.launched(app_id, node, attempt=2)
        with pytest.raises((ApplicationAttemptNotFound, RemoteException)):
            await first.allocate()
        await second.register()
        assert (await rm.report(app_id)).yarn_application_state == common.RUNNING
        node.end(master_container(app_id, 2), 137, "killed")
        await node.beat()
        await rm.until(lambda: rm.manager.cluster.applications[app_id].is_over)
        report = await rm.report(app_id)
        assert report.yarn_application_state == common.FAILED
        assert report.final_application_status == common.APP_FAILED
        expected = f"Application {app_id} failed 2 times due to AM Container for appattempt_"
        assert report.diagnostics.startswith(expected)
        assert "exited with  exitCode: 137" in report.diagnostics
        page = f"http://{rm.manager.reports.web_address}/cluster/app/{app_id}"
        assert report.diagnostics.endswith(
            f"killedFor more detailed output, check the application tracking page: {page} "
            "Then click on links to logs of each attempt.\n. Failing the application."
        )
        assert (report.progress, report.host, report.rpc_port) == (1.0, "N/A", -1)
        request = pb.GetApplicationAttemptsRequest(application_id=convert.application_id_pb(app_id))
        attempts = (await rm.client.call(Client.getApplicationAttempts, request)).application_attempts
        assert [a.yarn_application_attempt_state for a in attempts] == [common.APP_ATTEMPT_FAILED] * 2
        assert [(a.host, a.rpc_port) for a in attempts] == [("N/A", -1)] * 2


async def test_application_may_ask_for_fewer_attempts_and_not_for_more() -> None:
    async with cluster() as rm:
        node = await rm.node()
        once, _ = await rm.running(node, maxAppAttempts=1)
        node.end(master_container(once, 1), 1)
        await node.beat()
        await rm.until(lambda: rm.manager.cluster.applications[once].is_over)
        assert "failed 1 times (global limit =2; local limit is =1)" in (await rm.report(once)).diagnostics
        often = rm.manager.cluster.applications[await rm.submit(maxAppAttempts=99)]
        assert rm.manager.applications.attempts_max(often) == 2


async def test_what_is_told_of_a_killed_application() -> None:
    """As RMAppImpl and RMAppAttemptImpl report one: done, nobody there, and the attempt has nothing to say."""
    async with cluster() as rm:
        node = await rm.node()
        context = await rm.submission()
        context.application_timeouts.add(application_timeout_type=common.APP_TIMEOUT_LIFETIME, timeout=3000)
        app_id = convert.application_id(context.application_id)
        await rm.client.call(
            Client.submitApplication, pb.SubmitApplicationRequest(application_submission_context=context)
        )
        master = await rm.launched(app_id, node)
        await master.register()
        await master.allocate(progress=0.5)
        report = await rm.report(app_id)
        assert (report.progress, report.host) == (0.5, "am.example")
        assert report.appTimeouts[0].application_timeout.remaining_time > 2900
        await rm.client.call(
            Client.forceKillApplication, pb.KillApplicationRequest(application_id=context.application_id)
        )
        await rm.until(lambda: rm.manager.cluster.applications[app_id].is_over)
        report = await rm.report(app_id)
        assert (report.progress, report.host, report.rpc_port) == (1.0, "N/A", -1)
        assert report.appTimeouts[0].application_timeout.remaining_time == 0
        assert report.appTimeouts[0].application_timeout.expire_time != "UNLIMITED"
        request = pb.GetApplicationAttemptsRequest(application_id=context.application_id)
        (attempt,) = (await rm.client.call(Client.getApplicationAttempts, request)).application_attempts
        assert attempt.yarn_application_attempt_state == common.APP_ATTEMPT_KILLED
        assert (attempt.host, attempt.rpc_port, attempt.diagnostics) == ("N/A", -1, "")


@pytest.mark.parametrize(("is_killed", "progress"), [(True, 1.0), (False, 0.0)])
async def test_what_is_told_of_a_master_that_never_registered(is_killed: bool, progress: float) -> None:
    async with cluster() as rm:
        node = await rm.node()
        app_id = await rm.submit(maxAppAttempts=1)
        await rm.launched(app_id, node)
        app = rm.manager.cluster.applications[app_id]
        await rm.until(lambda: app.attempt is not None and app.attempt.state.name == "LAUNCHED")
        message = convert.application_id_pb(app_id)
        if is_killed:
            await rm.client.call(Client.forceKillApplication, pb.KillApplicationRequest(application_id=message))
        else:
            node.end(master_container(app_id, 1), 3, "crashed\n")
            await node.beat()
            await rm.until(lambda: app.is_over)
        assert (await rm.report(app_id)).progress == progress
        request = pb.GetApplicationAttemptsRequest(application_id=message)
        (attempt,) = (await rm.client.call(Client.getApplicationAttempts, request)).application_attempts
        said = "AM container is launched, waiting for AM container to Register with RM"
        assert (attempt.diagnostics == said) is is_killed


@pytest.mark.parametrize("exit_status", [-100, -101, -102, -106])
async def test_ends_that_are_not_the_masters_fault_do_not_count(exit_status: int) -> None:
    async with cluster() as rm:
        node = await rm.node()
        app_id, _ = await rm.running(node, maxAppAttempts=1)
        node.end(master_container(app_id, 1), exit_status)
        await node.beat()
        assert await rm.launched(app_id, node, attempt=2)


async def test_silent_master_expires() -> None:
    clock = ManualClock()
    overrides = {"yarn.am.liveness-monitor.expiry-interval-ms": "5000", "yarn.resourcemanager.am.max-attempts": "1"}
    async with cluster(overrides, clock=clock) as rm:
        node = await rm.node()
        app_id, master = await rm.running(node)
        clock.seconds += 4
        await master.allocate()
        clock.seconds += 4
        await master.allocate()
        clock.seconds += 6
        await rm.until(lambda: rm.manager.cluster.applications[app_id].is_over)
        assert "timed out" in (await rm.report(app_id)).diagnostics
        orders = await node.beat()
        assert len(orders.containers_to_cleanup) == 1


async def test_node_that_refuses_the_launch_fails_the_attempt() -> None:
    async with cluster() as rm:
        node = await rm.node()
        node.refusal = "the disk is full"
        app_id = await rm.submit()
        await rm.until(lambda: rm.manager.cluster.applications[app_id].is_over)
        report = await rm.report(app_id)
        assert report.yarn_application_state == common.FAILED
        assert "the disk is full" in report.diagnostics
        assert rm.manager.scheduler.view.root.used.is_zero()


async def test_unreadable_credentials_fail_with_a_reason() -> None:
    async with cluster() as rm:
        await rm.node()
        context = await rm.submission()
        context.am_container_spec.tokens = b"HDTS\x00\x7f garbage"
        await rm.client.call(
            Client.submitApplication, pb.SubmitApplicationRequest(application_submission_context=context)
        )
        app_id = convert.application_id(context.application_id)
        await rm.until(lambda: rm.manager.cluster.applications[app_id].is_over)
        assert "credentials" in (await rm.report(app_id)).diagnostics


async def kill(rm: object, app_id: ApplicationId) -> bool:
    request = pb.KillApplicationRequest(application_id=convert.application_id_pb(app_id))
    response = await rm.client.call(Client.forceKillApplication, request)  # type: ignore[attr-defined]
    return bool(response.is_kill_completed)


async def test_kill_while_running_and_while_waiting() -> None:
    async with cluster() as rm:
        waiting = await rm.submit()
        assert "Skipping AM assignment as cluster resource is empty." in (await rm.report(waiting)).diagnostics
        await kill(rm, waiting)
        node = await rm.node()
        app_id, master = await rm.running(node)
        await master.allocate(ask(2))
        await kill(rm, app_id)
        for killed in (waiting, app_id):
            await rm.until(lambda killed=killed: rm.manager.cluster.applications[killed].is_over)  # type: ignore[misc]
            assert await kill(rm, killed)
            report = await rm.report(killed)
            assert report.yarn_application_state == common.KILLED
            assert report.final_application_status == common.APP_KILLED
            assert report.diagnostics == f"Application {killed} was killed by user alice at 127.0.0.1"
        orders = await node.beat()
        assert len(orders.containers_to_cleanup) == 3
        assert [convert.application_id(a) for a in orders.applications_to_cleanup] == [app_id]
        assert rm.manager.scheduler.view.root.used.is_zero()
        with pytest.raises(RemoteException):
            await master.allocate()


async def test_unmanaged_master_gets_its_token_in_the_report() -> None:
    async with cluster() as rm:
        await rm.node()
        app_id = await rm.submit(unmanaged_am=True)
        report = await rm.report(app_id)
        assert report.HasField("am_rm_token")
        master = FakeMaster(rm.manager, Token.from_pb(report.am_rm_token))
        rm.masters.append(master)
        await master.register()
        assert not (await rm.report(app_id)).HasField("am_rm_token")
        assert len((await master.allocate(ask(1))).allocated_containers) == 1
        assert await master.finish()
        await rm.until(lambda: rm.manager.cluster.applications[app_id].is_over)
        assert rm.manager.scheduler.view.root.used.is_zero()


async def test_submission_that_cannot_be_is_refused_at_once() -> None:
    async with cluster() as rm:
        with pytest.raises(YarnError, match="unknown queue: nowhere"):
            await rm.submit(queue="nowhere")
        context = await rm.submission()
        context.resource.memory = 99999
        request = pb.SubmitApplicationRequest(application_submission_context=context)
        with pytest.raises(InvalidResourceRequest, match="greater than maximum"):
            await rm.client.call(Client.submitApplication, request)
        context = await rm.submission()
        context.application_id.id += 5
        with pytest.raises(YarnError, match="getNewApplication"):
            request = pb.SubmitApplicationRequest(application_submission_context=context)
            await rm.client.call(Client.submitApplication, request)


async def test_oversized_launch_context_is_refused() -> None:
    async with cluster() as rm:
        context = await rm.submission()
        context.am_container_spec.command.append("x" * (17 << 20))
        with pytest.raises(YarnError, match="ship files"):
            request = pb.SubmitApplicationRequest(application_submission_context=context)
            await rm.client.call(Client.submitApplication, request)


async def test_submitting_twice_is_one_application() -> None:
    async with cluster() as rm:
        context = await rm.submission()
        request = pb.SubmitApplicationRequest(application_submission_context=context)
        for _ in range(2):
            await rm.client.call(Client.submitApplication, request)
        assert len(rm.manager.cluster.applications) == 1


async def test_failing_an_attempt_by_hand_starts_the_next() -> None:
    async with cluster() as rm:
        node = await rm.node()
        app_id, _ = await rm.running(node)
        request = pb.FailApplicationAttemptRequest()
        request.application_attempt_id.CopyFrom(convert.attempt_id_pb(ApplicationAttemptId(app_id, 1)))
        await rm.client.call(Client.failApplicationAttempt, request)
        assert await rm.launched(app_id, node, attempt=2)
