"""Yaq-c: the ResourceManager sends more to nodes than fits, up to a bound, and the nodes put what waits in order."""

import math
from dataclasses import replace
from typing import Final

from nm.node_queue import Arrived, JobReport, NodeQueue
from rm.scheduler.events import NodeQueueReported, PlaceLost, QueueingChanged, TaskTimes, WaitingTolerated
from rm.scheduler.limits import SchedulerLimits
from rm.scheduler.node_queues.spec import QueueingSpec, Tuning
from yaqd.model import ContainerId, ExecutionType, Resource
from yaqd.policies.queueing.facts import JobFacts
from yaqd.policies.queueing.place_scores import Affinity
from yaqd.sim.central import Central
from yaqd.sim.jobs import ContainerRun, JobRun
from yaqd.sim.nodes import SimNode
from yaqd.sim.queues import UNBOUNDED, JobNews, new_queue, newcomer
from yaqd.sim.scheduling.service import GivesWay
from yaqd.sim.shape import ClusterShape, System
from yaqd.sim.workload import Workload


class YaqC(Central):
    def __init__(self, shape: ClusterShape, workload: Workload, system: System, seed: int) -> None:
        self._news: Final = JobNews(self._version, self._report)
        #: some master does not say that its containers may wait
        self._some_unaware: Final = not system.aware or not all(job.is_aware for job in workload)
        #: nodes are given more than fits
        self._fills = True
        super().__init__(shape, workload, system, seed)

    def limits(self) -> SchedulerLimits:
        system = self.system
        tuned = system.bound_target > 0.0
        queueing = QueueingSpec(
            bound=None if tuned else system.bound or UNBOUNDED,
            tuning=Tuning(
                policy=system.bound_policy,
                idle=1.0 - system.bound_target,
                heartbeat_s=self.shape.heartbeat_s,
                poll_s=self.shape.am_poll_s,
                least=system.bound_least,
            ),
            placement=system.place,
            affinity=Affinity(interference=system.interference),
            free_share=system.free_min,
            wait_max_s=system.bound_wait_s or None,
            overdue_s=system.max_wait_s or math.inf,
            unaware_wait_s=system.max_wait_unaware_s if self._some_unaware else math.inf,
            default_estimate_s=system.default_estimate_s,
            starve_s=system.starve_s,
        )
        return replace(super().limits(), queueing=queueing)

    def new_queue(self, capacity: Resource) -> NodeQueue:
        return new_queue(capacity, self.system, queues_guaranteed=True, opportunistic_max=0)

    def newcomer(self, run: ContainerRun) -> Arrived:
        run.most_wait_s = self.system.most_wait_s(run.stage.job.spec.is_aware)
        return newcomer(run, ExecutionType.GUARANTEED, self.system)

    def job_started(self, job: JobRun, now: float) -> None:
        super().job_started(job, now)
        if self.system.aware and job.spec.is_aware:
            self.take(self.scheduler.handle(WaitingTolerated(job.attempt_id), now), now)

    def arrive(self, run: ContainerRun, node: SimNode, now: float) -> None:
        super().arrive(run, node, now)
        self.changed(node)
        if (self.system.max_wait_s > 0.0 or self._some_unaware) and run.started < 0.0:
            self.wind(node, now)

    def report_queue(self, node: SimNode, now: float) -> None:
        """Send the queue's length and wait up with every heartbeat; what is left of the jobs comes down."""
        self._tell_news(node, now)
        said = self.queue_said(node, now)
        if said is not None:
            self.scheduler.handle(said, now)
        if node.runs or said is None:
            self.changed(node)  # the wait gets shorter with time, or it was not heard

    def answered(self, node: SimNode, now: float) -> None:
        super().answered(node, now)
        if self._busy.is_on:
            self._tell_news(node, now)

    def _tell_news(self, node: SimNode, now: float) -> None:
        news = self._news.for_node(node)
        if news is not None:
            self.carry_out(node, node.queue.handle(news, now), now)

    def gives_way(self) -> GivesWay | None:
        queueing = self.limits().queueing
        return self if queueing is not None and queueing.gives_way else None

    def fill_queues(self, now: float, *, fills: bool) -> None:
        limits, self._fills = self.limits(), fills
        changed = QueueingChanged(limits.queueing if fills else None, limits.job_starvation, limits.at_asks)
        self.take(self.scheduler.handle(changed, now), now)

    def queue_said(self, node: SimNode, now: float) -> NodeQueueReported | None:
        queue = self.scheduler.facts.node_queue(node.id)
        if not self._fills or queue is None or not queue.is_heeded(now):
            return None
        said = node.queue.snapshot(now, 0)
        waiting: list[ContainerId] = []
        started: list[ContainerId] = []
        for container_id, run in node.runs.items():
            (waiting if run.started < 0.0 else started).append(container_id)
        # a node that has nothing new to say reports too, which is not played
        gap_s = self.shape.heartbeat_s if now - node.reported_at > self.shape.heartbeat_s else None
        node.reported_at = now
        return NodeQueueReported(
            node.id,
            said.running,
            said.queued,
            said.wait_s,
            frozenset(waiting),
            frozenset(started),
            gap_s,
            tells_ends=self.system.out_of_turn,
            refill_s=self.shape.prepare_s + (2.0 * self.shape.network_s if node.answers is None else node.answers.mean),
        )

    def report_end(self, run: ContainerRun, node: SimNode, now: float) -> None:
        if not run.is_lost:
            waited_s, ran_s = run.started - run.arrived, run.ended - run.started
            self._busy.ran(ran_s)
            times = TaskTimes(run.stage.job.id, run.group.key[0], waited_s, ran_s, node.id, run.container_id)
            self.scheduler.handle(times, now)
        super().report_end(run, node, now)

    def place_lost(self, run: ContainerRun, now: float) -> None:
        if run.started < 0.0:
            since = run.waits_since if run.waits_since is not None else run.arrived or now
            self.take(self.scheduler.handle(PlaceLost(run.stage.job.id, run.group.key[0], since), now), now)

    def facts(self, job: JobRun) -> JobFacts:
        app = self.scheduler.facts.application(job.id)
        return self.scheduler.facts.left_of(app) if app is not None else job.facts()

    def _version(self, job: JobRun) -> int:
        return self.scheduler.facts.job_version(job.id)

    def _report(self, job: JobRun) -> JobReport:
        """What the ResourceManager knows of it."""
        estimates = dict(self.scheduler.facts.estimates(job.id))
        return JobReport(job.id, self.facts(job), job.spec.arrival_s, estimates)

    def job_ended(self, job: JobRun, now: float) -> None:
        super().job_ended(job, now)
        self._news.forget(job)
