"""Whose containers wait at nodes, and where: shares of queues, turns of jobs, strategies of placement."""

import pytest

from rm.scheduler.decisions import Preempt, Warn
from rm.scheduler.events import ApplicationMoved, NodeBeat, NodeQueueReported, PreemptionDue
from rm.scheduler.node_queues.spec import QueueingSpec
from rm.scheduler.preemption.spec import PreemptionSpec
from rm.scheduler.queues.spec import QueueConfigError
from tests.rm.rm_life import Life, named
from tests.rm.rm_world import GB
from yaqd.model import Resource

SHARES = {
    "root.queues": "a,b",
    "root.a.capacity": "70",
    "root.b.capacity": "30",
}
CAPPED = {"root.a.maximum-capacity": "70", "root.b.maximum-capacity": "40"}


def test_what_waits_counts_against_a_maximum_capacity() -> None:
    life = Life(QueueingSpec(bound=10), lines={**SHARES, **CAPPED})
    node = life.node("a", gb=10)
    for name in ("a", "b"):
        life.ask(life.app(name), 1000)
    life.tell(NodeQueueReported(node, 10, 0, 1.0))
    life.tell(NodeBeat(node))
    queues = life.scheduler.view.queues
    held = [(queues[name].used.memory_mb + queues[name].sent.used.memory_mb) // GB for name in ("root.a", "root.b")]
    assert held == [7, 4], "any of it might start at any moment"


def test_shares_hold_for_what_runs_and_for_what_waits() -> None:
    life = Life(QueueingSpec(bound=10), lines=SHARES)
    node = life.node("a", gb=10)
    first, second = life.app("a"), life.app("b")
    life.ask(first, 1000)
    life.ask(second, 1000)
    life.tell(NodeQueueReported(node, 10, 0, 1.0))  # ten run, so ten may wait
    life.tell(NodeBeat(node))
    queues = life.scheduler.view.queues
    used = {name: (queues[name].used.memory_mb // GB, queues[name].sent.used.memory_mb // GB) for name in SHARED}
    # Users are limited to their queue's capacity; limits count what is in use, and queues are shared alike.
    assert {name: sum(parts) for name, parts in used.items()} == {"root.a": 13, "root.b": 7}, (
        "b is owed what a ran more"
    )
    for _ in range(200):
        life.end("a")
        life.report(node, queued=10)
    assert abs(queues["root.a"].sent.used.memory_mb + queues["root.a"].used.memory_mb - 14 * GB) <= GB


SHARED = ("root.a", "root.b")


def test_what_waits_moves_with_its_application() -> None:
    life = Life(QueueingSpec(bound=3), lines={**SHARES, "root.b.user-limit-factor": "9"})
    life.node("a")
    app = life.app("b")
    life.ask(app, 7)
    life.tell(ApplicationMoved(app.application_id, "a"))
    queues = life.scheduler.view.queues
    assert (queues["root.b"].used, queues["root.b"].sent.used) == (Resource(), Resource())
    assert queues["root.a"].used.memory_mb == 4 * GB


def test_what_is_given_at_its_move_to_another_queue_has_nothing_reserved_any_more() -> None:
    values = {"root.a.maximum-capacity": "50", "root.a.capacity": "50", "root.b.capacity": "50"}
    life = Life(QueueingSpec(bound=0), lines={**SHARES, **values, "root.b.user-limit-factor": "9"})
    first, _ = life.node("a"), life.node("b", gb=6)
    assert len(life.ask(life.app("b"), 10)) == 10
    large, small = life.app("a"), life.app("a")
    assert life.ask(large, 1, gb=2) == []
    life.now = 6.0
    assert life.report(first) == []
    assert list(life.scheduler.view.holds.reserved) == [first]
    assert life.ask(small, 4) == []
    assert [life.end("b") for _ in range(6)] == [["b"]] * 4 + [[]] * 2, "then its queue is full, and two are free"
    assert named(life.tell(ApplicationMoved(large.application_id, "b"))) == ["b"]
    assert not life.scheduler.view.holds.reserved
    assert [life.end("a"), life.end("a"), life.report(first)] == [[], [], []], "it wants no second one"


def order_of_jobs(policy: str) -> list[int]:
    """Numbers of the applications in the order in which free places go to them, one at a time.

    The first has 3 tasks of 10 s, the second 2 of 50 s, the third 5 of 1 s: 30, 100 and 5 s of work.
    """
    queues = {"root.queues": "q", "root.q.capacity": "100", "root.q.ordering-policy": policy}
    life = Life(QueueingSpec(bound=0), lines=queues)
    life.node("a", gb=1)
    blocker = life.app("q")
    life.ask(blocker, 1)
    apps = [life.app("q", estimate=estimate) for estimate in (10.0, 50.0, 1.0)]
    for app, count in zip(apps, (3, 2, 5), strict=True):
        life.ask(app, count)
    served = []
    while life.live:
        life.end("a")
        served += [given.container_id.application_id.id - 1 for given in life.live.values()]
    return served


@pytest.mark.parametrize(
    ("policy", "served"),
    [
        ("fifo", [1] * 3 + [2] * 2 + [3] * 5),
        ("ejf", [1] * 3 + [2] * 2 + [3] * 5),
        ("srjf", [3] * 5 + [1] * 3 + [2] * 2),
        ("sjf", [3] * 5 + [1] * 3 + [2] * 2),
        # The one with two tasks left, until the next one has no more than it, which was there first.
        ("lrtf", [2] * 2 + [1] * 3 + [3] * 5),
    ],
)
def test_jobs_take_turns_as_their_queue_says(policy: str, served: list[int]) -> None:
    assert order_of_jobs(policy) == served


def test_a_job_that_was_passed_for_too_long_goes_first_with_all_that_it_waits_for() -> None:
    queues = {"root.queues": "q", "root.q.capacity": "100", "root.q.ordering-policy": "srjf"}
    life = Life(QueueingSpec(bound=0), lines=queues)
    life.node("a", gb=1)
    long, short = life.app("q", estimate=1000.0), life.app("q", estimate=1.0)
    life.ask(long, 3)
    life.ask(short, 100)
    served = []
    for _ in range(8):
        life.now += 20.0  # starved once passed for 45 s, and 0.4 of its other time
        life.end("a")
        served += [given.container_id.attempt_id for given in life.live.values()]
    assert served == [short, short, short, long, long, short, short, short]


def test_an_unknown_order_is_refused_with_the_known_ones() -> None:
    with pytest.raises(QueueConfigError, match=r"write fifo, fair, clotho, srjf, lrtf"):
        Life(lines={"root.queues": "q", "root.q.capacity": "100", "root.q.ordering-policy": "magic"})


@pytest.mark.parametrize(
    ("placement", "hosts"),
    [
        # a waits 9 s with nobody in its queue, b 1 s behind two, c 5 s behind one
        ("wait", ["b*"]),
        ("length", ["a*"]),
        ("length-per-slot", ["a*"]),
    ],
)
def test_where_it_waits_is_a_strategy_by_name(placement: str, hosts: list[str]) -> None:
    life = Life(QueueingSpec(bound=5, placement=placement))
    nodes = [life.node(host) for host in "abc"]
    app = life.app()
    life.ask(app, 12)
    for node, queued, wait in zip(nodes, (0, 2, 1), (9.0, 1.0, 5.0), strict=True):
        life.report(node, queued=queued, wait=wait)
    assert life.ask(app, 1) == hosts


@pytest.mark.parametrize(("placement", "host"), [("length", "small*"), ("length-per-slot", "large*")])
def test_slots_shorten_a_queue(placement: str, host: str) -> None:
    life = Life(QueueingSpec(bound=5, placement=placement))
    small, large = life.node("small", gb=2), life.node("large", gb=8)
    app = life.app()
    life.ask(app, 10)
    for node, running, queued in ((small, 2, 1), (large, 8, 2)):
        life.tell(NodeQueueReported(node, running, queued, 5.0))
        life.tell(NodeBeat(node))
    assert life.ask(app, 1) == [host]


@pytest.mark.parametrize("placement", ["two-choices", "random"])
def test_drawn_nodes_are_different_ones_and_the_same_in_each_life(placement: str) -> None:
    def drawn() -> list[str]:
        life = Life(QueueingSpec(bound=5, placement=placement))
        for host in "abcdefgh":
            life.node(host)
        app = life.app()
        life.ask(app, 32)
        return life.ask(app, 12)

    first = drawn()
    assert len(first) == 12 and len(set(first)) >= 4 and first == drawn()


def test_what_waits_is_not_taken_back_for_other_queues() -> None:
    queues = {"root.queues": "a,b", "root.a.capacity": "50", "root.b.capacity": "50", "root.b.user-limit-factor": "2"}
    life = Life(QueueingSpec(bound=4), lines=queues, preemption=PreemptionSpec(wait_s=0.0, per_round=1.0))
    life.node("a", gb=8)
    greedy, poor = life.app("b"), life.app("a", estimate=None)
    life.ask(greedy, 20)
    waiting = {c for queue in life.scheduler.node_queues.all() for c in queue.waiting}
    assert len(waiting) == 4
    life.ask(poor, 4)
    taken = set()
    for _ in range(3):
        life.now += 10.0
        taken |= {d.container_id for d in life.tell(PreemptionDue()) if isinstance(d, Warn | Preempt)}
    assert taken and not taken & waiting
