"""Servers and clients on loopback."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.ipc.ipc_pair import QUEUE, Starter, queue_response
from yaqd.ipc import (
    RpcClient,
    RpcServer,
)
from yaqd.proto.protocols import Method


@pytest.fixture
async def start() -> AsyncIterator[Starter]:
    """Start servers and clients; all are closed at the end of the test."""
    started: list[Any] = []

    async def server(handlers: dict[Method[Any, Any], Any] | None = None, **options: Any) -> RpcServer:
        instance = RpcServer(name="test", host="127.0.0.1", **options)
        for method, handler in (handlers or {QUEUE: lambda m, c: queue_response(m.queueName)}).items():
            instance.register(method, handler)
        await instance.start()
        started.append(instance.stop)
        return instance

    def client(server: RpcServer, **options: Any) -> RpcClient:
        options.setdefault("user", "alice")
        options.setdefault("timeout_s", 10.0)
        instance = RpcClient(*server.address, **options)
        started.append(instance.close)
        return instance

    server.client = client  # type: ignore[attr-defined]
    yield server
    for stop in reversed(started):
        await stop()
