"""The wait estimate, against a node played through event by event."""

from dataclasses import dataclass, field, replace
from math import inf, nan

from hypothesis import given
from hypothesis import strategies as st

from tests.policies.policy_facts import SLOT, facts, few, hostile_s, queued, queues, running, sane_s, sizes
from yaqd.model import Resource
from yaqd.policies.queueing.facts import QueuedTask, RunningTask
from yaqd.policies.queueing.wait import WAITS, slot_wait_estimate, wait_estimate

TOTAL = Resource(4096, 6)


@dataclass
class Node:
    """A node whose clock ticks from end to end of a task, with nothing clever about it."""

    free: Resource
    #: what holds resources and for how long yet; inf never ends
    holds: list[tuple[float, Resource]] = field(default_factory=list)
    now: float = 0.0

    def start_in_order(self, line: list[tuple[float, Resource]]) -> float:
        """When the last of the line starts."""
        while line:
            runs, size = line[0]
            if size.fits_in(self.free) or not self.holds:
                self.free -= size
                self.holds.append((self.now + runs, size))
                line.pop(0)
                continue
            self.now = min(end for end, _ in self.holds)
            if self.now == inf:
                return inf
            ended = next(hold for hold in self.holds if hold[0] == self.now)
            self.holds.remove(ended)
            self.free += ended[1]
        return self.now


def runs_for(task: QueuedTask | RunningTask) -> float:
    return inf if task.facts.estimate is None else task.facts.estimate


@few
@given(queues(sane_s, most=8), queues(sane_s, most=8), sizes)
def test_it_is_what_happens(held: list[QueuedTask], line: list[QueuedTask], needed: Resource) -> None:
    now_running, free = [], TOTAL
    for task in held:
        if task.resource.fits_in(free):
            free -= task.resource
            now_running.append(RunningTask(task.container_id, task.resource, task.facts, since=0.0))
    node = Node(free, [(runs_for(task), task.resource) for task in now_running])
    expected = node.start_in_order([(runs_for(task), task.resource) for task in line] + [(1.0, needed)])
    assert wait_estimate(TOTAL, free, now_running, line, needed, 0.0) == expected
    # and no different where a device has to be watched too
    plenty = Resource(0, 0, {"device": 100})
    watched = [replace(task, resource=task.resource + Resource(0, 0, {"device": 1})) for task in line]
    assert wait_estimate(TOTAL + plenty, free + plenty, now_running, watched, needed, 0.0) == expected


@few
@given(queues(hostile_s, most=8), queues(hostile_s, most=8), sizes, hostile_s)
def test_hostile_numbers_never_make_it_negative_or_no_number(
    held: list[QueuedTask], line: list[QueuedTask], needed: Resource, now: float
) -> None:
    now_running = [RunningTask(task.container_id, task.resource, task.facts, task.since) for task in held]
    assert wait_estimate(TOTAL, Resource(), now_running, line, needed, now) >= 0.0
    assert slot_wait_estimate(TOTAL, Resource(), now_running, line, needed, now) >= 0.0


@few
@given(queues(sane_s, most=8), st.integers(1, 6))
def test_with_equal_slots_both_versions_agree(tasks: list[QueuedTask], slots: int) -> None:
    same = [QueuedTask(task.container_id, SLOT, task.facts, task.since) for task in tasks]
    held = [RunningTask(task.container_id, SLOT, task.facts, since=0.0) for task in same[:slots]]
    free = slots - len(held)
    total = SLOT * slots
    by_size = wait_estimate(total, SLOT * free, held, same[slots:], SLOT, 0.0)
    assert by_size == slot_wait_estimate(total, SLOT * free, held, same[slots:], SLOT, 0.0)


@few
@given(queues(sane_s, most=8), sane_s)
def test_one_more_in_the_queue_never_shortens_the_wait(line: list[QueuedTask], estimate: float) -> None:
    held = [running(100, facts(estimate=7.0), size=Resource(2048, 3)), running(101, facts(estimate=3.0))]
    free = TOTAL - held[0].resource - held[1].resource
    longer = [*line, queued(200, facts(estimate=estimate))]
    assert wait_estimate(TOTAL, free, held, longer, SLOT, 0) >= wait_estimate(TOTAL, free, held, line, SLOT, 0)


def test_the_papers_algorithm_by_hand() -> None:
    held = [running(n, facts(estimate=left)) for n, left in enumerate((4.0, 6.0))]
    line = [queued(10 + n, facts(estimate=runs)) for n, runs in enumerate((10.0, 1.0))]
    # 4 s until the first queued one starts, 2 more for the second, 1 more until that one ends
    assert slot_wait_estimate(SLOT * 2, Resource(), held, line, SLOT, now=0.0) == 7.0
    assert slot_wait_estimate(SLOT * 2, Resource(), held, [], SLOT, now=1.0) == 3.0
    assert slot_wait_estimate(SLOT * 3, SLOT, held, line, SLOT, now=0.0) == 0.0


def test_never_ending_tasks_never_free_a_slot() -> None:
    executor, mapper = facts(estimate=None), facts(estimate=30.0)
    two = SLOT * 2
    assert wait_estimate(two, Resource(), [running(1, executor), running(2, executor)], [], SLOT, 0) == inf
    assert wait_estimate(two, Resource(), [running(1, executor), running(2, mapper)], [], SLOT, 10) == 20
    # the slot that comes free goes to one that keeps it
    held = [running(1, executor), running(2, mapper)]
    assert wait_estimate(two, Resource(), held, [queued(3, executor)], SLOT, 10) == inf
    assert slot_wait_estimate(two, Resource(), held, [queued(3, executor)], SLOT, 10) == inf


def test_a_task_that_has_overrun_its_estimate_three_times_never_ends_either() -> None:
    late = running(1, facts(estimate=10.0), since=0.0)
    assert wait_estimate(SLOT, Resource(), [late], [], SLOT, 29.0) == 0.0  # about to end
    assert wait_estimate(SLOT, Resource(), [late], [], SLOT, 31.0) == inf
    short = running(1, facts(estimate=0.1), since=0.0)
    assert wait_estimate(SLOT, Resource(), [short], [], SLOT, 10.0) == 0.0
    assert wait_estimate(SLOT, Resource(), [short], [], SLOT, 10.2) == inf


def test_an_estimate_that_says_nothing_is_none() -> None:
    for estimate in (-5.0, nan, inf, 1e300):
        assert wait_estimate(SLOT, Resource(), [running(1, facts(estimate=estimate))], [], SLOT, 1.0) == inf


def test_room_is_no_use_to_those_behind_a_task_that_does_not_fit() -> None:
    held = [running(1, facts(estimate=8.0), size=SLOT * 3)]
    big = queued(2, facts(estimate=5.0), size=SLOT * 2)
    total, free = SLOT * 4, SLOT
    assert wait_estimate(total, free, held, [], SLOT, 0) == 0.0
    assert wait_estimate(total, free, held, [big], SLOT, 0) == 8.0


def test_what_is_larger_than_the_node_starts_when_the_node_is_empty() -> None:
    held = [running(1, facts(estimate=8.0)), running(2, facts(estimate=9.0))]
    assert wait_estimate(SLOT * 2, Resource(), held, [], SLOT * 5, 0) == 9.0
    assert wait_estimate(SLOT * 2, SLOT * 2, [], [], SLOT * 5, 0) == 0.0


def test_more_than_all_is_not_free() -> None:
    held = [running(1, facts(estimate=8.0))]
    assert wait_estimate(SLOT * 2, SLOT * 1000, held, [], SLOT * 3, 0) == 8.0


def test_devices_count_too() -> None:
    gpu = Resource(512, 1, {"yarn.io/gpu": 1})
    node = Resource(8192, 8, {"yarn.io/gpu": 1})
    held = [running(1, facts(estimate=40.0), size=gpu)]
    assert wait_estimate(node, node - gpu, held, [], gpu, 10) == 30.0
    assert wait_estimate(node, node - gpu, held, [], SLOT, 10) == 0.0


def test_each_version_has_a_name() -> None:
    assert [WAITS[name] for name in WAITS.names()] == [wait_estimate, slot_wait_estimate]
