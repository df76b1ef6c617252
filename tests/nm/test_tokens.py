"""Tokens at a live node: of every wrong kind, and made with keys that have rolled."""

import pytest

from nm.daemon import NodeManager
from tests.nm.nm_cluster import USER, FakeResourceManager, Master, application, attempt, container_id, launch_context
from yaqd.ipc import NO_RETRY, RemoteException, RpcClient
from yaqd.ipc.errors import InvalidToken, SaslFailure
from yaqd.proto import convert
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto import yarn_service_pb2 as service
from yaqd.proto.protocols import ContainerManagementProtocol
from yaqd.security import AMRMTokenSecrets, JobTokenSecrets, RollingKeys, Token
from yaqd.security.keys import ACTIVATION_DELAY_S, ROLLING_INTERVAL_S


def random_bytes(count: int) -> bytes:
    return bytes(range(count))


async def ask(node: NodeManager, token: Token) -> None:
    client = RpcClient("127.0.0.1", node.node_id.port, user="x", token=token, timeout_s=5, connect_retries=NO_RETRY)
    try:
        await client.call(ContainerManagementProtocol.getContainerStatuses, service.GetContainerStatusesRequest())
    finally:
        await client.close()


async def roll(rm: FakeResourceManager, node: NodeManager, turn: int) -> None:
    """New keys are made, shown to the node, and put to use."""
    for keys in (rm.nm_keys, rm.container_keys):
        keys.roll(turn * ROLLING_INTERVAL_S)
        keys.roll(turn * ROLLING_INTERVAL_S + ACTIVATION_DELAY_S)

    def show(response: server.NodeHeartbeatResponse) -> None:
        response.container_token_master_key.CopyFrom(rm.container_keys.current.to_pb())
        response.nm_token_master_key.CopyFrom(rm.nm_keys.current.to_pb())

    rm.orders.append(show)
    current = rm.nm_keys.current.key_id
    await rm.until(lambda: rm.heartbeats[-1].last_known_nm_token_master_key.key_id == current)


async def test_tokens_outlive_one_roll_over_and_not_two(
    rm: FakeResourceManager, node: NodeManager, master: Master
) -> None:
    idle = rm.nm_tokens.mint(attempt(2), node.node_id, USER)
    started = rm.nm_tokens.mint(attempt(1), node.node_id, USER)
    old = [rm.container_token(container_id(number), node.node_id) for number in (1, 2)]

    async def start(index: int) -> service.StartContainersResponse:
        request = service.StartContainersRequest()
        item = request.start_container_request.add()
        item.container_launch_context.CopyFrom(launch_context("sleep 1000"))
        item.container_token.CopyFrom(old[index])
        return await master.client.call(ContainerManagementProtocol.startContainers, request)

    await roll(rm, node, 1)
    await ask(node, idle)
    assert (await start(0)).succeeded_requests
    await roll(rm, node, 2)
    with pytest.raises(
        InvalidToken, match=f"Given NMToken for application : {attempt(2)} seems to have been generated"
    ):
        await ask(node, idle)
    with pytest.raises(InvalidToken, match="seems to have an illegally generated token"):
        await start(1)
    await ask(node, started)  # an attempt that has containers here is not locked out of them
    await ask(node, rm.nm_tokens.mint(attempt(2), node.node_id, USER))
    assert list(node.runtime.containers) == [container_id(1)]
    over = convert.application_id_pb(application())
    rm.orders.append(lambda response: response.applications_to_cleanup.add().CopyFrom(over))
    await rm.end_of(container_id(1))
    await rm.until(lambda: application() not in node.runtime.applications)
    with pytest.raises(InvalidToken, match="seems to have been generated illegally"):
        await ask(node, started)


async def test_tokens_of_other_kinds_open_nothing(rm: FakeResourceManager, node: NodeManager) -> None:
    keys = RollingKeys(now=0.0, random=random_bytes)
    container = rm.container_token(container_id(1), node.node_id)
    others = [
        AMRMTokenSecrets(keys).mint(attempt()),
        AMRMTokenSecrets(rm.nm_keys).mint(attempt()),  # the right key would not help: its fields are others
        JobTokenSecrets(random_bytes).mint("job_1_0001"),
        Token(container.identifier, container.password, container.kind, container.service),
        Token(b"", b"", "", ""),
        Token(b"\xff" * 300, b"", "NMToken", ""),
    ]
    for token in others:
        with pytest.raises(RemoteException) as refused:
            await ask(node, token)
        assert isinstance(refused.value, InvalidToken | SaslFailure), (token, refused.value)


async def test_a_replayed_token_starts_no_second_container(
    rm: FakeResourceManager, node: NodeManager, master: Master
) -> None:
    token = rm.container_token(container_id(1), node.node_id)
    request = service.StartContainersRequest()
    item = request.start_container_request.add()
    item.container_launch_context.CopyFrom(launch_context("true"))
    item.container_token.CopyFrom(token)
    assert (await master.client.call(ContainerManagementProtocol.startContainers, request)).succeeded_requests
    await rm.end_of(container_id(1))
    await rm.until(lambda: container_id(1) not in node.runtime.containers)
    again = await master.client.call(ContainerManagementProtocol.startContainers, request)
    words = f"Container {container_id(1)} already is running on this node!!"
    assert [failure.exception.message for failure in again.failed_requests] == [words]
