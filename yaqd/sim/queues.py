"""Node queues as the systems set them up, and what nodes and whoever places on them tell each other."""

import math
from collections.abc import Callable
from typing import Final

from nm.node_queue import Arrived, JobReport, JobsReported, NodeQueue, NodeQueueSettings
from yaqd.model import ExecutionType, Resource
from yaqd.policies.queueing.facts import TaskFacts
from yaqd.policies.queueing.order import Ordering
from yaqd.sim.jobs import ContainerRun, JobRun
from yaqd.sim.nodes import SimNode
from yaqd.sim.shape import System

#: containers that may wait where there is no bound
UNBOUNDED: Final = 1_000_000
#: systems whose nodes start what came first
_FIFO: Final = frozenset(("yarn", "yarn-opportunistic", "mercury", "sparrow"))


def new_queue(capacity: Resource, system: System, *, queues_guaranteed: bool, opportunistic_max: int) -> NodeQueue:
    """Make a node's queue.

    `queues_guaranteed`: the ResourceManager sends more guaranteed containers than fit, on purpose.
    """
    by_arrival = system.name in _FIFO or system.order == "fifo"
    settings = NodeQueueSettings(
        enabled=queues_guaranteed,
        max_queued=system.bound or UNBOUNDED,
        ordering=None if by_arrival else ordering(system),
        max_wait_s=system.max_wait_s or math.inf,
    )
    return NodeQueue(
        capacity,
        max_length=UNBOUNDED,
        opportunistic_max=opportunistic_max,
        settings=settings,
        wait=system.wait_estimate,
    )


def ordering(system: System) -> Ordering:
    return Ordering(system.order, system.starve_s, system.starve_ratio, system.order_scope)


def newcomer(run: ContainerRun, kind: ExecutionType, system: System) -> Arrived:
    """Describe a container as its token does."""
    stage = run.stage
    job = stage.job
    estimate = stage.estimate
    if system.estimates == "task":
        estimate = stage.spec.tasks[run.task].duration_s * stage.error if run.task >= 0 else None
    spec = job.spec
    waited_s = max(0.0, run.arrived - run.waits_since) if run.waits_since is not None else 0.0
    priority, most_s = run.group.key[0], run.most_wait_s
    facts = TaskFacts(job.id, spec.user, spec.queue, spec.arrival_s, estimate, priority, waited_s, most_s)
    return Arrived(run.container_id, run.group.resource, kind, facts)


class JobNews:
    """What is left of the jobs, told to the nodes where their containers wait when it is new there."""

    def __init__(self, version: Callable[[JobRun], int], report: Callable[[JobRun], JobReport]) -> None:
        """`version` moves whenever what `report` says does."""
        self._version: Final = version
        self._report: Final = report
        #: by job
        self._reports: dict[int, tuple[int, JobReport]] = {}

    def for_node(self, node: SimNode) -> JobsReported | None:
        """Return the news of jobs for a node; None when there is nothing new."""
        waiting = {run.stage.job.index: run.stage.job for run in node.runs.values() if run.started < 0.0}
        told, reports = {}, []
        for index, job in waiting.items():
            version = told[index] = self._version(job)
            if node.told.get(index) != version:
                reports.append(self._current(job, version))
        node.told = told
        return JobsReported(tuple(reports)) if reports else None

    def _current(self, job: JobRun, version: int) -> JobReport:
        known = self._reports.get(job.index)
        if known is not None and known[0] == version:
            return known[1]
        report = self._report(job)
        self._reports[job.index] = (version, report)
        return report

    def forget(self, job: JobRun) -> None:
        self._reports.pop(job.index, None)


def report_of(job: JobRun) -> JobReport:
    """Report what the job's own manager knows."""
    estimates = {group.key[0]: group.stage.estimate for group in job.groups.values()}
    return JobReport(job.id, job.facts(), job.spec.arrival_s, estimates)
