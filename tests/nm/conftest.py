"""One node against one fake ResourceManager, both real servers on loopback."""

import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from pathlib import Path

import pytest

from nm.daemon import NodeManager
from nm.resources.groups import ContainerGroups
from tests.nm.nm_cluster import FakeResourceManager, Master, container_id, node_configuration
from tests.nm.nm_faults import NodeProcess, processes_of
from tests.nm.nm_survivors import survivors

__all__ = ["survivors"]

StartNode = Callable[..., Awaitable[NodeManager]]
StartProcess = Callable[..., Awaitable[NodeProcess]]


@pytest.fixture
def groups(tmp_path: Path) -> Iterator[ContainerGroups]:
    """Control groups of containers; skips where none can be made."""
    try:
        opened = ContainerGroups.open(tmp_path / "local")
    except OSError as error:
        pytest.skip(f"no control groups: {error}")
    yield opened
    opened.close()
    assert not opened.root.exists()


@pytest.fixture
async def rm() -> AsyncIterator[FakeResourceManager]:
    manager = FakeResourceManager()
    await manager.start()
    yield manager
    await manager.rpc.stop()


@pytest.fixture
async def start_node(rm: FakeResourceManager, tmp_path: Path) -> AsyncIterator[StartNode]:
    """Starts a registered node with the given settings on top; stopped at the end, with nothing of it left."""
    nodes: list[NodeManager] = []

    async def start(overrides: Mapping[str, str] | None = None) -> NodeManager:
        node = NodeManager(node_configuration(tmp_path, rm.rpc.port, overrides))
        nodes.append(node)
        await node.start()
        await rm.until(lambda: rm.heartbeats)
        return node

    yield start
    for node in nodes:
        await node.stop()
        node.runtime.validate()


@pytest.fixture
async def node(start_node: StartNode) -> NodeManager:
    return await start_node()


@pytest.fixture
async def master(rm: FakeResourceManager, node: NodeManager) -> AsyncIterator[Master]:
    master = Master(rm, node)
    yield master
    await master.client.close()


@pytest.fixture
async def start_process(
    rm: FakeResourceManager, tmp_path: Path
) -> AsyncIterator[Callable[..., Awaitable[NodeProcess]]]:
    """Starts `python -m nm`; whatever a test leaves is killed."""
    nodes: list[NodeProcess] = []

    async def start(overrides: Mapping[str, str] | None = None) -> NodeProcess:
        nodes.append(await NodeProcess.start(rm, tmp_path, overrides))
        return nodes[-1]

    yield start
    for node in nodes:
        if node.process.returncode is None:
            node.process.kill()
        await node.process.communicate()
    for pid in processes_of(container_id(1)):
        os.kill(pid, signal.SIGKILL)
