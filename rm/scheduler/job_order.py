"""Which application of a leaf queue comes first where its ordering policy is one of the job orders (srjf, lrtf, ...).

Yaq, section 3.4.1: the strategies of the node queues one floor higher. An application's place in its leaf queue's lines
is a key that is worked out when something about it changes, so deciding who is next costs what it costs in order of
submission. Only starvation comes with time: whoever wants something and was given nothing for min(ST, ST_r x the work
that is left) goes first; a heap by that time says who that is, at each offer, for as many as have become starved.
"""

import heapq
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rm.scheduler.jobs import Job, Jobs
from yaqd.policies.queueing import limits
from yaqd.policies.queueing.facts import JobFacts
from yaqd.policies.queueing.job_order import JOB_ORDERS, SHIPPED, WaitingJob

if TYPE_CHECKING:
    from rm.scheduler.view import AppView, AttemptView, ClusterView


#: how long a task is taken to run of whose application nothing is known, s, as long as nothing was seen of any: it only
#: has its place among the others
_TYPICAL_S: Final = 30.0
#: without ST an application is starved by what is left of it alone, which may be less by then, or known at all: looked
#: at so often, s
_LOOK_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class JobStarvation:
    """When an application that waits goes before all that are not starved."""

    #: ST, s; inf: never
    starve_s: float = 60.0
    #: ST_r: times the work that is left, where that is known
    starve_ratio: float = 10.0

    @property
    def is_guarding(self) -> bool:
        """Is anybody ever starved?"""
        return math.isfinite(self.starve_s) or math.isfinite(self.starve_ratio)

    def limit(self, work_s: float | None) -> float:
        ratio = self.starve_ratio * work_s if work_s is not None else math.inf
        return min(self.starve_s, ratio) if ratio > 0 else self.starve_s


def rank(jobs: Jobs, app: "AppView") -> float:
    """By the leaf queue's policy; the smallest comes first."""
    job = jobs.of(app.id)
    if job.is_starved or (not app.containers and _waits_for_master(app)):
        return -math.inf
    ordering, facts = app.leaf.spec.ordering, jobs.facts(app)
    typical_s = None
    if facts.remaining_work is None:
        typical_s = jobs.typical_s
        jobs.unknown.add(app.id)
    elif jobs.unknown:
        jobs.unknown.discard(app.id)
    at = (ordering, facts, typical_s, job.done_work, None if ordering in SHIPPED else job.since)
    if job.ranked_at != at:
        job.rank, job.ranked_at = _rank(job, app, facts, typical_s), at
    return job.rank


def _rank(job: Job, app: "AppView", facts: JobFacts, typical_s: float | None) -> float:
    """`typical_s`: how long a task runs of which nothing is known."""
    if facts.remaining_work is None:
        task_s = typical_s if typical_s is not None else _TYPICAL_S
        path_s = facts.critical_path if facts.critical_path is not None else typical_s
        facts = JobFacts((facts.remaining_tasks or 0) * task_s, facts.remaining_tasks, path_s)
    work = facts.remaining_work
    whole = work + job.done_work if work is not None else None
    waiting = WaitingJob(app.id, app.sequence, job.since or 0.0, facts, whole)
    return limits.rank(JOB_ORDERS[app.leaf.spec.ordering](waiting))


def _waits_for_master(app: "AppView") -> bool:
    """Nothing else of the application can run before."""
    return app.attempt is not None and any(ask.is_master and ask.pending for ask in app.attempt.asks)


class Starving:
    """Who has waited too long."""

    def __init__(self, view: "ClusterView", spec: JobStarvation) -> None:
        self._view = view
        self._spec = spec
        #: when it is to be looked at, sequence number, attempt
        self._due: list[tuple[float, int, AttemptView]] = []

    def change(self, jobs: Jobs, spec: JobStarvation, now: float) -> None:
        """Go by other limits: those that wait are to be looked at earlier or later. Who is starved stays it."""
        if spec == self._spec:
            return
        self._spec = spec
        attempts = {attempt.id: attempt for _, _, attempt in self._due}
        self._due.clear()
        for attempt in attempts.values():
            job = jobs.of(attempt.app.id)
            if job.since is not None and attempt.app.attempt is attempt:
                self._push(jobs, job, attempt, now)

    def waits(self, jobs: Jobs, attempt: "AttemptView", now: float) -> None:
        """The attempt's asks are as they are after what it was given just now."""
        job = jobs.of(attempt.app.id)
        if attempt.asks.pending and job.since is None and self._spec.is_guarding:
            job.since = now
            self._push(jobs, job, attempt, now)

    def given(self, jobs: Jobs, attempt: "AttemptView", now: float) -> None:
        """The attempt was given a container."""
        job = jobs.of(attempt.app.id)
        if job.since is None:
            return
        job.since = now
        if job.is_starved:
            job.is_starved = False
            self._push(jobs, job, attempt, now)

    def find(self, jobs: Jobs, now: float) -> None:
        """Put those that have become starved where they belong."""
        while self._due and self._due[0][0] <= now:
            attempt = heapq.heappop(self._due)[2]
            job = jobs.of(attempt.app.id) if attempt.app.attempt is attempt else None
            if job is None or job.since is None:
                continue
            if not attempt.asks.pending:
                job.since = None
            elif job.since + self._limit(jobs, attempt) > now:  # the sum that it is filed under, or this never ends
                self._push(jobs, job, attempt, now)
            else:
                job.is_starved = True
                if attempt.filed_at is not None:
                    self._view.file(attempt)

    def _push(self, jobs: Jobs, job: Job, attempt: "AttemptView", now: float) -> None:
        assert job.since is not None
        due = job.since + self._limit(jobs, attempt)
        if not math.isfinite(self._spec.starve_s):
            due = min(due, now + _LOOK_S)
        heapq.heappush(self._due, (due, attempt.app.sequence, attempt))

    def _limit(self, jobs: Jobs, attempt: "AttemptView") -> float:
        return self._spec.limit(jobs.facts(attempt.app).remaining_work)
