"""One connection of the client on asyncio: joins a transport to a ClientConnection and the futures of its calls."""

import asyncio
import threading
from typing import Any, Final, cast

from google.protobuf.message import DecodeError, Message

from yaqd.ipc.client_connection import ClientConnection
from yaqd.ipc.errors import ProtocolViolation, RemoteException, RpcConnectionError, RpcError, RpcTimeout
from yaqd.ipc.limits import ClientLimits
from yaqd.proto.protocols import Method

_READ_BYTES: Final = 64 << 10
_UNSENT_BYTES_MAX: Final = 1 << 20

_thread = threading.local()


def _read_buffer() -> memoryview:
    """Return the read buffer that all connections of this thread's event loop share: what a read brings is decoded
    before the next one."""
    buffer: memoryview | None = getattr(_thread, "read_buffer", None)
    if buffer is None:
        buffer = _thread.read_buffer = memoryview(bytearray(_READ_BYTES))
    return buffer


class ClientProtocol(asyncio.BufferedProtocol):
    """Joins one transport to one ClientConnection and the futures of its calls."""

    def __init__(
        self,
        connection: ClientConnection,
        loop: asyncio.AbstractEventLoop,
        limits: ClientLimits,
        peer: str,
    ) -> None:
        self._connection = connection
        self._loop = loop
        self._limits = limits
        self._peer = peer
        self._transport: asyncio.Transport | None = None
        self._buffer = _read_buffer()
        #: call id -> (future, response class, deadline, method name)
        self._pending: dict[int, tuple[asyncio.Future[Message], type[Message], float, str]] = {}
        self._output: list[bytes] = []
        self._flush_scheduled = False
        self._room_waiter: asyncio.Future[None] | None = None
        self._is_write_paused = False
        #: why the connection is of no use any more; None while it is
        self.lost: Exception | None = None
        self._last_read_at = self._last_used_at = self._pinged_at = loop.time()
        self._timer: asyncio.TimerHandle | None = None
        #: done when calls may be sent; carries the reason when that will never be
        self.ready: asyncio.Future[None] = loop.create_future()

    @property
    def is_usable(self) -> bool:
        return self.lost is None and self._connection.is_ready

    @property
    def has_room(self) -> bool:
        return self.lost is not None or (
            len(self._pending) < self._limits.outstanding_calls_max and not self._is_write_paused
        )

    async def room(self) -> None:
        """Wait until another call may be sent, or the connection is lost."""
        if self._room_waiter is None:
            self._room_waiter = self._loop.create_future()
        await asyncio.shield(self._room_waiter)

    def _make_room(self) -> None:
        waiter, self._room_waiter = self._room_waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def send(self, method: Method[Any, Any], request: Message, deadline: float) -> "asyncio.Future[Message]":
        """Queue a call and return the future of its response."""
        call_id, encoded = self._connection.request(method, request)
        future: asyncio.Future[Message] = self._loop.create_future()
        self._pending[call_id] = (future, method.response, deadline, method.name)
        self._output.append(encoded)
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self._loop.call_soon(self._flush)
        if self._timer is None or deadline < self._timer.when():
            self._set_timer()
        return future

    def _flush(self) -> None:
        self._flush_scheduled = False
        output, self._output = self._output, []
        if output and self.lost is None and self._transport is not None:
            self._last_used_at = self._loop.time()
            self._transport.write(output[0] if len(output) == 1 else b"".join(output))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=_UNSENT_BYTES_MAX)
        self._transport.write(self._connection.start())
        if self._connection.is_ready:
            self.ready.set_result(None)
        self._set_timer()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._last_read_at = self._loop.time()
        try:
            replies, output = self._connection.receive(self._buffer[:nbytes])
        except RemoteException as error:
            self._lose(error)
            return
        except ProtocolViolation as violation:
            self._lose(RpcConnectionError(f"{self._peer} does not speak Hadoop RPC: {violation}", sent=True))
            return
        if output and self._transport is not None:
            self._transport.write(output)
        if self._connection.is_ready and not self.ready.done():
            self.ready.set_result(None)
        for reply in replies:
            entry = self._pending.pop(reply.call_id, None)
            if entry is None or entry[0].done():
                continue
            future, response_class, _, name = entry
            if reply.error is not None:
                future.set_exception(reply.error)
                continue
            try:
                future.set_result(response_class.FromString(reply.body))
            except DecodeError as error:
                future.set_exception(RpcError(f"{name}: {self._peer} sent no {response_class.__name__}: {error}"))
        if self._room_waiter is not None and self.has_room:
            self._make_room()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: Exception | None) -> None:
        reason = f": {error}" if error is not None else " by the peer"
        self._lose(self._connection.closed(self._peer, f"closed{reason}"))

    def pause_writing(self) -> None:
        self._is_write_paused = True

    def resume_writing(self) -> None:
        self._is_write_paused = False
        self._make_room()

    def _set_timer(self) -> None:
        """Arm one timer for whatever comes first: a call's deadline, a ping, the end of an idle connection."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.lost is not None:
            return
        limits = self._limits
        silent_since = max(self._last_read_at, self._pinged_at)
        if self._pending:
            first = min(entry[2] for entry in self._pending.values())
            when = min(first, silent_since + limits.ping_interval_s)
        else:
            idle_since = max(self._last_read_at, self._last_used_at)
            # looks in at least once per ping interval: a call made meanwhile does not arm the timer for its pings
            when = min(idle_since + limits.idle_timeout_s, self._loop.time() + limits.ping_interval_s)
        self._timer = self._loop.call_at(when, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        now = self._loop.time()
        for call_id, (future, _, deadline, name) in list(self._pending.items()):
            if deadline <= now:
                del self._pending[call_id]
                if not future.done():
                    future.set_exception(RpcTimeout(f"{name}: no answer from {self._peer} in time"))
        limits = self._limits
        if self._pending:
            if now - max(self._last_read_at, self._pinged_at) >= limits.ping_interval_s and self._transport:
                self._pinged_at = now
                self._transport.write(self._connection.ping())
        elif now - max(self._last_read_at, self._last_used_at) >= limits.idle_timeout_s and self.ready.done():
            self.shut("idle")
        if self._room_waiter is not None and self.has_room:
            self._make_room()
        self._set_timer()

    def shut(self, why: str) -> None:
        self._lose(RpcConnectionError(f"connection to {self._peer} closed: {why}", sent=True))

    def _lose(self, error: Exception) -> None:
        """Fail every call under way, once, and let go of the transport."""
        if self.lost is not None:
            return
        self.lost = error
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport is not None:
            self._transport.close()
        pending, self._pending = self._pending, {}
        for future, *_ in pending.values():
            if not future.done():
                future.set_exception(error)
        if not self.ready.done():
            self.ready.set_exception(error)
            self.ready.exception()  # may have no waiter; not worth a line in the log
        self._make_room()
