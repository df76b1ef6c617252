"""Stages as a job manager tells of them, as a policy of stages is told of them.

A stage that was told of once stays in the graph when it is over, as in simulated time.
"""

from collections.abc import Callable, Iterable, Sequence
from math import isfinite, nan

import numpy as np

from yaqd.policies.clotho.facts import Graph, StageJob, bounded_s, graph_of
from yaqd.policies.queueing.left import STAGES_MAX, WAITS_MAX, StageLeft


class ToldStages:
    """One job's stages, by priority."""

    def __init__(self) -> None:
        self.priorities: tuple[int, ...] = ()
        self.graph: Graph | None = None
        #: by stage, in the order of `priorities`: tasks that are not over, and those that run
        self.unfinished: list[int] = []
        self.running: list[int] = []
        #: how long a task runs, s; NaN: nobody knows
        self.task_s: list[float] = []
        self.is_open: list[bool] = []
        #: by priority: stages that each waits for, and how long its tasks run as was told last, s
        self._known: dict[int, tuple[int, ...]] = {}
        self._seen_s: dict[int, float] = {}

    def hear(self, told: Sequence[StageLeft], estimate: Callable[[int], float | None]) -> None:
        """Take in what is left. `estimate`: how long tasks of a priority run as far as others know, s."""
        stages = {stage.priority: stage for stage in told}
        changed = {p: stage.after for p, stage in stages.items() if self._known.get(p) != stage.after}
        if changed:
            self._known |= changed
            if len(self._known) > STAGES_MAX or sum(map(len, self._known.values())) > WAITS_MAX:
                self._known, self._seen_s = {p: stage.after for p, stage in stages.items()}, {}
        if changed or len(self._known) != len(self.priorities):
            self._draw()
        over = StageLeft(0, 0)
        rows = [stages.get(priority, over) for priority in self.priorities]
        self.unfinished = [stage.tasks for stage in rows]
        self.running = [min(stage.running, stage.tasks) for stage in rows]
        waits = set() if self.graph is None else _waiting(self.graph, self.unfinished)
        self.is_open = [bool(running) or at not in waits for at, running in enumerate(self.running)]
        self._seen_s |= {p: stage.task_s for p, stage in stages.items() if stage.task_s is not None}
        self.task_s = [self._seen_s.get(priority, number(estimate(priority))) for priority in self.priorities]

    def ask(self, pending: dict[int, int], held: dict[int, int], estimate: Callable[[int], float | None]) -> None:
        """Take in what a master asks for that tells nothing: each priority is a stage, and none waits for another."""
        priorities = tuple(sorted(held.keys() | {p for p, many in pending.items() if many})[:STAGES_MAX])
        if priorities != self.priorities or self.graph is None:
            self.priorities, self._known, self._seen_s = priorities, {}, {}
            self.graph = _graph(len(priorities), ())
        self.running = [held.get(priority, 0) for priority in priorities]
        self.unfinished = [pending.get(p, 0) + held.get(p, 0) for p in priorities]
        self.is_open = [True] * len(priorities)
        self.task_s = [number(estimate(priority)) for priority in priorities]

    def work_s(self) -> float:
        """Return the work that is left, slot seconds; NaN: nobody knows of all stages."""
        if not self.task_s or not all(map(isfinite, self.task_s)):
            return nan
        return sum(many * seconds for many, seconds in zip(self.unfinished, self.task_s, strict=True))

    def facts(self, coming: Sequence[int], containers: int, idle: int, whole_s: float) -> StageJob | None:
        """Return what a policy is told; None: nothing is left to do.

        `coming`: by stage, containers that are on their way or meant for it. `whole_s`: work of the whole job, slot
        seconds.
        """
        if self.graph is None or not any(self.unfinished):
            return None
        unfinished, running, on_way = (
            np.array(counts, dtype=np.int64) for counts in (self.unfinished, self.running, coming)
        )
        return StageJob(
            self.graph,
            unfinished,
            running,
            np.maximum(0, unfinished - running - on_way),
            on_way,
            bounded_s(self.task_s, len(self.task_s)),
            np.array(self.is_open, dtype=bool),
            containers,
            idle,
            whole_s,
        )

    def _draw(self) -> None:
        self.priorities = tuple(sorted(self._known))
        place = {priority: at for at, priority in enumerate(self.priorities)}
        edges = [
            (place[before], place[priority])
            for priority, after in self._known.items()
            for before in after
            if before in place and before != priority
        ]
        self.graph = _graph(len(self.priorities), edges)


def _graph(many: int, edges: Iterable[tuple[int, int]]) -> Graph | None:
    """Return the graph; stages that wait for each other in a circle wait for nothing. None: there are no stages."""
    if not many:
        return None
    try:
        return graph_of(many, edges)
    except ValueError:
        return graph_of(many, ())


def _waiting(graph: Graph, unfinished: Sequence[int]) -> set[int]:
    """Return the stages that wait for one with tasks left."""
    return {
        after for before, after in zip(graph.parent.tolist(), graph.child.tolist(), strict=True) if unfinished[before]
    }


def number(seconds: float | None) -> float:
    """Return a duration as policies have it, s: NaN where it is not known."""
    return nan if seconds is None else seconds
