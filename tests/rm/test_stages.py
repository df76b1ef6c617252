"""Leaf queues that decide stage by stage who gets what comes free."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rm.scheduler import recording
from rm.scheduler.asks.job_starvation import JobStarvation
from rm.scheduler.decisions import Outcome
from rm.scheduler.events import (
    ApplicationEnded,
    ApplicationMoved,
    AttemptEnded,
    AttemptStarted,
    LeftTold,
    NodeJoined,
    QueuesRefreshed,
    SchedulerEvent,
    StagesChanged,
    StagesDue,
)
from rm.scheduler.stages.spec import StagesSpec
from tests.examples import examples
from tests.rm.rm_stages import MAP, NODE, REDUCE, Cluster, spec
from tests.rm.rm_world import SLOT, row
from yaqd.model import ApplicationAttemptId
from yaqd.model.stages import StagesOrder
from yaqd.policies.queueing.left import StageLeft


def test_room_goes_to_the_job_that_the_policy_chooses() -> None:
    cluster = Cluster("shortest")
    first = cluster.job(10, 100.0)
    long, short = cluster.job(10, 50.0), cluster.job(3, 1.0)
    assert len(cluster.of(first)) == 4  # nobody else wanted them then
    for _ in range(3):
        assert [one.container_id.attempt_id for one in cluster.end_one(first)] == [short]
    assert [one.container_id.attempt_id for one in cluster.end_one(first)] == [long]


def test_jobs_share_by_their_limits() -> None:
    cluster = Cluster("fair", slots=0)
    jobs = [cluster.job(10, 10.0) for _ in range(2)]
    cluster.now += 1.0
    cluster.tell(NodeJoined(NODE, "/r", SLOT * 4))
    assert [len(cluster.of(job)) for job in jobs] == [2, 2]


def test_the_stage_that_was_chosen_is_served_first() -> None:
    cluster = Cluster("shortest", slots=0)
    job = cluster.begin("jobs")
    short = StageLeft(MAP, 1, task_s=1.0)
    long, after = StageLeft(MAP + 1, 1, task_s=1.0), StageLeft(MAP + 2, 5, task_s=60.0, after=(MAP + 1,))
    cluster.told(job, short, long, after)
    cluster.ask(job, 1, MAP)
    cluster.ask(job, 1, MAP + 1)
    cluster.now += 1.0
    cluster.tell(NodeJoined(NODE, "/r", SLOT))
    assert cluster.given == [(job, MAP + 1)]


def test_idle_containers_go_to_the_own_stage_or_to_another_job() -> None:
    cluster = Cluster("shortest", slots=2)
    big = cluster.begin("jobs")
    maps, reduces = StageLeft(MAP, 2, task_s=10.0), StageLeft(MAP + 1, 4, task_s=10.0, after=(MAP,))
    cluster.told(big, maps, reduces)
    assert cluster.orders[big] == StagesOrder(1)
    cluster.ask(big, 2)
    running = StageLeft(MAP, 2, task_s=10.0, running=2)
    cluster.told(big, running, reduces)
    # the maps are done: both containers wait for word, and nobody else wants any
    reduces = StageLeft(MAP + 1, 4, task_s=10.0)
    cluster.told(big, reduces, idle=2)
    assert cluster.orders[big] == StagesOrder(2, shares=((MAP + 1, 2),))
    small = cluster.job(1, 1.0)
    assert not cluster.of(small)
    # one container more comes to rest: the small job gets it
    cluster.told(big, StageLeft(MAP + 1, 3, task_s=10.0, running=1), idle=1)
    assert cluster.orders[big] == StagesOrder(4, limit=1)
    assert [one.container_id.attempt_id for one in cluster.end_one(big)] == [small]


def test_what_was_given_up_for_a_job_is_kept_for_it() -> None:
    cluster = Cluster("shortest", slots=2)
    big = cluster.job(2, 100.0)
    cluster.told(big, StageLeft(MAP, 2, task_s=100.0, running=2))
    small = cluster.job(1, 50.0)
    cluster.told(big, StageLeft(MAP, 1, task_s=100.0, running=1), StageLeft(MAP + 1, 9, task_s=100.0), idle=1)
    assert cluster.orders[big].limit == 1
    smaller = cluster.job(5, 0.001)
    assert [one.container_id.attempt_id for one in cluster.end_one(big)] == [small]
    assert [one.container_id.attempt_id for one in cluster.end_one(big)] == [smaller]


def test_a_queue_decides_at_most_every_interval_and_keeps_its_room_meanwhile() -> None:
    cluster = Cluster("shortest", slots=2, interval_s=10.0)
    first = cluster.job(9, 100.0)
    assert not cluster.of(first)
    assert cluster.scheduler.facts.stages_due_at is not None
    cluster.now = cluster.scheduler.facts.stages_due_at
    cluster.tell(StagesDue())
    assert len(cluster.of(first)) == 2
    assert cluster.scheduler.facts.stages_due_at is None
    second = cluster.job(1, 1.0)
    assert not cluster.end_one(first)
    due_at = cluster.scheduler.facts.stages_due_at
    assert due_at is not None
    cluster.now = due_at
    cluster.tell(StagesDue())
    assert len(cluster.of(second)) == 1


@pytest.mark.parametrize(("starve_s", "passes_all"), [(600.0, True), (16.0, False)])
def test_the_guard_of_such_queues_leaves_policies_room(starve_s: float, passes_all: bool) -> None:
    cluster = Cluster("shortest", slots=2, job_starvation=JobStarvation(1.0, stages_starve_s=starve_s))
    first = cluster.job(2, 500.0)
    long, short = cluster.job(90, 100.0), cluster.job(40, 1.0)
    for _ in range(2):
        cluster.end_one(first)
    cluster.given.clear()
    for ended in range(30):  # the long job asked first, and is passed
        cluster.now += 1.0
        cluster.told(short, StageLeft(MAP, 40 - ended, task_s=1.0, running=len(cluster.of(short))))
        if cluster.of(short):
            cluster.end_one(short)
    assert (long not in {attempt for attempt, _ in cluster.given}) is passes_all


def test_an_ask_that_needs_more_than_ends_at_a_time_has_a_node_reserved() -> None:
    cluster = Cluster("shortest", slots=4)
    small = cluster.job(60, 1.0)
    large = cluster.begin("jobs")
    cluster.asks(large, row(count=1, priority=MAP, size=SLOT * 4))
    for ended in range(40):
        cluster.now += 1.0
        cluster.told(small, StageLeft(MAP, 60 - ended, task_s=1.0, running=len(cluster.of(small))))
        cluster.beats(NODE)
        if cluster.of(small):
            cluster.end_one(small)
    assert len(cluster.of(large)) == 1


def test_an_ask_for_all_of_a_node_is_served_though_masters_come_and_go() -> None:
    cluster = Cluster("shortest", slots=4)
    before = cluster.begin("rest", master=SLOT)
    large = cluster.begin("jobs")
    cluster.asks(large, row(count=1, priority=MAP, size=SLOT * 4))
    cluster.told(large, StageLeft(MAP, 1, task_s=5.0))
    for _ in range(20):
        cluster.now += 3.0
        cluster.beats(NODE)
        after = cluster.begin("rest", master=SLOT)
        cluster.beats(NODE)
        for container in cluster.of(before):
            cluster.ends(container)
        cluster.tell(ApplicationEnded(before.application_id))
        before = after
    assert len(cluster.of(large)) == 1


def test_two_queues_get_what_they_are_guaranteed() -> None:
    cluster = Cluster("shortest", slots=10)
    ours = cluster.job(20, 1.0)
    theirs = cluster.begin("rest")
    cluster.ask(theirs, 20)
    for _ in range(20):
        cluster.end_one(ours if len(cluster.of(ours)) > 6 else theirs if cluster.of(theirs) else ours)
    assert (len(cluster.of(ours)), len(cluster.of(theirs))) == (6, 4)


def test_masters_of_others_count_as_one_stage_for_each_priority() -> None:
    cluster = Cluster("fair", slots=0)
    stock = cluster.begin("jobs")
    cluster.asks(stock, row(count=3, priority=REDUCE), row(count=3, priority=MAP))
    ours = cluster.job(6, 1.0)
    cluster.now += 1.0
    cluster.tell(NodeJoined(NODE, "/r", SLOT * 4))
    assert (len(cluster.of(stock)), len(cluster.of(ours))) == (2, 2)
    app = cluster.scheduler.facts.application(stock.application_id)
    found = cluster.scheduler.facts.stages_of(app.leaf) if app is not None else None
    assert found is not None
    assert found[1].sketches[0].priorities == (REDUCE, MAP)


def test_who_leaves_the_queue_is_told_to_decide_for_itself() -> None:
    cluster = Cluster("shortest")
    job = cluster.job(4, 1.0)
    assert cluster.orders[job].decides
    cluster.tell(ApplicationMoved(job.application_id, "rest"))
    cluster.told(job, StageLeft(MAP, 4, task_s=1.0), idle=1)
    assert not cluster.orders[job].decides
    cluster.tell(ApplicationMoved(job.application_id, "jobs"))
    cluster.told(job, StageLeft(MAP, 4, task_s=1.0), idle=1)
    assert cluster.orders[job].decides


def test_another_ordering_and_another_policy_come_with_a_refresh() -> None:
    cluster = Cluster("shortest", slots=1)
    long, short = cluster.job(3, 100.0), cluster.job(3, 1.0)
    cluster.now += 1.0
    cluster.tell(QueuesRefreshed(spec("fifo")))
    assert [one.container_id.attempt_id for one in cluster.end_one(long)] == [long]
    cluster.tell(QueuesRefreshed(spec("clotho")))
    cluster.now += 1.0
    assert [one.container_id.attempt_id for one in cluster.end_one(long)] == [short]
    cluster.tell(StagesChanged(StagesSpec("fifo", interval_s=0.0)))
    assert [one.container_id.attempt_id for one in cluster.end_one(short)] == [long]


def test_an_attempt_that_follows_begins_anew() -> None:
    cluster = Cluster("shortest")
    job = cluster.job(4, 1.0)
    cluster.tell(AttemptEnded(job))
    second = ApplicationAttemptId(job.application_id, 2)
    cluster.tell(AttemptStarted(second, ()))
    cluster.told(second, StageLeft(MAP, 2, task_s=1.0))
    assert cluster.orders[second].decides


def test_weights_that_do_not_load_leave_weighted_fair_sharing() -> None:
    cluster = Cluster("clotho")
    job = cluster.job(4, 1.0)
    assert len(cluster.of(job)) == 4


class Recorded(Cluster):
    """Writes down what is told and decided."""

    def __init__(self, policy: str) -> None:
        self.entries: list[str] = []
        super().__init__(policy)

    def tell(self, event: SchedulerEvent) -> list[Outcome]:
        decided = super().tell(event)
        self.entries.append(recording.entry(self.now, event, decided))
        return decided


def test_what_was_decided_can_be_played_again() -> None:
    cluster = Recorded("capped")
    jobs = [cluster.job(6, 10.0), cluster.job(3, 1.0)]
    cluster.told(jobs[0], StageLeft(MAP, 6, task_s=10.0, running=3), StageLeft(MAP + 1, 2, after=(MAP,)), idle=1)
    while cluster.live:
        cluster.end_one(next(iter(cluster.live)).attempt_id)
    found = recording.replay([recording.header(spec(), cluster.scheduler.limits), *cluster.entries])
    assert (found.difference, found.events) == (None, len(cluster.entries))


steps = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3), st.integers(0, 9)), max_size=60)


@settings(max_examples=examples(60))
@given(steps, st.sampled_from(["fifo", "shortest", "weighted-fair", "capped", "packing", "trouble"]), st.booleans())
def test_no_room_stays_empty_while_somebody_wants_it(
    steps: list[tuple[int, int, int]], policy: str, slow: bool
) -> None:
    cluster = Cluster(policy, slots=3, interval_s=0.05 if slow else 0.0)
    jobs = [cluster.begin("jobs" if number else "rest") for number in range(4)]
    wanted = dict.fromkeys(jobs, 0)
    for what, whose, many in steps:
        job = jobs[whose]
        cluster.now += 0.01
        if what <= 1:
            wanted[job] = many
            cluster.asks(job, row(count=many, priority=MAP + what))
        elif what == 2:
            stages = (StageLeft(MAP, many, task_s=float(whose)), StageLeft(MAP + 1, 3, after=(MAP,), running=1))
            cluster.tell(LeftTold(job, stages, many))
        elif what == 3:
            cluster.now += many
        elif cluster.of(job):
            cluster.ends(cluster.of(job)[0])
    settle(cluster)
    waiting = cluster.scheduler.view.root.waiting
    free = cluster.scheduler.view.nodes.total - cluster.scheduler.view.root.used
    assert not waiting or free.vcores == 0


def settle(cluster: Cluster) -> None:
    """Let every queue decide that waits for its time."""
    for _ in range(10):
        due_at = cluster.scheduler.facts.stages_due_at
        if due_at is None:
            return
        cluster.now = max(cluster.now, due_at)
        event: SchedulerEvent = StagesDue()
        cluster.tell(event)
