"""Calls with very many asks: taken in in parts, with the same answer, while others have their turn."""

import asyncio
from operator import attrgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rm.services.application_master as service
from rm.applications.records import Attempt
from rm.scheduler.asks.intake import parts
from rm.scheduler.decisions import Outcome
from rm.scheduler.events import Asked, Estimated
from rm.scheduler.node_queues.spec import QueueingSpec
from rm.scheduler.opportunistic.placing import OpportunisticLimits
from tests.rm.rm_harness import Harness, ask, cluster
from tests.rm.rm_random_life import HOSTS, RACKS, spec
from tests.rm.rm_world import BOUNDS, SLOT, World
from yaqd.ipc.errors import ApplicationAttemptNotFound, InvalidResourceRequest
from yaqd.model import ApplicationAttemptId, ApplicationId, ExecutionType, Resource
from yaqd.policies.asks.rows import AskRow
from yaqd.proto import convert
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol, ApplicationMasterProtocol

ATTEMPT = ApplicationAttemptId(ApplicationId(1, 1), 1)

rows = st.builds(
    AskRow,
    st.integers(1, 3),
    st.sampled_from([-1, 7]),
    st.sampled_from([*HOSTS, *RACKS, "*", "*", "*"]),
    st.sampled_from([Resource(1024, 1), Resource(2048, 2)]),
    st.integers(0, 4),
    st.booleans(),
    st.sampled_from([ExecutionType.GUARANTEED, ExecutionType.GUARANTEED, ExecutionType.OPPORTUNISTIC]),
)
calls = st.lists(st.lists(rows, min_size=1, max_size=14).map(tuple), min_size=1, max_size=3)


def world_of(*, queues: bool, spare: bool) -> World:
    """Four nodes and an application."""
    made = World(
        spec(),
        bounds=BOUNDS,
        validates=False,
        queueing=QueueingSpec(bound=2, default_estimate_s=5.0) if queues else None,
        opportunistic=OpportunisticLimits(per_heartbeat=3) if spare else None,
    )
    for number, host in enumerate(HOSTS[:4]):
        node = made.join(host, SLOT * 4, rack=RACKS[number % 2])
        made.reports_opportunistic(node, 0, -1, 10)
        if queues:
            made.reports(node, 4, 0, float(number))
    assert made.begin("root.b", "ann", master=SLOT) == ATTEMPT
    made.tell(Estimated(ATTEMPT.application_id, 1, 10.0))
    return made


def wanted(world: World) -> object:
    attempt = world.attempt_of(ATTEMPT)
    assert not attempt.carried
    left = {a.key: (dict(a.counts), a.pending, a.capability, a.missed, set(a.strict)) for a in attempt.asks}
    return left, attempt.asks.pending, sorted(world.scheduler.view.containers)


@pytest.mark.slow
@given(calls, st.integers(1, 6), st.booleans(), st.booleans())
def test_a_call_in_parts_is_given_the_same_in_the_same_order(
    said: list[tuple[AskRow, ...]], size: int, queues: bool, spare: bool
) -> None:
    once, in_parts = world_of(queues=queues, spare=spare), world_of(queues=queues, spare=spare)
    for number, call in enumerate(said):
        asked = Asked(ATTEMPT, call, ("h1",) if number == 1 else (), ("h1",) if number == 2 else ())
        once.now = in_parts.now = float(number)
        whole = once.tell(asked)
        found: list[Outcome] = []
        for part in in_parts.scheduler.parts(asked, size):
            found += in_parts.tell(part)
            in_parts.scheduler.validate()
        assert found == whole
        assert wanted(in_parts) == wanted(once)


@given(st.lists(rows, max_size=40).map(tuple), st.integers(1, 9))
def test_every_row_is_in_one_part_and_those_of_one_ask_in_their_order(said: tuple[AskRow, ...], size: int) -> None:
    told = list(parts(Asked(ATTEMPT, said, ("a",), ("b",)), size, gives_opportunistic=False))
    assert all(1 <= len(part.rows) <= size for part in told)
    assert [part.continues for part in told] == [number > 0 for number in range(len(told))]
    key = attrgetter("priority", "allocation_request_id")
    told_rows = [(key(row), row.resource_name, row.count) for part in told for row in part.rows]
    assert told_rows == [(key(row), row.resource_name, row.count) for row in sorted(said, key=key)]
    assert [(part.blacklist_additions, part.blacklist_removals) for part in told[:1]] == [(("a",), ("b",))] * bool(said)


# ---- the daemon


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_ROWS_AT_ONCE", 5)


def storm(count: int = 2000) -> pb.AllocateRequest:
    asks = [ask(1, request_id=number) for number in range(count)]
    return pb.AllocateRequest(ask=asks, response_id=0, progress=0.5)


def attempt_of(rm: Harness, app_id: ApplicationId) -> Attempt:
    return rm.manager.cluster.applications[app_id].attempts[-1]


async def test_others_are_answered_while_a_storm_is_taken_in_and_it_is_answered_once() -> None:
    async with cluster() as rm:
        node = await rm.node(memory_mb=8192, vcores=8)
        _, other = await rm.running(node)
        app_id, master = await rm.running(node)
        attempt = attempt_of(rm, app_id)
        call = ApplicationMasterProtocol.allocate
        taken_in = asyncio.create_task(master.rpc.call(call, storm()))
        await rm.until(lambda: attempt.taking_in is not None)
        repeated = asyncio.create_task(master.rpc.call(call, storm()))
        assert len((await other.allocate(ask(1))).allocated_containers) == 1
        assert not taken_in.done(), "the other did not wait for it"
        answer = await taken_in
        assert len(answer.allocated_containers) == 5 and answer.response_id == 1
        assert await repeated == answer, "what is asked again meanwhile has the same answer"
        scheduled = rm.manager.scheduler.view.attempt(attempt.id)
        assert scheduled is not None and scheduled.asks.pending == 2000 - 5, "and is not taken in twice"


async def test_one_bad_row_of_a_storm_refuses_all_of_it() -> None:
    async with cluster({"yaq.rm.scheduler.resource-requests-max": "3000"}) as rm:
        node = await rm.node(memory_mb=8192, vcores=8)
        app_id, master = await rm.running(node)
        attempt, call = attempt_of(rm, app_id), ApplicationMasterProtocol.allocate
        bad = storm()
        bad.ask.append(ask(-1))
        for refused in (bad, storm(3500)):
            with pytest.raises(InvalidResourceRequest):
                await master.rpc.call(call, refused)
            scheduled = rm.manager.scheduler.view.attempt(attempt.id)
            assert scheduled is not None and not scheduled.asks.pending and not attempt.allocated
        assert len((await master.rpc.call(call, storm(20))).allocated_containers) == 7


async def test_an_attempt_that_ends_in_the_middle_of_its_storm(monkeypatch: pytest.MonkeyPatch) -> None:
    killed, turn = asyncio.Event(), service.ApplicationMasterService._still_takes_containers

    async def after_the_kill(attempt: Attempt) -> bool:
        await killed.wait()
        return await turn(attempt)

    monkeypatch.setattr(service.ApplicationMasterService, "_still_takes_containers", staticmethod(after_the_kill))
    async with cluster() as rm:
        node = await rm.node(memory_mb=8192, vcores=8)
        app_id, master = await rm.running(node)
        attempt = attempt_of(rm, app_id)
        taken_in = asyncio.create_task(master.rpc.call(ApplicationMasterProtocol.allocate, storm()))
        await rm.until(lambda: attempt.taking_in is not None)
        kill = pb.KillApplicationRequest(application_id=convert.application_id_pb(app_id))
        await rm.client.call(ApplicationClientProtocol.forceKillApplication, kill)
        await rm.until(lambda: attempt.is_over)
        killed.set()
        with pytest.raises(ApplicationAttemptNotFound):
            await taken_in
        assert rm.manager.scheduler.view.attempt(attempt.id) is None
        rm.manager.scheduler.validate()
