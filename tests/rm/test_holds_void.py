"""A node that is held for nothing any more is everybody's again at once, whatever kind of hold it was."""

import pytest

from rm.scheduler.events import Asked, AttemptEnded, NodeDraining, NodeResized
from rm.scheduler.node_queues.spec import QueueingSpec
from rm.scheduler.view.node import AskHold, HoldKind, NodeView
from tests.rm.rm_life import Life, named
from tests.rm.rm_world import GB
from yaqd.model import ApplicationAttemptId, NodeId, Resource
from yaqd.policies.asks.rows import AskRow


class Drained(Life):
    """One full node, whose queue drains for an ask whose end nobody knows."""

    def __init__(self) -> None:
        super().__init__(QueueingSpec(bound=4))
        self.id: NodeId = self.node("a")
        self.busy = self.app()
        assert self.ask(self.busy, 5) == ["a", "a", "a", "a", "a*"]
        self.endless: ApplicationAttemptId = self.app(estimate=None)
        self.ask(self.endless, 1, gb=4)
        self.report(self.id, queued=1)
        assert self.held is not None and self.held.kind is HoldKind.QUEUE

    @property
    def view(self) -> NodeView:
        found = self.scheduler.view.nodes.get(self.id)
        assert found is not None
        return found

    @property
    def held(self) -> AskHold | None:
        return self.view.hold


def test_an_ask_that_is_cancelled_lets_go_of_the_queue() -> None:
    life = Drained()
    life.tell(Asked(life.endless, (AskRow(1, -1, "*", Resource(4 * GB, 1), 0),)))
    assert life.held is None
    assert life.ask(life.busy, 1) == ["a*"], "others may wait there, before the node's next heartbeat"


def test_an_attempt_that_ends_lets_go_of_the_queue() -> None:
    life = Drained()
    life.tell(AttemptEnded(life.endless))
    assert life.held is None


def test_a_node_that_is_drained_is_held_for_nobody() -> None:
    life = Drained()
    life.tell(NodeDraining(life.id))
    assert life.held is None


@pytest.mark.parametrize(("gb", "is_held"), [(3, False), (6, True)])
def test_a_node_that_becomes_too_small_for_the_ask_is_not_held_for_it(gb: int, is_held: bool) -> None:
    life = Drained()
    life.tell(NodeResized(life.id, Resource(gb * GB, 4)))
    assert (life.held is not None) == is_held


def test_what_becomes_free_may_give_another_ask_of_the_attempt_all_it_wants() -> None:
    """The first hold's node serves the second ask at once, and with that ends the second hold."""
    life = Life(QueueingSpec(bound=4))
    first, second = life.node("a"), life.node("b")
    assert len(life.ask(life.app(), 10)) == 10
    app = life.app(estimate=None)
    life.ask(app, 1, gb=4)
    life.ask(app, 1, gb=1, priority=2)
    view, attempt = life.scheduler.view, life.scheduler.view.attempt(app)
    nodes = [view.nodes.get(node_id) for node_id in (first, second)]
    assert attempt is not None and nodes[0] is not None and nodes[1] is not None
    large, small = attempt.asks
    view.holds.begin(AskHold(nodes[0], attempt, HoldKind.RESERVED, life.now, large, until=100.0))
    view.holds.begin(AskHold(nodes[1], attempt, HoldKind.QUEUE, life.now, small))
    assert life.end("a") == [], "what ends there is kept"
    for _ in range(3):
        life.end("a")
    given = life.tell(Asked(app, (AskRow(1, -1, "*", Resource(4 * GB, 1), 0),)))
    assert "a" in named(given) and not attempt.asks.pending and not view.holds.of_attempt(attempt)
