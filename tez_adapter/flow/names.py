"""What a flow's attempts are called, and where the parts are that a task reads. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from tez_adapter.flow.plan import EdgeKind, FlowPlan, Stage, StageEdge
from tez_adapter.jobspec import attempt_name


def output_name(job_id: str, stage: Stage, channel: int, task: int, number: int) -> str:
    """Return the name under which the shuffle service keeps what an attempt leaves in a channel."""
    return attempt_name(job_id, "m", stage.first_name + channel * stage.tasks + task, number)


@dataclass(frozen=True, slots=True)
class Source:
    """Outputs of one channel that a task reads."""

    stage: int
    channel: int
    first_task: int
    tasks: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """The outputs that a task reads as one input, numbered through, and the part of each."""

    sources: tuple[Source, ...]
    part: int

    @property
    def outputs(self) -> int:
        return sum(source.tasks for source in self.sources)

    def places(
        self, plan: FlowPlan, job_id: str, stage: int, task: int, number: int, channel: int = -1
    ) -> Iterator[tuple[int, str]]:
        """Yield the number and the name of each output of an attempt that is among those wanted. `channel`: of one
        alone; -1: of all."""
        before = 0
        for source in self.sources:
            is_meant = source.stage == stage and channel in (-1, source.channel)
            if is_meant and 0 <= task - source.first_task < source.tasks:
                name = output_name(job_id, plan.stages[stage], source.channel, task, number)
                yield before + task - source.first_task, name
            before += source.tasks


def wanted_by(plan: FlowPlan, stage: Stage, task: int) -> Wanted:
    """Return what a task of a stage reads, its sides left out."""
    before = 0
    for edge in stage.edges:
        if edge.kind is EdgeKind.ONE_TO_ONE:
            tasks = plan.stages[edge.source].tasks
            if task < before + tasks:
                return Wanted((Source(edge.source, edge.channel, task - before, 1),), 0)
            before += tasks
    edges = [edge for edge in stage.edges if edge.kind is EdgeKind.SHUFFLE]
    return Wanted(tuple(_whole(plan, edge) for edge in edges), task)


def side_of(plan: FlowPlan, edge: StageEdge) -> Wanted:
    return Wanted((_whole(plan, edge),), 0)


def _whole(plan: FlowPlan, edge: StageEdge) -> Source:
    return Source(edge.source, edge.channel, 0, plan.stages[edge.source].tasks)
