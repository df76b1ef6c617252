"""From a flow of steps to stages of equal tasks: what runs in one task, and what is shuffled between them. Pure.

A stage begins where pairs come from storage or from other tasks: at a read, at the reduce of a step, or at a step that
is apart. All that follows without a shuffle is a tree within its tasks. Each leaf of the tree is a channel, which other
tasks read, or a part of an output.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final, Self

from yaqd.mapreduce.errors import JobError
from yaqd.mapreduce.flow import Flow, FlowNode, NodeKind

#: steps behind one another in the same task
_DEPTH_MAX: Final = 100
#: branches of all trees: pairs that go many ways, and meet, go so many ways again behind
_BRANCHES_MAX: Final = 10_000


class EdgeKind(StrEnum):
    #: a task reads its part of what every task of the source leaves
    SHUFFLE = "shuffle"
    #: a task reads all that one task leaves; of several sources, those of the first come first
    ONE_TO_ONE = "one-to-one"
    #: a task reads all that all tasks leave
    BROADCAST = "broadcast"


@dataclass(frozen=True, slots=True)
class Branch:
    """What happens to pairs within a task: a step's map, or an end."""

    #: MAP, SHUFFLE: the step whose map sees the pairs; -1: they go on unchanged
    step: int = -1
    #: SHUFFLE, ONE_TO_ONE, BROADCAST: of the stage's channels; -1: none
    channel: int = -1
    #: of the flow's outputs; -1: none
    output: int = -1
    #: of a join: which of its streams this is; -1: of none
    side: int = -1
    #: of a step that is all map
    then: tuple["Branch", ...] = ()


@dataclass(frozen=True, slots=True)
class StageEdge:
    """What a stage reads of another one."""

    source: int
    #: of the source's channels
    channel: int
    kind: EdgeKind
    #: BROADCAST: the step that gets it, and the name by which that knows it
    step: int = -1
    name: str = ""


@dataclass(frozen=True, slots=True)
class Stage:
    name: str
    #: where the tree begins: the node that is read, reduced, or apart
    head: int
    branches: tuple[Branch, ...]
    #: what its tasks read of others
    edges: tuple[StageEdge, ...] = ()
    #: parts that each channel is divided into
    channels: tuple[int, ...] = ()
    #: 0: not known before the input has been looked at
    tasks: int = 0
    #: of a read: where its splits begin among all
    first_split: int = 0
    #: before the names of its map outputs and of its parts, those of earlier stages come
    first_name: int = 0
    #: by output: the number of its first part
    first_parts: Mapping[int, int] = field(default_factory=dict)
    #: what one of its tasks should take, s: what the flow says of the steps in it; None: it says nothing
    task_s: float | None = None

    @property
    def reads_files(self) -> bool:
        return not any(edge.kind is not EdgeKind.BROADCAST for edge in self.edges)


@dataclass(frozen=True, slots=True)
class FlowPlan:
    stages: tuple[Stage, ...]
    #: nodes that write, in the order of the flow's outputs
    outputs: tuple[int, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_json(cls, found: Mapping[str, Any]) -> Self:
        """Raises KeyError, TypeError, ValueError."""
        stages = []
        for each in found["stages"]:
            fields = dict(each)
            fields["branches"] = tuple(map(_branch_of, fields["branches"]))
            fields["edges"] = tuple(StageEdge(**{**edge, "kind": EdgeKind(edge["kind"])}) for edge in fields["edges"])
            fields["channels"] = tuple(map(int, fields["channels"]))
            fields["first_parts"] = {int(output): int(first) for output, first in fields["first_parts"].items()}
            stages.append(Stage(**fields))
        return cls(tuple(stages), tuple(map(int, found["outputs"])))


def _branch_of(found: Mapping[str, Any]) -> Branch:
    return Branch(**{**found, "then": tuple(map(_branch_of, found["then"]))})


def plan_flow(flow: Flow) -> FlowPlan:
    """Return the stages of a flow, sources before their targets; their tasks are counted where the flow says them.

    Raises JobError where nothing is written, or a step leads nowhere.
    """
    _check(flow)
    apart = {number for number, node in enumerate(flow.nodes) if node.is_apart}
    while True:
        planner = _Planner(flow, apart)
        circle = planner.circle()
        if not circle:
            return planner.plan()
        apart |= circle  # each waits for what comes after its own task: it gets tasks of its own


def _check(flow: Flow) -> None:
    outputs = [node for node in flow.nodes if node.kind is NodeKind.WRITE]
    if not outputs:
        raise JobError("the flow writes nothing: end a stream with .write(PATH)")
    for node in outputs:
        if sum(other.path == node.path for other in outputs) > 1:
            raise JobError(
                f"two streams are written to {node.path}: unite them with flow.union(), or name another path"
            )
    used = {number for node in flow.nodes for number in (*node.inputs, *node.sides.values())}
    for number, node in enumerate(flow.nodes):
        if node.kind is not NodeKind.WRITE and number not in used:
            raise JobError(f"nobody reads what {_what(node)} yields: write it, or leave it out")


def _what(node: FlowNode) -> str:
    return f"flow.{node.kind}({node.name})" if node.kind is not NodeKind.STEP else f"the step {node.name}"


class _Planner:
    def __init__(self, flow: Flow, apart: set[int]) -> None:
        self._nodes = flow.nodes
        self._apart = apart
        self._readers: list[list[tuple[int, int]]] = [[] for _ in flow.nodes]
        for number, node in enumerate(flow.nodes):
            for position, source in enumerate(node.inputs):
                self._readers[source].append((number, position))
        #: by node: steps that get it whole, and the names that they know it by
        self._side_of: list[list[tuple[int, str]]] = [[] for _ in flow.nodes]
        for number, node in enumerate(flow.nodes):
            for name, source in node.sides.items():
                self._side_of[source].append((number, name))
        self._outputs = [number for number, node in enumerate(flow.nodes) if node.kind is NodeKind.WRITE]
        #: nodes that a stage begins with
        self._heads = [number for number in range(len(flow.nodes)) if self._is_head(number)]
        #: by head: parts of its channels, and edges that lead from them: (target head, edge without its source)
        self._channels: dict[int, list[int]] = {head: [] for head in self._heads}
        self._leads: dict[int, list[tuple[int, StageEdge]]] = {head: [] for head in self._heads}
        #: by step: heads in whose tasks its map runs; of one that is apart: none
        self._hosts: dict[int, set[int]] = {}
        self._branches = 0
        self._trees = {head: self._grow(head, head, -1) for head in self._heads}
        self._lead_sides()

    def _is_head(self, number: int) -> bool:
        node = self._nodes[number]
        return node.kind is NodeKind.READ or (
            node.kind is NodeKind.STEP and (node.reduces > 0 or number in self._apart)
        )

    def _grow(self, head: int, number: int, side: int, depth: int = 0) -> tuple[Branch, ...]:
        """Return what happens within the head's tasks to what a node yields; `side`: of the join that it goes to."""
        if depth > _DEPTH_MAX:
            raise JobError(
                f"more than {_DEPTH_MAX} steps without a shuffle behind {_what(self._nodes[head])}: join some"
            )
        found: list[Branch] = []
        for reader, position in self._readers[number]:
            self._branches += 1
            if self._branches > _BRANCHES_MAX:
                raise JobError(
                    f"more than {_BRANCHES_MAX} ways without a shuffle behind {_what(self._nodes[head])}: write "
                    ".then(STEP, apart=True) where streams meet"
                )
            node = self._nodes[reader]
            if node.kind is NodeKind.WRITE:
                found.append(Branch(output=self._outputs.index(reader)))
            elif node.kind is NodeKind.UNION:
                found += self._grow(head, reader, side, depth + 1)
            elif node.kind is NodeKind.JOIN:
                found += self._grow(head, reader, position, depth + 1)
            elif node.reduces:
                self._hosts.setdefault(reader, set()).add(head)
                channel = self._channel(head, reader, node.reduces, EdgeKind.SHUFFLE)
                found.append(Branch(step=reader, channel=channel, side=side))
            elif reader in self._apart:
                found.append(Branch(channel=self._channel(head, reader, 1, EdgeKind.ONE_TO_ONE)))
            else:
                self._hosts.setdefault(reader, set()).add(head)
                found.append(Branch(step=reader, then=self._grow(head, reader, side, depth + 1)))
        found += [Branch(channel=self._side_channel(head, reader, name)) for reader, name in self._side_of[number]]
        return tuple(found)

    def _channel(self, head: int, target: int, parts: int, kind: EdgeKind) -> int:
        self._channels[head].append(parts)
        channel = len(self._channels[head]) - 1
        self._leads[head].append((target, StageEdge(-1, channel, kind)))
        return channel

    def _side_channel(self, head: int, step: int, name: str) -> int:
        self._channels[head].append(1)
        channel = len(self._channels[head]) - 1
        self._leads[head].append((-1, StageEdge(-1, channel, EdgeKind.BROADCAST, step, name)))
        return channel

    def _lead_sides(self) -> None:
        """A side goes to each stage in whose tasks its step runs: to its own, and to those that its map is part of."""
        for head, leads in self._leads.items():
            self._leads[head] = [
                (stage, edge)
                for target, edge in leads
                for stage in ((target,) if edge.kind is not EdgeKind.BROADCAST else sorted(self._stages_of(edge.step)))
            ]

    def _stages_of(self, step: int) -> set[int]:
        hosts = self._hosts.get(step, set())
        return {step, *hosts} if step in self._channels else hosts

    # ---- the order

    def _order(self) -> tuple[list[int], set[int]]:
        """Return heads, sources before their targets, and those that wait for one another."""
        waits: dict[int, set[int]] = {head: set() for head in self._heads}
        for head, leads in self._leads.items():
            for target, _ in leads:
                waits[target].add(head)
        order: list[int] = []
        left = {head: len(sources) for head, sources in waits.items()}
        free = [head for head in self._heads if not left[head]]
        while free:
            head = heappop(free)
            order.append(head)
            for target in {target for target, _ in self._leads[head]}:
                left[target] -= 1
                if not left[target]:
                    heappush(free, target)
        return order, {head for head in self._heads if left[head]}

    def circle(self) -> set[int]:
        """Return steps that wait for what comes after their own tasks; none where there are none.

        Those that must be apart, whichever others are, come all at once: a pass grows all trees anew. Without any it is
        one step alone, as that may free others of the same circle.
        """
        _, stuck = self._order()
        if not stuck:
            return set()
        if found := self._waiting_alone(stuck):
            return found
        for step, node in enumerate(self._nodes):
            if node.sides and step not in self._channels and self._hosts.get(step, set()) & stuck:
                return {step}
        names = ", ".join(sorted(self._nodes[head].name for head in stuck if self._nodes[head].sides))
        raise JobError(
            f"steps wait for each other's sides: {names}; give the side to a step behind them, or write "
            ".then(Job, apart=True) before the step that gets it"
        )

    def _waiting_alone(self, stuck: set[int]) -> set[int]:
        """Return steps that wait for their own tasks, whichever other steps are apart.

        One behind another step with sides is left out, as it goes where that one goes.
        """
        sources: dict[int, set[int]] = {}
        firm: dict[int, set[int]] = {head: set() for head in stuck}
        for head in stuck:
            for target, edge in self._leads[head]:
                if edge.kind is EdgeKind.BROADCAST:
                    sources.setdefault(edge.step, set()).add(head)
                if edge.kind is not EdgeKind.BROADCAST or target == edge.step:
                    firm[head].add(target)
        found: set[int] = set()
        for head in stuck:
            steps = {step for step in self._first_with_sides(self._trees[head]) if step in sources}
            behind = _reached(head, firm) if steps else set()
            found |= {step for step in steps if sources[step] & behind}
        return found

    def _first_with_sides(self, tree: Sequence[Branch]) -> Iterator[int]:
        for branch in tree:
            if branch.step >= 0 and branch.channel < 0 and self._nodes[branch.step].sides:
                yield branch.step
            else:
                yield from self._first_with_sides(branch.then)

    def plan(self) -> FlowPlan:
        order, _ = self._order()
        numbers = {head: at for at, head in enumerate(order)}
        edges: dict[int, list[StageEdge]] = {head: [] for head in order}
        for head in order:
            for target, edge in self._leads[head]:
                edges[target].append(StageEdge(numbers[head], edge.channel, edge.kind, edge.step, edge.name))
        names = _named(order, self._nodes, self._trees)
        stages = [
            Stage(
                names[head],
                head,
                self._trees[head],
                tuple(edges[head]),
                tuple(self._channels[head]),
                self._nodes[head].reduces,
                task_s=self._task_s(head),
            )
            for head in order
        ]
        return FlowPlan(tuple(stages), tuple(self._outputs))

    def _task_s(self, head: int) -> float | None:
        """The map of a step that shuffles has no time of its own: what the flow says of it is said of its reduce."""
        within = {branch.step for branch in _all_of(self._trees[head]) if branch.step >= 0 and branch.channel < 0}
        said = [task_s for step in sorted({head, *within}) if (task_s := self._nodes[step].task_s) is not None]
        return sum(said) if said else None


def _all_of(tree: Sequence[Branch]) -> Iterator[Branch]:
    for branch in tree:
        yield branch
        yield from _all_of(branch.then)


def _reached(head: int, leads: Mapping[int, set[int]]) -> set[int]:
    """Return a head, and those that something leads to from it."""
    found, left = {head}, [head]
    while left:
        new = leads.get(left.pop(), set()) - found
        found |= new
        left += new
    return found


def _named(order: Sequence[int], nodes: Sequence[FlowNode], trees: Mapping[int, tuple[Branch, ...]]) -> dict[int, str]:
    """Name each stage by its head, and by the step after a read; a number tells equal names apart."""
    found: dict[int, str] = {}
    for head in order:
        name = nodes[head].name
        first = trees[head][0] if trees[head] else Branch()
        if nodes[head].kind is NodeKind.READ:
            name = f"{name}:{nodes[first.step].name}" if first.step >= 0 else name
        taken = set(found.values())
        numbered = (f"{name} ({number})" for number in count(2))
        found[head] = name if name not in taken else next(each for each in numbered if each not in taken)
    return found


def counted(plan: FlowPlan, splits: Sequence[int]) -> FlowPlan:
    """Return the plan with its tasks counted. `splits`: of each stage that reads files, in their order."""
    left = list(splits)
    stages: list[Stage] = []
    first_split = first_name = 0
    parts = dict.fromkeys(range(len(plan.outputs)), 0)
    for stage in plan.stages:
        tasks = stage.tasks
        if stage.reads_files:
            tasks = left.pop(0)
        elif not tasks:
            tasks = sum(stages[e.source].tasks for e in stage.edges if e.kind is EdgeKind.ONE_TO_ONE)
        written = {branch.output for branch in _all_of(stage.branches) if branch.output >= 0}
        stages.append(
            Stage(
                stage.name,
                stage.head,
                stage.branches,
                stage.edges,
                stage.channels,
                tasks,
                first_split if stage.reads_files else 0,
                first_name,
                {output: parts[output] for output in sorted(written)},
                stage.task_s,
            )
        )
        first_split += tasks if stage.reads_files else 0
        first_name += tasks * max(1, len(stage.channels))
        for output in written:
            parts[output] += tasks
    return FlowPlan(tuple(stages), plan.outputs)
