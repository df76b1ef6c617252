"""For how long a container is taken to wait at a node, and when that is longer than is worth it."""

import math

import pytest

from rm.scheduler.events import Estimated, QueueingChanged
from rm.scheduler.node_queues.spec import QueueingSpec, Tuning
from tests.rm.rm_life import Life


def test_room_that_a_node_said_it_has_is_promised_to_one_alone() -> None:
    life = Life()
    given_away, full = life.node("a"), life.node("b")
    app = life.app(estimate=40.0)
    assert life.ask(app, 8) == [*"abababab"]
    # What was given has not come to the first yet: it says that nothing runs and that a newcomer would not wait.
    life.reports(given_away, 0, 0, 0.0)
    life.reports(full, 4, 0, 3.0)
    assert life.ask(app, 1) == ["b*"], "of four tasks of 40 s one ends in 10 s"
    life.reports(full, 4, 0, 12.0)
    assert life.ask(app, 1) == ["a*"]


@pytest.mark.parametrize(("least", "wait_s", "waits"), [(0, 2.2, True), (0, 2.3, False), (1, 2.3, True)])
def test_a_bound_that_finds_itself_lets_nothing_wait_for_longer_than_slots_idle(
    least: int, wait_s: float, waits: bool
) -> None:
    # a slot is refilled in 1.5 s in the mean: a heartbeat, and half of what is between two calls of a master
    tuning = Tuning(policy="fixed", mean_s=10.0, heartbeat_s=1.0, poll_s=1.0, least=least)
    life = Life(QueueingSpec(bound=None, tuning=tuning))
    life.node("a", wait=wait_s)
    assert life.ask(life.app(), 5) == ["a"] * 4 + ["a*"] * waits


def test_a_node_that_tells_of_ends_at_once_is_looked_at_with_its_heartbeats() -> None:
    tuner = Tuning(heartbeat_s=1.0, poll_s=0.2).begin()
    assert tuner.wait_max_s == pytest.approx(1.5 * (1.0 + 0.1))
    other = tuner.another()
    for _ in range(100):
        tuner.told(0.1, at_once=True)  # what is left is what a start takes
    assert tuner.gap_s == pytest.approx(0.2) and tuner.wait_max_s == pytest.approx(1.5 * (0.2 + 1.0))
    assert other.wait_max_s == pytest.approx(1.65), "each node has its own"
    assert Tuning(least=1).begin().wait_max_s == math.inf


def test_what_ends_at_a_node_is_worked_out_anew_when_something_came_or_went() -> None:
    life = Life()
    node = life.node("a", wait=0.0)
    queue = life.scheduler.node_queues.get(node)
    assert queue is not None and queue.expected_wait() == 0.0, "nothing is there"
    app, endless = life.app(estimate=40.0), life.app(estimate=None)
    assert life.ask(app, 3) == ["a"] * 3
    assert queue.expected_wait() == 0.0, "one more like them has room"
    assert life.ask(endless, 1) == ["a"]
    assert queue.expected_wait() == pytest.approx(40.0 / 3), "the fourth has no end as far as anybody knows"
    life.tell(Estimated(endless.application_id, 1, 10.0))
    life.end("a")
    assert queue.expected_wait() == 0.0
    # the bound is gone: what was worked out before does not stay
    life.tell(QueueingChanged(None))
    assert life.ask(endless, 1) == ["a"]
    assert queue.expected_wait() == pytest.approx(1.0 / (2 / 40.0 + 2 / 10.0))
    for _ in range(4):
        life.end("a")
    assert queue.expected_wait() == 0.0


def test_ends_that_become_known_let_a_node_be_found() -> None:
    life = Life()
    node = life.node("a", wait=0.0)
    endless = life.app(estimate=None)
    assert life.ask(endless, 4) == ["a"] * 4
    app = life.app()
    assert life.ask(app, 1) == [], "nobody knows when anything ends"
    life.tell(Estimated(endless.application_id, 1, 10.0))
    assert life.report(node, wait=0.0) == ["a*"]


def test_what_is_too_large_for_what_is_free_is_reserved_for_where_waiting_is_not_worth_it() -> None:
    tuning = Tuning(policy="fixed", mean_s=10.0, heartbeat_s=1.0, poll_s=1.0)
    life = Life(QueueingSpec(bound=None, tuning=tuning))
    node = life.node("a", wait=7.0)
    small, large = life.app(), life.app()
    assert life.ask(small, 4) == ["a"] * 4
    assert life.ask(large, 1, gb=3) == []
    life.ask(small, 40)
    given: list[str] = []
    for at in range(1, 13):
        life.now += 1.0
        if at % 3 == 0:
            given += life.end("a")
        given += life.report(node, wait=7.0)
        if life.scheduler.view.attempt(large) and life.scheduler.view.nodes.all()[0].reserved is not None:
            break
    reserved = life.scheduler.view.nodes.all()[0].reserved
    assert reserved is not None and reserved.attempt.id == large, "as where nothing waits at nodes"
