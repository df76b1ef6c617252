"""The job manager's side of mergers in containers of its own: their calls, and who waits for one to come up."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from tez_adapter.core import events as ev
from tez_adapter.core.demand import Ask
from tez_adapter.core.machine import JobMachine
from tez_adapter.core.mergers import OwnMergers
from tez_adapter.protocol import TaskUmbilicalProtocol
from yaqd.ipc import Caller, RpcServer
from yaqd.ipc.errors import Authorization
from yaqd.proto import job_pb2 as pb

log = logging.getLogger(__name__)

_WAIT_MAX_S: Final = 10.0


class JobMergers:
    """All calls from one event loop."""

    def __init__(self, own: OwnMergers, server: RpcServer, perform: Callable[[ev.Decision], None]) -> None:
        """`server`: of the job's tasks. `perform` carries a decision out at once."""
        self._own, self._perform = own, perform
        #: set and made anew whenever one comes or goes
        self._changed = asyncio.Event()
        self._is_trouble_said = False
        server.register(TaskUmbilicalProtocol.mergerRuns, self._runs)

    @property
    def starts(self) -> int:
        return self._own.starts

    @property
    def trouble(self) -> str:
        return self._own.trouble

    @property
    def may_come(self) -> bool:
        return self._own.may_come

    @property
    def wanted(self) -> int:
        return self._own.wanted

    def asks(self) -> list[Ask]:
        return self._own.asks()

    def known(self) -> list[tuple[str, int]]:
        return self._own.known()

    def want(self, count: int, machine: JobMachine) -> None:
        """Asks for so many mergers. The machine gives containers back for them where the cluster has no other room."""
        more = self._own.want(count)
        if more:
            machine.held.to_lend += more
            log.info("no node has a merger: the job runs up to %d in containers of its own", count)

    def handle(self, event: ev.Event) -> bool:
        """Handles an event. Returns whether it was theirs alone."""
        decisions = self._own.handle(event)
        if decisions is None:
            return False
        self._do(decisions)
        return True

    def tick(self, machine: JobMachine, now: float) -> None:
        self._do(self._own.tick(machine.vertices, now))

    def lost(self, address: tuple[str, int]) -> None:
        self._do(self._own.lost(*address))

    def end(self, trouble: str = "") -> None:
        if not self._own.is_over:
            self._do(self._own.end(trouble))

    async def news(self) -> bool:
        """Waits until one has come or gone. False at once where none will come."""
        if not self._own.may_come:
            return False
        await self._changed.wait()
        return True

    def _do(self, decisions: list[ev.Decision]) -> None:
        for decision in decisions:
            self._perform(decision)
        if self._own.trouble and not self._is_trouble_said:
            self._is_trouble_said = True
            log.warning("no mergers of the job's own any more: %s", self._own.trouble)
        self._changed.set()
        self._changed = asyncio.Event()

    async def _runs(self, request: pb.MergerRunsRequest, caller: Caller) -> pb.MergerRunsResponse:
        if caller.auth != "TOKEN":
            raise Authorization(f"{caller.user} has no token of this job")
        self._own.heard(request.container_id, request.port)
        self._do([])
        try:
            async with asyncio.timeout(max(0.0, min(_WAIT_MAX_S, request.wait_ms / 1000))):
                while self._own.is_wanted(request.container_id):
                    await self._changed.wait()
        except TimeoutError:
            pass
        return pb.MergerRunsResponse(is_over=not self._own.is_wanted(request.container_id))
