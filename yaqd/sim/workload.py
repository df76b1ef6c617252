"""What is run in a simulated cluster: jobs of stages of tasks, as values.

Durations are those on a slot of speed 1; the cluster's noise and speeds come on top. Times are seconds from the start
of the simulation.
"""

from collections.abc import Iterator
from typing import Final

from yaqd.model import Resource
from yaqd.model.values import value

#: what a task needs when nobody says more: one slot of a node
SLOT: Final = Resource(1024, 1)


@value()
class SimTask:
    duration_s: float
    resource: Resource = SLOT
    #: of the ask, a lower number is served first; 0: by the order of the stages
    priority: int = 0
    #: where its input lies, as `host_name` names nodes
    hosts: tuple[str, ...] = ()


@value()
class SimStage:
    name: str
    tasks: tuple[SimTask, ...]
    #: indexes of the stages whose output it reads
    after: tuple[int, ...] = ()
    #: its tasks may start when this fraction of the tasks of those stages is over; one that starts before all are
    #: holds its slot and does its work afterwards
    start_at: float = 1.0
    #: mean duration of a task in earlier runs, s; None: as its own tasks' mean says
    estimate_s: float | None = None


@value()
class SimJob:
    name: str
    stages: tuple[SimStage, ...]
    user: str = "user"
    #: leaf queue, by path or by last name
    queue: str = "default"
    arrival_s: float = 0.0
    #: its master says that its containers may wait at nodes
    is_aware: bool = True

    @property
    def tasks(self) -> int:
        return sum(len(stage.tasks) for stage in self.stages)

    @property
    def work_s(self) -> float:
        """Seconds of one slot."""
        return sum(task.duration_s for stage in self.stages for task in stage.tasks)


@value()
class ClusterSeen:
    """The cluster that jobs were recorded on: it had so many at least."""

    #: that ran anything
    nodes: int
    #: tasks that ran at a time on one of them
    slots: int


@value()
class Workload:
    jobs: tuple[SimJob, ...]
    name: str = "workload"
    #: None: it was never run, or nobody wrote down where
    seen: ClusterSeen | None = None

    def __iter__(self) -> Iterator[SimJob]:
        return iter(self.jobs)

    @property
    def tasks(self) -> int:
        return sum(job.tasks for job in self.jobs)

    @property
    def work_s(self) -> float:
        return sum(job.work_s for job in self.jobs)


def check(workload: Workload) -> None:
    """Raise `ValueError` for what no cluster could run: no task, a time that is none, a stage after a later one."""
    for job in workload.jobs:
        if not 0.0 <= job.arrival_s < float("inf"):
            raise ValueError(f"job {job.name}: arrives at {job.arrival_s}")
        for index, stage in enumerate(job.stages):
            if not stage.tasks:
                raise ValueError(f"job {job.name}, stage {stage.name}: no task")
            if any(not 0 <= before < index for before in stage.after):
                raise ValueError(
                    f"job {job.name}, stage {stage.name}: comes after {stage.after}, itself number {index}"
                )
            if not 0.0 <= stage.start_at <= 1.0:
                raise ValueError(f"job {job.name}, stage {stage.name}: starts at {stage.start_at}")
            if any(not 0.0 <= task.duration_s < float("inf") for task in stage.tasks):
                raise ValueError(f"job {job.name}, stage {stage.name}: a task that takes no finite time")
