"""Systems in which each job's own manager places its tasks: Yaq-d, and Mercury as the paper compares with it.

Nodes report their queues with their heartbeats, and managers read what is published at their polling interval; so
all they know is some seconds old, except for what they placed themselves. Yaq-d goes by the expected wait, orders the
nodes' queues and evens them out; Mercury goes by the queues' length and starts what came first.
"""

import math
from heapq import nsmallest
from typing import Final

from nm.distributed.facts import Asked, AskRow, DistributedLimits, NodeOffer, NodesPublished, Place, StageEstimated
from nm.distributed.facts import Ended as Over
from nm.distributed.scheduler import DistributedScheduler
from nm.queue import Arrived, NodeQueue, OpportunisticLimit
from rm.scheduler.queueing_spec import silent_after
from yaqd.model import ANY_HOST, ExecutionType, Resource
from yaqd.policies.queueing.place_scores import Affinity
from yaqd.policies.queueing.rebalance import QueueLoad, queue_limit, rebalance
from yaqd.sim.jobs import Group, JobRun, Run
from yaqd.sim.model import Model
from yaqd.sim.nodes import SimNode
from yaqd.sim.queues import UNBOUNDED, JobNews, new_queue, newcomer, report_of
from yaqd.sim.shape import ClusterShape, System
from yaqd.sim.workload import Workload

_IDS_FROM: Final = 1 << 39
#: queues are told to keep no more than the mean and so many standard deviations, as Hadoop has it
_DEVIATIONS: Final = 1.0
#: what a task is taken to run where nobody waits (yaq.distributed.typical-task-ms), s
_TYPICAL_S: Final = 10.0


class Direct(Model):
    """Without a ResourceManager: what all such systems share."""

    def __init__(self, shape: ClusterShape, workload: Workload, system: System, seed: int) -> None:
        self._news: Final = JobNews(_tasks_over, report_of)
        #: nodes whose heartbeat has something to say
        self._unreported = 0
        super().__init__(shape, workload, system, seed)

    def new_queue(self, capacity: Resource) -> NodeQueue:
        bound = self.system.bound or UNBOUNDED
        return new_queue(capacity, self.system, queues_guaranteed=False, opportunistic_max=bound)

    def newcomer(self, run: Run) -> Arrived:
        return newcomer(run, ExecutionType.OPPORTUNISTIC, self.system)

    def changed(self, node: SimNode) -> None:
        if not node.changed:
            node.changed = True
            self._unreported += 1

    def beats_matter(self) -> bool:
        return self._unreported > 0

    def beat(self, now: float, node: SimNode) -> None:
        if not node.is_up or not node.changed:
            return
        node.changed = False
        self._unreported -= 1
        news = self._news.for_node(node) if self.system.name == "yaq-d" else None
        if news is not None:
            self.carry_out(node, node.queue.handle(news, now), now)
        self.reported(node, now)
        if node.runs:
            self.changed(node)  # waits get shorter with time

    def reported(self, node: SimNode, now: float) -> None:
        """What the node's heartbeat brings along."""

    def place(self, job: JobRun, now: float) -> None:
        """The job's manager sends out what it can."""
        raise NotImplementedError

    # ---- what the model tells

    def arrive(self, run: Run, node: SimNode, now: float) -> None:
        super().arrive(run, node, now)
        self.changed(node)

    def send(self, now: float, run: Run) -> None:
        """A container reaches its node, or finds it gone."""
        node = self.nodes[run.node]
        if node.is_up:
            self.arrive(run, node, now)
        else:
            run.node = -1
            self.container_lost(run, node, now)

    def job_started(self, job: JobRun, now: float) -> None:
        self.place(job, now)

    def job_wants(self, job: JobRun, now: float) -> None:
        self.engine.at(now, self._place_later, job)

    def _place_later(self, now: float, job: JobRun) -> None:
        if not job.is_over:
            self.place(job, now)

    def job_ended(self, job: JobRun, now: float) -> None:
        self._news.forget(job)

    def container_done(self, run: Run, node: SimNode, now: float) -> None:
        self.changed(node)

    def container_lost(self, run: Run, node: SimNode, now: float) -> None:
        self.changed(node)
        self.engine.at(now + self.shape.network_s, self._again, run)

    def _again(self, now: float, run: Run) -> None:
        """Its manager learns that a container went without its work."""
        job = run.stage.job
        if not job.is_over:
            self.forgotten(run, now)
            run.group.put(run.task)
            self.look_again(job, now, was_full=run.ended == run.arrived)

    def look_again(self, job: JobRun, now: float, *, was_full: bool = False) -> None:
        """At its next poll; where a queue refused what came, once the nodes have said how full they are."""
        if job.poll_due < 0.0:
            job.poll_due = now + max(self.shape.heartbeat_s if was_full else self.shape.am_poll_s, 1e-3)
            self.engine.at(job.poll_due, self._poll, job)

    def _poll(self, now: float, job: JobRun) -> None:
        job.poll_due = -1.0
        if not job.is_over:
            self.place(job, now)

    def forgotten(self, run: Run, now: float) -> None:
        """The manager counts the container no longer."""

    def node_failed(self, node: SimNode, lost: list[Run], now: float) -> None:
        for run in lost:
            self.engine.at(now + self.shape.expiry_s, self._again, run)

    def node_returned(self, node: SimNode, now: float) -> None:
        self.changed(node)


class Distributed(Direct):
    def __init__(self, shape: ClusterShape, workload: Workload, system: System, seed: int) -> None:
        super().__init__(shape, workload, system, seed)
        self.by_wait: Final = system.name == "yaq-d" and system.place != "length"
        self.rebalances: Final = system.name == "yaq-d" and system.rebalance
        self._by_host: Final = {node.id.host: node for node in self.nodes}
        #: what each node reported last
        self._offers: Final = [self._offer(node, 0.0) for node in self.nodes]
        #: by node that is down: until when what it said last is believed
        self._silent_at: dict[int, float] = {}
        self._published: tuple[NodeOffer, ...] = ()
        self._published_at = -math.inf
        #: Hadoop's limit on every queue, and how many are to leave a node by the finer rule
        self._limit = UNBOUNDED
        self._leaving: dict[int, int] = {}
        self._placers: dict[int, DistributedScheduler] = {}

    # ---- what is known of nodes

    def _offer(self, node: SimNode, now: float) -> NodeOffer:
        said = node.queue.snapshot(now, 0)
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
        self._offers[node.index] = offer = self._offer(node, now)
        if self.rebalances:
            limit = max(0, (offer.queued or 0) - self._leaving.pop(node.index, 0))
            self.carry_out(node, node.queue.handle(OpportunisticLimit(min(limit, self._limit)), now), now)

    def _publish(self, now: float) -> tuple[NodeOffer, ...]:
        """The least loaded nodes as they are known, made anew at the polling interval."""
        if now - self._published_at >= max(self.shape.am_poll_s, 1e-3):
            there = [offer for offer in self._offers if self._is_believed(self._by_host[offer.node_id.host], now)]
            self._published = tuple(nsmallest(self.system.published, there, key=_load))
            self._published_at = now
            if self.rebalances:
                self._even_out(there)
        return self._published

    def _is_believed(self, node: SimNode, now: float) -> bool:
        return node.is_up or now < self._silent_at.get(node.index, now)

    def node_failed(self, node: SimNode, lost: list[Run], now: float) -> None:
        super().node_failed(node, lost, now)
        self._silent_at[node.index] = now + silent_after(self.shape.heartbeat_s)

    def _even_out(self, offers: list[NodeOffer]) -> None:
        """What nodes are told with their next report: both limits of the live ResourceManager."""
        system = self.system
        lengths = (offer.queued or 0 for offer in offers)
        self._limit = int(queue_limit(lengths, _DEVIATIONS, system.rebalance_least, system.rebalance_most))
        self._leaving.clear()
        if system.rebalance_gain_s <= 0.0:
            return
        for move in rebalance(map(self._queue_load, offers), self.system.rebalance_gain_s):
            index = self._by_host[move.source.host].index
            self._leaving[index] = self._leaving.get(index, 0) + move.tasks

    def _queue_load(self, offer: NodeOffer) -> QueueLoad:
        """As the live ResourceManager reads it from a node's report."""
        wait_s, queued = offer.wait_s or 0.0, offer.queued or 0
        slots = self.shape.slots_of(self._by_host[offer.node_id.host].index)
        mean_s = wait_s * slots / (queued + 1) if 0.0 < wait_s < math.inf else _TYPICAL_S
        room = (self.system.bound or UNBOUNDED) - queued
        return QueueLoad(offer.node_id, wait_s, queued, slots, mean_s, room)

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
        return placer

    def place(self, job: JobRun, now: float) -> None:
        placer = self._placer(job, now)
        rows = []
        for group in job.groups.values():
            if group.is_changed:
                group.is_changed = False
                placer.handle(StageEstimated(group.key[0], group.stage.estimate), now)
                rows.append(AskRow(*group.key, ANY_HOST, group.resource, len(group.waiting)))
        places = placer.handle(NodesPublished(self._publish(now)), now)
        places += placer.handle(Asked(tuple(rows)), now)
        for place in places:
            self._carry(job, place, now)
        if any(group.waiting for group in job.groups.values()):
            self.look_again(job, now)

    def _carry(self, job: JobRun, place: Place, now: float) -> None:
        group = job.groups[(place.priority, place.allocation_request_id)]
        task = self._take(group)
        run = Run(group.stage, group, task, place.container_id)
        run.node = self._by_host[place.node.node_id.host].index
        run.waits_since = now - place.waited_s
        self.recorder.count("allocated")
        self.engine.at(now + self.shape.network_s, self.send, run)

    @staticmethod
    def _take(group: Group) -> int:
        task = group.take()
        assert task is not None, "a container was placed that nobody asked for"
        return task

    def forgotten(self, run: Run, now: float) -> None:
        unserved = frozenset((run.container_id,)) if run.started < 0.0 else frozenset()
        self._placers[run.stage.job.index].handle(Over((run.container_id,), unserved), now)

    def container_done(self, run: Run, node: SimNode, now: float) -> None:
        super().container_done(run, node, now)
        job = run.stage.job
        if job.is_over:
            return
        self.forgotten(run, now)
        if self.system.tasks_at_once and any(group.waiting for group in job.groups.values()):
            self.place(job, now)

    def job_ended(self, job: JobRun, now: float) -> None:
        super().job_ended(job, now)
        self._placers.pop(job.index, None)


def _tasks_over(job: JobRun) -> int:
    return job.done


def _load(offer: NodeOffer) -> tuple[float, float, int, str]:
    """Nodes with room first, the emptiest of them first; then those where one waits least."""
    free = offer.free.memory_mb if offer.free is not None else 0
    queued = offer.queued or 0
    wait = offer.wait_s if offer.wait_s is not None else float(queued)
    return (wait if free <= 0 or queued else 0.0, -free, queued, offer.node_id.host)
