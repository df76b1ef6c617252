"""Yaq-d: a job's opportunistic containers placed at the node of its own master, from published loads. Pure.

After Yaq (Rasley et al., EuroSys 2016, the distributed design) on the ground of Hadoop's DistributedScheduler. The
proxy in front of a master and the simulator drive the same object.
"""

from nm.distributed.asks import TooManyAsks
from nm.distributed.facts import (
    Asked,
    AskRow,
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
    "AskRow",
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
    "TooManyAsks",
    "WaitLimited",
]
