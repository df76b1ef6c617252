"""Leaf queues that decide stage by stage who gets what comes free."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rm.scheduler import recording
from rm.scheduler.decisions import Allocate, Outcome, StagesOrdered
from rm.scheduler.events import (
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
from rm.scheduler.queues.spec import SchedulerSpec
from rm.scheduler.stages.spec import StagesSpec
from rm.scheduler.view.calculators import AllocationBounds
from tests.examples import examples
from tests.rm.rm_world import SLOT, World, queues, row
from yaqd.model import ApplicationAttemptId, ContainerId, NodeId
from yaqd.model.stages import StagesOrder
from yaqd.policies.queueing.left import StageLeft

NODE = NodeId("a", 1)
MAP, REDUCE = 20, 10


def spec(ordering: str = "clotho", other: str = "fifo") -> SchedulerSpec:
    values = {
        "root.queues": "jobs,rest",
        "root.jobs.capacity": "60",
        "root.rest.capacity": "40",
        "root.jobs.maximum-capacity": "100",
        "root.rest.maximum-capacity": "100",
        "root.jobs.user-limit-factor": "10",
        "root.rest.user-limit-factor": "10",
        "root.jobs.ordering-policy": ordering,
        "root.rest.ordering-policy": other,
        "maximum-am-resource-percent": "1.0",
    }
    return queues(values)


class Cluster(World):
    """One node of a few slots. Masters run outside."""

    def __init__(self, policy: str = "shortest", slots: int = 4, *, interval_s: float = 0.0, **more: Any) -> None:
        super().__init__(
            spec(),
            bounds=AllocationBounds(SLOT, SLOT * 4),
            stages=StagesSpec(policy, interval_s=interval_s),
            **more,
        )
        #: by attempt, the newest
        self.orders: dict[ApplicationAttemptId, StagesOrder] = {}
        self.given: list[tuple[ApplicationAttemptId, int]] = []
        if slots:
            self.tell(NodeJoined(NODE, "/r", SLOT * slots))

    def follow(self, decision: Outcome) -> None:
        super().follow(decision)
        if isinstance(decision, StagesOrdered):
            before = self.orders.get(decision.attempt_id)
            assert before is None or decision.order.sequence > before.sequence
            self.orders[decision.attempt_id] = decision.order
        if isinstance(decision, Allocate):
            self.given.append((decision.container_id.attempt_id, decision.priority))

    def told(self, attempt: ApplicationAttemptId, *stages: StageLeft, idle: int = 0) -> list[Outcome]:
        self.now += 0.1
        return self.tell(LeftTold(attempt, stages, idle))

    def ask(self, attempt: ApplicationAttemptId, tasks: int, priority: int = MAP) -> list[Allocate]:
        self.now += 0.1
        return self.asks(attempt, row(count=tasks, priority=priority))

    def job(self, tasks: int, task_s: float, *, queue: str = "jobs") -> ApplicationAttemptId:
        """A job of one stage that tells of it and asks for all its tasks."""
        attempt = self.begin(queue)
        self.told(attempt, StageLeft(MAP, tasks, task_s=task_s))
        self.ask(attempt, tasks)
        return attempt

    def of(self, attempt: ApplicationAttemptId) -> list[ContainerId]:
        return [container for container in self.live if container.attempt_id == attempt]

    def end_one(self, attempt: ApplicationAttemptId) -> list[Allocate]:
        self.now += 0.1
        return self.ends(self.of(attempt)[0])


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


def test_what_was_decided_can_be_played_again() -> None:
    cluster = Cluster("capped")
    lines = [recording.header(spec(), cluster.scheduler.limits)]
    tell = cluster.tell

    def noted(event: SchedulerEvent) -> list[Outcome]:
        decided = tell(event)
        lines.append(recording.entry(cluster.now, event, decided))
        return decided

    lines.append(recording.entry(0.0, NodeJoined(NODE, "/r", SLOT * 4), ()))
    cluster.tell = noted  # type: ignore[method-assign]
    jobs = [cluster.job(6, 10.0), cluster.job(3, 1.0)]
    cluster.told(jobs[0], StageLeft(MAP, 6, task_s=10.0, running=3), StageLeft(MAP + 1, 2, after=(MAP,)), idle=1)
    while cluster.live:
        cluster.end_one(next(iter(cluster.live)).attempt_id)
    found = recording.replay(lines)
    assert (found.difference, found.events) == (None, len(lines) - 1)


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
