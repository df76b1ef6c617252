"""Sizes of nodes in `dynamic-resources.xml`: at registration, and when an administrator has the file read again."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from rm.daemon import ResourceManager
from rm.nodes.sizes import read_node_sizes
from tests.rm.rm_harness import FakeNode, Harness, configuration
from yaqd.config import ConfigError, Configuration
from yaqd.config.xmlfile import write_properties
from yaqd.ipc import RpcClient
from yaqd.ipc.errors import RemoteIOError, YarnError
from yaqd.model import NodeId, Resource
from yaqd.proto import yarn_admin_pb2 as admin
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto.protocols import ResourceManagerAdministrationProtocol as Admin
from yaqd.proto.protocols import ResourceTracker

Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes the file: the nodes named, and what of them is said."""

    def to_file(nodes: str, **sizes: object) -> None:
        rows = [(f"yarn.resource.dynamic.{key}", str(value), "") for key, value in sizes.items()]
        write_properties(tmp_path / "dynamic-resources.xml", [("yarn.resource.dynamic.nodes", nodes, ""), *rows])

    return to_file


@asynccontextmanager
async def manager(folder: Path) -> AsyncIterator[Harness]:
    settings = dict(configuration().items())
    running = ResourceManager(Configuration.load(folder, overrides=settings, environ={}))
    await running.start()
    harness = Harness(running)
    try:
        yield harness
    finally:
        await harness.stop()


async def refresh(rm: Harness) -> None:
    client = RpcClient("127.0.0.1", rm.manager.servers.admin.port, user="root")
    try:
        await client.call(Admin.refreshNodesResources, admin.RefreshNodesResourcesRequest())
    finally:
        await client.close()


def sizes(rm: Harness) -> dict[NodeId, Resource]:
    return {node.id: node.total for node in rm.manager.cluster.nodes.values()}


def test_file_gives_memory_and_cores_with_hadoops_defaults(tmp_path: Path, write: Write) -> None:
    assert read_node_sizes(Configuration.load(tmp_path, environ={})) == {}
    write("a:1, b:2", **{"a:1.memory": 100, "a:1.vcores": 3})
    found = read_node_sizes(Configuration.load(tmp_path, environ={}))
    assert found == {NodeId("a", 1): Resource(100, 3), NodeId("b", 2): Resource(8192, 8)}


@pytest.mark.parametrize(
    ("nodes", "said", "problem"),
    [("a", {}, "a is no node"), ("a:1", {"a:1.memory": -1}, "less than 0"), ("a:1", {"a:1.vcores": "x"}, "vcores")],
)
def test_wrong_file_is_named(tmp_path: Path, write: Write, nodes: str, said: dict[str, object], problem: str) -> None:
    write(nodes, **said)
    with pytest.raises(ConfigError, match=problem) as caught:
        read_node_sizes(Configuration.load(tmp_path, environ={}))
    assert caught.value.file == tmp_path / "dynamic-resources.xml"


async def test_refresh_resizes_nodes_now_and_when_they_register_again(tmp_path: Path, write: Write) -> None:
    async with manager(tmp_path) as rm:
        node, other = await rm.node(memory_mb=4096, vcores=4), await rm.node(memory_mb=4096, vcores=4)
        write(str(node.id), **{f"{node.id}.memory": 2048, f"{node.id}.vcores": 2})
        await refresh(rm)
        assert sizes(rm) == {node.id: Resource(2048, 2), other.id: Resource(4096, 4)}
        assert rm.manager.scheduler.view.nodes.total.memory_mb == 6144
        assert (await node.beat()).resource.memory == 2048
        await node.register()
        await other.register()
        assert sizes(rm) == {node.id: Resource(2048, 2), other.id: Resource(4096, 4)}
        assert _told(node) == (2048, 2)
        assert other.registration is not None and not other.registration.HasField("resource")


async def test_unknown_node_or_wrong_file_changes_nothing(tmp_path: Path, write: Write) -> None:
    async with manager(tmp_path) as rm:
        node = await rm.node(memory_mb=4096, vcores=4)
        write(f"{node.id},nowhere:1")
        with pytest.raises(YarnError, match="change resource on an unrecognized node: nowhere:1"):
            await refresh(rm)
        write("nonsense")
        with pytest.raises(RemoteIOError, match="nonsense is no node"):
            await refresh(rm)
        await node.register()
        assert sizes(rm) == {node.id: Resource(4096, 4)}


async def test_size_counts_from_the_start_and_for_the_least_that_a_node_must_have(tmp_path: Path, write: Write) -> None:
    write("good:1,small:1", **{"good:1.memory": 2048, "small:1.memory": 1})
    async with manager(tmp_path) as rm:
        good, small = await registered(rm, "good"), await registered(rm, "small")
        assert (good.resource.memory, good.resource.virtual_cores) == (2048, 8)
        assert "doesn't satisfy minimum allocations" in small.diagnostics_message
        assert sizes(rm) == {NodeId("good", 1): Resource(2048, 8)}


async def registered(rm: Harness, host: str) -> server.RegisterNodeManagerResponse:
    """What a node at port 1 of that host is answered that says it has 4 GiB and 4 cores."""
    request = server.RegisterNodeManagerRequest(http_port=8042, nm_version="3.4.1")
    request.node_id.host, request.node_id.port = host, 1
    request.resource.memory, request.resource.virtual_cores = 4096, 4
    tracker = RpcClient("127.0.0.1", rm.manager.servers.tracker.port, user="nm")
    try:
        return await tracker.call(ResourceTracker.registerNodeManager, request)
    finally:
        await tracker.close()


def _told(node: FakeNode) -> tuple[int, int]:
    assert node.registration is not None
    return node.registration.resource.memory, node.registration.resource.virtual_cores
