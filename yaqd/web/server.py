"""The HTTP server under every daemon's pages: aiohttp's, with the bounds that it leaves open.

aiohttp bounds the size of a request's head and body, but it accepts any number of connections. It waits for ever for
the first request on one, and for ever for a peer that takes no more of an answer. So each connection is wrapped here:
its number is bounded, and one sweep ends those that make no progress.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, cast

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler, Middleware

_BACKLOG: Final = 256
_LINGER_S: Final = 2.0
_QUIET_S: Final = 60.0
_PEERS_REMEMBERED_MAX: Final = 1000

#: What browsers are told about every answer: contents are what they say they are, and stay out of others' frames.
_HEADERS: Final = {"X-Content-Type-Options": "nosniff", "X-Frame-Options": "SAMEORIGIN"}


@dataclass(frozen=True, slots=True)
class HttpLimits:
    connections_max: int = 1000
    #: how long a connection may have neither a complete request nor an answer under way
    idle_timeout_s: float = 60.0
    #: how long a peer may take nothing of an answer
    progress_timeout_s: float = 60.0
    #: of a request, as far as handlers read it
    body_bytes_max: int = 1 << 20
    #: how long requests may go on when the server stops
    stop_timeout_s: float = 0.5


class HttpServer:
    """Serves what `routes` adds under one address; port 0 takes a free one."""

    def __init__(
        self,
        routes: Callable[[web.UrlDispatcher], None],
        limits: HttpLimits = HttpLimits(),
        *,
        middlewares: Sequence[Middleware] = (),
    ) -> None:
        self.limits = limits
        self.connections: dict[asyncio.BaseTransport, _Connection] = {}
        #: closed at once because of connections_max
        self.refused = 0
        self._application = web.Application(
            client_max_size=limits.body_bytes_max, middlewares=[self._mark, *middlewares]
        )
        self._application.on_response_prepare.append(_add_headers)
        routes(self._application.router)
        _serve_slashes(self._application.router)
        self._runner: web.AppRunner | None = None
        self._server: asyncio.Server | None = None
        self._sweep: asyncio.TimerHandle | None = None

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Return the bound address. Raises OSError."""
        limits = self.limits
        runner = web.AppRunner(
            self._application,
            access_log=None,
            logger=_request_log(),
            keepalive_timeout=limits.idle_timeout_s,
            lingering_time=_LINGER_S,
            shutdown_timeout=limits.stop_timeout_s,
        )
        await runner.setup()
        self._runner = runner
        serve = runner.server
        assert serve is not None
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self, serve()), host, port, backlog=_BACKLOG)
        self._schedule_sweep(loop)
        bound: tuple[str, int] = self._server.sockets[0].getsockname()[:2]
        return bound

    async def stop(self) -> None:
        """Stop listening and close every connection. Safe to call twice."""
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        if self._server is not None:
            self._server.close()
            self._server = None
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        for transport in list(self.connections):
            self.connections[transport].abort()

    @web.middleware
    async def _mark(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Tell the sweep which connections have a request that is being answered."""
        connection = None if request.transport is None else self.connections.get(request.transport)
        if connection is None:
            return await handler(request)
        connection.is_answering = True
        try:
            return await handler(request)
        finally:
            connection.is_answering = False
            connection.idle_since = asyncio.get_running_loop().time()

    def _schedule_sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        period_s = min(self.limits.idle_timeout_s, self.limits.progress_timeout_s, 20.0) / 4
        self._sweep = loop.call_later(period_s, self._end_idle, loop)

    def _end_idle(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for connection in list(self.connections.values()):
            connection.check(now)
        self._schedule_sweep(loop)


def _serve_slashes(router: web.UrlDispatcher) -> None:
    """REST paths may end in a slash, as in Hadoop."""
    resources = list(router.resources())
    served = {resource.canonical for resource in resources}
    for resource in resources:
        path = f"{resource.canonical.rstrip('/')}/"
        if path.startswith("/ws/") and path not in served:
            for route in resource:
                router.add_route(route.method, path, route.handler)


class _Connection(asyncio.Protocol):
    """Hands everything on to aiohttp's own protocol and keeps the times that the sweep looks at."""

    def __init__(self, server: HttpServer, inner: asyncio.Protocol) -> None:
        self._server = server
        self._inner = inner
        self._transport: asyncio.Transport | None = None
        self._unsent_bytes = 0
        self._unsent_since = 0.0
        self.is_answering = False
        self.idle_since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's are transports in all but class
        accepted = cast(asyncio.Transport, transport)
        server = self._server
        if len(server.connections) >= server.limits.connections_max:
            server.refused += 1
            accepted.abort()
            return
        self._transport = accepted
        self.idle_since = asyncio.get_running_loop().time()
        server.connections[transport] = self
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._transport is not None:
            self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received() if self._transport is not None else None

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def connection_lost(self, reason: Exception | None) -> None:
        if self._transport is not None:
            del self._server.connections[self._transport]
            self._inner.connection_lost(reason)

    def check(self, now: float) -> None:
        """End the connection if it has been idle, or its peer has taken nothing, for too long."""
        transport, limits = self._transport, self._server.limits
        assert transport is not None
        unsent = transport.get_write_buffer_size()
        if unsent == 0 or unsent != self._unsent_bytes:
            self._unsent_bytes, self._unsent_since = unsent, now
        is_stuck = unsent > 0 and now - self._unsent_since > limits.progress_timeout_s
        is_idle = unsent == 0 and not self.is_answering and now - self.idle_since > limits.idle_timeout_s
        if is_stuck or is_idle:
            self.abort()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class _OneLinePerPeer(logging.Filter):
    """One record per peer and minute of each kind: faults of ours, with their trace; and, as a line without one, what
    is no HTTP and who leaves amid an answer.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        self._told: dict[tuple[str, bool], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            return True
        is_fault = not isinstance(error, HttpProcessingError | ConnectionError)
        peer, now = (str(record.args), is_fault), self._now()
        if now - self._told.get(peer, -_QUIET_S) < _QUIET_S:
            return False
        if len(self._told) >= _PEERS_REMEMBERED_MAX:
            self._told.clear()
        self._told[peer] = now
        if is_fault:
            return True
        record.msg += ": " + " ".join(str(error).split())[:200].replace("%", "%%")
        record.exc_info, record.exc_text = None, None
        record.levelno, record.levelname = logging.WARNING, "WARNING"
        return True


@lru_cache(maxsize=1)
def _request_log() -> logging.Logger:
    requests = logging.getLogger(f"{__name__}.requests")
    requests.addFilter(_OneLinePerPeer())
    return requests


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
