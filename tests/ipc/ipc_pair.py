"""What the tests of server and clients share: calls, answers, and handlers that wait."""

import asyncio
from collections.abc import Callable
from typing import Any

from yaqd.ipc import (
    Caller,
)
from yaqd.model import ApplicationAttemptId, ApplicationId
from yaqd.proto import yarn_service_pb2 as service
from yaqd.proto.protocols import ApplicationClientProtocol, ApplicationMasterProtocol

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
