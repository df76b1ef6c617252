"""The ResourceManager behind managers that place their own tasks: the live scheduler books what they chose.

It publishes what nodes reported with what was booked since. So two managers that ask one after the other do not choose
alike. It refuses what would wait for longer than it may by now: that stays with its manager. Proxies hear of it with
the answer to the call that told what they chose (`rm.services.distributed`).
"""

import math
from typing import Final

from nm.distributed.facts import NodeOffer, Place
from nm.node_queue.said import NodeQueueSnapshot
from rm.scheduler.events import (
    ApplicationEnded,
    ApplicationSubmitted,
    AttemptStarted,
    ContainerEnded,
    Elapsed,
    Estimated,
    NodeJoined,
    NodeLeft,
    NodeQueueReported,
    NodeSilent,
    ProxyPlaced,
    WaitingTolerated,
    WantedElsewhere,
)
from rm.scheduler.limits import SchedulerLimits
from rm.scheduler.node_queues.spec import QueueingSpec
from rm.scheduler.opportunistic.placing import OpportunisticLimits
from rm.scheduler.opportunistic.room import backlog, left, longer_wait
from rm.scheduler.scheduler import Scheduler
from rm.scheduler.view.calculators import AllocationBounds
from rm.scheduler.view.node import NodeQueue
from yaqd.model import ContainerId, NodeId, Resource
from yaqd.policies.queueing.place_scores import Affinity
from yaqd.sim.jobs import JobRun
from yaqd.sim.nodes import SimNode
from yaqd.sim.scheduling.spec import scheduler_spec
from yaqd.sim.shape import ClusterShape, System


class Booking:
    def __init__(self, shape: ClusterShape, system: System) -> None:
        self._shape: Final = shape
        self._bound: Final = system.bound
        self._is_aware: Final = system.aware
        self.scheduler: Final = Scheduler(scheduler_spec(shape, system), limits(shape, system))
        #: as published last, and which of them is no longer so
        self._offers: dict[NodeId, NodeOffer] = {}
        self._stale: set[NodeId] = set()

    # ---- what nodes say

    def joined(self, node: SimNode, now: float) -> None:
        self._stale.add(node.id)
        self.scheduler.handle(NodeJoined(node.id, node.rack, self._shape.capacity_of(node.index)), now)

    def reported(self, node: SimNode, said: NodeQueueSnapshot, ended: list[ContainerId], now: float) -> None:
        """Take in a node's heartbeat, in the order in which the live ResourceManager reads it."""
        handle = self.scheduler.handle
        most = self._bound if self._bound is not None else math.inf
        handle(NodeQueueReported(node.id, said.running, said.queued, said.wait_s, opportunistic_max=most), now)
        for container_id in ended:
            handle(ContainerEnded(container_id), now)
        self._stale.add(node.id)

    def silent(self, node: SimNode, now: float) -> None:
        self.scheduler.handle(NodeSilent(node.id), now)

    def left(self, node: SimNode, now: float) -> None:
        self.scheduler.handle(NodeLeft(node.id), now)
        for container_id in self.scheduler.facts.opportunistic_on(node.id):
            self.scheduler.handle(ContainerEnded(container_id), now)

    # ---- jobs

    def job_started(self, job: JobRun, now: float) -> None:
        handle, spec = self.scheduler.handle, job.spec
        handle(ApplicationSubmitted(job.id, spec.queue, spec.user, 0), now)
        handle(AttemptStarted(job.attempt_id, ()), now)
        if self._is_aware and spec.is_aware:
            handle(WaitingTolerated(job.attempt_id), now)

    def job_ended(self, job: JobRun, now: float) -> None:
        self.scheduler.handle(ApplicationEnded(job.id), now)

    def estimated(self, job: JobRun, priority: int, estimate_s: float | None, now: float) -> None:
        self.scheduler.handle(Estimated(job.id, priority, estimate_s), now)

    # ---- what managers' proxies call for

    def book(self, job: JobRun, place: Place, now: float) -> bool:
        """Book a placed task. Returns False where it is to stay with its manager."""
        attempt, node_id = self.scheduler.facts.attempt(job.attempt_id), place.node.node_id
        if attempt is not None and not self.scheduler.facts.may_go(attempt, node_id, place.resource):
            return False
        key = place.priority, place.allocation_request_id
        self.scheduler.handle(ProxyPlaced(place.container_id, node_id, place.resource, *key), now)
        self._stale.add(node_id)
        return True

    def kept(self, job: JobRun, wanted: dict[tuple[int, Resource], int], now: float) -> None:
        """Note what no node would take and is still wanted, by priority and size."""
        counts: dict[int, int] = {}
        for (priority, _), number in wanted.items():
            counts[priority] = counts.get(priority, 0) + number
        sizes = frozenset(size for _, size in wanted)
        self.scheduler.handle(WantedElsewhere(job.id, tuple(sorted(counts.items())), sizes), now)

    def publish(self, job: JobRun, now: float) -> tuple[NodeOffer, ...]:
        """Return the nodes as the live usage monitor does, to a proxy that reads all of it."""
        self.scheduler.handle(Elapsed(), now)
        return tuple(map(self._offer, self.scheduler.facts.ranked(job.attempt_id)))

    def _offer(self, queue: NodeQueue) -> NodeOffer:
        node_id = queue.node.id
        if node_id in self._stale or node_id not in self._offers:
            self._stale.discard(node_id)
            wait_s = longer_wait(queue, self.scheduler.facts.bounds.minimum)
            most = int(queue.opportunistic_max) if queue.opportunistic_max < math.inf else None
            rack, free, length = queue.node.rack, left(queue), backlog(queue)
            self._offers[node_id] = NodeOffer(node_id, "", rack, "", wait_s, free, length, most, True, queue.slots)
        return self._offers[node_id]


def limits(shape: ClusterShape, system: System) -> SchedulerLimits:
    queueing = QueueingSpec(
        placement=system.place,
        affinity=Affinity(interference=system.interference),
        unaware_wait_s=system.max_wait_unaware_s,
        starve_s=system.starve_s,
    )
    return SchedulerLimits(
        bounds=AllocationBounds(shape.slot, Resource(1 << 30, 1 << 20)),
        decision_log_entries=0,
        opportunistic=OpportunisticLimits(nodes_used=system.published),
        queueing=queueing,
    )
