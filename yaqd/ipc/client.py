"""The asynchronous client: one pipelined connection, made on the first call and again after it is lost."""

import asyncio
import os
import random as random_module
from collections.abc import Callable
from typing import Any, TypeVar, cast

from google.protobuf.message import Message

from yaqd.ipc.client_connection import ClientConnection
from yaqd.ipc.client_protocol import ClientProtocol
from yaqd.ipc.errors import RpcAuthenticationError, RpcConnectionError, RpcTimeout
from yaqd.ipc.limits import ClientLimits
from yaqd.ipc.retry import RetryPolicy
from yaqd.ipc.wire import CLIENT_ID_BYTES, RandomBytes, TokenCredential
from yaqd.proto.protocols import Method

Req = TypeVar("Req", bound=Message)
Resp = TypeVar("Resp", bound=Message)


class RpcClient:
    """Calls methods of one server as one user, or as the one that `token` names.

    A call raises RemoteException (the server's answer), RpcTimeout, RpcConnectionError, or RpcAuthenticationError.
    Connecting is retried, a refused token once; a request that may have been sent is sent again only when the caller
    says that it is idempotent.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        user: str,
        token: TokenCredential | None = None,
        real_user: str | None = None,
        timeout_s: float = 120.0,
        connect_retries: RetryPolicy = RetryPolicy(),
        limits: ClientLimits = ClientLimits(),
        random: RandomBytes = os.urandom,
        jitter: Callable[[], float] = random_module.random,
    ) -> None:
        self.host, self.port = host, port
        self._user, self._token, self._real_user = user, token, real_user
        self._timeout_s = timeout_s
        self._retries = connect_retries
        self._limits = limits
        self._random, self._jitter = random, jitter
        self._client_id = random(CLIENT_ID_BYTES)
        self._protocol: ClientProtocol | None = None
        self._connecting: asyncio.Task[ClientProtocol] | None = None
        self._is_closed = False

    def __repr__(self) -> str:
        return f"RpcClient({self.host}:{self.port})"

    async def call(
        self,
        method: Method[Req, Resp],
        request: Req,
        *,
        timeout_s: float | None = None,
        idempotent: bool = False,
    ) -> Resp:
        """Call and return the response; `timeout_s` covers connecting and waiting together."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (self._timeout_s if timeout_s is None else timeout_s)
        while True:
            protocol = self._protocol
            is_fresh = protocol is None or not protocol.is_usable
            if protocol is None or is_fresh:
                protocol = await self._connect(method, deadline)
            while not protocol.has_room:
                await self._within(protocol.room(), method, deadline)
            if protocol.lost is not None:
                if is_fresh:  # turned away at the door: trying again at once would not end
                    raise protocol.lost
                continue
            try:
                return cast(Resp, await protocol.send(method, request, deadline))
            except RpcConnectionError:
                if not idempotent or loop.time() >= deadline:
                    raise

    async def close(self) -> None:
        """Close the connection; calls under way fail with RpcConnectionError."""
        self._is_closed = True
        connecting, self._connecting = self._connecting, None
        if connecting is not None:
            connecting.cancel()
            await asyncio.gather(connecting, return_exceptions=True)
        if self._protocol is not None:
            self._protocol.shut("the client was closed")
            self._protocol = None

    async def _within(self, awaitable: Any, method: Method[Any, Any], deadline: float) -> Any:
        try:
            async with asyncio.timeout_at(deadline):
                return await awaitable
        except TimeoutError:
            raise RpcTimeout(f"{method.name}: no connection to {self.host}:{self.port} in time") from None

    async def _connect(self, method: Method[Any, Any], deadline: float) -> ClientProtocol:
        """Return a usable connection; concurrent callers share one attempt."""
        if self._is_closed:
            raise RpcConnectionError(f"the client of {self.host}:{self.port} is closed")
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._connect_with_retries(method.protocol))
            self._connecting.add_done_callback(self._connected)
        protocol: ClientProtocol = await self._within(asyncio.shield(self._connecting), method, deadline)
        return protocol

    def _connected(self, task: asyncio.Task[ClientProtocol]) -> None:
        if self._connecting is task:
            self._connecting = None
        if not task.cancelled() and task.exception() is None:
            self._protocol = task.result()

    async def _connect_with_retries(self, protocol_name: str) -> ClientProtocol:
        delays = self._retries.delays(self._jitter)
        was_refused = False
        while True:
            try:
                return await self._connect_once(protocol_name)
            except RpcAuthenticationError:
                if was_refused:  # the first time it may have been a server that was just stopping
                    raise
                was_refused = True
            except (UnicodeError, OverflowError) as error:
                raise RpcConnectionError(
                    f"cannot connect to {self.host}:{self.port}: not an address: {error}"
                ) from error
            except (RpcConnectionError, OSError, TimeoutError) as error:
                delay = next(delays, None)
                if delay is None:
                    reason = str(error) or "no answer in time"
                    raise RpcConnectionError(f"cannot connect to {self.host}:{self.port}: {reason}") from error
                await asyncio.sleep(delay)

    async def _connect_once(self, protocol_name: str) -> ClientProtocol:
        loop = asyncio.get_running_loop()
        connection = ClientConnection(
            user=self._user,
            protocol=protocol_name,
            client_id=self._client_id,
            random=self._random,
            token=self._token,
            real_user=self._real_user,
            frame_bytes_max=self._limits.response_bytes_max,
        )
        async with asyncio.timeout(self._limits.connect_timeout_s):
            _, protocol = await loop.create_connection(
                lambda: ClientProtocol(connection, loop, self._limits, f"{self.host}:{self.port}"),
                self.host,
                self.port,
            )
            try:
                await protocol.ready
            except BaseException:
                protocol.shut("connecting was given up")
                raise
        return protocol
