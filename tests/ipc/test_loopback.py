"""Server and client over real sockets on loopback: calls, answers, errors, tokens, and what ends a call."""

import asyncio
from typing import Any

import pytest

from tests.ipc.ipc_pair import ATTEMPT, FINISH, METRICS, QUEUE, Starter, Waiting, queue_response, random_bytes, request
from yaqd.ipc import (
    Caller,
    RemoteException,
    RetryPolicy,
    RpcClient,
    RpcConnectionError,
    RpcServer,
    RpcTimeout,
    errors,
)
from yaqd.proto import rpc_pb2 as rpc
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as service
from yaqd.proto.protocols import Method
from yaqd.security import AMRMTokenSecrets, RollingKeys, Token


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
    unknown: list[tuple[Method[Any, Any], type[Exception]]] = [
        (meta, errors.NoSuchProtocol),
        (METRICS, errors.NoSuchMethod),
        (newer, errors.VersionMismatch),
    ]
    for method, expected in unknown:
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
