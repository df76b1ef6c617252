"""Delegation tokens over the wire: whoever holds one is its owner, until it is cancelled or runs out."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.rm.rm_harness import LOOPBACK, Harness, ManualClock, cluster
from yaqd.ipc import RpcClient
from yaqd.ipc.errors import InvalidToken, RemoteException, YarnError
from yaqd.proto import yarn_admin_pb2 as admin
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Client
from yaqd.proto.protocols import ResourceManagerAdministrationProtocol as Admin
from yaqd.security import Token

LIFETIMES = {
    "yarn.resourcemanager.delegation.token.renew-interval": "100000",
    "yarn.resourcemanager.delegation.token.max-lifetime": "250000",
    "yarn.resourcemanager.delegation.key.update-interval": "200000",
}


async def made(rm: Harness, renewer: str = "yarn") -> common.Token:
    response = await rm.client.call(Client.getDelegationToken, pb.GetDelegationTokenRequest(renewer=renewer))
    assert (response.token.kind, response.token.service) == ("RM_DELEGATION_TOKEN", "")
    return response.token


@asynccontextmanager
async def holder(rm: Harness, token: common.Token) -> AsyncIterator[RpcClient]:
    client = RpcClient(LOOPBACK, rm.manager.servers.client.port, user="somebody", token=Token.from_pb(token))
    try:
        yield client
    finally:
        await client.close()


async def user_of(rm: Harness, token: common.Token) -> str:
    """Who an application belongs to that the token's holder submits."""
    async with holder(rm, token) as client:
        context = await rm.submission()
        await client.call(Client.submitApplication, pb.SubmitApplicationRequest(application_submission_context=context))
        request = pb.GetApplicationReportRequest(application_id=context.application_id)
        return (await client.call(Client.getApplicationReport, request)).application_report.user


async def renew(rm: Harness, token: common.Token, user: str) -> int:
    client = RpcClient(LOOPBACK, rm.manager.servers.client.port, user=user)
    try:
        response = await client.call(Client.renewDelegationToken, pb.RenewDelegationTokenRequest(token=token))
        return response.newExpiryTime
    finally:
        await client.close()


async def cancel(rm: Harness, token: common.Token, user: str) -> None:
    client = RpcClient(LOOPBACK, rm.manager.servers.client.port, user=user)
    try:
        await client.call(Client.cancelDelegationToken, pb.CancelDelegationTokenRequest(token=token))
    finally:
        await client.close()


async def test_holder_is_the_owner_whatever_it_calls_itself() -> None:
    async with cluster() as rm:
        assert await user_of(rm, await made(rm)) == "alice"


async def test_those_without_a_token_come_in_as_before() -> None:
    async with cluster() as rm:
        await made(rm)
        assert (await rm.report(await rm.submit())).user == "alice"


async def test_forged_tokens_open_nothing() -> None:
    async with cluster() as rm:
        token = await made(rm)
        forged = common.Token()
        forged.CopyFrom(token)
        forged.password = b"0" * 20
        foreign = common.Token()
        foreign.CopyFrom(token)
        foreign.identifier = b"\n\x04root" + token.identifier[7:]
        for bad in (forged, foreign):
            with pytest.raises(RemoteException):
                await user_of(rm, bad)
        client = RpcClient(LOOPBACK, rm.manager.servers.masters.port, user="x", token=Token.from_pb(token))
        with pytest.raises(RemoteException):
            await client.call(Client.getNewApplication, pb.GetNewApplicationRequest())
        await client.close()


async def test_it_runs_out_unless_it_is_renewed_and_then_at_last() -> None:
    clock = ManualClock()
    async with cluster(LIFETIMES, clock=clock) as rm:
        start_ms = clock.wall_ms()
        token = await made(rm)
        clock.seconds += 90
        assert await renew(rm, token, "yarn") == start_ms + 190_000
        clock.seconds += 90
        assert await user_of(rm, token) == "alice"
        assert await renew(rm, token, rm.manager.settings.user) == start_ms + 250_000, "the daemon renews anybody's"
        clock.seconds += 71
        with pytest.raises(InvalidToken):
            await user_of(rm, token)
        with pytest.raises(YarnError, match=r"InvalidToken: yarn tried to renew an expired token \(RM_DELEGATION_TOK"):
            await renew(rm, token, "yarn")
        await rm.until(lambda: not len(rm.manager.identities.delegations))


async def test_only_its_renewer_renews_it() -> None:
    async with cluster() as rm:
        token = await made(rm)
        with pytest.raises(YarnError, match=r"alice tries to renew a token \(.*\) with non-matching renewer yarn"):
            await renew(rm, token, "alice")
        nobodys = await made(rm, renewer="")
        with pytest.raises(YarnError, match=r"alice tried to renew a token \(.*\) without a renewer"):
            await renew(rm, nobodys, "alice")
        token.password = b"0" * 20
        with pytest.raises(YarnError, match=r"yarn is trying to renew a token \(.*\) with wrong password"):
            await renew(rm, token, "yarn")


@pytest.mark.parametrize("user", ["alice", "yarn"])
async def test_owner_and_renewer_cancel_it(user: str) -> None:
    async with cluster() as rm:
        token = await made(rm)
        with pytest.raises(YarnError, match=r"mallory is not authorized to cancel the token \("):
            await cancel(rm, token, "mallory")
        await cancel(rm, token, user)
        with pytest.raises(InvalidToken):
            await user_of(rm, token)
        for again in (cancel(rm, token, user), renew(rm, token, "yarn")):
            with pytest.raises(YarnError, match="InvalidToken"):
                await again


async def test_rubbish_is_no_token() -> None:
    async with cluster() as rm:
        rubbish = common.Token(identifier=b"\xff\xff", password=b"", kind="RM_DELEGATION_TOKEN", service="")
        for call in (cancel(rm, rubbish, "alice"), renew(rm, rubbish, "alice")):
            with pytest.raises(YarnError, match="InvalidToken"):
                await call


async def test_tokens_outlive_a_restart_and_cancelled_ones_do_not_come_back(tmp_path: Path) -> None:
    store = tmp_path / "state.db"
    async with cluster(store=store) as rm:
        kept, cancelled = await made(rm), await made(rm)
        await renew(rm, kept, "yarn")
        await cancel(rm, cancelled, "alice")
    async with cluster(store=store) as rm:
        assert await user_of(rm, kept) == "alice"
        with pytest.raises(InvalidToken):
            await user_of(rm, cancelled)
        fresh = await made(rm)
        assert fresh.identifier != kept.identifier
        await renew(rm, kept, "yarn")
    async with cluster() as rm:
        with pytest.raises(InvalidToken):
            await user_of(rm, kept)


async def test_keys_roll_and_old_tokens_stay_good() -> None:
    clock = ManualClock()
    longer = LIFETIMES | {"yarn.resourcemanager.delegation.token.renew-interval": "250000"}
    async with cluster(longer, clock=clock) as rm:
        old = await made(rm)
        clock.seconds += 201
        delegations = rm.manager.identities.delegations
        await rm.until(lambda: len(delegations._keys) == 2)
        new = await made(rm)
        assert await user_of(rm, old) == await user_of(rm, new) == "alice"
        clock.seconds += 260
        await rm.until(lambda: len(delegations._keys) == 2 and len(delegations) == 0)


async def test_administrators_port_takes_no_tokens() -> None:
    async with cluster() as rm:
        token = Token.from_pb(await made(rm))
        client = RpcClient(LOOPBACK, rm.manager.servers.admin.port, user="root", token=token)
        await client.call(Admin.refreshNodes, admin.RefreshNodesRequest())  # as root, by name
        await client.close()
