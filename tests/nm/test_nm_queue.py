"""The node queue: invariants on any sequence of events, order, bound."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nm_cluster import container_id

from nm.queue import Arrived, CapacityChanged, Decision, Ended, Event, Launch, NodeQueue, Refuse, Resized
from yaqd.model import ExecutionType, Resource


def arrived(number: int, memory_mb: int, vcores: int = 1) -> Arrived:
    return Arrived(container_id(number), Resource(memory_mb, vcores), ExecutionType.GUARANTEED)


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


events = st.one_of(
    st.builds(arrived, st.integers(1, 8), st.integers(0, 60), st.integers(0, 4)),
    st.builds(lambda n: Ended(container_id(n)), st.integers(1, 8)),
    st.builds(lambda n, m: Resized(container_id(n), Resource(m, 1)), st.integers(1, 8), st.integers(0, 60)),
    st.builds(lambda m, v: CapacityChanged(Resource(m, v)), st.integers(0, 120), st.integers(0, 8)),
)


class NaiveQueue:
    """The same rules on plain lists."""

    def __init__(self, capacity: Resource, max_length: int) -> None:
        self.capacity, self.max_length = capacity, max_length
        self.queued: list[Arrived] = []
        self.running: list[Arrived] = []

    def handle(self, event: Event) -> list[Decision]:
        refused: list[Decision] = []
        match event:
            case Arrived(container_id=one):
                if any(a.container_id == one for a in self.queued + self.running):
                    return []
                self.queued.append(event)
            case Ended(one):
                self.queued = [a for a in self.queued if a.container_id != one]
                self.running = [a for a in self.running if a.container_id != one]
            case Resized(one, resource):
                for group in (self.queued, self.running):
                    group[:] = [Arrived(one, resource, a.execution_type) if a.container_id == one else a for a in group]
            case CapacityChanged(capacity):
                self.capacity = capacity
        launched = self.launch()
        if len(self.queued) > self.max_length:
            refused = [Refuse(self.queued.pop().container_id, "")]
        return launched + refused

    def launch(self) -> list[Decision]:
        launched: list[Decision] = []
        while self.queued:
            used = Resource()
            for other in [*self.running, self.queued[0]]:
                used += other.resource
            if self.running and not used.fits_in(self.capacity):
                break
            self.running.append(self.queued.pop(0))
            launched.append(Launch(self.running[-1].container_id))
        return launched


@given(st.lists(events, max_size=60), st.integers(0, 3))
def test_agrees_with_the_naive_twin(sequence: list[Event], max_length: int) -> None:
    queue, twin = NodeQueue(Resource(100, 6), max_length=max_length), NaiveQueue(Resource(100, 6), max_length)
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
