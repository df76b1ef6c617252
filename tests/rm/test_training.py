"""Training jobs at the ResourceManager: what they report, how their cores are divided, what is ordered."""

import math

import pytest

from rm.scheduler.decisions import CoresTargeted
from rm.scheduler.events import AttemptEnded, QualityChanged, QualityDue, TrainingReported
from rm.scheduler.quality.spec import QualitySpec
from tests.rm.rm_world import GB, HALVES, World, queues
from yaqd.model import ApplicationAttemptId, Resource
from yaqd.model.training import CoresOrder, TrainingReport
from yaqd.policies.asks.rows import AskRow
from yaqd.policies.quality.facts import Reason

EIGHT = Resource(64 * GB, 8)


class Life(World):
    def __init__(self, spec: QualitySpec | None = QualitySpec(), **lines: str) -> None:
        super().__init__(queues(HALVES) if lines.get("halves") else None, quality=spec)
        self.join("a", EIGHT)
        self.sequence = 0
        self.used: dict[ApplicationAttemptId, float] = {}

    def report(self, job: ApplicationAttemptId, *losses: float, first: int = 0, **said: float) -> list[CoresTargeted]:
        self.sequence += 1
        report = TrainingReport(self.sequence, first, losses, **said)  # type: ignore[arg-type]
        return [d for d in self.tell(TrainingReported(job, report)) if isinstance(d, CoresTargeted)]

    def epoch(self) -> dict[ApplicationAttemptId, int | None]:
        """A second passes; returns what was ordered in it."""
        self.now += 1.0
        used = tuple((job.application_id, cpu_s) for job, cpu_s in self.used.items())
        return {d.attempt_id: d.order.milli for d in self.tell(QualityDue(used)) if isinstance(d, CoresTargeted)}

    def cores(self, job: ApplicationAttemptId) -> int:
        known = self.scheduler.facts.training(job.application_id)
        assert known is not None and known.order is not None and known.order.milli is not None
        return known.order.milli


def falling(iterations: int, rate: float, height: float = 1.0) -> list[float]:
    return [height * rate**k for k in range(iterations)]


def test_the_first_report_is_answered_at_once_with_all_there_is() -> None:
    life = Life()
    job = life.begin()
    (ordered,) = life.report(job, max_milli=4000)
    assert ordered.order.milli == 4000 and ordered.order.reason == Reason.CAP
    assert not life.report(job, 1.0, max_milli=4000), "an epoch decides what comes later"


def test_who_falls_fast_gets_more_than_who_has_converged_and_all_get_something() -> None:
    life = Life(QualitySpec(policy="slaq-total"))
    fast, flat = life.begin(), life.begin()
    for job, losses in ((fast, falling(12, 0.8)), (flat, falling(12, 0.2))):
        life.report(job)
        life.report(job, *losses, cpu_ms_per_iteration=4000.0, min_milli=500)
    life.epoch()
    assert life.cores(fast) >= 3 * life.cores(flat) >= 3 * 50
    assert life.cores(fast) + life.cores(flat) <= 8000


def test_a_program_that_starts_takes_one_core_from_others_and_all_that_nobody_needs() -> None:
    life = Life()
    alone = life.begin()
    life.report(alone)
    assert life.cores(alone) == 8000
    life.report(alone, *falling(12, 0.9))
    starting, of_class = life.begin(), life.begin()
    life.report(starting)
    assert life.cores(starting) == 1000, "it imports"
    life.epoch()
    assert life.cores(starting) == 1000
    life.report(starting, 1.0)
    life.epoch()
    assert life.cores(starting) > 1000, "a new one is taken to fall fast"
    life.report(of_class, partitions=8)
    life.epoch()
    assert life.cores(of_class) > 1000, "its workers load their data"


def test_a_program_that_says_no_loss_for_long_is_not_starting() -> None:
    life = Life()
    other, silent = life.begin(), life.begin()
    life.report(other, *falling(12, 0.9))
    life.report(silent)
    life.epoch()
    assert life.cores(silent) == 1000
    for _ in range(3):
        life.epoch()
    assert life.cores(silent) > 1000


def test_a_repeated_report_and_iterations_that_go_back_count_nothing_twice() -> None:
    life = Life()
    job = life.begin()
    life.report(job, 1.0, 0.5)
    again = TrainingReport(life.sequence, 2, (0.1,))
    life.tell(TrainingReported(job, again))
    known = life.scheduler.facts.training(job.application_id)
    assert known is not None and known.iteration == 1, "its number was heard before"
    life.report(job, 9.0, 9.0, first=0)
    assert known.iteration == 1


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf, 1e300, -5.0, 0.0])
def test_no_loss_harms_the_division(loss: float) -> None:
    life = Life()
    honest, liar = life.begin(), life.begin()
    life.report(honest, *falling(10, 0.7))
    life.report(liar, *[loss] * 10, weight=math.nan, target=loss, min_milli=1 << 40, max_milli=-5)
    for _ in range(3):
        life.epoch()
        cores = life.cores(honest), life.cores(liar)
        assert min(cores) >= 50 and sum(cores) <= 8000


def test_what_an_iteration_costs_is_counted_from_what_nodes_tell() -> None:
    life = Life()
    job = life.begin()
    life.report(job, cpu_ms_per_iteration=1.0)
    known = life.scheduler.facts.training(job.application_id)
    assert known is not None
    for second in range(1, 30):
        life.report(job, 1 / second, first=second - 1, cpu_ms_per_iteration=1.0)
        life.used[job] = 2.0 * second
        life.epoch()
    assert known.cost.work_s == pytest.approx(2.0, rel=0.05), "the job says 1 ms"
    assert 0.0 <= known.cost.fixed_s <= 1.0


def test_who_reports_no_loss_gets_an_equal_share_in_the_end() -> None:
    life = Life(QualitySpec(policy="slaq-total"))
    silent, honest = life.begin(), life.begin()
    life.report(silent)
    life.report(honest, *falling(20, 0.9))
    life.epoch()
    life.used[silent] = 40.0
    life.epoch()
    assert life.cores(silent) <= 4000


def test_queues_share_by_their_guarantees_and_go_by_their_own_policy() -> None:
    life = Life(QualitySpec(policy="fair", leaves={"root.b": "slaq-total"}), halves="yes")
    here, there = life.begin("a"), life.begin("b")
    life.report(here, *falling(5, 0.9))
    life.report(there, *falling(5, 0.9))
    life.epoch()
    assert (life.cores(here), life.cores(there)) == (4000, 4000)
    life.tell(AttemptEnded(here))
    life.epoch()
    assert life.cores(there) == 8000, "nobody else trains"


def test_what_a_queue_s_jobs_cannot_use_goes_to_the_other_queue_s() -> None:
    life = Life(QualitySpec(policy="fair"), halves="yes")
    capped, hungry = life.begin("a"), life.begin("b")
    life.report(capped, *falling(5, 0.9), max_milli=1000)
    life.report(hungry, *falling(5, 0.9), max_milli=9000)
    life.epoch()
    assert (life.cores(capped), life.cores(hungry)) == (1000, 7000)


def test_containers_of_others_leave_less() -> None:
    life = Life()
    life.asks(life.begin(), AskRow(1, -1, "*", Resource(GB, 1), 3))
    job = life.begin()
    (ordered,) = life.report(job)
    held = sum(given.resource.vcores for given in life.live.values() if given.container_id.attempt_id != job)
    assert ordered.order.milli == 1000 * (8 - held)


def test_turned_off_all_use_what_they_can_and_turned_on_again_they_are_told() -> None:
    life = Life()
    job = life.begin()
    life.report(job, 1.0, max_milli=3000, partitions=4)
    (decision,) = life.tell(QualityChanged(None))
    assert isinstance(decision, CoresTargeted) and decision.order.milli is None
    assert not life.scheduler.facts.training_outlooks(), "no policy is named for cores that nobody divides"
    assert not life.report(job, 0.5, first=1) and not life.epoch()
    (decision,) = life.tell(QualityChanged(QualitySpec()))
    assert isinstance(decision, CoresTargeted) and decision.order.milli == 3000, "its terms are known still"
    known = life.scheduler.facts.training(job.application_id)
    assert known is not None and known.partitions == 4 and known.iteration == 1


def test_a_program_whose_iterations_take_long_is_not_held_to_the_cores_that_it_had_before() -> None:
    """It fits its threads to an order with its next report; the first half of a minute it loads data in one thread."""
    life = Life(QualitySpec(policy="slaq-total"))
    job, other = life.begin(), life.begin()
    life.report(job, max_milli=8000)
    life.report(other, *falling(30, 0.5), max_milli=8000)
    used, done, threads, left = 0.0, 0, 1.0, 8.0
    for second in range(1, 120):
        cores = min(threads, life.cores(job) / 1000)
        used += cores
        life.used[job] = used
        if second > 30:
            left -= cores
            if left <= 0:
                done, left, threads = done + 1, 8.0, max(1.0, life.cores(job) / 1000)
                life.report(job, 0.8**done, first=done)
        life.epoch()
        known = life.scheduler.facts.training(job.application_id)
        assert known is not None and known.usable >= 8000
    assert done > 15


def test_an_attempt_that_ends_is_forgotten() -> None:
    life = Life()
    job = life.begin()
    life.report(job, 1.0)
    life.tell(AttemptEnded(job))
    assert life.scheduler.facts.training(job.application_id) is None and not life.scheduler.facts.training_jobs()
    assert not life.report(job, 0.5), "a late report begins nothing"


def test_who_names_no_least_gets_a_part_and_the_rest_goes_by_gain() -> None:
    life = Life(QualitySpec(policy="slaq-total", milli=2000))
    jobs = [life.begin() for _ in range(6)]
    for number, job in enumerate(jobs):
        life.report(job, max_milli=2000)
        life.report(job, *falling(20, 0.9 if number == 0 else 0.1), cpu_ms_per_iteration=500.0)
    life.epoch()
    assert life.cores(jobs[0]) >= 1000 and all(50 <= life.cores(job) < 333 for job in jobs[1:])


@pytest.mark.parametrize(("least", "granted"), [(300, 300), (1000, 500)])
def test_least_cores_are_an_equal_share_only_where_not_all_fit(least: int, granted: int) -> None:
    life = Life(QualitySpec(policy="slaq-total", milli=2000))
    jobs = [life.begin() for _ in range(4)]
    for number, job in enumerate(jobs):
        life.report(job, max_milli=2000, min_milli=least)
        life.report(job, *falling(20, 0.9 if number == 0 else 0.1), cpu_ms_per_iteration=500.0)
    life.epoch()
    assert all(life.cores(job) >= granted for job in jobs) and sum(map(life.cores, jobs)) <= 2000


def test_cost_is_counted_by_the_cores_that_were_ordered_meanwhile() -> None:
    """Two core-seconds an iteration and nothing beside them, while orders go up and down and others are in the way."""
    life = Life(QualitySpec(policy="fair"))
    job = life.begin()
    life.report(job, 1.0, max_milli=8000)
    known = life.scheduler.facts.training(job.application_id)
    assert known is not None
    used, done = 0.0, 0.0
    for second in range(1, 40):
        milli = known.order.milli if known.order is not None and known.order.milli is not None else 0
        used += milli / 1000 * (0.5 if second % 4 == 0 else 1.0)
        if int(used / 2) > int(done):
            done = used / 2
            life.report(job, 1 / second, first=int(done))
        life.used[job] = used
        other = life.begin() if second % 7 == 0 else None
        if other is not None:
            life.report(other, 1.0, max_milli=8000)
        life.epoch()
        if other is not None:
            life.tell(AttemptEnded(other))
    assert known.cost.work_s == pytest.approx(2.0, rel=0.2) and known.cost.fixed_s < 0.1


@pytest.mark.parametrize("policy", ["finish", "slaq-total"])
def test_a_program_of_one_thread_keeps_no_cores_that_others_could_use(policy: str) -> None:
    """Alike but for their threads: each iteration is two core-seconds."""
    life = Life(QualitySpec(policy=policy))
    narrow, wide = life.begin(), life.begin()
    used, done = dict.fromkeys((narrow, wide), 0.0), dict.fromkeys((narrow, wide), 0)
    for job in used:
        life.report(job, 1.0, max_milli=8000, iterations_expected=400)
    held = []
    for _ in range(60):
        for job, threads in ((narrow, 1.0), (wide, 8.0)):
            used[job] += min(threads, life.cores(job) / 1000)
            for iteration in range(done[job] + 1, int(used[job] / 2) + 1):
                life.report(job, 0.98**iteration, first=iteration)
                done[job] = iteration
            life.used[job] = used[job]
        life.epoch()
        held.append(life.cores(narrow))
    assert max(held[25:]) <= 1500 and life.cores(wide) >= 6500


def test_who_was_ordered_nothing_is_not_taken_to_leave_cores_unused() -> None:
    life = Life()
    begun = life.begin()
    life.report(begun, *falling(6, 0.9))
    job = life.scheduler.facts.training(begun.application_id)
    assert job is not None
    job.ordered(CoresOrder(1, 0, int(Reason.OUTNUMBERED)), 0.0)
    for second in range(1, 30):
        job.iteration += 1
        job.timed(0.02 * second, float(second))  # what a held program needs to answer
        job.look(float(second))
    assert job.uses(30.0) > 8000


def test_what_a_job_did_before_its_checkpoint_cost_nothing_here() -> None:
    life = Life()
    job = life.begin()
    life.report(job, *falling(20, 0.9))
    life.report(job, *falling(40, 0.9, 0.1), first=160)
    known = life.scheduler.facts.training(job.application_id)
    assert known is not None
    for second in range(1, 8):
        life.report(job, 0.001 / second, first=199 + second)
        life.used[job] = 2.0 * second
        life.epoch()
    assert known.cost.work_s == pytest.approx(2.0), "two core-seconds an iteration since it is here"
