"""Which application of a leaf queue comes first where its ordering policy is one of the job orders (srjf, lrtf, ...).

Yaq, section 3.4.1: the strategies of the node queues one floor higher. An application's place in its leaf queue's lines
is a key. The key is worked out when something about the application changes, so deciding who is next costs what it
costs in order of submission. Only starvation comes with time.

While an application wants something, those that asked after it hold a part of its queue's use. That part of the time
counts as time for which it was passed; in order of arrival nobody would pass it. An application is starved once it was
passed for longer than its limit: min(ST, ST_r x the work left) and a part of its other time. Starved ones go first, in
order of submission, until they are no longer so late. So each is over after its time in order of arrival, that part of
it and ST, and the order keeps some of the queue.
"""

import math
from itertools import islice
from typing import Final

from rm.scheduler.asks.jobs import Job, Jobs
from rm.scheduler.node_queues.spec import QueueingSpec
from rm.scheduler.view.records import AppView
from yaqd.policies.queueing import limits
from yaqd.policies.queueing.facts import JobFacts
from yaqd.policies.queueing.job_order import JOB_ORDERS, SHIPPED, WaitingJob

#: how long a task runs of whose application nothing is known, s, until some task was seen. It only gives the
#: application a place among the others
_TYPICAL_S: Final = 30.0
#: of an attempt, for what it wants
_ASKS_LOOKED_AT: Final = 64


def is_cut_off(jobs: Jobs, spec: QueueingSpec | None, app: AppView) -> bool:
    """Tell whether the application wants something that is served after all that it holds, and its master would not
    wait for it.

    In order of submission the first job goes on until it has all. In other orders, jobs that come before it may take
    all that ends. A MapReduce master that has no map left but wants some kills reducers that run.
    """
    attempt = app.attempt
    if attempt is None or attempt.tolerates_waiting or spec is None or spec.unaware_wait_s == math.inf:
        return False
    last = max(jobs.held(app.id), default=None)
    return last is not None and any(a.pending and a.key[0] > last for a in islice(attempt.asks, _ASKS_LOOKED_AT))


def rank(jobs: Jobs, app: AppView) -> float:
    """Return the application's place by its leaf queue's policy; the smallest comes first."""
    job = jobs.of(app.id)
    if job.is_starved or (not app.containers and _waits_for_master(app)):
        return -math.inf
    if app.leaf.spec.orders_stages:
        return job.turns[0].place if job.turns else math.inf
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


def _rank(job: Job, app: AppView, facts: JobFacts, typical_s: float | None) -> float:
    """Work the place out; `typical_s`: how long a task runs of which nothing is known, s."""
    if facts.remaining_work is None:
        task_s = typical_s if typical_s is not None else _TYPICAL_S
        path_s = facts.critical_path if facts.critical_path is not None else typical_s
        facts = JobFacts((facts.remaining_tasks or 0) * task_s, facts.remaining_tasks, path_s)
    work = facts.remaining_work
    whole = work + job.done_work if work is not None else None
    waiting = WaitingJob(app.id, app.sequence, job.since or 0.0, facts, whole)
    return limits.rank(JOB_ORDERS[app.leaf.spec.ordering](waiting))


def _waits_for_master(app: AppView) -> bool:
    """Tell whether nothing else of the application can run before its master."""
    return app.attempt is not None and any(ask.is_master and ask.pending for ask in app.attempt.asks)
