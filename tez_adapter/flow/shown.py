"""A flow's stages in words, for people."""

from collections.abc import Iterator, Sequence

from tez_adapter.flow.plan import Branch, EdgeKind, FlowPlan, Stage
from tez_adapter.flow.spec import FlowSpec
from yaqd.mapreduce.flow import Flow

_WORDS = {EdgeKind.SHUFFLE: "", EdgeKind.ONE_TO_ONE: " one-to-one", EdgeKind.BROADCAST: " to every task"}


def reads_of(plan: FlowPlan, at: int) -> str:
    """Return what a stage reads: files, or other stages."""
    edges = plan.stages[at].edges
    words = ["files"] if plan.stages[at].reads_files else []
    return ", ".join(words + [f"{plan.stages[edge.source].name}{_WORDS[edge.kind]}" for edge in edges])


def steps_of(flow: Flow, stage: Stage) -> str:
    """Return the steps that run in a stage's tasks, behind its first."""
    return ", ".join(dict.fromkeys(_steps(flow, stage.branches)))


def _steps(flow: Flow, branches: Sequence[Branch]) -> Iterator[str]:
    for branch in branches:
        if branch.step >= 0:
            yield flow.nodes[branch.step].name + (" (map)" if branch.channel >= 0 else "")
        yield from _steps(flow, branch.then)


def writes_of(plan: FlowPlan, spec: FlowSpec, at: int) -> str:
    """Return where a stage's pairs go: outputs, and parts for other stages."""
    stage = plan.stages[at]
    readers = [(edge.channel, other) for other in plan.stages for edge in other.edges if edge.source == at]
    parts = [f"{stage.channels[channel]} part(s) for {other.name}" for channel, other in sorted(readers, key=_by_name)]
    return ", ".join([spec.outputs[output].path for output in stage.first_parts] + list(dict.fromkeys(parts)))


def _by_name(reader: tuple[int, Stage]) -> tuple[int, str]:
    return reader[0], reader[1].name
