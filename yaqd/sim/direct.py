"""Systems in which each job's own manager places its tasks: what all of them share."""

from typing import Final

from nm.node_queue import Arrived, NodeQueue
from yaqd.model import ExecutionType, Resource
from yaqd.sim.jobs import ContainerRun, JobRun
from yaqd.sim.model import Model
from yaqd.sim.nodes import SimNode
from yaqd.sim.queues import UNBOUNDED, JobNews, new_queue, newcomer, report_of
from yaqd.sim.shape import ClusterShape, System
from yaqd.sim.workload import Workload


class Direct(Model):
    def __init__(self, shape: ClusterShape, workload: Workload, system: System, seed: int) -> None:
        self._news: Final = JobNews(_tasks_over, report_of)
        #: nodes whose heartbeat has something to say
        self._unreported = 0
        super().__init__(shape, workload, system, seed)

    def new_queue(self, capacity: Resource) -> NodeQueue:
        bound = self.system.bound or UNBOUNDED
        return new_queue(capacity, self.system, queues_guaranteed=False, opportunistic_max=bound)

    def newcomer(self, run: ContainerRun) -> Arrived:
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
        """Take in what the node's heartbeat brings along."""

    def place(self, job: JobRun, now: float) -> None:
        """Send out what the job's manager can."""
        raise NotImplementedError

    # ---- what the model tells

    def arrive(self, run: ContainerRun, node: SimNode, now: float) -> None:
        super().arrive(run, node, now)
        self.changed(node)

    def send(self, now: float, run: ContainerRun) -> None:
        """Have a container reach its node, or find it gone."""
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

    def container_done(self, run: ContainerRun, node: SimNode, now: float) -> None:
        self.changed(node)

    def container_lost(self, run: ContainerRun, node: SimNode, now: float) -> None:
        self.changed(node)
        self.engine.at(now + self.shape.network_s, self._again, run)

    def _again(self, now: float, run: ContainerRun) -> None:
        """Its manager learns that a container went without its work."""
        job = run.stage.job
        if not job.is_over:
            self.forgotten(run, now)
            run.group.put(run.task)
            self.look_again(job, now, was_full=run.ended == run.arrived)

    def look_again(self, job: JobRun, now: float, *, was_full: bool = False) -> None:
        """Have the job look again at its next poll.

        Where a queue refused what came, that is once the nodes have said how full they are.
        """
        if job.poll_due < 0.0:
            job.poll_due = now + max(self.shape.heartbeat_s if was_full else self.shape.am_poll_s, 1e-3)
            self.engine.at(job.poll_due, self._poll, job)

    def _poll(self, now: float, job: JobRun) -> None:
        job.poll_due = -1.0
        if not job.is_over:
            self.place(job, now)

    def forgotten(self, run: ContainerRun, now: float) -> None:
        """Hear that the manager counts the container no longer."""

    def node_failed(self, node: SimNode, lost: list[ContainerRun], now: float) -> None:
        for run in lost:
            self.engine.at(now + self.shape.expiry_s, self._again, run)

    def node_returned(self, node: SimNode, now: float) -> None:
        self.changed(node)


def _tasks_over(job: JobRun) -> int:
    return job.done
