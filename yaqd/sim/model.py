"""What all systems have in common: jobs that arrive and are let in, nodes that run what they are sent, and nodes that
break. Who sends what where is a system's own part.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable
from random import Random
from typing import Final

from nm.node_queue import Arrived, Decision, Ended, Launch, NodeQueue, Preempt, Tick
from yaqd.model import NodeId, Resource
from yaqd.sim.engine import Engine, without_collecting
from yaqd.sim.estimates import Estimates
from yaqd.sim.jobs import ContainerRun, JobRun, StageRun
from yaqd.sim.nodes import PORT, SimNode
from yaqd.sim.results import JobResult, Recorder, SimResult
from yaqd.sim.shape import ClusterShape, NodeFailure, Stuck, System, host_name
from yaqd.sim.workload import Workload

#: after so long a manager ends containers that only wait for tasks of its own that find no room, as MapReduce's does
#: (mapreduce.job.reducer.unconditional-preempt.delay.sec), s
YIELDS_AFTER_S: Final = 300.0


class Model:
    """A system derives from it and says what happens when a job starts, wants something, or loses a container."""

    def __init__(self, shape: ClusterShape, workload: Workload, system: System, seed: int) -> None:
        self.shape: Final = shape
        self.system: Final = system
        self.seed: Final = seed
        self.recorder: Final = Recorder(len(workload.jobs))
        self.estimates: Final = Estimates(system.estimates)
        self.nodes: Final = [self._new_node(index) for index in range(shape.nodes)]
        #: nodes that are up, and those that will be again
        self._up = shape.nodes
        self._returning = 0
        #: the machine is done with the starts before, s
        self._starts_free_at = 0.0
        phases, span_s = self.random("heartbeats"), min(shape.heartbeat_s, shape.lived.beats_within_s)
        self.engine: Final = Engine(
            shape.heartbeat_s, sorted(((phases.random() * span_s, n) for n in self.nodes), key=_phase)
        )
        self.jobs: Final = self._jobs(workload)
        self._left = len(self.jobs)
        self._admitted = 0
        self._line: deque[JobRun] = deque()
        for job in self.jobs:
            self.engine.at(job.spec.arrival_s + shape.lived.register_s, self._submitted, job)
        for failure in shape.failures:
            if 0 <= failure.node < shape.nodes:
                self.engine.at(failure.at_s, self._fail, failure)

    def random(self, what: str) -> Random:
        """Make random numbers for one purpose, so that one more for it does not change another's."""
        return Random(f"{self.seed} {what}")

    def run(self, *, horizon_s: float, skip_idle: bool) -> SimResult:
        may_matter = self.beats_matter if skip_idle else _always
        with without_collecting():
            # managers poll on where nothing can be placed any more; up to a horizon that is an end as good as any
            is_over = self._is_over if math.isfinite(horizon_s) else self._is_over_or_lost
            now = self.engine.run(self.beat, is_over, may_matter, horizon_s)
        if self._left and now < horizon_s and math.isinf(horizon_s):
            left = [job.spec.name for job in self.jobs if not job.is_over]
            raise Stuck(f"after {now:.0f} s nothing happens any more, and {len(left)} jobs are left, {left[0]} first")
        recorder = self.recorder
        if self._left:
            self._book_running(now)
        recorder.count("events", self.engine.events)
        recorder.count("heartbeats", self.engine.beats)
        self.counted()
        return recorder.result(self.shape.total_slots, tuple(job.spec.queue for job in self.jobs), now)

    def _book_running(self, now: float) -> None:
        """What runs at the horizon has had its part of the slots."""
        for node in self.nodes:
            for run in node.runs.values():
                if 0.0 <= run.started < now:
                    self.recorder.ran(run.stage.job.index, run.arrived, run.started, now, done=False)

    # ---- a system's own

    def counted(self) -> None:
        """Put what the system counted itself into the record."""

    def time_decisions(self, clock: Callable[[], int]) -> None:
        """Have the time of the ResourceManager's decisions taken from now on; nothing where it decides nothing."""

    def decided_ns(self) -> int:
        """Return what was taken so, ns."""
        return 0

    def new_queue(self, capacity: Resource) -> NodeQueue:
        """Make the queue of a node that starts."""
        raise NotImplementedError

    def beat(self, now: float, node: SimNode) -> None:
        """Do what is due with a node's heartbeat."""
        raise NotImplementedError

    def beats_matter(self) -> bool:
        """Return whether a heartbeat could change anything, as things are."""
        raise NotImplementedError

    def job_started(self, job: JobRun, now: float) -> None:
        """Hear that the job is let in; its first stages are open."""
        raise NotImplementedError

    def job_wants(self, job: JobRun, now: float) -> None:
        """Hear that further stages are open."""
        raise NotImplementedError

    def job_ended(self, job: JobRun, now: float) -> None:
        raise NotImplementedError

    def container_lost(self, run: ContainerRun, node: SimNode, now: float) -> None:
        """Hear that a container was refused or killed at its node, which is there and will say so."""
        raise NotImplementedError

    def container_done(self, run: ContainerRun, node: SimNode, now: float) -> None:
        raise NotImplementedError

    def node_failed(self, node: SimNode, lost: list[ContainerRun], now: float) -> None:
        raise NotImplementedError

    def node_returned(self, node: SimNode, now: float) -> None:
        raise NotImplementedError

    # ---- jobs

    def _jobs(self, workload: Workload) -> list[JobRun]:
        """With how long each task will run, and what is believed about it."""
        noise, errors = self.random("noise"), self.random("estimates")
        sigma, system = self.shape.noise, self.system
        share = system.opportunistic_share if system.name == "yarn-opportunistic" else 0.0
        jobs = []
        for index, spec in enumerate(workload.jobs):
            durations = [[task.duration_s for task in stage.tasks] for stage in spec.stages]
            if sigma > 0.0:
                durations = [[d * noise.lognormvariate(-sigma * sigma / 2.0, sigma) for d in ds] for ds in durations]
            job = JobRun(index, spec, durations, opportunistic_share=share)
            for stage in job.stages:
                stage.error = system.estimate_error ** errors.choice((-1.0, 1.0))
                self.estimates.begin(stage)
            jobs.append(job)
        return jobs

    def _is_over(self) -> bool:
        return not self._left

    def _is_over_or_lost(self) -> bool:
        """Or no node is up, and none will return."""
        return not self._left or not (self._up or self._returning)

    def _submitted(self, now: float, job: JobRun) -> None:
        if self.system.jobs_at_once and self._admitted >= self.system.jobs_at_once:
            self._line.append(job)
        else:
            self._admit(job, now)

    def _admit(self, job: JobRun, now: float) -> None:
        self._admitted += 1
        job.started = now
        if job.is_over:  # it has no task
            self._job_over(job, now)
            return
        job.open_ready()
        self.job_started(job, now)

    def _job_over(self, job: JobRun, now: float) -> None:
        spec = job.spec
        first = job.first_run if job.first_run >= 0.0 else now
        ended = max(job.last_end, job.started)
        self.recorder.jobs[job.index] = JobResult(
            spec.name, spec.user, spec.queue, float(spec.arrival_s), job.started, first, ended, job.tasks
        )
        self._left -= 1
        self._admitted -= 1
        self.job_ended(job, now)
        if self._line:
            self._admit(self._line.popleft(), now)

    def task_done(self, run: ContainerRun) -> None:
        """Count a task that did its work. Its manager is to hear of it."""
        stage = run.stage
        stage.done += 1
        stage.job.done += 1
        self.estimates.ended(stage, run.ended - run.started)
        stage.job.unheard[stage] = None

    def hear(self, job: JobRun, now: float) -> None:
        """Have the job's manager hear of its tasks that are done."""
        stages, job.unheard = job.unheard, {}
        if job.done == job.tasks:
            self._job_over(job, now)
            return
        for stage in stages:
            if stage.readers:
                self._output_grew(stage, now)

    def _output_grew(self, stage: StageRun, now: float) -> None:
        wants = False
        if stage.is_over:
            for reader in stage.readers:
                if reader.has_input:
                    held, reader.held = reader.held, []
                    for run in held:
                        if run.node >= 0:
                            self._end_later(run, max(now, run.started))
                    wants = reader.ask_again() or wants
        if any(not reader.is_open for reader in stage.readers):
            wants = stage.job.open_ready() or wants
        if wants:
            self.job_wants(stage.job, now + self.shape.network_s)

    # ---- containers

    def arrive(self, run: ContainerRun, node: SimNode, now: float) -> None:
        """Have a container come to a node that is up."""
        run.arrived = now
        node.runs[run.container_id] = run
        decisions = node.queue.handle(self.newcomer(run), now)
        if decisions:
            self.carry_out(node, decisions, now)

    def newcomer(self, run: ContainerRun) -> Arrived:
        """Describe a container as its token does."""
        return Arrived(run.container_id, run.group.resource, run.group.execution_type)

    def carry_out(self, node: SimNode, decisions: Iterable[Decision], now: float) -> None:
        for decision in decisions:
            run = node.runs[decision.container_id]
            if type(decision) is Launch:
                self.launch(run, node, now)
            elif type(decision) is Preempt:
                self.recorder.count("killed")
                self._stop(run, node, now)
                self.container_lost(run, node, now)
                self.carry_out(node, node.queue.handle(Ended(run.container_id), now), now)
            else:
                self.recorder.count("refused")
                self._stop(run, node, now)
                self.container_lost(run, node, now)

    def launch(self, run: ContainerRun, node: SimNode, now: float) -> None:
        shape = self.shape
        node.running += 1
        begun = max(now, run.arrived + shape.prepare_s)
        if shape.lived.start_turn_s > 0.0:
            begun = self._starts_free_at = max(begun, self._starts_free_at) + shape.lived.start_turn_s
        run.started = started = begun + shape.start_gap_s
        stage = run.stage
        stage.launched += 1
        if stage.job.first_run < 0.0:
            stage.job.first_run = started
        if not stage.after or stage.has_input:
            self._end_later(run, started)
        else:
            stage.held.append(run)
            self.engine.at(now + YIELDS_AFTER_S, self._held_long, run)

    def _held_long(self, now: float, run: ContainerRun) -> None:
        """Slots full of containers that wait for tasks that wait for a slot: somebody must give way."""
        stage = run.stage
        if run.node < 0 or stage.has_input:
            return
        if not stage.input_waits:
            self.engine.at(now + YIELDS_AFTER_S, self._held_long, run)
            return
        self.recorder.count("yielded")
        stage.give_way()
        stage.held.remove(run)
        node = self.nodes[run.node]
        self._stop(run, node, now)
        self.container_lost(run, node, now)
        self.carry_out(node, node.queue.handle(Ended(run.container_id), now), now)

    def _end_later(self, run: ContainerRun, since: float) -> None:
        node = self.nodes[run.node]
        lasts = run.duration / node.speed
        if self.shape.crowding > 0.0:
            alike = sum(other.stage is run.stage and other.started >= 0.0 for other in node.runs.values()) - 1
            lasts *= 1.0 + self.shape.crowding * alike / max(1, self.shape.slots_of(node.index) - 1)
        self.engine.at(since + lasts, self._process_ended, run)

    def _process_ended(self, now: float, run: ContainerRun) -> None:
        if run.node < 0:
            return  # it was killed before
        node = self.nodes[run.node]
        if run.is_taken:
            self.end_taken(run, now)
            return
        run.ended = now
        self.recorder.ran(run.stage.job.index, run.arrived, run.started, now, done=True)
        self._leave(run, node)
        run.stage.job.last_end = now
        if not self.shape.lived.hears_by_polls:
            self.task_done(run)
            self.hear(run.stage.job, now)
        self.container_done(run, node, now)
        decisions = node.queue.handle(Ended(run.container_id), now)
        if decisions:
            self.carry_out(node, decisions, now)

    def _stop(self, run: ContainerRun, node: SimNode, now: float) -> None:
        """It ends without having done its work."""
        run.ended = now
        if 0.0 <= run.started < now:
            self.recorder.ran(run.stage.job.index, run.arrived, run.started, now, done=False)
        if 0.0 <= run.started < math.inf:
            run.stage.launched -= 1
        self._leave(run, node)

    def end_taken(self, run: ContainerRun, now: float) -> None:
        """End a container that was taken back at its node, unless it is gone by itself."""
        if run.node >= 0:
            node = self.nodes[run.node]
            self._stop(run, node, now)
            self.carry_out(node, node.queue.handle(Ended(run.container_id), now), now)

    def _leave(self, run: ContainerRun, node: SimNode) -> None:
        del node.runs[run.container_id]
        node.running -= run.started >= 0.0
        run.node = -1

    # ---- nodes

    def wind(self, node: SimNode, now: float) -> None:
        """Wake the node's queue when it is due, as its live driver does."""
        due = node.queue.next_tick()
        if due is not None and due < node.tick_at:
            node.tick_at = due
            self.engine.at(max(now, due), self._tick, node)

    def _tick(self, now: float, node: SimNode) -> None:
        """Somebody may have waited too long."""
        if now >= node.tick_at:
            node.tick_at = math.inf
        if node.is_up:
            self.carry_out(node, node.queue.handle(Tick(), now), now)
            self.wind(node, now)

    def beat_at_once(self, node: SimNode, now: float) -> None:
        """Have the node beat early: it has something to say that is not to wait for its turn."""
        if not node.beats_early:
            node.beats_early = True
            self.engine.at(now + self.shape.network_s, self._early_beat, node)

    def _early_beat(self, now: float, node: SimNode) -> None:
        node.beats_early = False
        self.recorder.count("heartbeats")
        self.beat(now, node)

    def _new_node(self, index: int) -> SimNode:
        shape = self.shape
        speed = shape.speeds[index % len(shape.speeds)]
        rack = f"/rack{index // max(1, shape.rack_size):03d}"
        return SimNode(index, NodeId(host_name(index), PORT), rack, self.new_queue(shape.capacity_of(index)), speed)

    def _fail(self, now: float, failure: NodeFailure) -> None:
        node = self.nodes[failure.node]
        if not node.is_up:
            return
        self.recorder.count("failures")
        lost = list(node.runs.values())
        for run in lost:
            self._stop(run, node, now)
        node.is_up = False
        self._up -= 1
        self._returning += math.isfinite(failure.down_s)
        self.recorder.count("lost", len(lost))
        self.node_failed(node, lost, now)
        if math.isfinite(failure.down_s):
            self.engine.at(now + failure.down_s, self._return, node)

    def _return(self, now: float, node: SimNode) -> None:
        node.queue = self.new_queue(self.shape.capacity_of(node.index))
        node.is_up = True
        self._up += 1
        self._returning -= 1
        self.node_returned(node, now)


def _phase(entry: tuple[float, SimNode]) -> tuple[float, int]:
    return entry[0], entry[1].index


def _always() -> bool:
    return True
