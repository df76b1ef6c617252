"""What the machine remembers of tasks, attempts, containers and vertices. Only the machine writes here."""

import math
from dataclasses import dataclass, field
from typing import Final

from tez_adapter.core.dag import AttemptId, TaskId, VertexSpec
from tez_adapter.core.pending import PendingTasks
from tez_adapter.core.states import AttemptState, ContainerState, TaskState
from yaqd.model import Resource
from yaqd.policies.queueing.means import RecentMean

#: attempts whose durations count alike for what a vertex's tasks take
_RUNS_REMEMBERED: Final = 64


@dataclass(slots=True)
class Attempt:
    id: AttemptId
    container: str
    node: str
    host: str
    #: seconds on the caller's clock
    started: float
    #: when its task last moved; its time-out counts from here
    moved: float
    #: when its process last said anything at all
    heard: float = 0.0
    #: when its process took its task up; until then its container waited or was prepared
    began: float | None = None
    state: AttemptState = AttemptState.ASSIGNED
    progress: float = 0.0
    finished: float | None = None
    #: for a finished command its exit status, else None
    exit_status: int | None = None
    error: str = ""
    #: it failed because nobody could reach it or its output: no fault of its own, should its node prove lost
    out_of_reach: bool = False

    @property
    def live(self) -> bool:
        return self.state in (AttemptState.ASSIGNED, AttemptState.RUNNING, AttemptState.COMMITTING)


@dataclass(slots=True)
class Task:
    id: TaskId
    state: TaskState = TaskState.WAITING
    attempts: list[Attempt] = field(default_factory=list)
    #: attempts that count against the vertex's max_attempts
    failures: int = 0
    #: containers in a row that could not be started for want of room on a disk
    disk_failures: int = 0
    #: containers in a row that nodes did not take at the time
    refusals: int = 0
    #: reports of failed fetches of the present output
    fetch_failures: int = 0

    @property
    def last(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts else None


@dataclass(slots=True)
class Container:
    id: str
    node: str
    host: str
    resource: Resource
    #: started for a vertex whose processes ask for more than one task
    reusable: bool
    #: when it was granted, seconds on the caller's clock
    held_since: float
    state: ContainerState = ContainerState.STARTING
    attempt: Attempt | None = None
    idle_since: float = 0.0
    #: of its last attempt, by index
    vertex: int = -1
    #: by index: whose tasks it takes once they may start, as the ResourceManager said; None: it has said none
    meant_for: int | None = None
    #: while it is idle: since when it waits for that
    undecided_since: float = 0.0
    #: when its node was last asked whether it waits there, and when it said so
    asked_at: float = 0.0
    waited_at: float = -math.inf
    #: may be an opportunistic one
    spare: bool = False
    #: its process has been given one
    had_task: bool = False
    #: how often in a row its task had found no room on disks when it was fetched
    disk_failures_before: int = 0

    def may_go_on_with(self, vertex: "Vertex") -> bool:
        return vertex.spec.reusable and may_run(vertex.spec, spare=self.spare)


def may_run(spec: VertexSpec, *, spare: bool) -> bool:
    """Return whether the vertex's tasks may run in such a container. An opportunistic one is `spare`.

    Only tasks that were asked for so run in opportunistic containers. A reduce in one is ended for any guaranteed
    container, and holds room that the job's own queued maps wait for.
    """
    return spec.opportunistic > 0 or not spare


@dataclass(frozen=True, slots=True)
class Completion:
    """One entry of a vertex's list of outputs, in the order they came and went."""

    attempt: AttemptId
    node: str
    host: str
    #: False: an output announced before is gone
    available: bool
    #: name of the merged file at the node that has it; "" for its own
    merged: str = ""
    #: of several that an attempt leaves, which one; -1: all of them
    channel: int = -1


class Vertex:
    def __init__(self, index: int, spec: VertexSpec) -> None:
        self.index = index
        self.spec = spec
        self.tasks = [Task(TaskId(index, i)) for i in range(spec.tasks)]
        self.pending = PendingTasks(spec.hosts)
        #: so many of its tasks may run
        self.limit = spec.tasks
        #: tasks that are SUCCEEDED
        self.done = 0
        #: tasks that failed for good, and that the job does without
        self.given_up = 0
        #: attempts alive now
        self.running: dict[AttemptId, Attempt] = {}
        #: its tasks left WAITING
        self.ready = False
        #: hosts where a task failed, by task index
        self.failed_on: dict[int, set[str]] = {}
        #: its outputs, and those of all that it reads from, in the order they came and went
        self.completions: list[Completion] = []
        self.readable: list[Completion] = []
        #: attempts by how they ended
        self.ended = dict.fromkeys((AttemptState.SUCCEEDED, AttemptState.FAILED, AttemptState.KILLED), 0)
        #: how long attempts ran that succeeded, where their processes said when they began, s
        self.runs = RecentMean(_RUNS_REMEMBERED)
        #: since when it has waited without any container; None while it need not
        self.starved_since: float | None = None

    @property
    def complete(self) -> bool:
        """Whether the job need not wait for it."""
        return self.spec.serves or self.over == self.spec.tasks

    @property
    def over(self) -> int:
        """Tasks that are not to run again, as far as can be told."""
        return self.done + self.given_up

    def progress(self) -> float:
        """Return the progress over all tasks, 0..1."""
        if not self.spec.tasks:
            return 1.0
        return (self.over + sum(a.progress for a in self.running.values())) / self.spec.tasks
