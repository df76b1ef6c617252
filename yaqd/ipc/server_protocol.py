"""One connection of the server on asyncio: joins a transport to a ServerConnection and its calls to handlers.

Back-pressure is not reading: a peer that does not take its answers, has too many calls under way, or waits while others
are answered, is not read from until that changes.
"""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol, cast

from google.protobuf.message import DecodeError, EncodeError, Message

from yaqd.ipc import errors
from yaqd.ipc.caller import Caller
from yaqd.ipc.later import NotYetKnown, again
from yaqd.ipc.limits import PeerLog, ServerLimits
from yaqd.ipc.loop import Turns
from yaqd.ipc.routes import ERROR_CODES, Route, Routes
from yaqd.ipc.server_connection import Admission, Call, Code, ServerConnection
from yaqd.ipc.tasks import TaskSet
from yaqd.ipc.wire import missing_fields

log = logging.getLogger(__name__)


class Serving(Protocol):
    """What the connections of one server share."""

    name: str
    limits: ServerLimits
    connections_max: int
    admission: Admission
    routes: Routes
    peer_log: PeerLog
    #: what was read last, of whichever connection
    read_buffer: memoryview
    connections: dict["ServerProtocol", None]
    #: handlers under way
    tasks: TaskSet
    turns: Turns
    accepted: int
    refused: int
    calls: int
    errors: int
    dropped: int
    #: of incomplete frames, over all connections
    buffered_bytes: int


class ServerProtocol(asyncio.BufferedProtocol):
    """Joins one transport to one ServerConnection."""

    def __init__(self, server: Serving, loop: asyncio.AbstractEventLoop) -> None:
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
        #: other connections come first
        self._waits_for_turn = False
        #: until it is known whether the peer is admitted
        self._is_waiting = False
        self._counted_bytes = 0
        self._connected_at = self.last_read_at = loop.time()
        #: when the frame that is now incomplete began
        self._incomplete_since: float | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        server = self._server
        name = transport.get_extra_info("peername")
        if name:
            self._peer = (str(name[0]), int(name[1]))
        if len(server.connections) >= server.connections_max:
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
        self.last_read_at = self._loop.time()
        connection.feed(self._server.read_buffer[:nbytes])
        if self._server.turns.take(self._take_turn):
            self._take_calls()
        else:
            self._waits_for_turn = True
            self._account(connection, has_progress=False)
            self._set_reading()

    def _take_turn(self) -> None:
        self._waits_for_turn = False
        transport = self._transport
        if self._connection is None or transport is None or transport.is_closing():
            return
        try:
            self._take_calls()
        except Exception:
            transport.abort()  # it would not be read from again
            raise

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: Exception | None) -> None:
        server = self._server
        server.connections.pop(self, None)
        self._release_bytes()
        self._connection = None

    def pause_writing(self) -> None:
        self._write_paused_since = self._loop.time()
        self._set_reading()

    def resume_writing(self) -> None:
        self._write_paused_since = None
        if self._connection is not None:
            self._take_calls()

    def _is_blocked(self) -> bool:
        if self._waits_for_turn or (self._connection is not None and self._connection.waits_for is not None):
            return True
        return self._write_paused_since is not None or self._outstanding >= self._server.limits.outstanding_calls_max

    def _take_calls(self) -> None:
        """Dispatch every call that is there, as far as back-pressure allows, and send what they answered."""
        connection = self._connection
        assert connection is not None
        unsent = 0
        has_progress = False
        while not self._is_blocked():
            call = connection.next_call()
            if call is None:
                break
            has_progress = True
            unsent += self._dispatch(connection, call)
            if unsent > len(self._server.read_buffer):
                self._flush()
                unsent = 0
        self._flush()
        if connection.is_closed:
            self.drop(connection.failure or "closed")
            return
        if connection.waits_for is not None and not self._is_waiting:
            self._is_waiting = True
            self._server.tasks.start(self._admit_later(connection, connection.waits_for))
        self._account(connection, has_progress=has_progress)
        self._set_reading()

    async def _admit_later(self, connection: ServerConnection, missing: NotYetKnown) -> None:
        """Go on with a peer once what decides about it is known; its deadline for being admitted holds meanwhile."""
        try:
            await missing.ready()
        except Exception:
            log.exception("%s: %s", self._server.name, missing)
            self.close()
            return
        self._is_waiting = False
        connection.waits_for = None
        if self._connection is not None:
            self._take_calls()

    def _account(self, connection: ServerConnection, *, has_progress: bool) -> None:
        """Keep the server's sum of buffered bytes and the start of an incomplete frame."""
        pending = connection.pending_bytes
        if self._waits_for_turn:
            pass  # whether its frame is complete is seen then
        elif pending == 0 or self._is_blocked():
            self._incomplete_since = None
        elif self._incomplete_since is None or has_progress:
            self._incomplete_since = self.last_read_at
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
            route = server.routes.find(call.header)
        except errors.RemoteException as error:
            return self._fail(connection, call, error, ERROR_CODES[type(error)])
        try:
            request = route.method.request.FromString(call.body)
            if not request.IsInitialized():
                raise DecodeError(missing_fields(request))
        except DecodeError as error:
            message = f"{route.method.name}: request is not a {route.method.request.__name__}: {error}"
            return self._fail(connection, call, errors.ServerError(message), Code.ERROR_RPC_SERVER)
        caller = connection.caller
        assert caller is not None
        result: object
        try:
            result = route.handler(request, caller)
        except NotYetKnown as missing:
            result = again(partial(_handle, route, request, caller), missing)
        except Exception as error:
            return self._fail_handler(connection, call, route, error)
        if isinstance(result, Message):
            return self._succeed(connection, call, route, result)
        if inspect.isawaitable(result):
            self._outstanding += 1
            self._server.tasks.start(
                self._finish(connection, call, route, result, partial(_handle, route, request, caller))
            )
            return 0
        wrong = TypeError(f"handler returned {type(result).__name__}, not {route.method.response.__name__}")
        return self._fail_handler(connection, call, route, wrong)

    async def _finish(
        self,
        connection: ServerConnection,
        call: Call,
        route: Route,
        result: Awaitable[Message],
        handle: Callable[[], Awaitable[Message]],
    ) -> None:
        """`handle` calls the handler once more."""
        try:
            try:
                response = await result
            except NotYetKnown as missing:
                response = await again(handle, missing)
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

    def check_deadlines(self, now: float) -> None:
        """End the connection when its peer has missed a deadline."""
        limits = self._server.limits
        if self._transport is not None and self._transport.is_closing():
            self._transport.abort()  # closed a while ago, and the peer still has not taken the rest
        elif self._waits_for_turn:
            pass  # others are answered: that is nothing of this peer's
        elif self._write_paused_since is not None:
            if now - self._write_paused_since > limits.progress_timeout_s:
                self.drop(f"answers not taken for {limits.progress_timeout_s:g} s")
        elif self._connection is None or self._connection.caller is None:
            if now - self._connected_at > limits.handshake_timeout_s:
                self.drop(f"no connection context within {limits.handshake_timeout_s:g} s")
        elif self._incomplete_since is not None:
            if now - self._incomplete_since > limits.progress_timeout_s:
                self.drop(f"frame not completed within {limits.progress_timeout_s:g} s")
        elif self._outstanding == 0 and now - self.last_read_at > limits.idle_timeout_s:
            self.close()

    def drop(self, why: str) -> None:
        """End the connection because of what the peer did; what is queued (a FATAL answer) still goes out."""
        server = self._server
        server.dropped += 1
        server.peer_log.warn(self._peer[0], self._loop.time(), "%s: dropped %s:%d: %s", server.name, *self._peer, why)
        self.close()

    def close(self) -> None:
        """Close once everything queued is sent, at once when the peer does not take it."""
        if self._transport is None:
            return
        self._release_bytes()  # now, not when the loop gets to it: others must not be dropped for these bytes
        if self._write_paused_since is not None:
            self._transport.abort()
        else:
            self._transport.close()

    def _release_bytes(self) -> None:
        self._server.buffered_bytes -= self._counted_bytes
        self._counted_bytes = 0


async def _handle(route: Route, request: Message, caller: Caller) -> Message:
    result = route.handler(request, caller)
    return cast(Message, await result if inspect.isawaitable(result) else result)
