"""What the paper's experiments have in common: its cluster, and the systems at the settings that it gives them.

80 nodes with heartbeats of 3 s (4.3). Slots by node differ between its experiments and are seldom stated: 13.9 jobs a
minute of Hive-MS are 315 busy slots, so 80 x 4 fit Yaq-c's; Yaq-d's 16.6 a minute are 376, which 80 x 4 cannot do, with
a median queuing delay of 0.35 s, so most tasks found a free slot: 80 x 10, which its analysis (3.1) counts too.

GridMix runs for 30 minutes (4.3): what is not over by then has no completion time and is in no median, here as there.
An order that makes long jobs wait therefore gains more than over jobs that are all waited for. There are always more
jobs than that.

How many jobs run at a time is not stated either. Hive-MS: 64, what the capacity scheduler's default lets in (a tenth
of 320 slots of 4 GB, for masters of 2 GB: Tez's 1536 MB in steps of 1024). GridMix: 40, because GridMix under stress
submits until pending tasks and the rests of running ones are twice the slots (StressJobFactory in Hadoop's gridmix):
2,000 tasks of jobs that have half of their 100 left.

Job managers poll every second, as Tez's do. A container starts `START_GAP_S` after its slot is free. It has its files
and launch script made before that, in `PREPARE_S`, while it queues if it does: the two are chosen so that stock YARN
uses what table 2.1 reports of its slots with 5 s and 10 s tasks. They are the same for every system.
"""

from dataclasses import replace
from typing import Final

from yaqd.sim.experiments.model import Case
from yaqd.sim.shape import BOUND_MAX, ClusterShape, System
from yaqd.sim.workloads import Arrivals, Drawn

NODES: Final = 80
START_GAP_S: Final = 0.15
PREPARE_S: Final = 0.85
HIVE_JOBS: Final = 185
HIVE_AT_ONCE: Final = 64
GRIDMIX_AT_ONCE: Final = 40
#: s
GRIDMIX_LASTS: Final = 1800.0
#: more jobs than any system here finishes in that time, at the number at a time that is drawn on
_GRIDMIX_JOBS: Final = 420


def shape(slots: int) -> ClusterShape:
    return ClusterShape(nodes=NODES, slots=slots, start_gap_s=START_GAP_S, prepare_s=PREPARE_S, noise=0.1)


HIVE_SHAPE: Final = shape(4)
GRIDMIX_SHAPE: Final = shape(10)

NEVER: Final = float("inf")
YARN: Final = System("yarn")
#: 4.4: four queue slots, placed by wait time, SRJF; 10 s of starvation as 4.7.3 found best for it
YAQ_C: Final = System("yaq-c", bound=4, order="srjf", starve_s=10.0, max_wait_s=0.0, free_min=0.05)
#: what the experiments here taught: SRJF of jobs and of tasks, queues so long that nodes have all slots busy in nine
#: tenths of the heartbeat intervals, and what has waited for a minute goes back, and first where it comes next
OURS: Final = System("yaq-c", bound_target=0.9, order="srjf", job_order="srjf")
#: what ships: the same with queues as short as keep slots busy for so much of the time; none where they gain nothing
SHIPPED: Final = replace(OURS, bound_target=0.95, bound_policy="utilization")
#: 4.5: its queues have no bound
YAQ_D: Final = System("yaq-d", order="srjf", starve_s=10.0, rebalance_least=1, rebalance_most=BOUND_MAX)
#: as the live cluster's
OURS_D: Final = System("yaq-d", order="srjf")


def fixed(bound: int) -> System:
    """Return our system with queues of one length."""
    return replace(OURS, bound=bound, bound_target=0.0)


def hive(
    label: str,
    system: System,
    *,
    load: float | None = None,
    on: ClusterShape = HIVE_SHAPE,
    at_once: int = HIVE_AT_ONCE,
) -> Case:
    """Make a case of 185 queries: submitted at once, 64 at a time.

    With `load` they arrive by chance, and all are let in.
    """
    if load is None:
        return Case(label, Drawn("hive-ms", HIVE_JOBS), on, replace(system, jobs_at_once=at_once))
    return Case(label, Drawn("hive-ms", HIVE_JOBS, Arrivals("poisson", load)), on, system)


def gridmix(label: str, system: System, name: str = "gridmix-ms", at_once: int = GRIDMIX_AT_ONCE) -> Case:
    """Make a case of 30 minutes of jobs, 40 at a time."""
    jobs = _GRIDMIX_JOBS + 2 * (at_once - GRIDMIX_AT_ONCE)
    return Case(label, Drawn(name, jobs), GRIDMIX_SHAPE, replace(system, jobs_at_once=at_once), horizon_s=GRIDMIX_LASTS)


def all_over(label: str, system: System) -> Case:
    """Make such a case that lasts until the last of 120 jobs is over, about 15 minutes: every job counts."""
    return Case(label, Drawn("gridmix-ms", 120), GRIDMIX_SHAPE, replace(system, jobs_at_once=GRIDMIX_AT_ONCE))
