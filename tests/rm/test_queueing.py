"""Containers sent to wait at nodes: who, where, how many, and what never does."""

import math
from dataclasses import replace

import pytest

from rm.scheduler.events import (
    AttemptEnded,
    ContainerEnded,
    Estimated,
    NodeBeat,
    NodeJoined,
    NodeLeft,
    NodeQueueReported,
    NodeSilent,
    PlaceLost,
    QueueingChanged,
)
from rm.scheduler.node_queues.spec import QueueingSpec, Tuning
from tests.rm.rm_life import Life, named
from tests.rm.rm_world import GB
from yaqd.model import NodeId, Resource


def test_what_finds_no_room_waits_where_it_waits_least() -> None:
    life = Life()
    life.node("a", wait=3.0)
    life.node("b", wait=1.0)
    app = life.app()
    assert life.ask(app, 20) == [*"abababab", "b*", "a*", "b*", "a*"]


def test_a_queue_that_got_shorter_is_filled_again() -> None:
    life = Life()
    node = life.node("a")
    app = life.app()
    assert life.ask(app, 9) == ["a"] * 4 + ["a*"] * 2
    # What ended made room for one that waited: its place in the queue is free, at the end and at the next report.
    assert life.end("a") == ["a*"]
    assert life.report(node, queued=2) == []
    assert life.report(node, queued=0) == []  # those on their way still count
    assert [life.end("a"), life.end("a"), life.end("a")] == [["a*"], ["a*"], []]


def test_headroom_is_never_negative_and_use_counts_what_waits() -> None:
    life = Life()
    life.node("a")
    app = life.app()
    life.ask(app, 6)
    view = life.scheduler.view
    attempt = view.attempt(app)
    assert attempt is not None and view.headroom(attempt) == Resource()
    assert view.root.used == Resource(4 * GB, 4) and view.root.sent.used == Resource(2 * GB, 2)
    assert view.nodes.all()[0].free.memory_mb == -2 * GB


@pytest.mark.parametrize("queueing", [QueueingSpec(bound=0), QueueingSpec(wait_max_s=0.5)])
def test_nothing_waits_where_no_bound_allows_it(queueing: QueueingSpec) -> None:
    life = Life(queueing)
    life.node("a", wait=0.5)
    assert life.ask(life.app(), 9) == ["a"] * 4


def test_the_longest_wait_bounds_queues_too() -> None:
    life = Life(QueueingSpec(bound=100, wait_max_s=10.0))
    life.node("a", wait=5.0)
    # Each that is sent adds its estimate over the running ones: 5, 7.5 and then 10 s.
    assert life.ask(life.app(), 20) == ["a"] * 4 + ["a*"] * 2


def test_nothing_waits_where_only_never_ending_containers_run() -> None:
    life = Life()
    node = life.node("a", wait=math.inf)
    app = life.app()
    assert life.ask(app, 6) == ["a"] * 4
    assert life.report(node, wait=7.0) == ["a*", "a*"]  # one of them has an end after all


def test_what_has_no_known_end_never_waits_until_it_is_known() -> None:
    life = Life()
    life.node("a")
    app = life.app(estimate=None)
    assert life.ask(app, 9) == ["a"] * 4
    assert life.end("a") == ["a"]  # free room is for all
    assert named(life.tell(Estimated(app.application_id, 1, 8.0))) == ["a*", "a*"]


def test_a_default_estimate_lets_everything_wait() -> None:
    life = Life(QueueingSpec(bound=2, default_estimate_s=30.0))
    life.node("a")
    assert life.ask(life.app(estimate=None), 9) == ["a"] * 4 + ["a*"] * 2


def test_a_node_whose_tasks_all_end_between_two_heartbeats_gets_a_queue() -> None:
    life = Life(QueueingSpec(bound=None))
    node = life.node("a", wait=None)
    life.tell(NodeQueueReported(node, 0, 0, 0.0))
    app = life.app(estimate=1.0)
    assert life.ask(app, 100) == ["a"] * 4
    life.now += 3.0
    life.tell(NodeQueueReported(node, 0, 0, 0.0))  # nothing runs any more
    given = [name for _ in range(4) for name in life.end("a")]
    given += named(life.tell(NodeBeat(node)))
    assert given.count("a*") > 4


def test_a_stock_node_is_given_no_more_than_fits() -> None:
    life = Life()
    life.node("a", wait=None)
    life.node("b")
    assert sorted(life.ask(life.app(), 20)) == ["a"] * 4 + ["b"] * 4 + ["b*"] * 2


def test_a_master_never_waits_and_a_queue_drains_for_it() -> None:
    life = Life()
    life.node("a")
    first = life.app()
    assert life.ask(first, 6) == ["a"] * 4 + ["a*"] * 2
    second = life.app(has_master=True)
    life.ask(second, 1)
    assert life.end("a") == [] and life.end("a") == []  # the two that waited start, nobody is sent after them
    assert life.end("a") == ["a", "a*"]  # the master at once, and what comes after it may wait again
    master = next(given for given in life.live.values() if given.is_master)
    assert master.queued is None and master.container_id.attempt_id == second


def test_only_as_many_queues_drain_as_are_wanted() -> None:
    life = Life()
    life.node("a")
    life.node("b")
    first = life.app()
    life.ask(first, 12)
    life.app(has_master=True)
    third = life.app()
    life.ask(third, 5)
    assert life.end("a") == []  # held for the master, whose turn it is
    assert life.end("b") == ["b*"]  # and this one goes on
    life.now += 6.0  # the first is reserved meanwhile
    assert life.end("a") == []
    assert life.end("b") == ["b*"]


def test_nothing_waits_while_enough_is_free() -> None:
    life = Life(QueueingSpec(bound=2, free_share=0.3))
    life.node("a", rack="/r1")
    life.node("b", rack="/r2")
    app = life.app()
    assert life.ask(app, 4, "a") == ["a"] * 4
    # Half is free, so the host that is preferred is waited for (delay scheduling) and not queued at.
    assert life.ask(app, 1, "a") == []


def test_data_is_worth_a_longer_wait() -> None:
    life = Life(QueueingSpec(bound=9))
    life.node("a", wait=15.0)
    life.node("b", wait=10.0)
    app = life.app()
    life.ask(app, 8)
    # 15 s beside the data, or 10 s and half the affinity.
    assert life.ask(app, 1, "a") == ["a*"]
    assert life.ask(app, 1) == ["b*"]


def test_a_lost_node_takes_its_queue_along_once() -> None:
    life = Life()
    node = life.node("a")
    app = life.app()
    life.ask(app, 6)
    life.tell(NodeLeft(node))
    for container_id in list(life.live):
        life.tell(ContainerEnded(container_id))
    assert life.scheduler.view.root.used == Resource()
    life.node("b")
    assert life.ask(app, 6) == ["b"] * 4 + ["b*"] * 2


def test_a_node_that_comes_back_with_more_than_fits_counts_them_as_waiting() -> None:
    life = Life(QueueingSpec(bound=3))
    node = life.node("a")
    app = life.app()
    assert life.ask(app, 7) == ["a"] * 4 + ["a*"] * 3
    held = tuple(life.live)
    life.tell(NodeLeft(node))
    life.tell(NodeJoined(node, "/r1", Resource(4 * GB, 4), held))
    life.ask(app, 5)
    assert life.report(node, queued=0) == []  # whatever it says: three were sent and cannot have started


@pytest.mark.parametrize("queued", [-1, 10**9])
def test_a_node_that_lies_about_its_length_is_given_no_more(queued: int) -> None:
    life = Life()
    node = life.node("a")
    app = life.app()
    life.report(node, queued=queued)
    assert len(life.ask(app, 9)) == (6 if queued < 0 else 4)


def test_switched_off_while_it_runs_nothing_more_is_sent() -> None:
    life = Life()
    node = life.node("a")
    app = life.app()
    life.ask(app, 9)
    life.tell(QueueingChanged(None))
    assert [life.end("a") for _ in range(3)] == [[], [], ["a"]]
    life.tell(QueueingChanged(QueueingSpec(bound=1)))
    assert life.report(node) == ["a*"]


def test_the_time_without_queues_is_no_gap_between_heartbeats() -> None:
    life = Life(QueueingSpec(bound=None))
    node = life.node("a")
    bounds = []
    for spec in (QueueingSpec(bound=None), None, QueueingSpec(bound=None)):
        life.tell(QueueingChanged(spec))
        for _ in range(200):
            life.now += 3.0
            life.report(node)
            bounds.append(life.scheduler.node_queues.bound_of(node))
    assert set(bounds[200:400]) == {0} and max(bounds[400:]) <= max(bounds[:200])


def test_a_queue_is_filled_again_when_what_it_was_held_for_is_gone() -> None:
    life = Life()
    life.node("a")
    first = life.app()
    life.ask(first, 6)
    second = life.app(has_master=True)
    assert life.end("a") == []  # held for the second one's master
    life.tell(AttemptEnded(second))
    assert life.ask(first, 5) == ["a*"]


def test_what_lost_its_place_takes_its_wait_along() -> None:
    life = Life()
    node = life.node("a")
    app = life.app()
    assert life.ask(app, 6) == ["a"] * 4 + ["a*"] * 2
    life.now = 20.0
    life.tell(PlaceLost(app.application_id, 1, 3.0))
    life.tell(ContainerEnded(life.live.popitem()[0]))
    life.report(node, queued=1)
    assert life.ask(app, 1) == ["a*"]
    assert [given.waits_since for given in life.live.values()] == [None] * 5 + [3.0]
    life.tell(AttemptEnded(app))
    life.tell(PlaceLost(app.application_id, 1, 3.0))
    assert not life.scheduler.node_queues.lost_places, "nobody would ask for it"


def test_what_is_overdue_waits_nowhere_again() -> None:
    life = Life(QueueingSpec(bound=4, overdue_s=60.0))
    life.node("a")
    app = life.app()
    life.ask(app, 4)
    life.now = 70.0
    life.tell(PlaceLost(app.application_id, 1, 10.0))
    assert life.ask(app, 3) == ["a*"] * 2, "its stage's others may wait"
    assert life.scheduler.node_queues.lost_places.overdue(app.application_id, 1) == 1
    ends = [life.end("a") for _ in range(3)]
    assert ends[:2] == [[], []] and ends[2] == ["a"]  # both that waited start, then there is room
    assert [given.waits_since for given in life.live.values()][-1] == 10.0
    assert life.ask(app, 1) == ["a*"]


def test_nothing_is_sent_to_wait_at_a_node_that_is_silent() -> None:
    life = Life()
    near, far = life.node("near", wait=1.0, gb=1), life.node("far", wait=9.0, gb=1)
    app = life.app()
    assert sorted(life.ask(app, 2)) == ["far", "near"]
    life.tell(NodeSilent(near))
    assert life.ask(app, 1) == ["far*"], "what it said last is too old"
    life.report(near, wait=1.0)
    assert life.ask(app, 1) == ["near*"]
    for node in (near, far, NodeId("unknown", 1)):
        life.tell(NodeSilent(node))
    assert life.ask(app, 1) == []
    assert life.report(far, wait=90.0) == ["far*"]


def test_a_wait_in_the_future_is_none() -> None:
    life = Life(QueueingSpec(bound=4, overdue_s=60.0))
    life.node("a")
    app = life.app()
    life.ask(app, 4)
    life.tell(PlaceLost(app.application_id, 1, 1e9))
    assert life.ask(app, 1) == ["a*"]
    assert list(life.live.values())[-1].waits_since == life.now


HALVES = {
    "root.queues": "a,b",
    **{
        f"root.{name}.{key}": value for name in "ab" for key, value in (("capacity", "50"), ("user-limit-factor", "-1"))
    },
}


def test_who_comes_first_to_empty_queues_does_not_take_all_places() -> None:
    life = Life(QueueingSpec(bound=8), lines=HALVES)
    life.node("x")
    first, second = life.app("a", estimate=None), life.app("b", estimate=None)
    life.ask(first, 9)
    life.ask(second, 9)
    assert all(given.queued is None for given in life.live.values()), "nobody knows their ends: none waits"
    assert named(life.tell(Estimated(second.application_id, 1, 10.0))) == ["x*"] * 5, "the first one runs four"
    assert named(life.tell(Estimated(first.application_id, 1, 10.0))) == ["x*"] * 3


@pytest.mark.parametrize("bound", [2, None])
def test_a_node_says_how_many_it_takes_at_most(bound: int | None) -> None:
    spec = QueueingSpec(bound=bound, tuning=Tuning(mean_s=0.5))
    life = Life(spec)
    node = life.node("a", wait=None)
    life.tell(NodeQueueReported(node, 4, 0, 1.0, most=1))
    app = life.app()
    assert life.ask(app, 20) == [*"aaaa", "a*"]
    assert (life.scheduler.node_queues.bound_of(node), life.scheduler.node_queues.bounds) == (1, 1)
    life.tell(QueueingChanged(replace(spec, unaware_wait_s=9.0)))
    assert life.scheduler.node_queues.bound_of(node) <= 1, "other settings change nothing of it"
    life.tell(NodeQueueReported(node, 4, 1, 1.0, most=0))
    assert life.scheduler.node_queues.bound_of(node) == 0
    life.tell(NodeQueueReported(node, 4, 1, 1.0))
    assert life.scheduler.node_queues.bound_of(node) >= 2, "it takes any number again"
