"""Masters that always want more: each asks once for far more tasks than can run, and starts what it is given."""

import asyncio
from collections.abc import Callable

from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as service
from yaqd.proto.protocols import ApplicationMasterProtocol

from ..live_master import SLOT_MB, Addresses, LiveJob
from ..live_tasks import StartLog


class HungryMaster(LiveJob):
    """One application, without a container of its own."""

    def __init__(self, addresses: Addresses, log: StartLog, *, poll_s: float) -> None:
        """`poll_s`: between two of its calls, s. `log`: nothing is written to it."""
        super().__init__(addresses, log, name="load", stages=(), poll_s=poll_s, tolerates_waiting=True)
        #: containers that it was given, and calls that it made
        self.given = 0
        self.calls = 0
        self.call_s = 0.0

    def want(self, count: int) -> None:
        """Say with the next call that so many containers are wanted in all."""
        del self._request.ask[:]
        ask = self._request.ask.add(
            resource_name="*", num_containers=count, relax_locality=True, allocation_request_id=-1
        )
        ask.priority.priority = 1
        ask.capability.memory = SLOT_MB
        ask.capability.virtual_cores = 1
        ask.execution_type_request.execution_type = common.GUARANTEED

    async def feed(self, run: Callable[[common.Container], None], is_over: Callable[[], bool]) -> None:
        """Call every `poll_s`, and hand on what is given, until it is over."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while not is_over():
            answer = await self.call()
            for container in answer.allocated_containers:
                run(container)
            due = max(due + self.poll_s, loop.time())
            await asyncio.sleep(due - loop.time())

    async def call(self) -> service.AllocateResponse:
        """Make one call, and count what it brings."""
        if self._master is None:
            raise RuntimeError("not registered")
        loop = asyncio.get_running_loop()
        since = loop.time()
        answer = await self._master.call(ApplicationMasterProtocol.allocate, self._request)
        self.call_s += loop.time() - since
        self._request.response_id = answer.response_id
        del self._request.ask[:]
        self.given += len(answer.allocated_containers)
        self.calls += 1
        return answer
