"""What waits of a master that takes it for running, as stock MapReduce's does, and of one that says that it knows."""

from dataclasses import replace

import pytest

from rm.scheduler.events import (
    AttemptEnded,
    ContainerEnded,
    Estimated,
    PlaceLost,
    WaitingTolerated,
)
from rm.scheduler.node_queues.spec import QueueingSpec
from rm.settings.queues import QueueSettings
from tests.rm.rm_life import Life
from tests.rm.rm_world import GB
from yaqd.config import Configuration

UNAWARE = QueueingSpec(bound=4, overdue_s=60.0, unaware_wait_s=5.0)


def test_nothing_waits_long_whose_master_takes_it_for_running() -> None:
    life = Life(UNAWARE)
    node = life.node("a", wait=20.0)
    app = life.app()
    assert life.ask(app, 7) == ["a"] * 4, "a node was found where it would wait for 20 s"
    assert life.report(node, wait=5.0) == []
    assert life.report(node, wait=4.0) == ["a*"], "what was sent counts: the next one would wait for 4 s and 10 s / 4"


@pytest.mark.parametrize("wait", [0.0, 0.001, 20.0])
def test_as_shipped_nothing_waits_whose_master_takes_it_for_running(wait: float) -> None:
    spec = QueueSettings.read(Configuration.load(environ={})).spec
    assert spec is not None
    life = Life(replace(spec, bound=4))
    node = life.node("a", wait=wait)
    app, tolerant = life.app(), life.app()
    life.tell(WaitingTolerated(tolerant))
    assert life.ask(app, 6) == ["a"] * 4
    assert life.report(node, wait=wait) == []
    assert "does not say that its containers may wait" in life.why_waits(app)
    assert life.ask(tolerant, 2) == [], "nor do others pass it meanwhile"
    assert life.end("a") == ["a"], "it is given what starts at once"
    assert life.end("a") == ["a", *["a*"] * 2], "and with it the turn goes on"


def test_what_never_waits_has_a_node_kept_as_soon_as_where_nothing_does() -> None:
    spec = QueueSettings.read(Configuration.load(environ={})).spec
    assert spec is not None
    life = Life(replace(spec, bound=4))
    node, app = life.node("a"), life.app()
    life.tell(Estimated(app.application_id, 2, 10.0))
    assert life.ask(app, 3) == ["a"] * 3
    assert life.ask(app, 1, gb=3, priority=2) == []
    life.now = 6.0
    life.report(node)
    assert [hold.size.memory_mb for hold in life.scheduler.view.holds.reserved.values()] == [3 * GB]


@pytest.mark.parametrize("tolerates", [False, True])
def test_a_job_with_reducers_keeps_a_map_though_shorter_ones_come_before_it(tolerates: bool) -> None:
    """Without one its master would kill the reducers; where it says that it tolerates waiting, it would not."""
    queue = {"root.queues": "default", "root.default.capacity": "100", "root.default.ordering-policy": "srjf"}
    life = Life(QueueingSpec(bound=0, unaware_wait_s=0.0), lines=queue)
    life.node("a")
    long, short = life.app(), life.app()
    if tolerates:
        life.tell(WaitingTolerated(long))
    assert life.ask(long, 1, priority=10) == ["a"]
    life.tell(Estimated(long.application_id, 20, 10.0))
    assert life.ask(long, 90, priority=20) == ["a"] * 3
    life.ask(short, 9)
    for container_id in list(life.live)[1:]:
        life.tell(ContainerEnded(container_id))
    turns = [given.container_id.attempt_id for given in list(life.live.values())[1:]]
    assert turns == [short, short, short if tolerates else long]


def test_a_master_that_tolerates_it_has_its_containers_wait() -> None:
    life = Life(UNAWARE)
    life.node("a", wait=20.0)
    app = life.app()
    life.tell(WaitingTolerated(app))
    assert life.ask(app, 9) == ["a"] * 4 + ["a*"] * 4
    life.tell(AttemptEnded(app))
    life.tell(WaitingTolerated(app))


def test_nothing_is_sent_where_it_would_be_given_back() -> None:
    life = Life(UNAWARE)
    node = life.node("a", wait=60.0)
    app = life.app()
    life.tell(WaitingTolerated(app))
    assert life.ask(app, 5) == ["a"] * 4
    assert life.report(node, wait=59.0) == ["a*"]


def test_who_tolerates_waiting_does_not_take_the_turn_of_who_does_not() -> None:
    """Else a queue would never be short enough for the latter."""
    life = Life(UNAWARE)
    node = life.node("a", wait=20.0)
    unaware, tolerant = life.app(), life.app()
    life.tell(WaitingTolerated(tolerant))
    assert life.ask(unaware, 5) == ["a"] * 4
    assert life.report(node, wait=20.0) == [], "the queue is left to drain"
    assert life.ask(tolerant, 2) == []
    assert life.report(node, wait=4.0) == ["a*", "a*", "a*"]
    assert [given.container_id.application_id for given in list(life.live.values())[4:]] == [
        unaware.application_id,
        *[tolerant.application_id] * 2,
    ]


def test_what_its_node_gave_back_early_is_overdue_only_where_its_master_does_not_know() -> None:
    life = Life(UNAWARE)
    life.node("a")
    unaware, tolerant = life.app(), life.app()
    life.tell(WaitingTolerated(tolerant))
    life.ask(unaware, 2)
    life.ask(tolerant, 2)
    life.now = 10.0
    for app in (unaware, tolerant):
        life.tell(PlaceLost(app.application_id, 1, 4.0))
    assert life.ask(tolerant, 1) == ["a*"]
    assert life.ask(unaware, 1) == []
