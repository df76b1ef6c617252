"""Wrong tokens at stock daemons: our clients say at once what is wrong, and our own daemons use the same words."""

import asyncio
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.stock.daemons import StockYarn, current_user
from tests.interop.interop_master import UnmanagedMaster
from yaqd.ipc import BlockingRpcClient, RemoteException, RpcAuthenticationError, RpcClient
from yaqd.ipc.errors import SaslFailure
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto import yarn_service_pb2 as service
from yaqd.proto.protocols import ApplicationMasterProtocol, ContainerManagementProtocol, Method
from yaqd.security import Token

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
CLIENT = "wrong tokens at stock YARN"


@pytest.fixture(scope="module")
def masters(stock_yarn: StockYarn) -> Iterator[tuple[UnmanagedMaster, UnmanagedMaster]]:
    def master() -> UnmanagedMaster:
        return UnmanagedMaster(stock_yarn.rm_address, stock_yarn.scheduler_address, current_user())

    with master() as one, master() as other:
        yield one, other


def forged(token: Token) -> Token:
    return Token(token.identifier, bytes(20), token.kind, token.service or "anywhere")


def refused_at_once(address: tuple[str, int], token: Token, method: Method[Any, Any]) -> None:
    """By both clients, at once: in the server's words where it says any, else with the token's kind and service."""

    async def call() -> None:
        client = RpcClient(*address, user="anybody", token=token, timeout_s=30)
        try:
            await client.call(method, method.request())
        finally:
            await client.close()

    def call_blocking() -> None:
        with BlockingRpcClient(*address, user="anybody", token=token, timeout_s=30) as client:
            client.call(method, method.request())

    words = f"{address[0]}:{address[1]} refused the token of kind {token.kind} for {token.service}"
    for way in (lambda: asyncio.run(call()), call_blocking):
        began = time.monotonic()
        with pytest.raises((RpcAuthenticationError, SaslFailure), match=f"{re.escape(words)}|Mismatched response"):
            way()
        assert time.monotonic() - began < 3.0


def test_a_forged_master_token_is_named_at_once(
    stock_yarn: StockYarn, masters: tuple[UnmanagedMaster, UnmanagedMaster]
) -> None:
    real = Token.from_pb(masters[0].report().am_rm_token)
    refused_at_once(stock_yarn.scheduler_address, forged(real), ApplicationMasterProtocol.allocate)


def test_a_forged_node_token_is_named_at_once(masters: tuple[UnmanagedMaster, UnmanagedMaster]) -> None:
    container = masters[0].get_container()
    address = (container.nodeId.host, container.nodeId.port)
    refused_at_once(address, forged(masters[0]._nm_tokens[address]), ContainerManagementProtocol.startContainers)


def test_a_node_token_at_the_scheduler_port_is_refused(
    stock_yarn: StockYarn, masters: tuple[UnmanagedMaster, UnmanagedMaster]
) -> None:
    container = masters[0].get_container()
    token = masters[0]._nm_tokens[container.nodeId.host, container.nodeId.port]
    with (
        BlockingRpcClient(*stock_yarn.scheduler_address, user="anybody", token=token) as client,
        pytest.raises((RpcAuthenticationError, RemoteException)),
    ):
        client.call(ApplicationMasterProtocol.allocate, service.AllocateRequest())


def test_a_container_token_that_was_changed_fails_the_call(masters: tuple[UnmanagedMaster, UnmanagedMaster]) -> None:
    container = masters[0].get_container()
    changed = common.Container.FromString(container.SerializeToString())
    identifier = server.ContainerTokenIdentifier.FromString(changed.container_token.identifier)
    identifier.resource.memory = 1 << 40
    changed.container_token.identifier = identifier.SerializeToString()
    with pytest.raises(RemoteException) as refused:
        masters[0].start(changed, "true")
    assert refused.value.class_name == "org.apache.hadoop.security.token.SecretManager$InvalidToken"
    node = f"{container.nodeId.host}:{container.nodeId.port}"
    assert f"Invalid container token used for starting container on : {node}" in str(refused.value)


def test_another_applications_containers_are_out_of_reach(masters: tuple[UnmanagedMaster, UnmanagedMaster]) -> None:
    one, other = masters
    theirs = other.get_container()
    address = (theirs.nodeId.host, theirs.nodeId.port)
    while address not in one._nm_tokens:
        one.get_container()
    (failure,) = one.start(theirs, "true").failed_requests
    assert failure.exception.class_name.endswith(".YarnException")
    assert "was used for starting container with container token issued for application attempt" in (
        failure.exception.message
    )
    assert not other.start(theirs, "sleep 60").failed_requests
    with one._node(theirs) as node:
        stopped = node.call(
            ContainerManagementProtocol.stopContainers, service.StopContainersRequest(container_id=[theirs.id])
        )
        asked = node.call(
            ContainerManagementProtocol.getContainerStatuses,
            service.GetContainerStatusesRequest(container_id=[theirs.id]),
        )
    failures = [failure.exception.message for answer in (stopped, asked) for failure in answer.failed_requests]
    whose = (f"attempted to {what} non-application container : container_" for what in ("stop", "get status for"))
    assert all(words in failure for words, failure in zip(whose, failures, strict=True))
