"""What clients ask, and the fields that Hadoop's clients read unasked."""

import asyncio
import json
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from rm.daemon import ResourceManager
from tests.rm.rm_harness import LOOPBACK, Harness, ask, cluster, configuration
from yaqd.config import Configuration
from yaqd.ipc import RpcClient
from yaqd.ipc.errors import (
    ApplicationAttemptNotFound,
    ApplicationNotFound,
    ContainerNotFound,
    FeatureNotEnabled,
    RemoteIOError,
    YarnError,
)
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId
from yaqd.proto import convert
from yaqd.proto import yarn_admin_pb2 as admin
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Client
from yaqd.proto.protocols import ResourceManagerAdministrationProtocol as Admin


async def test_fresh_report_has_every_field_that_clients_dereference() -> None:
    async with cluster() as rm:
        app_id = await rm.submit(applicationType="A" * 40, application_name="")
        report = await rm.report(app_id)
        assert report.user == "alice" and report.queue == "root.default" and report.name == "N/A"
        assert report.applicationType == "A" * 20
        assert report.yarn_application_state == common.ACCEPTED
        assert report.HasField("final_application_status")
        assert (report.host, report.rpc_port, report.originalTrackingUrl) == ("N/A", -1, "N/A")
        assert report.currentApplicationAttemptId.attemptId == 1
        usage = report.app_resource_Usage
        assert usage.HasField("used_resources") and usage.HasField("reserved_resources")
        assert usage.HasField("needed_resources")
        assert not report.HasField("client_to_am_token") and not report.HasField("am_rm_token")
        assert report.startTime == report.submitTime > 0
        assert report.appTimeouts[0].application_timeout.expire_time == "UNLIMITED"


async def test_tracking_url_goes_through_the_web_port() -> None:
    async with cluster() as rm:
        node = await rm.node()
        app_id, _ = await rm.running(node)
        report = await rm.report(app_id)
        assert rm.manager.web is not None
        assert report.trackingUrl == f"http://{LOOPBACK}:{rm.manager.web.port}/proxy/{app_id}/"
        assert report.originalTrackingUrl == "http://am:1/"


async def test_unknown_things_have_their_own_exceptions() -> None:
    async with cluster() as rm:
        unknown = ApplicationId(1, 1)
        with pytest.raises(ApplicationNotFound):
            await rm.report(unknown)
        with pytest.raises(ApplicationNotFound):
            request = pb.KillApplicationRequest(application_id=convert.application_id_pb(unknown))
            await rm.client.call(Client.forceKillApplication, request)
        app_id = await rm.submit()
        attempt_id = ApplicationAttemptId(app_id, 5)
        with pytest.raises(ApplicationAttemptNotFound):
            await rm.client.call(
                Client.getApplicationAttemptReport,
                pb.GetApplicationAttemptReportRequest(application_attempt_id=convert.attempt_id_pb(attempt_id)),
            )
        container_id = ContainerId.make(ApplicationAttemptId(app_id, 1), 77)
        with pytest.raises(ContainerNotFound):
            await rm.client.call(
                Client.getContainerReport,
                pb.GetContainerReportRequest(container_id=convert.container_id_pb(container_id)),
            )


async def test_absent_features_answer_as_a_stock_manager_with_them_off() -> None:
    async with cluster() as rm:
        with pytest.raises(FeatureNotEnabled):
            await rm.client.call(Client.getResourceProfiles, pb.GetAllResourceProfilesRequest())
        with pytest.raises(YarnError, match="has no reservations, and no setting gives it any"):
            await rm.client.call(Client.listReservations, pb.ReservationListRequest())
        labels = await rm.client.call(Client.getClusterNodeLabels, pb.GetClusterNodeLabelsRequest())
        assert not labels.nodeLabels
        types = await rm.client.call(Client.getResourceTypeInfo, pb.GetAllResourceTypeInfoRequest())
        assert [(t.name, t.units) for t in types.resource_type_info] == [("memory-mb", "Mi"), ("vcores", "")]


async def listed(rm: Harness, **filters: object) -> list[str]:
    request = pb.GetApplicationsRequest(**filters)  # type: ignore[arg-type]
    return [a.name for a in (await rm.client.call(Client.getApplications, request)).applications]


async def test_application_filters() -> None:
    async with cluster() as rm:
        node = await rm.node()
        await rm.running(node, application_name="runs", applicationType="SPARK")
        tagged = await rm.submission(application_name="tagged")
        tagged.applicationTags.append("Nightly")
        await rm.client.call(
            Client.submitApplication, pb.SubmitApplicationRequest(application_submission_context=tagged)
        )
        assert await listed(rm) == ["runs", "tagged"]
        assert await listed(rm, application_types=["spark"]) == ["runs"]
        assert await listed(rm, application_states=[common.RUNNING]) == ["runs"]
        assert await listed(rm, applicationTags=["nightly"]) == ["tagged"]
        assert await listed(rm, users=["bob"]) == []
        assert await listed(rm, queues=["root.default"], limit=1) == ["runs"]
        assert await listed(rm, name="tagged") == ["tagged"]
        assert await listed(rm, scope=pb.OWN) == ["runs", "tagged"]
        assert await listed(rm, start_begin=2**60) == []
        assert await listed(rm, finish_begin=1) == []


async def test_queues() -> None:
    queues = {
        "yarn.scheduler.capacity.root.queues": "default,batch",
        "yarn.scheduler.capacity.root.default.capacity": "70",
        "yarn.scheduler.capacity.root.batch.capacity": "30",
        "yarn.scheduler.capacity.root.batch.maximum-capacity": "50",
        "yarn.scheduler.capacity.root.batch.state": "STOPPED",
    }
    async with cluster(queues) as rm:
        node = await rm.node()
        await rm.running(node)
        request = pb.GetQueueInfoRequest(queueName="root", includeChildQueues=True, recursive=True)
        root = (await rm.client.call(Client.getQueueInfo, request)).queueInfo
        assert [
            (q.queuePath, round(q.capacity, 3), round(q.maximumCapacity, 3), q.state) for q in root.childQueues
        ] == [
            ("root.default", 0.7, 1.0, common.Q_RUNNING),
            ("root.batch", 0.3, 0.5, common.Q_STOPPED),
        ]
        assert root.queueStatistics.allocatedContainers == 1
        assert root.schedulerType == "CapacityScheduler"
        unknown = await rm.client.call(Client.getQueueInfo, pb.GetQueueInfoRequest(queueName="nope"))
        assert not unknown.HasField("queueInfo")
        acls = await rm.client.call(Client.getQueueUserAcls, pb.GetQueueUserAclsInfoRequest())
        assert {a.queueName for a in acls.queueUserAcls} == {"root", "root.default", "root.batch"}
        with pytest.raises(YarnError, match="STOPPED"):
            await rm.submit(queue="batch")


async def test_refreshing_queues_takes_the_file_as_it_is_now(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def write(default: int, **more: int) -> None:
        prefix = "yarn.scheduler.capacity.root"
        pairs = {"queues": "default,new", "default.capacity": default, "new.capacity": 100 - default, **more}
        body = "".join(f"<property><name>{prefix}.{k}</name><value>{v}</value></property>" for k, v in pairs.items())
        body += '<property name="yarn.scheduler.capacity.maximum-aplications" value="9"/>' if more else ""
        (tmp_path / "capacity-scheduler.xml").write_text(f"<configuration>{body}</configuration>")

    write(100)
    base = configuration()
    settings = {k: base.get(k) or "" for k in base.changed_keys() if "capacity" not in k}
    manager = ResourceManager(Configuration.load(tmp_path, overrides=settings, environ={}))
    await manager.start()
    client = RpcClient(LOOPBACK, manager.servers.admin.port, user="root")
    try:
        write(40)
        await client.call(Admin.refreshQueues, admin.RefreshQueuesRequest())
        assert manager.scheduler.view.queues["root.new"].spec.capacity == pytest.approx(0.6)
        write(140)
        with pytest.raises(RemoteIOError, match=r"root\.default\.capacity"):
            await client.call(Admin.refreshQueues, admin.RefreshQueuesRequest())
        assert manager.scheduler.view.queues["root.new"].spec.capacity == pytest.approx(0.6)
        assert "unknown" not in caplog.text
        write(60, **{"new.capacty": 30})
        await client.call(Admin.refreshQueues, admin.RefreshQueuesRequest())
        assert "unknown setting of a queue; did you mean root.new.capacity?" in caplog.text
        assert "unknown key; did you mean yarn.scheduler.capacity.maximum-applications?" in caplog.text
    finally:
        await client.close()
        await manager.stop()


async def test_only_the_owner_kills_when_acls_are_on() -> None:
    everybody_submits = {
        "yarn.acl.enable": "true",
        "yarn.admin.acl": "root",
        "yarn.scheduler.capacity.root.acl_administer_queue": "carol operators",
    }
    async with cluster(everybody_submits) as rm:
        app_id = await rm.submit()
        mallory = RpcClient(LOOPBACK, rm.manager.servers.client.port, user="mallory")
        request = pb.KillApplicationRequest(application_id=convert.application_id_pb(app_id))
        with pytest.raises(YarnError, match="mallory cannot perform"):
            await mallory.call(Client.forceKillApplication, request)
        await mallory.close()
        assert not rm.manager.cluster.applications[app_id].is_concluded
        carol = RpcClient(LOOPBACK, rm.manager.servers.client.port, user="carol")
        await carol.call(Client.forceKillApplication, request)
        await carol.close()
        assert rm.manager.cluster.applications[app_id].is_concluded


async def test_queue_lists_who_may_submit() -> None:
    listed_users = {
        "yarn.acl.enable": "true",
        "yarn.admin.acl": "root",
        "yarn.scheduler.capacity.root.acl_submit_applications": "bob",
        "yarn.scheduler.capacity.root.acl_administer_queue": "carol",
    }
    async with cluster(listed_users) as rm:
        with pytest.raises(YarnError, match="alice does not have permission"):
            await rm.submit()
        acls = await rm.client.call(Client.getQueueUserAcls, pb.GetQueueUserAclsInfoRequest())
        assert all(not a.userAcls for a in acls.queueUserAcls)
    listed_users["yarn.scheduler.capacity.root.default.acl_submit_applications"] = "dave,alice"
    async with cluster(listed_users) as rm:
        await rm.submit()


async def test_excluded_host_is_sent_away_when_nodes_are_refreshed(tmp_path: Path) -> None:
    exclude = tmp_path / "exclude"
    exclude.write_text("")
    async with cluster({"yarn.resourcemanager.nodes.exclude-path": str(exclude)}) as rm:
        node = await rm.node()
        exclude.write_text(f"# sent away\n{LOOPBACK}\n")
        root = RpcClient(LOOPBACK, rm.manager.servers.admin.port, user="root")
        await root.call(Admin.refreshNodes, admin.RefreshNodesRequest())
        await root.close()
        assert rm.manager.cluster.usable_nodes == 0
        metrics = await rm.client.call(Client.getClusterMetrics, pb.GetClusterMetricsRequest())
        assert metrics.cluster_metrics.num_decommissioned_nms == 1
        assert (await node.beat()).nodeAction == server.SHUTDOWN
        await node.register()
        assert node.registration is not None and node.registration.nodeAction == server.SHUTDOWN


async def test_containers_of_an_attempt_are_listed_alive_and_ended() -> None:
    async with cluster() as rm:
        node = await rm.node()
        app_id, master = await rm.running(node)
        given = [convert.container_id(c.id) for c in (await master.allocate(ask(2))).allocated_containers]
        for container_id in given:
            node.run(container_id)
        await node.beat()
        node.end(given[0], 3, "oops")
        await node.beat()
        request = pb.GetContainersRequest()
        request.application_attempt_id.CopyFrom(convert.attempt_id_pb(ApplicationAttemptId(app_id, 1)))
        reports = (await rm.client.call(Client.getContainers, request)).containers
        assert [(r.container_id.id, r.container_state, r.container_exit_status) for r in reports] == [
            (1, common.C_RUNNING, 0),
            (2, common.C_COMPLETE, 3),
            (3, common.C_RUNNING, 0),
        ]
        assert [r.diagnostics_info if r.HasField("diagnostics_info") else None for r in reports] == [None, "oops", None]


async def test_rest() -> None:
    async with cluster() as rm:
        node = await rm.node()
        app_id, _ = await rm.running(node)
        assert rm.manager.web is not None
        base = f"http://{LOOPBACK}:{rm.manager.web.port}/ws/v1/cluster"

        def get(path: str) -> dict[str, dict[str, object]]:
            with urllib.request.urlopen(base + path, timeout=5) as response:
                return json.load(response)

        info, metrics, app, nodes, apps = await asyncio.gather(
            *(
                asyncio.to_thread(get, p)
                for p in ("/info", "/metrics", f"/apps/{app_id}", "/nodes", "/apps?states=RUNNING")
            )
        )
        assert info["clusterInfo"]["state"] == "STARTED"
        assert metrics["clusterMetrics"]["allocatedMB"] == 1024
        assert app["app"]["state"] == "RUNNING"
        assert nodes["nodes"]["node"][0]["id"] == str(node.id)  # type: ignore[index]
        assert apps["apps"]["app"][0]["id"] == str(app_id)  # type: ignore[index]

        with pytest.raises(urllib.error.HTTPError, match="404"):
            await asyncio.to_thread(get, "/apps/application_1_0001")


async def test_user_is_active_while_something_is_asked_for() -> None:
    async with cluster() as rm:
        node = await rm.node()
        _, master = await rm.running(node)

        async def active() -> int:
            request = pb.GetQueueInfoRequest(queueName="default")
            info = (await rm.client.call(Client.getQueueInfo, request)).queueInfo
            return info.queueStatistics.numActiveUsers

        assert await active() == 0
        await master.allocate(ask(1000))
        assert await active() == 1


async def test_queue_statistics_count_what_was_and_what_is() -> None:
    async with cluster() as rm:
        node = await rm.node()
        _, master = await rm.running(node)
        await master.allocate(ask(3))
        killed, _ = await rm.submit(), await rm.submit()
        await rm.client.call(
            Client.forceKillApplication, pb.KillApplicationRequest(application_id=convert.application_id_pb(killed))
        )
        await rm.until(lambda: rm.manager.cluster.applications[killed].is_over)
        request = pb.GetQueueInfoRequest(queueName="root", includeChildQueues=True, recursive=True)
        info = (await rm.client.call(Client.getQueueInfo, request)).queueInfo
        for said in (info.queueStatistics, info.childQueues[0].queueStatistics):
            counts = (said.numAppsSubmitted, said.numAppsRunning, said.numAppsPending, said.numAppsKilled)
            assert counts == (3, 1, 1, 1)
            assert (said.numAppsCompleted, said.numAppsFailed) == (0, 0)
            assert said.numActiveUsers == int(said.pendingContainers > 0)
            assert said.allocatedContainers + said.pendingContainers == 5
            assert (said.reservedContainers, said.reservedMemoryMB, said.reservedVCores) == (0, 0, 0)
