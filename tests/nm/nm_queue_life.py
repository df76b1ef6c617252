"""Node queues that a ResourceManager fills: short words for events, and what must hold after each."""

import math

from hypothesis import strategies as st

from nm.node_queue import (
    Arrived,
    CapacityChanged,
    Decision,
    Ended,
    Event,
    JobReport,
    JobsReported,
    Launch,
    NodeQueue,
    NodeQueueSettings,
    Preempt,
    Refuse,
    SettingsChanged,
    Tick,
    Updated,
)
from tests.nm.nm_cluster import application, container_id
from yaqd.model import ContainerId, ExecutionType, ExitStatus, Resource
from yaqd.policies.queueing.facts import JobFacts, TaskFacts
from yaqd.policies.queueing.order import Ordering

GUARANTEED, OPPORTUNISTIC = ExecutionType.GUARANTEED, ExecutionType.OPPORTUNISTIC
SHORTEST = Ordering("stf", math.inf, math.inf)
FILLED = NodeQueueSettings(enabled=True, max_queued=4, ordering=SHORTEST, max_wait_s=60.0)
MAP, REDUCE = 20, 10


def came(
    number: int,
    estimate: float | None = None,
    *,
    app: int = 1,
    memory_mb: int = 100,
    kind: ExecutionType = GUARANTEED,
    is_master: bool = False,
    priority: int = MAP,
    most_wait_s: float = math.inf,
) -> Arrived:
    facts = TaskFacts(application(app), estimate=estimate, priority=priority, most_wait_s=most_wait_s)
    return Arrived(container_id(number, app), Resource(memory_mb, 1), kind, facts, is_master)


def queue(slots: int = 1, settings: NodeQueueSettings = FILLED) -> NodeQueue:
    return NodeQueue(Resource(100 * slots, 100), max_length=1000, opportunistic_max=5, settings=settings)


def started(decisions: list[Decision]) -> list[int]:
    assert all(isinstance(decision, Launch) for decision in decisions), decisions
    return [decision.container_id.sequence for decision in decisions]


numbers = st.integers(1, 12)
durations = st.one_of(st.none(), st.integers(0, 9).map(float), st.sampled_from([math.nan, -1.0, math.inf]))
events = st.one_of(
    st.builds(
        came,
        numbers,
        durations,
        memory_mb=st.integers(0, 260),
        kind=st.sampled_from([GUARANTEED, GUARANTEED, OPPORTUNISTIC]),
        is_master=st.sampled_from([False, False, False, True]),
        most_wait_s=st.sampled_from([math.inf, math.inf, 0.0, 1.0, 3.0]),
    ),
    st.builds(lambda n: Ended(container_id(n)), numbers),
    st.builds(lambda n, m: Updated(container_id(n), Resource(m, 1), GUARANTEED), numbers, st.integers(0, 150)),
    st.builds(lambda m: CapacityChanged(Resource(m, 100)), st.integers(0, 400)),
    st.builds(
        lambda on, b, wait: SettingsChanged(NodeQueueSettings(on, b, SHORTEST, wait)),
        st.booleans(),
        st.integers(0, 3),
        st.sampled_from([2.0, 5.0]),
    ),
    st.builds(lambda d: JobsReported((JobReport(application(1), JobFacts(), estimates={MAP: d}),)), durations),
    st.just(Tick()),
)


class Watcher:
    """Keeps books of its own on what is where, and checks each decision when it is made."""

    def __init__(self) -> None:
        self.capacity, self.settings = Resource(300, 100), FILLED
        self.queue = NodeQueue(self.capacity, max_length=20, opportunistic_max=3, settings=FILLED)
        self.waiting: dict[ContainerId, tuple[Arrived, float]] = {}
        self.running: dict[ContainerId, Arrived] = {}

    def used(self) -> Resource:
        return sum((a.resource for a in self.running.values()), Resource())

    def guaranteed(self) -> list[ContainerId]:
        return [c for c, (a, _) in self.waiting.items() if a.execution_type is GUARANTEED]

    def most_wait(self, arrived: Arrived) -> float:
        """Opportunistic ones wait at will but where their masters do not know that they do."""
        assert arrived.facts is not None
        if arrived.is_master:  # an opportunistic one: a job does not come sooner by its master's going back
            return math.inf
        most_s = self.settings.max_wait_s if arrived.execution_type is GUARANTEED else math.inf
        return min(most_s, max(3 * arrived.facts.most_wait_s, 6.0))

    def see(self, event: Event, now: float) -> None:
        is_new = isinstance(event, Arrived) and event.container_id not in {**self.waiting, **self.running}
        match event:
            case Arrived() if is_new:
                self.waiting[event.container_id] = (event, now)
            case Ended(one):
                self.waiting.pop(one, None)
                self.running.pop(one, None)
            case Updated(one, resource, kind):
                self.update(one, resource, kind)
            case CapacityChanged(capacity):
                self.capacity = capacity
            case SettingsChanged(settings):
                self.settings = settings
        for decision in self.queue.handle(event, now):
            self.decided(decision, event, now)
        self.queue.validate()
        self.settled(event, now, is_new=is_new)

    def update(self, one: ContainerId, resource: Resource, kind: ExecutionType) -> None:
        if one in self.running:
            self.running[one] = Arrived(one, resource, kind, None, self.running[one].is_master)
        if one in self.waiting:
            before, since = self.waiting[one]
            self.waiting[one] = Arrived(one, resource, kind, before.facts, before.is_master), since

    def decided(self, decision: Decision, event: Event, now: float) -> None:
        one = decision.container_id
        if isinstance(decision, Preempt):
            assert self.running[one].execution_type is OPPORTUNISTIC
            return
        arrived, since = self.waiting.pop(one)  # it waited, so nothing is started or refused twice
        if isinstance(decision, Refuse):
            assert not arrived.is_master or arrived.execution_type is OPPORTUNISTIC or not self.settings.enabled
            if decision.status is ExitStatus.PREEMPTED and isinstance(event, Tick):
                assert now - since >= self.most_wait(arrived)
            return
        is_alone = not self.running
        self.running[one] = arrived
        if not (arrived.is_master and self.settings.enabled):
            assert is_alone or self.used().fits_in(self.capacity)
        if arrived.execution_type is OPPORTUNISTIC:
            assert not self.guaranteed()

    def settled(self, event: Event, now: float, *, is_new: bool) -> None:
        assert (len(self.running), len(self.waiting)) == (
            self.queue.statistics().running,
            self.queue.statistics().queued,
        )
        if not self.settings.enabled:
            return
        assert not [c for c in self.guaranteed() if self.waiting[c][0].is_master], "no master waits"
        if is_new and isinstance(event, Arrived) and event.container_id in self.guaranteed():
            assert len(self.guaranteed()) <= self.settings.hard_bound
        tick = self.queue.next_tick()
        due = [since + self.most_wait(arrived) for arrived, since in self.waiting.values()]
        if isinstance(event, Tick):
            assert all(now < at for at in due)
        first = min(due, default=math.inf)
        assert tick == (first if first < math.inf else None)
