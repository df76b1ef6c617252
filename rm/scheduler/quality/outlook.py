"""How a training job goes on, for people: its loss, how far it has come, and when most of its fall is done."""

import math
from collections.abc import Iterator

import numpy as np

from rm.scheduler.quality.job import TrainingJob
from rm.scheduler.quality.workers import held
from yaqd.model.values import value
from yaqd.policies.curves.drops import HORIZONS
from yaqd.policies.quality.facts import MILLI
from yaqd.policies.quality.forecasts import Forecasts
from yaqd.policies.quality.policies import whole_falls

#: the part of its fall after which a job has got most of what it will
_MOST = 0.9


@value()
class TrainingOutlook:
    job: TrainingJob
    #: by name
    policy: str
    #: the newest one; None: it has reported none
    loss: float | None
    #: 1 at the first loss, 0 at the predicted last one; None: not known yet
    normalized: float | None
    #: in containers; None: it is a program in one
    workers: int | None
    #: until nine tenths of its whole predicted fall are done, s; inf: not as far as anybody knows, None: not known yet
    ninety_s: float | None


def outlooks(jobs: list[TrainingJob], policies: list[str], forecasts: Forecasts) -> Iterator[TrainingOutlook]:
    """Yield one of each job, from what was predicted last; `policies`: the name of each job's."""
    rows = np.array([job.row for job in jobs], dtype=np.int64)
    facts = forecasts.jobs(rows)
    whole, windows = whole_falls(facts), forecasts.windows
    for at, (job, policy) in enumerate(zip(jobs, policies, strict=True)):
        loss = float(windows.losses[job.row, -1]) if windows.counts[job.row] else None
        workers = held(job) if job.partitions else None
        if not facts.is_known[at]:
            yield TrainingOutlook(job, policy, loss, None, workers, None)
            continue
        fallen, drops = float(facts.fallen[at]), facts.drops[at]
        normalized = min(1.0, max(0.0, 1.0 - fallen / float(whole[at])))
        missing = _MOST * float(whole[at]) - fallen
        ahead = 0.0 if missing <= 0.0 else math.inf
        if 0.0 < missing <= drops[-1]:
            ahead = float(np.interp(missing, drops, HORIZONS))
        milli = job.order.milli if job.order is not None and job.order.milli is not None else MILLI
        iteration_s = float(facts.fixed_s[at]) + float(facts.work_s[at]) * MILLI / max(1, milli)
        yield TrainingOutlook(job, policy, loss, normalized, workers, ahead * iteration_s if ahead else 0.0)
