"""Containers that outlive their master, where the application asked for it."""

import pytest

from tests.rm.rm_harness import FakeMaster, FakeNode, Harness, ask, cluster
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Client


def _master_of(app_id: ApplicationId, attempt: int) -> ContainerId:
    return ContainerId.make(ApplicationAttemptId(app_id, attempt), 1)


async def _two_tasks(rm: Harness, node: FakeNode, **fields: object) -> tuple[ApplicationId, FakeMaster, ContainerId]:
    """An application with one task that runs and one that was never started; the one that runs."""
    app_id, master = await rm.running(node, **fields)
    given = (await master.allocate(ask(2))).allocated_containers
    task = convert.container_id(given[0].id)
    node.run(task)
    await node.beat()
    return app_id, master, task


async def _fail_master(node: FakeNode, app_id: ApplicationId, attempt: int = 1) -> set[ContainerId]:
    """The master ends; which containers the node is told to kill."""
    node.end(_master_of(app_id, attempt), 1, "crashed")
    return {convert.container_id(c) for c in (await node.beat()).containers_to_cleanup}


async def _status(rm: Harness, container: ContainerId) -> common.ContainerReport:
    request = pb.GetContainerReportRequest(container_id=convert.container_id_pb(container))
    return (await rm.client.call(Client.getContainerReport, request)).container_report


async def test_next_master_gets_what_runs() -> None:
    async with cluster() as rm:
        node = await rm.node()
        app_id, _, task = await _two_tasks(rm, node, keep_containers_across_application_attempts=True)
        killed = await _fail_master(node, app_id)
        assert task not in killed and len(killed) == 1, "what runs goes on, what was not started does not"
        second = await rm.launched(app_id, node, attempt=2)
        registered = await second.register()
        (kept,) = registered.containers_from_previous_attempts
        assert convert.container_id(kept.id) == task
        assert kept.container_token.identifier
        assert [t.nodeId.port for t in registered.nm_tokens_from_previous_attempts] == [node.id.port]
        answer = await second.allocate(ask(1))
        assert not answer.nm_tokens, "the node's token came with the registration"
        node.end(task, 7, "boom")
        await node.beat()
        (ended,) = (await second.allocate()).completed_container_statuses
        assert (convert.container_id(ended.container_id), ended.exit_status) == (task, 7)
        await second.allocate()
        forgotten = (await node.beat()).containers_to_be_removed_from_nm
        assert task in {convert.container_id(c) for c in forgotten}
        assert (await _status(rm, task)).container_exit_status == 7
        rm.manager.scheduler.validate()


async def test_ends_meanwhile_are_told_to_the_next_master() -> None:
    async with cluster() as rm:
        node = await rm.node()
        app_id, _, task = await _two_tasks(rm, node, keep_containers_across_application_attempts=True)
        await _fail_master(node, app_id)
        node.end(task, 5)
        orders = await node.beat()
        assert task not in {convert.container_id(c) for c in orders.containers_to_be_removed_from_nm}
        second = await rm.launched(app_id, node, attempt=2)
        assert not (await second.register()).containers_from_previous_attempts
        (ended,) = (await second.allocate()).completed_container_statuses
        assert (convert.container_id(ended.container_id), ended.exit_status) == (task, 5)


async def test_end_that_the_old_master_may_not_have_heard_is_told_again() -> None:
    async with cluster() as rm:
        node = await rm.node()
        app_id, first, task = await _two_tasks(rm, node, keep_containers_across_application_attempts=True)
        node.end(task, 5)
        await node.beat()
        assert len((await first.allocate()).completed_container_statuses) == 1
        await _fail_master(node, app_id)
        second = await rm.launched(app_id, node, attempt=2)
        await second.register()
        (ended,) = (await second.allocate()).completed_container_statuses
        assert convert.container_id(ended.container_id) == task


async def test_new_master_gives_a_kept_container_back() -> None:
    async with cluster() as rm:
        node = await rm.node()
        app_id, _, task = await _two_tasks(rm, node, keep_containers_across_application_attempts=True)
        await _fail_master(node, app_id)
        second = await rm.launched(app_id, node, attempt=2)
        await second.register()
        await second.allocate(release=(convert.container_id_pb(task),))
        assert task in {convert.container_id(c) for c in (await node.beat()).containers_to_cleanup}
        assert task not in rm.manager.cluster.containers


@pytest.mark.parametrize("end", ["last attempt", "killed", "finished"])
async def test_nothing_outlives_the_application(end: str) -> None:
    async with cluster() as rm:
        node = await rm.node()
        app_id, _, task = await _two_tasks(rm, node, keep_containers_across_application_attempts=True)
        await _fail_master(node, app_id)
        second = await rm.launched(app_id, node, attempt=2)
        await second.register()
        assert task in rm.manager.cluster.containers
        if end == "killed":
            request = pb.KillApplicationRequest(application_id=convert.application_id_pb(app_id))
            await rm.client.call(Client.forceKillApplication, request)
        elif end == "finished":
            await second.finish()
        if end == "killed":
            killed = {convert.container_id(c) for c in (await node.beat()).containers_to_cleanup}
        else:
            killed = await _fail_master(node, app_id, attempt=2)
        assert task in killed
        await rm.until(lambda: rm.manager.cluster.applications[app_id].is_over)
        assert task not in rm.manager.cluster.containers
        assert rm.manager.scheduler.view.root.used.memory_mb == 0


@pytest.mark.parametrize("asked", [True, False])
async def test_only_where_another_attempt_follows_and_it_was_asked_for(asked: bool) -> None:
    async with cluster() as rm:
        node = await rm.node()
        app_id, _, task = await _two_tasks(
            rm, node, keep_containers_across_application_attempts=asked, maxAppAttempts=1 if asked else 2
        )
        assert task in await _fail_master(node, app_id)
