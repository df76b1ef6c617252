"""What queues at nodes go by is what was observed: heartbeats, masters' calls, and what runs beside each other."""

import logging
from itertools import count

import pytest

from rm.node_queues.core_time import CoreTime
from rm.scheduler.events import (
    Estimated,
    NodeBeat,
    NodeDraining,
    NodeQueueReported,
    NodeResized,
    WaitingTolerated,
)
from rm.scheduler.node_queues.slots import Slots
from rm.scheduler.node_queues.spec import QueueingSpec
from rm.scheduler.view.calculators import Dominant, MemoryOnly
from tests.rm.rm_commands import command
from tests.rm.rm_harness import FakeNode, Harness, ManualClock, cluster
from tests.rm.rm_life import Life
from tests.rm.rm_queueing import OURS, beat
from tests.rm.rm_world import GB
from yaqd.model import Resource
from yaqd.policies.queueing.place_scores import Affinity

#: the bound finds itself, and it is told from 1 s of polling and of heartbeats on
FOUND = {
    "yaq.queue.enabled": "true",
    "yaq.queue.bound": "",
    "yaq.queue.bound-policy": "poisson",
    "yaq.queue.target-utilization": "0.9",
    "yaq.queue.poll-gap": "1s",
}
SLOTS = 16


async def full_node(rm: Harness) -> FakeNode:
    node = await rm.node(memory_mb=SLOTS * 1024, vcores=SLOTS, capabilities=OURS)
    await beat(node, running=SLOTS)
    return node


def bound(rm: Harness, node: FakeNode) -> int:
    return rm.manager.scheduler.node_queues.bound_of(node.id)


async def test_a_node_that_is_refilled_less_often_may_have_more_waiting() -> None:
    clock = ManualClock()
    async with cluster(FOUND, clock=clock) as rm:
        node = await full_node(rm)
        found = []
        for interval_s in (1.0, 6.0, 1.0):
            for _ in range(40):
                clock.seconds += interval_s
                await beat(node, running=SLOTS)
            found.append(bound(rm, node))
        often, seldom, again = found
        assert 0 < often < seldom and again < seldom


async def test_containers_wait_at_nodes_where_that_gains_something_and_explain_says_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    clock = ManualClock()
    async with cluster({"yaq.queue.poll-gap": "100ms"}, clock=clock) as rm:
        node = await full_node(rm)
        app_id, _ = await rm.running(node)
        found = []
        for refill_ms in (20, 40_000, -(1 << 62), 1 << 62, None):
            for _ in range(300):
                clock.seconds += 1.0
                await beat(node, running=SLOTS, refill_ms=refill_ms)
            found.append(bound(rm, node))
        soon, late, lies, lies_more, heartbeats = found
        assert soon == lies == heartbeats == 0 < late < lies_more < 1000, "tasks are taken to run for 30 s"
        said = await command(rm, "explain", str(app_id))
        why = "a slot is refilled within 1.05 s, and tasks are taken to run 30 s"
        assert f"Queues at nodes: no node holds more containers ready than fit: {why}." in said
        told = [one.message for one in caplog.records if one.message.startswith("queues at nodes: ")]
        begins, ends = (
            "queues at nodes: 1 of 1 nodes hold up to 1 container more",
            "queues at nodes: no node holds more",
        )
        assert len(told) == 4 and all(one.startswith((begins, ends)[n % 2]) for n, one in enumerate(told)), told


class Core:
    """A ResourceManager's core, as busy as said."""

    def __init__(self, rm: Harness, clock: ManualClock) -> None:
        self._queueing, self._clock, self._used_s = rm.manager.queueing, clock, 0.0
        self._time = self._queueing._core_time = CoreTime(lambda: self._used_s)
        self._queueing.check(clock.now())

    def look(self, times: int, *, busy: float, working: int = 1) -> None:
        for _ in range(times):
            self._clock.seconds += 3.0
            self._used_s += 3.0 * busy
            for _ in range(working):
                self._time.ran(3.0)
            self._queueing.check(self._clock.now())


async def test_a_full_core_takes_queues_away_and_explain_says_so(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    clock = ManualClock()
    async with cluster({"yaq.queue.poll-gap": "40s"}, clock=clock) as rm:
        node = await full_node(rm)
        app_id, _ = await rm.running(node)
        core = Core(rm, clock)

        async def found() -> int:
            await beat(node, running=SLOTS)
            return bound(rm, node)

        core.look(50, busy=0.9)
        assert await found() > 0
        core.look(6, busy=1.0, working=100)
        assert await found() == 0, "it is tried without"
        core.look(7, busy=1.0, working=120)
        core.look(40, busy=1.0, working=120)
        assert await found() == 0
        full = "the ResourceManager's core is full, and more gets done, or may, where nothing waits at nodes"
        assert f"Queues at nodes: {full}." in await command(rm, "explain", str(app_id))
        core.look(20, busy=0.5)
        assert await found() > 0
        assert "core is full" not in await command(rm, "explain", str(app_id))
        told = [one.message for one in caplog.records if one.message.startswith("queues at nodes: ")]
        assert ["core is full" in one for one in told][:3] == [False, True, False]


@pytest.mark.parametrize(
    "said",
    [
        {"yaq.queue.enabled": "true"},
        {"yaq.queue.bound": "3"},
        {
            "yarn.resourcemanager.opportunistic-container-allocation.enabled": "true",
            "yarn.nodemanager.distributed-scheduling.enabled": "true",
        },
    ],
    ids=["always", "fixed", "by-proxies"],
)
async def test_where_an_operator_wants_queues_a_full_core_takes_none(said: dict[str, str]) -> None:
    clock = ManualClock()
    async with cluster({"yaq.queue.poll-gap": "40s", **said}, clock=clock) as rm:
        node = await full_node(rm)
        core = Core(rm, clock)
        for _ in range(20):
            core.look(1, busy=1.0)
            await beat(node, running=SLOTS)
            assert bound(rm, node) >= 1


@pytest.mark.parametrize(("poll_gap", "read"), [("100ms", 5), ("40s", 20)])
async def test_of_a_node_where_nothing_may_wait_few_reports_are_read(poll_gap: str, read: int) -> None:
    clock = ManualClock()
    async with cluster({"yaq.queue.poll-gap": poll_gap}, clock=clock) as rm:
        node = await full_node(rm)
        reports: list[NodeQueueReported] = []
        rm.manager.cluster.record = lambda now, event, decided: (
            reports.append(event) if isinstance(event, NodeQueueReported) else None
        )
        for _ in range(20):
            clock.seconds += 0.5
            await beat(node, running=SLOTS, refill_ms=20)
        assert len(reports) == read
        assert {one.gap_s for one in reports} == {0.5}, "the gap is the heartbeats', read or not"


async def test_a_node_where_nothing_may_wait_hears_how_long_its_tasks_run() -> None:
    """It says how long a newcomer would wait, and the scheduler goes by that where it keeps a node."""
    clock = ManualClock()
    async with cluster({"yaq.queue.poll-gap": "100ms"}, clock=clock) as rm:
        node = await full_node(rm)
        app_id, _ = await rm.running(node)
        clock.seconds += 2.0
        await beat(node, running=SLOTS, refill_ms=20)
        rm.manager.cluster.schedule(Estimated(app_id, 7, 20.0))
        told = []
        for _ in range(4):
            clock.seconds += 0.5
            jobs = (await beat(node, running=SLOTS, refill_ms=20)).yaq_orders.jobs
            told.append([(e.priority, e.estimate_ms) for job in jobs for e in job.estimates])
        assert bound(rm, node) == 0 and told == [[], [], [], [(7, 20_000)]]


def test_a_core_is_looked_at_from_time_to_time() -> None:
    used = count(10.0, 3.0)
    core = CoreTime(lambda: next(used))
    looks = [(now, core.look(now)) for now in range(100, 200)]
    assert [now for now, changed in looks if changed] == [118, 136], "six looks, six of a trial"
    assert core.is_there and next(used) == 10.0 + 3.0 * 34


async def test_where_queues_are_on_in_any_case_one_container_waits_at_least() -> None:
    async with cluster({"yaq.queue.enabled": "true", "yaq.queue.poll-gap": "100ms"}, clock=ManualClock()) as rm:
        node = await full_node(rm)
        await beat(node, running=SLOTS, refill_ms=20)
        assert bound(rm, node) == 1


async def test_masters_that_call_less_often_let_more_wait() -> None:
    clock = ManualClock()
    async with cluster(FOUND, clock=clock) as rm:
        node = await full_node(rm)
        _, master = await rm.running(node)
        found = []
        for calls_every in (1, 6, 1):
            for number in range(120):
                clock.seconds += 1.0
                if number % calls_every == 0:
                    await master.allocate()
                await beat(node, running=SLOTS)
            found.append(bound(rm, node))
        often, seldom, again = found
        assert 0 < often < seldom and again < seldom


@pytest.mark.parametrize(("interference", "chosen"), [(0.0, "a*"), (1.0, "b*")])
def test_tasks_of_one_stage_that_fight_for_a_node_go_elsewhere(interference: float, chosen: str) -> None:
    life = Life(QueueingSpec(bound=9, affinity=Affinity(interference=interference)))
    first, second = life.app(), life.app()
    life.node("a", wait=2.0)
    assert life.ask(first, 4) == ["a"] * 4
    life.node("b", wait=3.0)
    assert life.ask(second, 4) == ["b"] * 4
    # 2 s beside four of its like, or 3 s beside others
    assert life.ask(first, 1) == [chosen]


@pytest.mark.parametrize("queued", [0, 1])
def test_what_runs_beyond_a_nodes_size_has_no_slot(queued: int) -> None:
    life = Life(QueueingSpec(bound=3))
    node = life.node("a", gb=3)
    assert life.ask(life.app(has_master=True), 4) == ["a", "a", "a*", "a*"]
    master, *tasks = life.live
    life.tell(NodeResized(node, Resource(2048, 2)))
    waits, runs = frozenset(tasks[3:] if queued else ()), frozenset([master, *tasks[: 4 - queued]])
    [queue] = life.scheduler.node_queues.all()
    queue.slots = 0
    life.tell(NodeQueueReported(node, len(runs), len(waits), 1.0, waits, runs))
    assert (queue.running, queue.slots) == (5 - queued, 2)


def test_a_node_that_is_drained_no_longer_is_found_again_though_nobody_wanted_anything_just_then() -> None:
    life = Life()
    a, app = life.node("a"), life.app()
    assert life.ask(app, 4) == ["a"] * 4
    life.tell(NodeDraining(a))
    life.report(a, wait=2.0)
    assert life.ask(app, 1) == [], "nothing goes there"
    assert life.ask(app, 0) == []
    life.tell(NodeResized(a, Resource(4 * GB, 4)))
    assert life.ask(app, 1) == ["a*"]


def test_what_is_given_after_nodes_came_is_a_smaller_part_of_the_cluster() -> None:
    values = {"root.queues": "a,b", "root.a.capacity": "50", "root.b.capacity": "50"}
    life = Life(lines=values)
    life.node("a")
    app = life.app("root.a")
    life.ask(app, 1)
    life.node("b", gb=12)
    life.ask(app, 1)
    shares = life.scheduler.view.shares
    assert [given.share for given in shares._given.values()] == [1 / 4, 1 / 16]


def test_a_queue_that_drained_for_one_who_wants_nothing_any_more_takes_others() -> None:
    life = Life(QueueingSpec(bound=2, unaware_wait_s=0.5))
    a, aware, unaware = life.node("a"), life.app(), life.app()
    life.tell(WaitingTolerated(aware))
    assert life.ask(aware, 4) == ["a"] * 4
    assert life.ask(unaware, 1) == life.report(a) == []
    node = life.scheduler.view.nodes.get(a)
    assert node is not None and node.queue is not None and node.hold is not None
    assert life.ask(unaware, 0) == life.end("a") == []
    assert life.ask(aware, 3) == ["a", "a*", "a*"]


@pytest.mark.parametrize("queued", [0, 1])
def test_a_node_that_says_it_runs_more_than_it_can_is_sent_no_more_to_wait(queued: int) -> None:
    life = Life(QueueingSpec(bound=None))
    liar, honest = life.node("a"), life.node("b")
    life.ask(life.app(), 3000)
    for _ in range(9):
        life.now += 1.0
        life.tell(NodeQueueReported(liar, 100_000, queued, 0.0))
        life.tell(NodeBeat(liar))
        life.report(honest, queued=queued)
    said, true = life.scheduler.node_queues.all()
    assert (said.slots, said.bound) == (true.slots, true.bound) == (4, true.bound)
    sent = [sum(given.node_id == node for given in life.live.values()) for node in (liar, honest)]
    assert sent[0] <= sent[1] + 1 and sent[1] < 9


def test_a_node_runs_as_many_as_it_holds_though_the_smallest_container_has_become_larger() -> None:
    life = Life()
    life.node("a")
    assert life.ask(life.app(), 9) == ["a"] * 4 + ["a*"] * 2
    [node] = life.scheduler.view.nodes.all()
    slots = Slots(Dominant(), Resource(2 * GB, 1))
    assert [slots.believed(node, said) for said in (2, 3, 4, 9)] == [2, 3, 4, 4]
    assert Slots(Dominant(), Resource(GB // 8, 1)).believed(node, 9) == 4, "it has no more cores"
    assert Slots(MemoryOnly(), Resource(GB // 8, 1)).believed(node, 99) == 32
