"""The node queue under a ResourceManager that fills it: order, bound, masters, time limit, on any events."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nm.node_queue import (
    Arrived,
    Began,
    Ended,
    Event,
    HeldStarts,
    JobReport,
    JobsReported,
    NodeQueue,
    NodeQueueSettings,
    OpportunisticLimit,
    Preempt,
    Refuse,
    SettingsChanged,
    Tick,
)
from nm.node_queue.words import WAITED_TOO_LONG
from tests.nm.nm_cluster import application, container_id
from tests.nm.nm_queue_life import (
    FILLED,
    GUARANTEED,
    MAP,
    OPPORTUNISTIC,
    REDUCE,
    SHORTEST,
    Watcher,
    came,
    durations,
    events,
    queue,
    started,
)
from yaqd.model import ExecutionType, ExitStatus, Resource
from yaqd.policies.queueing.facts import JobFacts, TaskFacts
from yaqd.policies.queueing.order import Ordering


def test_the_ordering_says_who_is_next() -> None:
    node = queue()
    for event in (came(1, 50), came(2, 30), came(3, None), came(4, 10)):
        node.handle(event, 0)
    turns = []
    for ended in (1, 4, 2):
        turns += started(node.handle(Ended(container_id(ended)), 1))
    assert turns == [4, 2, 3]


@given(st.lists(st.integers(1, 50).map(float), min_size=1, max_size=30), st.integers(0, 12))
def test_a_lower_limit_ends_the_last_in_the_order_of_starting(estimates: list[float], limit: int) -> None:
    node = NodeQueue(Resource(100, 100), max_length=1000, opportunistic_max=100, settings=FILLED)
    node.handle(came(1, 5), 0)
    for number, estimate in enumerate(estimates, start=2):
        node.handle(came(number, estimate, kind=OPPORTUNISTIC), 0)
    line = [waiting.container_id for waiting in node.snapshot(0, 100).waiting]
    ended = node.handle(OpportunisticLimit(limit), 1)
    assert [decision.container_id for decision in ended] == line[limit:]
    assert [waiting.container_id for waiting in node.snapshot(1, 100).waiting] == line[:limit]


@given(st.lists(st.integers(1, 50).map(float), min_size=1, max_size=60), st.integers(0, 20))
def test_a_lower_bound_sheds_what_no_queue_of_its_length_would_have_taken(estimates: list[float], bound: int) -> None:
    node = queue(settings=NodeQueueSettings(enabled=True, max_queued=1000, ordering=SHORTEST))
    node.handle(came(1, 5), 0)
    for number, estimate in enumerate(estimates, start=2):
        node.handle(came(number, estimate), 0)
    line = [waiting.container_id for waiting in node.snapshot(0, 100).waiting]
    lower = NodeQueueSettings(enabled=True, max_queued=bound, ordering=SHORTEST)
    ended = node.handle(SettingsChanged(lower), 1)
    assert [decision.container_id for decision in ended] == line[lower.hard_bound :]
    assert all(isinstance(decision, Refuse) and decision.status is ExitStatus.PREEMPTED for decision in ended)


def test_a_map_does_not_wait_behind_reducers_of_its_job() -> None:
    node = queue(settings=NodeQueueSettings(enabled=True, max_queued=9, ordering=Ordering("fifo")))
    for event in (came(1, 5), came(2, None, priority=REDUCE), came(3, None, app=2), came(4, 5)):
        node.handle(event, 0)
    assert [w.container_id.sequence for w in node.snapshot(0).waiting] == [4, 2, 3]
    assert started(node.handle(Ended(container_id(1)), 1)) == [4], "before its job's reducer, which came before"
    assert started(node.handle(Ended(container_id(4)), 2)) == [2]


def test_users_take_turns_however_their_tasks_are_ordered() -> None:
    by_user = NodeQueueSettings(enabled=True, max_queued=9, ordering=Ordering("stf", math.inf, math.inf, "user"))
    node = queue(settings=by_user)
    node.handle(came(1, 5), 0)
    # ann's first one is long, and without turns all her others would start before anything of bob's
    tasks = [(2, "ann", 90), (3, "bob", 20), (4, "ann", 10), (5, "ann", 11), (6, "bob", 5), (7, "ann", 12)]
    for number, user, estimate in tasks:
        facts = TaskFacts(application(1), user, estimate=estimate)
        node.handle(Arrived(container_id(number), Resource(100, 1), GUARANTEED, facts), number)
    order = [1]
    for now in range(10, 10 + len(tasks)):
        order += started(node.handle(Ended(container_id(order[-1])), now))
    assert order == [1, 4, 6, 5, 7, 3, 2]
    users = {number: user for number, user, _ in tasks}
    assert [users[n] for n in order[1:]] == [user for _, user, _ in tasks]


def test_what_never_ends_frees_no_slot_in_the_estimate() -> None:
    node = queue(2)
    for event in (came(1, None), came(2, 30), came(3, 20), came(4, 5)):
        node.handle(event, 0)
    seen = node.snapshot(10)
    assert [(w.container_id.sequence, w.waited_s, w.expected_s) for w in seen.waiting] == [(4, 10, 20), (3, 10, 25)]
    assert (seen.running, seen.queued, seen.wait_s) == (2, 2, 45)
    node.handle(JobsReported((JobReport(application(1), JobFacts(), estimates={MAP: None}),)), 10)
    assert node.snapshot(10).wait_s == math.inf


@pytest.mark.parametrize(("total", "wait_s"), [(Resource(6400, 1), math.inf), (Resource(6400, 2), 0.0)])
@pytest.mark.parametrize("estimate", ["resources", "slots"])
def test_a_node_full_of_a_master_has_no_room_for_the_first_task(total: Resource, wait_s: float, estimate: str) -> None:
    node = NodeQueue(total, max_length=10, settings=FILLED, wait=estimate, smallest=Resource(128, 1))
    assert node.snapshot(0).wait_s == 0.0
    node.handle(came(1, memory_mb=1536, is_master=True), 0)
    assert node.snapshot(30).wait_s == wait_s
    node.handle(Ended(container_id(1)), 31)
    assert node.snapshot(31).wait_s == 0.0


@pytest.mark.parametrize("at", [10.0, 1e12, -1e12])
def test_clocks_may_jump(at: float) -> None:
    node = queue()
    node.handle(came(1, 30), 0)
    node.handle(came(2, 30), 0)
    assert node.snapshot(at).waiting[0].waited_s >= 0 and node.snapshot(at).wait_s >= 0
    decided = node.handle(Tick(), at)
    assert [type(d) for d in decided] == ([Refuse] if at > 60 else [])


def test_a_master_starts_ahead_of_all_and_beyond_what_is_free() -> None:
    node = queue()
    for event in (came(1, 5), came(2, 5)):
        node.handle(event, 0)
    assert started(node.handle(came(3, is_master=True), 1)) == [3]
    assert node.handle(Ended(container_id(3)), 2) == []
    assert started(node.handle(Ended(container_id(1)), 3)) == [2]


def test_a_master_that_waits_for_a_device_comes_before_all_others() -> None:
    node = NodeQueue(Resource(100, 9, {"gpu": 1}), max_length=9, settings=FILLED)
    gpu = Resource(100, 1, {"gpu": 1})
    assert started(node.handle(Arrived(container_id(1), gpu, GUARANTEED), 0)) == [1]
    assert node.handle(came(2, 1), 0) == []
    assert node.handle(Arrived(container_id(3), gpu, GUARANTEED, is_master=True), 0) == []
    assert node.next_tick() == 60 and [w.container_id.sequence for w in node.snapshot(0).waiting] == [3, 2]
    assert [type(d) for d in node.handle(Tick(), 60)] == [Refuse], "only the other one goes back"
    assert started(node.handle(Ended(container_id(1)), 61)) == [3]


def test_running_opportunistic_ones_make_room_and_waiting_ones_come_last() -> None:
    node = queue(2)
    node.handle(came(1, 5, kind=OPPORTUNISTIC), 0)
    node.handle(came(2, 5), 0)
    assert node.handle(came(3, 1, kind=OPPORTUNISTIC), 0) == []
    (preempted,) = node.handle(came(4, 9), 0)
    assert isinstance(preempted, Preempt) and preempted.container_id == container_id(1)
    assert started(node.handle(Ended(container_id(1)), 1)) == [4]
    assert started(node.handle(Ended(container_id(2)), 1)) == [3]


def test_opportunistic_ones_follow_the_nodes_own_order_where_nobody_orders() -> None:
    node = queue(settings=NodeQueueSettings(ordering=SHORTEST))
    for event in (
        came(1, 5),
        came(2, 9, kind=OPPORTUNISTIC),
        came(3, 1, kind=OPPORTUNISTIC),
        came(4, 9),
        came(5, 1),
    ):
        node.handle(event, 0)
    turns = []
    for ended in (1, 4, 5, 3):
        turns += started(node.handle(Ended(container_id(ended)), 1))
    assert turns == [4, 5, 3, 2]
    assert node.next_tick() is None


@pytest.mark.parametrize("kind", [GUARANTEED, OPPORTUNISTIC])
def test_what_its_master_takes_for_running_goes_first_and_back_only_where_that_does_not_help(
    kind: ExecutionType,
) -> None:
    node = queue(3)
    for number in (1, 2, 3):
        node.handle(came(number, 5, kind=kind), 0)
    late = [came(number, 9, most_wait_s=3.0, kind=kind) for number in (4, 6)]
    assert [decision for event in (late[0], came(5, 1, kind=kind), late[1]) for decision in node.handle(event, 1)] == []
    assert started(node.handle(Ended(container_id(1)), 3.9)) == [5], "by the order"
    assert node.handle(came(7, 1, kind=kind), 3.9) == []
    assert [task.container_id for task in node.snapshot(4.0, first=9).waiting] == list(map(container_id, (4, 6, 7)))
    assert started(node.handle(Ended(container_id(2)), 4.0)) == [4], "before all others, and the one that came first"
    assert node.next_tick() == 1 + 3 * 3.0
    (back,) = node.handle(Tick(), 10.0)
    assert isinstance(back, Refuse) and back.container_id == container_id(6) and back.status is ExitStatus.PREEMPTED
    assert WAITED_TOO_LONG in back.reason and "yaq.queue.max-wait-unaware" in back.reason


@pytest.mark.parametrize("kind", [GUARANTEED, OPPORTUNISTIC])
def test_what_must_not_wait_and_comes_while_its_room_is_just_being_left_stays(kind: ExecutionType) -> None:
    node = queue(3)
    for number in (1, 2, 3, 4):
        node.handle(came(number, 1, kind=kind), 0)
    assert node.handle(came(5, 9, most_wait_s=0.0, kind=kind), 0.5) == []
    assert node.handle(Tick(), 6.4) == []
    assert started(node.handle(Ended(container_id(1)), 6.4)) == [5], "before what may wait"


def test_facts_of_many_jobs_stay_bounded() -> None:
    node = queue()
    node.handle(came(1, 5, app=1), 0)
    node.handle(came(2, 7, app=1), 0)
    reports = [JobReport(application(n), JobFacts(1.0, 1), estimates={n: 1.0}) for n in range(2, 20_003)]
    node.handle(JobsReported(tuple(reports)), 0)
    assert len(node._jobs.facts) == 10_000 and node.snapshot(0).wait_s == 12


@given(st.lists(st.tuples(events, st.integers(0, 3)), max_size=60))
def test_nothing_is_lost_or_doubled_and_the_rules_hold(sequence: list[tuple[Event, int]]) -> None:
    watcher, now = Watcher(), 100.0
    for event, passed in sequence:
        now += passed
        watcher.see(event, now)
        seen = watcher.queue.snapshot(now, first=100)
        assert sorted(w.container_id for w in seen.waiting) == sorted(watcher.waiting)
        assert all(w.expected_s >= 0 for w in seen.waiting) and seen.wait_s >= 0


@given(st.lists(st.tuples(durations, st.integers(1, 3)), min_size=1, max_size=12))
def test_the_order_is_respected(tasks: list[tuple[float | None, int]]) -> None:
    """One slot: who was told to come next comes next."""
    node = queue(settings=NodeQueueSettings(enabled=True, max_queued=20, ordering=SHORTEST))
    node.handle(came(99, 1), 0)
    for number, (estimate, app) in enumerate(tasks, 1):
        node.handle(came(number, estimate, app=app), number)
    expected = [w.container_id for w in node.snapshot(20, first=100).waiting]
    by_estimate = sorted(
        enumerate(tasks, 1), key=lambda t: t[1][0] if t[1][0] is not None and 0 <= t[1][0] < math.inf else math.inf
    )
    assert [c.sequence for c in expected] == [number for number, _ in by_estimate]
    running, turns = container_id(99), []
    while decisions := node.handle(Ended(running), 20):
        (launch,) = decisions
        turns.append(running := launch.container_id)
    assert turns == expected


def test_what_makes_room_is_expected_to_be_gone_at_once() -> None:
    node = queue()
    node.handle(came(1, None, kind=OPPORTUNISTIC), 0)
    node.handle(came(2, 30), 1)
    seen = node.snapshot(50)
    assert (seen.waiting[0].expected_s, seen.wait_s) == (0, 30)


def moved(number: int, waited_s: float, *, estimate: float = 1.0, kind: ExecutionType = GUARANTEED) -> Arrived:
    """One that had waited elsewhere before."""
    facts = TaskFacts(application(number), estimate=estimate, priority=MAP, waited_s=waited_s, job_arrival=number)
    return Arrived(container_id(number, number), Resource(100, 1), kind, facts)


@pytest.mark.parametrize("kind", [GUARANTEED, OPPORTUNISTIC])
@pytest.mark.parametrize(("starve_s", "ratio"), [(10.0, math.inf), (math.inf, 2.0)])
def test_what_starved_elsewhere_is_starved_here(kind: ExecutionType, starve_s: float, ratio: float) -> None:
    line = queue(1, NodeQueueSettings(enabled=True, max_queued=4, ordering=Ordering("stf", starve_s, ratio)))
    line.handle(moved(1, 0.0, kind=kind), 100.0)
    line.handle(moved(2, 0.0, estimate=4.9, kind=kind), 100.0)
    line.handle(moved(3, 10.5, estimate=5.0, kind=kind), 100.0)
    assert started(line.handle(Ended(container_id(1, 1)), 100.1)) == [3]


def test_the_time_limit_counts_from_the_first_queue() -> None:
    line = queue()
    line.handle(moved(1, 0.0), 100.0)
    line.handle(moved(2, 50.0), 100.0)
    line.handle(moved(3, 0.0), 101.0)
    assert line.next_tick() == 110.0
    assert line.handle(Tick(), 109.9) == []
    (back,) = line.handle(Tick(), 110.0)
    assert isinstance(back, Refuse) and back.container_id.sequence == 2 and back.status == ExitStatus.PREEMPTED
    assert "it waited 60.0 s" in back.reason
    assert line.next_tick() == 161.0


def test_however_long_it_had_waited_it_is_not_sent_away_at_once() -> None:
    """Its place may be about to become free."""
    line = queue()
    line.handle(moved(1, 0.0), 100.0)
    assert line.handle(moved(2, 500.0), 100.0) == []
    assert line.next_tick() == 106.0
    assert started(line.handle(Ended(container_id(1, 1)), 105.0)) == [2]


@pytest.mark.parametrize("waited_s", [-5.0, math.nan, math.inf, 1e300])
def test_a_wait_that_cannot_be_is_none(waited_s: float) -> None:
    line = queue()
    line.handle(moved(1, 0.0), 100.0)
    line.handle(moved(2, waited_s), 100.0)
    assert line.next_tick() == 160.0


def test_a_snapshot_says_how_long_it_waited_here() -> None:
    line = queue()
    line.handle(moved(1, 0.0), 100.0)
    line.handle(moved(2, 50.0), 100.0)
    assert line.snapshot(103.0).waiting[0].waited_s == 3.0


def test_what_is_held_for_a_processor_has_all_its_time_before_it_and_others_start_behind_it() -> None:
    node = queue(2)
    for event in (came(1, 4), came(2, 30), came(3, 20), came(4, 5)):
        node.handle(event, 0)
    held = HeldStarts({container_id(1): 1.0, container_id(2): 2.0}, usual_s=2.5)
    seen = node.snapshot(3, held=held)
    # at 8 the first one ends, which has not begun at 3: 5 later; that is long after all who are held have started
    assert [(w.container_id.sequence, w.expected_s) for w in seen.waiting] == [(4, 5), (3, 10)]
    assert node.snapshot(3).waiting[0].expected_s == 1.0, "it would end at 4 if it ran since its turn"
    assert node.snapshot(3, held=HeldStarts({container_id(9): 2.0}, usual_s=2.5)).waiting[0].expected_s == 3.5
    node.handle(Began(container_id(1)), 4)
    assert node.snapshot(4).waiting[0].expected_s == 4.0, "it began now"
    assert node.handle(Began(container_id(77)), 4) == [], "it has ended meanwhile"
    node.validate()


@pytest.mark.parametrize("estimate", ["resources", "slots"])
def test_a_newcomers_wait_counts_those_that_are_held_where_there_is_no_room(estimate: str) -> None:
    node = NodeQueue(Resource(100, 100), max_length=1000, settings=FILLED, wait=estimate)
    held = HeldStarts({container_id(1): 1.5}, usual_s=2.5)
    assert node.snapshot(0, held=held).wait_s == 0.0, "there is room, whoever is held"
    node.handle(came(1, 10), 0)
    node.handle(Began(container_id(1)), 0)
    others = HeldStarts({container_id(2): 1.5}, usual_s=2.5)
    waits = {now: node.snapshot(now, held=others).wait_s for now in (0, 7, 9)}
    assert waits == {0: 10.0, 7: 4.0, 9: 3.5} and node.snapshot(9).wait_s == 1.0
    node.handle(JobsReported((JobReport(application(1), JobFacts(), estimates={MAP: None}),)), 9)
    assert node.snapshot(9, held=others).wait_s == math.inf


@given(st.lists(st.floats(0, 3), max_size=5), st.floats(0, 3), st.floats(0, 20))
def test_nobody_is_expected_before_his_turn_nor_held_for_longer_than_is_usual(
    left: list[float], usual_s: float, turn_s: float
) -> None:
    held = HeldStarts({container_id(number): left_s for number, left_s in enumerate(left)}, usual_s)
    assert turn_s <= held.begins(turn_s) <= turn_s + usual_s
    assert held.begins(math.inf) == math.inf
