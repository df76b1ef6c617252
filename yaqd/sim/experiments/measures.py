"""From a simulation's result to the numbers that rows and plots name."""

import math
from typing import Final

import numpy as np

from yaqd.sim.experiments.exploring import EXPLORING_NAMES
from yaqd.sim.experiments.model import Case
from yaqd.sim.experiments.staging import STAGING_NAMES
from yaqd.sim.experiments.training import TRAINING_NAMES
from yaqd.sim.results import Floats, SimResult
from yaqd.sim.workload import Workload

SHARE_WINDOW_S: Final = 5.0
#: over which a deviation counts
SHARE_SPAN_S: Final = 60.0
#: points of the slots in use from which on a queue's share counts as off, and how finely it is looked at, s
SHARE_OFF_POINTS: Final = 5.0
_MOMENT_S: Final = 1.0
#: a job is `short` or `long` by its own work, about the middle one's
NAMES: Final = {
    "jct_median": "job completion time from the job's start, median (s)",
    "jct_mean": "job completion time from the job's start, mean (s)",
    "jct_p95": "job completion time from the job's start, 95th percentile (s)",
    "jct_max": "job completion time from the job's start, longest (s)",
    "sub_median": "job completion time from submission, median (s)",
    "sub_mean": "job completion time from submission, mean (s)",
    "sub_p95": "job completion time from submission, 95th percentile (s)",
    "jobs_per_min": "throughput (jobs/min)",
    "utilization": "slots used (%)",
    "delay_mean": "queuing delay, mean (s)",
    "delay_median": "queuing delay, median (s)",
    "delay_std": "queuing delay, standard deviation (s)",
    "delay_p95": "queuing delay, 95th percentile (s)",
    "short_median": "completion time of the jobs with less work than the middle one, median (s)",
    "long_median": "completion time of the other jobs, median (s)",
    "largest": "completion time from submission of the job with the most tasks (s)",
    "others_median": "completion time from submission of all other jobs, median (s)",
    "share_off": "largest deviation of a queue's share from its capacity, over any minute (points)",
    "share_lasts": f"longest time that a queue's share was off by more than {SHARE_OFF_POINTS:g} points (s)",
    "unfinished": "jobs not over",
    "makespan": "until the last job is over (s)",
    **TRAINING_NAMES,
    **EXPLORING_NAMES,
    **STAGING_NAMES,
}


def metrics(case: Case, workload: Workload, result: SimResult) -> dict[str, float]:
    """Return all of `NAMES` that this run can tell."""
    start = result.completion_times(from_start=True)
    submission = result.completion_times()
    delays = _delays(case, result)
    short, long = _by_work(workload, result)
    largest, others = _largest(workload, result)
    found = {
        "jct_median": _quantile(start, 50),
        "jct_mean": _mean(start),
        "jct_p95": _quantile(start, 95),
        "jct_max": _quantile(start, 100),
        "sub_median": _quantile(submission, 50),
        "sub_mean": _mean(submission),
        "sub_p95": _quantile(submission, 95),
        "jobs_per_min": result.jobs_per_minute,
        "utilization": 100 * _utilization(case, result),
        "delay_mean": _mean(delays),
        "delay_median": _quantile(delays, 50),
        "delay_std": float(delays.std()) if delays.size else math.nan,
        "delay_p95": _quantile(delays, 95),
        "short_median": _quantile(short, 50),
        "long_median": _quantile(long, 50),
        "largest": largest,
        "others_median": _quantile(others, 50),
        "share_off": _share_off(case, result),
        "share_lasts": _share_lasts(case, result),
        "unfinished": float(result.unfinished),
        "makespan": result.makespan,
    }
    return {name: number for name, number in found.items() if not math.isnan(number)}


def shares(case: Case, result: SimResult, window_s: float = SHARE_WINDOW_S) -> dict[str, tuple[float, ...]]:
    """Return, by queue, the part of the slots in use that it holds.

    It is taken in windows of `window_s` after the warm-up.
    """
    by_queue = result.shares(window_s)
    skip = math.ceil(case.warm_up_s / window_s)
    total = np.maximum(np.sum(list(by_queue.values()), axis=0), 1e-9)
    return {queue: tuple(float(x) for x in (part / total)[skip:-1]) for queue, part in by_queue.items()}


def _utilization(case: Case, result: SimResult) -> float:
    """Over the whole run; of a saturated case while there is work for every slot, until the last task has started."""
    if not case.is_saturated:
        return result.utilization_between(case.warm_up_s, result.makespan)
    last = float(result.started.max()) if result.started.size else 0.0
    return result.utilization_between(case.warm_up_s, last - case.shape.heartbeat_s)


def _delays(case: Case, result: SimResult) -> Floats:
    """From a task's coming to a node until the node took it out of its queue, s.

    What the start takes is not counted. A wait shorter than the making of the launch script, which goes on meanwhile,
    cannot be told from none and counts as none.
    """
    shape = case.shape
    waited = result.queuing_delays[result.done] - shape.start_gap_s
    return np.where(waited > shape.prepare_s + 1e-9, waited, 0.0)


def _share_off(case: Case, result: SimResult) -> float:
    """Percentage points; any 60 s means every run of windows of that length."""
    worst = math.nan
    by_queue = shares(case, result) if len(case.shape.queues) > 1 else {}
    width = round(SHARE_SPAN_S / SHARE_WINDOW_S)
    for queue, percent in case.shape.queues:
        parts = np.array(by_queue.get(queue, ()))
        if parts.size >= width:
            means = np.convolve(parts, np.full(width, 1 / width), mode="valid")
            worst = float(np.fmax(worst, 100 * np.abs(means - percent / 100).max()))
    return worst


def _share_lasts(case: Case, result: SimResult) -> float:
    """Seconds at a stretch; a stretch that the horizon ends counts as far as it goes."""
    if len(case.shape.queues) < 2:
        return math.nan
    by_queue = shares(case, result, _MOMENT_S)
    longest = 0
    for queue, percent in case.shape.queues:
        lasts = 0
        for part in by_queue.get(queue, ()):
            lasts = lasts + 1 if abs(100 * part - percent) > SHARE_OFF_POINTS else 0
            longest = max(longest, lasts)
    return longest * _MOMENT_S


def _by_work(workload: Workload, result: SimResult) -> tuple[Floats, Floats]:
    work = {job.name: job.work_s for job in workload}
    middle = float(np.median(list(work.values())))
    short = [job.from_start for job in result.jobs if work[job.name] < middle]
    long = [job.from_start for job in result.jobs if work[job.name] >= middle]
    return np.array(short, dtype=np.float64), np.array(long, dtype=np.float64)


def _largest(workload: Workload, result: SimResult) -> tuple[float, Floats]:
    """Seconds from submission of the job with the most tasks, and of all others; NaN where it is not over."""
    largest = max(workload, key=lambda job: job.tasks).name
    taken = {job.name: job.from_submission for job in result.jobs}
    own = taken.pop(largest, math.nan)
    return own, np.array(list(taken.values()), dtype=np.float64)


def _quantile(values: Floats, percent: float) -> float:
    return float(np.percentile(values, percent)) if values.size else math.nan


def _mean(values: Floats) -> float:
    return float(values.mean()) if values.size else math.nan
