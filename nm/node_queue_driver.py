"""The node queue on the event loop: hands it events and the time, has its decisions carried out, wakes it when due."""

import asyncio
from collections.abc import Callable

from nm.node_queue import Decision, Event, NodeQueue, Tick


class NodeQueueDriver:
    """Only after this may the queue be told anything."""

    def __init__(self, queue: NodeQueue, carry_out: Callable[[Decision], None]) -> None:
        """`carry_out` must not block; it may lead to further events."""
        self.queue = queue
        self._carry_out = carry_out
        self._loop = asyncio.get_running_loop()
        self._tick: asyncio.TimerHandle | None = None

    def tell(self, event: Event) -> None:
        for decision in self.queue.handle(event, self._loop.time()):
            self._carry_out(decision)
        self._set_tick()

    def stop(self) -> None:
        if self._tick is not None:
            self._tick.cancel()

    def _set_tick(self) -> None:
        """Every event may move the time at which the queue has something to do by itself."""
        at = self.queue.next_tick()
        if self._tick is not None and self._tick.when() != at:
            self._tick.cancel()
            self._tick = None
        if at is not None and self._tick is None:
            self._tick = self._loop.call_at(at, self._due)

    def _due(self) -> None:
        self._tick = None
        self.tell(Tick())
