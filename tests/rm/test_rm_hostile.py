"""What the ResourceManager refuses of clients that mean harm."""

import pytest
from rm_harness import LOOPBACK, cluster

from yaqd.ipc import RpcClient
from yaqd.ipc.errors import YarnError
from yaqd.proto import yarn_admin_pb2 as admin
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Client
from yaqd.proto.protocols import ResourceManagerAdministrationProtocol as Admin


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
        client = RpcClient(LOOPBACK, rm.manager.admin_server.port, user="root")
        with pytest.raises(YarnError, match="cannot be given"):
            await client.call(Admin.updateNodeResource, request)
        await client.close()
        _, master = await rm.running(node)
        assert (await master.allocate()).limit.memory < 8192
