"""The RPC server: many `ServerConnection`s on one event loop.

Reads go through one shared 64 KB buffer (asyncio's ordinary path allocates 256 KB per read), all frames of a read are
decoded at once, and the answers they produce leave in one write. A handler that returns a message costs no task; one
that returns an awaitable gets a task. Back-pressure is not reading: a peer that does not take its answers, or has too
many calls under way, is not read from until that changes.
"""

import asyncio
import inspect
import logging
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from google.protobuf.message import DecodeError, EncodeError, Message

from yaqd.ipc import errors
from yaqd.ipc.caller import Caller
from yaqd.ipc.limits import PeerLog, ServerLimits
from yaqd.ipc.loop import require_fast_protobuf
from yaqd.ipc.server_connection import Admission, Call, Code, ServerConnection, ServiceAcl
from yaqd.ipc.wire import RandomBytes, TokenSecrets, missing_fields, parse
from yaqd.proto import rpc_pb2 as rpc
from yaqd.proto.protocols import Method

log = logging.getLogger(__name__)

Req = TypeVar("Req", bound=Message)
Resp = TypeVar("Resp", bound=Message)
Handler = Callable[[Req, Caller], Resp | Awaitable[Resp]]

_READ_BYTES: Final = 64 << 10
_BACKLOG: Final = 4096
#: distinct encoded RequestHeaders remembered; there are as many as methods unless a peer plays games
_ROUTES_MAX: Final = 1024


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


@dataclass(frozen=True, slots=True)
class Route:
    """Where calls with one RequestHeader go."""

    method: Method[Any, Any]
    handler: Callable[[Any, Caller], Any]


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
        self.admission = Admission(token_secrets, allow_simple, service_acl, random, limits.frame_bytes_max)
        self.peer_log = PeerLog(log)
        self.read_buffer = memoryview(bytearray(_READ_BYTES))
        self.connections: dict[_ServerProtocol, None] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        self.accepted = self.refused = self.calls = self.errors = self.dropped = self.buffered_bytes = 0
        self._host, self._port = host, port
        self._methods: dict[str, dict[str, Route]] = {}
        self._routes: dict[bytes, Route] = {}
        self._server: asyncio.Server | None = None
        self._sweep: asyncio.TimerHandle | None = None

    def register(self, method: Method[Req, Resp], handler: Handler[Req, Resp]) -> None:
        """Serve a method. A synchronous handler runs inline on the event loop and must not block."""
        methods = self._methods.setdefault(method.protocol, {})
        if method.name in methods:
            raise ValueError(f"{self.name}: {method.protocol}.{method.name} is registered already")
        methods[method.name] = Route(method, handler)

    @property
    def address(self) -> tuple[str, int]:
        """The bound host and port; only after start."""
        if self._server is None:
            raise RuntimeError(f"{self.name} is not started")
        host, port = self._server.sockets[0].getsockname()[:2]
        return str(host), int(port)

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

    async def start(self) -> None:
        """Listen. Raises RpcConnectionError when the address cannot be had."""
        require_fast_protobuf()
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                lambda: _ServerProtocol(self, loop), self._host, self._port, backlog=_BACKLOG
            )
        except OSError as error:
            raise errors.RpcConnectionError(
                f"{self.name} cannot listen on {self._host}:{self._port}: {error.strerror or error}"
            ) from error
        limits = self.limits
        period_s = min(limits.handshake_timeout_s, limits.progress_timeout_s, limits.idle_timeout_s, 20.0) / 4
        self._sweep = loop.call_later(period_s, self._close_overdue, loop, period_s)

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
        for task in list(self.tasks):
            task.cancel()
        if self.tasks:
            await asyncio.gather(*self.tasks, return_exceptions=True)

    def _close_overdue(self, loop: asyncio.AbstractEventLoop, period_s: float) -> None:
        now = loop.time()
        for connection in list(self.connections):
            why = connection.overdue(now)
            if why is not None:
                connection.drop(why)
        self._sweep = loop.call_later(period_s, self._close_overdue, loop, period_s)

    def route(self, header: bytes) -> Route:
        """Return where an encoded RequestHeader leads. Raises NoSuchProtocol, NoSuchMethod, VersionMismatch,
        ServerError."""
        route = self._routes.get(header)
        if route is None:
            route = self._find_route(header)
            if len(self._routes) < _ROUTES_MAX:
                self._routes[header] = route
        return route

    def _find_route(self, header: bytes) -> Route:
        try:
            request = parse(rpc.RequestHeader, header)
        except errors.ProtocolViolation as violation:
            raise errors.ServerError(str(violation)) from None
        protocol, name = request.declaringClassProtocolName[:200], request.methodName[:200]
        methods = self._methods.get(protocol)
        if methods is None:
            raise errors.NoSuchProtocol(f"Unknown protocol: {protocol}")
        route = methods.get(name)
        if route is None:
            raise errors.NoSuchMethod(f"Unknown method {name} called on {protocol} protocol.")
        if request.clientProtocolVersion != route.method.version:
            raise errors.VersionMismatch(
                f"Protocol {protocol} version mismatch. (client = {request.clientProtocolVersion}, "
                f"server = {route.method.version})"
            )
        return route


_ROUTE_CODES: Final[dict[type[errors.RemoteException], Code.RpcErrorCode]] = {
    errors.NoSuchProtocol: Code.ERROR_NO_SUCH_PROTOCOL,
    errors.NoSuchMethod: Code.ERROR_NO_SUCH_METHOD,
    errors.VersionMismatch: Code.ERROR_RPC_VERSION_MISMATCH,
    errors.ServerError: Code.ERROR_RPC_SERVER,
}


class _ServerProtocol(asyncio.BufferedProtocol):
    """Joins one transport to one ServerConnection."""

    def __init__(self, server: RpcServer, loop: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._connection: ServerConnection | None = None
        self._peer = ("?", 0)
        #: awaited handlers under way
        self._outstanding = 0
        self._write_paused_since: float | None = None
        self._is_reading = True
        self._flush_scheduled = False
        self._counted_bytes = 0
        self._connected_at = self._last_read_at = loop.time()
        #: when the frame that is now incomplete began
        self._incomplete_since: float | None = None

    # -- transport callbacks ------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        server = self._server
        name = transport.get_extra_info("peername")
        if name:
            self._peer = (str(name[0]), int(name[1]))
        if len(server.connections) >= server.limits.connections_max:
            server.refused += 1
            server.peer_log.warn(
                self._peer[0], self._loop.time(), "%s: refused %s:%d: too many connections", server.name, *self._peer
            )
            self._transport.abort()
            return
        server.accepted += 1
        server.connections[self] = None
        self._transport.set_write_buffer_limits(high=server.limits.unsent_bytes_max)
        self._connection = ServerConnection(server.admission, self._peer)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._server.read_buffer

    def buffer_updated(self, nbytes: int) -> None:
        connection = self._connection
        if connection is None:
            return
        self._last_read_at = self._loop.time()
        connection.feed(self._server.read_buffer[:nbytes])
        self._take_calls()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: Exception | None) -> None:
        server = self._server
        server.connections.pop(self, None)
        server.buffered_bytes -= self._counted_bytes
        self._counted_bytes = 0
        self._connection = None

    def pause_writing(self) -> None:
        self._write_paused_since = self._loop.time()
        self._set_reading()

    def resume_writing(self) -> None:
        self._write_paused_since = None
        if self._connection is not None:
            self._take_calls()

    # -- calls --------------------------------------------------------------------------------------------------

    def _is_blocked(self) -> bool:
        return self._write_paused_since is not None or self._outstanding >= self._server.limits.outstanding_calls_max

    def _take_calls(self) -> None:
        """Dispatch every call that is there, as far as back-pressure allows, and send what they answered."""
        connection = self._connection
        assert connection is not None
        unsent = 0
        while not self._is_blocked():
            call = connection.next_call()
            if call is None:
                break
            unsent += self._dispatch(connection, call)
            if unsent > _READ_BYTES:
                self._flush()
                unsent = 0
        self._flush()
        if connection.is_closed:
            self.drop(connection.failure or "closed")
            return
        self._account(connection)
        self._set_reading()

    def _account(self, connection: ServerConnection) -> None:
        """Keep the server's sum of buffered bytes and the start of an incomplete frame."""
        pending = connection.pending_bytes
        if pending == 0 or self._is_blocked():
            self._incomplete_since = None
        elif self._incomplete_since is None or pending < self._counted_bytes:
            self._incomplete_since = self._last_read_at
        server = self._server
        server.buffered_bytes += pending - self._counted_bytes
        self._counted_bytes = pending
        if server.buffered_bytes > server.limits.buffered_bytes_max:
            self.drop(f"the server holds {server.buffered_bytes} bytes of incomplete frames")

    def _set_reading(self) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        wanted = not self._is_blocked()
        if wanted != self._is_reading:
            self._is_reading = wanted
            if wanted:
                transport.resume_reading()
            else:
                transport.pause_reading()

    def _dispatch(self, connection: ServerConnection, call: Call) -> int:
        """Run one call; return the bytes of its answer, 0 when that comes later."""
        server = self._server
        server.calls += 1
        try:
            route = server.route(call.header)
        except errors.RemoteException as error:
            return self._fail(connection, call, error, _ROUTE_CODES[type(error)])
        try:
            request = route.method.request.FromString(call.body)
            if not request.IsInitialized():
                raise DecodeError(missing_fields(request))
        except DecodeError as error:
            message = f"{route.method.name}: request is not a {route.method.request.__name__}: {error}"
            return self._fail(connection, call, errors.ServerError(message), Code.ERROR_RPC_SERVER)
        assert connection.caller is not None
        try:
            result = route.handler(request, connection.caller)
        except Exception as error:
            return self._fail_handler(connection, call, route, error)
        if isinstance(result, Message):
            return self._succeed(connection, call, route, result)
        if inspect.isawaitable(result):
            self._outstanding += 1
            task = self._loop.create_task(self._finish(connection, call, route, result))
            server.tasks.add(task)
            task.add_done_callback(server.tasks.discard)
            return 0
        wrong = TypeError(f"handler returned {type(result).__name__}, not {route.method.response.__name__}")
        return self._fail_handler(connection, call, route, wrong)

    async def _finish(self, connection: ServerConnection, call: Call, route: Route, result: Awaitable[Message]) -> None:
        try:
            response = await result
            self._succeed(connection, call, route, response)
        except Exception as error:
            self._fail_handler(connection, call, route, error)
        finally:
            self._outstanding -= 1
            if self._connection is not None and not self._flush_scheduled:
                self._flush_scheduled = True
                self._loop.call_soon(self._flush_later)

    def _flush_later(self) -> None:
        self._flush_scheduled = False
        if self._connection is not None:
            self._take_calls()

    def _succeed(self, connection: ServerConnection, call: Call, route: Route, response: Message) -> int:
        try:
            body = response.SerializeToString()
        except EncodeError as error:
            log.error("%s: %s: response incomplete: %s", self._server.name, route.method.name, error)
            failure = errors.RemoteFailure(f"{route.method.name}: the server made an incomplete response")
            return self._fail(connection, call, failure, Code.ERROR_SERIALIZING_RESPONSE)
        connection.succeed(call, body)
        return len(body)

    def _fail(
        self, connection: ServerConnection, call: Call, error: errors.RemoteException, detail: Code.RpcErrorCode
    ) -> int:
        self._server.errors += 1
        connection.fail(call, error, detail)
        return len(error.message)

    def _fail_handler(self, connection: ServerConnection, call: Call, route: Route, error: Exception) -> int:
        """Answer with what the handler raised: meant for the peer, or a fault of ours."""
        if not isinstance(error, errors.RemoteException):
            log.error("%s: %s failed", self._server.name, route.method.name, exc_info=error)
            error = errors.RemoteFailure(f"{route.method.name}: internal error, see the server's log")
        return self._fail(connection, call, error, Code.ERROR_APPLICATION)

    def _flush(self) -> None:
        connection, transport = self._connection, self._transport
        if connection is None or transport is None:
            return
        output = connection.take_output()
        if output and not transport.is_closing():
            transport.write(output[0] if len(output) == 1 else b"".join(output))

    # -- ending -------------------------------------------------------------------------------------------------

    def overdue(self, now: float) -> str | None:
        """Return which deadline the peer has missed, if any."""
        limits = self._server.limits
        if self._write_paused_since is not None:
            if now - self._write_paused_since > limits.progress_timeout_s:
                return f"answers not taken for {limits.progress_timeout_s:g} s"
            return None
        if self._connection is not None and self._connection.caller is None:
            if now - self._connected_at > limits.handshake_timeout_s:
                return f"no connection context within {limits.handshake_timeout_s:g} s"
        elif self._incomplete_since is not None:
            if now - self._incomplete_since > limits.progress_timeout_s:
                return f"frame not completed within {limits.progress_timeout_s:g} s"
        elif self._outstanding == 0 and now - self._last_read_at > limits.idle_timeout_s:
            self.close()
        return None

    def drop(self, why: str) -> None:
        """End the connection because of what the peer did; what is queued (a FATAL answer) still goes out."""
        server = self._server
        server.dropped += 1
        server.peer_log.warn(self._peer[0], self._loop.time(), "%s: dropped %s:%d: %s", server.name, *self._peer, why)
        if self._write_paused_since is not None and self._transport is not None:
            self._transport.abort()
        else:
            self.close()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
