"""What the paper's experiments have in common: its cluster, and the systems at the settings that it gives them.

80 nodes with heartbeats of 3 s (4.3). Slots by node differ between its experiments and are seldom stated: 13.9 jobs a
minute of Hive-MS are 315 busy slots, so 80 x 4 fit those, and its analysis of GridMix (3.1) counts 10 a node. Job
managers poll every second, as Tez's do. A container starts `START_GAP_S` after its slot is free, and has its files
and launch script made before that, in `PREPARE_S`, while it queues if it does: the two are chosen so that stock YARN
uses what table 2.1 reports of its slots, and are the same for every system.
"""

from typing import Final

from yaqd.sim.experiments.model import Case
from yaqd.sim.shape import ClusterShape, System
from yaqd.sim.workloads import Arrivals, Drawn

NODES: Final = 80
START_GAP_S: Final = 0.15
PREPARE_S: Final = 0.85
HIVE_JOBS: Final = 185
#: how many jobs GridMix holds in the cluster
GRIDMIX_AT_ONCE: Final = 20


def shape(slots: int) -> ClusterShape:
    return ClusterShape(nodes=NODES, slots=slots, start_gap_s=START_GAP_S, prepare_s=PREPARE_S, noise=0.1)


HIVE_SHAPE: Final = shape(4)
GRIDMIX_SHAPE: Final = shape(10)

YARN: Final = System("yarn")
#: 4.4: four queue slots, placed by wait time, SRJF; 10 s of starvation as 4.7.3 found best for it
YAQ_C: Final = System("yaq-c", bound=4, place="wait", order="srjf", starve_s=10.0)
#: 4.5
YAQ_D: Final = System("yaq-d", place="wait", order="srjf", starve_s=10.0, rebalance=True)
NEVER: Final = float("inf")


def hive(label: str, system: System, *, arrivals: Arrivals = Arrivals(), limits: tuple[int, ...] = ()) -> Case:
    """185 queries, all submitted at once."""
    return Case(label, Drawn("hive-ms", HIVE_JOBS, arrivals), HIVE_SHAPE, system, limits=limits)


def gridmix(label: str, system: System, name: str = "gridmix-ms", jobs: int = 300) -> Case:
    """Jobs for about half an hour of the whole cluster."""
    return Case(label, Drawn(name, jobs), GRIDMIX_SHAPE, system)
