"""The synchronous client, for task processes and the command line: a plain socket, no event loop, no threads.

Calls are one at a time (a lock makes sharing between threads safe). Importing and connecting are cheap.
"""

import os
import random as random_module
import socket
import threading
import time
from collections.abc import Callable
from typing import Final, Self, TypeVar

from google.protobuf.message import DecodeError, Message

from yaqd.ipc.client_connection import ClientConnection, Reply
from yaqd.ipc.errors import (
    ProtocolViolation,
    RemoteException,
    RpcAuthenticationError,
    RpcConnectionError,
    RpcError,
    RpcTimeout,
)
from yaqd.ipc.limits import ClientLimits
from yaqd.ipc.retry import RetryPolicy
from yaqd.ipc.wire import CLIENT_ID_BYTES, RandomBytes, TokenCredential
from yaqd.proto.protocols import Method

Req = TypeVar("Req", bound=Message)
Resp = TypeVar("Resp", bound=Message)

_READ_BYTES: Final = 64 << 10


class BlockingRpcClient:
    """Calls methods of one server, as RpcClient does, and waits for each answer."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        user: str,
        token: TokenCredential | None = None,
        timeout_s: float = 120.0,
        connect_retries: RetryPolicy = RetryPolicy(),
        limits: ClientLimits = ClientLimits(),
        random: RandomBytes = os.urandom,
        jitter: Callable[[], float] = random_module.random,
    ) -> None:
        self.host, self.port = host, port
        self._user, self._token = user, token
        self._timeout_s = timeout_s
        self._retries = connect_retries
        self._limits = limits
        self._random, self._jitter = random, jitter
        self._client_id = random(CLIENT_ID_BYTES)
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._connection: ClientConnection | None = None
        self._last_used_at = 0.0

    def __repr__(self) -> str:
        return f"BlockingRpcClient({self.host}:{self.port})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(
        self,
        method: Method[Req, Resp],
        request: Req,
        *,
        timeout_s: float | None = None,
        idempotent: bool = False,
    ) -> Resp:
        """Call and return the response. Raises RemoteException, RpcTimeout, RpcConnectionError."""
        deadline = time.monotonic() + (self._timeout_s if timeout_s is None else timeout_s)
        with self._lock:
            while True:
                self._ensure_connected(method, deadline)
                try:
                    body = self._exchange(method, request, deadline)
                    break
                except RpcConnectionError:
                    self._disconnect()
                    if not idempotent or time.monotonic() >= deadline:
                        raise
                except RpcError:
                    self._disconnect()
                    raise
        try:
            return method.response.FromString(body)
        except DecodeError as error:
            raise RpcError(f"{method.name}: {self._peer} sent no {method.response.__name__}: {error}") from None

    def close(self) -> None:
        with self._lock:
            self._disconnect()

    @property
    def _peer(self) -> str:
        return f"{self.host}:{self.port}"

    def _exchange(self, method: Method[Req, Resp], request: Req, deadline: float) -> bytes:
        assert self._connection is not None
        call_id, encoded = self._connection.request(method, request)
        self._send(encoded, method.name, deadline)
        while True:
            for reply in self._receive(method.name, deadline):
                if reply.call_id != call_id:
                    continue  # answer to a call that timed out earlier
                self._last_used_at = time.monotonic()
                if reply.error is not None:
                    raise reply.error
                return reply.body

    def _send(self, data: bytes, what: str, deadline: float) -> None:
        assert self._socket is not None
        self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
        try:
            self._socket.sendall(data)
        except TimeoutError:
            raise RpcTimeout(f"{what}: {self._peer} does not take the request") from None
        except OSError as error:
            raise RpcConnectionError(f"connection to {self._peer} lost: {error}", sent=True) from error

    def _receive(self, what: str, deadline: float) -> list[Reply]:
        assert self._socket is not None and self._connection is not None
        self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
        try:
            received = self._socket.recv(_READ_BYTES)
        except TimeoutError:
            raise RpcTimeout(f"{what}: no answer from {self._peer} in time") from None
        except OSError as error:
            raise self._connection.closed(self._peer, f"lost: {error}") from error
        if not received:
            raise self._connection.closed(self._peer, "closed by the peer")
        try:
            replies, output = self._connection.receive(received)
        except ProtocolViolation as violation:
            raise RpcConnectionError(f"{self._peer} does not speak Hadoop RPC: {violation}", sent=True) from None
        except RemoteException:
            self._disconnect()
            raise
        if output:
            self._send(output, what, deadline)
        return replies

    def _ensure_connected(self, method: Method[Req, Resp], deadline: float) -> None:
        if self._socket is not None:
            if time.monotonic() - self._last_used_at < self._limits.idle_timeout_s and not self._is_closed_by_peer():
                return
            self._disconnect()
        delays = self._retries.delays(self._jitter)
        was_refused = False
        while True:
            try:
                self._connect_once(method, deadline)
                return
            except RpcAuthenticationError:
                self._disconnect()
                if was_refused:  # the first time it may have been a server that was just stopping
                    raise
                was_refused = True
            except (UnicodeError, OverflowError) as error:
                raise RpcConnectionError(f"cannot connect to {self._peer}: not an address: {error}") from error
            except (RpcConnectionError, OSError) as error:
                self._disconnect()
                delay = next(delays, None)
                if delay is None or time.monotonic() + delay >= deadline:
                    raise RpcConnectionError(f"cannot connect to {self._peer}: {error}") from error
                time.sleep(delay)
            except RpcError:
                self._disconnect()
                raise

    def _is_closed_by_peer(self) -> bool:
        """Whether an end of file is waiting: a server that was stopped or tired of an idle connection."""
        assert self._socket is not None
        self._socket.setblocking(False)
        try:
            return self._socket.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def _connect_once(self, method: Method[Req, Resp], deadline: float) -> None:
        timeout_s = max(min(self._limits.connect_timeout_s, deadline - time.monotonic()), 0.001)
        self._socket = socket.create_connection((self.host, self.port), timeout=timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection = ClientConnection(
            user=self._user,
            protocol=method.protocol,
            client_id=self._client_id,
            random=self._random,
            token=self._token,
            frame_bytes_max=self._limits.response_bytes_max,
        )
        self._send(self._connection.start(), method.name, deadline)
        while not self._connection.is_ready:
            self._receive(method.name, deadline)
        self._last_used_at = time.monotonic()

    def _disconnect(self) -> None:
        connection, self._socket, self._connection = self._socket, None, None
        if connection is not None:
            connection.close()
