"""A study so small that it takes no time."""

from dataclasses import replace

from yaqd.sim.shape import ClusterShape
from yaqd.sim.study.design import OFF, UNQUEUED, StudyCell
from yaqd.sim.study.trial import Ground

GROUND = Ground("5-sec", 2, ClusterShape(nodes=3, slots=4, heartbeat_s=1.0))
SEEDS = range(1, 4)


def tiny() -> list[StudyCell]:
    """Two systems of a factorial at a load each."""
    fair = replace(OFF, job_order="fair")
    return [
        StudyCell("main", "stock", "stock: fifo", GROUND, OFF, 0.7, OFF),
        StudyCell("main", "stock", "stock: fair", GROUND, fair, 0.7, OFF),
        StudyCell("main", "ours", "ours", GROUND, UNQUEUED, 0.7, OFF, factors=(("queues", "off"),)),
    ]
