"""Tokens of every kind at the ports of a live ResourceManager: forged, foreign, of another kind, expired, cancelled."""

from collections.abc import Callable

import pytest

from tests.rm.rm_harness import LOOPBACK, Harness, ManualClock, cluster
from yaqd.ipc import NO_RETRY, RemoteException, RpcClient
from yaqd.ipc.errors import InvalidToken, SaslFailure, YarnError
from yaqd.proto import yarn_admin_pb2 as admin
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Client
from yaqd.proto.protocols import ApplicationMasterProtocol as Master
from yaqd.proto.protocols import ResourceManagerAdministrationProtocol as Admin
from yaqd.security import AMRMTokenSecrets, JobTokenSecrets, RollingKeys, Token


def random_bytes(count: int) -> bytes:
    return bytes(range(count))


async def metrics(rm: Harness, token: Token | None, user: str = "mallory") -> None:
    """A call at the client port."""
    client = RpcClient(LOOPBACK, rm.manager.servers.client.port, user=user, token=token, connect_retries=NO_RETRY)
    try:
        await client.call(Client.getClusterMetrics, pb.GetClusterMetricsRequest(), timeout_s=5)
    finally:
        await client.close()


async def allocate(rm: Harness, token: Token) -> None:
    """A call at the masters' port; an error of the call itself means that the token was good."""
    port = rm.manager.servers.masters.port
    client = RpcClient(LOOPBACK, port, user="mallory", token=token, connect_retries=NO_RETRY)
    try:
        await client.call(Master.allocate, pb.AllocateRequest(), timeout_s=5)
    except YarnError:
        pass
    finally:
        await client.close()


async def delegation(rm: Harness, user: str = "alice", renewer: str = "rita") -> Token:
    client = RpcClient(LOOPBACK, rm.manager.servers.client.port, user=user)
    answer = await client.call(Client.getDelegationToken, pb.GetDelegationTokenRequest(renewer=renewer))
    await client.close()
    return Token.from_pb(answer.token)


def forged(token: Token) -> Token:
    return Token(token.identifier, bytes(20), token.kind, token.service)


async def strangers(rm: Harness) -> list[Token]:
    """Tokens of every kind that open neither port of the two."""
    node = await rm.node()
    app_id = await rm.submit()
    master = await rm.launched(app_id, node)
    foreign = AMRMTokenSecrets(RollingKeys(now=0.0, random=random_bytes))
    attempt = rm.manager.cluster.applications[app_id].attempts[0]
    mint = rm.manager.tokens
    assert attempt.master is not None
    held = master.rpc._token
    assert isinstance(held, Token)
    return [
        forged(held),
        foreign.mint(attempt.id),
        mint.nm_token(attempt.id, node.id, "alice"),
        mint.container_token(attempt.master, "alice", rm.manager._clock.wall_ms()),
        JobTokenSecrets(random_bytes).mint("job_1_0001"),
        forged(await delegation(rm)),
        Token(b"\xff" * 100, b"", "", ""),
        Token(b"", b"", "", ""),
    ]


@pytest.mark.parametrize("call", [metrics, allocate])
async def test_what_opens_neither_port(call: Callable[[Harness, Token], object]) -> None:
    async with cluster() as rm:
        for token in await strangers(rm):
            with pytest.raises(RemoteException) as refused:
                await call(rm, token)  # type: ignore[misc]
            assert isinstance(refused.value, InvalidToken | SaslFailure), (token, refused.value)


async def test_a_token_for_one_port_does_not_open_the_other() -> None:
    async with cluster() as rm:
        node = await rm.node()
        app_id = await rm.submit()
        held = (await rm.launched(app_id, node)).rpc._token
        assert isinstance(held, Token)
        token = await delegation(rm)
        await allocate(rm, held)
        await metrics(rm, token)
        with pytest.raises(InvalidToken):
            await metrics(rm, held)
        with pytest.raises(InvalidToken):
            await allocate(rm, token)


async def test_ports_without_tokens_believe_none() -> None:
    """They take anybody at his word: a token that came along must not lend its owner's name."""
    async with cluster({"yarn.acl.enable": "true", "yarn.admin.acl": "alice"}) as rm:
        token = await delegation(rm, "alice")
        client = RpcClient(LOOPBACK, rm.manager.servers.admin.port, user="mallory", token=token)
        with pytest.raises(RemoteException, match="mallory"):
            await client.call(Admin.refreshQueues, admin.RefreshQueuesRequest())
        await client.close()


async def test_an_ended_attempts_token_opens_nothing() -> None:
    async with cluster() as rm:
        node = await rm.node()
        app_id, master = await rm.running(node)
        held = master.rpc._token
        assert isinstance(held, Token)
        await rm.client.call(
            Client.forceKillApplication,
            pb.KillApplicationRequest(
                application_id=common.ApplicationId(id=app_id.id, cluster_timestamp=app_id.cluster_timestamp)
            ),
        )
        with pytest.raises(InvalidToken, match=r"not found in AMRMTokenSecretManager\."):
            await allocate(rm, held)


async def test_a_masters_old_token_is_good_while_the_new_key_is_shown_and_not_after() -> None:
    clock = ManualClock()
    overrides = {
        "yarn.resourcemanager.am-rm-tokens.master-key-rolling-interval-secs": "7200",
        "yarn.am.liveness-monitor.expiry-interval-ms": "1800000",
        "yarn.nm.liveness-monitor.expiry-interval-ms": "90000000",
    }
    async with cluster(overrides, clock=clock) as rm:
        node = await rm.node()
        _, master = await rm.running(node)
        old = master.rpc._token
        assert isinstance(old, Token)
        keys = rm.manager.tokens.amrm_keys
        await node.beat()
        for _ in range(5):
            clock.seconds += 1500
            await master.allocate()
        await rm.until(lambda: keys.next is not None)
        await allocate(rm, old)
        renewed = Token.from_pb((await master.allocate()).am_rm_token)
        shown = keys.newest
        clock.seconds += 1700
        await master.allocate()
        clock.seconds += 1700
        await rm.until(lambda: keys.current == shown)
        with pytest.raises(InvalidToken, match="Invalid AMRMToken from appattempt_"):
            await allocate(rm, old)
        await allocate(rm, renewed)


async def test_delegation_tokens_end() -> None:
    clock = ManualClock()
    overrides = {
        "yarn.resourcemanager.delegation.token.renew-interval": "60000",
        "yarn.resourcemanager.delegation.token.max-lifetime": "90000",
    }
    async with cluster(overrides, clock=clock) as rm:
        cancelled, expired, foreign = [await delegation(rm) for _ in range(3)]

        async def change(user: str, method: object, request: object) -> object:
            client = RpcClient(LOOPBACK, rm.manager.servers.client.port, user=user)
            try:
                return await client.call(method, request)  # type: ignore[arg-type, type-var]
            finally:
                await client.close()

        for wrong in (forged(cancelled), Token(b"\xff", b"", cancelled.kind, "")):
            for method in (Client.renewDelegationToken, Client.cancelDelegationToken):
                with pytest.raises(YarnError, match=r"AccessControlException|InvalidToken"):
                    await change("rita", method, method.request(token=wrong.to_pb()))
        for method in (Client.renewDelegationToken, Client.cancelDelegationToken):
            with pytest.raises(YarnError, match=r"AccessControlException.*mallory"):
                await change("mallory", method, method.request(token=foreign.to_pb()))
        cancel = pb.CancelDelegationTokenRequest(token=cancelled.to_pb())
        await change("alice", Client.cancelDelegationToken, cancel)
        with pytest.raises(InvalidToken, match="can't be found in cache"):
            await metrics(rm, cancelled)
        with pytest.raises(YarnError, match="InvalidToken: Token not found"):
            await change("alice", Client.cancelDelegationToken, cancel)
        await metrics(rm, expired)
        clock.seconds += 61
        with pytest.raises(InvalidToken, match=r"has expired|can't be found in cache"):
            await metrics(rm, expired)
