"""A task of a stage: what it reads, through its tree of steps, to its channels and outputs."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

from tez_adapter.data import MapOutput, ReduceInput
from tez_adapter.flow.body import Fork, MapStep, Shuffled, Sink, Written, joined, last_pairs, mapped, reduced, shuffled
from tez_adapter.flow.names import Wanted, output_name, side_of, wanted_by
from tez_adapter.flow.plan import Branch, EdgeKind, FlowPlan, Stage
from tez_adapter.flow.program import FlowProgram, input_format
from tez_adapter.flow.spec import FlowSpec
from tez_adapter.output_codec import shuffle_codec
from tez_adapter.tasks.attempt import TaskAttempt
from tez_adapter.tasks.forked import end_copy, or_undo
from tez_adapter.tasks.map_task import read_from
from tez_adapter.tasks.pairs import Pair
from tez_adapter.tasks.task_output import OutputFiles
from yaqd.mapreduce import Job, JobError
from yaqd.mapreduce.counters import INPUT_GROUP, TaskCounter
from yaqd.mapreduce.flow import NodeKind
from yaqd.mapreduce.job import MAP, REDUCE, TaskContext
from yaqd.mapreduce.serde import decode_many
from yaqd.storage import InputSplit, open_reader, part_name

#: fills an input with what is wanted
Fetch = Callable[[ReduceInput, Wanted], None]
#: groups between two signs of progress
_GROUPS_PER_MOVE = 1024


def flow_of(attempt: TaskAttempt) -> FlowSpec:
    if attempt.spec.flow is None:
        raise JobError(f"{attempt.spec.job_id} is no flow")
    return attempt.spec.flow


def run_stage(attempt: TaskAttempt, program: FlowProgram, fetch: Fetch) -> OutputFiles | None:
    """Run a task; return the files to commit, where it writes to outputs."""
    return _StageTask(attempt, program, fetch).run()


@dataclass(slots=True)
class _StageTask:
    attempt: TaskAttempt
    program: FlowProgram
    fetch: Fetch
    spec: FlowSpec = field(init=False)
    plan: FlowPlan = field(init=False)
    stage: Stage = field(init=False)
    files: OutputFiles = field(init=False)
    #: contexts of steps that see records of the input
    contexts: list[TaskContext] = field(default_factory=list)
    sides: dict[int, dict[str, list[Pair]]] = field(default_factory=dict)
    #: by output
    parts: dict[int, Written] = field(default_factory=dict)
    _groups: int = _GROUPS_PER_MOVE

    def __post_init__(self) -> None:
        self.spec = flow_of(self.attempt)
        self.plan = self.spec.plan
        self.stage = self.plan.stages[self.attempt.ref.vertex]
        self.files = OutputFiles(self.attempt)

    def run(self) -> OutputFiles | None:
        for edge in self.stage.edges:
            if edge.kind is EdgeKind.BROADCAST:
                with self._input(self._memory() // 2) as source:
                    self.fetch(source, side_of(self.plan, edge))
                    # of several streams that are united, each has an edge
                    self.sides.setdefault(edge.step, {}).setdefault(edge.name, []).extend(self._pairs_of(source))
        if self.stage.reads_files:
            with or_undo(lambda: None):
                body = self._body()
            self._through(body, self._read())
            self.attempt.end_phase("map")
        else:
            with self._input(self._memory() // 2) as source:
                self.fetch(source, wanted_by(self.plan, self.stage, self.attempt.index))
                self.attempt.end_phase("shuffle")
                with or_undo(lambda: None):
                    head = self._head(source)
                    body = self._body()
                self._through(body, head)
                self.attempt.end_phase("reduce")
        return self.files if self.stage.first_parts else None

    def _memory(self) -> int:
        return self.attempt.sort_bytes()

    def _input(self, memory_bytes: int) -> ReduceInput:
        return ReduceInput(
            self.attempt.work_folder,
            memory_bytes=memory_bytes,
            codec=shuffle_codec(self.attempt.conf),
            counters=self.attempt.tallies,
        )

    def _through(self, body: Fork, pairs: Iterator[Pair]) -> None:
        with or_undo(body.abandon):
            body.take(pairs)
            body.end()

    # ---- what comes in

    def _read(self) -> Iterator[Pair]:
        attempt = self.attempt
        split = InputSplit.from_json(json.loads(attempt.description.split))
        reader = open_reader(input_format(self.program.flow, self.stage.head), split, attempt.conf)
        attempt.reading = lambda: reader.current
        records = attempt.counters.task(TaskCounter.MAP_INPUT_RECORDS)
        read = attempt.counters.find(INPUT_GROUP, "BYTES_READ")
        for context in self.contexts:
            read_from(context, split.ranges[0])
        for batch in reader.batches():
            end_copy()
            records.increment(len(batch))
            read.value = reader.bytes_read
            attempt.moved(reader.progress())
            for context in self.contexts:
                read_from(context, reader.current)
            yield from batch
            attempt.status = next((context.status for context in self.contexts if context.status), "")
        read.value = reader.bytes_read
        attempt.moved(reader.progress())
        attempt.reading = None

    def _head(self, source: ReduceInput) -> Iterator[Pair]:
        """What the stage's first step yields of its input, and at its end."""
        nodes, head = self.program.flow.nodes, self.stage.head
        moved = partial(self._moved, source)
        if not nodes[head].reduces:
            job = self._job(head, MAP, 0)
            return chain(mapped(job, self._pairs_of(source)), _last(job))
        job = self._job(head, REDUCE, nodes[head].reduces)
        before = nodes[nodes[head].inputs[0]]
        if before.kind is NodeKind.JOIN:
            pairs = joined(job, len(before.inputs), source.groups(), moved)
        elif job.overrides_reduce:
            pairs = reduced(job, source.groups(), moved)
        else:
            pairs = self._pairs_of(source)
        return chain(pairs, _last(job))

    def _moved(self, source: ReduceInput) -> None:
        self._groups -= 1
        if not self._groups:
            self._groups = _GROUPS_PER_MOVE
            self._told(source)

    def _told(self, source: ReduceInput) -> None:
        end_copy()
        self.attempt.moved(1 / 3 + 2 / 3 * source.progress())

    def _pairs_of(self, source: ReduceInput) -> Iterator[Pair]:
        """Yield all pairs of an input as they are, sorted."""
        for batch in source.batches():
            self._told(source)
            yield from zip(decode_many(batch.key_list()), decode_many(batch.value_list()), strict=True)

    # ---- where it goes

    def _body(self) -> Fork:
        return Fork([self._sink(branch) for branch in self.stage.branches])

    def _sink(self, branch: Branch) -> Sink:
        if branch.output >= 0:
            return self._written(branch.output)
        if branch.channel >= 0:
            return self._shuffled(branch)
        job = self._job(branch.step, MAP, 0)
        return MapStep(job, Fork([self._sink(each) for each in branch.then]))

    def _written(self, output: int) -> Written:
        if output not in self.parts:
            letter = "m" if self.stage.reads_files else "r"
            number = self.stage.first_parts[output] + self.attempt.index
            self.parts[output] = Written(self.files.open(self.spec.outputs[output], part_name(letter, number)))
        self.parts[output].branches += 1
        return self.parts[output]

    def _shuffled(self, branch: Branch) -> Shuffled:
        parts = self.stage.channels[branch.channel]
        share = 1 if self.stage.reads_files else 2
        memory = self._memory() // (share * len(self.stage.channels))
        folder = self.attempt.output_folder(
            output_name(
                self.attempt.spec.job_id, self.stage, branch.channel, self.attempt.index, self.attempt.ref.number
            )
        )

        def make(partitioner: Any, memory_bytes: int, combine: Any) -> MapOutput:
            return MapOutput(
                folder,
                parts,
                partitioner,
                codec=shuffle_codec(self.attempt.conf),
                memory_bytes=memory_bytes,
                combine=combine,
                counters=self.attempt.tallies,
            )

        job = None if branch.step < 0 else self._job(branch.step, MAP, parts, side=branch.side)
        keys = (self.spec.boundaries or {}).get(branch.step, ())
        return shuffled(
            job, make, memory_bytes=memory, side=branch.side, boundaries=[bytes.fromhex(key) for key in keys]
        )

    def _job(self, step: int, phase: str, parts: int, *, side: int = -1) -> Job:
        """A step's own object in this task, set up."""
        sides: Mapping[str, list[Pair]] = self.sides.get(step, {})
        context = TaskContext(
            phase,
            self.attempt.index,
            self.attempt.ref.number,
            parts,
            stream=side,
            sides=sides,
        )
        job = self.program.job_class(step)(self.program.params[step], self.attempt.counters, context)
        job.setup()
        if self.stage.reads_files:
            self.contexts.append(context)
        return job


def _last(job: Job) -> Iterator[Pair]:
    """Yield what cleanup yields, asked for once all before it has been taken."""
    yield from last_pairs(job)
