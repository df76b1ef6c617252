"""Yaq-d: a job's opportunistic containers placed at the node of its own master, from published loads. Pure.

After Yaq (Rasley et al., EuroSys 2016, the distributed design) on the ground of Hadoop's DistributedScheduler. The
proxy in front of a master and the simulator drive the same object.
"""

from nm.distributed.asks import wanted_at, wanted_by_size
from nm.distributed.facts import (
    Asked,
    ContainerOver,
    DistributedLimits,
    Event,
    NodeOffer,
    NodesPublished,
    NotBooked,
    Place,
    StageEstimated,
    WaitLimited,
)
from nm.distributed.scheduler import DistributedScheduler

__all__ = [
    "Asked",
    "ContainerOver",
    "DistributedLimits",
    "DistributedScheduler",
    "Event",
    "NodeOffer",
    "NodesPublished",
    "NotBooked",
    "Place",
    "StageEstimated",
    "WaitLimited",
    "wanted_at",
    "wanted_by_size",
]
