"""A node with the proxy for masters, a scheduler behind it, and a master that goes through it."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from nm.daemon import NodeManager
from tests.nm.nm_cluster import Master
from tests.nm.nm_proxied import FakeScheduler, ProxiedMaster, proxy_settings


@pytest.fixture
async def scheduler() -> AsyncIterator[FakeScheduler]:
    fake = FakeScheduler()
    await fake.rpc.start()
    yield fake
    await fake.rpc.stop()


@pytest.fixture
async def node(start_node: Callable[..., Any], scheduler: FakeScheduler) -> NodeManager:
    started: NodeManager = await start_node(proxy_settings(scheduler))
    scheduler.publish(started.node_id)
    return started


@pytest.fixture
async def proxied(master: Master, scheduler: FakeScheduler, tmp_path: Path) -> AsyncIterator[ProxiedMaster]:
    running = await ProxiedMaster.launch(master, scheduler, tmp_path)
    yield running
    await running.rpc.close()
