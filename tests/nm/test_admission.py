"""Service level authorization at a node: who may speak to its container service, where lists are on."""

from collections.abc import Awaitable, Callable

import pytest

from nm.daemon import NodeManager
from tests.nm.nm_cluster import USER, FakeResourceManager, attempt
from yaqd.ipc import NO_RETRY, RpcClient
from yaqd.ipc.errors import Authorization
from yaqd.proto import yarn_service_pb2 as service
from yaqd.proto.protocols import ContainerManagementProtocol, Method

StartNode = Callable[..., Awaitable[NodeManager]]
ON = {"hadoop.security.authorization": "true"}
ACL = "security.containermanagement.protocol.acl"
HOSTS = "security.containermanagement.protocol.hosts"
NAME = ContainerManagementProtocol.NAME
STATUSES = ContainerManagementProtocol.getContainerStatuses


async def ask(
    rm: FakeResourceManager,
    node: NodeManager,
    method: "Method[service.GetContainerStatusesRequest, service.GetContainerStatusesResponse]" = STATUSES,
) -> None:
    token = rm.nm_tokens.mint(attempt(1), node.node_id, USER)
    client = RpcClient("127.0.0.1", node.node_id.port, user="x", token=token, timeout_s=5, connect_retries=NO_RETRY)
    try:
        await client.call(method, service.GetContainerStatusesRequest())
    finally:
        await client.close()


@pytest.mark.parametrize(
    ("lists", "refusal"),
    [
        ({}, ""),
        ({"hadoop.security.authorization": "false", ACL: "alice"}, ""),
        ({ACL: f"{attempt(1)},{attempt(2)}", HOSTS: "127.0.0.0/8"}, ""),
        (
            {ACL: f"alice,{attempt(2)}"},
            f"User {attempt(1)} (auth:TOKEN) is not authorized for protocol interface {NAME}",
        ),
        ({f"{ACL}.blocked": str(attempt(1))}, "denied by configured ACL"),
        ({ACL: "alice nosuchgroup"}, "denied by configured ACL"),
        ({HOSTS: "10.0.0.0/8"}, f"Host 127.0.0.1:127.0.0.1 is not authorized for protocol interface {NAME}"),
    ],
    ids=["none", "off", "allowed", "others", "blocked", "group", "host"],
)
async def test_lists_are_asked_at_each_connection(
    rm: FakeResourceManager, start_node: StartNode, lists: dict[str, str], refusal: str
) -> None:
    node = await start_node({**ON, **lists})
    if not refusal:
        await ask(rm, node)
        return
    with pytest.raises(Authorization) as caught:
        await ask(rm, node)
    assert refusal in caught.value.message


async def test_a_protocol_of_another_daemon_is_not_known_there(rm: FakeResourceManager, start_node: StartNode) -> None:
    node = await start_node(ON)
    other = Method(
        "org.apache.hadoop.yarn.api.ApplicationClientProtocolPB",
        "getContainerStatuses",
        service.GetContainerStatusesRequest,
        service.GetContainerStatusesResponse,
    )
    with pytest.raises(Authorization, match="ApplicationClientProtocolPB is not known"):
        await ask(rm, node, other)
