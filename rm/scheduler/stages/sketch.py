"""An application's stages as a policy is told of them, and as they change while it decides.

A master that tells of its stages is believed as far as that can be. Of others each priority that is asked for is a
stage. A stage that was told of once stays in the graph when it is over, as in simulated time.
"""

from collections.abc import Iterable, Mapping
from itertools import islice
from math import nan
from typing import Final

import numpy as np

from rm.scheduler.asks.jobs import Job, Jobs
from rm.scheduler.view.records import AppView, AttemptView
from yaqd.policies.clotho.facts import Graph, StageJob, bounded_s, graph_of
from yaqd.policies.queueing.left import STAGES_MAX, StageLeft

#: asks of an attempt that are looked at
_ASKS_LOOKED_AT: Final = 1000


class Sketch:
    """What is known of one application, counted anew when something about it has changed."""

    def __init__(self, app: AppView) -> None:
        self.app = app
        self.priorities: tuple[int, ...] = ()
        #: containers that wait at the master for word
        self.idle = 0
        #: those that were told to go, and have not gone
        self.leaving = 0
        self._made_of: object = None
        #: by priority: stages that each waits for, and how long its tasks run as was told last, s
        self._known: dict[int, tuple[int, ...]] = {}
        self._seen_s: dict[int, float] = {}
        self._graph: Graph | None = None
        self._unfinished: list[int] = []
        self._running: list[int] = []
        self._coming: list[int] = []
        self._task_s: list[float] = []
        self._is_open: list[bool] = []
        self.containers = 0
        #: something is counted that is only planned
        self._is_planned = False
        self._whole_s = nan
        self._facts: StageJob | None = None

    def look(self, jobs: Jobs) -> None:
        """Count anew where something has changed."""
        attempt = self.app.attempt
        job = jobs.of(self.app.id)
        asked = attempt.asks.version if attempt is not None else 0
        if (attempt, job.version, asked, self.idle, self.leaving, job.sent) == self._made_of:
            return
        held = jobs.held(self.app.id)
        told = attempt is not None and job.facts_as_told(attempt) is not None
        if told:
            self._as_told(job)
        else:
            self._as_asked(attempt, job, held)
        running = sum(self._running)
        has = sum(held.values())
        self.idle = max(0, min(self.idle, has - running))
        self.leaving = max(0, min(self.leaving, has - running - self.idle))
        self.containers = max(has - self.leaving, running + self.idle)
        self._coming = self._sent(job, self.containers - running - self.idle)
        known = np.array(self._task_s)
        if np.isfinite(known).all() and len(known):
            work_s = float(np.dot(known, np.array(self._unfinished, dtype=float)))
            self._whole_s = work_s if not self._whole_s >= work_s else self._whole_s
        self._made_of = (attempt, job.version, asked, self.idle, self.leaving, dict(job.sent))
        self._facts = None

    def _as_told(self, job: Job) -> None:
        stages = {stage.priority: stage for stage in job.told}
        if any(self._known.get(p) != stage.after for p, stage in stages.items()):
            self._known.update((p, stage.after) for p, stage in stages.items())
            if len(self._known) > STAGES_MAX:
                self._known, self._seen_s = {p: stage.after for p, stage in stages.items()}, {}
            self._draw()
        elif self._graph is None or self.priorities != tuple(sorted(self._known)):
            self._draw()
        over = StageLeft(0, 0)
        rows = [stages.get(priority, over) for priority in self.priorities]
        self._unfinished = [stage.tasks for stage in rows]
        self._running = [min(stage.running, stage.tasks) for stage in rows]
        left = {p for p, stage in stages.items() if stage.tasks}
        self._is_open = [
            bool(running) or not any(before in left for before in self._known[priority])
            for priority, running in zip(self.priorities, self._running, strict=True)
        ]
        self._seen_s |= {p: stage.task_s for p, stage in stages.items() if stage.task_s is not None}
        self._task_s = [
            self._seen_s.get(priority, _number(job.estimates.get(priority))) for priority in self.priorities
        ]

    def _draw(self) -> None:
        self.priorities = tuple(sorted(self._known))
        place = {priority: at for at, priority in enumerate(self.priorities)}
        edges = [
            (place[before], place[priority])
            for priority, after in self._known.items()
            for before in after
            if before in place and before != priority
        ]
        self._graph = _graph(len(self.priorities), edges)

    def _as_asked(self, attempt: AttemptView | None, job: Job, held: Mapping[int, int]) -> None:
        pending: dict[int, int] = {}
        for ask in islice(attempt.asks, _ASKS_LOOKED_AT) if attempt is not None else ():
            if not ask.is_master:
                pending[ask.key[0]] = pending.get(ask.key[0], 0) + ask.pending
        priorities = tuple(sorted(held.keys() | {p for p, many in pending.items() if many})[:STAGES_MAX])
        if priorities != self.priorities or self._graph is None:
            self.priorities, self._known, self._seen_s = priorities, {}, {}
            self._graph = _graph(len(priorities), ())
        self._running = [held.get(priority, 0) for priority in priorities]
        self._unfinished = [pending.get(p, 0) + held.get(p, 0) for p in priorities]
        self._is_open = [True] * len(priorities)
        self._task_s = [_number(job.estimates.get(priority)) for priority in priorities]

    def _sent(self, job: Job, surplus: int) -> list[int]:
        """Return how many containers are on their way to each stage: of those sent, no more than run nothing."""
        coming = []
        for priority in self.priorities:
            many = min(job.sent.get(priority, 0), max(0, surplus))
            surplus -= many
            coming.append(many)
        job.sent = {priority: many for priority, many in zip(self.priorities, coming, strict=True) if many}
        return coming

    # ---- while a policy decides

    @property
    def facts(self) -> StageJob | None:
        """Return what a policy is told; the same object while nothing changes. None: nothing is left to do."""
        if self._graph is None or not any(self._unfinished):
            return None
        if self._facts is None:
            unfinished, running, coming = (
                np.array(counts, dtype=np.int64) for counts in (self._unfinished, self._running, self._coming)
            )
            self._facts = StageJob(
                self._graph,
                unfinished,
                running,
                np.maximum(0, unfinished - running - coming),
                coming,
                bounded_s(self._task_s, len(self._task_s)),
                np.array(self._is_open, dtype=bool),
                self.containers,
                self.idle,
                self._whole_s,
            )
        return self._facts

    def claims(self, stage: int, many: int) -> None:
        """Count containers that are about to come for a stage."""
        self._is_planned = True
        self._coming[stage] += many
        self.containers += many
        self._facts = None

    def goes_on(self, stage: int, many: int) -> None:
        """Count idle containers that go on with a stage."""
        self.idle -= many
        self._coming[stage] += many
        self._is_planned, self._facts = True, None

    def loses(self, many: int) -> None:
        """Count idle containers that go to another job."""
        self.idle -= many
        self.leaving += many
        self.containers -= many
        self._is_planned, self._facts = True, None

    def forget_plans(self) -> None:
        """Let the next look count anew what this decision has planned."""
        if self._is_planned:
            self._is_planned, self._made_of = False, None


def _graph(many: int, edges: Iterable[tuple[int, int]]) -> Graph | None:
    """Return the graph; stages that wait for each other in a circle wait for nothing. None: there are no stages."""
    if not many:
        return None
    try:
        return graph_of(many, edges)
    except ValueError:
        return graph_of(many, ())


def _number(seconds: float | None) -> float:
    return nan if seconds is None else seconds
