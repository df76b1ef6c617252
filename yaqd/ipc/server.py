"""The RPC server: many connections on one event loop.

Reads go through one shared 64 KB buffer (asyncio's ordinary path allocates 256 KB per read). All frames of a read are
decoded at once, and the answers they produce leave in one write. A handler that returns a message costs no task; one
that returns an awaitable gets a task.
"""

import asyncio
import logging
import os
import socket
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from google.protobuf.message import Message

from yaqd.ipc import errors
from yaqd.ipc.limits import PeerLog, ServerLimits, affordable_connections
from yaqd.ipc.loop import Turns, require_fast_protobuf
from yaqd.ipc.routes import Handler, Routes
from yaqd.ipc.server_connection import Admission, ServiceAcl
from yaqd.ipc.server_protocol import ServerProtocol
from yaqd.ipc.tasks import TaskSet
from yaqd.ipc.wire import RandomBytes, TokenSecrets
from yaqd.proto.protocols import Method

log = logging.getLogger(__name__)

Req = TypeVar("Req", bound=Message)
Resp = TypeVar("Resp", bound=Message)

_READ_BYTES: Final = 64 << 10
_BACKLOG: Final = 4096


@dataclass(frozen=True, slots=True)
class ServerStatistics:
    connections: int
    accepted: int
    #: closed at once because of connections_max
    refused: int
    calls: int
    #: calls answered with an error
    errors: int
    #: connections ended by us because the peer broke the protocol, was not admitted or was too slow
    dropped: int
    buffered_bytes: int


class RpcServer:
    """Serves registered methods under one address.

    With `token_secrets` peers may (and with `allow_simple=False` must) prove a token. `service_acl(caller, protocol)`
    raises Authorization to turn a peer away. `host` "0.0.0.0" listens everywhere, `port` 0 takes a free port.
    """

    def __init__(
        self,
        *,
        name: str,
        host: str,
        port: int = 0,
        token_secrets: TokenSecrets | None = None,
        allow_simple: bool = True,
        limits: ServerLimits = ServerLimits(),
        service_acl: ServiceAcl | None = None,
        random: RandomBytes = os.urandom,
    ) -> None:
        self.name = name
        self.limits = limits
        self.connections_max = affordable_connections(limits.connections_max)
        self.admission = Admission(token_secrets, allow_simple, service_acl, random, limits.frame_bytes_max)
        self.routes = Routes()
        self.peer_log = PeerLog(log)
        self.read_buffer = memoryview(bytearray(_READ_BYTES))
        self.connections: dict[ServerProtocol, None] = {}
        self.tasks = TaskSet()
        self.turns: Turns
        self.accepted = self.refused = self.calls = self.errors = self.dropped = self.buffered_bytes = 0
        self._host, self._port = host, port
        self._address: tuple[str, int] | None = None
        self._server: asyncio.Server | None = None
        self._sweep: asyncio.TimerHandle | None = None

    def register(self, method: Method[Req, Resp], handler: Handler[Req, Resp]) -> None:
        """Serve a method. A synchronous handler runs inline on the event loop and must not block."""
        self.routes.add(method, handler)

    @property
    def address(self) -> tuple[str, int]:
        """The bound host and port; only after start."""
        if self._address is None:
            raise RuntimeError(f"{self.name} is not started")
        return self._address

    @property
    def port(self) -> int:
        return self.address[1]

    def statistics(self) -> ServerStatistics:
        return ServerStatistics(
            connections=len(self.connections),
            accepted=self.accepted,
            refused=self.refused,
            calls=self.calls,
            errors=self.errors,
            dropped=self.dropped,
            buffered_bytes=self.buffered_bytes,
        )

    async def start(self, *, serves: bool = True) -> None:
        """Listen. `serves` False: who calls waits for `serve`. Raises RpcConnectionError when the address cannot be
        had."""
        require_fast_protobuf()
        loop = asyncio.get_running_loop()
        self.turns = Turns(loop)
        make = partial(loop.create_server, lambda: ServerProtocol(self, loop), backlog=_BACKLOG)
        try:
            if serves:
                self._server = await make(self._host, self._port)
            else:
                family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
                listener = socket.create_server((self._host, self._port), family=family, backlog=_BACKLOG)
                self._server = await make(sock=listener, start_serving=False)
        except OSError as error:
            # asyncio's own words name the address once more; a name that nobody knows has no errno of the system's
            number = error.errno or 0
            reason = os.strerror(number) if number > 0 else error.strerror or error
            raise errors.RpcConnectionError(
                f"{self.name} cannot listen on {self._host}:{self._port}: {reason}"
            ) from error
        host, port = self._server.sockets[0].getsockname()[:2]
        self._address = (str(host), int(port))
        limits = self.limits
        period_s = min(limits.handshake_timeout_s, limits.progress_timeout_s, limits.idle_timeout_s, 20.0) / 4
        self._sweep = loop.call_later(period_s, self._close_overdue, loop, period_s)

    async def serve(self) -> None:
        """Answer those who call and have called, if that is not done yet."""
        if self._server is not None:
            await self._server.start_serving()

    async def stop(self) -> None:
        """Stop listening, close every connection, cancel what still runs. Safe to call twice."""
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        server = self._server
        if server is not None:
            server.close()
        for connection in list(self.connections):
            connection.close()
        await self.tasks.end()

    def _close_overdue(self, loop: asyncio.AbstractEventLoop, period_s: float) -> None:
        now = loop.time()
        for connection in list(self.connections):
            connection.check_deadlines(now)
        self._sweep = loop.call_later(period_s, self._close_overdue, loop, period_s)
