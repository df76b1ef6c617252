"""What users may see and change of others' applications, and who may administrate."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from rm.daemon import ResourceManager
from tests.rm.rm_harness import LOOPBACK, Harness, cluster, configuration
from yaqd.config import Configuration
from yaqd.ipc import RpcClient
from yaqd.ipc.errors import Authorization, RemoteIOError, YarnError
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId
from yaqd.proto import convert
from yaqd.proto import yarn_admin_pb2 as admin
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Client
from yaqd.proto.protocols import ResourceManagerAdministrationProtocol as Admin

ACLS = {
    "yarn.acl.enable": "true",
    "yarn.admin.acl": "root wheel",
    "hadoop.user.group.static.mapping.overrides": "gina=wheel;olga=operators;vera=viewers;mallory=",
    "yarn.scheduler.capacity.root.acl_administer_queue": " operators",
    "yarn.scheduler.capacity.root.acl_submit_applications": "alice,mallory",
}


@asynccontextmanager
async def client_of(rm: Harness, user: str, *, port: int = 0) -> AsyncIterator[RpcClient]:
    client = RpcClient(LOOPBACK, port or rm.manager.servers.client.port, user=user)
    try:
        yield client
    finally:
        await client.close()


async def guarded(rm: Harness) -> ApplicationId:
    """An application that lets one user and one group see it, and another user change it."""
    node = await rm.node()
    context = await rm.submission()
    acls = context.am_container_spec.application_ACLs
    acls.add(accessType=common.APPACCESS_VIEW_APP, acl="bob viewers")
    acls.add(accessType=common.APPACCESS_MODIFY_APP, acl="mo")
    await rm.client.call(Client.submitApplication, pb.SubmitApplicationRequest(application_submission_context=context))
    app_id = convert.application_id(context.application_id)
    master = await rm.launched(app_id, node)
    await master.register()
    return app_id


def by_id(app_id: ApplicationId) -> dict[str, Any]:
    return {"application_id": convert.application_id_pb(app_id)}


async def test_strangers_see_that_an_application_is_there_and_no_more() -> None:
    async with cluster(ACLS) as rm:
        app_id = await guarded(rm)
        async with client_of(rm, "mallory") as mallory:
            request = pb.GetApplicationReportRequest(**by_id(app_id))
            report = (await mallory.call(Client.getApplicationReport, request)).application_report
            assert (report.user, report.queue, report.yarn_application_state) == (
                "alice",
                "root.default",
                common.RUNNING,
            )
            assert (report.host, report.rpc_port, report.trackingUrl) == ("N/A", -1, "N/A")
            assert (report.originalTrackingUrl, report.diagnostics, report.progress) == ("N/A", "N/A", 0.0)
            assert report.currentApplicationAttemptId.attemptId == -1
            assert report.app_resource_Usage.used_resources.memory == -1
            listed = (await mallory.call(Client.getApplications, pb.GetApplicationsRequest())).applications
            assert [a.host for a in listed] == ["N/A"]
            viewable = pb.GetApplicationsRequest(scope=pb.VIEWABLE)
            assert not (await mallory.call(Client.getApplications, viewable)).applications
            queue = pb.GetQueueInfoRequest(queueName="root", includeApplications=True)
            assert not (await mallory.call(Client.getQueueInfo, queue)).queueInfo.applications


@pytest.mark.parametrize("user", ["alice", "bob", "vera", "olga", "root", "gina"])
async def test_those_whom_a_list_names_see_all_of_it(user: str) -> None:
    async with cluster(ACLS) as rm:
        app_id = await guarded(rm)
        async with client_of(rm, user) as client:
            request = pb.GetApplicationReportRequest(**by_id(app_id))
            report = (await client.call(Client.getApplicationReport, request)).application_report
            assert (report.host, report.rpc_port) == ("am.example", 4711)
            queue = pb.GetQueueInfoRequest(queueName="root", includeApplications=True)
            assert len((await client.call(Client.getQueueInfo, queue)).queueInfo.applications) == 1


async def test_what_is_inside_is_refused_with_hadoops_words() -> None:
    async with cluster(ACLS) as rm:
        app_id = await guarded(rm)
        attempt = convert.attempt_id_pb(ApplicationAttemptId(app_id, 1))
        container = convert.container_id_pb(ContainerId.make(ApplicationAttemptId(app_id, 1), 1))
        async with client_of(rm, "mo") as client:
            whole = f"User mo does not have privilege to see this application {app_id}"
            reads: list[tuple[Awaitable[object], str]] = [
                (
                    client.call(
                        Client.getApplicationAttemptReport,
                        pb.GetApplicationAttemptReportRequest(application_attempt_id=attempt),
                    ),
                    f"User mo does not have privilege to see this attempt appattempt_{str(app_id)[12:]}_000001",
                ),
                (client.call(Client.getApplicationAttempts, pb.GetApplicationAttemptsRequest(**by_id(app_id))), whole),
                (client.call(Client.getContainers, pb.GetContainersRequest(application_attempt_id=attempt)), whole),
                (client.call(Client.getContainerReport, pb.GetContainerReportRequest(container_id=container)), whole),
            ]
            for read, text in reads:
                with pytest.raises(YarnError) as caught:
                    await read
                assert caught.value.message == text


def changes_of(app_id: ApplicationId) -> list[Callable[[RpcClient], Awaitable[object]]]:
    """Everything that changes an application, the end of it last."""
    priority = pb.UpdateApplicationPriorityRequest(applicationId=convert.application_id_pb(app_id))
    priority.applicationPriority.priority = 1
    timeouts = pb.UpdateApplicationTimeoutsRequest(applicationId=convert.application_id_pb(app_id))
    timeouts.application_timeouts.add(
        application_timeout_type=common.APP_TIMEOUT_LIFETIME, expire_time="2099-01-01T00:00:00.000+0000"
    )
    attempt = ApplicationAttemptId(app_id, 1)
    signal = pb.SignalContainerRequest(command=common.GRACEFUL_SHUTDOWN)
    convert.put_container_id(signal.container_id, ContainerId.make(attempt, 1))
    move = pb.MoveApplicationAcrossQueuesRequest(target_queue="default", **by_id(app_id))
    fail = pb.FailApplicationAttemptRequest(application_attempt_id=convert.attempt_id_pb(attempt))
    return [
        lambda client: client.call(Client.updateApplicationPriority, priority),
        lambda client: client.call(Client.updateApplicationTimeouts, timeouts),
        lambda client: client.call(Client.signalToContainer, signal),
        lambda client: client.call(Client.moveApplicationAcrossQueues, move),
        lambda client: client.call(Client.failApplicationAttempt, fail),
        lambda client: client.call(Client.forceKillApplication, pb.KillApplicationRequest(**by_id(app_id))),
    ]


@pytest.mark.parametrize("user", ["mallory", "bob", "vera"])
async def test_those_who_may_not_change_it_change_nothing(user: str) -> None:
    async with cluster(ACLS) as rm:
        app_id = await guarded(rm)
        async with client_of(rm, user) as client:
            for change in changes_of(app_id):
                with pytest.raises(YarnError) as caught:
                    await change(client)
                assert caught.value.message == (
                    f"java.security.AccessControlException: User {user} cannot perform operation MODIFY_APP on {app_id}"
                )
        app = rm.manager.cluster.applications[app_id]
        assert not app.is_concluded and app.expires_ms is None and len(app.attempts) == 1


@pytest.mark.parametrize("user", ["alice", "olga", "root"])
async def test_owner_and_administrators_of_queue_and_cluster_change_it(user: str) -> None:
    async with cluster(ACLS | {"yarn.scheduler.capacity.root.acl_submit_applications": "*"}) as rm:
        app_id = await guarded(rm)
        async with client_of(rm, user) as client:
            for change in changes_of(app_id):
                await change(client)
        assert rm.manager.cluster.applications[app_id].is_concluded


async def test_whom_only_the_applications_list_names_changes_it_but_takes_it_to_no_other_queue() -> None:
    async with cluster(ACLS) as rm:
        app_id = await guarded(rm)
        async with client_of(rm, "mo") as mo:
            move = pb.MoveApplicationAcrossQueuesRequest(target_queue="default", **by_id(app_id))
            with pytest.raises(YarnError, match="User mo cannot submit applications to target queue or the target"):
                await mo.call(Client.moveApplicationAcrossQueues, move)
            await mo.call(Client.forceKillApplication, pb.KillApplicationRequest(**by_id(app_id)))
        assert rm.manager.cluster.applications[app_id].is_concluded


async def test_cluster_administrators_are_not_in_the_queues_lists() -> None:
    async with cluster(ACLS | {"yarn.admin.acl": "*"}) as rm, client_of(rm, "bob") as bob:
        context = await rm.submission()
        with pytest.raises(YarnError, match=r"User bob does not have permission to submit application_.* to queue def"):
            await bob.call(
                Client.submitApplication, pb.SubmitApplicationRequest(application_submission_context=context)
            )


async def test_rights_in_queues_are_told_by_their_lists() -> None:
    async with cluster(ACLS) as rm:
        for user, rights in (
            ("alice", [common.QACL_SUBMIT_APPLICATIONS]),
            ("olga", [common.QACL_ADMINISTER_QUEUE]),
            ("root", []),
        ):
            async with client_of(rm, user) as client:
                answer = await client.call(Client.getQueueUserAcls, pb.GetQueueUserAclsInfoRequest())
                assert [(a.queueName, list(a.userAcls)) for a in answer.queueUserAcls] == [
                    ("root", rights),
                    ("root.default", rights),
                ]


async def test_administration_asks_its_list_even_where_others_are_not_asked() -> None:
    async with (
        cluster(ACLS | {"yarn.acl.enable": "false"}) as rm,
        client_of(rm, "mallory", port=rm.manager.servers.admin.port) as mallory,
        client_of(rm, "gina", port=rm.manager.servers.admin.port) as gina,
    ):
        for method, request in (
            (Admin.refreshAdminAcls, admin.RefreshAdminAclsRequest()),
            (Admin.refreshSuperUserGroupsConfiguration, admin.RefreshSuperUserGroupsConfigurationRequest()),
            (Admin.refreshUserToGroupsMappings, admin.RefreshUserToGroupsMappingsRequest()),
            (Admin.refreshClusterMaxPriority, admin.RefreshClusterMaxPriorityRequest()),
            (Admin.refreshQueues, admin.RefreshQueuesRequest()),
        ):
            with pytest.raises(YarnError, match=f"User mallory doesn't have permission to call '{method.name}'"):
                await mallory.call(method, request)  # type: ignore[misc]
            await gina.call(method, request)  # type: ignore[misc]
        with pytest.raises(YarnError, match=r"Service Authorization \(hadoop.security.authorization\) not enabled"):
            await gina.call(Admin.refreshServiceAcls, admin.RefreshServiceAclsRequest())
        labels = admin.AddToClusterNodeLabelsRequest()
        with pytest.raises(YarnError, match="User mallory doesn't have permission to call 'addToClusterNodeLabels'"):
            await mallory.call(Admin.addToClusterNodeLabels, labels)
        with pytest.raises(YarnError, match=r"has no node labels, and yarn.node-labels.enabled gives it none"):
            await gina.call(Admin.addToClusterNodeLabels, labels)
        groups = await gina.call(Admin.getGroupsForUser, admin.GetGroupsForUserRequest(user="root"))
        assert groups.groups[0] == "root"
        with pytest.raises(RemoteIOError, match="getGroupsForUser"):
            await mallory.call(Admin.getGroupsForUser, admin.GetGroupsForUserRequest(user="root"))


def _write_site(folder: Path, name: str, values: dict[str, str]) -> None:
    rows = "".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in values.items())
    (folder / f"{name}-site.xml").write_text(f"<configuration>{rows}</configuration>")


async def test_lists_are_read_again_when_somebody_says_so(tmp_path: Path) -> None:
    _write_site(tmp_path, "yarn", {"yarn.admin.acl": "carol", "yarn.acl.enable": "true"})
    _write_site(tmp_path, "core", {})
    base = configuration()
    settings = {k: base.get(k) or "" for k in base.changed_keys()}
    manager = ResourceManager(Configuration.load(tmp_path, overrides=settings, environ={}))
    await manager.start()
    rm = Harness(manager)
    port = manager.servers.admin.port
    try:
        async with client_of(rm, "carol", port=port) as carol, client_of(rm, "dan", port=port) as dan:
            with pytest.raises(YarnError, match="User dan doesn't"):
                await dan.call(Admin.refreshAdminAcls, admin.RefreshAdminAclsRequest())
            _write_site(tmp_path, "yarn", {"yarn.admin.acl": "dan", "yarn.cluster.max-application-priority": "7"})
            await carol.call(Admin.refreshClusterMaxPriority, admin.RefreshClusterMaxPriorityRequest())
            assert manager.applications.priority_max == 7
            await carol.call(Admin.refreshAdminAcls, admin.RefreshAdminAclsRequest())
            with pytest.raises(YarnError, match="User carol doesn't"):
                await carol.call(Admin.refreshAdminAcls, admin.RefreshAdminAclsRequest())
            _write_site(tmp_path, "core", {"hadoop.user.group.static.mapping.overrides": "x=y=z"})
            with pytest.raises(RemoteIOError, match=r"static\.mapping\.overrides"):
                await dan.call(Admin.refreshUserToGroupsMappings, admin.RefreshUserToGroupsMappingsRequest())
            _write_site(tmp_path, "core", {"hadoop.user.group.static.mapping.overrides": "eve=staff,wheel"})
            await dan.call(Admin.refreshUserToGroupsMappings, admin.RefreshUserToGroupsMappingsRequest())
            groups = await dan.call(Admin.getGroupsForUser, admin.GetGroupsForUserRequest(user="eve"))
            assert list(groups.groups) == ["staff", "wheel"]
            _write_site(
                tmp_path, "core", {"hadoop.proxyuser.oozie.users": "alice", "hadoop.proxyuser.oozie.hosts": "*"}
            )
            with pytest.raises(Authorization, match="oozie is not allowed to impersonate alice"):
                await impersonated_report(rm, "oozie", "alice")
            await dan.call(
                Admin.refreshSuperUserGroupsConfiguration, admin.RefreshSuperUserGroupsConfigurationRequest()
            )
            await impersonated_report(rm, "oozie", "alice")
    finally:
        await rm.stop()


async def impersonated_report(rm: Harness, real_user: str, user: str) -> None:
    client = RpcClient(LOOPBACK, rm.manager.servers.client.port, user=user, real_user=real_user)
    try:
        await client.call(Client.getClusterMetrics, pb.GetClusterMetricsRequest())
    finally:
        await client.close()


PROXIES = {
    "hadoop.proxyuser.oozie.users": "alice,bob",
    "hadoop.proxyuser.oozie.groups": "staff",
    "hadoop.proxyuser.oozie.hosts": "127.0.0.0/8",
    "hadoop.proxyuser.far.users": "*",
    "hadoop.proxyuser.far.hosts": "10.0.0.1",
    "hadoop.proxyuser.nowhere.users": "*",
    "yarn.resourcemanager.proxyuser.far.users": "carol",
    "hadoop.user.group.static.mapping.overrides": "carol=staff;dave=",
}


async def test_proxy_user_acts_for_those_it_may_act_for() -> None:
    async with cluster(PROXIES) as rm:
        for user in ("alice", "carol"):
            await impersonated_report(rm, "oozie", user)
        client = RpcClient(LOOPBACK, rm.manager.servers.client.port, user="bob", real_user="oozie")
        context = await rm.submission()
        await client.call(Client.submitApplication, pb.SubmitApplicationRequest(application_submission_context=context))
        await client.close()
        assert (await rm.report(convert.application_id(context.application_id))).user == "bob"


@pytest.mark.parametrize(
    ("real_user", "user", "text"),
    [
        ("oozie", "dave", "User: oozie is not allowed to impersonate dave"),
        ("stranger", "alice", "User: stranger is not allowed to impersonate alice"),
        ("far", "alice", "User: far is not allowed to impersonate alice"),
        ("far", "carol", f"Unauthorized connection for super-user: far from IP {LOOPBACK}"),
        ("nowhere", "alice", f"Unauthorized connection for super-user: nowhere from IP {LOOPBACK}"),
    ],
)
async def test_proxy_user_acts_for_nobody_else_and_from_nowhere_else(real_user: str, user: str, text: str) -> None:
    async with cluster(PROXIES) as rm:
        with pytest.raises(Authorization) as caught:
            await impersonated_report(rm, real_user, user)
        assert caught.value.message == text
