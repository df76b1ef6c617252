"""A flow, from its script to a job: checked, planned, its inputs divided; run on a cluster or on this machine."""

import json
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from os.path import realpath
from pathlib import Path

from tez_adapter.client.job_keys import key_notes, refuse_keys
from tez_adapter.client.local_files import laid_out
from tez_adapter.client.overwrite import check_replaceable, remove_results
from tez_adapter.client.staging import SubmitError
from tez_adapter.client.submission import Attachments, Draft, Request, submit
from tez_adapter.client.submit import REDUCES_MAX_KEY, TASKS_MAX_KEY, SubmittedJob, check_count, check_output
from tez_adapter.data import ReduceInput
from tez_adapter.flow.names import Wanted
from tez_adapter.flow.plan import FlowPlan, Stage, counted, plan_flow
from tez_adapter.flow.program import FlowProgram, check_shape, input_format, load_flow
from tez_adapter.flow.spec import FlowOutput, FlowSpec, shape_of
from tez_adapter.flow.task import run_stage
from tez_adapter.jobspec import JobKind, JobSpec, attempt_name
from tez_adapter.master.output import JobOutput
from tez_adapter.output_codec import shuffle_codec
from tez_adapter.tasks.local_tasks import LocalAttempt, LocalTask, LocalTasks, TaskFailed, Work, add_parts, done_by
from tez_adapter.tasks.scripts import CheckedScript, is_given, sample_boundaries, texts
from tez_adapter.tasks.task_output import OutputFiles
from yaqd.config import Configuration
from yaqd.mapreduce import Counters, InputFormat, JobError, declared_params, split_script
from yaqd.mapreduce.errors import SampleError
from yaqd.mapreduce.flow import Flow, NodeKind
from yaqd.proto import job_pb2 as pb
from yaqd.storage import InputSplit, compute_splits, output_codec
from yaqd.storage.paths import hadoop_user

log = logging.getLogger(__name__)
_APPLICATION_TYPE = "FLOW"


@dataclass(frozen=True, slots=True)
class PlannedFlow:
    """A flow whose inputs have been looked at."""

    program: FlowProgram
    spec: FlowSpec
    splits: tuple[InputSplit, ...]
    #: of the script
    path: str
    variable: str
    name: str
    inputs: tuple[str, ...]
    #: what is worth saying before it runs, a line each
    notes: tuple[str, ...] = ()

    @property
    def plan(self) -> FlowPlan:
        return self.spec.plan


def plan_script(
    conf: Configuration, script: str, paths: Mapping[str, str] | None = None, *, overwrite: bool = False
) -> PlannedFlow:
    """Load a script's flow, divide its inputs and check its outputs. `paths`: by the names that the script says.

    Raises JobError, SubmitError, StorageError, ConfigError.
    """
    refuse_keys(conf, is_streaming=False)
    program = load_flow(script, texts(conf))
    flow, given = program.flow, dict(paths or {})
    plan = plan_flow(flow)
    known = {node.path for node in flow.nodes if node.path}
    for name in given:
        if name not in known:
            raise SubmitError(f"--path {name}: the flow has no such path; it has {', '.join(sorted(known))}")
    for stage in plan.stages:
        for parts in (stage.tasks, *stage.channels):
            check_count(conf, REDUCES_MAX_KEY, parts, "reduces")
    inputs, splits = [], []
    for stage in plan.stages:
        if stage.reads_files:
            path = given.get(flow.nodes[stage.head].path, flow.nodes[stage.head].path)
            inputs.append(path)
            splits.append(compute_splits([path], InputFormat.parse(input_format(flow, stage.head)), conf))
    outputs = _outputs(conf, flow, plan, given, inputs, overwrite=overwrite)
    plan = counted(plan, [len(each) for each in splits])
    check_count(conf, TASKS_MAX_KEY, sum(stage.tasks for stage in plan.stages), "tasks")
    local, variable = split_script(script)
    boundaries = _boundaries(conf, program, plan, splits, local)
    spec = FlowSpec(plan, outputs, shape_of(flow), boundaries)
    name = flow.name or Path(local).stem
    return PlannedFlow(
        program,
        spec,
        tuple(split for each in splits for split in each),
        local,
        variable or "",
        name,
        tuple(inputs),
        tuple(_notes(conf, program)),
    )


def _notes(conf: Configuration, program: FlowProgram) -> Iterator[str]:
    """Yield a line for each key and option of the command line that sets nothing."""
    declared = {name for node in program.flow.nodes if node.job is not None for name in declared_params(node.job)}
    given = {key: conf.raw(key) or "" for key in conf.changed_keys() if is_given(conf, key)}
    yield from key_notes(conf, is_streaming=False, own=declared)
    for name in given:
        if "." not in name and name not in declared and not any(f"${{{name}}}" in text for text in given.values()):
            near = get_close_matches(name, declared, 1)
            meant = f"; did you mean {near[0]}?" if near else ""
            yield f"-D {name}: no step has such an option, so it sets nothing{meant}"
    if "mapreduce.job.reduces" in given:
        yield "-D mapreduce.job.reduces sets nothing in flows: a step's class or .then(..., reduces=N) says how many"


def _outputs(
    conf: Configuration, flow: Flow, plan: FlowPlan, given: Mapping[str, str], inputs: Sequence[str], *, overwrite: bool
) -> tuple[FlowOutput, ...]:
    found: list[FlowOutput] = []
    for number in plan.outputs:
        path = given.get(flow.nodes[number].path, flow.nodes[number].path)
        if overwrite:
            check_replaceable(conf, path, inputs)
        target = check_output(conf, path, overwrite=overwrite).rstrip("/")
        here = _place(target)
        for other in found:
            there = _place(other.path)
            if f"{here}/".startswith(f"{there}/") or f"{there}/".startswith(f"{here}/"):
                raise SubmitError(f"outputs {other.path} and {target}: each needs a folder of its own")
        found.append(FlowOutput(target, flow.nodes[number].format))
    return tuple(found)


def _place(target: str) -> str:
    """Return where an output is: two names may lead to one folder."""
    return realpath(target.removeprefix("file://")) if target.startswith("file:///") else target


def _boundaries(
    conf: Configuration, program: FlowProgram, plan: FlowPlan, splits: Sequence[Sequence[InputSplit]], path: str
) -> dict[int, tuple[str, ...]]:
    """Divide the keys of steps that want a total order, by a sample of the input that they read."""
    found: dict[int, tuple[str, ...]] = {}
    reads = [stage.head for stage in plan.stages if stage.reads_files]
    for step, node in enumerate(program.flow.nodes):
        if node.job is None or node.job.partitioner != "range" or node.reduces < 2:
            continue
        source = node.inputs[0]
        if program.flow.nodes[source].kind is not NodeKind.READ:
            raise JobError(
                f"step {node.name} wants a total order (partitioner 'range'), and what it reads is not there before "
                "the job runs: read files with it, or give it reduces=1"
            )
        script = CheckedScript(node.job, path, "", program.params[step])
        try:
            keys = sample_boundaries(script, splits[reads.index(source)], node.reduces, conf)
        except SampleError as error:
            if not node.sides:
                raise
            why = f"{error}; its sides are not there before the job runs: with reduces=1 no keys are sampled"
            raise SampleError(why, detail=error.detail) from None
        found[step] = tuple(key.hex() for key in keys)
    return found


def submit_flow(
    conf: Configuration,
    script: str,
    *,
    paths: Mapping[str, str] | None = None,
    attachments: Attachments = Attachments(),
    queue: str = "default",
    name: str | None = None,
    notify: Callable[[str], None] = log.warning,
    overwrite: bool = False,
) -> SubmittedJob:
    """Run the flow of a Python script. `notify` is told what is odd and no error.

    Raises as `plan_script`, and what a submission raises.
    """
    planned = plan_script(conf, script, paths, overwrite=overwrite)
    for note in planned.notes:
        notify(note)
    shuffle_codec(conf)
    fields = {"script": Path(planned.path).name, "class_name": planned.variable, "flow": planned.spec}
    request = Request(conf, name or planned.name, queue, attachments, application_type=_APPLICATION_TYPE)
    pieces = [split.to_json() for split in planned.splits]
    return submit(Draft(request, JobKind.FLOW, fields, pieces, (planned.path,), replaces=overwrite))


# ---------------------------------------------------------------------------------------------- on this machine

#: told after each task: the stage, tasks done, tasks in all
Progress = Callable[[str, int, int], None]


def work_of_flow(script: str, values: Mapping[str, str], before: Callable[[Path], None]) -> Work:
    """Return what runs the tasks of a flow on this machine; its script is loaded anew."""
    program = load_flow(script, values, before=before)

    def work(attempt: LocalAttempt, task: LocalTask) -> OutputFiles | None:
        spec = task.spec.flow
        assert spec is not None
        check_shape(program.flow, spec.shape, split_script(script)[0])
        plan = spec.plan

        def fetch(sink: ReduceInput, wanted: Wanted) -> None:
            for stage in {source.stage for source in wanted.sources}:
                for number in range(plan.stages[stage].tasks):
                    for _, name in wanted.places(plan, task.spec.job_id, stage, number, 0):
                        add_parts(sink, [task.folder / "output" / name], wanted.part)

        return run_stage(attempt, program, fetch)

    return work


def run_flow_here(
    planned: PlannedFlow,
    conf: Configuration,
    tasks: LocalTasks,
    *,
    attachments: Attachments = Attachments(),
    progress: Progress = lambda stage, done, total: None,
    overwrite: bool = False,
) -> Counters:
    """Run a flow's tasks one after the other; its counters. The output is that of a cluster.

    Raises JobError for a task that fails; then no output is left.
    """
    shuffle_codec(conf)
    output_codec(conf)
    spec = JobSpec(
        job_id=f"job_{time.time_ns() // 1_000_000}_0001",
        name=planned.name,
        user=hadoop_user(),
        kind=JobKind.FLOW,
        conf={},
        staging="",
        flow=planned.spec,
    )
    if overwrite:
        for path in spec.outputs:
            remove_results(conf, path)
    result = JobOutput(spec, conf)
    result.setup()
    try:
        with tempfile.TemporaryDirectory(prefix="yaq-local-") as folder, laid_out(attachments, conf) as files:
            found = _LocalFlow(spec, conf, tasks, Path(folder), files, progress).run(planned)
    except BaseException:
        result.abort()
        raise
    result.commit()
    return found


@dataclass(frozen=True, slots=True)
class _LocalFlow:
    spec: JobSpec
    conf: Configuration
    tasks: LocalTasks
    folder: Path
    files: Path | None
    progress: Progress

    def run(self, planned: PlannedFlow) -> Counters:
        counters = Counters(sys.maxsize)
        for at, stage in enumerate(planned.plan.stages):
            for task in range(stage.tasks):
                split = planned.splits[stage.first_split + task] if stage.reads_files else None
                for counter in self._run(at, stage, task, split).counters:
                    counters.take(counter.group, counter.name, counter.value)
                self.progress(stage.name, task + 1, stage.tasks)
        return counters

    def _run(self, at: int, stage: Stage, task: int, split: InputSplit | None) -> pb.TaskDoneRequest:
        description = pb.TaskDescription(
            attempt=pb.AttemptRef(vertex=at, index=task, number=0),
            attempt_id=attempt_name(self.spec.job_id, "m" if stage.reads_files else "r", stage.first_name + task, 0),
            kind=pb.TaskDescription.MAP if stage.reads_files else pb.TaskDescription.REDUCE,
            split="" if split is None else json.dumps(split.to_json()),
        )
        local = LocalTask(description.SerializeToString(), self.spec, self.files, self.folder)
        try:
            return done_by(self.tasks, local, self.conf)
        except TaskFailed as error:
            raise JobError(f"{stage.name}: {error}", detail=error.detail) from None
