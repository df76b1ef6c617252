"""Who may speak to the ResourceManager at all, where `hadoop.security.authorization` is on."""

from pathlib import Path

import pytest

from rm.daemon import ResourceManager
from tests.rm.rm_harness import LOOPBACK, Harness, configuration
from yaqd.config import Configuration
from yaqd.ipc import RpcClient
from yaqd.ipc.errors import Authorization, YarnError
from yaqd.proto import yarn_admin_pb2 as admin
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Client
from yaqd.proto.protocols import ResourceManagerAdministrationProtocol as Admin


def write_policy(folder: Path, values: dict[str, str]) -> None:
    rows = "".join(f"<property><name>security.{k}</name><value>{v}</value></property>" for k, v in values.items())
    (folder / "hadoop-policy.xml").write_text(f"<configuration>{rows}</configuration>")


async def started(folder: Path) -> Harness:
    switch = {"hadoop.security.authorization": "true", "hadoop.user.group.static.mapping.overrides": "vera=v"}
    base = configuration(switch)
    settings = {key: base.get(key) or "" for key in base.changed_keys()}
    manager = ResourceManager(Configuration.load(folder, overrides=settings, environ={}))
    await manager.start()
    return Harness(manager)


async def metrics_as(rm: Harness, user: str) -> None:
    client = RpcClient(LOOPBACK, rm.manager.servers.client.port, user=user)
    try:
        await client.call(Client.getClusterMetrics, pb.GetClusterMetricsRequest())
    finally:
        await client.close()


async def test_lists_turn_users_and_hosts_away_and_are_read_again(tmp_path: Path) -> None:
    acl = "applicationclient.protocol.acl"
    write_policy(tmp_path, {acl: "alice,bob v", f"{acl}.blocked": "bob"})
    rm = await started(tmp_path)
    root = RpcClient(LOOPBACK, rm.manager.servers.admin.port, user="root")
    refresh = admin.RefreshServiceAclsRequest()
    try:
        node = await rm.node()
        await rm.running(node)
        for user in ("alice", "vera"):
            await metrics_as(rm, user)
        for user in ("bob", "mallory"):
            with pytest.raises(Authorization) as caught:
                await metrics_as(rm, user)
            assert caught.value.message == (
                f"User {user} (auth:SIMPLE) is not authorized for protocol interface "
                "org.apache.hadoop.yarn.api.ApplicationClientProtocolPB: denied by configured ACL"
            )
        write_policy(tmp_path, {"applicationclient.protocol.hosts": "10.0.0.0/8"})
        await metrics_as(rm, "alice")
        await root.call(Admin.refreshServiceAcls, refresh)
        with pytest.raises(Authorization, match=f"Host {LOOPBACK}:{LOOPBACK} is not authorized for protocol interface"):
            await metrics_as(rm, "alice")
        write_policy(tmp_path, {})
        await root.call(Admin.refreshServiceAcls, refresh)
        await metrics_as(rm, "mallory")
        mallory = RpcClient(LOOPBACK, rm.manager.servers.admin.port, user="mallory")
        rm.manager.access.set_administrators("root")
        with pytest.raises(YarnError, match="User mallory doesn't have permission to call 'refreshServiceAcls'"):
            await mallory.call(Admin.refreshServiceAcls, refresh)
        await mallory.close()
    finally:
        await root.close()
        await rm.stop()


async def test_protocol_of_another_port_is_not_known(tmp_path: Path) -> None:
    rm = await started(tmp_path)
    try:
        client = RpcClient(LOOPBACK, rm.manager.servers.client.port, user="alice")
        with pytest.raises(Authorization, match=r"org\.apache\.hadoop\.ha\.HAServiceProtocol is not known"):
            method = type(Client.getClusterMetrics)(
                "org.apache.hadoop.ha.HAServiceProtocol",
                "getServiceStatus",
                pb.GetClusterMetricsRequest,
                pb.GetClusterMetricsResponse,
            )
            await client.call(method, pb.GetClusterMetricsRequest())
        await client.close()
    finally:
        await rm.stop()
