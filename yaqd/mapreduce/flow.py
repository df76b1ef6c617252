"""A job of many steps: each step is a `Job`, and reads what others yield.

    flow = Flow()
    logs = flow.read("logs").then(Parse)
    users = flow.read("users").then(Clean)
    flow.join(logs, users).then(Merge, reduces=8).then(Top).write("top")

A step with a reduce shuffles what its map yields, as a MapReduce job does. What its reduce yields goes on to the next
step in the same task, without a visit to storage. A step without a reduce runs in the task of the step before it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from yaqd.mapreduce.errors import JobError
from yaqd.mapreduce.formats import InputFormat, OutputKind
from yaqd.mapreduce.job import Job
from yaqd.mapreduce.params import declared_params

#: steps, inputs and outputs of one flow
NODES_MAX: Final = 1000
#: no task takes longer: 30 years, s
_TASK_S_MAX: Final = 1e9


class NodeKind(StrEnum):
    READ = "read"
    STEP = "step"
    JOIN = "join"
    UNION = "union"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class FlowNode:
    """One thing that a flow does. Nodes are numbered in the order in which the script names them."""

    kind: NodeKind
    #: nodes that it reads, by number
    inputs: tuple[int, ...] = ()
    #: STEP
    job: type[Job] | None = None
    #: STEP: reduce tasks; 0: its map is all of it
    reduces: int = 0
    #: STEP: values of its options, by their names
    params: Mapping[str, Any] = field(default_factory=dict)
    #: STEP: nodes that each of its tasks gets whole, by the names that it knows them by
    sides: Mapping[str, int] = field(default_factory=dict)
    #: STEP: it has tasks of its own also where it has no reduce
    is_apart: bool = False
    #: STEP: what one of its tasks should take, s; None: nobody has said
    task_s: float | None = None
    #: READ, WRITE
    path: str = ""
    #: READ, WRITE: how records look there
    format: str = ""
    name: str = ""


class Flow:
    """What is read, which steps it goes through, where it is written."""

    def __init__(self, name: str = "") -> None:
        """`name`: shown by `yaq app list`; "" = the script's name."""
        _check_name(name, "Flow()")
        self.name = name
        self.nodes: list[FlowNode] = []

    def read(self, path: str, *, format: str = "") -> "Stream":
        """Return the records of the files at a path or pattern; `--path NAME=PATH` names another for NAME.

        `format`: see `yaqd.mapreduce.formats`; by default that of the first step that reads them.
        """
        if not isinstance(path, str) or not path:
            raise JobError(f"flow.read({path!r}): give a path, or a name that --path can say")
        if format:
            InputFormat.parse(format)
        return self._add(FlowNode(NodeKind.READ, path=path, format=format, name=path))

    def join(self, *streams: "Stream") -> "Stream":
        """Return what several streams yield, key by key: the next step's reduce gets an iterator for each stream.

        All but the last are held in memory while a key is reduced: name the longest last.
        """
        return self._add(FlowNode(NodeKind.JOIN, self._numbers("join", streams, 2)))

    def union(self, *streams: "Stream") -> "Stream":
        """Return the pairs of several streams, in no order."""
        return self._add(FlowNode(NodeKind.UNION, self._numbers("union", streams, 1)))

    def _numbers(self, what: str, streams: tuple["Stream", ...], least: int) -> tuple[int, ...]:
        if len(streams) < least:
            raise JobError(f"flow.{what}() of {len(streams)}: give {least} streams or more")
        return tuple(self.number_of(stream, f"flow.{what}()") for stream in streams)

    def number_of(self, stream: "Stream", where: str) -> int:
        """Return the number of a stream's node. JobError where it is of another flow, or none."""
        if not isinstance(stream, Stream):
            raise JobError(f"{where}: {stream!r} is no stream: give what flow.read() or .then() returned")
        if stream.flow is not self:
            raise JobError(f"{where}: a stream of another flow")
        return stream.number

    def _add(self, node: FlowNode) -> "Stream":
        if len(self.nodes) >= NODES_MAX:
            raise JobError(f"a flow of more than {NODES_MAX} steps, inputs and outputs: divide it")
        for number in node.inputs:
            if self.nodes[number].kind is NodeKind.JOIN and not (node.kind is NodeKind.STEP and node.reduces):
                raise JobError("what flow.join() returns goes to a step with a reduce: write .then(STEP) behind it")
        self.nodes.append(node)
        return Stream(self, len(self.nodes) - 1)

    def __repr__(self) -> str:
        return f"Flow({self.name!r}, {len(self.nodes)} nodes)"


@dataclass(frozen=True, slots=True)
class Stream:
    """Pairs on their way: of an input, or yielded by a step."""

    flow: Flow
    number: int

    def then(
        self,
        job: type[Job],
        *,
        reduces: int | None = None,
        params: Mapping[str, Any] | None = None,
        sides: Mapping[str, "Stream"] | None = None,
        apart: bool = False,
        task_s: float | None = None,
    ) -> "Stream":
        """Return what a step yields of these pairs.

        `reduces`: of its reduce tasks, by default as the class says. `sides`: streams that each task gets whole, as
        lists of pairs in `self.task.sides`. `apart`: a step without a reduce gets tasks of its own. `task_s`: how long
        one of its tasks should take, s, for a scheduler that has not seen any; of a step that runs in the tasks of
        another one, what it adds to these.
        """
        if not (isinstance(job, type) and issubclass(job, Job)):
            raise JobError(f".then({job!r}): give a subclass of yaqd.mapreduce.Job")
        where = f".then({job.__name__})"
        _check_task_s(task_s, where)
        shown = job.name or job.__name__
        _check_name(shown, where)
        _check_mapping(params, f"{where}: params", "{'option': VALUE}")
        _check_mapping(sides, f"{where}: sides", "{'name': STREAM}")
        count = _reduces_of(job, reduces, where, is_join=self.flow.nodes[self.number].kind is NodeKind.JOIN)
        others = {name: self.flow.number_of(stream, f"{where}, side {name}") for name, stream in (sides or {}).items()}
        for name, number in others.items():
            if self.flow.nodes[number].kind is NodeKind.JOIN:
                raise JobError(
                    f"{where}, side {name}: what flow.join() returns goes to a step: write .then() behind it"
                )
        _check_params(job, params or {}, where)
        node = FlowNode(
            NodeKind.STEP,
            (self.number,),
            job=job,
            reduces=count,
            params=dict(params or {}),
            sides=others,
            is_apart=apart and not count,
            task_s=task_s,
            name=shown,
        )
        return self.flow._add(node)

    def write(self, path: str, *, format: str = "") -> None:
        """Write the pairs to a folder. `format`: by default that of the step that yields them."""
        if not isinstance(path, str) or not path:
            raise JobError(f".write({path!r}): give a path, or a name that --path can say")
        chosen = format or self._written_as()
        OutputKind.of(chosen)
        self.flow._add(FlowNode(NodeKind.WRITE, (self.number,), path=path, format=chosen, name=path))

    def _written_as(self) -> str:
        node = self.flow.nodes[self.number]
        return node.job.output_format if node.job is not None else Job.output_format


def _check_name(name: object, where: str) -> None:
    if not isinstance(name, str):
        raise JobError(f"{where}: its name is {name!r}: give text")


def _check_mapping(given: object, where: str, such: str) -> None:
    if given is not None and not isinstance(given, Mapping):
        raise JobError(f"{where} is {given!r}: give a dict, as in {such}")
    for name in given or ():
        if not isinstance(name, str):
            raise JobError(f"{where} has the name {name!r}: give text")


def _check_task_s(said: float | None, where: str) -> None:
    if said is not None and (type(said) not in (int, float) or not 0 < said <= _TASK_S_MAX):
        raise JobError(f"{where}: task_s is {said!r}: give the seconds that one of its tasks takes, above 0")


def _check_params(job: type[Job], params: Mapping[str, Any], where: str) -> None:
    declared = declared_params(job)
    for name, value in params.items():
        if name not in declared:
            known = f"it has {', '.join(declared)}" if declared else "it has none"
            raise JobError(f"{where}: params: {job.__name__} has no option {name}: {known}")
        declared[name].parse(str(value), f"{where}: params: ", "")


def _reduces_of(job: type[Job], said: int | None, where: str, *, is_join: bool) -> int:
    """A class that reduces nothing and says no number of reduces is a map alone."""
    if said is not None and (type(said) is not int or said < 0):
        raise JobError(f"{where}: reduces is {said!r}: give a number from 0")
    says_itself = any("reduces" in vars(base) for base in job.__mro__ if base is not Job and issubclass(base, Job))
    if said is not None:
        count = said
    elif job.overrides_reduce or says_itself or is_join:
        count = job.reduces
    else:
        count = 0
    if is_join and (not count or not job.overrides_reduce):
        raise JobError(f"{where}: a step behind flow.join() needs a reduce(self, key, ...) with an iterator a stream")
    if is_join and job.overrides_combine:
        raise JobError(f"{where}: a step behind flow.join() cannot combine, its streams stay apart: leave combine out")
    if not count and job.overrides_reduce:
        raise JobError(f"{where}: it has a reduce() and no reduce tasks: leave one of them out")
    return count
