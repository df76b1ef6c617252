"""Mergers for outputs on HDFS: any node's will do, and a merge that one of them loses is tried at another."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from riffle_merger.plan.choice import MergerChoice
from riffle_merger.service.protocol import RiffleMergerProtocol
from yaqd.ipc import RpcClient
from yaqd.ipc.errors import RemoteException, RpcError
from yaqd.proto import riffle_pb2 as pb

log = logging.getLogger(__name__)

Address = tuple[str, int]
_STATUS_TIMEOUT_S: Final = 5.0


class NoMerger(Exception):
    """None is known that has not failed lately."""


class SharedMergers:
    """All calls from one event loop."""

    def __init__(
        self,
        known: Callable[[], Sequence[Address]],
        client: Callable[[Address], RpcClient],
        choice: MergerChoice[Address],
        clock: Callable[[], float],
        news: Callable[[], Awaitable[bool]],
    ) -> None:
        """`news` waits until a merger has come or gone; False: none will come."""
        self._known, self._client, self._news = known, client, news
        self._choice, self._clock = choice, clock
        # one after the other, so that each sees where the one before went
        self._turn = asyncio.Lock()
        #: merges done by each
        self.done: dict[Address, int] = {}

    async def take(self) -> Address:
        """Return where the next merge goes; give it back with `ended` or `failed`. Raises NoMerger."""
        async with self._turn:
            while True:
                while candidates := self._choice.candidates(self._known(), self._clock()):
                    if len(candidates) == 1:
                        chosen: Address | None = candidates[0]
                    else:
                        lengths = await asyncio.gather(*(self._queue(address) for address in candidates))
                        chosen = self._choice.shortest(dict(zip(candidates, lengths, strict=True)))
                    if chosen is not None:
                        self._choice.sent(chosen)
                        return chosen
                if not await self._news():
                    raise NoMerger("no merger is known that has not failed lately")

    def ended(self, address: Address, *, is_done: bool) -> None:
        self._choice.ended(address)
        if is_done:
            self.done[address] = self.done.get(address, 0) + 1

    def failed(self, address: Address) -> None:
        """Note that the merger is not there, or cannot reach HDFS."""
        self._choice.failed(address, self._clock())

    async def _queue(self, address: Address) -> int | None:
        try:
            status = await self._client(address).call(
                RiffleMergerProtocol.status, pb.StatusRequest(), timeout_s=_STATUS_TIMEOUT_S
            )
        except (RpcError, RemoteException, OSError) as error:
            log.warning("merger at %s:%d does not say how long its queue is: %s", *address, error)
            self.failed(address)
            return None
        return max(0, status.unfinished)
