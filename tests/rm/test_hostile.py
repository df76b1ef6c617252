"""What the ResourceManager refuses of clients that mean harm."""

import psutil
import pytest

from rm.nodes.liveness import Liveness
from tests.rm.rm_harness import LOOPBACK, ManualClock, cluster
from yaqd.ipc import RpcClient
from yaqd.ipc.errors import Authorization, YarnError
from yaqd.ipc.frames import encode_varint
from yaqd.proto import yarn_admin_pb2 as admin
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Client
from yaqd.proto.protocols import ResourceManagerAdministrationProtocol as Admin
from yaqd.proto.protocols import ResourceTracker


@pytest.mark.parametrize(("timestamp", "number"), [(0, 1), (-1, 1), (2, 0), (2, -(2**31))])
async def test_an_application_id_that_nobody_gave_out_is_refused(timestamp: int, number: int) -> None:
    async with cluster() as rm:
        context = await rm.submission()
        context.application_id.cluster_timestamp, context.application_id.id = timestamp, number
        with pytest.raises(YarnError, match="is no application id"):
            await rm.client.call(
                Client.submitApplication, pb.SubmitApplicationRequest(application_submission_context=context)
            )
        assert not rm.manager.cluster.applications


@pytest.mark.parametrize(("memory_mb", "vcores"), [(2**63 - 1, 8), (-1, 8), (8192, 2**31 - 1)])
async def test_a_node_is_not_given_what_no_machine_has(memory_mb: int, vcores: int) -> None:
    async with cluster() as rm:
        node = await rm.node()
        request = admin.UpdateNodeResourceRequest()
        change = request.node_resource_map.add()
        change.node_id.host, change.node_id.port = node.id.host, node.id.port
        change.resource_option.resource.memory = memory_mb
        change.resource_option.resource.virtual_cores = vcores
        client = RpcClient(LOOPBACK, rm.manager.servers.admin.port, user="root")
        with pytest.raises(YarnError, match="cannot be given"):
            await client.call(Admin.updateNodeResource, request)
        await client.close()
        _, master = await rm.running(node)
        assert (await master.allocate()).limit.memory < 8192


@pytest.mark.parametrize("host", ["", "*", "/default-rack", "a b", "a\0b", "a\nb", "../x", "a..b", "x" * 256, "ä"])
async def test_a_node_has_a_name_that_can_be_one(host: str) -> None:
    async with cluster() as rm:
        request = server.RegisterNodeManagerRequest(http_port=8042, nm_version="3.4.1")
        request.node_id.host, request.node_id.port = host, 8041
        request.resource.memory, request.resource.virtual_cores = 8192, 8
        tracker = RpcClient(LOOPBACK, rm.manager.servers.tracker.port, user="nm")
        with pytest.raises(YarnError, match="without a usable node id"):
            await tracker.call(ResourceTracker.registerNodeManager, request)
        await tracker.close()
        assert not rm.manager.cluster.nodes


def test_a_failure_at_one_that_is_silent_does_not_hide_the_others() -> None:
    watched: Liveness[str] = Liveness(3.0)
    for name in "abc":
        watched.seen(name, 0.0)
    with pytest.raises(ZeroDivisionError):
        for _ in watched.expired(9.0):
            raise ZeroDivisionError
    assert list(watched.expired(9.0)) == ["b", "c"]


async def test_one_check_that_fails_does_not_keep_the_others_from_being_made(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock()
    async with cluster({"yarn.nm.liveness-monitor.expiry-interval-ms": "3000"}, clock=clock) as rm:
        rolled: list[float] = []

        def fail(now: float) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(rm.manager.nodes, "check_expiry", fail)
        monkeypatch.setattr(rm.manager.tokens, "roll", rolled.append)
        await rm.until(lambda: bool(rolled))


async def test_a_user_that_cannot_be_one_has_no_groups() -> None:
    async with cluster() as rm:
        client = RpcClient(LOOPBACK, rm.manager.servers.admin.port, user="root")
        for user in ("a\0b", "x" * 70_000, "../../etc"):
            answer = await client.call(Admin.getGroupsForUser, admin.GetGroupsForUserRequest(user=user))
            assert not answer.groups
        await client.close()


@pytest.mark.parametrize("user", ["", "..", "../../etc", "a/b", "a\0b", "a\nb", "-rf", "x" * 300, "a..b", "\u202eroot"])
async def test_a_user_whose_name_could_lead_elsewhere_is_not_let_in(user: str) -> None:
    """Names of users become folders, log lines and words of commands."""
    async with cluster() as rm:
        client = RpcClient(LOOPBACK, rm.manager.servers.client.port, user=user)
        with pytest.raises(Authorization, match="not a user name"):
            await client.call(Client.getClusterMetrics, pb.GetClusterMetricsRequest())
        await client.close()


async def test_what_is_remembered_of_large_requests_is_small() -> None:
    """Bytes of fields that nobody knows come along with a heartbeat and a submission, and must not stay."""
    padding = b"\x82\xf1\x04" + encode_varint(1 << 20) + bytes(1 << 20)  # field 10000, a string of 1 MB
    async with cluster() as rm:
        node = await rm.node()
        context = await rm.submission()
        submission = pb.SubmitApplicationRequest(application_submission_context=context)
        submission.MergeFromString(padding)
        beat = node.heartbeat()
        beat.node_status.node_utilization.pmem = 7
        beat.MergeFromString(padding)
        await rm.client.call(Client.submitApplication, submission)
        await node.tracker.call(ResourceTracker.nodeHeartbeat, beat)
        status = rm.manager.cluster.nodes[node.id].status
        assert status.node_utilization.pmem == 7 and not status.containersStatuses
        process = psutil.Process()
        before = process.memory_info().rss
        for number in range(60):
            beat = node.heartbeat()
            beat.node_status.response_id = number + 1
            beat.MergeFromString(padding)
            await node.tracker.call(ResourceTracker.nodeHeartbeat, beat)
            context = await rm.submission()
            submission = pb.SubmitApplicationRequest(application_submission_context=context)
            submission.MergeFromString(padding)
            await rm.client.call(Client.submitApplication, submission)
        assert process.memory_info().rss - before < 30 << 20
