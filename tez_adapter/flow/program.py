"""A flow's script: loaded where it is submitted, and again in each task."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tez_adapter.flow.spec import shape_of
from yaqd.mapreduce import Job, JobError, check_job, declared_params, load_module, parse_params, split_script
from yaqd.mapreduce.flow import Flow, FlowNode, NodeKind


@dataclass(frozen=True, slots=True)
class FlowProgram:
    flow: Flow
    #: by step: values of its options by attribute
    params: Mapping[int, dict[str, Any]]

    def job_class(self, step: int) -> type[Job]:
        job = self.flow.nodes[step].job
        if job is None:
            raise JobError(f"node {step} of the flow is no step")
        return job


def load_flow(
    script: str,
    texts: Mapping[str, str],
    name: str | None = None,
    *,
    shape: tuple[str, ...] | None = None,
    before: Callable[[Path], None] | None = None,
) -> FlowProgram:
    """Load the flow of a script, and check its steps. Raises JobError.

    `texts`: options by name, and other keys. `name`: of the variable, where the script has several. `shape`: what the
    flow looked like where it was submitted; another one is refused.
    """
    path, named = split_script(script)
    module = load_module(Path(path), before=before)
    flow = _flow_of(vars(module), path, name or named)
    if shape is not None:
        check_shape(flow, shape, path)
    params = {}
    for number, node in enumerate(flow.nodes):
        if node.job is not None:
            joins = flow.nodes[node.inputs[0]].kind is NodeKind.JOIN
            streams = len(flow.nodes[node.inputs[0]].inputs) if joins else 1
            check_job(node.job, path, streams=streams)
            params[number] = _params(node, texts)
    return FlowProgram(flow, params)


def check_shape(flow: Flow, shape: tuple[str, ...], path: str) -> None:
    """Raise JobError where a flow looks another way than where it was submitted."""
    if shape_of(flow) != shape:
        raise JobError(
            f"{path}: its flow is another one here than where it was submitted; what it looks like must depend on the "
            "script alone"
        )


def _flow_of(found: Mapping[str, Any], path: str, name: str | None) -> Flow:
    flows = {key: value for key, value in found.items() if isinstance(value, Flow)}
    if name is not None:
        if name not in flows:
            known = f"it has {', '.join(flows)}" if flows else "it has no yaqd.mapreduce.Flow"
            raise JobError(f"{path} has no flow {name}: {known}")
        return flows[name]
    distinct = {id(flow): key for key, flow in flows.items()}
    if not distinct:
        raise JobError(f"{path} has no flow: write flow = yaqd.mapreduce.Flow() in it, outside any function")
    if len(distinct) > 1:
        raise JobError(f"{path} has {len(distinct)} flows ({', '.join(flows)}): name one, as in {path}:{[*flows][-1]}")
    return next(iter(flows.values()))


def _params(node: FlowNode, texts: Mapping[str, str]) -> dict[str, Any]:
    """What the script says of a step goes before what is said on the command line."""
    assert node.job is not None
    declared = declared_params(node.job)
    given = {name: text for name, text in texts.items() if name in declared}
    found = parse_params(node.job, given | {name: str(value) for name, value in node.params.items()})
    for name, value in node.params.items():
        if not isinstance(value, str):
            found[declared[name].attribute] = value
    return found


def input_format(flow: Flow, read: int) -> str:
    """Return how the records of an input look: as it says, or as the first step that reads them does."""
    node = flow.nodes[read]
    if node.format:
        return node.format
    found = {each.job.input_format for each in _readers(flow, read) if each.job is not None}
    if len(found) > 1:
        raise JobError(
            f"flow.read({node.path!r}): the steps that read it have formats {', '.join(sorted(found))}: say which, as "
            f"in flow.read({node.path!r}, format='text')"
        )
    return found.pop() if found else Job.input_format


def _readers(flow: Flow, number: int) -> list[FlowNode]:
    """The steps that see a node's pairs first."""
    found: list[FlowNode] = []
    for reader, node in enumerate(flow.nodes):
        if number in node.inputs:
            found += [node] if node.kind is NodeKind.STEP else _readers(flow, reader)
    return found
