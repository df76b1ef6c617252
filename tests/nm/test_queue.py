"""The node queue: invariants on any sequence of events, order, bound."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nm.node_queue import (
    Arrived,
    CapacityChanged,
    Decision,
    Ended,
    Event,
    Launch,
    NodeQueue,
    OpportunisticLimit,
    OpportunisticPolicy,
    Preempt,
    Refuse,
    Updated,
)
from tests.nm.nm_cluster import container_id
from yaqd.model import ExecutionType, ExitStatus, Resource

GUARANTEED, OPPORTUNISTIC = ExecutionType.GUARANTEED, ExecutionType.OPPORTUNISTIC


def arrived(number: int, memory_mb: int, vcores: int = 1) -> Arrived:
    return Arrived(container_id(number), Resource(memory_mb, vcores), ExecutionType.GUARANTEED)


def spare(number: int, memory_mb: int, vcores: int = 1) -> Arrived:
    """An opportunistic one."""
    return Arrived(container_id(number), Resource(memory_mb, vcores), OPPORTUNISTIC)


def make_room(number: int) -> Preempt:
    reason = "Container Killed to make room for Guaranteed Container."
    return Preempt(container_id(number), ExitStatus.KILLED_BY_CONTAINER_SCHEDULER, reason)


def refuse(number: int, reason: str) -> Refuse:
    return Refuse(container_id(number), ExitStatus.KILLED_BY_CONTAINER_SCHEDULER, reason)


def launch(number: int) -> Launch:
    return Launch(container_id(number))


def test_starts_in_order_of_arrival_as_resources_come_free() -> None:
    queue = NodeQueue(Resource(1000, 10), max_length=10)
    assert queue.handle(arrived(1, 600), 0) == [launch(1)]
    assert queue.handle(arrived(2, 600), 1) == []  # does not fit
    assert queue.handle(arrived(3, 100), 2) == []  # would fit, but nobody overtakes
    assert queue.handle(Ended(container_id(1)), 3) == [launch(2), launch(3)]


def test_virtual_cores_count_too() -> None:
    queue = NodeQueue(Resource(1000, 2), max_length=10)
    assert queue.handle(arrived(1, 1, 2), 0) == [launch(1)]
    assert queue.handle(arrived(2, 1, 1), 0) == []


def test_a_full_queue_refuses_the_newcomer() -> None:
    queue = NodeQueue(Resource(100, 10), max_length=1)
    queue.handle(arrived(1, 100), 0)
    queue.handle(arrived(2, 100), 0)
    (refusal,) = queue.handle(arrived(3, 100), 0)
    assert isinstance(refusal, Refuse) and refusal.container_id == container_id(3)
    assert queue.statistics().queued == 1


def test_larger_than_the_node_starts_alone() -> None:
    queue = NodeQueue(Resource(100, 1), max_length=5)
    assert queue.handle(arrived(1, 50), 0) == [launch(1)]
    assert queue.handle(arrived(2, 500), 0) == []
    assert queue.handle(Ended(container_id(1)), 0) == [launch(2)]


def test_without_resources_everything_starts_at_once() -> None:
    queue = NodeQueue(Resource(100, 1), max_length=5, by_resources=False)
    assert [queue.handle(arrived(n, 100), 0) for n in (1, 2, 3)] == [[launch(1)], [launch(2)], [launch(3)]]


def test_opportunistic_ones_wait_behind_every_guaranteed_one() -> None:
    queue = NodeQueue(Resource(1000, 10), max_length=10, opportunistic_max=2)
    assert queue.handle(arrived(1, 800), 0) == [launch(1)]
    assert queue.handle(spare(2, 300), 1) == []
    assert queue.handle(arrived(3, 400), 2) == []  # nothing opportunistic runs that could make room
    assert queue.handle(Ended(container_id(1)), 3) == [launch(3), launch(2)]


def test_a_guaranteed_one_ends_the_youngest_opportunistic_ones_it_needs() -> None:
    queue = NodeQueue(Resource(1000, 10), max_length=10, opportunistic_max=5)
    for number in (1, 2, 3):
        assert queue.handle(spare(number, 300), 0) == [launch(number)]
    assert queue.handle(arrived(4, 500), 1) == [make_room(3), make_room(2)]
    assert queue.handle(arrived(5, 100), 2) == []  # what is leaving counts as gone
    assert queue.handle(Ended(container_id(3)), 3) == []
    assert queue.handle(spare(6, 10), 4) == []  # would fit, but guaranteed ones wait
    assert queue.handle(Ended(container_id(2)), 5) == [launch(4), launch(5), launch(6)]
    assert queue.statistics().opportunistic_running == 2


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_a_full_opportunistic_queue_refuses(limit: int) -> None:
    queue = NodeQueue(Resource(100, 10), max_length=10, opportunistic_max=limit)
    queue.handle(arrived(1, 100), 0)
    waiting = [spare(n, 50) for n in range(2, 2 + limit)]
    assert [d for event in waiting for d in queue.handle(event, 0)] == []
    assert queue.handle(spare(9, 50), 0) == [refuse(9, "Opportunistic container queue is full.")]


def test_by_resources_takes_what_fits_in_the_node_with_all_that_is_there() -> None:
    queue = NodeQueue(Resource(100, 10), max_length=10, policy=OpportunisticPolicy.BY_RESOURCES)
    assert queue.handle(spare(1, 60), 0) == [launch(1)]
    assert [type(d) for d in queue.handle(spare(2, 60), 0)] == [Refuse]
    assert queue.handle(spare(3, 40), 0) == [launch(3)]


def test_a_lower_limit_sheds_the_newest() -> None:
    queue = NodeQueue(Resource(100, 10), max_length=10, opportunistic_max=5)
    for event in (arrived(1, 100), spare(2, 10), spare(3, 10), spare(4, 10)):
        queue.handle(event, 0)
    reason = "Container De-queued to meet NM queuing limits."
    assert queue.handle(OpportunisticLimit(1), 1) == [refuse(3, reason), refuse(4, reason)]
    assert queue.handle(OpportunisticLimit(-1), 1) == []


def test_promotion_and_demotion_change_who_makes_room() -> None:
    queue = NodeQueue(Resource(100, 10), max_length=10, opportunistic_max=5)
    for event in (spare(1, 60), spare(2, 40), spare(3, 50)):
        queue.handle(event, 0)
    # the running one is safe now, the waiting one takes the place of the other
    assert queue.handle(Updated(container_id(1), Resource(60, 1), GUARANTEED), 1) == []
    assert queue.handle(Updated(container_id(3), Resource(40, 1), GUARANTEED), 2) == [make_room(2)]
    assert queue.handle(Ended(container_id(2)), 3) == [launch(3)]
    assert queue.handle(Updated(container_id(1), Resource(60, 1), OPPORTUNISTIC), 4) == []
    assert queue.handle(arrived(4, 60), 5) == [make_room(1)]


def test_a_grown_container_takes_its_room_from_opportunistic_ones() -> None:
    queue = NodeQueue(Resource(100, 10), max_length=10, opportunistic_max=5)
    queue.handle(arrived(1, 50), 0)
    queue.handle(spare(2, 50), 0)
    assert queue.handle(Updated(container_id(1), Resource(80, 1), GUARANTEED), 1) == [make_room(2)]


kinds = st.sampled_from(ExecutionType)
events = st.one_of(
    st.builds(arrived, st.integers(1, 8), st.integers(0, 60), st.integers(0, 4)),
    st.builds(spare, st.integers(1, 8), st.integers(0, 60), st.integers(0, 4)),
    st.builds(lambda n: Ended(container_id(n)), st.integers(1, 8)),
    st.builds(
        lambda n, m, k: Updated(container_id(n), Resource(m, 1), k), st.integers(1, 8), st.integers(0, 60), kinds
    ),
    st.builds(lambda m, v: CapacityChanged(Resource(m, v)), st.integers(0, 120), st.integers(0, 8)),
    st.builds(OpportunisticLimit, st.integers(-1, 3)),
)


class NaiveQueue:
    """The same rules on one plain list of all that is here, in the order of arrival (by start, once started)."""

    def __init__(self, capacity: Resource, max_length: int, opportunistic_max: int) -> None:
        self.capacity, self.max_length, self.opportunistic_max = capacity, max_length, opportunistic_max
        self.queued: list[Arrived] = []
        self.running: list[Arrived] = []
        self.leaving: set[object] = set()

    def line(self, kind: ExecutionType) -> list[Arrived]:
        return [a for a in self.queued if a.execution_type is kind]

    def handle(self, event: Event) -> list[Decision]:
        before: list[Decision] = []
        match event:
            case Arrived(container_id=one):
                if any(a.container_id == one for a in self.queued + self.running):
                    return []
                if event.execution_type is OPPORTUNISTIC and len(self.line(OPPORTUNISTIC)) >= self.opportunistic_max:
                    return [Refuse(one, ExitStatus.KILLED_BY_CONTAINER_SCHEDULER, "")]
                self.queued.append(event)
                before = self.launch()
                if event in (line := self.line(GUARANTEED)) and len(line) > self.max_length:
                    self.queued.remove(event)
                    return [*before, Refuse(one, ExitStatus.PREEMPTED, "")]
            case Ended(one):
                self.queued = [a for a in self.queued if a.container_id != one]
                self.running = [a for a in self.running if a.container_id != one]
                self.leaving.discard(one)
            case Updated(one, resource, kind):
                self.running = [Arrived(one, resource, kind) if a.container_id == one else a for a in self.running]
                for a in [a for a in self.queued if a.container_id == one]:
                    place = self.queued.index(a)
                    del self.queued[place]
                    # a changed kind queues up anew
                    place = place if a.execution_type is kind else len(self.queued)
                    self.queued.insert(place, Arrived(one, resource, kind))
            case CapacityChanged(capacity):
                self.capacity = capacity
            case OpportunisticLimit(limit):
                over = self.line(OPPORTUNISTIC)[limit:] if limit >= 0 else []
                self.queued = [a for a in self.queued if a not in over]
                return [Refuse(a.container_id, ExitStatus.KILLED_BY_CONTAINER_SCHEDULER, "") for a in over]
        return [*before, *self.launch(), *self.room()]

    @staticmethod
    def total(containers: list[Arrived]) -> Resource:
        total = Resource()
        for container in containers:
            total += container.resource
        return total

    def launch(self) -> list[Decision]:
        launched: list[Decision] = []
        while line := self.line(GUARANTEED) or self.line(OPPORTUNISTIC):
            if self.running and not self.total([*self.running, line[0]]).fits_in(self.capacity):
                break
            self.queued.remove(line[0])
            self.running.append(line[0])
            launched.append(Launch(line[0].container_id))
        return launched

    def room(self) -> list[Decision]:
        ended: list[Decision] = []
        while True:
            staying = [a for a in self.running if a.container_id not in self.leaving]
            guaranteed = [a for a in self.running if a.execution_type is GUARANTEED] + self.line(GUARANTEED)
            victims = [a for a in staying if a.execution_type is OPPORTUNISTIC]
            fits = self.total(staying + self.line(GUARANTEED)).fits_in(self.capacity)
            if fits or not guaranteed or not victims:
                return ended
            self.leaving.add(victims[-1].container_id)
            ended.append(Preempt(victims[-1].container_id, ExitStatus.KILLED_BY_CONTAINER_SCHEDULER, ""))


@example([arrived(1, 0, 0), CapacityChanged(Resource(0, 0)), arrived(2, 0, 0)], 0, 0)
@given(st.lists(events, max_size=60), st.integers(0, 3), st.integers(0, 3))
def test_agrees_with_the_naive_twin(sequence: list[Event], max_length: int, spare_max: int) -> None:
    queue = NodeQueue(Resource(100, 6), max_length=max_length, opportunistic_max=spare_max)
    twin = NaiveQueue(Resource(100, 6), max_length, spare_max)
    for event in sequence:
        decided = queue.handle(event, 0.0)
        queue.validate()
        expected = twin.handle(event)
        assert [(type(d), d.container_id) for d in decided] == [(type(d), d.container_id) for d in expected]


@pytest.mark.parametrize("number", [1, 2])
def test_ending_is_idempotent(number: int) -> None:
    queue = NodeQueue(Resource(100, 6), max_length=1)
    queue.handle(arrived(1, 100), 0)
    queue.handle(arrived(2, 100), 0)
    queue.handle(Ended(container_id(number)), 0)
    before = queue.statistics()
    assert queue.handle(Ended(container_id(number)), 0) == []
    assert queue.statistics() == before
