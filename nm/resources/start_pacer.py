"""Holds the starts of containers' programs on the event loop, as `nm.resources.start_pace` says."""

import asyncio
import logging
from collections.abc import Callable

from nm.node_queue import HeldStarts
from nm.resources.process_scan import ProcessorNeed
from nm.resources.start_pace import WINDOW_S, StartPace
from yaqd.model import ContainerId

log = logging.getLogger(__name__)


class StartPacer:
    def __init__(
        self, pace: StartPace, busy_s: Callable[[], float], need: Callable[[int], ProcessorNeed | None]
    ) -> None:
        """`busy_s`: seconds that all processors together have been busy ever; `need`: of a process and what it started,
        None where nobody knows."""
        self._pace, self._busy_s, self._need = pace, busy_s, need
        #: of programs that started, until they end
        self._processes: dict[ContainerId, int] = {}
        self._turns: dict[ContainerId, asyncio.Future[None]] = {}
        self._look: asyncio.TimerHandle | None = None
        self._busy_then_s = 0.0

    async def turn(self, container: ContainerId) -> None:
        """Returns when its program may start."""
        loop = asyncio.get_running_loop()
        asked_at, turn = loop.time(), loop.create_future()
        self._turns[container] = turn
        self._pace.ask(container, asked_at)
        self._go_on()
        if turn.done():
            return
        try:
            await turn
        except asyncio.CancelledError:
            self.over(container)
            raise
        log.info("%s waited %.1f s for a processor: others were starting", container, loop.time() - asked_at)

    def started(self, container: ContainerId, pid: int) -> None:
        """Notes that a container's program runs, as this process."""
        self._processes[container] = pid
        self._pace.began(container, asyncio.get_running_loop().time())

    def change(self, moment_s: float) -> None:
        """Holds starts for so long at most from now on, s; 0: none."""
        if moment_s != self._pace.moment_s:
            self._pace.moment_s = moment_s
            self._go_on()

    def held(self) -> HeldStarts:
        """Returns the starts that wait for their turns."""
        return self._pace.held(asyncio.get_running_loop().time())

    def over(self, container: ContainerId) -> None:
        """Notes that a program has ended, or need not wait: it is to be ended."""
        self._processes.pop(container, None)
        self._pace.forget(container)
        self._tell(container)
        self._go_on()

    def _go_on(self) -> None:
        if self._look is not None:
            self._look.cancel()
            self._look = None
        loop = asyncio.get_running_loop()
        for container in self._pace.due(loop.time(), self._busy_now_s(), self._need_of):
            self._tell(container)
        if self._pace.is_holding:
            self._look = loop.call_later(WINDOW_S, self._go_on)

    def _busy_now_s(self) -> float:
        """Where nobody can say (no descriptor is left to ask with), as if the processors had idled since."""
        try:
            self._busy_then_s = self._busy_s()
        except OSError as error:
            log.warning("cannot tell how busy the processors are: %s", error)
        return self._busy_then_s

    def _need_of(self, container: ContainerId) -> ProcessorNeed | None:
        pid = self._processes.get(container)
        return self._need(pid) if pid is not None else None

    def _tell(self, container: ContainerId) -> None:
        turn = self._turns.pop(container, None)
        if turn is not None and not turn.done():
            turn.set_result(None)
