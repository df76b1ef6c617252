"""What a server and a client put up with: slow, silent, greedy and foreign peers."""

import asyncio
import socket

import pytest

from tests.ipc.ipc_bytes import opening
from tests.ipc.ipc_pair import QUEUE, Starter, Waiting, queue_response, request, until
from yaqd.ipc import (
    NO_RETRY,
    Caller,
    ClientLimits,
    RpcClient,
    RpcConnectionError,
    ServerLimits,
)
from yaqd.ipc.frames import delimited, frame
from yaqd.proto import rpc_pb2 as rpc
from yaqd.proto import yarn_service_pb2 as service


async def test_too_many_outstanding_calls_are_left_in_the_socket(start: Starter) -> None:
    waiting = Waiting()
    server = await start({QUEUE: waiting}, limits=ServerLimits(outstanding_calls_max=4))
    client = start.client(server)  # type: ignore[attr-defined]
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(client.call(QUEUE, request(str(i)))) for i in range(10)]
        await waiting.count(4)
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(waiting.gates) == 4
        for i in range(10):
            await waiting.count(i + 1)
            waiting.gates[str(i)].set_result(None)
        for i, call in enumerate(calls):
            assert (await call).queueInfo.queueName == str(i)


async def test_the_client_waits_for_room(start: Starter) -> None:
    waiting = Waiting()
    server = await start({QUEUE: waiting})
    client = start.client(server, limits=ClientLimits(outstanding_calls_max=2))  # type: ignore[attr-defined]
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(client.call(QUEUE, request(str(i)))) for i in range(5)]
        for i in range(5):
            await waiting.count(i + 1)
            waiting.gates[str(i)].set_result(None)
        assert [(await call).queueInfo.queueName for call in calls] == list("01234")


async def read_to_end(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(5):
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sent", "answered"),
    [
        (b"", False),  # says nothing
        (b"hrp", False),  # half a preamble
        (opening()[:-1], False),  # half a context
        (opening() + b"\0\0\1\0" + b"x", False),  # half a frame, for ever
        (b"GET / HTTP/1.1\r\n\r\n", True),
        (opening() + b"\x7f\xff\xff\xff", True),  # a lie about the length
    ],
)
async def test_peers_that_hold_a_connection_without_using_it_lose_it(
    start: Starter, sent: bytes, answered: bool
) -> None:
    server = await start(limits=ServerLimits(handshake_timeout_s=0.3, progress_timeout_s=0.3))
    reader, writer = await asyncio.open_connection(*server.address)
    writer.write(sent)
    assert bool(await read_to_end(reader)) == answered
    assert server.statistics().dropped == 1
    writer.close()
    await start.client(server).call(QUEUE, request())  # type: ignore[attr-defined]


async def test_an_idle_connection_is_closed_and_the_next_call_makes_another(start: Starter) -> None:
    server = await start(limits=ServerLimits(idle_timeout_s=0.1))
    client = start.client(server)  # type: ignore[attr-defined]
    await client.call(QUEUE, request())
    await until(lambda: server.statistics().connections == 0)
    await client.call(QUEUE, request(), idempotent=True)
    assert server.statistics().accepted == 2 and server.statistics().dropped == 0


async def test_the_client_closes_an_idle_connection_itself(start: Starter) -> None:
    server = await start()
    client = start.client(server, limits=ClientLimits(idle_timeout_s=0.05))  # type: ignore[attr-defined]
    await client.call(QUEUE, request())
    await until(lambda: server.statistics().connections == 0)
    await client.call(QUEUE, request())


async def test_pings_keep_a_waiting_connection_alive(start: Starter) -> None:
    waiting = Waiting()
    server = await start({QUEUE: waiting})
    client = start.client(server, limits=ClientLimits(ping_interval_s=0.02))  # type: ignore[attr-defined]
    call = asyncio.create_task(client.call(QUEUE, request("a")))
    await waiting.count(1)
    (connection,) = server.connections
    first = connection.last_read_at
    await until(lambda: connection.last_read_at > first)
    waiting.gates["a"].set_result(None)
    await call
    assert server.statistics().calls == 1


async def test_a_peer_that_takes_no_answers_is_not_served_on_and_then_dropped(start: Starter) -> None:
    served = 0

    def big(message: service.GetQueueInfoRequest, caller: Caller) -> service.GetQueueInfoResponse:
        nonlocal served
        served += 1
        return queue_response("q" * (1 << 20))

    limits = ServerLimits(progress_timeout_s=0.3, unsent_bytes_max=1 << 16)
    server = await start({QUEUE: big}, limits=limits)
    header = rpc.RequestHeader(
        methodName=QUEUE.name, declaringClassProtocolName=QUEUE.protocol, clientProtocolVersion=1
    )
    call_header = rpc.RpcRequestHeader(
        rpcKind=rpc.RPC_PROTOCOL_BUFFER, rpcOp=rpc.RPC_FINAL_PACKET, callId=0, clientId=bytes(16)
    )
    call = frame(
        delimited(call_header.SerializeToString()),
        delimited(header.SerializeToString()),
        delimited(request().SerializeToString()),
    )
    with socket.create_connection(server.address) as peer:
        peer.setblocking(False)
        await asyncio.get_running_loop().sock_sendall(peer, opening() + call * 200)
        await until(lambda: server.statistics().connections == 0 and server.statistics().dropped == 1)
    assert served < 50  # as many as the kernel's buffers took, not 200
    assert server.statistics().dropped == 1


async def test_connections_beyond_the_limit_are_turned_away(start: Starter) -> None:
    server = await start(limits=ServerLimits(connections_max=1))
    first = start.client(server)  # type: ignore[attr-defined]
    await first.call(QUEUE, request())
    with pytest.raises(RpcConnectionError):
        await start.client(server, connect_retries=NO_RETRY).call(QUEUE, request())  # type: ignore[attr-defined]
    await first.call(QUEUE, request())
    assert server.statistics().refused == 1


async def test_incomplete_frames_of_all_peers_together_are_bounded(start: Starter) -> None:
    server = await start(limits=ServerLimits(buffered_bytes_max=200_000))
    streams = [await asyncio.open_connection(*server.address) for _ in range(3)]
    for _, writer in streams:
        writer.write(opening() + b"\0\1\x86\xa0" + b"x" * 90_000)  # 90,000 of 100,000 bytes
        await writer.drain()
    await asyncio.wait(
        [asyncio.ensure_future(read_to_end(reader)) for reader, _ in streams], return_when=asyncio.FIRST_COMPLETED
    )
    assert server.statistics().dropped == 1 and server.statistics().connections == 2
    assert server.statistics().buffered_bytes <= 200_000
    for _, writer in streams:
        writer.close()


async def test_strangers_are_logged_once_a_minute(start: Starter, caplog: pytest.LogCaptureFixture) -> None:
    server = await start()
    for _ in range(5):
        reader, writer = await asyncio.open_connection(*server.address)
        writer.write(b"SSH-2.0-x\r\n")
        await read_to_end(reader)
        writer.close()
    assert server.statistics().dropped == 5
    assert len([r for r in caplog.records if "dropped 127.0.0.1" in r.getMessage()]) == 1


async def test_the_client_meets_something_that_is_not_hadoop() -> None:
    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()

    async with await asyncio.start_server(babble, "127.0.0.1", 0) as other:
        host, port = other.sockets[0].getsockname()
        client = RpcClient(host, port, user="alice", timeout_s=5.0)
        with pytest.raises(RpcConnectionError, match="does not speak Hadoop RPC"):
            await client.call(QUEUE, request())
        await client.close()
