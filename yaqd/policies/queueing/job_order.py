"""Which job is served next where jobs wait for a whole cluster: Yaq, section 3.4.1.

The strategies of the node queues one floor higher; the guard against starvation is the scheduler's (rm.scheduler's
`job_order`). It combines freely with any order at the nodes. Durations are compared in steps (`steps.step`); jobs in
the same one take turns as they were submitted.
"""

from collections.abc import Callable
from typing import Final

from yaqd.model import ApplicationId
from yaqd.model.values import value
from yaqd.policies.queueing import limits
from yaqd.policies.queueing.facts import JobFacts
from yaqd.policies.queueing.steps import step
from yaqd.policies.registry import PolicyTable


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
    instead="ejf",
)
#: those that go by what is left of a job alone, and not by since when it waits
SHIPPED: Final = frozenset(("srjf", "lrtf", "ejf", "sjf", "cpath"))
