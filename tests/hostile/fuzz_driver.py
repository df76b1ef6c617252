"""Plays scripts to a port over many connections and holds the server to hanging up in the end."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import cast

from tests.hostile.fuzz_mutations import Script
from yaqd.ipc.client_connection import ClientConnection
from yaqd.ipc.errors import RemoteException, RpcError
from yaqd.security import Token

CLOSE_TIMEOUT_S = 15.0
_CONCURRENCY = 24


@dataclass(frozen=True, slots=True)
class Door:
    """How a peer gets in: the address, and for a port that asks for a token, the token and the protocol to name."""

    host: str
    port: int
    token: Token | None = None
    user: str = ""
    protocol: str = ""


@dataclass(slots=True)
class Tally:
    frames: int = 0
    connections: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0
    #: connections that ended before everything was sent or the token was accepted
    turned_away: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    #: scripts after which the server did not do what it must
    violations: list[tuple[str, Script]] = field(default_factory=list)


class _Attack(asyncio.Protocol):
    def __init__(self, door: Door, script: Script, tally: Tally, ended: "asyncio.Future[None]") -> None:
        self._script = script
        self._tally = tally
        self.ended = ended
        self._transport: asyncio.Transport | None = None
        self._entry: ClientConnection | None = None
        if door.token is not None:
            self._entry = ClientConnection(
                user=door.user, protocol=door.protocol, client_id=bytes(16), random=bytes, token=door.token
            )

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self._entry is None:
            self._send()
        else:
            self._transport.write(self._entry.start())

    def _send(self) -> None:
        transport = self._transport
        assert transport is not None
        self._entry = None
        transport.write(b"".join(self._script.chunks))
        if not self._script.breaks:
            with suppress(OSError):  # it has hung up already
                transport.write_eof()
        self._tally.frames += len(self._script.chunks)
        self._tally.sent_bytes += sum(map(len, self._script.chunks))

    def data_received(self, data: bytes) -> None:
        self._tally.received_bytes += len(data)
        if self._entry is None:
            return
        assert self._transport is not None
        try:
            _, output = self._entry.receive(data)
        except (RemoteException, RpcError):
            self._transport.abort()
            return
        if output:
            self._transport.write(output)
        if self._entry.is_ready:
            self._send()

    def connection_lost(self, error: Exception | None) -> None:
        if self._entry is not None:
            self._tally.turned_away += 1
        if not self.ended.done():
            self.ended.set_result(None)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


async def play(
    door: Door, scripts: Iterable[Script], tally: Tally, is_over: Callable[[], bool], on_stuck: Callable[[], None]
) -> None:
    """Play until the scripts or `is_over` end it. A refused connection ends it as well: the application is gone.

    `on_stuck` hears of each connection that the server should have closed and has not.
    """
    turns: Iterator[Script] = iter(scripts)

    async def worker() -> None:
        for script in turns:
            if is_over() or not await _one(door, script, tally, on_stuck):
                return

    async with asyncio.TaskGroup() as group:
        for _ in range(_CONCURRENCY):
            group.create_task(worker())


async def _one(door: Door, script: Script, tally: Tally, on_stuck: Callable[[], None]) -> bool:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    try:
        _, attack = await loop.create_connection(lambda: _Attack(door, script, tally, ended), door.host, door.port)
    except OSError:
        tally.turned_away += 1
        return False
    tally.connections += 1
    tally.kinds[script.what.partition("+")[0]] += 1
    try:
        async with asyncio.timeout(CLOSE_TIMEOUT_S):
            await ended
    except TimeoutError:
        on_stuck()
        attack.abort()
        wanted = "after a broken frame" if script.breaks else "at the end of our half"
        tally.violations.append((f"{door.host}:{door.port} did not hang up {wanted}", script))
    return True
