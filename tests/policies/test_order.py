"""The order of a node's queue, against Algorithm 3 written down as a comparison."""

from dataclasses import replace
from functools import cmp_to_key
from math import inf, nan

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.policies.policy_facts import SLOT, facts, few, hostile_s, job_facts, job_id, queued, queues, sane_s
from yaqd.model import ApplicationId, ContainerId, Resource
from yaqd.policies.queueing.facts import JobFacts, QueuedTask
from yaqd.policies.queueing.order import ORDERS, Ordering, Scope
from yaqd.policies.queueing.wait import wait_estimate
from yaqd.policies.registry import UnknownPolicy

names = st.sampled_from(["srjf", "lrtf", "stf", "ejf", "fifo", "cpath"])
orderings = st.builds(
    Ordering,
    strategy=names,
    starve_s=st.sampled_from([0.0, 5.0, 100.0, inf]),
    starve_ratio=st.sampled_from([0.0, 0.5, 2.0, inf]),
    scope=st.sampled_from(list(Scope)),
    packing=st.booleans(),
)


def compare(
    one: QueuedTask, two: QueuedTask, ordering: Ordering, jobs: dict[ApplicationId, JobFacts], now: float
) -> float:
    """Algorithm 3, line by line: positive when `one` goes first."""

    def is_starved(task: QueuedTask) -> bool:
        estimate = inf if task.facts.estimate in (None, 0.0) else task.facts.estimate
        relative = inf if estimate == inf else estimate * ordering.starve_ratio
        return now - task.since > min(ordering.starve_s, relative)

    if is_starved(one) != is_starved(two):
        return 1 if is_starved(one) else -1
    if not is_starved(one):
        ranks = [ORDERS[ordering.strategy](t, jobs.get(t.facts.job, JobFacts())) for t in (one, two)]
        if ranks[0] != ranks[1]:
            return 1 if ranks[0] < ranks[1] else -1
    elif one.facts.job_arrival != two.facts.job_arrival:
        return two.facts.job_arrival - one.facts.job_arrival
    return two.since - one.since


@few
@given(queues(sane_s), job_facts(sane_s), sane_s, orderings)
def test_the_whole_order_is_algorithm_3(
    queue: list[QueuedTask], jobs: dict[ApplicationId, JobFacts], now: float, ordering: Ordering
) -> None:
    ordered = Ordering(ordering.strategy, ordering.starve_s, ordering.starve_ratio).sorted(queue, jobs, now)

    def by_definition(one: QueuedTask, two: QueuedTask) -> int:
        first = compare(one, two, ordering, jobs, now)
        return (first < 0) - (first > 0)

    expected = sorted(queue, key=cmp_to_key(by_definition))
    assert ordered == expected


@few
@given(queues(hostile_s), job_facts(hostile_s), hostile_s, orderings)
def test_whatever_the_numbers_are_everybody_gets_a_place(
    queue: list[QueuedTask], jobs: dict[ApplicationId, JobFacts], now: float, ordering: Ordering
) -> None:
    ordered = ordering.sorted(queue, jobs, now)
    assert sorted(task.container_id for task in ordered) == [task.container_id for task in queue]
    if queue:
        assert ordering.pick(queue, jobs, now) in queue


@few
@given(queues(sane_s), job_facts(sane_s), sane_s, orderings)
def test_the_pick_is_the_first_of_the_order(
    queue: list[QueuedTask], jobs: dict[ApplicationId, JobFacts], now: float, ordering: Ordering
) -> None:
    if queue:
        assert ordering.pick(iter(queue), jobs, now) is ordering.sorted(queue, jobs, now)[0]


@few
@given(queues(sane_s), job_facts(sane_s), sane_s, orderings)
def test_reordering_inside_a_group_takes_no_turn_from_another(
    queue: list[QueuedTask], jobs: dict[ApplicationId, JobFacts], now: float, ordering: Ordering
) -> None:
    ordered = ordering.sorted(queue, jobs, now)
    came = sorted(queue, key=lambda task: task.since)
    if ordering.scope is Scope.QUEUE:
        assert [task.facts.queue for task in ordered] == [task.facts.queue for task in came]
    if ordering.scope is Scope.USER:
        assert [task.facts.user for task in ordered] == [task.facts.user for task in came]


@few
@given(queues(sane_s), job_facts(sane_s), sane_s, orderings, orderings)
def test_a_leaf_queue_with_an_order_of_its_own_is_in_that_order(
    queue: list[QueuedTask], jobs: dict[ApplicationId, JobFacts], now: float, others: Ordering, own: Ordering
) -> None:
    assume(queue)
    ordering = replace(others, scope=Scope.QUEUE, leaves=(("root.a", own),))
    ordered = ordering.sorted(queue, jobs, now)
    assert ordering.pick(queue, jobs, now) is ordered[0]
    for is_own, order in ((True, own), (False, others)):
        alone = [task for task in queue if (task.facts.queue == "root.a") is is_own]
        expected = replace(order, scope=Scope.QUEUE).sorted(alone, jobs, now)
        assert [task for task in ordered if (task.facts.queue == "root.a") is is_own] == expected


@few
@given(queues(sane_s), job_facts(sane_s), sane_s, orderings, st.integers(0, 2048))
def test_only_a_task_that_fits_passes_and_never_a_starved_one(
    queue: list[QueuedTask], jobs: dict[ApplicationId, JobFacts], now: float, ordering: Ordering, memory_mb: int
) -> None:
    if not queue:
        return
    free = Resource(memory_mb, 2)
    head, picked = ordering.pick(queue, jobs, now), ordering.pick(queue, jobs, now, free)
    if picked is not head:
        assert ordering.packing
        assert not head.resource.fits_in(free)
        assert picked.resource.fits_in(free)
        assert not ordering.is_starved(head, now)


@few
@given(
    st.lists(st.tuples(st.sampled_from(["ann", "bob", "eve"]), st.integers(1, 4), sane_s), max_size=30),
    st.lists(st.booleans(), max_size=60),
    st.sampled_from(["srjf", "stf", "lrtf"]),
)
def test_as_tasks_come_and_start_users_keep_the_turns_in_which_they_came(
    tasks: list[tuple[str, int, float]], steps: list[bool], name: str
) -> None:
    ordering = Ordering(name, starve_s=5, scope="user")
    coming = [queued(n, facts(job, estimate=runs, user=user), since=n) for n, (user, job, runs) in enumerate(tasks)]
    jobs = {job_id(n): JobFacts(remaining_work=100 - n, remaining_tasks=n) for n in range(1, 5)}
    line: dict[ContainerId, QueuedTask] = {}
    came, started = [], []
    arrivals = iter(coming)
    for now, is_start in enumerate([*steps, *[False] * len(coming), *[True] * len(coming)]):
        if not is_start:
            task = next(arrivals, None)
            if task is not None:
                line[task.container_id] = task
                came.append(task.facts.user)
        elif line:
            task = ordering.pick(line.values(), jobs, now)
            del line[task.container_id]
            passed = ordering.passed(line.values(), task)
            if passed is not None:
                line[passed.container_id] = passed
            started.append(task.facts.user)
    assert started == came


def test_a_suffix_lets_smaller_tasks_pass() -> None:
    ordering = Ordering("srjf+pack")
    assert (ordering.strategy, ordering.packing) == ("srjf", True)
    assert ordering == Ordering("srjf", packing=True)
    assert (ordering.name, Ordering("stf").name) == ("srjf+pack", "stf")
    with pytest.raises(UnknownPolicy, match="fastest"):
        Ordering("fastest+pack")


def test_each_strategy_by_hand() -> None:
    long_task_small_job = queued(1, facts(1, estimate=50, arrival=3), since=1)
    short_task_big_job = queued(2, facts(2, estimate=5, arrival=2), since=2)
    many_tasks_early = queued(3, facts(3, estimate=20, arrival=1), since=3)
    queue = [long_task_small_job, short_task_big_job, many_tasks_early]
    jobs = {
        job_id(1): JobFacts(remaining_work=60, remaining_tasks=5, critical_path=90),
        job_id(2): JobFacts(remaining_work=900, remaining_tasks=3, critical_path=20),
        job_id(3): JobFacts(remaining_work=400, remaining_tasks=20, critical_path=40),
    }
    firsts = {name: Ordering(name, inf, inf).pick(queue, jobs, 4) for name in ORDERS.names()}
    assert firsts == {
        "srjf": long_task_small_job,
        "lrtf": short_task_big_job,
        "stf": short_task_big_job,
        "ejf": many_tasks_early,
        "fifo": long_task_small_job,
        "cpath": short_task_big_job,
    }


def test_the_starved_go_first_and_among_them_the_earlier_job() -> None:
    fresh = queued(1, facts(1, estimate=1, arrival=0), since=99)
    waited_relative = queued(2, facts(2, estimate=2, arrival=9), since=95)  # 5 s > 2 x 2 s
    waited_long = queued(3, facts(3, estimate=500, arrival=8), since=80)  # 20 s > ST
    waits_well = queued(4, facts(4, estimate=500, arrival=7), since=95)
    ordering = Ordering("stf", starve_s=10, starve_ratio=2)
    assert ordering.sorted([fresh, waited_relative, waited_long, waits_well], {}, 100) == [
        waited_long,
        waited_relative,
        fresh,
        waits_well,
    ]


def test_an_estimate_that_is_none_starves_nobody_earlier() -> None:
    ordering = Ordering("stf", starve_s=10, starve_ratio=2)
    for estimate in (None, nan, -5.0, 0.0, inf):
        assert not ordering.is_starved(queued(1, facts(estimate=estimate), since=0), 9)
        assert ordering.is_starved(queued(1, facts(estimate=estimate), since=0), 11)


def test_unknown_jobs_wait_behind_known_ones_and_work_is_guessed_from_the_number_of_tasks() -> None:
    unknown, counted, known = (queued(n, facts(n, estimate=10)) for n in (1, 2, 3))
    jobs = {job_id(2): JobFacts(remaining_tasks=4), job_id(3): JobFacts(remaining_work=30)}
    assert Ordering("srjf").sorted([unknown, counted, known], jobs, 0) == [known, counted, unknown]


def test_an_empty_queue_has_no_next_task() -> None:
    for scope in Scope:
        with pytest.raises(ValueError, match="empty"):
            Ordering("srjf", scope=scope).pick([], {}, 0)


def test_settings_that_are_none() -> None:
    with pytest.raises(UnknownPolicy, match=r"'fastest'.*srjf, lrtf"):
        Ordering("fastest")
    with pytest.raises(ValueError, match="moon"):
        Ordering(scope="moon")
    assert Ordering(starve_s=nan, starve_ratio=-1) == Ordering(starve_s=0, starve_ratio=0)


def test_a_long_queue_costs_a_pass_and_not_its_square() -> None:
    """It would not end before the tests' time limit."""
    many = 30_000
    about = [facts(n, estimate=float(n % 97)) for n in range(1, 11)]
    queue = [queued(n, about[n % 10], since=float(n % 1000)) for n in range(many)]
    jobs = {job_id(n): JobFacts(remaining_work=float(n)) for n in range(1, 11)}
    for ordering in (Ordering("srjf", 500), Ordering("srjf+pack", inf, inf, "queue"), Ordering("stf", 500, 2, "user")):
        first = ordering.pick(queue, jobs, 900, SLOT)
        assert ordering.sorted(queue, jobs, 900)[0] is first
        ordering.passed(queue, first)
    total = SLOT * 8
    work = sum(task.facts.estimate or 0.0 for task in queue)
    assert wait_estimate(total, total, [], queue, SLOT, 900) == pytest.approx(work / 8, rel=0.01)
