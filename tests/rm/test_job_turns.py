"""Leaf queues that serve their applications by how much is left of them."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rm.scheduler.asks.job_starvation import JobStarvation
from rm.scheduler.decisions import Allocate, Outcome
from rm.scheduler.events import (
    ApplicationEnded,
    ApplicationMoved,
    ContainerEnded,
    Estimated,
    NodeJoined,
    QueueingChanged,
    QueuesRefreshed,
    WaitingTolerated,
)
from rm.scheduler.node_queues.spec import QueueingSpec
from rm.scheduler.queues.spec import QueueConfigError, SchedulerSpec
from rm.scheduler.view.calculators import AllocationBounds
from tests.examples import examples
from tests.rm.rm_world import SLOT, World, queues, row
from yaqd.model import ApplicationAttemptId, ContainerId, NodeId

NODE = NodeId("a", 1)


def spec(ordering: str, other: str = "fifo") -> SchedulerSpec:
    values = {
        "root.queues": "jobs,rest",
        "root.jobs.capacity": "60",
        "root.rest.capacity": "40",
        "root.jobs.maximum-capacity": "100",
        "root.jobs.user-limit-factor": "10",
        "root.jobs.ordering-policy": ordering,
        "root.rest.ordering-policy": other,
        "maximum-am-resource-percent": "1.0",
    }
    return queues(values)


class Cluster(World):
    """One node of a few slots; the clock moves when a test says so, and every event is checked."""

    def __init__(
        self,
        ordering: str,
        slots: int = 4,
        *,
        queueing: QueueingSpec | None = None,
        starvation: JobStarvation = JobStarvation(),
        reserve_after_s: float = 5.0,
    ) -> None:
        super().__init__(
            spec(ordering),
            bounds=AllocationBounds(SLOT, SLOT * 4),
            queueing=queueing,
            job_starvation=starvation,
            reserve_after_s=reserve_after_s,
        )
        self.running: list[ContainerId] = []
        self.tell(NodeJoined(NODE, "/r", SLOT * slots))

    def follow(self, decision: Outcome) -> None:
        super().follow(decision)
        if isinstance(decision, Allocate):
            self.running.append(decision.container_id)

    def app(self, *, queue: str = "jobs", priority: int = 0) -> ApplicationAttemptId:
        """Its master asks, and runs if there is room."""
        return self.begin(queue, "ann", priority=priority, master=SLOT)

    def ask(self, attempt: ApplicationAttemptId, tasks: int, priority: int = 20) -> None:
        self.asks(attempt, row(count=tasks, priority=priority))

    def beat(self, after_s: float = 1.0) -> None:
        self.now += after_s
        self.beats(NODE)

    def turns(self, tasks: int) -> list[int]:
        """Whose tasks start as those before them end, a second each."""
        started = []
        for _ in range(tasks):
            before = len(self.running)
            self.beat()
            ended = next(c for c in self.running if c.id != 1)
            self.running.remove(ended)
            self.tell(ContainerEnded(ended))
            started += [c.application_id.id for c in self.running[before - 1 :]]
        return started


def test_fewest_remaining_tasks_first() -> None:
    c = Cluster("lrtf", slots=4)
    large, small = c.app(), c.app()
    c.ask(large, 10)  # two of them start
    c.ask(small, 3)
    assert c.turns(4) == [2, 2, 2, 1]


def test_an_equal_job_that_seems_a_little_shorter_does_not_pass() -> None:
    c = Cluster("srjf", slots=4)
    first, second = c.app(), c.app()
    for attempt, estimate_s in ((first, 10.05), (second, 9.98)):
        c.tell(Estimated(attempt.application_id, 20, estimate_s))
        c.ask(attempt, 4)
    assert c.turns(6) == [1, 1, 2, 2, 2, 2]


@pytest.mark.parametrize("by", ["its word", "settings"])
def test_a_master_that_comes_to_tolerate_waiting_takes_its_place_by_what_is_left(by: str) -> None:
    c = Cluster("srjf", slots=2, queueing=QueueingSpec(unaware_wait_s=0.0))
    attempt = c.app()
    c.beat()  # its master runs
    c.ask(attempt, 2, priority=10)
    c.beat()  # one of these
    c.ask(attempt, 3, priority=20)  # none of what is served last: cut off
    view = c.scheduler.view
    app = view.applications[attempt.application_id]
    before = view.order_key(app)
    c.tell(WaitingTolerated(attempt) if by == "its word" else QueueingChanged(QueueingSpec(unaware_wait_s=math.inf)))
    assert view.order_key(app) != before


def test_by_arrival_the_same_jobs_take_other_turns() -> None:
    c = Cluster("ejf", slots=4)
    large, small = c.app(), c.app()
    c.ask(large, 6)
    c.ask(small, 3)
    assert c.turns(6) == [1, 1, 1, 1, 2, 2]


def test_a_newcomer_finds_its_place_at_once() -> None:
    c = Cluster("lrtf", slots=5)
    first, second, third = c.app(), c.app(), c.app()
    c.ask(first, 10)
    c.ask(second, 6)
    c.beat()
    c.ask(third, 2)  # within the interval of the ranking before
    ended = next(i for i in c.running if i.id != 1)
    assert [d.container_id.application_id.id for d in c.tell(ContainerEnded(ended)) if isinstance(d, Allocate)] == [3]


def test_remaining_work_is_what_is_known_of_durations() -> None:
    c = Cluster("srjf", slots=4, queueing=QueueingSpec(bound=0))
    few_long, many_short = c.app(), c.app()
    c.tell(Estimated(few_long.application_id, 20, 100.0))
    c.tell(Estimated(many_short.application_id, 20, 1.0))
    c.ask(few_long, 4)
    c.ask(many_short, 5)
    assert c.turns(6) == [2, 2, 2, 2, 2, 1]


def test_who_was_passed_for_a_minute_goes_first_with_all_that_it_waits_for() -> None:
    c = Cluster("lrtf", slots=3)
    small, large = c.app(), c.app()
    c.ask(small, 1)
    c.ask(large, 200)
    c.now += 1.0
    c.ask(small, 150)
    turns: list[int] = []
    for _ in range(150):
        turns += c.turns(1)
        asked = c.scheduler.view.attempt(large)
        assert asked is not None
        c.ask(large, asked.asks.pending)  # as masters do in every call: that begins no new wait
    first = turns.index(2)
    assert 43 <= first <= 48, "three quarters of the threshold"
    assert 56 <= turns[first:][:84].count(2) <= 64, "five sevenths, so that the order has the rest"


def test_who_asked_first_is_passed_by_nobody() -> None:
    """A job that would wait in order of arrival too is not starved by that."""
    c = Cluster("lrtf", slots=3)
    small, large = c.app(), c.app()
    c.ask(small, 100)
    c.now += 1.0
    c.ask(large, 200)
    assert set(c.turns(90)) == {1}


def test_time_in_which_nobody_waited_starves_nobody() -> None:
    c = Cluster("lrtf", slots=3)
    small, large = c.app(), c.app()
    c.now += 3600.0
    c.ask(large, 20)
    c.now += 1.0
    c.ask(small, 10)
    assert c.turns(10) == [1] * 10


@pytest.mark.parametrize("by", ["a move", "a refresh", "the first order of all"])
def test_time_where_no_order_passed_anybody_starves_nobody(by: str) -> None:
    first = "fifo" if by == "the first order of all" else "lrtf"
    c = Cluster(first, slots=4)
    if by == "a refresh":
        c.tell(QueuesRefreshed(spec("fair")))
    large = c.app(queue="jobs" if by != "a move" else "rest")
    small = c.app()
    c.ask(large, 30)
    c.now += 3600.0
    c.beat()
    c.ask(small, 10)
    c.tell(QueuesRefreshed(spec("lrtf")) if by != "a move" else ApplicationMoved(large.application_id, "jobs"))
    c.turns(3)
    app = c.scheduler.view.applications[large.application_id]
    assert app.leaf.path == "root.jobs" and not c.scheduler.view.jobs.of(app.id).is_starved


def test_other_limits_hold_for_those_that_wait_already() -> None:
    c = Cluster("lrtf", slots=4)
    small, large = c.app(), c.app()
    c.ask(small, 2)
    c.ask(large, 60)
    c.now += 1.0
    c.ask(small, 40)
    assert set(c.turns(20)) == {1}
    c.tell(QueueingChanged(None, JobStarvation(10.0)))
    assert c.turns(4) == [1, 2, 2, 2], "from the next look on"


@settings(max_examples=6, deadline=None)
@given(st.integers(8, 20), st.lists(st.tuples(st.integers(0, 4), st.integers(1, 5)), min_size=25, max_size=30))
def test_no_job_is_later_than_by_arrival_by_more_than_half_and_the_threshold(
    tasks: int, jobs: list[tuple[int, int]]
) -> None:
    """`jobs`: seconds after the one before, tasks of a second each on one slot; before them one of so many `tasks`."""
    jobs = [(0, tasks), *jobs]
    taken = {order: ends(order, jobs) for order in ("lrtf", "ejf")}
    for ours, by_arrival in zip(taken["lrtf"], taken["ejf"], strict=True):
        assert ours <= 1.5 * by_arrival + 10.0 + 5.0  # each look comes after the fact


def ends(order: str, jobs: list[tuple[int, int]]) -> list[float]:
    """Of each job how long after its asking its last task began."""
    c = Cluster(order, slots=len(jobs) + 1, starvation=JobStarvation(10.0, math.inf))
    c.validates = False  # thousands of steps
    attempts = [c.app() for _ in jobs]
    asked, last, came = [0.0] * len(jobs), [0.0] * len(jobs), 0.0
    waiting = []
    for number, (gap, tasks) in enumerate(jobs):
        came += gap
        waiting.append((came, number, tasks))
    while waiting or any(i.id != 1 for i in c.running):
        while waiting and waiting[0][0] <= c.now:
            _, number, tasks = waiting.pop(0)
            c.ask(attempts[number], tasks)
            asked[number] = last[number] = c.now
        if not any(i.id != 1 for i in c.running):
            c.now += 1.0
            continue
        for number in c.turns(1):
            last[number - 1] = c.now
    c.scheduler.validate()
    return [at - since for at, since in zip(last, asked, strict=True)]


def test_a_job_without_its_master_comes_first_and_a_priority_before_that() -> None:
    c = Cluster("lrtf", slots=2)
    running = c.app()
    c.ask(running, 2)
    c.app()  # its master waits
    assert c.turns(1) == [2]
    urgent = Cluster("lrtf", slots=3)
    one, two = urgent.app(), urgent.app(priority=5)
    urgent.ask(one, 2)
    urgent.ask(two, 9)
    assert urgent.turns(2) == [2, 2]


@pytest.mark.parametrize(("starve_s", "told_at"), [(1000.0, 0.0), (math.inf, 0.0), (math.inf, 40.0)])
def test_work_that_is_left_times_its_ratio_starves_whatever_the_longest_wait_is(
    starve_s: float, told_at: float
) -> None:
    """min(ST, ST_r x what is left): three times 20 s here, where that is known. It may be said late. Three quarters of
    it may go by at the ResourceManager."""
    c = Cluster("srjf", slots=3, starvation=JobStarvation(starve_s, 3.0), reserve_after_s=math.inf)
    large, small = c.app(), c.app()
    c.tell(Estimated(small.application_id, 20, 1.0))
    c.ask(small, 1)
    if not told_at:
        c.tell(Estimated(large.application_id, 20, 20.0))
    c.ask(large, 1)
    started = []
    while 1 not in started and c.now < 120.0:
        c.ask(small, 1)
        started += c.turns(1)
        if c.now == told_at:
            c.tell(Estimated(large.application_id, 20, 20.0))
    assert 45.0 <= c.now <= 50.0 and set(started[:-1]) == {2}


def test_a_name_that_is_none() -> None:
    with pytest.raises(QueueConfigError, match="srjf, lrtf, ejf, sjf, cpath"):
        spec("lifo")


steps = st.one_of(
    st.tuples(st.just("app"), st.sampled_from(["jobs", "rest"]), st.integers(0, 1)),
    st.tuples(st.just("ask"), st.integers(0, 9), st.integers(0, 5)),
    st.tuples(st.just("end"), st.integers(0, 9), st.just(0)),
    st.tuples(st.just("over"), st.integers(0, 9), st.just(0)),
    st.tuples(st.just("move"), st.integers(0, 9), st.sampled_from(["jobs", "rest"])),
    st.tuples(st.just("refresh"), st.sampled_from(["srjf", "fifo", "fair"]), st.sampled_from(["lrtf", "fair"])),
    st.tuples(st.just("beat"), st.sampled_from([0.1, 1.0, 61.0, -500.0]), st.just(0)),
)


@settings(max_examples=examples(60))
@given(st.lists(steps, max_size=40), st.booleans())
def test_whatever_happens_the_books_agree(events: list[tuple[str, Any, Any]], fills: bool) -> None:
    c = Cluster("srjf", queueing=QueueingSpec(bound=2, default_estimate_s=5.0) if fills else None)
    apps = [c.app()]
    for name, one, two in events:
        if name == "app":
            apps.append(c.app(queue=one, priority=two))
        elif name == "ask":
            c.ask(apps[one % len(apps)], two)
        elif name == "end" and c.running:
            c.tell(ContainerEnded(c.running.pop(one % len(c.running))))
        elif name == "over":
            c.tell(ApplicationEnded(apps[one % len(apps)].application_id))
        elif name == "move":
            c.tell(ApplicationMoved(apps[one % len(apps)].application_id, two))
        elif name == "refresh":
            c.tell(QueuesRefreshed(spec(one, two)))
        elif name == "beat":
            c.beat(one)
