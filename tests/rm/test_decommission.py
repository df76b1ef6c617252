"""Nodes that an administrator sends away and lets back in: host files, refreshNodes at once and graceful."""

from pathlib import Path
from typing import Any

import pytest

from rm.nodes.hosts import HostLists, read_host_lists
from tests.rm.rm_harness import FakeMaster, FakeNode, Harness, ManualClock, ask, cluster, configuration
from yaqd.config import ConfigError, Configuration
from yaqd.ipc import RemoteException, RpcClient
from yaqd.ipc.errors import RemoteIOError, YarnError
from yaqd.model import NodeId, NodeState, Resource
from yaqd.proto import convert
from yaqd.proto import yarn_admin_pb2 as admin
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Client
from yaqd.proto.protocols import ResourceManagerAdministrationProtocol as Admin

AWAY, HOME = "127.0.0.2", "127.0.0.1"


class Files:
    """The two files, and the command that has them read."""

    def __init__(self, folder: Path, suffix: str = "") -> None:
        self.exclude, self.include = folder / f"exclude{suffix}", folder / f"include{suffix}"
        self.exclude.write_text("<hosts/>" if suffix else "")
        self.include.write_text("<hosts/>" if suffix else "")
        self.settings = {
            "yarn.resourcemanager.nodes.exclude-path": str(self.exclude),
            "yarn.resourcemanager.nodes.include-path": str(self.include),
        }

    async def refresh(
        self, rm: Harness, kind: "admin.DecommissionType" = admin.NORMAL, timeout_s: int | None = None
    ) -> None:
        request = admin.RefreshNodesRequest(decommissionType=kind)
        if timeout_s is not None:
            request.decommissionTimeout = timeout_s
        await call_admin(rm, "refreshNodes", request)


async def call_admin(rm: Harness, method: str, request: Any) -> Any:
    rpc = RpcClient("127.0.0.1", rm.manager.servers.admin.port, user="root")
    try:
        return await rpc.call(getattr(Admin, method), request)
    finally:
        await rpc.close()


async def states(rm: Harness) -> dict[str, str]:
    """What `yarn node -list -all` shows."""
    response = await rm.client.call(Client.getClusterNodes, pb.GetClusterNodesRequest())
    return {n.nodeId.host: NodeState(n.node_state).name for n in response.nodeReports}


async def busy(rm: Harness) -> tuple[FakeNode, FakeNode, FakeMaster, common.ContainerId]:
    """A master on HOME and one of its containers on AWAY."""
    home = await rm.node(host=HOME, memory_mb=2048)
    _, master = await rm.running(home)
    away = await rm.node(host=AWAY, memory_mb=4096)
    (container,) = (await master.allocate(ask(1, name=AWAY), ask(1))).allocated_containers
    away.run(convert.container_id(container.id))
    await away.beat()
    return home, away, master, container.id


def test_text_files_take_names_between_blanks_and_comments(tmp_path: Path) -> None:
    files = Files(tmp_path)
    files.exclude.write_text("One two\t127.0.0.3 # three\n#four\n\n five")
    lists = read_host_lists(configuration(files.settings))
    assert dict(lists.excluded) == {"one": None, "two": None, "127.0.0.3": None, "five": None}
    assert not lists.admits("ONE") and lists.admits("three")
    assert not lists.admits("host3", "127.0.0.3"), "by address as well"
    assert lists.name_addresses


def test_xml_files_bring_time_outs(tmp_path: Path) -> None:
    files = Files(tmp_path, ".xml")
    files.exclude.write_text(
        "<?xml version='1.0'?><hosts><host><name>a, B</name><timeout>60</timeout></host><host><name>c</name></host>"
        "</hosts>"
    )
    lists = read_host_lists(configuration(files.settings))
    assert dict(lists.excluded) == {"a": 60, "b": 60, "c": None}
    assert [lists.timeout_s(h, 5) for h in ("A", "c", "d")] == [60, 5, 5]


@pytest.mark.parametrize(
    "content", ["<hosts><host>", "<hosts><host><name>a</name><timeout>soon</timeout></host></hosts>"]
)
def test_a_file_that_is_not_understood_is_named(tmp_path: Path, content: str) -> None:
    files = Files(tmp_path, ".xml")
    files.exclude.write_text(content)
    with pytest.raises(ConfigError, match=r"nodes\.exclude-path.*cannot be understood"):
        read_host_lists(configuration(files.settings))


def test_included_excluded_and_untracked() -> None:
    lists = HostLists({"a": None, "b": None}, {"b": None, "c": None})
    assert [h for h in "abcd" if lists.admits(h)] == ["a"]
    assert [h for h in "abcd" if lists.is_untracked(h)] == ["d"]
    assert not HostLists({}, {"b": None}).is_untracked("d")


async def test_excluded_node_goes_at_once_with_its_containers_and_may_come_back(tmp_path: Path) -> None:
    files = Files(tmp_path)
    async with cluster(files.settings) as rm:
        _, away, master, container = await busy(rm)
        files.exclude.write_text(AWAY)
        await files.refresh(rm)
        assert await states(rm) == {HOME: "RUNNING", AWAY: "DECOMMISSIONED"}
        response = await master.allocate()
        (ended,) = response.completed_container_statuses
        assert (ended.container_id, ended.exit_status, ended.diagnostics) == (
            container,
            -100,
            "Container released on a *lost* node",
        )
        told = await away.beat()
        assert told.nodeAction == server.SHUTDOWN
        assert told.diagnostics_message == f"Disallowed NodeManager nodeId: {away.id} hostname: {AWAY}"
        await away.register()
        assert away.registration is not None and away.registration.nodeAction == server.SHUTDOWN
        expected = f"Disallowed NodeManager from  {AWAY}, Sending SHUTDOWN signal to the NodeManager."
        assert away.registration.diagnostics_message == expected
        files.exclude.write_text("")
        await files.refresh(rm)
        await away.register()
        assert (await states(rm))[AWAY] == "RUNNING"


async def test_drained_node_takes_nothing_more_and_goes_when_its_applications_are_over(tmp_path: Path) -> None:
    files = Files(tmp_path)
    async with cluster(files.settings) as rm:
        _, away, master, container = await busy(rm)
        files.exclude.write_text(AWAY)
        await files.refresh(rm, admin.GRACEFUL, 600)
        assert (await states(rm))[AWAY] == "DECOMMISSIONING"
        response = await master.allocate(ask(3))
        assert {c.nodeId.host for c in response.allocated_containers} <= {HOME}
        (told,) = response.updated_nodes
        assert (told.node_update_type, told.decommissioning_timeout) == (common.NODE_DECOMMISSIONING, 600)
        assert told.capability.memory == told.used.memory == 1024, "it counts as large as what it holds"
        draining = await call_admin(rm, "checkForDecommissioningNodes", admin.CheckForDecommissioningNodesRequest())
        assert [n.host for n in draining.decommissioningNodes] == [AWAY]
        assert (await away.beat()).nodeAction == server.NORMAL
        away.end(convert.container_id(container))
        assert (await away.beat()).nodeAction == server.NORMAL, "others may still want what its containers left"
        assert rm.manager.scheduler.view.nodes.total.memory_mb == 2048
        await master.finish()
        for node in rm.nodes:
            for container_id in list(node.running):
                node.end(container_id)
        await rm.nodes[0].beat()
        last = await away.beat()
        assert last.nodeAction == server.SHUTDOWN
        assert last.diagnostics_message == f"DECOMMISSIONING {away.id} is ready to be decommissioned"
        assert (await states(rm))[AWAY] == "DECOMMISSIONED"
        assert rm.manager.cluster.nodes[away.id].total == Resource(), "it is listed with what it could hold in the end"


async def test_drained_node_that_takes_too_long_goes_with_what_it_runs(tmp_path: Path) -> None:
    files, clock = Files(tmp_path, ".xml"), ManualClock()
    async with cluster(files.settings, clock=clock) as rm:
        _, away, master, _ = await busy(rm)
        files.exclude.write_text(f"<hosts><host><name>{AWAY}</name><timeout>30</timeout></host></hosts>")
        await files.refresh(rm, admin.GRACEFUL, 600)
        clock.seconds += 29
        assert (await away.beat()).nodeAction == server.NORMAL
        clock.seconds += 2
        assert (await away.beat()).nodeAction == server.SHUTDOWN
        (ended,) = (await master.allocate()).completed_container_statuses
        assert ended.exit_status == -100


async def test_drained_node_is_let_back_in_or_sent_away_by_force(tmp_path: Path) -> None:
    files = Files(tmp_path)
    async with cluster(files.settings) as rm:
        _, away, master, _ = await busy(rm)
        files.exclude.write_text(AWAY)
        await files.refresh(rm, admin.GRACEFUL)
        assert rm.manager.cluster.nodes[away.id].drain_timeout_s == 3600, "the configuration's"
        await files.refresh(rm, admin.GRACEFUL, 7)
        assert rm.manager.cluster.nodes[away.id].drain_timeout_s == 7
        files.exclude.write_text("")
        await files.refresh(rm, admin.GRACEFUL)
        assert (await states(rm))[AWAY] == "RUNNING"
        assert rm.manager.scheduler.view.nodes.total.memory_mb == 2048 + 4096
        assert {c.nodeId.host for c in (await master.allocate(ask(4))).allocated_containers} == {HOME, AWAY}
        files.exclude.write_text(AWAY)
        await files.refresh(rm, admin.GRACEFUL)
        await files.refresh(rm, admin.FORCEFUL)
        assert (await states(rm))[AWAY] == "DECOMMISSIONED"


async def test_node_registers_anew_while_it_is_drained_and_stays_so(tmp_path: Path) -> None:
    files = Files(tmp_path)
    async with cluster(files.settings) as rm:
        _, away, _, _ = await busy(rm)
        files.exclude.write_text(AWAY)
        await files.refresh(rm, admin.GRACEFUL)
        await away.register(keep=True)
        assert (await states(rm))[AWAY] == "DECOMMISSIONING"
        assert rm.manager.scheduler.view.nodes.total.memory_mb == 2048 + 1024


async def test_node_taken_from_the_include_file_shuts_down_and_is_forgotten(tmp_path: Path) -> None:
    files, clock = Files(tmp_path), ManualClock()
    files.include.write_text(f"{AWAY} {HOME}")
    async with cluster(files.settings, clock=clock) as rm:
        _, away, _, _ = await busy(rm)
        files.include.write_text(HOME)
        await files.refresh(rm)
        assert (await states(rm))[AWAY] == "SHUTDOWN"
        await rm.until(lambda: bool(rm.manager.decommission._untracked))
        clock.seconds += 61
        await rm.until(lambda: away.id not in rm.manager.cluster.nodes)


async def test_excluded_hosts_are_listed_though_they_never_came(tmp_path: Path) -> None:
    files = Files(tmp_path)
    files.exclude.write_text(AWAY)
    async with cluster(files.settings) as rm:
        assert await states(rm) == {AWAY: "DECOMMISSIONED"}
        assert NodeId(AWAY, -1) in rm.manager.cluster.nodes
        files.exclude.write_text("")
        await files.refresh(rm)
        away = await rm.node(host=AWAY)
        assert await states(rm) == {AWAY: "RUNNING"}
        assert rm.manager.cluster.nodes[away.id].state is NodeState.RUNNING


async def test_unreadable_file_changes_nothing(tmp_path: Path) -> None:
    files = Files(tmp_path)
    async with cluster(files.settings) as rm:
        await rm.node(host=AWAY)
        files.exclude.unlink()
        with pytest.raises(RemoteIOError, match=r"exclude-path.*cannot be read"):
            await files.refresh(rm)
        assert await states(rm) == {AWAY: "RUNNING"}


async def test_size_of_a_node_is_changed_for_all_nodes_named_or_none() -> None:
    async with cluster() as rm:
        node = await rm.node(host=AWAY, memory_mb=4096)
        request = admin.UpdateNodeResourceRequest()
        for host, port in ((AWAY, node.id.port), ("nowhere", 1)):
            entry = request.node_resource_map.add()
            entry.node_id.host, entry.node_id.port = host, port
            entry.resource_option.resource.memory, entry.resource_option.resource.virtual_cores = 1024, 1
        with pytest.raises(YarnError, match="change resource on an unrecognized node: nowhere:1"):
            await call_admin(rm, "updateNodeResource", request)
        assert rm.manager.scheduler.view.nodes.total.memory_mb == 4096
        del request.node_resource_map[1]
        await call_admin(rm, "updateNodeResource", request)
        assert rm.manager.scheduler.view.nodes.total.memory_mb == 1024
        assert (await node.beat()).resource.memory == 1024


async def by_name(rm: Harness, **names: str) -> None:
    fields: dict[str, Any] = {key: [name] for key, name in names.items()}
    await call_admin(rm, "refreshNodes", admin.RefreshNodesRequest(**fields))


async def test_a_file_that_is_named_after_the_start_is_read(tmp_path: Path) -> None:
    files, site = Files(tmp_path), tmp_path / "yarn-site.xml"
    site.write_text("<configuration/>")
    overrides = {key: value for key, value in configuration().items() if value.endswith(":0") or value == "memory"}
    async with cluster(conf=Configuration.load(tmp_path, overrides=overrides, environ={})) as rm:
        away = await rm.node(host=AWAY)
        files.exclude.write_text(AWAY)
        key = "yarn.resourcemanager.nodes.exclude-path"
        pair = f"<property><name>{key}</name><value>{files.exclude}</value></property>"
        site.write_text(f"<configuration>{pair}</configuration>")
        await files.refresh(rm, admin.GRACEFUL, 600)
        assert (await states(rm))[away.host] == "DECOMMISSIONING"


async def test_nodes_are_drained_and_let_back_in_by_name_and_a_restart_keeps_that(tmp_path: Path) -> None:
    settings = {"yaq.rm.state-store.path": str(tmp_path / "state")}
    async with cluster(settings) as rm:
        away = await rm.node(host=AWAY)
        with pytest.raises(RemoteException, match=f"there is no node elsewhere; there are {away.id}"):
            await by_name(rm, yaq_drain="elsewhere")
        await by_name(rm, yaq_drain=AWAY)
        assert (await states(rm))[AWAY] == "DECOMMISSIONING"
        assert (await away.beat()).nodeAction == server.NORMAL, "a stock one stays too"
        await call_admin(rm, "refreshNodes", admin.RefreshNodesRequest())
        assert (await states(rm))[AWAY] == "DECOMMISSIONING", "no file has let it in"
        await away.register()
        assert (await states(rm))[AWAY] == "DECOMMISSIONING"
        with pytest.raises(RemoteException, match=f"drained as part of {AWAY}"):
            await by_name(rm, yaq_undrain=str(away.id))
    async with cluster(settings) as rm:
        away = await rm.node(host=AWAY)
        assert (await states(rm))[AWAY] == "DECOMMISSIONING"
        for _ in range(2):
            assert (await away.beat()).nodeAction == server.NORMAL, "it stays, with nothing to do"
        await by_name(rm, yaq_undrain=AWAY)
        assert (await states(rm))[AWAY] == "RUNNING"
        assert rm.manager.scheduler.view.nodes.total.memory_mb > 0
        with pytest.raises(RemoteException, match="there is no node elsewhere"):
            await by_name(rm, yaq_undrain="elsewhere")
    async with cluster(settings) as rm:
        await rm.node(host=AWAY)
        assert (await states(rm))[AWAY] == "RUNNING"


async def test_a_host_lets_its_nodes_back_in_however_they_were_named() -> None:
    async with cluster() as rm:
        one, other = await rm.node(host=AWAY), await rm.node(host=AWAY)
        home = await rm.node(host=HOME)
        for name in (str(one.id), str(home.id)):
            await by_name(rm, yaq_drain=name)
        await by_name(rm, yaq_undrain=AWAY)
        draining = [node.id for node in rm.manager.decommission.draining()]
        assert draining == [home.id]
        await by_name(rm, yaq_drain=AWAY)
        with pytest.raises(
            RemoteException, match=f"{other.id} is drained as part of {AWAY}: `yaq node undrain {AWAY}`"
        ):
            await by_name(rm, yaq_undrain=str(other.id))
        await call_admin(rm, "refreshNodes", admin.RefreshNodesRequest(yaq_undrain=[str(other.id), AWAY, HOME]))
        assert rm.manager.decommission.draining() == []


async def test_what_is_drained_by_files_as_well_stays_and_says_which_commands_work(tmp_path: Path) -> None:
    files = Files(tmp_path)
    async with cluster(files.settings) as rm:
        away = await rm.node(host=AWAY)
        await by_name(rm, yaq_drain=str(away.id))
        files.exclude.write_text(AWAY)
        await files.refresh(rm, admin.GRACEFUL, 600)
        for name in (AWAY, str(away.id)):
            with pytest.raises(RemoteException, match=r"by the files of hosts: .* then `yaq rm refresh nodes`"):
                await by_name(rm, yaq_undrain=name)
        files.exclude.write_text("")
        await files.refresh(rm)
        await by_name(rm, yaq_undrain=AWAY)
        assert await states(rm) == {AWAY: "RUNNING"}


@pytest.mark.parametrize("is_host", [True, False])
async def test_a_node_that_is_drained_by_name_leaves_by_force_and_stays_until_it_is_let_in(is_host: bool) -> None:
    async with cluster() as rm:
        _, away, master, container = await busy(rm)
        name = AWAY if is_host else str(away.id)
        await by_name(rm, yaq_drain=name)
        await call_admin(rm, "refreshNodes", admin.RefreshNodesRequest(decommissionType=admin.FORCEFUL))
        assert await states(rm) == {HOME: "RUNNING", AWAY: "DECOMMISSIONED"}
        (ended,) = (await master.allocate()).completed_container_statuses
        assert (ended.container_id, ended.exit_status) == (container, -100)
        told = await away.beat()
        assert told.nodeAction == server.NORMAL and list(told.containers_to_cleanup) == [container]
        for _ in range(3):
            assert (await away.beat()).nodeAction == server.NORMAL
        assert rm.manager.scheduler.view.nodes.total.memory_mb == 2048
        assert {c.nodeId.host for c in (await master.allocate(ask(4))).allocated_containers} == {HOME}
        await away.register()
        assert (await states(rm))[AWAY] == "DECOMMISSIONED", "nor does another start of it let it in"
        assert (await away.beat()).nodeAction == server.NORMAL
        with pytest.raises(RemoteException, match=f"has left: `yaq node undrain {name}` lets it back in"):
            await by_name(rm, yaq_drain=name)
        await by_name(rm, yaq_undrain=AWAY)
        assert (await away.beat()).nodeAction == server.RESYNC
        await away.register()
        assert (await states(rm))[AWAY] == "RUNNING"
        await by_name(rm, yaq_drain=name)
        assert (await states(rm))[AWAY] == "DECOMMISSIONING"
        await away.register()
        assert (await states(rm))[AWAY] == "DECOMMISSIONING"


async def test_a_restart_keeps_who_left_by_force_away(tmp_path: Path) -> None:
    settings = {"yaq.rm.state-store.path": str(tmp_path / "state")}
    async with cluster(settings) as rm:
        away = await rm.node(host=AWAY)
        await by_name(rm, yaq_drain=AWAY)
        await call_admin(rm, "refreshNodes", admin.RefreshNodesRequest(decommissionType=admin.FORCEFUL))
    for state in ("DECOMMISSIONED", "DECOMMISSIONING"):
        async with cluster(settings) as rm:
            away = await rm.node(host=AWAY, port=away.id.port)
            assert (await states(rm))[AWAY] == state
            await by_name(rm, yaq_undrain=AWAY)
            await away.register()
            await by_name(rm, yaq_drain=AWAY)


async def test_only_administrators_drain(tmp_path: Path) -> None:
    async with cluster({"yarn.admin.acl": "ada"}) as rm:
        await rm.node(host=AWAY)
        rpc = RpcClient("127.0.0.1", rm.manager.servers.admin.port, user="eve")
        with pytest.raises(RemoteException, match="User eve doesn't have permission"):
            await rpc.call(Admin.refreshNodes, admin.RefreshNodesRequest(yaq_drain=[AWAY]))
        await rpc.close()
