"""Hadoop RPC version 9: state machines without I/O, an asyncio server and client and a blocking client on top.

The asyncio ends are imported when first asked for, so that a task process or the command line does not pay for them.
"""

from typing import TYPE_CHECKING, Any

from yaqd.ipc.blocking import BlockingRpcClient
from yaqd.ipc.caller import Caller
from yaqd.ipc.errors import (
    ProtocolViolation,
    RemoteException,
    RpcAuthenticationError,
    RpcConnectionError,
    RpcError,
    RpcTimeout,
)
from yaqd.ipc.limits import ClientLimits, ServerLimits
from yaqd.ipc.retry import NO_RETRY, RetryPolicy
from yaqd.ipc.wire import TokenSecrets

if TYPE_CHECKING:
    from yaqd.ipc.client import RpcClient
    from yaqd.ipc.server import RpcServer, ServerStatistics
    from yaqd.ipc.settings import ClientOptions, client_options, server_limits

__all__ = [
    "NO_RETRY",
    "BlockingRpcClient",
    "Caller",
    "ClientLimits",
    "ClientOptions",
    "ProtocolViolation",
    "RemoteException",
    "RetryPolicy",
    "RpcAuthenticationError",
    "RpcClient",
    "RpcConnectionError",
    "RpcError",
    "RpcServer",
    "RpcTimeout",
    "ServerLimits",
    "ServerStatistics",
    "TokenSecrets",
    "client_options",
    "server_limits",
]

_LAZY = {
    "RpcClient": "yaqd.ipc.client",
    "RpcServer": "yaqd.ipc.server",
    "ServerStatistics": "yaqd.ipc.server",
    "ClientOptions": "yaqd.ipc.settings",
    "client_options": "yaqd.ipc.settings",
    "server_limits": "yaqd.ipc.settings",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LAZY[name]), name)
