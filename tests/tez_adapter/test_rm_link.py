"""What a job manager tells a ResourceManager that has begun anew, or that may not have heard it."""

import asyncio
import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.tez_adapter.tez_driver import mapreduce
from tez_adapter.core.machine import JobMachine
from tez_adapter.master.left import WorkLeft
from tez_adapter.master.rm_link import ResourceManagerLink
from yaqd.ipc import Caller, RpcServer
from yaqd.ipc.errors import ApplicationMasterNotRegistered, Retriable, RpcConnectionError
from yaqd.model import ApplicationAttemptId, ApplicationId
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationMasterProtocol as Protocol
from yaqd.proto.words import STAGES
from yaqd.security import AMRMTokenSecrets, RollingKeys

ATTEMPT = ApplicationAttemptId(ApplicationId(1, 1), 1)


class Scheduler:
    """Answers of a ResourceManager: one for each call, an error where it is one; then none."""

    def __init__(self, *answers: Exception | None) -> None:
        self.tokens = AMRMTokenSecrets(RollingKeys(now=0.0, random=os.urandom))
        self.rpc = RpcServer(name="scheduler", host="127.0.0.1", token_secrets=self.tokens, allow_simple=False)
        self.rpc.register(Protocol.registerApplicationMaster, self._register)
        self.rpc.register(Protocol.allocate, self._allocate)
        self._answers = list(answers)
        self.requests: list[pb.AllocateRequest] = []
        self.understood: list[list[str]] = []
        self.is_done = asyncio.Event()

    def _register(
        self, request: pb.RegisterApplicationMasterRequest, _: Caller
    ) -> pb.RegisterApplicationMasterResponse:
        self.understood.append(list(request.yaq_understands))
        return pb.RegisterApplicationMasterResponse(scheduler_resource_types=[pb.MEMORY])

    async def _allocate(self, request: pb.AllocateRequest, _: Caller) -> pb.AllocateResponse:
        self.requests.append(request)
        if not self._answers:
            self.is_done.set()
            await asyncio.Event().wait()
        answer = self._answers.pop(0)
        if answer is not None:
            raise answer
        return pb.AllocateResponse(response_id=request.response_id + 1)

    def blacklists(self) -> list[tuple[list[str], list[str]]]:
        told = [r.blacklist_request for r in self.requests]
        return [(list(t.blacklist_additions), list(t.blacklist_removals)) for t in told]


def link_to(
    scheduler: Scheduler,
    answered: Callable[[pb.AllocateResponse], None] = lambda _: None,
    registered: Callable[[pb.RegisterApplicationMasterResponse], None] = lambda _: None,
) -> ResourceManagerLink:
    machine = JobMachine(mapreduce(1, 0))
    return ResourceManagerLink(
        scheduler.rpc.address,
        str(ATTEMPT),
        scheduler.tokens.mint(ATTEMPT),
        asks=machine.asks,
        progress=machine.progress,
        left=WorkLeft(machine, lambda: 0.0, lambda _: None),
        on_registered=registered,
        on_response=answered,
        heartbeat_s=1.0,
        options={},  # type: ignore[typeddict-item]
    )


async def converse(scheduler: Scheduler, *steps: Callable[[ResourceManagerLink], None]) -> int:
    """One step after each answer; how often the job manager heard of a registration."""
    await scheduler.rpc.start()
    left = list(steps)
    registered: list[pb.RegisterApplicationMasterResponse] = []

    def answered(_: pb.AllocateResponse) -> None:
        if left:
            left.pop(0)(link)

    link = link_to(scheduler, answered, registered.append)

    async def heartbeats() -> None:
        while True:
            try:
                await link.run()
            except RpcConnectionError:
                continue

    try:
        await link.register("h", 1, "")
        running = asyncio.create_task(heartbeats())
        await asyncio.wait_for(scheduler.is_done.wait(), 20)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    finally:
        await link.close()
        await scheduler.rpc.stop()
    assert all(list(answer.scheduler_resource_types) == [pb.MEMORY] for answer in registered)
    return len(registered)


@pytest.mark.parametrize(
    ("error", "registrations"), [(ApplicationMasterNotRegistered("who?"), 2), (Retriable("not now"), 1)]
)
async def test_hosts_to_avoid_are_told_again(error: Exception, registrations: int) -> None:
    scheduler = Scheduler(None, None, None, error, None)
    steps = (
        lambda link: link.blacklist(("h1", "h2", "h3"), ()),
        lambda link: link.blacklist((), ("h2",)),
        lambda link: link.blacklist((), ("h3",)),
    )
    assert await converse(scheduler, *steps) == registrations
    nothing: tuple[list[str], list[str]] = ([], [])
    lost: Any = ([], ["h3"])
    told = [nothing, (["h1", "h2", "h3"], []), ([], ["h2"]), lost]
    again = (["h1"], []) if registrations == 2 else (["h1"], ["h3"])
    assert scheduler.blacklists() == [*told, again, nothing]
    assert scheduler.understood == [[STAGES]] * registrations


async def test_what_was_heard_is_told_once() -> None:
    scheduler = Scheduler(None, None, None)
    assert await converse(scheduler, lambda link: link.blacklist(("h1",), ())) == 1
    assert scheduler.blacklists() == [([], []), (["h1"], []), ([], []), ([], [])]


async def test_more_that_is_asked_for_and_other_containers_that_wait_for_a_word_are_told_at_once() -> None:
    scheduler = Scheduler()
    await scheduler.rpc.start()
    link = link_to(scheduler)
    woken = []
    for wanted, idle in ((2, 0), (2, 0), (1, 0), (1, 1), (1, 1), (1, 0), (2, 0)):
        link._wake.clear()
        link.wake_if_changed((wanted,), idle)
        woken.append(link._wake.is_set())
    await link.close()
    await scheduler.rpc.stop()
    assert woken == [True, False, False, True, False, True, True]
