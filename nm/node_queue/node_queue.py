"""The queue between accepting a container and launching it: pure, events in, decisions out.

Two lines. A guaranteed container starts when it is the first of its line and fits in what is free; an opportunistic one
when besides that no guaranteed one waits. Where running opportunistic containers stand in the way of guaranteed ones
they are ended, the youngest first. They count as good as gone from then on. Both lines are bounded, and what does not
fit in its line is refused at once rather than kept waiting. A container larger than the whole node starts when the node
is empty: the scheduler granted it, and waiting would be for ever.

The first of a line is the first that came, as in Hadoop's ContainerScheduler. Where the ResourceManager fills the queue
on purpose (`NodeQueueSettings.enabled`, after Yaq) it is whom the ordering picks. Application masters start at once
even beyond what is free, and room can be kept for them beforehand (`nm.node_queue.expected`). A container that waits
too long is refused so that it is placed elsewhere. Neither clock nor identifiers are made here, so the simulator drives
the same object.
"""

from collections.abc import Iterator, Mapping
from enum import Enum, auto

from nm.node_queue.events import (
    Arrived,
    Began,
    CapacityChanged,
    Decision,
    Ended,
    EstimateChanged,
    Event,
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
from nm.node_queue.lines import Lines
from nm.node_queue.room import NodeRoom
from nm.node_queue.said import NodeQueueSnapshot
from nm.node_queue.settings import NodeQueueSettings
from nm.node_queue.snapshot import snapshot
from nm.node_queue.words import DEQUEUED, MAKE_ROOM, QUEUE_FULL
from yaqd.model import ApplicationId, ContainerId, ExecutionType, ExitStatus, Resource
from yaqd.policies.queueing import limits
from yaqd.policies.queueing.facts import QueuedTask, TaskFacts
from yaqd.policies.queueing.wait import WAITS, wait_estimate


class OpportunisticPolicy(Enum):
    """When an opportunistic container may wait (`yarn.nodemanager.opportunistic-containers-queue-policy`)."""

    #: as long as fewer than the limit wait
    BY_QUEUE_LEN = auto()
    #: as long as everything here, waiting or running, fits in the node at once
    BY_RESOURCES = auto()


class NodeQueue:
    """Invariant: a container is in one of both lines or running."""

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
        self._max_length = max_length
        #: False launches guaranteed containers whatever memory and cores are free, as a stock NodeManager does
        self._by_resources = by_resources
        self._opportunistic_max = opportunistic_max
        self._policy = policy
        #: how long a newcomer would wait
        self._estimate = WAITS[wait]
        self._jobs = Jobs()
        self._lines = Lines(self._jobs, settings)
        self._room = NodeRoom(capacity)
        self._expected = ExpectedMasters()
        #: some container needs no memory or no core, so it fits where all of that is taken
        self._some_need_nothing = False
        #: size of the last task that came: what a newcomer is taken to need. Before the first one it is the smallest:
        #: what needs nothing would find room on a full node
        self._usual = smallest

    def handle(self, event: Event, now: float) -> list[Decision]:
        """Handles an event and returns the decisions: the only entry; `now` in seconds."""
        match event:
            case Arrived():
                return list(self._arrived(event, now))
            case Ended(container_id):
                self._remove(container_id)
                if not self._room.opportunistic and not self._lines:
                    return []
            case Began(container_id):
                self._room.began(container_id, now)
                return []
            case Updated():
                self._update(event)
            case CapacityChanged(capacity):
                self._room.capacity = capacity
            case OpportunisticLimit(max_length):
                return list(self._shed(ExecutionType.OPPORTUNISTIC, max_length, now)) if max_length >= 0 else []
            case SettingsChanged(settings):
                self._lines.settings = settings
                return [*self._settle(now), *self._shed_all(now)]
            case EstimateChanged(wait):
                self._estimate = WAITS[wait]
                return []
            case JobsReported(reports):
                jobs = {report.job for report in reports if self._jobs.report(report)}
                if jobs:
                    self._lines.revise(jobs, self._jobs.revised)
                    self._room.revise(jobs, self._jobs.revised)
            case MastersExpected(rooms):
                self._expected.expect(rooms)
            case Tick():
                return [*self._give_back(now), *self._settle(now)]
        return list(self._settle(now))

    def next_tick(self) -> float | None:
        """Returns when a Tick has something to do, if nothing else happens before; None: never."""
        return self._lines.next_due()

    # Events -----------------------------------------------------------------------------------------------------------

    def _arrived(self, event: Arrived, now: float) -> Iterator[Decision]:
        container_id, kind = event.container_id, event.execution_type
        if container_id in self._room.running or container_id in self._lines:
            return
        if kind is ExecutionType.OPPORTUNISTIC and not self._may_wait(event.resource):
            yield Refuse(container_id, ExitStatus.KILLED_BY_CONTAINER_SCHEDULER, QUEUE_FULL)
            return
        facts = self._jobs.revised(event.facts or TaskFacts(container_id.application_id))
        self._note_size(event.resource)
        since = now - facts.waited_s if 0.0 <= facts.waited_s <= limits.LONGEST_S else now
        line = self._lines.of[kind]
        line[container_id] = QueuedTask(container_id, event.resource, facts, since, came=now)
        if event.is_master:
            self._lines.masters[container_id] = None
            self._expected.came(container_id)
        else:
            self._usual = event.resource
        yield from self._launch_ready(now)
        bound = self._max_waiting()
        if container_id in line and kind is ExecutionType.GUARANTEED and len(line) > bound and not event.is_master:
            del line[container_id]
            reason = f"Container refused: the node's queue is full ({bound} containers wait)."
            yield Refuse(container_id, ExitStatus.PREEMPTED, reason)
        elif self._room.opportunistic:
            yield from self._make_room()

    def _note_size(self, resource: Resource) -> None:
        if resource.memory_mb <= 0 or resource.vcores <= 0:
            self._some_need_nothing = True

    def _max_waiting(self) -> int:
        if not self.settings.enabled:
            return self._max_length
        return min(self._max_length, self.settings.hard_bound)

    def _may_wait(self, newcomer: Resource) -> bool:
        if self._policy is OpportunisticPolicy.BY_RESOURCES:
            wanted = self._room.used + newcomer
            for waiting in self._lines.tasks():
                wanted += waiting.resource
            return wanted.fits_in(self._room.capacity)
        return len(self._lines.opportunistic) < self._opportunistic_bound()

    def _opportunistic_bound(self) -> int:
        """A ResourceManager that has us queue means both kinds."""
        settings = self.settings
        return max(self._opportunistic_max, settings.max_queued) if settings.enabled else self._opportunistic_max

    def _remove(self, container_id: ContainerId) -> None:
        self._lines.remove(container_id)
        self._expected.gone(container_id)
        self._room.release(container_id)

    def _update(self, event: Updated) -> None:
        self._note_size(event.resource)
        if not self._room.resize(event.container_id, event.resource, event.execution_type):
            self._lines.resize(event.container_id, event.resource, event.execution_type)

    def _shed_all(self, now: float) -> Iterator[Decision]:
        """What waits beyond other bounds than before."""
        if self.settings.enabled:
            yield from self._shed(ExecutionType.GUARANTEED, self._max_waiting(), now)
            if self._policy is OpportunisticPolicy.BY_QUEUE_LEN:
                yield from self._shed(ExecutionType.OPPORTUNISTIC, self._opportunistic_bound(), now)

    def _shed(self, kind: ExecutionType, max_length: int, now: float) -> Iterator[Decision]:
        is_spare = kind is ExecutionType.OPPORTUNISTIC
        status = ExitStatus.KILLED_BY_CONTAINER_SCHEDULER if is_spare else ExitStatus.PREEMPTED
        for container_id in self._lines.cut(kind, max_length, now):
            yield Refuse(container_id, status, DEQUEUED)

    def _give_back(self, now: float) -> Iterator[Decision]:
        for container_id, reason in self._lines.overdue(now):
            self._lines.remove(container_id)
            yield Refuse(container_id, ExitStatus.PREEMPTED, reason)

    # Decisions --------------------------------------------------------------------------------------------------------

    def _settle(self, now: float) -> Iterator[Decision]:
        yield from self._launch_ready(now)
        if self._room.opportunistic:
            yield from self._make_room()

    def _launch_ready(self, now: float) -> Iterator[Decision]:
        lines = self._lines
        if lines.guaranteed:
            yield from self._launch_line(ExecutionType.GUARANTEED, now)
        if lines.opportunistic and not lines.guaranteed:
            yield from self._launch_line(ExecutionType.OPPORTUNISTIC, now)

    def _launch_line(self, kind: ExecutionType, now: float) -> Iterator[Decision]:
        line, room = self._lines.of[kind], self._room
        while line and not self._is_full(kind):
            first = self._lines.first(kind, now, room)
            if (room.running or self._expected) and not self._has_room(first, kind):
                return
            self._lines.starts(first, kind)
            room.take(first, kind, now)
            yield Launch(first.container_id)

    def _is_full(self, kind: ExecutionType) -> bool:
        """Is there surely no room, whoever is first? Most events come to a full node, where nobody need be picked."""
        room = self._room
        if not room.running or self._lines.masters or self._some_need_nothing:
            return False
        used, capacity = room.used, room.capacity
        if used.memory_mb < capacity.memory_mb and used.vcores < capacity.vcores:
            return False
        return self._is_fitted(kind)

    def _is_fitted(self, kind: ExecutionType) -> bool:
        """Does it start only where memory and cores are free?"""
        return self._by_resources or self._lines.settings.enabled or kind is ExecutionType.OPPORTUNISTIC

    def _has_room(self, task: QueuedTask, kind: ExecutionType) -> bool:
        capacity, wanted = self._room.capacity, self._room.used + task.resource
        goes_first = self._lines.settings.enabled and task.container_id in self._lines.masters
        if self._is_fitted(kind) and not goes_first:
            return (wanted + self._expected.room if self._expected else wanted).fits_in(capacity)
        # memory and cores can be shared out more than once; a device cannot
        return all(wanted.extras.get(n, 0) <= capacity.extras.get(n, 0) for n in task.resource.extras)

    def _make_room(self) -> Iterator[Decision]:
        for container_id in self._room.make_room(self._lines.guaranteed.values()):
            yield Preempt(container_id, ExitStatus.KILLED_BY_CONTAINER_SCHEDULER, MAKE_ROOM)

    # State ------------------------------------------------------------------------------------------------------------

    @property
    def settings(self) -> NodeQueueSettings:
        return self._lines.settings

    @property
    def capacity(self) -> Resource:
        return self._room.capacity

    def estimates(self, job: ApplicationId) -> Mapping[int, float | None]:
        """Returns how long the job's containers run, s, by priority, as the ResourceManager told last."""
        return self._jobs.estimates(job)

    def snapshot(self, now: float, first: int = 10, held: HeldStarts = NONE_HELD) -> NodeQueueSnapshot:
        """Counts all containers that wait and describes the `first` ones; `held`: the starts that are held."""
        return snapshot(
            self._room.capacity,
            self._room.free - self._expected.room,
            self._room.tasks(held, now),
            self._lines.in_order(now),
            usual=self._usual,
            first=first,
            estimate=self._estimate,
            held=held,
            now=now,
        )

    def free_for_masters(self) -> Resource | None:
        """Returns what guaranteed containers leave free, for masters; None: no master is expected."""
        if not self._expected:
            return None
        return (self._room.free + self._room.opportunistic_used).floored()

    def room_comes(self, now: float, held: HeldStarts = NONE_HELD) -> float:
        """Returns seconds until what is free for masters is enough for those expected; inf: never, by the estimates.

        `held`: the starts that are held.
        """
        free = self.free_for_masters()
        if free is None:
            return 0.0
        running = self._room.guaranteed_tasks(held, now)
        return limits.duration(wait_estimate(self._room.capacity, free, running, (), self._expected.room, now))

    def statistics(self) -> NodeQueueStatistics:
        return NodeQueueStatistics(
            running=len(self._room.running),
            queued=len(self._lines),
            used=self._room.used,
            opportunistic_running=self._room.opportunistic,
            opportunistic_queued=len(self._lines.opportunistic),
            opportunistic_used=self._room.opportunistic_used,
            opportunistic_max=self._opportunistic_bound(),
        )

    def validate(self) -> None:
        """Raises AssertionError when an invariant does not hold; tests call it after every event."""
        self._lines.validate()
        self._room.validate()
        assert not any(container_id in self._lines for container_id in self._room.running)
