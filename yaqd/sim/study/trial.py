"""One simulation of the study: a ground, a system, how the jobs come, and a seed; and the figures that it gives.

A trial is known by a key of what it runs and not by the cell that needs it, so cells share trials. The key leaves out
what is as unsaid: a new parameter of a system does not make old trials others.
"""

import hashlib
import json
import time
from dataclasses import fields, replace
from typing import Any, Final

import numpy as np

from yaqd.model.values import value
from yaqd.sim.experiments.ground import PREPARE_S, START_GAP_S
from yaqd.sim.experiments.runner import drawn_once
from yaqd.sim.results import SimResult
from yaqd.sim.shape import ClusterShape, System
from yaqd.sim.simulation import simulate
from yaqd.sim.workload import SimJob, Workload
from yaqd.sim.workloads import Arrivals, Drawn

#: of a saturated run: the tasks between these parts of all, by their starts, tell the capacity. Before, the first jobs
#: fill the cluster; after, the last ones no longer do
SATURATED_FROM: Final = 0.1
SATURATED_TO: Final = 0.7
#: where no task of a job is shorter than the clock, s
_LEAST_S: Final = 1e-9


@value()
class Ground:
    """The cluster and the jobs, the same for every system that is compared on it."""

    workload: str = "hive-ms"
    jobs: int = 185
    shape: ClusterShape = ClusterShape()

    @property
    def tasks(self) -> int:
        """Tasks in the mean, for estimates of what a trial takes."""
        return self.jobs * _TASKS_A_JOB.get(self.workload, 100)


#: 100 where it is not said
_TASKS_A_JOB: Final = {"hive-ms": 59, "graphs": 78, "two-sizes": 40, "long-among-short": 6}


@value()
class StudyTrial:
    ground: Ground
    system: System
    seed: int
    #: part of the slots that arriving jobs ask for; None: all come at once, which measures capacity
    load: float | None = None

    @property
    def key(self) -> str:
        """Name of what is run, the same in every version of the code."""
        return hashlib.sha256(json.dumps(self.said(), sort_keys=True).encode()).hexdigest()[:20]

    def said(self) -> dict[str, Any]:
        """Return all that is not as unsaid, as JSON has it."""
        return {
            "workload": self.ground.workload,
            "jobs": self.ground.jobs,
            "shape": changed(self.ground.shape, ClusterShape()),
            "system": changed(self.system, System()),
            "load": self.load,
            "seed": self.seed,
        }

    def run(self) -> tuple[dict[str, float], float]:
        """Return the figures and the processor time that it took, s. Raises ValueError, Stuck, WorkloadError."""
        since_ns, since = time.perf_counter_ns(), time.process_time()
        arrivals = Arrivals("burst") if self.load is None else Arrivals("poisson", self.load)
        shape = self.ground.shape
        drawn = Drawn(self.ground.workload, self.ground.jobs, arrivals)
        workload = drawn_once(drawn, shape.total_slots, self.seed)
        result = simulate(shape, workload, self.system, self.seed, clock=time.perf_counter_ns)
        took_s, passed_ns = time.process_time() - since, time.perf_counter_ns() - since_ns
        if self.load is None:
            return {"capacity": saturated(result)}, took_s
        # A clock of processor time is a system call, and two for each decision take longer than the decisions. Time
        # that passes is cheap to read, and what of it others had falls on decisions as on all else.
        decided_s = result.counts["decision_ns"] / passed_ns * took_s
        return figures(workload, result, shape) | {"rm_us_task": round(1e6 * decided_s / result.tasks, 3)}, took_s


def changed(one: Any, unsaid: Any) -> dict[str, Any]:
    """Return the fields in which the two differ, with the values of the first in JSON."""
    names = (field.name for field in fields(one))
    return {name: _plain(getattr(one, name)) for name in names if getattr(one, name) != getattr(unsaid, name)}


def _plain(found: Any) -> Any:
    """As JSON has it, which knows no infinite number."""
    return found if found is None or isinstance(found, bool | int | str) else repr(found)


def with_start(shape: ClusterShape, seconds: float) -> ClusterShape:
    """Return the shape with a container's start of so many seconds, split as the experiments split it."""
    gap = seconds * START_GAP_S / (START_GAP_S + PREPARE_S)
    return replace(shape, start_gap_s=round(gap, 6), prepare_s=round(seconds - gap, 6))


def saturated(result: SimResult) -> float:
    """Return the part of the slots that works while there is work for all: what a system can do of a load."""
    starts = np.sort(result.started)
    if not starts.size:
        return 0.0
    since, until = (float(starts[int(part * (starts.size - 1))]) for part in (SATURATED_FROM, SATURATED_TO))
    return result.utilization_between(since, until)


def figures(workload: Workload, result: SimResult, shape: ClusterShape) -> dict[str, float]:
    """Return what tables show; of a job's times all are from its submission, s."""
    times = result.completion_times()
    alone = {job.name: alone_s(job, shape.total_slots) for job in workload}
    slowdowns = np.array([job.from_submission / alone[job.name] for job in result.jobs])
    work = {job.name: job.work_s for job in workload}
    middle = float(np.median(list(work.values())))
    small = np.array([job.from_submission for job in result.jobs if work[job.name] < middle] or [np.nan])
    last_arrival = max(job.arrival_s for job in workload)
    found = {
        "mean": float(times.mean()),
        "small_median": float(np.median(small)),
        "slowdown_mean": float(slowdowns.mean()),
        "slowdown_p95": float(np.percentile(slowdowns, 95)),
        "jobs_per_min": result.jobs_per_minute,
        "utilization": 100 * result.utilization_between(0.0, last_arrival),
        "delay_mean": float(result.queuing_delays[result.done].mean()),
        "makespan": result.makespan,
    }
    found |= {name: float(np.percentile(times, percent)) for name, percent in PERCENTILES.items()}
    return {name: round(number, 6) for name, number in found.items()}


PERCENTILES: Final = {"median": 50, "p95": 95, "p99": 99, "max": 100}


def alone_s(job: SimJob, slots: int) -> float:
    """Return how long the job would take alone on a cluster where nothing takes time but its tasks, s.

    No scheduler can do better: the longest chain of its stages' longest tasks, or its work on all slots.
    """
    ends: list[float] = []
    work = 0.0
    for stage in job.stages:
        ready = max((ends[before] for before in stage.after), default=0.0)
        ends.append(ready + max(task.duration_s for task in stage.tasks))
        work += sum(task.duration_s * task.resource.vcores for task in stage.tasks)
    return max(*ends, work / slots, _LEAST_S)
