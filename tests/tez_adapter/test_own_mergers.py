"""Mergers in containers of the job's own: when they are asked for, held, replaced and given up; and their process."""

import asyncio
import secrets

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riffle_merger.plan.decisions import MapOutput, SendMerge
from riffle_merger.plan.own import own_mergers
from riffle_merger.service.protocol import RiffleMergerProtocol
from tests.examples import examples
from tests.tez_adapter.tez_own_mergers import DAG, JOB, SIZE, allocated, finish_maps, mergers, serving, shared
from tez_adapter.core import events as ev
from tez_adapter.core.dag import DagSpec, VertexSpec
from tez_adapter.core.machine import JobMachine
from tez_adapter.core.mergers import MERGER_PRIORITY, OwnMergers
from tez_adapter.merging.job_mergers import JobMergers
from tez_adapter.merging.links import MergerLinks
from tez_adapter.merging.settings import own_budget
from yaqd.config import Configuration
from yaqd.ipc import Caller
from yaqd.model import Resource
from yaqd.proto import riffle_pb2 as pb
from yaqd.security import JobTokenSecrets

# ---- what is asked for


@pytest.mark.parametrize(
    ("maps", "nodes", "gain_s", "count"),
    [
        (1000, 3, None, 1),
        (1000, 40, None, 10),
        (1000, 400, None, 16),
        (3, 400, None, 1),
        (1, 4, None, 0),
        (1000, 40, 1000.0, 10),
        (1000, 40, 7.0, 3),
        (1000, 40, 1.9, 0),
    ],
)
def test_a_few_mergers_do_for_many_nodes_and_none_where_they_cost_what_they_save(
    maps: int, nodes: int, gain_s: float | None, count: int
) -> None:
    assert own_mergers(maps, nodes, gain_s, most=16) == count
    assert own_mergers(maps, nodes, gain_s, most=0) == 0


def test_containers_are_asked_for_until_they_are_there_and_what_comes_beyond_goes_back() -> None:
    own = OwnMergers(SIZE, wait_s=10)
    assert own.asks() == []
    assert own.may_come
    own.want(2)
    [ask] = own.asks()
    assert (ask.priority, ask.count, ask.resource, ask.opportunistic) == (MERGER_PRIORITY, 2, SIZE, False)
    assert own.handle(allocated("a")) == [ev.LaunchMerger("a", "h:1")]
    assert own.handle(allocated("b")) == [ev.LaunchMerger("b", "h:1")]
    assert own.asks() == []
    assert own.handle(allocated("c")) == [ev.Release("c")]
    assert own.known() == []
    own.heard("a", 7001)
    own.heard("b", 99999)  # no port
    own.heard("unknown", 7002)
    assert own.known() == [("h", 7001)]


def test_what_concerns_tasks_is_left_to_the_machine() -> None:
    own = mergers()
    for event in (allocated("a", 10), ev.ContainerCompleted("a", 0), ev.LaunchFailed("a", "no"), ev.Tick()):
        assert own.handle(event) is None


def test_one_that_is_lost_is_replaced_and_after_some_the_job_does_without() -> None:
    own, machine = mergers(), JobMachine(DAG)
    for name in ("a", "b", "c"):
        assert own.wanted == 1
        own.handle(allocated(name))
        own.heard(name, 7001)
        assert own.lost("h", 7001) == [ev.Stop(name, "h:1", "merger: no answer")]
        assert own.known() == []
        assert own.handle(ev.ContainerCompleted(name, 143)) == []
    assert own.asks() == []
    assert not own.may_come
    assert own.tick(machine.vertices, 1.0) == []
    assert own.trouble == "3 of them ended early"


def test_a_container_that_its_node_refuses_is_given_back_even_after_the_end() -> None:
    own = mergers(2)
    own.handle(allocated("a"))
    own.handle(allocated("b"))
    assert own.handle(ev.LaunchFailed("a", "no")) == [ev.Release("a")]
    own.end()
    assert own.handle(ev.LaunchFailed("b", "no")) == [ev.Release("b")]
    assert own.handle(allocated("late")) == [ev.Release("late")]


# ---- when the job does without


@pytest.mark.parametrize(("headroom", "patience_s"), [(Resource(), 2.0), (Resource(9999, 9), 10.0)])
def test_mergers_give_way_where_tasks_get_no_room(headroom: Resource, patience_s: float) -> None:
    own, machine = mergers(), JobMachine(DAG)
    assert own.handle(ev.ClusterSeen(headroom, 1)) is None
    own.handle(allocated("a"))
    assert own.tick(machine.vertices, 0.0) == []
    assert own.tick(machine.vertices, patience_s) == []
    [stop] = own.tick(machine.vertices, patience_s + 0.1)
    assert isinstance(stop, ev.Stop)
    assert "room" in own.trouble


def test_mergers_do_not_give_way_while_tasks_run() -> None:
    own, machine = mergers(), JobMachine(DAG)
    own.handle(ev.ClusterSeen(Resource(), 1))
    own.handle(allocated("a"))
    machine.handle(allocated("m0", 10), 0.0)
    for now in (0.0, 5.0, 50.0):
        assert own.tick(machine.vertices, now) == []


def test_reduces_do_not_wait_for_ever_for_a_first_merger() -> None:
    own, machine = mergers(wait_s=10), JobMachine(DAG)
    own.tick(machine.vertices, 100.0)
    finish_maps(machine)
    for now in (101.0, 111.0):
        own.tick(machine.vertices, now)
        assert own.may_come
    own.tick(machine.vertices, 111.1)
    assert not own.may_come
    assert "none ran 10 s after the last map" in own.trouble


def test_one_that_runs_is_not_given_up_at_the_end_of_the_maps() -> None:
    own, machine = mergers(wait_s=10), JobMachine(DAG)
    own.handle(allocated("a"))
    own.heard("a", 7001)
    finish_maps(machine)
    machine.handle(allocated("r", 20), 0.0)
    for now in (0.0, 100.0):
        own.tick(machine.vertices, now)
    assert own.known() == [("h", 7001)]


def test_reduces_wait_hardly_at_all_where_the_cluster_has_no_room() -> None:
    own, machine = mergers(wait_s=10), JobMachine(DAG)
    own.handle(ev.ClusterSeen(Resource(), 1))
    finish_maps(machine)
    for now in (0.0, 1.5):
        own.tick(machine.vertices, now)
        assert own.may_come
    own.tick(machine.vertices, 1.6)
    assert own.trouble == "the cluster had no room for them"


@pytest.mark.parametrize(
    ("held", "headroom", "lent"),
    [(4, Resource(), 1), (3, Resource(), 0), (4, Resource(9999, 9), 0)],
)
def test_a_job_gives_a_container_back_for_a_merger_if_the_cluster_is_full(
    held: int, headroom: Resource, lent: int
) -> None:
    machine = JobMachine(DagSpec((VertexSpec("map", 20, SIZE, 10),)))
    machine.held.to_lend = 1
    names = [f"m{index}" for index in range(held)]
    for name in names:
        machine.handle(allocated(name, 10), 0.0)
    machine.handle(ev.ClusterSeen(headroom, 1), 0.0)
    given = [task for name in names for task in machine.handle(ev.TaskRequested(name), 0.0)]
    decisions: list[ev.Decision] = []
    for task in given:
        assert isinstance(task, ev.GiveTask)
        decisions += machine.handle(ev.AttemptSucceeded(task.attempt), 1.0)
    kinds = [type(decision) for decision in decisions]
    assert (kinds.count(ev.GiveExit), kinds.count(ev.GiveTask)) == (lent, held - lent)


STEPS = st.one_of(
    st.tuples(st.just("want"), st.integers(0, 5)),
    st.tuples(st.sampled_from(["come", "gone", "refused", "heard", "lost"]), st.integers(0, 9)),
    st.tuples(st.just("tick"), st.floats(0, 30)),
    st.tuples(st.just("end"), st.just(0)),
)


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None)
@given(st.lists(STEPS, max_size=60))
def test_each_container_is_started_once_and_ended_once(steps: list[tuple[str, float]]) -> None:
    own, machine, now = OwnMergers(SIZE, wait_s=10), JobMachine(DAG), 0.0
    live: set[str] = set()
    told_to_end: set[str] = set()
    used: set[str] = set()
    for kind, number in steps:
        name = f"c{number}"
        decisions: list[ev.Decision] | None = []
        if kind == "want":
            own.want(int(number))
        elif kind == "come" and name not in used:
            used.add(name)
            decisions = own.handle(allocated(name))
        elif kind in ("gone", "refused") and name in live:
            event = ev.ContainerCompleted(name, 1) if kind == "gone" else ev.LaunchFailed(name, "no")
            decisions = own.handle(event)
            assert decisions is not None
            live.discard(name)
        elif kind == "heard":
            own.heard(name, 7000 + int(number))
        elif kind == "lost":
            decisions = own.lost("h", 7000 + int(number))
        elif kind == "tick":
            now += number
            decisions = own.tick(machine.vertices, now)
        elif kind == "end":
            decisions = own.end()
        for decision in decisions or ():
            if isinstance(decision, ev.LaunchMerger):
                live.add(decision.container)
            elif isinstance(decision, ev.Stop):
                assert decision.container in live - told_to_end
                told_to_end.add(decision.container)
        assert {name for name in live if own.is_wanted(name)} == live - told_to_end
        assert len(own.known()) <= len(live - told_to_end)
        if own.is_over:
            assert not own.asks()
            assert live <= told_to_end


def test_a_map_too_small_for_a_merger_has_none() -> None:
    conf = Configuration.load(None, environ={})
    assert own_budget(conf, 256) == 0
    assert own_budget(conf, 319) == 0
    assert own_budget(conf, 320) == 64 << 20
    assert own_budget(conf, 1 << 20) == 512 << 20


@pytest.mark.slow
async def test_a_merge_waits_for_the_first_merger_and_at_a_lost_one_for_the_next() -> None:
    token = JobTokenSecrets(secrets.token_bytes).mint(JOB)
    own = mergers()
    heard: asyncio.Queue[tuple[int, str]] = asyncio.Queue()

    async def merge(request: pb.MergeRequest, _: Caller) -> pb.MergeResponse:
        return pb.MergeResponse(name=request.merge_id)

    async with serving(token) as (server, _), serving(token) as (gone, _):
        is_stopped = asyncio.Event()
        jobs = JobMergers(own, server, lambda decision: is_stopped.set() if isinstance(decision, ev.Stop) else None)
        server.register(RiffleMergerProtocol.merge, merge)
        links = MergerLinks(
            JOB,
            "am1",
            token,
            lambda _: None,
            timeout_s=10,
            on_merged=lambda number, answer: heard.put_nowait((number, answer.name)),
            on_failed=lambda number, reason: heard.put_nowait((number, reason)),
            shared=shared(jobs),
        )
        links.send(SendMerge(0, "hdfs", (MapOutput(0, "a", "hdfs", 1), MapOutput(1, "b", "hdfs", 1))))
        assert jobs.handle(ev.ContainerAllocated("a", "h:1", gone.address[0], SIZE, MERGER_PRIORITY))
        own.heard("a", gone.address[1])
        await gone.stop()
        jobs.handle(ev.ContainerCompleted("foreign", 0))
        jobs.tick(JobMachine(DAG), 0.0)
        await is_stopped.wait()
        jobs.handle(ev.ContainerAllocated("b", "h:1", server.address[0], SIZE, MERGER_PRIORITY))
        own.heard("b", server.address[1])
        jobs.tick(JobMachine(DAG), 0.0)
        assert await heard.get() == (0, "am1-000000")
        jobs.end("no room")
        links.send(SendMerge(1, "hdfs", (MapOutput(2, "c", "hdfs", 1),)))
        assert (await heard.get())[0] == 1
        await links.close()
