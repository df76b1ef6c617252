"""The live benchmark's jobs: the same trace for every side, drawn from published statistics or made by rule."""

import random
import statistics
from dataclasses import replace
from string import ascii_lowercase
from typing import Final

from yaqd.sim.workload import SimJob, SimStage, SimTask, Workload
from yaqd.sim.workloads import Arrivals, Drawn, draw
from yaqd.sim.workloads.drawn import SHORT_WORK_S

_HIVE_JOBS: Final = 92
#: Hive-MS's task times are divided by this, so that a run takes a quarter of an hour
_SPEEDUP: Final = 3.0
_SEED: Final = 1
_PRIORITY: Final = 20
#: of the mix: short jobs, their tasks and their tasks' seconds; the same of long ones
_SHORT: Final = (40, 8, 2.0)
_LONG: Final = (8, 96, 10.0)
#: they come as fast as the cluster can run them, so there is something to put in order
_MIX_LOAD: Final = 1.0
#: one long job beside short ones that arrive for so long, s
_LONGEST_S: Final = 600.0


def hive(scale: float, slots: int, *, load: float) -> Workload:
    """Hive-MS, Poisson arrivals at that part of the capacity of so many slots in all."""
    jobs = max(3, round(_HIVE_JOBS * scale))
    drawn = Drawn(name="hive-ms", jobs=jobs, arrivals=Arrivals("poisson", load), speedup=_SPEEDUP)
    workload = draw(drawn, slots, _SEED)
    # A name whose digits alone differ is that of one recurring job; these are different queries.
    named = (replace(job, name=f"query-{_letters(number)}") for number, job in enumerate(workload))
    return Workload(tuple(named), workload.name)


def earlier_runs(workload: Workload) -> Workload:
    """Every job of the workload once before, with one task a stage, as long as the stage's mean: its history.

    The jobs of the paper recur, and their estimates are the means of earlier runs. A side that keeps no history gets
    these runs as well.
    """
    jobs = []
    for job in workload:
        stages = tuple(
            replace(
                stage, tasks=(replace(stage.tasks[0], duration_s=statistics.mean(t.duration_s for t in stage.tasks)),)
            )
            for stage in job.stages
        )
        jobs.append(replace(job, stages=stages, arrival_s=0.0))
    distinct = {job.name: job for job in jobs}
    return Workload(tuple(distinct.values()), f"{workload.name}, earlier")


def _letters(number: int) -> str:
    return "".join(ascii_lowercase[number // 26**place % 26] for place in (1, 0))


def mixed(scale: float, slots: int, *, load: float = _MIX_LOAD, long_jobs: int = _LONG[0]) -> Workload:
    """Short and long jobs in random order; a long one alone fills the cluster three times."""
    chooser = random.Random(_SEED)
    kinds = []
    for name, (jobs, tasks, seconds) in (("short", _SHORT), ("long", (long_jobs, *_LONG[1:]))):
        kinds += [(name, tasks, seconds)] * max(2, round(jobs * scale))
    chooser.shuffle(kinds)
    gap_s = sum(tasks * seconds for _, tasks, seconds in kinds) / len(kinds) / (slots * load)
    jobs_made, arrival_s = [], 0.0
    for name, tasks, seconds in kinds:
        stage = SimStage(name="work", tasks=tuple(SimTask(seconds, priority=_PRIORITY) for _ in range(tasks)))
        jobs_made.append(SimJob(name=name, stages=(stage,), arrival_s=arrival_s))
        arrival_s += chooser.expovariate(1 / gap_s)
    return Workload(tuple(jobs_made), "mixed")


def longest(scale: float, slots: int, *, load: float) -> Workload:
    """A job of 96 tasks beside ten minutes of short ones, as in the simulator's `longest-under-load`."""
    jobs = max(4, round(load * slots * _LONGEST_S * scale / SHORT_WORK_S))
    workload = draw(Drawn("long-among-short", jobs, Arrivals("poisson", load)), slots, _SEED)
    longest_one = max(workload, key=lambda job: job.tasks)
    named = (replace(job, name="long" if job is longest_one else "short") for job in workload)
    return Workload(tuple(named), workload.name)
