"""A plain simulator of graphs of stages: the rules of the compiled one, with policy objects.

An executor (container) stays until its stage has no task to start. Then a policy decides where it goes: to a stage of
its job, at once or once that opens; or to another job, after a move. Tasks draw their durations when they start.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final

import numpy as np

from yaqd.policies.clotho.facts import Graph, Scene, StageChoice, StageJob, StagePolicy, graph_of
from yaqd.sim.stages.draws import point_of, uniform
from yaqd.sim.stages.rules import DECIMA, Finished, Rules
from yaqd.sim.workloads.graphs import FIRST, FRESH, REST, GraphLoad


@dataclass(slots=True)
class _RunStage:
    #: over all jobs; and in the set of graphs
    number: int
    source: int
    tasks: int
    est_s: float
    children: list[int]
    waits: int
    started: int = 0
    ended: int = 0
    coming: int = 0
    held: int = 0

    @property
    def unclaimed(self) -> int:
        """Tasks that no container runs, goes to or waits for."""
        return max(0, self.tasks - self.started - self.coming - self.held)


@dataclass(slots=True)
class _RunJob:
    number: int
    graph: Graph
    stages: list[_RunStage]
    whole_s: float
    stages_left: int
    here: int = 0
    on_way: int = 0
    idle: int = 0
    held: int = 0
    fresh: int = 0
    facts: StageJob | None = None

    def waits_in_vain(self, stage: _RunStage) -> bool:
        """Return whether a stage waits for one with tasks that nobody has claimed any more.

        They were when the container went there. Since then others were let go.
        """
        place = stage.number - self.stages[0].number
        return any(place in one.children and one.unclaimed > 0 for one in self.stages)

    def told(self) -> StageJob:
        """Return the job's facts; the same object while nothing changes."""
        if self.facts is None:
            stages = self.stages
            unclaimed = [one.unclaimed for one in stages]
            self.facts = StageJob(
                self.graph,
                np.array([one.tasks - one.ended for one in stages]),
                np.array([one.started - one.ended for one in stages]),
                np.array(unclaimed),
                np.array([one.coming + one.held for one in stages]),
                np.array([one.est_s for one in stages]),
                np.array([one.waits == 0 for one in stages]),
                self.here + self.on_way,
                self.idle + self.held,
                self.whole_s,
            )
        return self.facts


@dataclass(slots=True)
class _Log:
    #: source job or -1, stage over all jobs, containers
    decisions: list[tuple[int, int, int]] = field(default_factory=list)
    many: int = 0


#: hears of each task as it starts: its job, when it begins and when it ends, s
Watch = Callable[[int, float, float], None]


def run_load(
    load: GraphLoad, policy: StagePolicy, rules: Rules = DECIMA, trace: int = 0, watch: Watch = lambda *task: None
) -> Finished:
    """Run a load under a policy. Raises ValueError where the policy leaves jobs without containers for ever."""
    return _World(load, policy, rules, trace, watch).to_the_end()


class _World:
    def __init__(self, load: GraphLoad, policy: StagePolicy, rules: Rules, trace: int, watch: Watch) -> None:
        self._watch = watch
        self._load, self._policy, self._rules, self._trace = load, policy, rules, trace
        self._jobs = list(_jobs(load))
        self._owner = [job for job in self._jobs for _ in job.stages]
        self._stage = [stage for job in self._jobs for stage in job.stages]
        self._active: list[_RunJob] = []
        self._free = rules.slots
        #: (when, serial, stage over all jobs, whether a container arrives)
        self._events: list[tuple[float, int, int, bool]] = []
        self._serial = 0
        self._done_s = np.full(len(load), np.nan)
        self._tasks = 0
        self._log: Final = _Log()
        self._now = 0.0

    def to_the_end(self) -> Finished:
        """Return what came of it."""
        coming = list(reversed(self._jobs))
        arrive_s = self._load.arrive_s.tolist()
        while coming or self._events:
            times = [self._events[0][0]] if self._events else []
            if coming:
                times.append(arrive_s[coming[-1].number])
            self._now = min(times)
            asks = False
            while coming and arrive_s[coming[-1].number] == self._now:
                self._active.append(coming.pop())
                asks = True
            while self._events and self._events[0][0] == self._now:
                _, _, number, is_arrival = heappop(self._events)
                stage, job = self._stage[number], self._owner[number]
                asks = (self._arrive(job, stage) if is_arrival else self._end_task(job, stage)) or asks
            if asks:
                self._decide()
        if self._active:
            raise ValueError(f"{len(self._active)} jobs never end: the policy gives them no container")
        took = self._done_s - self._load.arrive_s
        trace = np.array(self._log.decisions, dtype=np.int64).reshape(-1, 3)
        return Finished(took, float(self._done_s.max()), self._log.many, self._tasks, trace)

    # ------------------------------------------------------------------------------------------ events

    def _push(self, when_s: float, stage: _RunStage, is_arrival: bool) -> None:
        heappush(self._events, (when_s, self._serial, stage.number, is_arrival))
        self._serial += 1

    def _start(self, job: _RunJob, stage: _RunStage, kind: int) -> None:
        graphs, seed = self._load.graphs, self._load.seed
        point = point_of(job.here, uniform(seed, stage.number, stage.started, 0))
        place = (stage.source, point, kind)
        many = int(graphs.wave_len[place])
        pick = min(many - 1, int(uniform(seed, stage.number, stage.started, 1) * many))
        took_s = float(graphs.values[int(graphs.wave_at[place]) + pick])
        if graphs.is_cold[place]:
            took_s += self._rules.warm_s
        self._push(self._now + took_s, stage, False)
        self._watch(job.number, self._now, self._now + took_s)
        stage.started += 1
        self._tasks += 1
        job.facts = None

    def _end_task(self, job: _RunJob, stage: _RunStage) -> bool:
        stage.ended += 1
        job.facts = None
        asks = stage.started == stage.tasks
        if asks:
            job.idle += 1
        else:
            self._start(job, stage, REST)
        if stage.ended == stage.tasks:
            self._end_stage(job, stage)
            asks = True
        return asks

    def _end_stage(self, job: _RunJob, stage: _RunStage) -> None:
        opens = False
        for number in stage.children:
            child = job.stages[number]
            child.waits -= 1
            opens = opens or not child.waits
        job.stages_left -= 1
        if not job.stages_left:
            self._done_s[job.number] = self._now
            self._free += job.idle + job.held
            job.here -= job.idle + job.held
            job.idle = job.held = job.fresh = 0
            self._active.remove(job)
        elif opens:
            self._release(job)

    @staticmethod
    def _release(job: _RunJob) -> None:
        """Let containers that wait for stages be decided on again."""
        job.idle += job.held
        job.held = 0
        for one in job.stages:
            one.held = 0
        job.facts = None

    def _arrive(self, job: _RunJob, stage: _RunStage) -> bool:
        stage.coming -= 1
        job.on_way -= 1
        if not job.stages_left:
            self._free += 1
            return True
        job.here += 1
        job.facts = None
        if stage.started == stage.tasks:
            job.idle += 1
            job.fresh += 1
            return True
        if not stage.waits:
            self._start(job, stage, FRESH)
            return False
        job.fresh += 1
        if job.waits_in_vain(stage):
            job.idle += 1
            self._release(job)
            return True
        job.held += 1
        stage.held += 1
        return False

    # ------------------------------------------------------------------------------------------ decisions

    def _decide(self) -> None:
        for place in range(-1, len(self._active)):
            while free := self._free if place < 0 else self._active[place].idle:
                jobs = tuple(job.told() for job in self._active)
                if not jobs:
                    return
                scene = Scene(jobs, self._rules.slots, self._rules.move_s, place, free)
                choice = self._policy.choose(scene)
                if choice is None:
                    break
                self._give(place, choice)

    def _give(self, place: int, choice: StageChoice) -> None:
        job = self._active[choice.job]
        stage, many = job.stages[choice.stage], choice.containers
        self._log.many += 1
        if len(self._log.decisions) < self._trace:
            self._log.decisions.append((-1 if place < 0 else self._active[place].number, stage.number, many))
        job.facts = None
        if place == choice.job:
            self._give_own(job, stage, many)
            return
        if place < 0:
            self._free -= many
        else:
            left = self._active[place]
            left.idle -= many
            left.here -= many
            left.fresh = min(left.fresh, left.idle + left.held)
            left.facts = None
        stage.coming += many
        job.on_way += many
        for _ in range(many):
            self._push(self._now + self._rules.move_s, stage, True)

    def _give_own(self, job: _RunJob, stage: _RunStage, many: int) -> None:
        job.idle -= many
        if stage.waits:
            job.held += many
            stage.held += many
            return
        for left in range(many - 1, -1, -1):
            kind = FIRST
            if job.idle + job.held + left < job.fresh:
                job.fresh -= 1
                kind = FRESH
            self._start(job, stage, kind)


def _jobs(load: GraphLoad) -> Iterator[_RunJob]:
    """Lay out the jobs of a load. Raises ValueError where stages wait for each other in a circle."""
    graphs, begin = load.graphs, 0
    known: dict[int, Graph] = {}
    for number, graph in enumerate(load.graph.tolist()):
        rows = graphs.rows(graph)
        sources = range(rows.start, rows.stop)
        children = [graphs.child[graphs.child_at[one] : graphs.child_at[one + 1]].tolist() for one in sources]
        if graph not in known:
            known[graph] = graph_of(len(children), ((a, b) for a, found in enumerate(children) for b in found))
        stages = [
            _RunStage(
                begin + at,
                source,
                int(graphs.tasks[source]),
                float(graphs.mean_s[source] * load.error[begin + at]),
                children[at],
                int(graphs.waits[source]),
            )
            for at, source in enumerate(sources)
        ]
        tasks = np.array([one.tasks for one in stages])
        whole_s = np.add.reduceat(tasks * np.array([one.est_s for one in stages]), [0])
        yield _RunJob(number, known[graph], stages, float(whole_s[0]), len(stages))
        begin += len(stages)
