"""The slots as the job manager speaks with them: each asks for orders, and is answered when there are some."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from tez_adapter.core.dag import AttemptId
from yaqd.proto import job_exploration_pb2 as pb

_WAIT_MAX_S: Final = 10.0


@dataclass(slots=True)
class SlotLink:
    attempt: AttemptId
    orders: list[pb.SlotOrder] = field(default_factory=list)
    sequence: int = 0
    turn: "asyncio.Future[None] | None" = None

    def wake(self) -> None:
        if self.turn is not None and not self.turn.done():
            self.turn.set_result(None)


class SlotLinks:
    """Made in the event loop."""

    def __init__(self) -> None:
        self._links: dict[str, SlotLink] = {}

    def __iter__(self) -> Iterator[tuple[str, SlotLink]]:
        return iter(list(self._links.items()))

    def __contains__(self, name: str) -> bool:
        return name in self._links

    def __len__(self) -> int:
        return len(self._links)

    def add(self, name: str, attempt: AttemptId) -> None:
        self._links[name] = SlotLink(attempt)

    def remove(self, name: str) -> None:
        link = self._links.pop(name, None)
        if link is not None:
            link.wake()

    def order(self, name: str, action: "pb.SlotOrder.Action", number: int, lap: int) -> None:
        """Have a slot do something; one that is gone does nothing."""
        link = self._links.get(name)
        if link is not None:
            link.sequence += 1
            trial = pb.TrialRef(number=number, lap=lap)
            link.orders.append(pb.SlotOrder(sequence=link.sequence, action=action, trial=trial))
            link.wake()

    async def turn(self, name: str, heard: int, wait_s: float) -> pb.SlotTurnResponse:
        """Return the orders after `heard`, waiting for one where there is none; no longer than a few seconds."""
        link = self._links[name]
        link.wake()  # a former call of the slot, which has given up
        link.orders = [order for order in link.orders if order.sequence > heard]
        if not link.orders and wait_s > 0:
            link.turn = asyncio.get_running_loop().create_future()
            await asyncio.wait((link.turn,), timeout=min(_WAIT_MAX_S, wait_s))
        return pb.SlotTurnResponse(orders=link.orders, leave=name not in self._links)
