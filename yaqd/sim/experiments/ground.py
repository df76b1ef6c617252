"""What the paper's experiments have in common: its cluster, and the systems at the settings that it gives them.

80 nodes with heartbeats of 3 s (4.3). Slots by node differ between its experiments and are seldom stated: 13.9 jobs a
minute of Hive-MS are 315 busy slots, so 80 x 4 fit Yaq-c's; Yaq-d's 16.6 a minute are 376, which 80 x 4 cannot do, with
a median queuing delay of 0.35 s, so most tasks found a free slot: 80 x 10, which its analysis (3.1) counts too.

How many jobs run at a time is not stated either. Hive-MS: 64, what the capacity scheduler's default lets in (a tenth
of 320 slots of 4 GB, for masters of 2 GB: Tez's 1536 MB in steps of 1024). GridMix: 40, because GridMix under stress
submits until pending tasks and the rests of running ones are twice the slots (StressJobFactory in Hadoop's gridmix):
2,000 tasks of jobs that have half of their 100 left.

Job managers poll every second, as Tez's do. A container starts `START_GAP_S` after its slot is free, and has its files
and launch script made before that, in `PREPARE_S`, while it queues if it does: the two are chosen so that stock YARN
uses what table 2.1 reports of its slots with 5 s and 10 s tasks, and are the same for every system.
"""

from dataclasses import replace
from typing import Final

from yaqd.sim.experiments.model import Case
from yaqd.sim.shape import ClusterShape, System
from yaqd.sim.workloads import Arrivals, Drawn

NODES: Final = 80
START_GAP_S: Final = 0.15
PREPARE_S: Final = 0.85
HIVE_JOBS: Final = 185
HIVE_AT_ONCE: Final = 64
GRIDMIX_AT_ONCE: Final = 40


def shape(slots: int) -> ClusterShape:
    return ClusterShape(nodes=NODES, slots=slots, start_gap_s=START_GAP_S, prepare_s=PREPARE_S, noise=0.1)


HIVE_SHAPE: Final = shape(4)
GRIDMIX_SHAPE: Final = shape(10)

NEVER: Final = float("inf")
YARN: Final = System("yarn")
#: 4.4: four queue slots, placed by wait time, SRJF; 10 s of starvation as 4.7.3 found best for it
YAQ_C: Final = System("yaq-c", bound=4, place="wait", order="srjf", starve_s=10.0)
#: what the experiments here taught: SRJF of jobs and of tasks, queues as short as tasks of 23 s on four
#: slots need, and a threshold that is far above what tasks wait
OURS: Final = System("yaq-c", bound=2, place="wait", order="srjf", job_order="srjf", starve_s=300.0)
#: 4.5
YAQ_D: Final = System("yaq-d", place="wait", order="srjf", starve_s=10.0, rebalance=True)


def hive(label: str, system: System, *, load: float | None = None) -> Case:
    """185 queries: submitted at once, 64 at a time; or with `load` arriving by chance, all let in."""
    if load is None:
        return Case(label, Drawn("hive-ms", HIVE_JOBS), HIVE_SHAPE, replace(system, jobs_at_once=HIVE_AT_ONCE))
    return Case(label, Drawn("hive-ms", HIVE_JOBS, Arrivals("poisson", load)), HIVE_SHAPE, system)


def gridmix(label: str, system: System, name: str = "gridmix-ms", jobs: int = 120) -> Case:
    """Jobs for about 12 minutes of the whole cluster (of `heavy-tailed`, more), 40 at a time."""
    return Case(label, Drawn(name, jobs), GRIDMIX_SHAPE, replace(system, jobs_at_once=GRIDMIX_AT_ONCE))
