"""Guaranteed and opportunistic containers that wait at one node: two lines in one record of what the node says."""

import math

import pytest

from nm.distributed import (
    Asked,
    DistributedLimits,
    DistributedScheduler,
    NodeOffer,
    NodesPublished,
    NotBooked,
)
from rm.scheduler.events import Estimated, NodeQueueReported, QueueingChanged
from rm.scheduler.node_queues.spec import QueueingSpec
from rm.scheduler.opportunistic.placing import OpportunisticLimits
from tests.rm.rm_world import SLOT, World, hosts, row, rows
from yaqd.model import ApplicationAttemptId, ApplicationId, ExecutionType, NodeId

SPARE = ExecutionType.OPPORTUNISTIC
BOUNDED = QueueingSpec(bound=3)


class Both(World):
    def __init__(self, spec: QueueingSpec | None = BOUNDED) -> None:
        super().__init__(queueing=spec, opportunistic=OpportunisticLimits())

    def says(self, node: NodeId, running: int, queued: int, wait_s: float, most: float = 10) -> None:
        self.tell(NodeQueueReported(node, running, queued, wait_s, opportunistic_max=most))

    def timed(self) -> ApplicationAttemptId:
        """An attempt whose containers run for 3 s as far as is known."""
        attempt = self.begin(tolerates_waiting=True)
        self.tell(Estimated(attempt.application_id, 1, 3.0))
        return attempt


def test_opportunistic_containers_close_no_queue_to_guaranteed_ones_which_go_first() -> None:
    life = Both()
    spare, job = life.begin(tolerates_waiting=True), life.timed()
    nodes = [life.join("a"), life.join("b")]
    life.asks(job, row(count=8))
    for node in nodes:
        life.says(node, 4, 0, 2.0)
    assert len(life.asks(spare, row(count=3, kind=SPARE))) == 3, "nobody knows how long they run"
    assert len(life.asks(job, row(count=6))) == 6


def test_guaranteed_containers_that_were_sent_take_no_place_of_opportunistic_ones() -> None:
    life = Both()
    job, spare, node = life.timed(), life.begin(tolerates_waiting=True), life.join("a")
    life.asks(job, row(count=4))
    life.says(node, 4, 0, 2.0, most=2)
    assert len(life.asks(job, row(count=2))) == 2
    assert len(life.asks(spare, row(count=3, kind=SPARE))) == 2


def test_a_node_whose_queue_is_filled_no_more_is_believed_as_before() -> None:
    life = Both(QueueingSpec(bound=4, default_estimate_s=10.0))
    node, attempt = life.join("h"), life.begin(tolerates_waiting=True)
    life.says(node, 4, 2, 5.0)
    life.tell(QueueingChanged(None))
    for _ in range(20):
        life.now += 1.0
        life.reports_opportunistic(node, 0, 0, 10)
        (given,) = life.asks(attempt, row(count=1, kind=SPARE))
        life.ends(given.container_id)


def test_switched_on_again_nothing_waits_at_a_node_before_it_has_reported() -> None:
    life = Both(QueueingSpec(bound=4, default_estimate_s=10.0))
    node, attempt = life.join("h"), life.begin(tolerates_waiting=True)
    life.asks(attempt, row(count=4))
    life.says(node, 4, 0, 1.0)
    life.tell(QueueingChanged(None))
    life.now += 1000.0
    life.tell(QueueingChanged(QueueingSpec(bound=4, default_estimate_s=10.0)))
    assert life.asks(attempt, row(count=3)) == []
    life.says(node, 4, 0, 1.0)
    assert len(life.beats(node)) == 3


def test_a_hold_outlives_an_opportunistic_container_that_goes_to_its_node() -> None:
    life = Both()
    short, endless, spare = life.timed(), life.begin(tolerates_waiting=True), life.begin(tolerates_waiting=True)
    a, b = life.join("a"), life.join("b")
    life.asks(short, row(count=8))
    life.says(a, 4, 0, 1.0, most=100)
    life.says(b, 4, 0, 20.0, most=0)
    life.asks(endless, row(priority=2))
    life.now += 2.0
    life.beats(a)
    held = [hold.node.id for hold in life.scheduler.view.holds.of_attempt(life.attempt_of(endless))]
    assert held == [a]
    assert hosts(life.asks(spare, row(count=1, kind=SPARE))) == ["a"]
    life.now += 2.0
    life.beats(a)
    assert [hold.node.id for hold in life.scheduler.view.holds.of_attempt(life.attempt_of(endless))] == held


def test_a_node_that_had_room_and_gave_it_away_is_not_the_best_for_ever() -> None:
    life = Both()
    attempt = life.begin(tolerates_waiting=True)
    a, b = life.join("a"), life.join("b")
    life.tell(Estimated(attempt.application_id, 1, 3.0))
    life.says(a, 4, 0, 0.0, most=100)
    life.says(b, 4, 0, 0.1, most=100)
    given = life.asks(attempt, row(count=60, kind=SPARE))
    assert {"a", "b"} == set(hosts(given)) and hosts(given).count("a") < 30


@pytest.mark.parametrize("zeroed", [False, True])
def test_rows_that_come_back_to_a_full_table_shut_nobody_out(zeroed: bool) -> None:
    attempt = ApplicationAttemptId(ApplicationId(1, 1), 1)
    limits = DistributedLimits(ask_rows_max=3)
    proxy = DistributedScheduler(attempt, limits, least=SLOT, most=SLOT * 4, id_start=0)
    node = NodeOffer(NodeId("h1", 1), "h1:1", "/r1", free=SLOT * 4, queued=0, wait_s=0.0)
    proxy.handle(NodesPublished((node,)), 0.0)
    (placed,) = proxy.handle(Asked(rows("h1", "/r1")), 0.0)
    proxy.handle(NodesPublished(()), 0.5)
    proxy.handle(Asked(rows("h2", "/r2")), 1.0)
    proxy.handle(NotBooked(((placed.container_id, placed.wanted_by),)), 1.0)
    proxy.validate()
    proxy.handle(Asked(tuple(row(name, 0) for name in ("h1", "/r1", "h2", "/r2", "*")) if zeroed else ()), 2.0)
    assert proxy.asks.pending == (0 if zeroed else 2) and math.isfinite(proxy.lowest_id)


def test_absurd_numbers_of_a_node_whose_queue_is_not_filled_are_bounded() -> None:
    life = Both(None)
    node = life.join("h")
    life.tell(NodeQueueReported(node, -3, -2, math.nan, opportunistic_max=10, queues_any=False))
    queue = life.scheduler.view.nodes.all()[0].queue
    assert (queue.running, queue.queued, queue.wait_s) == (0, 0, math.inf)
