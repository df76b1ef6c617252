"""The blocking client, and what imports cost."""

import asyncio

import pytest

from tests.ipc.ipc_pair import ATTEMPT, QUEUE, Starter, Waiting, queue_response, random_bytes, request
from yaqd.ipc import (
    BlockingRpcClient,
    Caller,
    RetryPolicy,
    RpcConnectionError,
    RpcTimeout,
    errors,
)
from yaqd.proto import yarn_service_pb2 as service
from yaqd.security import AMRMTokenSecrets, RollingKeys, Token


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
