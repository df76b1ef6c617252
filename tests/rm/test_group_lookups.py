"""A directory server that hangs: who depends on their groups waits, and the ResourceManager serves everybody else."""

import asyncio
import threading
from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.rm.rm_harness import LOOPBACK, Harness, cluster
from yaqd.ipc import RemoteException, RpcClient, RpcError
from yaqd.proto import yarn_admin_pb2 as admin
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Client
from yaqd.proto.protocols import Method
from yaqd.proto.protocols import ResourceManagerAdministrationProtocol as Admin

LISTS = {
    "yarn.acl.enable": "true",
    "yarn.admin.acl": "ada operators",
    "hadoop.proxyuser.oozie.groups": "staff",
    "hadoop.proxyuser.oozie.hosts": "*",
}
MEMBERS = {"olga": ("operators",), "eve": ("guests",), "sam": ("staff",)}


class Directory:
    def __init__(self) -> None:
        self.open = threading.Event()
        self.asked: list[str] = []
        self.was_asked = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def __call__(self, user: str) -> tuple[str, ...]:
        self.asked.append(user)
        self._loop.call_soon_threadsafe(self.was_asked.set)
        self.open.wait(20)
        return MEMBERS.get(user, ())


@pytest.fixture
async def directory(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Directory]:
    directory = Directory()
    monkeypatch.setattr("rm.security.identities.unix_groups", directory)
    yield directory
    directory.open.set()


def client(rm: Harness, user: str, *, for_admin: bool = False, real_user: str | None = None) -> RpcClient:
    server = rm.manager.servers.admin if for_admin else rm.manager.servers.client
    return RpcClient(LOOPBACK, server.port, user=user, real_user=real_user)


async def test_calls_wait_for_the_groups_of_their_caller_and_no_others_do(directory: Directory) -> None:
    async with cluster(LISTS) as rm:
        olga, ada = client(rm, "olga", for_admin=True), client(rm, "ada", for_admin=True)
        waiting = asyncio.create_task(olga.call(Admin.refreshQueues, admin.RefreshQueuesRequest()))
        second = asyncio.create_task(olga.call(Admin.refreshAdminAcls, admin.RefreshAdminAclsRequest()))
        await directory.was_asked.wait()
        await ada.call(Admin.refreshQueues, admin.RefreshQueuesRequest())
        assert not waiting.done() and not second.done() and directory.asked == ["olga"]
        directory.open.set()
        await waiting
        await second
        groups = await olga.call(Admin.getGroupsForUser, admin.GetGroupsForUserRequest(user="sam"))
        assert list(groups.groups) == ["staff"]
        assert directory.asked == ["olga", "sam"]
        eve = client(rm, "eve", for_admin=True)
        with pytest.raises(RemoteException, match="User eve doesn't have permission to call 'refreshQueues'"):
            await eve.call(Admin.refreshQueues, admin.RefreshQueuesRequest())
        for one in (olga, ada, eve):
            await one.close()


async def test_connections_of_proxy_users_wait_and_are_then_admitted_or_not(directory: Directory) -> None:
    metrics: Method[pb.GetClusterMetricsRequest, pb.GetClusterMetricsResponse] = Client.getClusterMetrics
    async with cluster(LISTS) as rm:
        sam, eve = (client(rm, user, real_user="oozie") for user in ("sam", "eve"))
        waiting = [asyncio.create_task(c.call(metrics, pb.GetClusterMetricsRequest())) for c in (sam, sam, eve)]
        await directory.was_asked.wait()
        await rm.client.call(metrics, pb.GetClusterMetricsRequest())
        assert not any(task.done() for task in waiting)
        directory.open.set()
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(o) for o in outcomes[:2]] == [pb.GetClusterMetricsResponse] * 2
        assert isinstance(outcomes[2], RemoteException | RpcError)
        assert "oozie is not allowed to impersonate eve" in str(outcomes[2])
        await sam.close()
        await eve.close()


async def test_pages_wait_too(directory: Directory) -> None:
    async with cluster(LISTS) as rm, aiohttp.ClientSession() as session:
        assert rm.manager.web is not None
        base = f"http://{LOOPBACK}:{rm.manager.web.port}/ws/v1/cluster"
        waiting = asyncio.create_task(session.get(f"{base}/decisions?user.name=olga"))
        await directory.was_asked.wait()
        async with session.get(f"{base}/info?user.name=eve") as other:
            assert other.status == 200
        assert not waiting.done()
        directory.open.set()
        async with await waiting as answer:
            assert answer.status == 200
        async with session.get(f"{base}/decisions?user.name=eve") as refused:
            assert refused.status == 403
