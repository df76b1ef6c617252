"""One training job as its ResourceManager knows it."""

import math
from typing import Final

from rm.scheduler.quality.cost import IterationCost
from rm.scheduler.view.records import AttemptView
from yaqd.model import Resource
from yaqd.model.training import CoresOrder, TrainingReport
from yaqd.policies.quality.facts import MILLI, Reason
from yaqd.policies.quality.forecasts import JobSpec

#: what a job uses is looked at over this time, s, as nodes tell of it in lumps, cores of one second or so
_LOOK_S: Final = 5.0
_LUMPS: Final = 0.3
#: an order that is so many times the least one since gives more to use
_RISES: Final = 1.3
#: who uses less than this part of its order leaves some unused; what was seen holds so long, s
_SPARES: Final = 0.7
_SEEN_S: Final = 60.0
#: a program without a loss is taken to be starting for so long, s
_STARTS_S: Final = 3.0
#: bounds of what a job says of itself
_WEIGHT_MAX: Final = 1e6
_CAP_MAX: Final = 10**9


class TrainingJob:
    """What a job has told, what nodes tell of it, and what it was ordered last."""

    __slots__ = (
        "_look_at",
        "_look_cpu_s",
        "_look_from",
        "_look_iteration",
        "_look_least",
        "_usable_until",
        "attempt",
        "cost",
        "cpu_s",
        "gain",
        "iteration",
        "iterations_expected",
        "order",
        "over_since",
        "partitions",
        "reason",
        "row",
        "sequence",
        "since",
        "usable",
        "worker_priority",
        "worker_size",
        "workers_max",
    )

    def __init__(self, attempt: AttemptView, now: float) -> None:
        self.attempt = attempt
        #: scheduler's seconds
        self.since = now
        #: where its losses and curve are kept
        self.row = -1
        #: of its last report
        self.sequence = -1
        #: the newest one with a loss
        self.iteration = -1
        #: None: it does not say
        self.iterations_expected: int | None = None
        #: dealt among workers in containers; 0: it is a program in one
        self.partitions = 0
        #: that are of use, and the size of one; None: it has had none yet
        self.workers_max = 0
        self.worker_size: Resource | None = None
        #: of its workers' asks
        self.worker_priority = -1
        #: since when it has more workers than its cores allow, scheduler's seconds; None: it has not
        self.over_since: float | None = None
        #: processor time that nodes have told, s
        self.cpu_s = 0.0
        self.cost = IterationCost(now)
        #: since when it is looked at what it uses, with its processor time and iteration then; None: it is not yet
        self._look_at: float | None = None
        self._look_cpu_s, self._look_iteration = 0.0, 0
        #: the least that it was ordered since; and the iteration from which on it can use that
        self._look_least, self._look_from = _CAP_MAX, 1
        #: thousandths of a core that it was seen to use at most, and until when that is believed
        self.usable, self._usable_until = _CAP_MAX, now
        self.order: CoresOrder | None = None
        self.reason = Reason.NEW
        #: predicted normalized fall of its loss in this epoch
        self.gain = 0.0

    def spec(self, report: TrainingReport, unit: int, move_s: float) -> JobSpec:
        """Read what the job says of itself with its first report, within bounds.

        One that names no least gets a `unit`, thousandths of a core: no job starves, and the rest is divided by gain.
        `move_s`: for how long a core that moves to a job with workers computes nothing.
        """
        self.iterations_expected = report.iterations_expected or None
        weight = report.weight if report.weight is not None and 0.0 < report.weight < math.inf else 1.0
        cap = report.max_milli if report.max_milli is not None and report.max_milli > 0 else _CAP_MAX
        self.partitions = report.partitions or 0
        if report.partitions:
            cap = min(cap, MILLI * report.partitions)
        self.workers_max = min(self.partitions, math.ceil(cap / MILLI))
        target = report.target if report.target is not None and math.isfinite(report.target) else None
        return JobSpec(
            weight=min(weight, _WEIGHT_MAX),
            floor=min(max(0, report.min_milli if report.min_milli is not None else unit), cap),
            cap=cap,
            iterations=float(report.iterations_expected or math.inf),
            kind=int(report.convergence or 0),
            target=target,
            move_s=move_s if self.partitions else 0.0,
        )

    def ordered(self, order: CoresOrder | None, now: float) -> None:
        """Take note of an order, which counts from now on; None: another one follows."""
        self._count_order(now)
        self.order = order
        milli = order.milli if order is not None else None
        if milli is None or milli > _RISES * self._look_least:
            # a program hears of it later, and fits its threads to it with its next report
            self._look_at, self._look_least, self._look_from = None, _most(milli), self.iteration + 2
        else:
            self._look_least = min(self._look_least, milli)

    def _count_order(self, now: float) -> None:
        self.cost.ordered(self.order.milli or 0 if self.order is not None else 0, now)

    def timed(self, cpu_s: float, now: float) -> bool:
        """Take in the processor time that nodes tell by now, s; return whether that changed what an iteration costs."""
        self.cpu_s = max(self.cpu_s, cpu_s)
        self._count_order(now)
        return self.cost.look(self.cpu_s, self.iteration, self.usable / MILLI, now)

    def uses(self, now: float) -> int:
        """Return the thousandths of a core that a job can use at most: of a program that starts, and imports, one."""
        is_starting = self.iteration < 0 and not self.partitions and now - self.since < _STARTS_S
        return MILLI if is_starting else self.usable

    def look(self, now: float) -> None:
        """Look at what a program has used: whole cores, at least one.

        It has none to spare unless it left much of the least that it was ordered unused, over some iterations. What it
        was seen to use then holds for a minute, as more cannot be seen while it has no more.
        """
        if now >= self._usable_until:
            self.usable = _CAP_MAX
        if self.partitions or self.iteration < max(1, self._look_from):
            return
        if self._look_at is None:
            self._look_at, self._look_cpu_s, self._look_iteration = now, self.cpu_s, self.iteration
        passed_s = now - self._look_at
        if passed_s < _LOOK_S or self.iteration <= self._look_iteration:
            return
        used = max(0.0, self.cpu_s - self._look_cpu_s) / passed_s
        if self._look_least > MILLI and used < _SPARES * self._look_least / MILLI:
            self.usable, self._usable_until = MILLI * max(1, math.ceil(used - _LUMPS)), now + _SEEN_S
        milli = self.order.milli if self.order is not None else None
        self._look_at, self._look_least = None, _most(milli)


def _most(milli: int | None) -> int:
    """Return what an order lets a job use, thousandths of a core."""
    return _CAP_MAX if milli is None else milli
