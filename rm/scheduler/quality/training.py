"""The training jobs of all leaf queues: what each has reported, and every epoch its part of its queue's cores.

After SLAQ (Zhang et al., SoCC 2017). The policies are pure (`yaqd.policies.quality`); what they need between two epochs
is kept here. What an iteration costs is counted from the processor time that nodes tell. A job's own word counts only
where no node has told anything.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from rm.scheduler.decisions import CoresTargeted, Outcome
from rm.scheduler.events import QualityChanged, QualityDue, TrainingReported
from rm.scheduler.quality.job import TrainingJob
from rm.scheduler.quality.outlook import TrainingOutlook, outlooks
from rm.scheduler.quality.spec import QualitySpec
from rm.scheduler.quality.workers import WorkerRoom, fitted, overdue
from rm.scheduler.view.cluster import ClusterView
from rm.scheduler.view.records import QueueView
from yaqd.model import ApplicationAttemptId, ApplicationId
from yaqd.model.training import CoresOrder
from yaqd.policies.quality.facts import MILLI, Division, Reason, Shares, TrainingJobs, bounded
from yaqd.policies.quality.forecasts import Forecasts
from yaqd.policies.quality.levels import level
from yaqd.policies.quality.policies import QUALITY

#: of a queue that is guaranteed nothing
_LEAST_GUARANTEE: Final = 1e-6
#: a job that has used so many core-seconds and reported no loss gets an equal share, and no more
_SILENT_S: Final = 30.0


class Training:
    """Idle, and holding nobody to anything, without a spec."""

    def __init__(self, view: ClusterView, spec: QualitySpec | None) -> None:
        self._view = view
        self.spec = spec
        self._forecasts = Forecasts()
        self._jobs: dict[ApplicationAttemptId, TrainingJob] = {}
        self._orders = 0
        self._room = WorkerRoom(view)

    def handlers(self) -> dict[type[Any], Callable[[Any, float], Iterable[Outcome]]]:
        return {TrainingReported: self._reported, QualityDue: self._due, QualityChanged: self._changed}

    def get(self, app_id: ApplicationId) -> TrainingJob | None:
        """Return what is known of an application's training; None: it does not train, or its cores are its own."""
        app = self._view.applications.get(app_id)
        return self._jobs.get(app.attempt.id) if app is not None and app.attempt is not None else None

    def all(self) -> list[TrainingJob]:
        """List the training jobs, those that came first before others."""
        return list(self._jobs.values())

    def outlooks(self) -> list[TrainingOutlook]:
        """Return how each job goes on, as was predicted last; none where cores are not divided."""
        jobs = self.all() if self.spec is not None else []
        policies = [self._policy(job.attempt.app.leaf) for job in jobs]
        return list(outlooks(jobs, policies, self._forecasts)) if jobs else []

    # ---- events

    def _reported(self, event: TrainingReported, now: float) -> Iterator[Outcome]:
        attempt, report = self._view.attempt(event.attempt_id), event.report
        if attempt is None:
            return
        job = self._jobs.get(attempt.id)
        if job is None:
            if self.spec is None:
                return
            job = self._jobs[attempt.id] = TrainingJob(attempt, now)
            job.row = self._forecasts.add(job.spec(report, self.spec.unit, self.spec.move_s))
        elif report.sequence <= job.sequence:
            return  # it was heard before, or is older than what was
        job.sequence = report.sequence
        if report.cpu_ms_per_iteration is not None and not job.cost.is_known:
            self._forecasts.timed(job.row, _core_s(report.cpu_ms_per_iteration), 0.0)
        if report.losses:
            self._forecasts.report(job.row, float(report.first_iteration), report.losses)
            job.iteration = max(job.iteration, report.first_iteration + len(report.losses) - 1)
        self._forecasts.uses(job.row, job.uses(now))
        if job.order is None:  # its first iteration waits for an order
            leaf = attempt.app.leaf
            yield from self._divide(leaf, self._by_leaf()[leaf], self._milli()[leaf], now)

    def _due(self, event: QualityDue, now: float) -> Iterator[Outcome]:
        if self.spec is None or not self._jobs:
            return
        used = dict(event.used)
        for job in self._jobs.values():
            cpu_s = used.get(job.attempt.app.id)
            if cpu_s is not None:
                self._forecasts.ran(job.row, max(0.0, cpu_s - job.cpu_s))
                if job.timed(cpu_s, now):
                    self._forecasts.timed(job.row, job.cost.work_s, job.cost.fixed_s)
                job.look(now)
            self._forecasts.uses(job.row, job.uses(now))
        milli = self._milli()
        for leaf, jobs in self._by_leaf().items():
            yield from self._divide(leaf, jobs, milli[leaf], now)
        yield from overdue(self._view, self._jobs.values(), self.spec.hand_back_s, now)

    def _changed(self, event: QualityChanged, now: float) -> Iterator[Outcome]:
        """Go by another configuration; without one all have as many cores as they can use."""
        self.spec = event.spec
        for job in self._jobs.values():
            if event.spec is None:
                order = self._order(None, Reason.CAP)
                job.ordered(order, now)
                yield CoresTargeted(job.attempt.id, order, 0.0)
            else:
                job.ordered(None, now)
        yield from self._due(QualityDue(()), now)

    def attempt_ended(self, attempt_id: ApplicationAttemptId) -> None:
        """Forget the attempt's training; the next attempt tells it anew."""
        job = self._jobs.pop(attempt_id, None)
        if job is not None:
            self._forecasts.forget(job.row)

    # ---- dividing

    def _by_leaf(self) -> dict[QueueView, list[TrainingJob]]:
        found: dict[QueueView, list[TrainingJob]] = {}
        for job in self._jobs.values():
            found.setdefault(job.attempt.app.leaf, []).append(job)
        return found

    def _divide(self, leaf: QueueView, jobs: list[TrainingJob], milli: int, now: float) -> Iterator[CoresTargeted]:
        spec = self.spec
        if spec is None:
            return
        self._forecasts.refit()
        rows = np.array([job.row for job in jobs], dtype=np.int64)
        facts = self._forecasts.jobs(rows)
        workers = self._room.of(leaf, jobs, now)
        if workers is not None:
            programs = sum(int(cap) for job, cap in zip(jobs, facts.cap, strict=True) if not job.partitions)
            milli = min(milli, MILLI * workers + programs)
        division = Division(milli, spec.unit, spec.epoch_s)
        shares = self._shares(leaf, jobs, _within(facts, division, jobs), division, workers)
        self._forecasts.given(rows, shares.milli)
        for job, given, gain, reason in zip(jobs, shares.milli, shares.gains, shares.reasons, strict=True):
            job.gain, job.reason = float(gain), _reason(int(reason))
            if job.order is None or job.order.milli != given:
                order = self._order(int(given), job.reason)
                job.ordered(order, now)
                yield CoresTargeted(job.attempt.id, order, job.gain)

    def _shares(
        self, leaf: QueueView, jobs: list[TrainingJob], facts: TrainingJobs, division: Division, workers: int | None
    ) -> Shares:
        """Return what the policy gives; where not all workers have room, what it gives with as many as have."""
        policy = QUALITY[self._policy(leaf)]
        shares = bounded(policy(facts, division), facts, division)
        most = None if workers is None else fitted(jobs, shares.milli.tolist(), workers)
        if most is None:
            return shares
        caps = np.minimum(facts.cap, most)
        facts = replace(facts, cap=caps, floor=np.minimum(facts.floor, caps))
        return bounded(policy(facts, division), facts, division)

    def _policy(self, leaf: QueueView) -> str:
        spec = self.spec or QualitySpec()
        return spec.leaves.get(leaf.path, spec.policy)

    def _order(self, milli: int | None, reason: Reason) -> CoresOrder:
        self._orders += 1
        return CoresOrder(self._orders, milli, int(reason))

    def _milli(self) -> dict[QueueView, int]:
        """Return the thousandths of a core that each leaf queue's training jobs divide.

        Queues with training jobs share what there is by what their other applications leave of their guarantees. What
        one cannot use goes to the others, and what is left then to those that may have it.
        """
        view, by_leaf = self._view, self._by_leaf()
        explicit = self.spec.milli if self.spec is not None else None
        milli = total = MILLI * view.nodes.total.vcores if explicit is None else explicit
        leaves = list(by_leaf)
        ours = {leaf: sum(app.used_cores for app in {job.attempt.app for job in by_leaf[leaf]}) for leaf in leaves}
        # cores that are named are not those that containers count
        others = {leaf: MILLI * max(0, leaf.used_cores - ours[leaf]) if explicit is None else 0 for leaf in leaves}
        if explicit is None:
            milli = max(0, total - MILLI * max(0, view.root.used_cores - sum(ours.values())))
        usable: list[float] = []
        most: list[float] = []
        weights: list[float] = []
        for leaf in leaves:
            facts = self._forecasts.jobs(np.array([job.row for job in by_leaf[leaf]], dtype=np.int64))
            limit = int(total * leaf.spec.absolute_maximum) - others[leaf]
            for known, found in ((np.minimum(facts.cap, facts.usable), usable), (facts.cap, most)):
                found.append(float(max(0, min(int(known.sum()), limit))))
            weights.append(max(total * leaf.spec.absolute_capacity - others[leaf], _LEAST_GUARANTEE))
        parts = np.zeros(len(leaves))
        for caps in (usable, most):
            parts = level(np.array(weights), parts, np.array(caps), float(milli))
        return {leaf: int(part + 1e-6) for leaf, part in zip(leaves, parts, strict=True)}

    def validate(self) -> None:
        """Assert every invariant."""
        rows = [job.row for job in self._jobs.values()]
        assert len(set(rows)) == len(rows)
        assert all(self._view.attempt(job.attempt.id) is job.attempt for job in self._jobs.values())


def _within(facts: TrainingJobs, division: Division, jobs: list[TrainingJob]) -> TrainingJobs:
    """Bound what jobs ask for by what there is: floors by an equal share where not all of them fit, and those that say
    no loss by it always."""
    equal = max(division.unit, division.milli // len(jobs) // division.unit * division.unit)
    is_silent = ~facts.is_known & (facts.attained_s > _SILENT_S)
    facts.cap[is_silent] = np.minimum(facts.cap[is_silent], equal)
    facts.floor[:] = np.minimum(facts.floor, facts.cap)
    if int(facts.floor.sum()) > division.milli:
        facts.floor[:] = np.minimum(facts.floor, equal)
    return facts


def _core_s(cpu_ms: float) -> float:
    return cpu_ms / 1000 if 0.0 < cpu_ms < math.inf else 1.0


def _reason(number: int) -> Reason:
    """Return the reason that a policy gave; one of others may have given any number."""
    return Reason(number) if number in _REASONS else Reason.SHARE


_REASONS: Final[Mapping[int, Reason]] = {int(reason): reason for reason in Reason}
