"""Which job is served next where jobs wait for a whole cluster: Yaq, section 3.4.1.

The strategies of the node queues one floor higher, with the same guard: a job that has waited longer than min(ST,
ST_r x its duration) since it was last served goes first, the earlier one of two such. It combines freely with any order
at the nodes. Durations are compared in steps (`steps.step`); jobs in the same one take turns as they were submitted.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Final

from yaqd.model import ApplicationId
from yaqd.model.values import value
from yaqd.policies.queueing import limits
from yaqd.policies.queueing.facts import JobFacts
from yaqd.policies.queueing.registry import PolicyTable
from yaqd.policies.queueing.steps import step


@value()
class WaitingJob:
    """A job that wants more than it holds."""

    job: ApplicationId
    #: when it was submitted
    arrival: float
    #: since when it wants something and was given nothing
    since: float
    facts: JobFacts = JobFacts()
    #: how long it takes from its first task's start to its last one's end, s; None when nobody knows
    duration: float | None = None


#: the rank of a job, the smallest first; inf is last, and NaN counts as inf
JobRank = Callable[[WaitingJob], float]


def _remaining_work(job: WaitingJob) -> float:
    return step(job.facts.remaining_work)


def _remaining_tasks(job: WaitingJob) -> float:
    return limits.duration(job.facts.remaining_tasks)


def _arrival(job: WaitingJob) -> float:
    return job.arrival


def _duration(job: WaitingJob) -> float:
    return step(job.duration)


def _critical_path(job: WaitingJob) -> float:
    return step(job.facts.critical_path)


JOB_ORDERS: Final[PolicyTable[JobRank]] = PolicyTable(
    "job-order",
    {
        "srjf": _remaining_work,
        "lrtf": _remaining_tasks,
        "ejf": _arrival,
        "sjf": _duration,
        "cpath": _critical_path,
    },
)
#: those that go by what is left of a job alone, and not by since when it waits
SHIPPED: Final = frozenset(("srjf", "lrtf", "ejf", "sjf", "cpath"))


@dataclass(frozen=True, slots=True)
class JobOrdering:
    """The order of a leaf queue's jobs: a value."""

    #: a name in JOB_ORDERS or of an entry point in `yaqd.job_order`; another raises UnknownPolicy
    strategy: str = "srjf"
    #: ST, s; inf turns the guard off
    starve_s: float = 60.0
    #: ST_r
    starve_ratio: float = 10.0
    _rank: JobRank = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "starve_s", limits.threshold(self.starve_s))
        object.__setattr__(self, "starve_ratio", limits.threshold(self.starve_ratio))
        object.__setattr__(self, "_rank", JOB_ORDERS[self.strategy])

    def key(self, job: WaitingJob, now: float) -> tuple[bool, float, float, ApplicationId]:
        """A sort key, the smallest first; no two jobs have the same."""
        if self.is_starved(job, now):
            return False, limits.rank(job.arrival), limits.rank(job.since), job.job
        return True, limits.rank(self._rank(job)), limits.rank(job.arrival), job.job

    def sorted(self, jobs: Iterable[WaitingJob], now: float) -> list[WaitingJob]:
        return sorted(jobs, key=lambda job: self.key(job, now))

    def is_starved(self, job: WaitingJob, now: float) -> bool:
        """A clock that went backwards starves nobody."""
        waited, duration = now - job.since, limits.duration(job.duration)
        return waited > self.starve_s or (0.0 < duration < inf and waited > duration * self.starve_ratio)
