"""The simulated twins of live rows that are no traces: a backlog of tasks, and one container at a time."""

import random
import statistics
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from yaqd.sim.shape import LivedTimes
from yaqd.sim.simulation import simulate
from yaqd.sim.workload import SimJob, SimStage, SimTask, Workload

from .live_cluster import Variant
from .live_runs import Loaded
from .live_simulated import SEEDS, shape_of, system_of
from .live_twins import start_turn

_PRIORITY: Final = 20
#: jobs of one task on an idle cluster; so far apart that none meets another, s
_ALONE: Final = 50
_APART_S: Final = 20.0
_TASK_S: Final = 0.05
#: what a leaf queue may have beyond its share: all, as in the live cluster
_ROOMY: Final = ("maximum-capacity", "user-limit-factor")


def backlog_twin(
    variant: Variant, loaded: Loaded, *, slots: int, duration_s: float, poll_s: float, aware: bool
) -> list[float]:
    """Return the part of the slots that the simulator says was used in the same window, by seed; `slots`: of a node.

    Starts take what they took in that run.
    """
    gap_s, lived = _starts(variant, loaded)
    shape = shape_of(variant, slots, poll_s=poll_s, gap_s=gap_s, lived=lived)
    tasks = tuple(SimTask(duration_s, priority=_PRIORITY) for _ in range(loaded.asked))
    workload = Workload((SimJob("backlog", (SimStage("work", tasks),)),))
    end = loaded.warm_s + loaded.window_s
    system = system_of(variant, aware=aware)
    found = (simulate(shape, workload, system, seed, horizon_s=end) for seed in SEEDS)
    return [result.utilization_between(loaded.warm_s, end) for result in found]


def _starts(variant: Variant, loaded: Loaded) -> tuple[float, LivedTimes]:
    """How long a start took in that run beyond its turn, and what else there was."""
    waits = bool(loaded.queued_gaps_s) and (variant.opportunistic or bool(loaded.bounds))
    launches = [task.started_s - task.given_s for task in loaded.records]
    turn_s = start_turn(loaded.records)
    gap_s = max(statistics.median(loaded.queued_gaps_s if waits else launches) - turn_s, 0.0)
    return gap_s, LivedTimes(hears_by_polls=True, start_turn_s=turn_s)


def latency_twin(
    variant: Variant, launch_s: float, *, beats_within_s: float, slots: int, poll_s: float, aware: bool
) -> list[float]:
    """Return how long the simulator says it takes from an ask to the process on an idle cluster, s, of every ask.

    `launch_s`: from a master's having a container to its process. `beats_within_s`: how far apart the nodes' heartbeats
    are. Both are measured.
    """
    chooser = random.Random(1)
    stage = SimStage("work", (SimTask(_TASK_S, priority=_PRIORITY),))
    jobs = tuple(
        SimJob(f"alone{number}", (stage,), arrival_s=_APART_S * (number + chooser.random())) for number in range(_ALONE)
    )
    lived = LivedTimes(hears_by_polls=True, beats_within_s=beats_within_s)
    shape = shape_of(variant, slots, poll_s=poll_s, gap_s=launch_s, lived=lived)
    system = system_of(variant, aware=aware)
    return [
        job.first_run - job.submitted for seed in SEEDS for job in simulate(shape, Workload(jobs), system, seed).jobs
    ]


def shares_twin(
    variant: Variant,
    loaded: Loaded,
    shares: Mapping[str, int],
    *,
    slots: int,
    duration_s: float,
    poll_s: float,
    span_s: float,
    aware: bool,
) -> list[float]:
    """Return by how many points the simulator says that queues are off their shares at most, by seed.

    Each has a backlog, and every span of `span_s` seconds counts that begins at a second of the window.
    """
    gap_s, lived = _starts(variant, loaded)
    queues = tuple((name, float(share)) for name, share in shares.items())
    limits = tuple((f"root.{name}.{key}", "100") for name in shares for key in _ROOMY)
    shape = replace(shape_of(variant, slots, poll_s=poll_s, gap_s=gap_s, lived=lived), queues=queues, scheduler=limits)
    each = loaded.asked // len(shares)
    stage = SimStage("work", (SimTask(duration_s, priority=_PRIORITY),) * each)
    workload = Workload(tuple(SimJob(f"backlog-{name}", (stage,), queue=name) for name in shares))
    end = loaded.warm_s + loaded.window_s
    system = system_of(variant, aware=aware)
    found = []
    for seed in SEEDS:
        result = simulate(shape, workload, system, seed, horizon_s=end)
        worst = 0.0
        for second in range(int(loaded.window_s - span_s) + 1):
            since = loaded.warm_s + second
            busy = np.minimum(result.ended, since + span_s) - np.maximum(result.started, since)
            used = np.bincount(result.job, weights=np.maximum(busy, 0.0), minlength=len(shares))
            parts = 100 * used / used.sum()
            worst = max(worst, *(abs(parts[at] - share) for at, share in enumerate(shares.values())))
        found.append(worst)
    return found
