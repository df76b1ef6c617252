"""The job manager's calls to the mergers of its nodes: a merge each, answered when it is done.

A merger is found by the port that its node tells in its answer to a start; where that changes, it was started anew, and
what was asked of the former one has failed. Nothing here is waited for by anybody: what comes of a merge is an event.
"""

import asyncio
import logging
from collections.abc import Callable

from riffle_merger.plan.decisions import CancelMerge, SendMerge
from riffle_merger.service.protocol import RiffleMergerProtocol
from yaqd.ipc import RetryPolicy, RpcClient
from yaqd.ipc.errors import RemoteException, RpcError
from yaqd.proto import riffle_pb2 as pb
from yaqd.security import Token

log = logging.getLogger(__name__)

_CANCEL_TIMEOUT_S = 10.0
#: a merger that is being started anew is worth a moment
_RETRIES = RetryPolicy(attempts=4, first_delay_s=0.2, delay_max_s=1.0)


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
    ) -> None:
        """`prefix` tells this job manager's merges from those of one before it; `address_of` a node's merger."""
        self._job_id, self._prefix = job_id, prefix
        self._token = token
        self._address_of = address_of
        self._timeout_s = timeout_s
        self._on_merged, self._on_failed = on_merged, on_failed
        self._clients: dict[tuple[str, int], RpcClient] = {}
        self._merges: dict[int, tuple[asyncio.Task[None], tuple[str, int] | None]] = {}
        self._cancels: set[asyncio.Task[None]] = set()

    def send(self, decision: SendMerge) -> None:
        address = self._address_of(decision.node)
        task = asyncio.get_running_loop().create_task(self._merge(decision, address))
        self._merges[decision.merge] = (task, address)
        task.add_done_callback(lambda _: self._merges.pop(decision.merge, None))

    def cancel(self, decisions: list[CancelMerge]) -> None:
        """One call for each merger."""
        per_merger: dict[tuple[str, int], list[int]] = {}
        for decision in decisions:
            task, address = self._merges.pop(decision.merge, (None, None))
            if task is not None:
                task.cancel()
            if address is not None:
                per_merger.setdefault(address, []).append(decision.merge)
        for address, merges in per_merger.items():
            task = asyncio.get_running_loop().create_task(self._cancel(address, merges))
            self._cancels.add(task)
            task.add_done_callback(self._cancels.discard)

    async def close(self) -> None:
        for task in [task for task, _ in self._merges.values()] + list(self._cancels):
            task.cancel()
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
        request = pb.MergeRequest(
            job_id=self._job_id,
            merge_id=self._name(decision.merge),
            map_ids=[output.attempt for output in decision.outputs],
        )
        try:
            response = await self._client(address).call(RiffleMergerProtocol.merge, request)
        except (RpcError, RemoteException, OSError) as error:
            log.warning("merge %d at %s came to nothing: %s", decision.merge, decision.node, error)
            self._on_failed(decision.merge, str(error))
            return
        self._on_merged(decision.merge, response)

    async def _cancel(self, address: tuple[str, int], merges: list[int]) -> None:
        request = pb.CancelRequest(job_id=self._job_id, merge_ids=[self._name(merge) for merge in merges])
        try:
            await self._client(address).call(RiffleMergerProtocol.cancel, request, timeout_s=_CANCEL_TIMEOUT_S)
        except (RpcError, RemoteException, OSError) as error:
            log.warning("%d merges at %s:%d were not cancelled: %s", len(merges), *address, error)
