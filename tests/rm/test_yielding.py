"""Masters that fill what is left of a cluster: the youngest yields, and every job gets through."""

from collections import deque
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rm.scheduler.decisions import Allocate, Outcome, Preempt
from rm.scheduler.events import (
    ApplicationEnded,
    AttemptEnded,
    AttemptStarted,
    ContainerEnded,
    MastersDue,
    NodeDraining,
    NodeLeft,
    NodeResized,
    SchedulerEvent,
)
from rm.scheduler.view.calculators import AllocationBounds
from tests.rm.rm_commands import command
from tests.rm.rm_harness import ManualClock, ask, cluster
from tests.rm.rm_world import DOMINANT, GB, HALVES, ONE_QUEUE, SLOT, World, queues, row
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId, NodeId, Resource

TWO: dict[str, Any] = {name.replace(".", "__"): value for name, value in HALVES.items()}
#: between two looks, and how long nothing may stand still, s
STEP_S = 3.0
MOST_S = 60.0


class Job:
    def __init__(self, app_id: ApplicationId, tasks: int, size: int, runs_s: float) -> None:
        self.id, self.left, self.size, self.runs_s = app_id, tasks, size, runs_s
        self.number = 1
        self.master: ContainerId | None = None
        #: when each ends
        self.running: dict[ContainerId, float] = {}
        self.asked_at = 0.0

    @property
    def attempt_id(self) -> ApplicationAttemptId:
        return ApplicationAttemptId(self.id, self.number)


class Life(World):
    """Nodes, and jobs of a master and some tasks, whose masters ask a while after their start."""

    def __init__(self, after_s: float = 20.0, **more: str) -> None:
        lines = {**ONE_QUEUE, "maximum-am-resource-percent": "1", "resource-calculator": DOMINANT}
        bounds = AllocationBounds(SLOT, Resource(8 * GB, 8))
        super().__init__(queues(lines, **more), bounds=bounds, validates=False, masters_yield_after_s=after_s)
        self.jobs: dict[ApplicationId, Job] = {}
        self.yields: list[ApplicationId] = []
        self.nodes: dict[NodeId, int] = {}

    def tell(self, event: SchedulerEvent) -> list[Outcome]:
        """Preempted masters end, and are tried again, after what else was decided."""
        decisions = super().tell(event)
        for decision in decisions:
            if isinstance(decision, Preempt):
                job = self.jobs[decision.container_id.application_id]
                assert decision.container_id == job.master and not job.running, "only who has nothing to lose"
                self.yields.append(job.id)
                self.try_again(job)
        return decisions

    def follow(self, decision: Outcome) -> None:
        super().follow(decision)
        if isinstance(decision, Allocate):
            job = self.jobs[decision.container_id.application_id]
            if decision.is_master:
                job.master, job.asked_at = decision.container_id, self.now + STEP_S
            else:
                job.left -= 1
                job.running[decision.container_id] = self.now + job.runs_s

    def try_again(self, job: Job) -> None:
        """Its master's container is over, and all that it had with it."""
        lost = [*job.running, *([job.master] if job.master is not None else [])]
        job.left, job.master, job.running = job.left + len(job.running), None, {}
        self.tell(AttemptEnded(job.attempt_id))
        job.number += 1
        self.tell(AttemptStarted(job.attempt_id, (row(priority=0),)))
        for container_id in lost:
            self.tell(ContainerEnded(container_id))

    def add(self, number: int, cores: int) -> NodeId:
        node_id = self.join(f"h{number}", SLOT * cores)
        self.nodes[node_id] = cores
        return node_id

    def lose(self, node_id: NodeId) -> None:
        del self.nodes[node_id]
        self.tell(NodeLeft(node_id))
        gone = {c for c, held in self.scheduler.view.containers.items() if held.node_id == node_id}
        for job in list(self.jobs.values()):
            if job.master in gone:
                self.try_again(job)
            for container_id in gone & job.running.keys():
                del job.running[container_id]
                job.left += 1
                self.tell(ContainerEnded(container_id))
                self.want(job)

    def submit(
        self, queue: str = "default", user: str = "ann", tasks: int = 2, size: int = 1, runs_s: float = 5.0
    ) -> Job:
        app_id, _ = self.submits(queue, user)
        job = self.jobs[app_id] = Job(app_id, tasks, size, runs_s)
        self.tell(AttemptStarted(job.attempt_id, (row(priority=0),)))
        return job

    def want(self, job: Job) -> None:
        if job.master is not None and self.now >= job.asked_at:
            self.asks(job.attempt_id, row(count=job.left, size=SLOT * job.size))

    def step(self) -> None:
        """Three seconds pass."""
        self.now += STEP_S
        for job in list(self.jobs.values()):
            for container_id in [c for c, ends in job.running.items() if ends <= self.now]:
                del job.running[container_id]
                self.tell(ContainerEnded(container_id))
            if job.left == 0 and not job.running:
                del self.jobs[job.id]
                assert job.master is not None
                self.tell(AttemptEnded(job.attempt_id))
                self.tell(ContainerEnded(job.master))
                self.tell(ApplicationEnded(job.id))
            elif job.left:
                self.want(job)
        for node_id in self.nodes:
            self.beats(node_id)
        self.tell(MastersDue())
        self.scheduler.validate()

    def would_go_on(self) -> list[Job]:
        """Nothing but masters runs, and the end of one would leave room for a task of another job."""
        view = self.scheduler.view
        if any(job.running for job in self.jobs.values()):
            return []
        stuck = [job for job in self.jobs.values() if job.master is not None and job.left]
        found = []
        for master in stuck:
            assert master.master is not None
            node = view.nodes.get(view.containers[master.master].node_id)
            if node is not None and not node.is_draining:
                found += [job for job in stuck if job is not master and job.size <= node.free.vcores + 1]
        return found

    def why(self, job: Job) -> str:
        return self.why_waits(job.attempt_id)


def passes(life: Life, seconds: float) -> None:
    until = life.now + seconds
    while life.now < until and life.jobs:
        life.step()


def test_two_masters_on_what_is_left_of_two_nodes() -> None:
    life = Life()
    life.add(1, 2)
    second = life.add(2, 2)
    old, young = life.submit(tasks=9, runs_s=50.0), life.submit(tasks=3, runs_s=50.0)
    life.lose(second)
    passes(life, 21.0)
    assert (old.master is not None and young.master is not None, old.running, young.running) == (True, {}, {})
    assert life.yields == [], "it may still come right by itself"
    passes(life, 6.0)
    assert life.yields == [young.id] and young.master is None
    assert len(old.running) == 1
    assert life.why(young) == (
        f"application masters alone left no room, so its master made way for {old.id}: it starts again once that has "
        "ended or there is room for both"
    )
    passes(life, 1200.0)
    assert life.jobs == {} and life.yields == [young.id], "each got through, and once was enough"


def test_who_yielded_starts_again_at_once_when_a_node_comes() -> None:
    life = Life()
    life.add(1, 2)
    old, young = life.submit(tasks=2, runs_s=1000.0), life.submit(tasks=1)
    passes(life, 30.0)
    assert life.yields == [young.id] and old.running
    life.add(2, 2)
    passes(life, 2 * STEP_S)
    assert young.master is not None


def test_nobody_yields_to_who_would_find_no_room_all_the_same() -> None:
    life = Life()
    life.add(1, 2)
    life.submit(size=2)
    life.submit(size=2)
    passes(life, 300.0)
    assert life.yields == []


def test_the_older_yields_where_only_the_younger_would_go_on() -> None:
    life = Life()
    life.add(1, 2)
    large, small = life.submit(size=2), life.submit(size=1)
    passes(life, 27.0)
    assert life.yields == [large.id] and small.running


@pytest.mark.parametrize(("size", "yielder"), [(2, "young"), (3, "old")])
def test_what_is_free_where_a_node_is_reserved_in_vain_is_no_room_for_others(size: int, yielder: str) -> None:
    """Two masters on three cores: the third one is kept for the old job, which needs more, and the young one waits.

    Where the old one needs all three, the end of the young one's master would not help it.
    """
    life = Life()
    life.add(1, 3)
    old, young = life.submit(tasks=2, size=size, runs_s=50.0), life.submit(tasks=2, runs_s=50.0)
    young.asked_at = 30.0
    passes(life, 27.0)
    assert [hold.attempt.id for hold in life.scheduler.view.holds.reserved.values()] == [old.attempt_id]
    passes(life, 21.0)
    assert young.master is not None and not young.running and life.yields == [], "it may still come right by itself"
    passes(life, 9.0)
    assert life.yields == [{"old": old, "young": young}[yielder].id]
    assert [len(old.running), len(young.running)] == ([1, 0] if yielder == "young" else [0, 2])


def test_a_node_is_reserved_in_vain_too_where_masters_leave_the_queue_no_room() -> None:
    life = Life(**TWO, root__a__maximum_capacity="50")
    first = life.add(1, 6)
    life.submit("b", user="bob", tasks=3, runs_s=24.0)
    passes(life, 6.0)
    old = life.submit("a", tasks=1, size=2, runs_s=50.0)
    passes(life, 18.0)
    assert list(life.scheduler.view.holds.reserved) == [first]
    life.add(2, 1)
    young = life.submit("a", tasks=1)
    passes(life, 15.0)
    node = life.scheduler.view.nodes.get(first)
    assert node is not None and node.reserved is not None and node.free == SLOT * 5, "the queue may hold three"
    assert young.master is not None and not young.running and life.yields == []
    passes(life, 24.0)
    assert life.yields == [young.id] and old.running


def test_who_does_something_or_wants_nothing_is_left_alone() -> None:
    life = Life()
    life.add(1, 4)
    busy, quiet, waits = life.submit(runs_s=1000.0, tasks=1), life.submit(), life.submit()
    quiet.asked_at = float("inf")
    passes(life, 300.0)
    assert life.yields == [] and busy.running and waits.master is not None and not waits.running


def test_nothing_yields_where_it_is_said_that_none_shall() -> None:
    life = Life(after_s=float("inf"))
    life.add(1, 2)
    life.submit()
    life.submit()
    passes(life, 300.0)
    assert life.yields == []


@pytest.mark.parametrize(("how", "let"), [("lost", 1), ("smaller", 2)])
def test_masters_that_hold_nothing_yet_wait_again_for_their_share_when_a_cluster_shrinks(how: str, let: int) -> None:
    life = Life(maximum_am_resource_percent="0.5")
    life.add(1, 4)
    other = life.add(2, 4)
    first = life.submit(tasks=9, runs_s=1000.0)
    passes(life, 9.0)
    waiting = [life.submit() for _ in range(3)]
    wanted = life.scheduler.view.masters_wanted
    assert len(wanted) == 3 and first.running
    if how == "smaller":
        life.tell(NodeResized(other, Resource(GB, 1)))
    else:
        life.tell(NodeLeft(other))
        del life.nodes[other]
        for container_id in [c for c, held in life.scheduler.view.containers.items() if held.node_id == other]:
            first.running.pop(container_id)
            life.tell(ContainerEnded(container_id))
    assert wanted == {job.attempt_id for job in waiting[:let]}, "half of what is left, of which the first one has one"
    assert "may hold" in life.why(waiting[let])


def test_masters_that_fill_what_their_queue_may_hold_yield_too() -> None:
    life = Life(**TWO, root__a__maximum_capacity="50")
    for number in range(5):
        life.add(number, 2)
    other = life.submit("b", user="bob", tasks=2, runs_s=1000.0)
    jobs = [life.submit("a", runs_s=50.0) for _ in range(7)]
    passes(life, 9.0)
    masters = [job for job in jobs if job.master is not None]
    assert len(masters) == 5 and not any(job.running for job in masters)
    passes(life, 27.0)
    assert other.running and life.yields == [masters[-1].id] and masters[0].running


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6))
@example(seed=283484)  # a node reserved for one job, which masters leave no room there, kept another one waiting
def test_no_standstill_that_the_end_of_one_master_would_end_lasts_for_a_minute(seed: int) -> None:
    """Random nodes, queues and jobs; nodes are lost, drained and resized, and come back."""
    random = Random(seed)
    shape = random.choice(["one", "limited", "users"])
    limited = {**TWO, "root__a__maximum_capacity": "70"}
    users = {**TWO, "root__a__minimum_user_limit_percent": "40", "root__b__minimum_user_limit_percent": "40"}
    more: dict[str, Any] = {"one": {}, "limited": limited, "users": users}[shape]
    life = Life(**more, maximum_am_resource_percent=random.choice(["0.3", "0.6", "1"]))
    for number in range(random.randint(1, 4)):
        life.add(number, random.choice([2, 3, 4]))
    made, stuck = 0, deque[bool](maxlen=int(MOST_S / STEP_S) + 2)
    for _ in range(80):
        what = random.random()
        if what < 0.25 and made < 8:
            made += 1
            queue = "default" if shape == "one" else random.choice("ab")
            life.submit(queue, random.choice(["ann", "bob"]), random.randint(1, 4), random.choice([1, 1, 1, 2]), 7.0)
        elif what < 0.28 and len(life.nodes) > 1:
            life.lose(random.choice(sorted(life.nodes)))
        elif what < 0.30:
            life.tell(NodeDraining(random.choice(sorted(life.nodes))))
        elif what < 0.33:
            node_id = random.choice(sorted(life.nodes))
            life.tell(NodeResized(node_id, Resource(life.nodes[node_id] * GB, life.nodes[node_id])))
        life.step()
        stuck.append(bool(life.would_go_on()) and shape == "one")
        assert not (len(stuck) == stuck.maxlen and all(stuck)), (life.now, life.would_go_on())
    for number in range(20, 23):  # whatever was lost, there is room for every job now
        life.add(number, 4)
    for node_id, cores in life.nodes.items():
        life.tell(NodeResized(node_id, Resource(cores * GB, cores)))
    passes(life, 1200.0)
    assert life.jobs == {}, "some job never got through"


async def test_a_master_that_yields_is_tried_again_and_the_attempt_does_not_count() -> None:
    clock = ManualClock()
    settings = {"yarn.scheduler.capacity.maximum-am-resource-percent": "1", "yarn.resourcemanager.am.max-attempts": "1"}
    async with cluster(settings, clock=clock) as rm:
        node = await rm.node(memory_mb=2 * GB)
        (old, first), (young, second) = await rm.running(node), await rm.running(node)
        for master in (first, second):
            assert not (await master.allocate(ask(1))).allocated_containers
        for _ in range(8):
            clock.seconds += STEP_S
            looked = rm.manager.preemption._last
            await rm.until(lambda looked=looked: rm.manager.preemption._last != looked)  # type: ignore[misc]
            await node.beat()
        assert len((await first.allocate()).allocated_containers) == 1
        said = await command(rm, "explain", str(young))
        assert f"application masters alone leave no room, and {old} goes on without it" in said, "of what ended"
        assert f"its master made way for {old}" in said, "of the attempt that waits"
        await first.finish()
        node.end(ContainerId.make(ApplicationAttemptId(old, 1), 1))
        await node.beat()
        await rm.launched(young, node, attempt=2)
