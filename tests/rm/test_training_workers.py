"""Workers of training jobs are containers: where room is short they are shared, and taken where they are not handed
back."""

from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rm.scheduler.decisions import Preempt
from rm.scheduler.events import ContainerEnded, QualityDue, TrainingReported
from rm.scheduler.quality.job import TrainingJob
from rm.scheduler.quality.spec import QualitySpec
from rm.scheduler.quality.workers import fitted
from tests.rm.rm_world import GB, HALVES, ONE_QUEUE, SLOT, World, queues, row
from yaqd.model import ApplicationAttemptId, ContainerId, Resource
from yaqd.model.training import TrainingReport
from yaqd.policies.asks.rows import AskRow

DRIVER, WORKER = 5, 10
#: masters may take all there is, and one user a whole queue and more
_ALL_MAY = {"maximum-am-resource-percent": "1.0", "root__a__user-limit-factor": "10"}


class Life(World):
    """Ten slots on two nodes. Jobs want as many workers as their cores allow, and hand back what is too much if asked
    to."""

    def __init__(self, policy: str = "fair", **lines: bool) -> None:
        tree = queues(HALVES if lines.get("halves") else ONE_QUEUE, **_ALL_MAY)
        super().__init__(tree, quality=QualitySpec(policy=policy))
        self.nodes = [self.join(host, SLOT * 5) for host in "ab"]
        self.sequence = 0
        self.stubborn: set[ApplicationAttemptId] = set()
        self.preempted: list[ContainerId] = []

    def trains(self, queue: str = "default", partitions: int = 8) -> ApplicationAttemptId:
        """Begin a job; its master may have to wait."""
        job = self.begin(queue, master=SLOT)
        self.beats(*self.nodes)
        if self.containers(job):
            self.registers(job, partitions)
        return job

    def registers(self, job: ApplicationAttemptId, partitions: int = 8) -> None:
        self.sequence += 1
        report = TrainingReport(self.sequence, 0, (), max_milli=8000, partitions=partitions)
        self.tell(TrainingReported(job, report))
        self.asks(job, row(size=SLOT, priority=DRIVER))

    def containers(self, job: ApplicationAttemptId) -> list[ContainerId]:
        return sorted(one for one in self.live if one.attempt_id == job)

    def workers(self, job: ApplicationAttemptId) -> list[ContainerId]:
        return [one for one in self.containers(job) if self.live[one].priority == WORKER]

    def epoch(self) -> None:
        """A second passes: masters do as they were told, nodes beat, cores are divided."""
        self.now += 1.0
        for known in self.scheduler.facts.training_jobs():
            job, milli = known.attempt.id, known.order.milli if known.order else None
            wanted, has = max(1, -(-(milli or 0) // 1000)), self.workers(job)
            self.asks(job, AskRow(WORKER, -1, "*", SLOT, max(0, wanted - len(has))))
            for extra in has[wanted:] if job not in self.stubborn else ():
                self.ends(extra)
        self.beats(*self.nodes)
        for decision in self.tell(QualityDue(())):
            if isinstance(decision, Preempt):
                self.preempted.append(decision.container_id)
                self.tell(ContainerEnded(decision.container_id))


def test_what_has_no_room_is_not_ordered() -> None:
    life = Life()
    job = life.trains()
    for _ in range(4):
        life.epoch()
    known = life.scheduler.facts.training(job.application_id)
    assert len(life.workers(job)) == 8 and known is not None and known.order is not None
    assert known.order.milli == 8000
    life.begin(master=SLOT * 2)
    for _ in range(6):
        life.epoch()
    assert len(life.workers(job)) <= 6, "another one's master has its room"


def test_a_newcomer_gets_its_part_of_a_full_cluster() -> None:
    life = Life()
    first = life.trains()
    for _ in range(4):
        life.epoch()
    second = life.trains()
    assert not life.containers(second), "the first one has it all"
    for _ in range(4):
        life.epoch()
    life.registers(second)
    for _ in range(12):
        life.epoch()
    assert len(life.workers(first)) == len(life.workers(second)) == 3
    assert not life.preempted
    orders = [known.order and known.order.milli for known in life.scheduler.facts.training_jobs()]
    life.epoch()
    assert orders == [known.order and known.order.milli for known in life.scheduler.facts.training_jobs()] == [3000] * 2


def test_what_is_not_handed_back_in_time_is_preempted_workers_alone_the_last_ones_first() -> None:
    life = Life()
    job = life.trains()
    for _ in range(4):
        life.epoch()
    first_ones = life.workers(job)[:7]
    life.stubborn.add(job)
    newcomer = life.begin(master=SLOT)
    for _ in range(15):
        life.epoch()
    assert not life.preempted and len(life.workers(job)) == 8
    for _ in range(2):
        life.epoch()
    assert len(life.preempted) == 1 and life.workers(job) == first_ones
    life.epoch()
    assert life.containers(newcomer)


@pytest.mark.parametrize("policy", ["fair", "finish", "slaq-total", "slaq-maxmin"])
def test_parts_of_cores_do_not_keep_a_newcomer_out(policy: str) -> None:
    """2.5 cores each are three workers each, and so all that there is."""
    life = Life(policy)
    first, second = life.trains(), life.begin(master=SLOT)
    for _ in range(20):
        life.epoch()
        if life.containers(second) and life.scheduler.facts.training(second.application_id) is None:
            life.registers(second)
    assert len(life.containers(first)) + len(life.containers(second)) == 10
    newcomer = life.begin(master=SLOT)
    for _ in range(8):
        life.epoch()
    assert life.containers(newcomer)
    assert life.workers(first) and life.workers(second)


def test_who_can_never_be_made_room_for_takes_no_worker() -> None:
    """A whole node, where each has a master or a driver that stays."""
    life = Life()
    job = life.trains()
    for _ in range(4):
        life.epoch()
    other = life.begin(master=SLOT)
    for _ in range(6):
        life.epoch()
    assert life.containers(other) and len(life.workers(job)) == 7
    life.asks(other, row(size=Resource(5 * GB, 1), priority=3))
    for _ in range(10):
        life.epoch()
        assert len(life.workers(job)) == 7


def test_one_that_has_its_share_drives_nobody_out() -> None:
    life = Life()
    hog = life.begin(master=SLOT)
    life.beats(*life.nodes)
    life.asks(hog, AskRow(1, -1, "*", SLOT, 20))
    life.beats(*life.nodes)
    job = life.trains()
    assert len(life.containers(hog)) > 5 and not life.containers(job)


@pytest.mark.parametrize("other", ["a", "b"])
def test_a_queue_below_its_guarantee_gets_room_from_one_above(other: str) -> None:
    life = Life(halves=True)
    job = life.trains("a")
    for _ in range(4):
        life.epoch()
    assert len(life.workers(job)) == 8
    waits = life.begin(other, master=SLOT)
    for _ in range(4):
        life.epoch()
    assert life.containers(waits)


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 9000)), min_size=1, max_size=12),
    st.integers(0, 60),
)
def test_fitted_workers_fit_and_each_job_keeps_one(jobs: list[tuple[bool, int]], workers: int) -> None:
    made = [SimpleNamespace(partitions=8 if has_workers else 0) for has_workers, _ in jobs]
    milli = [one for _, one in jobs]
    wanted = [max(1, -(-one // 1000)) for has_workers, one in jobs if has_workers]
    most = fitted(cast(list[TrainingJob], made), milli, workers)
    if most is None:
        assert sum(wanted) <= workers
        return
    given_ = [limit // 1000 for limit, (has_workers, _) in zip(most, jobs, strict=True) if has_workers]
    assert sum(given_) == max(workers, len(given_))
    assert all(1 <= one <= want for one, want in zip(given_, wanted, strict=True))
    assert all(limit >= one for limit, (has_workers, one) in zip(most, jobs, strict=True) if not has_workers)
