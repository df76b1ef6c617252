"""The job manager's calls to mergers, over real RPC to one that does as it is told."""

import asyncio
import secrets
from collections.abc import AsyncIterator

import pytest

from riffle_merger.plan.decisions import CancelMerge, MapOutput, SendMerge
from riffle_merger.service.protocol import MergeFailed, RiffleMergerProtocol
from tez_adapter.merging.links import MergerLinks
from yaqd.ipc import Caller, RpcServer
from yaqd.proto import riffle_pb2 as pb
from yaqd.security import JobTokenSecrets, Token

JOB = "job_1_0001"
NODE = "127.0.0.1:1"


class Merger:
    """Answers `fail` with an error and `hang` never, by the name of the first map."""

    def __init__(self, server: RpcServer) -> None:
        self.merges: list[pb.MergeRequest] = []
        self.cancelled: asyncio.Queue[pb.CancelRequest] = asyncio.Queue()
        self.began = asyncio.Event()
        server.register(RiffleMergerProtocol.merge, self._merge)
        server.register(RiffleMergerProtocol.cancel, self._cancel)

    async def _merge(self, request: pb.MergeRequest, caller: Caller) -> pb.MergeResponse:
        assert caller.auth == "TOKEN"
        self.merges.append(request)
        self.began.set()
        if request.map_ids[0] == "fail":
            raise MergeFailed("the disk is full")
        if request.map_ids[0] == "hang":
            await asyncio.Event().wait()
        return pb.MergeResponse(name=request.merge_id, bytes=10, reads=2, writes=1)

    def _cancel(self, request: pb.CancelRequest, _: Caller) -> pb.CancelResponse:
        self.cancelled.put_nowait(request)
        return pb.CancelResponse(cancelled=1)


class Side:
    def __init__(self, token: Token, address: tuple[str, int] | None) -> None:
        self.heard: asyncio.Queue[tuple[int, str]] = asyncio.Queue()
        self.links = MergerLinks(
            JOB,
            "am1",
            token,
            lambda _: address,
            timeout_s=10,
            on_merged=lambda merge, answer: self.heard.put_nowait((merge, answer.name)),
            on_failed=lambda merge, reason: self.heard.put_nowait((merge, reason)),
        )

    def send(self, merge: int, *names: str) -> None:
        outputs = tuple(MapOutput(i, name, NODE, 1) for i, name in enumerate(names))
        self.links.send(SendMerge(merge, NODE, outputs))


@pytest.fixture
async def sides() -> AsyncIterator[tuple[Merger, Side]]:
    tokens = JobTokenSecrets(secrets.token_bytes)
    token = tokens.mint(JOB)
    server = RpcServer(name="merger", host="127.0.0.1", token_secrets=tokens)
    merger = Merger(server)
    await server.start()
    side = Side(token, server.address)
    try:
        yield merger, side
    finally:
        await side.links.close()
        await server.stop()


async def test_a_merge_is_asked_for_by_name_and_answered_when_it_is_done(sides: tuple[Merger, Side]) -> None:
    merger, side = sides
    side.send(7, "a", "b")
    assert await side.heard.get() == (7, "am1-000007")
    assert list(merger.merges[0].map_ids) == ["a", "b"]
    assert merger.merges[0].job_id == JOB


async def test_a_failed_merge_is_heard_with_its_reason(sides: tuple[Merger, Side]) -> None:
    _, side = sides
    side.send(0, "fail", "b")
    merge, reason = await side.heard.get()
    assert merge == 0
    assert "the disk is full" in reason


async def test_cancelled_merges_go_in_one_call_and_nothing_more_is_heard_of_them(sides: tuple[Merger, Side]) -> None:
    merger, side = sides
    side.send(0, "hang", "b")
    side.send(1, "hang", "c")
    await merger.began.wait()
    side.links.cancel([CancelMerge(0, NODE), CancelMerge(1, NODE)])
    assert list((await merger.cancelled.get()).merge_ids) == ["am1-000000", "am1-000001"]
    side.send(2, "a", "b")
    assert await side.heard.get() == (2, "am1-000002")
    assert side.heard.empty()


@pytest.mark.slow
@pytest.mark.parametrize("is_closed", [True, False])
async def test_a_merger_that_is_not_there_fails_the_merge(is_closed: bool) -> None:
    address = None
    if is_closed:
        server = RpcServer(name="merger", host="127.0.0.1", token_secrets=JobTokenSecrets(secrets.token_bytes))
        await server.start()
        address = server.address
        await server.stop()
    side = Side(JobTokenSecrets(secrets.token_bytes).mint(JOB), address)
    side.send(0, "a", "b")
    merge, reason = await side.heard.get()
    assert merge == 0
    assert reason
    await side.links.close()
