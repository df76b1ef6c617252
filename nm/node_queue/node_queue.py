"""The queue between accepting a container and launching it: pure, events in, decisions out.

Two lines. A guaranteed container starts when it is the first of its line and fits in what is free; an opportunistic one
when besides that no guaranteed one waits. Where running opportunistic containers stand in the way of guaranteed ones
they are ended, the youngest first, and count as good as gone from then on. Both lines are bounded, and what does not
fit in its line is refused at once rather than kept waiting. A container larger than the whole node starts when the
node is empty: the scheduler granted it, and waiting would be for ever.

The first of a line is the first that came, as in Hadoop's ContainerScheduler. Where the ResourceManager fills the queue
on purpose (`NodeQueueSettings.enabled`, after Yaq) it is whom the ordering picks, application masters start at once
even beyond what is free (and room can be kept for them beforehand, `nm.node_queue.expected`), and a container that
waits too long is refused so that it is placed elsewhere.
Neither clock nor identifiers are made here, so the simulator drives the same object.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import Enum, auto

from nm.node_queue.events import (
    Arrived,
    Began,
    CapacityChanged,
    Decision,
    Ended,
    EstimateChanged,
    Event,
    JobReport,
    JobsReported,
    Launch,
    MastersExpected,
    NodeQueueStatistics,
    OpportunisticLimit,
    Preempt,
    Refuse,
    SettingsChanged,
    Tick,
    Updated,
)
from nm.node_queue.expected import ExpectedMasters
from nm.node_queue.held import NONE_HELD, HeldStarts
from nm.node_queue.jobs import Jobs
from nm.node_queue.order import first_of, in_order
from nm.node_queue.patience import due, goes_back, is_late, late_first, why_back
from nm.node_queue.running import Running, in_the_way, running_tasks
from nm.node_queue.settings import NodeQueueSettings
from nm.node_queue.snapshot import NodeQueueSnapshot, snapshot
from nm.node_queue.words import DEQUEUED, MAKE_ROOM, QUEUE_FULL
from yaqd.model import ApplicationId, ContainerId, ExecutionType, ExitStatus, Resource
from yaqd.policies.queueing import limits
from yaqd.policies.queueing.facts import QueuedTask, RunningTask, TaskFacts
from yaqd.policies.queueing.order import Ordering
from yaqd.policies.queueing.wait import WAITS, wait_estimate


class OpportunisticPolicy(Enum):
    """When an opportunistic container may wait (`yarn.nodemanager.opportunistic-containers-queue-policy`)."""

    #: as long as fewer than the limit wait
    BY_QUEUE_LEN = auto()
    #: as long as everything here, waiting or running, fits in the node at once
    BY_RESOURCES = auto()


class NodeQueue:
    """Invariants: a container is in one of both lines or running; used is the sum over the running ones."""

    def __init__(
        self,
        capacity: Resource,
        *,
        max_length: int,
        by_resources: bool = True,
        opportunistic_max: int = 0,
        policy: OpportunisticPolicy = OpportunisticPolicy.BY_QUEUE_LEN,
        settings: NodeQueueSettings = NodeQueueSettings(),
        wait: str = "resources",
        smallest: Resource = Resource(),
    ) -> None:
        """`max_length` bounds the guaranteed line, `opportunistic_max` the other; 0 there refuses all of its kind.
        `wait` is a name in WAITS (UnknownPolicy otherwise). `smallest`: what any container is granted at least."""
        self._capacity = capacity
        self._max_length = max_length
        #: False launches guaranteed containers whatever memory and cores are free, as a stock NodeManager does
        self._by_resources = by_resources
        self._opportunistic_max = opportunistic_max
        self._policy = policy
        self._settings = settings
        #: how long a newcomer would wait
        self._estimate = WAITS[wait]
        self._jobs = Jobs()
        #: each in the order of arrival
        self._lines: dict[ExecutionType, dict[ContainerId, QueuedTask]] = {kind: {} for kind in ExecutionType}
        #: application masters that wait: for the ResourceManager's orders to come, or for devices
        self._waiting_masters: dict[ContainerId, None] = {}
        self._expected = ExpectedMasters()
        #: in the order of their start
        self._running: dict[ContainerId, Running] = {}
        #: some container needs no memory or no core, so it fits where all of that is taken
        self._some_need_nothing = False
        self._used = Resource()
        #: those of the running ones that were told to make room
        self._leaving: set[ContainerId] = set()
        self._opportunistic_running = 0
        #: size of the last task that came: what a newcomer is taken to need. Before the first one it is the smallest:
        #: what needs nothing would find room on a full node
        self._usual = smallest

    def handle(self, event: Event, now: float) -> list[Decision]:
        """The only entry; `now` in seconds."""
        match event:
            case Arrived():
                return list(self._arrived(event, now))
            case Ended():
                self._remove(event.container_id)
                if not self._opportunistic_running and not any(self._lines.values()):
                    return []
            case Began(container_id):
                if (held := self._running.get(container_id)) is not None:
                    self._running[container_id] = held._replace(task=replace(held.task, since=now))
                return []
            case Updated():
                self._update(event)
            case CapacityChanged(capacity):
                self._capacity = capacity
            case OpportunisticLimit(max_length):
                if max_length < 0:
                    return []
                return list(self._shed(ExecutionType.OPPORTUNISTIC, max_length, now))
            case SettingsChanged(settings):
                self._settings = settings
                return [*self._settle(now), *self._shed_all(now)]
            case EstimateChanged(wait):
                self._estimate = WAITS[wait]
                return []
            case JobsReported(jobs):
                self._hear(jobs)
            case MastersExpected(rooms):
                self._expected.expect(rooms)
            case Tick():
                return [*self._give_back(now), *self._settle(now)]
        return list(self._settle(now))

    def next_tick(self) -> float | None:
        """When a Tick has something to do, if nothing else happens before; None: never."""
        if not self._settings.enabled:
            return None
        waiting = goes_back(self._lines, self._waiting_masters, self._settings.max_wait_s)
        first = min((due(task, most_s) for task, most_s in waiting), default=math.inf)
        return first if first < math.inf else None

    # Events -----------------------------------------------------------------------------------------------------------

    def _arrived(self, event: Arrived, now: float) -> Iterator[Decision]:
        container_id, kind = event.container_id, event.execution_type
        if container_id in self._running:
            return
        for line in self._lines.values():
            if line and container_id in line:
                return
        line = self._lines[kind]
        if kind is ExecutionType.OPPORTUNISTIC and not self._may_wait(event.resource):
            yield Refuse(container_id, ExitStatus.KILLED_BY_CONTAINER_SCHEDULER, QUEUE_FULL)
            return
        facts = self._jobs.revised(event.facts or TaskFacts(container_id.application_id))
        self._note_size(event.resource)
        since = now - facts.waited_s if 0.0 <= facts.waited_s <= limits.LONGEST_S else now
        line[container_id] = QueuedTask(container_id, event.resource, facts, since, came=now)
        if event.is_master:
            self._waiting_masters[container_id] = None
            self._expected.came(container_id)
        else:
            self._usual = event.resource
        yield from self._launch_ready(now)
        bound = self._max_waiting()
        if container_id in line and kind is ExecutionType.GUARANTEED and len(line) > bound and not event.is_master:
            del line[container_id]
            reason = f"Container refused: the node's queue is full ({bound} containers wait)."
            yield Refuse(container_id, ExitStatus.PREEMPTED, reason)
        elif self._opportunistic_running:
            yield from self._make_room()

    def _note_size(self, resource: Resource) -> None:
        if resource.memory_mb <= 0 or resource.vcores <= 0:
            self._some_need_nothing = True

    def _max_waiting(self) -> int:
        if not self._settings.enabled:
            return self._max_length
        return min(self._max_length, self._settings.hard_bound)

    def _may_wait(self, newcomer: Resource) -> bool:
        if self._policy is OpportunisticPolicy.BY_RESOURCES:
            wanted = self._used + newcomer
            for line in self._lines.values():
                for waiting in line.values():
                    wanted += waiting.resource
            return wanted.fits_in(self._capacity)
        return len(self._lines[ExecutionType.OPPORTUNISTIC]) < self._opportunistic_bound()

    def _opportunistic_bound(self) -> int:
        """A ResourceManager that has us queue means both kinds."""
        settings = self._settings
        return max(self._opportunistic_max, settings.max_queued) if settings.enabled else self._opportunistic_max

    def _remove(self, container_id: ContainerId) -> None:
        for line in self._lines.values():
            line.pop(container_id, None)
        self._waiting_masters.pop(container_id, None)
        self._expected.gone(container_id)
        held = self._running.pop(container_id, None)
        if held is not None:
            self._used -= held.task.resource
            if self._leaving:
                self._leaving.discard(container_id)
            self._opportunistic_running -= held.is_opportunistic

    def _update(self, event: Updated) -> None:
        container_id, resource, kind = event.container_id, event.resource, event.execution_type
        self._note_size(resource)
        held = self._running.get(container_id)
        if held is not None:
            self._running[container_id] = now = Running(replace(held.task, resource=resource), kind)
            self._used = self._used - held.task.resource + resource
            self._opportunistic_running += now.is_opportunistic - held.is_opportunistic
            return
        for before, line in self._lines.items():
            if container_id in line:
                waiting = replace(line[container_id], resource=resource)
                if before is not kind:
                    del line[container_id]
                self._lines[kind][container_id] = waiting
                return

    def _shed_all(self, now: float) -> Iterator[Decision]:
        """What waits beyond other bounds than before."""
        if self._settings.enabled:
            yield from self._shed(ExecutionType.GUARANTEED, self._max_waiting(), now)
            if self._policy is OpportunisticPolicy.BY_QUEUE_LEN:
                yield from self._shed(ExecutionType.OPPORTUNISTIC, self._opportunistic_bound(), now)

    def _shed(self, kind: ExecutionType, max_length: int, now: float) -> Iterator[Decision]:
        """Ends the last of the line beyond so many, as the line would start: masters never, if they are guaranteed."""
        line = self._lines[kind]
        if len(line) <= max_length:
            return
        is_spare = kind is ExecutionType.OPPORTUNISTIC
        status = ExitStatus.KILLED_BY_CONTAINER_SCHEDULER if is_spare else ExitStatus.PREEMPTED
        for container_id in [task.container_id for task in self._in_order(kind, now)[max_length:]]:
            if is_spare or container_id not in self._waiting_masters:
                del line[container_id]
                self._waiting_masters.pop(container_id, None)
                yield Refuse(container_id, status, DEQUEUED)

    def _in_order(self, kind: ExecutionType, now: float) -> list[QueuedTask]:
        """The line as it would start if nothing changed."""
        ordered = in_order(self._lines[kind].values(), self._ordering(kind), self._jobs.facts, now)
        return late_first(ordered, now) if self._settings.enabled else ordered

    def _hear(self, reports: tuple[JobReport, ...]) -> None:
        jobs = {report.job for report in reports if self._jobs.report(report)}
        if not jobs:
            return
        for line in self._lines.values():
            for container_id, waiting in line.items():
                if waiting.facts.job in jobs:
                    facts = self._jobs.revised(waiting.facts)
                    if facts is not waiting.facts:
                        line[container_id] = replace(waiting, facts=facts)
        for container_id, held in self._running.items():
            if held.task.facts.job in jobs:
                facts = self._jobs.revised(held.task.facts)
                if facts is not held.task.facts:
                    self._running[container_id] = held._replace(task=replace(held.task, facts=facts))

    def _give_back(self, now: float) -> Iterator[Decision]:
        tick = self.next_tick()
        if tick is None or tick > now:
            return
        for task, most_s in list(goes_back(self._lines, self._waiting_masters, self._settings.max_wait_s)):
            if due(task, most_s) <= now:
                self._remove(task.container_id)
                yield Refuse(task.container_id, ExitStatus.PREEMPTED, why_back(task, most_s, now))

    # Decisions --------------------------------------------------------------------------------------------------------

    def _settle(self, now: float) -> Iterator[Decision]:
        yield from self._launch_ready(now)
        if self._opportunistic_running:
            yield from self._make_room()

    def _launch_ready(self, now: float) -> Iterator[Decision]:
        guaranteed, opportunistic = self._lines[ExecutionType.GUARANTEED], self._lines[ExecutionType.OPPORTUNISTIC]
        if guaranteed:
            yield from self._launch_line(ExecutionType.GUARANTEED, now)
        if opportunistic and not guaranteed:
            yield from self._launch_line(ExecutionType.OPPORTUNISTIC, now)

    def _launch_line(self, kind: ExecutionType, now: float) -> Iterator[Decision]:
        line = self._lines[kind]
        while line and not self._is_full(kind):
            first = self._first(kind, now)
            container_id = first.container_id
            if (self._running or self._expected) and not self._has_room(first, kind):
                return
            del line[container_id]
            self._waiting_masters.pop(container_id, None)
            ordering = self._ordering(kind)
            passed = ordering.passed(line.values(), first) if ordering is not None else None
            if passed is not None:
                line[passed.container_id] = passed
            task = RunningTask(container_id, first.resource, first.facts, now)
            self._running[container_id] = Running(task, kind)
            self._used += first.resource
            self._opportunistic_running += kind is ExecutionType.OPPORTUNISTIC
            yield Launch(container_id)

    def _first(self, kind: ExecutionType, now: float) -> QueuedTask:
        line = self._lines[kind]
        if len(line) == 1:
            return next(iter(line.values()))
        if self._settings.enabled:
            for container_id in self._waiting_masters:
                if container_id in line:
                    return line[container_id]
            late = [task for task in line.values() if is_late(task, now)]
            if late:
                return late_first(late, now)[0]
        return first_of(line.values(), self._ordering(kind), self._jobs.facts, now, self._capacity - self._used)

    def _ordering(self, kind: ExecutionType) -> Ordering | None:
        is_ordered = self._settings.enabled or kind is ExecutionType.OPPORTUNISTIC
        return self._settings.ordering if is_ordered else None

    def _is_full(self, kind: ExecutionType) -> bool:
        """Is there surely no room, whoever is first? Most events come to a full node, where nobody need be picked."""
        if not self._running or self._waiting_masters or self._some_need_nothing:
            return False
        used, capacity = self._used, self._capacity
        if used.memory_mb < capacity.memory_mb and used.vcores < capacity.vcores:
            return False
        return self._by_resources or self._settings.enabled or kind is ExecutionType.OPPORTUNISTIC

    def _has_room(self, task: QueuedTask, kind: ExecutionType) -> bool:
        wanted = self._used + task.resource
        is_enabled = self._settings.enabled
        is_fitted = self._by_resources or is_enabled or kind is ExecutionType.OPPORTUNISTIC
        if is_fitted and not (is_enabled and task.container_id in self._waiting_masters):
            return (wanted + self._expected.room if self._expected else wanted).fits_in(self._capacity)
        # memory and cores can be shared out more than once; a device cannot
        return all(wanted.extras.get(n, 0) <= self._capacity.extras.get(n, 0) for n in task.resource.extras)

    def _make_room(self) -> Iterator[Decision]:
        """Ends opportunistic containers while guaranteed ones, waiting or grown, have more than the node without."""
        if not self._opportunistic_running:
            return
        waiting = self._lines[ExecutionType.GUARANTEED]
        if not waiting and len(self._running) == self._opportunistic_running:
            return
        for container_id in in_the_way(self._capacity, self._used, self._running, waiting.values(), self._leaving):
            self._leaving.add(container_id)
            yield Preempt(container_id, ExitStatus.KILLED_BY_CONTAINER_SCHEDULER, MAKE_ROOM)

    # State ------------------------------------------------------------------------------------------------------------

    @property
    def settings(self) -> NodeQueueSettings:
        return self._settings

    @property
    def capacity(self) -> Resource:
        return self._capacity

    def estimates(self, job: ApplicationId) -> Mapping[int, float | None]:
        """How long the job's containers run, s, by priority, as the ResourceManager told last."""
        return self._jobs.estimates(job)

    def snapshot(self, now: float, first: int = 10, held: HeldStarts = NONE_HELD) -> NodeQueueSnapshot:
        """Everything that waits counted, the `first` ones of them described; `held`: of those that run."""
        waiting: list[QueuedTask] = []
        for kind in (ExecutionType.GUARANTEED, ExecutionType.OPPORTUNISTIC):
            if self._lines[kind]:
                waiting += self._in_order(kind, now)
        if self._settings.enabled and self._waiting_masters:
            waiting.sort(key=lambda t: t.container_id not in self._waiting_masters)  # stable
        running = running_tasks(self._running, self._leaving, held, now)
        free, usual = self._capacity - self._used - self._expected.room, self._usual
        return snapshot(
            self._capacity,
            free,
            running,
            waiting,
            usual=usual,
            first=first,
            estimate=self._estimate,
            held=held,
            now=now,
        )

    def free_for_masters(self) -> Resource | None:
        """What runs leaves so much, apart from what would make room; None: no master is expected."""
        if not self._expected:
            return None
        return (self._capacity - self._used + self.statistics().opportunistic_used).floored()

    def room_comes(self, now: float, held: HeldStarts = NONE_HELD) -> float:
        """Until that is enough for the masters that are expected, s; inf: never, by the estimates. `held` as above."""
        free = self.free_for_masters()
        if free is None:
            return 0.0
        staying = {name: one for name, one in self._running.items() if not one.is_opportunistic}
        running = running_tasks(staying, self._leaving, held, now)
        return limits.duration(wait_estimate(self._capacity, free, running, (), self._expected.room, now))

    def statistics(self) -> NodeQueueStatistics:
        kind = ExecutionType.OPPORTUNISTIC
        used = Resource()
        if self._opportunistic_running:
            for held in self._running.values():
                if held.is_opportunistic:
                    used += held.task.resource
        queued = len(self._lines[kind])
        return NodeQueueStatistics(
            running=len(self._running),
            queued=queued + len(self._lines[ExecutionType.GUARANTEED]),
            used=self._used,
            opportunistic_running=self._opportunistic_running,
            opportunistic_queued=queued,
            opportunistic_used=used,
            opportunistic_max=self._opportunistic_bound(),
        )

    def validate(self) -> None:
        """Raises AssertionError when an invariant does not hold; tests call it after every event."""
        guaranteed, opportunistic = self._lines[ExecutionType.GUARANTEED], self._lines[ExecutionType.OPPORTUNISTIC]
        assert not guaranteed.keys() & opportunistic.keys()
        assert not (guaranteed.keys() | opportunistic.keys()) & self._running.keys()
        assert all(task.container_id == key for line in self._lines.values() for key, task in line.items())
        total = Resource()
        for held in self._running.values():
            total += held.task.resource
        assert total.memory_mb == self._used.memory_mb and total.vcores == self._used.vcores, (total, self._used)
        kinds = [held.kind for held in self._running.values()]
        assert kinds.count(ExecutionType.OPPORTUNISTIC) == self._opportunistic_running
        assert self._leaving <= self._running.keys()
        assert self._waiting_masters.keys() <= guaranteed.keys() | opportunistic.keys()
