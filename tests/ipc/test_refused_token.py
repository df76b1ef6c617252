"""A stock server answers a token that it does not accept by hanging up: our clients must say what that means."""

import asyncio
import socket
import struct
import time
from collections.abc import AsyncIterator, Callable

import pytest

from yaqd.ipc import BlockingRpcClient, RpcAuthenticationError, RpcClient, RpcConnectionError
from yaqd.ipc.negotiation import ServerNegotiation
from yaqd.ipc.server_connection import Admission, ServerConnection
from yaqd.ipc.wire import TokenSecrets
from yaqd.model import ApplicationAttemptId, ApplicationId
from yaqd.proto.protocols import ApplicationMasterProtocol
from yaqd.security import AMRMTokenSecrets, RollingKeys, Token

FINISH = ApplicationMasterProtocol.finishApplicationMaster
ATTEMPT = ApplicationAttemptId(ApplicationId(1_700_000_000_000, 7), 1)


class Curt:
    """Speaks SASL as our server does, and hangs up without a word where that would send a FATAL answer."""

    def __init__(self, secrets: TokenSecrets) -> None:
        self.secrets = secrets
        self.connections = 0
        #: so many connections, from the first, are hung up on without a word
        self.silent = 0
        self.resets = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        connection = ServerConnection(Admission(self.secrets, False, None, bytes), ("peer", 1))
        while (data := await reader.read(65536)) and self.connections > self.silent:
            connection.feed(data)
            connection.next_call()
            if connection.is_closed:
                break
            writer.writelines(connection.take_output())
        if self.resets:
            raw = writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.close()


@pytest.fixture
async def curt() -> AsyncIterator[tuple[Curt, str, int, AMRMTokenSecrets]]:
    secrets = AMRMTokenSecrets(RollingKeys(now=0.0, random=lambda count: bytes(range(count))))
    server = Curt(secrets)
    async with await asyncio.start_server(server.serve, "127.0.0.1", 0) as listening:
        host, port = listening.sockets[0].getsockname()
        yield server, host, port, secrets


def wrong(secrets: AMRMTokenSecrets) -> Token:
    return Token(secrets.mint(ATTEMPT).identifier, b"guess", secrets.kind, "10.0.0.1:8030")


def call_blocking(host: str, port: int, token: Token) -> None:
    with BlockingRpcClient(host, port, user="bob", token=token, timeout_s=10) as client:
        client.call(FINISH, FINISH.request())


async def call(host: str, port: int, token: Token) -> None:
    client = RpcClient(host, port, user="bob", token=token, timeout_s=10)
    try:
        await client.call(FINISH, FINISH.request(), idempotent=True)
    finally:
        await client.close()


async def blocking_in_a_thread(host: str, port: int, token: Token) -> None:
    await asyncio.to_thread(call_blocking, host, port, token)


@pytest.mark.parametrize("way", [call, blocking_in_a_thread])
@pytest.mark.parametrize("resets", [False, True])
@pytest.mark.parametrize("challenge_later", [False, True])
async def test_the_token_is_named_at_once(
    curt: tuple[Curt, str, int, AMRMTokenSecrets],
    monkeypatch: pytest.MonkeyPatch,
    way: Callable[..., object],
    resets: bool,
    challenge_later: bool,
) -> None:
    server, host, port, secrets = curt
    server.resets = resets
    if challenge_later:
        offer = ServerNegotiation._offer

        def without_challenge(self: ServerNegotiation) -> object:
            answer = offer(self)
            answer.auths[0].ClearField("challenge")
            return answer

        monkeypatch.setattr(ServerNegotiation, "_offer", without_challenge)
    began = time.monotonic()
    with pytest.raises(RpcAuthenticationError, match=r"YARN_AM_RM_TOKEN for 10\.0\.0\.1:8030") as refused:
        await way(host, port, wrong(secrets))  # type: ignore[misc]
    assert f"{host}:{port}" in str(refused.value)
    assert time.monotonic() - began < 5.0  # a connection that fails is tried again for 12 s
    assert server.connections == 2  # once more, in case the server was just going away


@pytest.mark.slow
@pytest.mark.parametrize("way", [call, blocking_in_a_thread])
async def test_a_server_that_hangs_up_before_the_token_was_shown_is_tried_again(
    curt: tuple[Curt, str, int, AMRMTokenSecrets], way: Callable[..., object]
) -> None:
    server, host, port, secrets = curt
    server.silent = 3
    with pytest.raises(RpcAuthenticationError):
        await way(host, port, wrong(secrets))  # type: ignore[misc]
    assert server.connections == 3 + 2
    assert not issubclass(RpcAuthenticationError, RpcConnectionError)  # what is retried


@pytest.mark.parametrize("address", [("a..b", 1), ("x" * 300, 1)])
@pytest.mark.parametrize("way", [call, blocking_in_a_thread])
async def test_what_is_no_address_is_an_error_of_the_connection(
    address: tuple[str, int], way: Callable[..., object]
) -> None:
    with pytest.raises(RpcConnectionError, match="not an address"):
        await way(*address, Token(b"", b"", "", ""))  # type: ignore[misc]
