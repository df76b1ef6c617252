"""Systems in which each job's own manager places its tasks: Yaq-d, and Mercury as the paper compares with it.

Nodes report their queues with their heartbeats, and managers read what is published at their polling interval; so
all they know is some seconds old, except for what they placed themselves. Yaq-d goes by the expected wait, orders the
nodes' queues and evens them out; Mercury goes by the queues' length and starts what came first.
"""

import math
from heapq import nsmallest
from typing import Final

from nm.distributed.asks import wanted_by_size
from nm.distributed.facts import (
    Asked,
    DistributedLimits,
    NodeOffer,
    NodesPublished,
    NotBooked,
    Place,
    StageEstimated,
    WaitLimited,
)
from nm.distributed.facts import ContainerOver as Over
from nm.distributed.scheduler import DistributedScheduler
from nm.node_queue import NodeQueue, OpportunisticLimit
from nm.node_queue.said import NodeQueueSnapshot
from rm.scheduler.node_queues.spec import silent_after
from yaqd.model import ANY_HOST, Resource
from yaqd.policies.asks.rows import AskRow
from yaqd.policies.queueing.place_scores import Affinity
from yaqd.policies.queueing.rebalance import REBALANCES, NodeQueueSaid, queue_limit, queue_loads
from yaqd.sim.booking import Booking
from yaqd.sim.direct import Direct
from yaqd.sim.jobs import ContainerRun, Group, JobRun
from yaqd.sim.nodes import SimNode
from yaqd.sim.queues import UNBOUNDED, new_queue
from yaqd.sim.shape import ClusterShape, System
from yaqd.sim.workload import Workload

_IDS_FROM: Final = 1 << 39
#: queues are told to keep no more than the mean and so many standard deviations, as Hadoop has it
_DEVIATIONS: Final = 1.0
#: what a task is taken to run where nobody waits (yaq.distributed.typical-task-ms), s
_TYPICAL_S: Final = 10.0


class Distributed(Direct):
    def __init__(self, shape: ClusterShape, workload: Workload, system: System, seed: int) -> None:
        is_booked = system.booked or not system.aware or not all(job.is_aware for job in workload)
        #: the ResourceManager, where it takes part
        self.booking: Final = Booking(shape, system) if system.name == "yaq-d" and is_booked else None
        super().__init__(shape, workload, system, seed)
        self.by_wait: Final = system.name == "yaq-d" and system.place != "length"
        self.rebalances: Final = system.name == "yaq-d" and system.rebalance
        self._by_host: Final = {node.id.host: node for node in self.nodes}
        #: what each node reported last
        self._offers: Final = [self._offer(node, node.queue.snapshot(0.0, 0)) for node in self.nodes]
        #: by node that is down: until when what it said last is believed
        self._silent_at: dict[int, float] = {}
        self._published: tuple[NodeOffer, ...] = ()
        self._published_at = -math.inf
        #: Hadoop's limit on every queue, and how many are to leave a node by the finer rule
        self._limit = UNBOUNDED
        self._leaving: dict[int, int] = {}
        self._placers: dict[int, DistributedScheduler] = {}
        #: by job: when it was answered last
        self._answered: dict[int, float] = {}
        if self.booking is not None:
            for node in self.nodes:
                self.booking.joined(node, 0.0)
                self.booking.reported(node, node.queue.snapshot(0.0, 0), [], 0.0)

    def new_queue(self, capacity: Resource) -> NodeQueue:
        if self.booking is None:
            return super().new_queue(capacity)
        bound = self.system.bound or UNBOUNDED
        return new_queue(capacity, self.system, queues_guaranteed=True, opportunistic_max=bound)

    # ---- what is known of nodes

    def _offer(self, node: SimNode, said: NodeQueueSnapshot) -> NodeOffer:
        free = self.shape.slot * max(0, self.shape.slots_of(node.index) - said.running)
        wait_s = said.wait_s if self.by_wait else None
        return NodeOffer(
            node.id,
            "",
            node.rack,
            "",
            wait_s,
            free,
            said.queued,
            self.system.bound or None,
            reads_tasks=self.by_wait,
            slots=self.shape.slots_of(node.index),
        )

    def reported(self, node: SimNode, now: float) -> None:
        said = node.queue.snapshot(now, 0)
        self._offers[node.index] = offer = self._offer(node, said)
        if self.booking is not None:
            ended, node.ended = node.ended, []
            self.booking.reported(node, said, [run.container_id for run in ended], now)
        if self.rebalances:
            limit = max(0, (offer.queued or 0) - self._leaving.pop(node.index, 0))
            self.carry_out(node, node.queue.handle(OpportunisticLimit(min(limit, self._limit)), now), now)

    def _publish(self, job: JobRun, now: float) -> tuple[NodeOffer, ...]:
        """The least loaded nodes as they are known, made anew at the polling interval."""
        if now - self._published_at >= max(self.shape.am_poll_s, 1e-3):
            there = [offer for offer in self._offers if self._is_believed(self._by_host[offer.node_id.host], now)]
            self._published = tuple(nsmallest(self.system.published, there, key=_load))
            self._published_at = now
            if self.rebalances:
                self._even_out(there)
        return self._published if self.booking is None else self.booking.publish(job, now)

    def _is_believed(self, node: SimNode, now: float) -> bool:
        return node.is_up or now < self._silent_at.get(node.index, now)

    def node_failed(self, node: SimNode, lost: list[ContainerRun], now: float) -> None:
        super().node_failed(node, lost, now)
        self._silent_at[node.index] = silent_at = now + silent_after(self.shape.heartbeat_s)
        if self.booking is not None:
            node.ended = []
            self.engine.at(silent_at, self._silent, node)
            self.engine.at(now + self.shape.expiry_s, self._expire, node)

    def _silent(self, now: float, node: SimNode) -> None:
        if not node.is_up and self.booking is not None:
            self.booking.silent(node, now)

    def _expire(self, now: float, node: SimNode) -> None:
        if not node.is_up and self.booking is not None:
            self.booking.left(node, now)

    def node_returned(self, node: SimNode, now: float) -> None:
        super().node_returned(node, now)
        if self.booking is not None:
            self.booking.left(node, now)
            self.booking.joined(node, now)

    def _even_out(self, offers: list[NodeOffer]) -> None:
        """What nodes are told with their next report: both limits of the live ResourceManager."""
        system = self.system
        lengths = [offer.queued or 0 for offer in offers]
        self._limit = int(queue_limit(lengths, _DEVIATIONS, system.rebalance_least, system.rebalance_most))
        self._leaving.clear()
        if system.rebalance_gain_s <= 0.0:
            return
        loads = queue_loads(map(self._queue_said, offers), self._limit, _TYPICAL_S)
        for move in REBALANCES[system.rebalance_policy](loads, system.rebalance_gain_s):
            index = self._by_host[move.source.host].index
            self._leaving[index] = self._leaving.get(index, 0) + move.tasks

    def _queue_said(self, offer: NodeOffer) -> NodeQueueSaid:
        """As the live ResourceManager reads it from a node's report."""
        queued, slots = offer.queued or 0, self.shape.slots_of(self._by_host[offer.node_id.host].index)
        return NodeQueueSaid(offer.node_id, offer.wait_s or 0.0, queued, queued, slots, self.system.bound)

    # ---- placing

    def _placer(self, job: JobRun, now: float) -> DistributedScheduler:
        placer = self._placers.get(job.index)
        if placer is None:
            limits = DistributedLimits(
                tasks_max=self.system.tasks_at_once or -1,
                ask_rows_max=1 << 40,
                placement=self.system.place,
                affinity=Affinity(interference=self.system.interference),
            )
            placer = self._placers[job.index] = DistributedScheduler(
                job.attempt_id, limits, least=self.shape.slot, most=Resource(1 << 30, 1 << 20), id_start=_IDS_FROM
            )
            if self.booking is not None:
                placer.handle(WaitLimited(self.system.most_wait_s(job.spec.is_aware)), now)
        return placer

    def job_started(self, job: JobRun, now: float) -> None:
        if self.booking is not None:
            self.booking.job_started(job, now)
        super().job_started(job, now)

    def place(self, job: JobRun, now: float) -> None:
        placer = self._placer(job, now)
        rows = []
        for group in job.groups.values():
            if group.is_changed:
                group.is_changed = False
                self._estimated(job, placer, group, now)
                rows.append(AskRow(*group.key, ANY_HOST, group.resource, len(group.waiting)))
        if self.booking is None or now - self._answered.get(job.index, -math.inf) > 2.0 * self.shape.am_poll_s:
            # a manager with nothing to say calls too, which is not played
            placer.handle(NodesPublished(self._publish(job, now)), now)
        places = placer.handle(Asked(tuple(rows)), now)
        if self.booking is not None:
            places = self._book(self.booking, job, placer, places, now)
        for place in places:
            self._carry(job, place, now)
        if any(group.waiting for group in job.groups.values()):
            self.look_again(job, now)

    def _estimated(self, job: JobRun, placer: DistributedScheduler, group: Group, now: float) -> None:
        priority, estimate_s = group.key[0], group.stage.estimate
        placer.handle(StageEstimated(priority, estimate_s), now)
        if self.booking is not None:
            self.booking.estimated(job, priority, estimate_s, now)

    def _book(
        self, booking: Booking, job: JobRun, placer: DistributedScheduler, places: list[Place], now: float
    ) -> list[Place]:
        """One call to the ResourceManager, as a proxy makes it; what goes out to nodes after it."""
        refused = {place.container_id for place in places if not booking.book(job, place, now)}
        booking.kept(job, wanted_by_size(placer.asks), now)
        placer.handle(NotBooked(tuple((p.container_id, p.wanted_by) for p in places if p.container_id in refused)), now)
        placer.handle(NodesPublished(self._publish(job, now)), now)
        self._answered[job.index] = now
        self.recorder.count("not_booked", len(refused))
        return [place for place in places if place.container_id not in refused]

    def _carry(self, job: JobRun, place: Place, now: float) -> None:
        group = job.groups[(place.priority, place.allocation_request_id)]
        task = self._take(group)
        run = ContainerRun(group.stage, group, task, place.container_id)
        run.node = self._by_host[place.node.node_id.host].index
        run.waits_since = now - place.waited_s
        run.most_wait_s = place.most_wait_s
        self.recorder.count("allocated")
        self.engine.at(now + self.shape.network_s, self.send, run)

    @staticmethod
    def _take(group: Group) -> int:
        task = group.take()
        assert task is not None, "a container was placed that nobody asked for"
        return task

    def forgotten(self, run: ContainerRun, now: float) -> None:
        unserved = frozenset((run.container_id,)) if run.started < 0.0 else frozenset()
        self._placers[run.stage.job.index].handle(Over((run.container_id,), unserved), now)

    def container_done(self, run: ContainerRun, node: SimNode, now: float) -> None:
        super().container_done(run, node, now)
        self._note_end(run, node, now)
        job = run.stage.job
        if job.is_over:
            return
        self.forgotten(run, now)
        if self.system.tasks_at_once and any(group.waiting for group in job.groups.values()):
            self.place(job, now)

    def container_lost(self, run: ContainerRun, node: SimNode, now: float) -> None:
        super().container_lost(run, node, now)
        self._note_end(run, node, now)

    def _note_end(self, run: ContainerRun, node: SimNode, now: float) -> None:
        """The ResourceManager hears of it from the node."""
        if self.booking is not None and node.is_up:
            node.ended.append(run)
            if self.system.out_of_turn:
                self.beat_at_once(node, now)

    def arrive(self, run: ContainerRun, node: SimNode, now: float) -> None:
        super().arrive(run, node, now)
        if run.started < 0.0 and run.node >= 0 and run.most_wait_s < math.inf:
            self.wind(node, now)

    def job_ended(self, job: JobRun, now: float) -> None:
        super().job_ended(job, now)
        self._placers.pop(job.index, None)
        self._answered.pop(job.index, None)
        if self.booking is not None:
            self.booking.job_ended(job, now)


def _load(offer: NodeOffer) -> tuple[float, float, int, str]:
    """Nodes with room first, the emptiest of them first; then those where one waits least."""
    free = offer.free.memory_mb if offer.free is not None else 0
    queued = offer.queued or 0
    wait = offer.wait_s if offer.wait_s is not None else float(queued)
    return (wait if free <= 0 or queued else 0.0, -free, queued, offer.node_id.host)
