"""A node that is held for nothing any more is everybody's again at once, whatever kind of hold it was."""

import pytest

from rm.scheduler.events import Asked, AskRow, AttemptEnded, NodeDraining, NodeResized
from rm.scheduler.node_queues.spec import QueueingSpec
from rm.scheduler.view.node import AskHold, HoldKind, NodeView
from tests.rm.rm_life import Life
from tests.rm.rm_world import GB
from yaqd.model import ApplicationAttemptId, NodeId, Resource


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
