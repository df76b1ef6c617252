"""Systems with a ResourceManager: plain YARN, and YARN with opportunistic containers.

The live scheduler hears what a ResourceManager's would hear, at the times at which it would: ends of containers with
their node's heartbeat, asks with their manager's poll. What it gives reaches the manager at its next poll, and the node
two ways over the network later. A poll that has nothing to say and nothing to fetch is not played.
"""

import math
from collections.abc import Callable, Iterable
from typing import Final

from nm.node_queue import NodeQueue, OpportunisticLimit
from rm.scheduler.asks.job_starvation import JobStarvation
from rm.scheduler.decisions import Allocate, Outcome, Preempt
from rm.scheduler.events import (
    ApplicationEnded,
    ApplicationSubmitted,
    Asked,
    AttemptStarted,
    ContainerEnded,
    Estimated,
    NodeBeat,
    NodeJoined,
    NodeLeft,
    NodeQueueReported,
    NodeSilent,
    PreemptionDue,
)
from rm.scheduler.limits import Rules, SchedulerLimits
from rm.scheduler.node_queues.spec import silent_after
from rm.scheduler.opportunistic.placing import OpportunisticLimits
from rm.scheduler.scheduler import Scheduler
from rm.scheduler.view.calculators import AllocationBounds
from yaqd.model import Resource
from yaqd.policies.asks.rows import AskRow
from yaqd.sim.jobs import ContainerRun, JobRun, StageRun
from yaqd.sim.model import Model
from yaqd.sim.nodes import SimNode
from yaqd.sim.scheduling.passes import Passes
from yaqd.sim.scheduling.service import BusyManager, GivesWay
from yaqd.sim.scheduling.spec import scheduler_spec
from yaqd.sim.scheduling.timing import TimedScheduler
from yaqd.sim.shape import ClusterShape, System
from yaqd.sim.workload import Workload

#: containers that may wait at a node without their being meant to
_LINE_MAX: Final = 1_000_000


class Central(Model):
    def __init__(self, shape: ClusterShape, workload: Workload, system: System, seed: int) -> None:
        self.is_opportunistic: Final = system.name == "yarn-opportunistic"
        super().__init__(shape, workload, system, seed)
        limits = self.limits()
        self.scheduler: Scheduler | TimedScheduler = Scheduler(scheduler_spec(shape, system), limits)
        self._timed: TimedScheduler | None = None
        #: the ResourceManager is told how long tasks should run
        self.tells_estimates: Final = system.name == "yaq-c" or system.job_order != "fifo"
        #: nodes with something to report
        self._unreported = 0
        self._beats: Final = [NodeBeat(node.id) for node in self.nodes]
        self._by_host: Final = {node.id.host: node for node in self.nodes}
        #: containers of nodes that are gone, which the ResourceManager still counts
        self._gone: dict[int, list[ContainerRun]] = {}
        self._limit, self._limit_at = 0, -math.inf
        #: how often, and when next, the ResourceManager looks for queues below their guarantee
        self._look_every_s: Final = limits.preemption.interval_s
        self._look_at = self._look_every_s if system.preempt else math.inf
        ids = [node.id for node in self.nodes]
        self._passes: Final = Passes(system.async_s, self.engine, self.scheduler, ids, self.random("passes"), self.take)
        self._busy: Final = BusyManager(shape, self.engine, self, self.random("beats"))
        for node in self.nodes:
            self._join(node, 0.0)

    def limits(self) -> SchedulerLimits:
        bounds = AllocationBounds(self.shape.slot, Resource(1 << 30, 1 << 20))
        longest = self.system.bound or _LINE_MAX
        opportunistic = OpportunisticLimits(queue_min=min(5, longest), queue_max=min(15, longest))
        return SchedulerLimits(
            bounds=bounds,
            decision_log_entries=0,
            ask_rows_max=1 << 40,
            opportunistic=opportunistic if self.is_opportunistic else None,
            at_asks=self.system.at_asks,
            rules=Rules(self.system.rules),
            job_starvation=JobStarvation(self.system.job_starve_s, self.system.job_starve_ratio),
        )

    def time_decisions(self, clock: Callable[[], int]) -> None:
        if isinstance(self.scheduler, Scheduler):
            self._timed = TimedScheduler(self.scheduler, clock)
            self.scheduler = self._passes.scheduler = self._timed

    def counted(self) -> None:
        self._busy.count(self.recorder)

    def decided_ns(self) -> int:
        return self._timed.spent_ns if self._timed is not None else 0

    # ---- nodes

    def new_queue(self, capacity: Resource) -> NodeQueue:
        return NodeQueue(capacity, max_length=_LINE_MAX, opportunistic_max=self.system.bound or 15)

    def _join(self, node: SimNode, now: float) -> None:
        joined = NodeJoined(node.id, node.rack, self.shape.capacity_of(node.index))
        self.take(self.scheduler.handle(joined, now), now)
        self._passes.stir(now)
        self.changed(node)
        if self._busy.is_on:
            self._busy.joined(node, now)

    def changed(self, node: SimNode) -> None:
        """Note that the node's next heartbeat has something to say."""
        if not node.changed:
            node.changed = True
            self._unreported += 1

    def beats_matter(self) -> bool:
        if self._busy.is_on:
            return False  # each node beats in its own time there
        return self._unreported > 0 or (self.scheduler.has_waiting and not self._passes.is_on)

    def beat(self, now: float, node: SimNode) -> None:
        if now >= self._look_at:
            self._take_back(now)
        if not node.is_up:
            return
        if self._busy.is_on:
            self._busy.sends(node, now)
            return
        if node.changed:
            node.changed = False
            self._unreported -= 1
            self.report_queue(node, now)
            if node.ended:
                self._report_ended(node, now)
            self.answered(node, now)
        self._decide(node, now)

    def gives_way(self) -> GivesWay | None:
        """Return its queues at nodes, where a full core may do without."""
        return None

    def queue_said(self, node: SimNode, now: float) -> NodeQueueReported | None:
        """Return what a heartbeat that is sent now says of the node's queue; None: nobody goes by it."""
        return None

    def served(self, node: SimNode, said: NodeQueueReported | None, ended: Iterable[ContainerRun], now: float) -> None:
        """Take in a heartbeat that has waited for its turn."""
        if said is not None:
            self.scheduler.handle(said, now)
        for run in ended:
            self.report_end(run, node, now)
        self._decide(node, now)

    def answered(self, node: SimNode, now: float) -> None:
        """Have the node carry out what its heartbeat's answer says."""
        taken, node.taken = node.taken, []
        for run in taken:
            self.end_taken(run, now)

    def _decide(self, node: SimNode, now: float) -> None:
        if self._passes.is_on:
            self._passes.stir(now)
        elif self.scheduler.has_waiting:
            decisions = self.scheduler.handle(self._beats[node.index], now)
            if decisions:
                self.take(decisions, now)

    def _report_ended(self, node: SimNode, now: float) -> None:
        ended, node.ended = node.ended, []
        for run in ended:
            self.report_end(run, node, now)

    def place_lost(self, run: ContainerRun, now: float) -> None:
        """Hear that a container went without its work, which its end, told next, does not say."""

    def report_end(self, run: ContainerRun, node: SimNode, now: float) -> None:
        self._end(run, now)

    def _end(self, run: ContainerRun, now: float) -> None:
        if run.is_lost:
            self.place_lost(run, now)
        self.take(self.scheduler.handle(ContainerEnded(run.container_id), now), now)
        if run.is_lost:
            self._tell_lost(run, now)
        elif self.shape.lived.hears_by_polls:
            self.task_done(run)
            self._tell_news_of(run.stage, now)
            self._poll_from(run.stage.job, now)

    def report_queue(self, node: SimNode, now: float) -> None:
        """Report how long the node's queue is, and tell the node how long the ResourceManager lets it be."""
        if not self.is_opportunistic:
            return
        said = node.queue.statistics()
        queued, most = said.opportunistic_queued, said.opportunistic_max
        report = NodeQueueReported(node.id, 0, queued, math.inf, opportunistic_max=most, queues_any=False)
        self.take(self.scheduler.handle(report, now), now)
        if now - self._limit_at >= self.shape.heartbeat_s:
            self._limit, self._limit_at = self.scheduler.facts.queue_limit, now
        self.carry_out(node, node.queue.handle(OpportunisticLimit(self._limit), now), now)

    def _take_back(self, now: float) -> None:
        """The live look for queues below their guarantee, carried out as `rm.applications.preemption` does.

        Managers hear of a container when it is taken; that they are told before, they make no use of.
        """
        self._look_at = now + self._look_every_s
        for decision in self.scheduler.handle(PreemptionDue(), now):
            if type(decision) is not Preempt:
                continue
            container_id = decision.container_id
            node_id = self.scheduler.facts.where(container_id)
            node = self._by_host[node_id.host] if node_id is not None else None
            run = node.runs.get(container_id) if node is not None else None
            if node is None or run is None:
                continue  # its manager does not know it yet, or its node: it is chosen again
            self.recorder.count("preempted")
            run.is_taken = True
            node.taken.append(run)
            self.changed(node)
            self.take(self.scheduler.handle(ContainerEnded(container_id), now), now)
            self._tell_lost(run, now)

    # ---- what the model tells

    def arrive(self, run: ContainerRun, node: SimNode, now: float) -> None:
        super().arrive(run, node, now)
        if self._busy.is_on and run.started < 0.0:
            self._busy.sent_to_wait(now)

    def _tell_news_of(self, stage: StageRun, now: float) -> None:
        if self.tells_estimates and not stage.job.is_over and self.estimates.is_news(stage):
            self._tell_estimates(stage.job, now)

    def _tell_estimates(self, job: JobRun, now: float) -> None:
        for group in job.groups.values():
            self.take(self.scheduler.handle(Estimated(job.id, group.key[0], group.stage.estimate), now), now)

    def container_done(self, run: ContainerRun, node: SimNode, now: float) -> None:
        if run.is_taken:
            return
        if not run.is_lost and not self.shape.lived.hears_by_polls:
            self._tell_news_of(run.stage, now)
        node.ended.append(run)
        self.changed(node)
        if self.system.out_of_turn:
            self.beat_at_once(node, now)

    def container_lost(self, run: ContainerRun, node: SimNode, now: float) -> None:
        run.is_lost = True
        self.container_done(run, node, now)

    def node_failed(self, node: SimNode, lost: list[ContainerRun], now: float) -> None:
        lost = [run for run in lost if not run.is_taken]
        for run in lost:
            run.is_lost = True
        self._gone[node.index] = lost + node.ended
        node.ended, node.taken = [], []
        if self.limits().queueing is not None:
            self.engine.at(now + silent_after(self.shape.heartbeat_s), self._silent, node)
        self.engine.at(now + self.shape.expiry_s, self._expire, node)

    def _silent(self, now: float, node: SimNode) -> None:
        """It has missed some heartbeats, unless it is back."""
        if node.index in self._gone:
            self.take(self.scheduler.handle(NodeSilent(node.id), now), now)

    def _expire(self, now: float, node: SimNode) -> None:
        """The ResourceManager counts the node as lost, and what it held."""
        gone = self._gone.pop(node.index, None)
        if gone is None:
            return
        self.take(self.scheduler.handle(NodeLeft(node.id), now), now)
        for run in gone:
            self._end(run, now)

    def node_returned(self, node: SimNode, now: float) -> None:
        self._expire(now, node)
        self._join(node, now)

    # ---- jobs

    def job_started(self, job: JobRun, now: float) -> None:
        handle = self.scheduler.handle
        spec = job.spec
        handle(ApplicationSubmitted(job.id, spec.queue, spec.user, 0), now)
        handle(AttemptStarted(job.attempt_id, ()), now)
        if self.tells_estimates:
            self._tell_estimates(job, now)
        self._poll_from(job, now)

    def job_wants(self, job: JobRun, now: float) -> None:
        self._poll_from(job, now)

    def job_ended(self, job: JobRun, now: float) -> None:
        self.take(self.scheduler.handle(ApplicationEnded(job.id), now), now)
        for given in job.inbox:
            self.take(self.scheduler.handle(ContainerEnded(given.container_id), now), now)
        job.inbox = []
        self._passes.stir(now)

    def _tell_lost(self, run: ContainerRun, now: float) -> None:
        """The manager learns at its next poll that a container went without its work."""
        job = run.stage.job
        if not job.is_over:
            job.lost.append((run.group, run.task))
            self._poll_from(job, now)

    def _poll_from(self, job: JobRun, when: float) -> None:
        """Let the manager poll at its first turn that is not before `when`."""
        if job.poll_due >= 0.0:
            return
        period = self.shape.am_poll_s
        if period > 0.0:
            when = job.started + math.ceil((when - job.started) / period) * period
        job.poll_due = when
        self.engine.at(when, self._busy.calls if self._busy.is_on else self.polled, job)

    def polled(self, now: float, job: JobRun) -> None:
        """Take in a manager's call and answer it."""
        job.poll_due = -1.0
        if job.unheard:
            self.hear(job, now)
        if job.is_over:
            return
        lost, job.lost = job.lost, []
        for group, task in lost:
            group.put(task)
        self._ask(job, now)
        if job.inbox:
            self._fetch(job, now)
        if self._must_poll_again(job):
            self._poll_from(job, now + max(self.shape.am_poll_s / 2.0, 1e-3))

    def _must_poll_again(self, job: JobRun) -> bool:
        """Something is to be said at the next poll, or is only given at one."""
        if self._busy.is_on or any(group.is_changed for group in job.groups.values()):
            return True
        return self.is_opportunistic and self.scheduler.facts.waits_for_node(job.attempt_id)

    def _ask(self, job: JobRun, now: float) -> None:
        rows: list[AskRow] = []
        for group in job.groups.values():
            if group.is_changed:
                group.is_changed = False
                given = sum((a.priority, a.allocation_request_id) == group.key for a in job.inbox)
                rows += group.rows(given, self._rack)
        if rows or (self.is_opportunistic and self.scheduler.facts.waits_for_node(job.attempt_id)):
            self.take(self.scheduler.handle(Asked(job.attempt_id, tuple(rows)), now), now)
            self._passes.stir(now)

    def _rack(self, host: str) -> str:
        node = self._by_host.get(host)
        return node.rack if node is not None else "/default-rack"

    def take(self, decisions: Iterable[Outcome], now: float) -> None:
        """Take the scheduler's decisions. What is given waits for its manager's poll."""
        for decision in decisions:
            if type(decision) is Allocate:
                self._busy.gave(now)
                job = self.jobs[decision.container_id.attempt_id.application_id.id - 1]
                job.inbox.append(decision)
                if job.poll_due < 0.0:
                    self._poll_from(job, now)

    def _fetch(self, job: JobRun, now: float) -> None:
        inbox, job.inbox = job.inbox, []
        self.recorder.count("allocated", len(inbox))
        runs = []
        for given in inbox:
            group = job.groups[(given.priority, given.allocation_request_id)]
            task = group.take(given.node_id.host)
            if task is None:
                self.recorder.count("released")
                self.take(self.scheduler.handle(ContainerEnded(given.container_id), now), now)
                self._passes.stir(now)
                continue
            run = ContainerRun(group.stage, group, task, given.container_id)
            run.waits_since = given.waits_since
            run.node = self._by_host[given.node_id.host].index
            runs.append(run)
        self.engine.at(now + 2.0 * self.shape.network_s, self._start_all, runs)

    def _start_all(self, now: float, runs: list[ContainerRun]) -> None:
        for run in runs:
            node = self.nodes[run.node]
            if node.is_up:
                self.arrive(run, node, now)
                continue
            run.node = -1
            if node.index in self._gone:  # the ResourceManager does not know yet
                run.is_lost = True
                self._gone[node.index].append(run)
            else:
                self.take(self.scheduler.handle(ContainerEnded(run.container_id), now), now)
                self._tell_lost(run, now)
