"""Server and clients over real sockets on loopback."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from yaqd.ipc import (
    NO_RETRY,
    BlockingRpcClient,
    Caller,
    ClientLimits,
    RemoteException,
    RetryPolicy,
    RpcClient,
    RpcConnectionError,
    RpcServer,
    RpcTimeout,
    ServerLimits,
    errors,
)
from yaqd.ipc.frames import delimited, frame
from yaqd.ipc.wire import AUTH_NONE, preamble
from yaqd.model import ApplicationAttemptId, ApplicationId
from yaqd.proto import rpc_pb2 as rpc
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as service
from yaqd.proto.protocols import ApplicationClientProtocol, ApplicationMasterProtocol, Method
from yaqd.security import AMRMTokenSecrets, RollingKeys, Token

QUEUE = ApplicationClientProtocol.getQueueInfo
METRICS = ApplicationClientProtocol.getClusterMetrics
FINISH = ApplicationMasterProtocol.finishApplicationMaster
ATTEMPT = ApplicationAttemptId(ApplicationId(1_700_000_000_000, 7), 1)


def random_bytes(count: int) -> bytes:
    return bytes(range(count))


def queue_response(name: str) -> service.GetQueueInfoResponse:
    response = service.GetQueueInfoResponse()
    response.queueInfo.queueName = name
    return response


def request(name: str = "root") -> service.GetQueueInfoRequest:
    return service.GetQueueInfoRequest(queueName=name)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that only the server's own deadlines bring about."""
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


class Waiting:
    """A handler whose answers the test releases by name."""

    def __init__(self) -> None:
        self.gates: dict[str, asyncio.Future[None]] = {}
        self.arrived = asyncio.Condition()

    async def __call__(self, message: service.GetQueueInfoRequest, caller: Caller) -> service.GetQueueInfoResponse:
        gate = self.gates[message.queueName] = asyncio.get_running_loop().create_future()
        async with self.arrived:
            self.arrived.notify_all()
        await gate
        return queue_response(message.queueName)

    async def count(self, number: int) -> None:
        async with self.arrived:
            await self.arrived.wait_for(lambda: len(self.gates) >= number)


Starter = Callable[..., Any]


@pytest.fixture
async def start() -> AsyncIterator[Starter]:
    """Start servers and clients; all are closed at the end of the test."""
    started: list[Any] = []

    async def server(handlers: dict[Method[Any, Any], Any] | None = None, **options: Any) -> RpcServer:
        instance = RpcServer(name="test", host="127.0.0.1", **options)
        for method, handler in (handlers or {QUEUE: lambda m, c: queue_response(m.queueName)}).items():
            instance.register(method, handler)
        await instance.start()
        started.append(instance.stop)
        return instance

    def client(server: RpcServer, **options: Any) -> RpcClient:
        options.setdefault("user", "alice")
        options.setdefault("timeout_s", 10.0)
        instance = RpcClient(*server.address, **options)
        started.append(instance.close)
        return instance

    server.client = client  # type: ignore[attr-defined]
    yield server
    for stop in reversed(started):
        await stop()


async def test_calls_are_pipelined_on_one_connection_and_answered_in_any_order(start: Starter) -> None:
    waiting = Waiting()
    server = await start({QUEUE: waiting})
    client = start.client(server)  # type: ignore[attr-defined]
    async with asyncio.TaskGroup() as group:
        calls = {name: group.create_task(client.call(QUEUE, request(name))) for name in "abc"}
        await waiting.count(3)
        for name in "cab":
            waiting.gates[name].set_result(None)
            assert (await calls[name]).queueInfo.queueName == name
    assert server.statistics().accepted == 1


async def test_a_thousand_calls_come_back_each_with_its_own_answer(start: Starter) -> None:
    server = await start()
    client = start.client(server)  # type: ignore[attr-defined]
    names = [f"queue-{i}" for i in range(1000)]
    answers = await asyncio.gather(*(client.call(QUEUE, request(name)) for name in names))
    assert [answer.queueInfo.queueName for answer in answers] == names


async def test_a_large_message_both_ways(start: Starter) -> None:
    server = await start()
    client = start.client(server)  # type: ignore[attr-defined]
    name = "q" * (5 << 20)
    assert (await client.call(QUEUE, request(name))).queueInfo.queueName == name
    assert server.statistics().buffered_bytes == 0


@pytest.mark.parametrize("is_async", [False, True])
async def test_what_a_handler_raises_reaches_the_caller_and_spares_the_rest(start: Starter, is_async: bool) -> None:
    raised: list[Exception] = [
        errors.ApplicationNotFound("no application_1_0001"),
        RemoteException("java.lang.ArithmeticException", "/ by zero"),
        ZeroDivisionError("secret of the server"),
    ]

    def handler(message: service.GetQueueInfoRequest, caller: Caller) -> service.GetQueueInfoResponse:
        raise raised[int(message.queueName)]

    async def later(message: service.GetQueueInfoRequest, caller: Caller) -> service.GetQueueInfoResponse:
        return handler(message, caller)

    server = await start({QUEUE: later if is_async else handler})
    client = start.client(server)  # type: ignore[attr-defined]
    with pytest.raises(errors.ApplicationNotFound, match="no application_1_0001"):
        await client.call(QUEUE, request("0"))
    with pytest.raises(RemoteException) as unknown:
        await client.call(QUEUE, request("1"))
    assert unknown.value.class_name == "java.lang.ArithmeticException" and unknown.value.message == "/ by zero"
    with pytest.raises(errors.RemoteFailure) as fault:
        await client.call(QUEUE, request("2"))
    assert "secret" not in fault.value.message
    assert server.statistics().errors == 3 and server.statistics().connections == 1


async def test_wrong_answers_of_a_handler_are_the_servers_fault(start: Starter) -> None:
    server = await start({QUEUE: lambda m, c: "text", METRICS: lambda m, c: None})
    client = start.client(server)  # type: ignore[attr-defined]
    for method in (QUEUE, METRICS):
        with pytest.raises(errors.RemoteFailure, match="internal error"):
            await client.call(method, method.request())


async def test_unknown_protocol_method_and_version(start: Starter) -> None:
    server = await start()
    client = start.client(server)  # type: ignore[attr-defined]
    meta = Method("org.apache.hadoop.ipc.ProtocolMetaInfoPB", "getProtocolVersions", QUEUE.request, QUEUE.response)
    newer = Method(QUEUE.protocol, QUEUE.name, QUEUE.request, QUEUE.response, version=2)
    for method, expected in [
        (meta, errors.NoSuchProtocol),
        (METRICS, errors.NoSuchMethod),
        (newer, errors.VersionMismatch),
    ]:
        with pytest.raises(expected):
            await client.call(method, method.request())
    await client.call(QUEUE, request())
    assert server.statistics().connections == 1


async def test_a_request_that_does_not_parse_fails_alone(start: Starter) -> None:
    strict = Method("org.yaqd.StrictPB", "strict", rpc.RequestHeader, rpc.RequestHeader)
    server = await start({QUEUE: lambda m, c: queue_response("x"), strict: lambda m, c: m})
    client = start.client(server)  # type: ignore[attr-defined]
    damaged = Method(QUEUE.protocol, QUEUE.name, common.Token, QUEUE.response)
    token = common.Token(identifier=b"\xff", password=b"", kind="", service="")
    with pytest.raises(errors.ServerError, match="not a GetQueueInfoRequest"):
        await client.call(damaged, token)
    empty = Method(strict.protocol, strict.name, QUEUE.request, strict.response)
    with pytest.raises(errors.ServerError, match="required fields missing: methodName"):
        await client.call(empty, QUEUE.request())
    await client.call(QUEUE, request())
    assert server.statistics().connections == 1


async def test_tokens(start: Starter) -> None:
    seen: list[Caller] = []

    def finish(message: Any, caller: Caller) -> service.FinishApplicationMasterResponse:
        seen.append(caller)
        return service.FinishApplicationMasterResponse(isUnregistered=True)

    secrets = AMRMTokenSecrets(RollingKeys(now=0.0, random=random_bytes))
    server = await start({FINISH: finish}, token_secrets=secrets, allow_simple=False)
    token = secrets.mint(ATTEMPT)

    async def call(with_token: Token | None) -> None:
        await start.client(server, token=with_token).call(FINISH, FINISH.request())  # type: ignore[attr-defined]

    await call(token)
    assert seen[0].user == str(ATTEMPT) and seen[0].auth == "TOKEN" and seen[0].token_identifier == token.identifier
    with pytest.raises(errors.AccessControl):
        await call(None)
    with pytest.raises(errors.InvalidToken, match="wrong password"):
        await call(Token(token.identifier, b"guess", token.kind, ""))
    other_issuer = AMRMTokenSecrets(RollingKeys(now=0.0, random=lambda n: bytes(n)))
    with pytest.raises(errors.InvalidToken):
        await call(other_issuer.mint(ATTEMPT))
    secrets.forget(ATTEMPT)
    with pytest.raises(errors.InvalidToken, match="not found"):
        await call(token)
    assert len(seen) == 1


async def test_a_call_ends_at_its_deadline_and_the_connection_goes_on(start: Starter) -> None:
    waiting = Waiting()
    server = await start({QUEUE: waiting})
    client = start.client(server)  # type: ignore[attr-defined]
    with pytest.raises(RpcTimeout, match="getQueueInfo"):
        await client.call(QUEUE, request("slow"), timeout_s=0.05)
    second = asyncio.create_task(client.call(QUEUE, request("next")))
    await waiting.count(2)
    waiting.gates["slow"].set_result(None)  # the late answer is nobody's
    waiting.gates["next"].set_result(None)
    assert (await second).queueInfo.queueName == "next"
    assert server.statistics().accepted == 1


async def test_nobody_listens(start: Starter, unused_tcp_port: int) -> None:
    client = RpcClient("127.0.0.1", unused_tcp_port, user="alice", connect_retries=RetryPolicy(3, 0.001))
    with pytest.raises(RpcConnectionError, match=str(unused_tcp_port)) as refused:
        await client.call(QUEUE, request())
    assert not refused.value.sent
    with pytest.raises(RpcTimeout):
        await client.call(QUEUE, request(), timeout_s=0.0005)
    await client.close()


async def test_the_client_comes_back_after_the_server_does(start: Starter) -> None:
    server = await start()
    client = start.client(server)  # type: ignore[attr-defined]
    await client.call(QUEUE, request())
    await server.stop()
    port = server.port
    again = await start(port=port)
    assert (await client.call(QUEUE, request("b"), idempotent=True)).queueInfo.queueName == "b"
    assert again.statistics().accepted == 1


async def test_only_idempotent_calls_are_sent_twice(start: Starter) -> None:
    calls: list[str] = []
    server: RpcServer

    def hang_up_once(message: service.GetQueueInfoRequest, caller: Caller) -> service.GetQueueInfoResponse:
        calls.append(message.queueName)
        if len(calls) in (1, 2):
            for connection in list(server.connections):
                connection.close()
        return queue_response(message.queueName)

    async def later(message: service.GetQueueInfoRequest, caller: Caller) -> service.GetQueueInfoResponse:
        return hang_up_once(message, caller)

    server = await start({QUEUE: later})
    client = start.client(server)  # type: ignore[attr-defined]
    with pytest.raises(RpcConnectionError) as lost:
        await client.call(QUEUE, request("once"))
    assert lost.value.sent
    await client.call(QUEUE, request("again"), idempotent=True)
    assert calls == ["once", "again", "again"]


async def test_closing_the_client_fails_what_is_under_way(start: Starter) -> None:
    waiting = Waiting()
    server = await start({QUEUE: waiting})
    client = start.client(server)  # type: ignore[attr-defined]
    call = asyncio.create_task(client.call(QUEUE, request("a")))
    await waiting.count(1)
    await client.close()
    with pytest.raises(RpcConnectionError, match="closed"):
        await call
    with pytest.raises(RpcConnectionError, match="closed"):
        await client.call(QUEUE, request("b"))


async def test_stopping_the_server_cancels_handlers_and_frees_the_port(start: Starter) -> None:
    waiting = Waiting()
    server = await start({QUEUE: waiting})
    client = start.client(server)  # type: ignore[attr-defined]
    call = asyncio.create_task(client.call(QUEUE, request("a")))
    await waiting.count(1)
    await server.stop()
    with pytest.raises(RpcConnectionError):
        await call
    assert waiting.gates["a"].cancelled()
    await start(port=server.port)


async def test_a_taken_port_is_one_clear_line(start: Starter) -> None:
    server = await start()
    with pytest.raises(RpcConnectionError, match=rf"test cannot listen on 127.0.0.1:{server.port}"):
        await start(port=server.port)


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


def opening() -> bytes:
    header = rpc.RpcRequestHeader(rpcKind=2, rpcOp=0, callId=-3, clientId=bytes(16))
    context = rpc.IpcConnectionContext(userInfo=rpc.UserInformation(effectiveUser="eve"), protocol=QUEUE.protocol)
    return preamble(AUTH_NONE) + frame(delimited(header.SerializeToString()), delimited(context.SerializeToString()))


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
    call_header = rpc.RpcRequestHeader(rpcKind=2, rpcOp=0, callId=0, clientId=bytes(16))
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


async def test_the_blocking_client(start: Starter) -> None:
    secrets = AMRMTokenSecrets(RollingKeys(now=0.0, random=random_bytes))
    callers: list[Caller] = []

    def queue(message: service.GetQueueInfoRequest, caller: Caller) -> service.GetQueueInfoResponse:
        callers.append(caller)
        if message.queueName == "missing":
            raise errors.YarnError("no queue")
        return queue_response(message.queueName)

    server = await start({QUEUE: queue}, token_secrets=secrets)
    token = secrets.mint(ATTEMPT)

    def in_a_thread() -> None:
        for with_token in (None, token):
            with BlockingRpcClient(*server.address, user="bob", token=with_token, timeout_s=10) as client:
                for name in ("a", "b" * 300_000, "c"):
                    assert client.call(QUEUE, request(name)).queueInfo.queueName == name
                with pytest.raises(errors.YarnError, match="no queue"):
                    client.call(QUEUE, request("missing"))
                assert client.call(QUEUE, request("after")).queueInfo.queueName == "after"
        with (
            BlockingRpcClient(*server.address, user="bob", token=Token(token.identifier, b"", "", "")) as client,
            pytest.raises(errors.InvalidToken),
        ):
            client.call(QUEUE, request())

    await asyncio.to_thread(in_a_thread)
    assert {(caller.user, caller.auth) for caller in callers} == {("bob", "SIMPLE"), (str(ATTEMPT), "TOKEN")}
    assert server.statistics().accepted == 3


async def test_the_blocking_client_reconnects_and_keeps_deadlines(start: Starter, unused_tcp_port: int) -> None:
    waiting = Waiting()
    server = await start({QUEUE: lambda m, c: queue_response("x")})
    slow = await start({QUEUE: waiting})

    def before() -> BlockingRpcClient:
        client = BlockingRpcClient(*server.address, user="bob", timeout_s=10)
        client.call(QUEUE, request())
        return client

    client = await asyncio.to_thread(before)
    await server.stop()
    again = await start({QUEUE: lambda m, c: queue_response("again")}, port=server.port)
    response = await asyncio.to_thread(client.call, QUEUE, request())
    assert response.queueInfo.queueName == "again" and again.statistics().accepted == 1
    client.close()

    def too_slow() -> None:
        with (
            BlockingRpcClient(*slow.address, user="bob", timeout_s=0.05) as impatient,
            pytest.raises(RpcTimeout, match="getQueueInfo"),
        ):
            impatient.call(QUEUE, request("never"))
        retries = RetryPolicy(2, 0.001)
        with (
            BlockingRpcClient("127.0.0.1", unused_tcp_port, user="bob", connect_retries=retries) as lonely,
            pytest.raises(RpcConnectionError, match="cannot connect"),
        ):
            lonely.call(QUEUE, request())

    await asyncio.to_thread(too_slow)


def test_the_blocking_client_imports_no_event_loop() -> None:
    import subprocess
    import sys

    script = "import sys, yaqd.ipc; sys.exit('asyncio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_a_slow_protobuf_is_refused() -> None:
    import os
    import subprocess
    import sys

    script = "from yaqd.ipc.loop import require_fast_protobuf as r; r()"
    environment = {**os.environ, "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "'upb' is needed" in done.stderr
