"""The live scheduler and the live job machines in simulated time: what a cluster does, without processes and network.

Messages take no time. A container starts its first task after a move. A master tells what is left as ours do.
"""

import math
import statistics
from base64 import b64encode
from collections.abc import Callable, Sequence
from functools import partial
from heapq import heappop, heappush

from rm.scheduler.asks.job_starvation import JobStarvation
from rm.scheduler.decisions import Allocate, Outcome, StagesOrdered
from rm.scheduler.events import Asked, AttemptEnded, ContainerEnded, LeftTold, NodeBeat, NodeJoined, StagesDue
from rm.scheduler.stages.spec import StagesSpec
from rm.scheduler.view.calculators import AllocationBounds
from tests.rm.rm_world import ONE_QUEUE, SLOT, World, queues, row
from tests.tez_adapter.tez_driver import SMALL
from tez_adapter.core import events as ev
from tez_adapter.core.dag import DagSpec, EdgeSpec, VertexSpec
from tez_adapter.core.machine import JobMachine
from yaqd.config.stage_weights import shipped_weights
from yaqd.model import ApplicationAttemptId, ContainerId, NodeId
from yaqd.policies.clotho.policies import LEARNED

#: tasks, stages read, and how long each task runs in the order in which they start, s
Stage = tuple[int, list[int], list[float]]

_NODE = NodeId("a", 1)
_QUEUE = ONE_QUEUE | {
    "root.default.user-limit-factor": "100",
    "root.default.ordering-policy": "clotho",
    "maximum-am-resource-percent": "1.0",
}
_TOLD_EVERY_S = 0.1


class LiveJob:
    """A job's machine, and what the ResourceManager was told of it."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        vertices = [
            VertexSpec(f"v{at}", tasks, SMALL, 10 + 10 * at, task_s=statistics.fmean(seconds))
            for at, (tasks, _, seconds) in enumerate(stages)
        ]
        edges = [EdgeSpec(read, at, 1.0) for at, (_, reads, _) in enumerate(stages) for read in reads]
        self.machine = JobMachine(DagSpec(tuple(vertices), tuple(edges)))
        self.seconds = [iter(seconds) for _, _, seconds in stages]
        self.ended_s: float | None = None
        self.asked: dict[int, int] = {}
        self.told: tuple[int, object] | None = None
        self.told_at = 0.0
        self.containers: dict[str, ContainerId] = {}


class LiveStages(World):
    """One node, and one queue that decides by stages, without a guard. All jobs have asked when the node joins."""

    def __init__(self, policy: str, jobs: Sequence[Sequence[Stage]], slots: int, move_s: float) -> None:
        weights = b64encode(shipped_weights()).decode() if policy == LEARNED else ""
        spec = StagesSpec(policy, weights, 0.0, move_s)
        bounds, nobody = AllocationBounds(SLOT, SLOT * 4), JobStarvation(math.inf, math.inf, math.inf)
        super().__init__(queues(_QUEUE), bounds=bounds, validates=False, stages=spec, job_starvation=nobody)
        self._move_s = move_s
        self._events: list[tuple[float, int, Callable[[], object]]] = []
        self._serial = 0
        self.jobs = {self.begin(): LiveJob(stages) for stages in jobs}
        for attempt in self.jobs:
            self._sync(attempt)
        self.tell(NodeJoined(_NODE, "/r", SLOT * slots))
        self._beat()
        while self._events and any(job.ended_s is None for job in self.jobs.values()):
            self.now, _, happens = heappop(self._events)
            happens()
            if (due := self.scheduler.facts.stages_due_at) is not None:
                self._at(due - self.now, partial(self.tell, StagesDue()))

    def mean_s(self) -> float:
        """Return the mean time until a job's end."""
        return statistics.fmean(job.ended_s for job in self.jobs.values() if job.ended_s is not None)

    def _at(self, after_s: float, happens: Callable[[], object]) -> None:
        self._serial += 1
        heappush(self._events, (self.now + max(0.0, after_s), self._serial, happens))

    def _beat(self) -> None:
        self.tell(NodeBeat(_NODE))
        self._at(1.0, self._beat)

    # ---- the ResourceManager's word

    def follow(self, decision: Outcome) -> None:
        super().follow(decision)
        if isinstance(decision, Allocate):
            attempt, name = decision.container_id.attempt_id, str(decision.container_id)
            self.jobs[attempt].containers[name] = decision.container_id
            came = ev.ContainerAllocated(name, "a:1", "a", SMALL, decision.priority)
            self._at(0.0, partial(self._handle, attempt, came))
        elif isinstance(decision, StagesOrdered):
            self._at(0.0, partial(self._handle, decision.attempt_id, ev.StagesOrdered(decision.order)))

    # ---- the masters' word

    def _handle(self, attempt: ApplicationAttemptId, event: ev.Event) -> None:
        job = self.jobs[attempt]
        if job.ended_s is not None:
            return
        for decision in job.machine.handle(event, self.now):
            self._carry_out(attempt, job, decision)
        if job.ended_s is None:
            self._sync(attempt)

    def _carry_out(self, attempt: ApplicationAttemptId, job: LiveJob, decision: ev.Decision) -> None:
        match decision:
            case ev.Launch(container):
                self._at(self._move_s, partial(self._handle, attempt, ev.TaskRequested(container)))
            case ev.GiveTask(_, given):
                ends = partial(self._handle, attempt, ev.AttemptSucceeded(given))
                self._at(next(job.seconds[given.vertex]), ends)
            case ev.Release(container) | ev.Stop(container) | ev.GiveExit(container):
                if (container_id := job.containers.pop(container, None)) is not None:
                    self._at(0.0, partial(self._gone, attempt, container, container_id))
            case ev.Finish():
                job.ended_s = self.now
                self.tell(AttemptEnded(attempt))
                for container_id in job.containers.values():
                    self.tell(ContainerEnded(container_id))

    def _gone(self, attempt: ApplicationAttemptId, container: str, container_id: ContainerId) -> None:
        self.tell(ContainerEnded(container_id))
        self._handle(attempt, ev.ContainerCompleted(container, 0))

    def _sync(self, attempt: ApplicationAttemptId) -> None:
        """Ask for what is wanted now, and tell what is left."""
        job = self.jobs[attempt]
        wants = {ask.priority: ask.count for ask in job.machine.asks()}
        changed = {p: wants.get(p, 0) for p in wants | job.asked if wants.get(p) != job.asked.get(p)}
        job.asked = wants
        if changed:
            self.tell(Asked(attempt, tuple(row(count=many, priority=p) for p, many in changed.items()), ()))
        told = job.machine.held.undecided(), [(vertex.done, len(vertex.running)) for vertex in job.machine.vertices]
        is_urgent = job.told is None or told[0] != job.told[0]
        if is_urgent or (told != job.told and self.now - job.told_at >= _TOLD_EVERY_S):
            job.told, job.told_at = told, self.now
            self.tell(LeftTold(attempt, tuple(job.machine.left(self.now)), told[0]))
