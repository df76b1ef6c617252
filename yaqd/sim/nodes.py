"""A node of the simulation: the live queue, and the processes that it started."""

from math import inf
from typing import Final

from nm.node_queue import NodeQueue
from yaqd.model import ContainerId, NodeId
from yaqd.policies.queueing.means import RecentMean
from yaqd.sim.jobs import ContainerRun

PORT: Final = 45454


class SimNode:
    __slots__ = (
        "answers",
        "beats_early",
        "called_at",
        "calls",
        "calls_again",
        "changed",
        "ended",
        "id",
        "index",
        "is_calling",
        "is_up",
        "queue",
        "rack",
        "reported_at",
        "running",
        "runs",
        "speed",
        "taken",
        "tick_at",
        "told",
    )

    def __init__(self, index: int, node_id: NodeId, rack: str, queue: NodeQueue, speed: float) -> None:
        self.index = index
        self.id = node_id
        self.rack = rack
        self.queue = queue
        self.speed = speed
        #: containers that are there, waiting or running
        self.runs: dict[ContainerId, ContainerRun] = {}
        #: how many of them the queue has started
        self.running = 0
        #: containers that ended since the last heartbeat
        self.ended: list[ContainerRun] = []
        #: the next heartbeat says something new
        self.changed = False
        #: containers that it is told to end with its next heartbeat
        self.taken: list[ContainerRun] = []
        #: one that is out of turn is under way
        self.beats_early = False
        self.is_up = True
        #: where heartbeats take time (`yaqd.sim.scheduling.service`): how many it has sent, when the last one, s,
        #: whether that is under way and another is to follow at once, and what answers took of late, s
        self.calls = 0
        self.called_at = 0.0
        self.is_calling = False
        self.calls_again = False
        self.answers: RecentMean | None = None
        #: when it reported its queue last, s
        self.reported_at = -inf
        #: when its queue is woken next, s
        self.tick_at = inf
        #: by index of a job that waits here: how many of its tasks were over when the node heard of it
        self.told: dict[int, int] = {}
