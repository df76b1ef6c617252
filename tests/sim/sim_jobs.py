"""Small workloads for simulated clusters."""

from typing import Any

import numpy as np

from yaqd.sim.simulation import SimResult
from yaqd.sim.workload import SimJob, SimStage, SimTask, Workload

CENTRAL = ("yarn", "yarn-opportunistic")
ALL = (*CENTRAL, "yaq-c", "yaq-d", "mercury", "sparrow")


def stage(tasks: int, seconds: float, **more: Any) -> SimStage:
    return SimStage("stage", tuple(SimTask(seconds) for _ in range(tasks)), **more)


def map_reduce(index: int, maps: int, reduces: int, seconds: float, *, start_at: float = 1.0) -> SimJob:
    stages = (stage(maps, seconds), stage(reduces, seconds, after=(0,), start_at=start_at))
    return SimJob(f"job{index}", stages, arrival_s=index * 0.7)


def mixed(jobs: int) -> Workload:
    return Workload(tuple(map_reduce(i, 3 + i % 7, 1 + i % 3, 1.0 + i % 5) for i in range(jobs)))


def same(one: SimResult, other: SimResult) -> bool:
    arrays = ("arrived", "started", "ended", "job", "done")
    return one.jobs == other.jobs and all(np.array_equal(getattr(one, n), getattr(other, n)) for n in arrays)
