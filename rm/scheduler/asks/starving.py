"""Which applications of leaf queues in an order of jobs are behind their turn (`rm.scheduler.asks.job_order`)."""

from typing import Final

from rm.scheduler.asks.job_starvation import JobStarvation
from rm.scheduler.asks.jobs import Job
from rm.scheduler.view.cluster import ClusterView
from rm.scheduler.view.records import AttemptView, QueueView

#: who is starved is looked at so often, s
_LOOK_S: Final = 1.0


class Starving:
    """Who is behind its turn."""

    def __init__(self, view: ClusterView, spec: JobStarvation) -> None:
        self._view = view
        self._jobs = view.jobs
        self.spec = spec
        self._looked_at = 0.0

    def waits(self, attempt: AttemptView, now: float) -> None:
        """Note what the attempt still wants after it was given what there is for it now."""
        if not self._jobs.are_counted:
            return
        job = self._jobs.of(attempt.app.id)
        if not attempt.asks.pending or not attempt.app.leaf.spec.orders_jobs:
            job.since = None  # where no order passes anybody, nothing is counted
        elif job.since is not None:
            job.given_back = 0
        else:
            job.since = job.counted_at = now
            if not job.given_back:
                job.asked_at, job.waited_s, job.passed_s, job.is_starved = now, 0.0, 0.0, False
            job.given_back = max(0, job.given_back - attempt.asks.pending)

    def given(self, attempt: AttemptView, now: float) -> None:
        """Note that the attempt was given a container. That ends its wait only where it wants nothing more."""
        if not self._jobs.are_counted:
            return
        job = self._jobs.of(attempt.app.id)
        if job.since is not None:
            job.since = now if attempt.asks.pending else None

    def find(self, now: float) -> None:
        """Put those that have become starved where they belong, and those that are no longer."""
        if 0.0 <= now - self._looked_at < _LOOK_S or not self._jobs.are_counted:
            return
        self._looked_at = now
        for leaf in self._view.queues.values():
            if leaf.waiting and leaf.is_leaf and leaf.spec.orders_jobs:
                self._look(leaf, now)

    def _look(self, leaf: QueueView, now: float) -> None:
        """Count the time since the last look, or since it asked, for all who wait: from who asked last to the first."""
        jobs, masters = self._jobs, leaf.masters_used
        mb, cores = leaf.used_mb - masters.memory_mb, leaf.used_cores - masters.vcores
        later_mb = later_cores = 0
        known = [(attempt.app, jobs.of(attempt.app.id), attempt) for attempt in leaf.attempts.values()]
        for app, job, attempt in sorted(known, key=lambda one: (one[0].priority, -one[1].asked_at, -one[0].sequence)):
            if job.since is None and attempt.master is not None:
                self.waits(attempt, now)  # its queue has this order only now
            if attempt.asks.pending and job.since is not None:
                part = max(later_mb / mb if mb > 0 else 0.0, later_cores / cores if cores > 0 else 0.0)
                more_s, job.counted_at = max(0.0, now - job.counted_at), now
                job.waited_s += more_s
                job.passed_s += more_s * min(1.0, part)
                work_s, by_stages = jobs.facts(app).remaining_work, leaf.spec.orders_stages
                limit_s = self.spec.limit(job.waited_s, job.passed_s, work_s, by_stages=by_stages)
                self._decide(job, attempt, job.passed_s > limit_s)
            held_mb, held_cores = _runs(attempt)
            later_mb += held_mb
            later_cores += held_cores

    def _decide(self, job: Job, attempt: AttemptView, is_starved: bool) -> None:
        if is_starved is not job.is_starved:
            job.is_starved = is_starved
            if attempt.filed_at is not None:
                self._view.file(attempt)


def _runs(attempt: AttemptView) -> tuple[int, int]:
    """Return memory, MB, and cores of what runs of it, without its master, which runs whatever the order is."""
    app, master = attempt.app, attempt.master
    mb, cores = app.used_mb - app.sent.used_mb, app.used_cores - app.sent.used_cores
    if master is not None and app.containers:
        mb, cores = mb - master.memory_mb, cores - master.vcores
    return max(0, mb), max(0, cores)
