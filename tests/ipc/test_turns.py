"""A server whose calls never end lets everything else on its loop go on."""

import asyncio
import multiprocessing
import select
import socket
import time
from collections.abc import Callable
from functools import partial

import pytest

from tests.ipc.ipc_bytes import opening
from tests.ipc.ipc_pair import QUEUE, Starter, queue_response, until
from yaqd.ipc.frames import delimited, frame
from yaqd.ipc.loop import Turns, loop_factory
from yaqd.ipc.server import RpcServer
from yaqd.proto import rpc_pb2 as rpc
from yaqd.proto import yarn_service_pb2 as service

#: more than libuv asks for at a time
_CONNECTIONS = 1100


def call() -> bytes:
    header = rpc.RpcRequestHeader(
        rpcKind=rpc.RPC_PROTOCOL_BUFFER, rpcOp=rpc.RPC_FINAL_PACKET, callId=1, clientId=bytes(16)
    )
    what = rpc.RequestHeader(
        methodName=QUEUE.name, declaringClassProtocolName=QUEUE.protocol, clientProtocolVersion=QUEUE.version
    )
    body = service.GetQueueInfoRequest(queueName="a")
    return frame(*(delimited(one.SerializeToString()) for one in (header, what, body)))


async def test_who_comes_first_goes_first_and_few_go_on_at_a_time() -> None:
    turns, went, rounds = Turns(asyncio.get_running_loop()), list[int](), 0
    for number in range(1000):
        if turns.take(partial(went.append, number)):
            went.append(number)
    assert went == list(range(64))
    while len(went) < 1000:
        await asyncio.sleep(0)
        rounds += 1
    assert went == list(range(1000)) and rounds >= 14


async def test_a_turn_that_fails_takes_no_other_with_it() -> None:
    loop, went, said = asyncio.get_running_loop(), list[int](), list[str]()
    loop.set_exception_handler(lambda loop, context: said.append(context["message"]))
    turns = Turns(loop)

    def fail() -> None:
        raise ValueError

    for number in range(100):
        if turns.take(fail if number == 70 else partial(went.append, number)):
            went.append(number)
    await asyncio.sleep(0)
    assert went == [number for number in range(100) if number != 70] and said == ["a call's turn failed"]


async def test_those_that_come_one_at_a_time_never_wait() -> None:
    turns = Turns(asyncio.get_running_loop())
    for _ in range(1000):
        assert turns.take(lambda: pytest.fail("it went on"))
        await asyncio.sleep(0)


class Held(Turns):
    """Nobody goes on but by hand."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def take(self, later: Callable[[], None]) -> bool:
        self.waiting.append(later)
        return False


@pytest.mark.parametrize("peer_stays", [True, False])
async def test_a_peer_whose_turn_has_not_come_is_not_read_from(start: Starter, peer_stays: bool) -> None:
    server, held = await start(), Held()
    server.turns = held
    _, writer = await asyncio.open_connection(*server.address)
    writer.write(opening() + call())
    await until(lambda: bool(held.waiting))
    writer.write(call() * 1000)
    await writer.drain()
    [connection] = server.connections
    connection.check_deadlines(asyncio.get_running_loop().time() + 1e6)
    before = server.statistics()
    assert (before.calls, len(held.waiting), before.dropped) == (0, 1, 0)
    assert 0 < before.buffered_bytes <= len(opening() + call())
    server.turns = Turns(asyncio.get_running_loop())
    if not peer_stays:
        connection.close()
    held.waiting.pop()()
    if peer_stays:
        await until(lambda: server.statistics().calls == 1001)
    writer.close()
    await until(lambda: not server.connections)
    assert server.statistics().calls == (1001 if peer_stays else 0) and server.statistics().buffered_bytes == 0


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_timers_run_while_more_connections_call_than_are_looked_at_at_once() -> None:
    """Each call takes a fifth of a millisecond, and each connection makes the next one at once."""
    late = asyncio.Runner(loop_factory=loop_factory())
    with late as runner:
        assert runner.run(_latest()) < 0.5


async def _latest() -> float:
    """How late the latest of ten timers is, s."""

    def answer(request: service.GetQueueInfoRequest, caller: object) -> service.GetQueueInfoResponse:
        until = time.perf_counter() + (2e-4 if len(server.connections) == _CONNECTIONS else 0.0)
        while time.perf_counter() < until:
            pass
        return queue_response(request.queueName)

    server = RpcServer(name="test", host="127.0.0.1")
    server.register(QUEUE, answer)
    await server.start()
    peers = multiprocessing.get_context("spawn").Process(target=_call, args=(server.address,), daemon=True)
    peers.start()
    loop, worst = asyncio.get_running_loop(), 0.0
    try:
        while len(server.connections) < _CONNECTIONS:
            assert peers.exitcode is None
            await asyncio.sleep(0.01)
        for _ in range(10):
            due = loop.time() + 0.05
            await asyncio.sleep(0.05)
            worst = max(worst, loop.time() - due)
    finally:
        peers.kill()
        await asyncio.to_thread(peers.join)
        await server.stop()
    return worst


def _call(address: tuple[str, int]) -> None:
    """Have each of many connections call as soon as the last call is answered."""
    said = call()
    poll = select.epoll()
    peers = {}
    for _ in range(_CONNECTIONS):
        peer = socket.create_connection(address)
        peer.sendall(opening() + said)
        peers[peer.fileno()] = peer
        poll.register(peer, select.EPOLLIN)
    while True:
        for number, _ in poll.poll():
            peers[number].recv(1 << 16)
            peers[number].sendall(said)
