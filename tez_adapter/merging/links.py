"""The job manager's calls to the mergers of its nodes: a merge each, answered when it is done.

A merger is found by the port that its node tells in its answer to a start; where that changes, it was started anew, and
what was asked of the former one has failed. Nothing here is waited for by anybody: what comes of a merge is an event.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from riffle_merger.plan.choice import MergerChoice
from riffle_merger.plan.decisions import CancelMerge, SendMerge
from riffle_merger.service.protocol import RiffleMergerProtocol
from tez_adapter.merging.shared_mergers import NoMerger, SharedMergers
from yaqd.ipc import RetryPolicy, RpcClient
from yaqd.ipc.errors import RemoteException, RpcError
from yaqd.ipc.tasks import TaskSet
from yaqd.proto import riffle_pb2 as pb
from yaqd.security import Token

log = logging.getLogger(__name__)

_CANCEL_TIMEOUT_S = 10.0
#: a merger that is being started anew is worth a moment
_RETRIES = RetryPolicy(attempts=4, first_delay_s=0.2, delay_max_s=1.0)


#: of outputs on no node
_MERGERS_TRIED = 2


async def _none_comes() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class SharedOutputs:
    """Outputs that lie on no node: where, and which mergers there are."""

    folder: str
    replication: int
    known: Callable[[], Sequence[tuple[str, int]]]
    choice: MergerChoice[tuple[str, int]]
    clock: Callable[[], float]
    #: waits until a merger has come or gone; False: none will come
    news: Callable[[], Awaitable[bool]] = _none_comes
    #: hears of a merger that gives no answer
    on_lost: Callable[[tuple[str, int]], None] = lambda _: None


class MergerLinks:
    """`on_merged(merge, answer)` and `on_failed(merge, reason)` are called on the event loop, once for each merge that
    was not cancelled."""

    def __init__(
        self,
        job_id: str,
        prefix: str,
        token: Token,
        address_of: Callable[[str], tuple[str, int] | None],
        *,
        timeout_s: float,
        on_merged: Callable[[int, pb.MergeResponse], None],
        on_failed: Callable[[int, str], None],
        shared: "SharedOutputs | None" = None,
    ) -> None:
        """`prefix` tells this job manager's merges from those of one before it; `address_of` a node's merger.
        `shared`: where the outputs are that lie on no node; then any merger takes any merge."""
        self._job_id, self._prefix = job_id, prefix
        self._token = token
        self._address_of = address_of
        self._timeout_s = timeout_s
        self._on_merged, self._on_failed = on_merged, on_failed
        self._shared = shared
        self._mergers = (
            None
            if shared is None
            else SharedMergers(shared.known, self._client, shared.choice, shared.clock, shared.news)
        )
        self._clients: dict[tuple[str, int], RpcClient] = {}
        self._merges: dict[int, tuple[asyncio.Task[None], tuple[str, int] | None]] = {}
        self._tasks = TaskSet()

    @property
    def done(self) -> dict[tuple[str, int], int]:
        """Merges done by each of the mergers that outputs on no node were given to."""
        return {} if self._mergers is None else self._mergers.done

    def send(self, decision: SendMerge) -> None:
        if self._mergers is None:
            address = self._address_of(decision.node)
            task = self._tasks.start(self._merge(decision, address))
        else:
            address = None
            task = self._tasks.start(self._merge_anywhere(decision, self._mergers))
        self._merges[decision.merge] = (task, address)
        task.add_done_callback(lambda _: self._merges.pop(decision.merge, None))

    def cancel(self, decisions: list[CancelMerge]) -> None:
        """Cancel these merges, with one call for each merger."""
        per_merger: dict[tuple[str, int], list[int]] = {}
        for decision in decisions:
            task, address = self._merges.pop(decision.merge, (None, None))
            if task is not None:
                task.cancel()
            if address is not None:
                per_merger.setdefault(address, []).append(decision.merge)
        for address, merges in per_merger.items():
            self._tasks.start(self._cancel(address, merges))

    async def close(self) -> None:
        await self._tasks.end()
        for client in self._clients.values():
            await client.close()

    def _name(self, merge: int) -> str:
        return f"{self._prefix}-{merge:06d}"

    def _client(self, address: tuple[str, int]) -> RpcClient:
        client = self._clients.get(address)
        if client is None:
            client = self._clients[address] = RpcClient(
                *address, user=self._job_id, token=self._token, timeout_s=self._timeout_s, connect_retries=_RETRIES
            )
        return client

    async def _merge(self, decision: SendMerge, address: tuple[str, int] | None) -> None:
        if address is None:
            self._on_failed(decision.merge, "its node has no merger any more")
            return
        try:
            response = await self._client(address).call(RiffleMergerProtocol.merge, self._request(decision))
        except (RpcError, RemoteException, OSError) as error:
            log.warning("merge %d at %s came to nothing: %s", decision.merge, decision.node, error)
            self._on_failed(decision.merge, str(error))
            return
        self._on_merged(decision.merge, response)

    async def _merge_anywhere(self, decision: SendMerge, mergers: SharedMergers) -> None:
        """At a merger with a short queue, and where that loses it, at one other."""
        reason = ""
        for _ in range(_MERGERS_TRIED):
            address = None
            response = None
            try:
                address = await mergers.take()
                if decision.merge in self._merges:
                    self._merges[decision.merge] = (self._merges[decision.merge][0], address)
                response = await self._client(address).call(RiffleMergerProtocol.merge, self._request(decision))
            except (RpcError, RemoteException, OSError, NoMerger) as error:
                reason = str(error)
                log.warning("merge %d at %s came to nothing: %s", decision.merge, address, error)
                if address is not None:
                    mergers.failed(address)
                    if self._shared is not None and not isinstance(error, RemoteException):
                        self._shared.on_lost(address)
            finally:
                if address is not None:
                    mergers.ended(address, is_done=response is not None)
            if response is not None:
                self._on_merged(decision.merge, response)
                return
            if address is None:
                break
        self._on_failed(decision.merge, reason)

    def _request(self, decision: SendMerge) -> pb.MergeRequest:
        request = pb.MergeRequest(
            job_id=self._job_id,
            merge_id=self._name(decision.merge),
            map_ids=[output.attempt for output in decision.outputs],
        )
        if self._shared is not None:
            request.folder = self._shared.folder
            request.bytes = sum(output.size for output in decision.outputs)
            request.replication = self._shared.replication
        return request

    async def _cancel(self, address: tuple[str, int], merges: list[int]) -> None:
        request = pb.CancelRequest(job_id=self._job_id, merge_ids=[self._name(merge) for merge in merges])
        try:
            await self._client(address).call(RiffleMergerProtocol.cancel, request, timeout_s=_CANCEL_TIMEOUT_S)
        except (RpcError, RemoteException, OSError) as error:
            log.warning("%d merges at %s:%d were not cancelled: %s", len(merges), *address, error)
