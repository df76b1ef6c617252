"""Masters that tell what cannot be, and scenes that are large or odd, in queues that decide by stages."""

import math

import pytest

from rm.scheduler.events import (
    ApplicationMoved,
    NodeJoined,
    StagesDue,
)
from tests.rm.rm_stages import MAP, NODE, REDUCE, Cluster
from tests.rm.rm_world import SLOT, row
from yaqd.policies.queueing.left import StageLeft

HOSTILE = [
    (StageLeft(1, 5, after=(2,)), StageLeft(2, 5, after=(1,))),
    (StageLeft(1, 5, after=(1,)),),
    (StageLeft(1, 2**31, task_s=math.nan), StageLeft(2, 2**31, task_s=-1.0)),
    (StageLeft(1, -5, task_s=math.inf, running=2**40),),
    tuple(StageLeft(number, 1, after=tuple(range(number))) for number in range(3000)),
    (StageLeft(1, 5, after=(999, 998)),),
    (),
]


@pytest.mark.parametrize("stages", HOSTILE)
def test_whatever_a_master_tells_others_go_on(stages: tuple[StageLeft, ...]) -> None:
    cluster = Cluster("weighted-fair", slots=2)
    liar = cluster.begin("jobs")
    cluster.told(liar, *stages, idle=10**9)
    cluster.ask(liar, 4, 1)
    honest = cluster.job(2, 1.0)
    for at in range(6):
        cluster.told(liar, *stages, StageLeft(5000 + at, 1), idle=2**31 - 1)
        for attempt in (liar, honest):
            if cluster.of(attempt):
                cluster.end_one(attempt)
    assert cluster.of(honest) or cluster.given.count((honest, MAP)) == 2


def test_more_than_one_decision_can_choose_is_given_by_several() -> None:
    cluster = Cluster("shortest", slots=0)
    jobs = [cluster.job(1, 1.0) for _ in range(150)]
    cluster.now += 1.0
    cluster.tell(NodeJoined(NODE, "/r", SLOT * 150))
    for _ in range(5):
        cluster.now += 0.1
        cluster.tell(StagesDue())
    assert all(len(cluster.of(job)) == 1 for job in jobs)
    assert cluster.scheduler.facts.stages_due_at is None


def test_a_master_that_tells_only_after_it_has_asked_breaks_nothing() -> None:
    cluster = Cluster("shortest", slots=2)
    odd = cluster.begin("jobs")
    cluster.ask(odd, 1, 7)
    cluster.told(odd, idle=1)
    other = cluster.job(1, 1.0)
    assert len(cluster.of(odd)) == 1 and len(cluster.of(other)) == 1


def test_what_a_master_tells_as_running_is_cut_to_what_it_has() -> None:
    cluster = Cluster("weighted-fair", slots=4)
    liar = cluster.begin("jobs")
    cluster.told(liar, StageLeft(MAP, 10**7, task_s=1.0, running=10**7))
    cluster.ask(liar, 1)
    found = cluster.stands(liar)
    assert (found.containers, sum(found.stages.running)) == (1, 1)


def test_an_ask_for_which_there_is_no_room_hides_no_room_from_others() -> None:
    cluster = Cluster("shortest", slots=0)
    large = cluster.begin("jobs", priority=5)
    cluster.asks(large, row(count=1, priority=MAP, size=SLOT * 4))
    long, short = cluster.job(4, 100.0), cluster.job(1, 1.0)
    cluster.now += 1.0
    cluster.tell(NodeJoined(NODE, "/r", SLOT * 2))
    assert (len(cluster.of(short)), len(cluster.of(long))) == (1, 1)
    assert cluster.given[0] == (short, MAP)


def test_the_chosen_stage_goes_first_also_where_it_is_larger() -> None:
    cluster = Cluster("shortest", slots=0)
    job = cluster.begin("jobs")
    cluster.told(
        job, StageLeft(10, 1, task_s=1.0), StageLeft(20, 1, task_s=1.0), StageLeft(30, 5, task_s=60.0, after=(20,))
    )
    cluster.asks(job, row(count=1, priority=10), row(count=1, priority=20, size=SLOT * 2))
    cluster.now += 1.0
    cluster.tell(NodeJoined(NODE, "/r", SLOT * 2))
    assert cluster.given[0] == (job, 20)


def test_who_goes_to_another_queue_is_served_by_priority_again() -> None:
    cluster = Cluster("shortest", slots=0)
    job = cluster.begin("jobs")
    cluster.told(job, StageLeft(10, 1, task_s=1.0), StageLeft(20, 9, task_s=100.0))
    cluster.asks(job, row(count=1, priority=10), row(count=9, priority=20))
    cluster.now += 1.0
    cluster.tell(NodeJoined(NODE, "/r", SLOT))
    assert cluster.given == [(job, 20)]
    cluster.tell(ApplicationMoved(job.application_id, "rest"))
    cluster.end_one(job)
    assert cluster.given == [(job, 20), (job, 10)]


def test_room_that_is_kept_goes_to_nobody_who_happens_to_ask() -> None:
    cluster = Cluster("shortest", slots=10, interval_s=10.0)
    cluster.now = 10.0
    ours, theirs = cluster.job(20, 1.0), cluster.begin("rest")
    cluster.now = 30.0
    cluster.tell(StagesDue())
    assert len(cluster.of(ours)) == 10
    cluster.ask(theirs, 1)
    cluster.end_one(ours)
    assert len(cluster.of(theirs)) == 1, "it needs more"
    for _ in range(3):
        cluster.end_one(ours)
    # four are free: the queue is above its part, so theirs may take what it asks for at the next decision
    assert not cluster.ask(theirs, 5, REDUCE)
    due_at = cluster.scheduler.facts.stages_due_at
    assert due_at is not None
    cluster.now = due_at
    cluster.tell(StagesDue())
    assert len(cluster.of(ours)) + len(cluster.of(theirs)) == 10


def test_containers_that_are_told_again_and_again_are_given_up_once() -> None:
    cluster = Cluster("shortest", slots=2)
    big = cluster.job(2, 100.0)
    cluster.told(big, StageLeft(MAP, 2, task_s=100.0, running=2))
    small = cluster.job(50, 0.1)
    for _ in range(10):
        cluster.told(big, StageLeft(MAP, 1, task_s=100.0, running=1), StageLeft(MAP + 1, 9, task_s=100.0), idle=1)
    app = cluster.scheduler.facts.application(small.application_id)
    found = cluster.scheduler.facts.stages_of(app.leaf) if app is not None else None
    assert found is not None
    assert sum(turn.left for turn in found[0]._promises) <= 2


def test_the_work_of_the_whole_job_is_known_also_when_a_stage_is_told_of_that_nobody_knows() -> None:
    cluster = Cluster("weighted-fair", slots=2)
    job = cluster.begin("jobs")
    cluster.told(job, StageLeft(MAP, 10, task_s=10.0))
    cluster.ask(job, 1)
    cluster.told(job, StageLeft(MAP, 1, task_s=10.0, running=1), StageLeft(MAP + 1, 5))
    cluster.ask(job, 2)
    facts = cluster.stands(job).facts
    assert facts is not None and facts.whole_s == 100.0
