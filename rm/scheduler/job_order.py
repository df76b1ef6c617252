"""Which application of a leaf queue comes first where its ordering policy is one of the job orders (srjf, lrtf, ...).

Yaq, section 3.4.1: the strategies of the node queues one floor higher. An application's place in its leaf queue's lines
is a key that is worked out when something about it changes, so deciding who is next costs what it costs in order of
submission. Only starvation comes with time.

While an application wants something, the part of its queue's use that those hold who asked after it is time for which
it was passed; in order of arrival nobody would pass it. One that was passed for longer than min(ST, ST_r x the work
that is left), and a part of all its other time, goes first, among such ones in order of submission, until it is no
longer so late. So each is over after its time in order of arrival, that part of it and ST, and the order keeps some of
the queue.
"""

import math
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from rm.scheduler.jobs import Job, Jobs
from yaqd.policies.queueing import limits
from yaqd.policies.queueing.facts import JobFacts
from yaqd.policies.queueing.job_order import JOB_ORDERS, SHIPPED, WaitingJob

if TYPE_CHECKING:
    from rm.scheduler.queueing_spec import QueueingSpec
    from rm.scheduler.view import AppView, AttemptView, ClusterView, QueueView


#: how long a task is taken to run of whose application nothing is known, s, as long as nothing was seen of any: it only
#: has its place among the others
_TYPICAL_S: Final = 30.0
#: who is starved is looked at so often, s
_LOOK_S: Final = 1.0
#: the part of ST for which a job may be passed here: what is sent then may be passed at its node as well
_HERE: Final = 0.75
#: by so much of the time that it would have taken in order of arrival a job may be later than that beside: so what is
#: starved takes five sevenths of a queue at most, and the order has the rest
_SLACK: Final = 0.4
#: of an attempt, for what it wants
_ASKS_LOOKED_AT: Final = 64


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

    def limit(self, job: Job, work_s: float | None) -> float:
        """For how long others may have passed the job by now, `work_s` being left of it."""
        ratio = self.starve_ratio * work_s if work_s is not None else math.inf
        threshold_s = min(self.starve_s, ratio) if ratio > 0 else self.starve_s
        return _HERE * threshold_s + _SLACK * (job.waited_s - job.passed_s)


def is_cut_off(jobs: Jobs, spec: "QueueingSpec | None", app: "AppView") -> bool:
    """Does it hold containers, but none of what is served last of all that it wants, and would its master not wait for
    one?

    In order of submission the first job goes on until it has all; in other orders jobs that come before it may take all
    that ends. A MapReduce master that has no map left but wants some kills reducers that run.
    """
    attempt = app.attempt
    if attempt is None or attempt.tolerates_waiting or spec is None or spec.unaware_wait_s == math.inf:
        return False
    last = max(jobs.held(app.id), default=None)
    return last is not None and any(a.pending and a.key[0] > last for a in islice(attempt.asks, _ASKS_LOOKED_AT))


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
    """Who is behind its turn."""

    def __init__(self, view: "ClusterView", spec: JobStarvation) -> None:
        self._view = view
        self.spec = spec
        self._looked_at = 0.0

    def waits(self, jobs: Jobs, attempt: "AttemptView", now: float) -> None:
        """The attempt's asks are as they are after what it was given just now."""
        job = jobs.of(attempt.app.id)
        if not attempt.asks.pending:
            job.since = None
        elif job.since is not None:
            job.given_back = 0
        else:
            job.since = now
            if not job.given_back:
                job.asked_at, job.waited_s, job.passed_s, job.is_starved = now, 0.0, 0.0, False
            job.given_back = max(0, job.given_back - attempt.asks.pending)

    def given(self, jobs: Jobs, attempt: "AttemptView", now: float) -> None:
        """The attempt was given a container. That ends its wait only where it wants nothing more."""
        job = jobs.of(attempt.app.id)
        if job.since is not None:
            job.since = now if attempt.asks.pending else None

    def find(self, jobs: Jobs, now: float) -> None:
        """Put those that have become starved where they belong, and those that are no longer."""
        passed_s = now - self._looked_at
        if 0.0 <= passed_s < _LOOK_S:
            return
        self._looked_at = now
        for leaf in self._view.queues.values():
            if leaf.waiting and leaf.is_leaf and leaf.spec.orders_jobs:
                self._look(jobs, leaf, max(0.0, passed_s))

    def _look(self, jobs: Jobs, leaf: "QueueView", passed_s: float) -> None:
        """Count so many seconds for all who wait, from who asked last to who asked first."""
        masters = leaf.masters_used
        mb, cores = leaf.used_mb - masters.memory_mb, leaf.used_cores - masters.vcores
        later_mb = later_cores = 0
        known = [(attempt.app, jobs.of(attempt.app.id), attempt) for attempt in leaf.attempts.values()]
        for app, job, attempt in sorted(known, key=lambda one: (one[0].priority, -one[1].asked_at, -one[0].sequence)):
            if attempt.asks.pending:
                part = max(later_mb / mb if mb > 0 else 0.0, later_cores / cores if cores > 0 else 0.0)
                job.waited_s += passed_s
                job.passed_s += passed_s * min(1.0, part)
                self._decide(job, attempt, job.passed_s > self.spec.limit(job, jobs.facts(app).remaining_work))
            held_mb, held_cores = _runs(attempt)
            later_mb += held_mb
            later_cores += held_cores

    def _decide(self, job: Job, attempt: "AttemptView", is_starved: bool) -> None:
        if is_starved is not job.is_starved:
            job.is_starved = is_starved
            if attempt.filed_at is not None:
                self._view.file(attempt)


def _runs(attempt: "AttemptView") -> tuple[int, int]:
    """Memory and cores of what runs of it, without its master, which runs whatever the order is."""
    app, master = attempt.app, attempt.master
    mb, cores = app.used_mb - app.sent.used_mb, app.used_cores - app.sent.used_cores
    if master is not None and app.containers:
        mb, cores = mb - master.memory_mb, cores - master.vcores
    return max(0, mb), max(0, cores)
