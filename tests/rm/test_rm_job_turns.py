"""Leaf queues that serve their applications by how much is left of them."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rm.scheduler.calculators import AllocationBounds
from rm.scheduler.decisions import Allocate, Decision
from rm.scheduler.events import (
    ApplicationEnded,
    ApplicationMoved,
    ApplicationSubmitted,
    Asked,
    AskRow,
    AttemptStarted,
    ContainerEnded,
    Estimated,
    NodeBeat,
    NodeJoined,
    QueueingChanged,
    QueuesRefreshed,
    SchedulerEvent,
)
from rm.scheduler.job_order import JobStarvation
from rm.scheduler.queueing_spec import QueueingSpec
from rm.scheduler.queues import PREFIX, QueueConfigError, SchedulerSpec, parse_capacity_scheduler
from rm.scheduler.scheduler import Scheduler, SchedulerLimits
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId, NodeId, Resource

SLOT = Resource(1024, 1)
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
    return parse_capacity_scheduler({PREFIX + name: value for name, value in values.items()})


class Cluster:
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
        limits = SchedulerLimits(AllocationBounds(SLOT, SLOT * 4), queueing=queueing, job_starvation=starvation)
        self.scheduler = Scheduler(spec(ordering), replace(limits, reserve_after_s=reserve_after_s))
        self.now = 0.0
        self.apps = 0
        self.running: list[ContainerId] = []
        self.tell(NodeJoined(NODE, "/r", SLOT * slots))

    def tell(self, event: SchedulerEvent) -> list[Decision]:
        decisions = self.scheduler.handle(event, self.now)
        self.scheduler.validate()
        self.running += [d.container_id for d in decisions if isinstance(d, Allocate)]
        return decisions

    def app(self, *, queue: str = "jobs", priority: int = 0) -> ApplicationAttemptId:
        """Its master asks, and runs if there is room."""
        self.apps += 1
        attempt = ApplicationAttemptId(ApplicationId(1, self.apps), 1)
        self.tell(ApplicationSubmitted(attempt.application_id, queue, "ann", priority))
        self.tell(AttemptStarted(attempt, (AskRow(0, -1, "*", SLOT, 1),)))
        return attempt

    def ask(self, attempt: ApplicationAttemptId, tasks: int, priority: int = 20) -> None:
        self.tell(Asked(attempt, (AskRow(priority, -1, "*", SLOT, tasks),)))

    def beat(self, after_s: float = 1.0) -> None:
        self.now += after_s
        self.tell(NodeBeat(NODE))

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


def test_who_was_given_nothing_for_a_minute_goes_first() -> None:
    c = Cluster("lrtf", slots=3)
    small, large = c.app(), c.app()
    c.ask(small, 1)
    c.ask(large, 200)
    c.ask(small, 150)
    turns = c.turns(70)
    assert turns.count(2) == 1, "once, then it was served"
    assert 59 <= turns.index(2) <= 62


def test_other_limits_hold_for_those_that_wait_already() -> None:
    c = Cluster("lrtf", slots=4)
    small, large = c.app(), c.app()
    c.ask(small, 10)
    c.ask(large, 60)
    c.beat(20.0)
    c.tell(QueueingChanged(None, JobStarvation(10.0)))
    assert c.turns(3) == [1, 2, 1], "each was given nothing for twenty seconds, then the order holds again"


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
    """min(ST, ST_r x what is left): three times 20 s here, where that is known. It may be said late."""
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
    assert 60.0 <= c.now <= 71.0 and set(started[:-1]) == {2}


def test_who_is_never_starved_is_not_noted() -> None:
    c = Cluster("srjf", slots=1, starvation=JobStarvation(math.inf, math.inf))
    attempt = c.app()
    c.ask(attempt, 1)
    assert c.scheduler.view.jobs is not None and c.scheduler.view.jobs.of(attempt.application_id).since is None


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


@settings(max_examples=60)
@given(st.lists(steps, max_size=40), st.booleans())
def test_whatever_happens_the_books_agree(events, fills) -> None:
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


@pytest.mark.timeout(10)
@pytest.mark.parametrize("asked_at", [38.1, 84.7])
def test_looking_for_the_starved_ends_whichever_way_sums_are_rounded(asked_at: float) -> None:
    """A job becomes starved at since + ST, which less since is a little less than ST."""
    assert (asked_at + 60.0) - asked_at < 60.0
    c = Cluster("ejf", slots=2)
    attempt = c.app()
    c.now = asked_at
    c.tell(Asked(attempt, (AskRow(20, -1, "*", SLOT * 2, 1),)))  # one place is free, and too small
    c.beat(60.0)
    assert c.scheduler.view.jobs.of(attempt.application_id).is_starved
