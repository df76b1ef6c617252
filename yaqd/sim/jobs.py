"""A job's manager in the simulation: which tasks may run, which are asked for, which are over.

It keeps what every real one keeps: stages that open when enough of what they read is done, and tasks that wait for a
container. Tasks go back when their container is lost. Who places the containers is not known here.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from math import inf
from typing import Final

from rm.scheduler.decisions import Allocate
from yaqd.model import ANY_HOST, ApplicationAttemptId, ApplicationId, ContainerId, ExecutionType, Resource
from yaqd.policies.asks.rows import AskRow
from yaqd.policies.queueing.facts import JobFacts
from yaqd.policies.queueing.means import RecentMean
from yaqd.sim.workload import SimJob, SimStage

#: priority and request id, which an allocation carries back
GroupKey = tuple[int, int]
#: priority as the workload says it, size and type
Kind = tuple[int, Resource, ExecutionType]


class ContainerRun:
    """One container of a task, from its allocation to its end."""

    __slots__ = (
        "arrived",
        "container_id",
        "duration",
        "ended",
        "group",
        "is_lost",
        "is_taken",
        "most_wait_s",
        "node",
        "stage",
        "started",
        "task",
        "waits_since",
    )

    def __init__(self, stage: "StageRun", group: "Group", task: int, container_id: ContainerId) -> None:
        self.stage = stage
        self.group = group
        #: index within the stage; -1: none yet
        self.task = task
        self.container_id = container_id
        #: what a slot of speed 1 would need, s
        self.duration = stage.durations[task] if task >= 0 else 0.0
        #: index of its node; -1 once it is over, so that what was to happen to it does not
        self.node = -1
        #: it went without having done its work
        self.is_lost = False
        #: the ResourceManager took it back, and its manager knows: what becomes of it is nobody's business any more
        self.is_taken = False
        #: how long it may wait at its node, as its token says it, s
        self.most_wait_s = inf
        self.arrived = 0.0
        #: since when its task waits at nodes that gave it up; None: it comes to the first one
        self.waits_since: float | None = None
        #: negative: its process has not begun
        self.started = -1.0
        self.ended = 0.0


class Group:
    """Tasks of a stage that are asked for alike."""

    __slots__ = ("by_host", "execution_type", "is_changed", "key", "named", "resource", "stage", "waiting")

    def __init__(self, stage: "StageRun", key: GroupKey, resource: Resource, execution_type: ExecutionType) -> None:
        self.stage = stage
        self.key = key
        self.resource = resource
        self.execution_type = execution_type
        #: tasks without a container, in order; in a plain dict the search for its first key passes all that were taken
        self.waiting: OrderedDict[int, None] = OrderedDict()
        #: those of them that prefer a host
        self.by_host: dict[str, deque[int]] = {}
        #: the ResourceManager has not been told yet
        self.is_changed = False
        #: hosts and racks that it has been told
        self.named: set[str] = set()

    def put(self, task: int) -> None:
        if self.stage.yields and not self.stage.has_input:
            self.stage.parked.append((self, task))
            return
        self.waiting[task] = None
        self.is_changed = True
        for host in self.stage.spec.tasks[task].hosts:
            self.by_host.setdefault(host, deque()).append(task)

    def take(self, host: str = ANY_HOST) -> int | None:
        """Take a task for a container on this host: one that prefers it, else the first."""
        near = self.by_host.get(host)
        while near:
            task = near.popleft()
            if task in self.waiting:
                del self.waiting[task]
                self.is_changed = True
                return task
        if not self.waiting:
            return None
        task, _ = self.waiting.popitem(last=False)
        # the rows of the hosts that it preferred are lower too
        self.is_changed = self.is_changed or (host != ANY_HOST and bool(self.by_host))
        return task

    def rows(self, given: int, rack_of: Callable[[str], str]) -> list[AskRow]:
        """Return what is wanted in all, `given` of it being on the way."""
        priority, request = self.key
        wanted = {ANY_HOST: max(0, len(self.waiting) - given)}
        if self.by_host or self.named:
            for task in self.waiting:
                hosts = self.stage.spec.tasks[task].hosts
                for name in (*hosts, *sorted({rack_of(host) for host in hosts})):
                    wanted[name] = wanted.get(name, 0) + 1
            for name in self.named - wanted.keys():
                wanted[name] = 0
            self.named = {name for name, count in wanted.items() if count}
        kind = self.execution_type
        return [AskRow(priority, request, n, self.resource, count, True, kind) for n, count in sorted(wanted.items())]


class StageRun:
    __slots__ = (
        "after",
        "before",
        "done",
        "durations",
        "error",
        "estimate",
        "groups",
        "held",
        "is_open",
        "job",
        "launched",
        "parked",
        "readers",
        "seen",
        "spec",
        "told",
        "yields",
    )

    def __init__(self, job: "JobRun", spec: SimStage, index: int, durations: list[float]) -> None:
        self.job = job
        self.spec = spec
        self.durations = durations
        self.after = [job.stages[before] for before in spec.after]
        #: stages that read its output
        self.readers: list[StageRun] = []
        for before in self.after:
            before.readers.append(self)
        self.is_open = False
        self.done = 0
        #: mean duration of a task as far as anybody knows, s
        self.estimate: float | None = None
        #: how many times too high what is believed of it is
        self.error = 1.0
        #: where estimates are made by a live policy: what earlier runs say, what this one has seen, and what was told
        #: of it last, s
        self.before: float | None = None
        self.seen: RecentMean | None = None
        self.told: float | None = None
        #: tasks that have a process, or had one and are over
        self.launched = 0
        #: containers whose process waits for the output of other stages
        self.held: list[ContainerRun] = []
        #: it gave containers up to the stages that it reads, and asks again when those are over
        self.yields = False
        #: what it asks for then
        self.parked: list[tuple[Group, int]] = []
        self.groups = _groups(self, index)

    @property
    def is_over(self) -> bool:
        return self.done == len(self.durations)

    @property
    def has_input(self) -> bool:
        return all(before.is_over for before in self.after)

    @property
    def input_waits(self) -> bool:
        """Some task that it reads from has no process."""
        return any(before.launched < len(before.durations) for before in self.after)

    def give_way(self) -> None:
        """Ask for nothing until there is input."""
        self.yields = True
        for group in self.groups.values():
            if group.waiting:
                self.parked += [(group, task) for task in group.waiting]
                group.waiting.clear()
                group.by_host.clear()
                group.is_changed = True

    def ask_again(self) -> bool:
        """Ask again for what the stage gave up. Returns True when there was something."""
        parked, self.parked = self.parked, []
        for group, task in parked:
            group.put(task)
        return bool(parked)

    def may_open(self) -> bool:
        done = sum(before.done for before in self.after)
        return done >= self.spec.start_at * sum([len(before.durations) for before in self.after])

    def open(self) -> None:
        self.is_open = True
        groups = self.groups
        if len(groups) == 1 and not any(task.hosts for task in self.spec.tasks):
            (group,) = groups.values()
            group.waiting = OrderedDict.fromkeys(range(len(self.spec.tasks)))
            group.is_changed = True
            return
        for task in range(len(self.spec.tasks)):
            groups[self.kind(task)].put(task)

    def kind(self, task: int) -> Kind:
        """Return what must be the same for tasks to be asked for alike."""
        spec = self.spec.tasks[task]
        opportunistic = task < self.job.opportunistic_share * len(self.spec.tasks)
        return spec.priority, spec.resource, ExecutionType.OPPORTUNISTIC if opportunistic else ExecutionType.GUARANTEED


def _groups(stage: StageRun, index: int) -> dict[Kind, Group]:
    """Where one priority has several kinds they differ by request id."""
    groups: dict[Kind, Group] = {}
    for task, spec in enumerate(stage.spec.tasks):
        kind = stage.kind(task)
        if kind not in groups:
            priority = spec.priority or index + 1
            key = (priority, -1)
            while key in stage.job.groups:
                key = (priority, key[1] + 1)
            groups[kind] = stage.job.groups[key] = Group(stage, key, spec.resource, kind[2])
    return groups


class JobRun:
    """One job while it is in the cluster."""

    def __init__(
        self, index: int, spec: SimJob, durations: list[list[float]], *, opportunistic_share: float = 0.0
    ) -> None:
        """`durations`: of each stage's tasks on a slot of speed 1, s."""
        self.opportunistic_share: Final = opportunistic_share
        self.index: Final = index
        self.spec: Final = spec
        self.id: Final = ApplicationId(1, index + 1)
        self.attempt_id: Final = ApplicationAttemptId(self.id, 1)
        self.groups: dict[GroupKey, Group] = {}
        self.stages: list[StageRun] = []
        for number, stage in enumerate(spec.stages):
            self.stages.append(StageRun(self, stage, number, durations[number]))
        self.tasks: Final = spec.tasks
        #: tasks that are over
        self.done = 0
        #: let in at, s; negative: it is not
        self.started = -1.0
        self.first_run = -1.0
        #: its last process ended
        self.last_end = -1.0
        #: stages with tasks that are done, of which its manager has not heard; values mean nothing
        self.unheard: dict[StageRun, None] = {}
        #: containers that were given and are not over
        self.holds = 0
        #: what the ResourceManager has for its manager's next poll
        self.inbox: list[Allocate] = []
        #: tasks whose containers went, as its manager learns at its next poll
        self.lost: list[tuple[Group, int]] = []
        #: time of the poll that is due; negative: none is
        self.poll_due = -1.0

    @property
    def is_over(self) -> bool:
        return self.done == self.tasks

    def open_ready(self) -> bool:
        """Open the stages that may be; True when there was one."""
        opened = False
        for stage in self.stages:
            if not stage.is_open and stage.may_open():
                stage.open()
                opened = True
        return opened

    def facts(self) -> JobFacts:
        """Return what is left of the job, by the estimates that there are."""
        work: float | None = 0.0
        for stage in self.stages:
            left = len(stage.durations) - stage.done
            if left:
                work = None if work is None or stage.estimate is None else work + left * stage.estimate
        return JobFacts(work, self.tasks - self.done, self._critical_path())

    def _critical_path(self) -> float | None:
        longest: dict[int, float] = {}
        for stage in self.stages:
            if not stage.is_over and stage.estimate is None:
                return None
            own = 0.0 if stage.is_over else stage.estimate or 0.0
            longest[id(stage)] = own + max((longest[id(before)] for before in stage.after), default=0.0)
        return max(longest.values(), default=0.0)
