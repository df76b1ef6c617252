"""The one table of nodes that are held, whoever they are held for."""

import pytest

from rm.scheduler.decisions import Keep, KeepNoMore, Reserve, Unreserve
from rm.scheduler.events import AttemptEnded, NodeBeat, NodeLeft, NodeSilent
from rm.scheduler.node_queues.spec import QueueingSpec
from rm.scheduler.view.node import AskHold, HoldKind, NodeView, OpportunisticHold
from rm.scheduler.view.records import AttemptView
from tests.rm.rm_life import Life, named
from tests.rm.rm_world import GB
from yaqd.model import NodeId


class Held(Life):
    """Two full nodes with queues, and an attempt that wants a large container."""

    def __init__(self) -> None:
        super().__init__(QueueingSpec(bound=0))
        self.first, self.second = self.at("a"), self.at("b")
        assert len(self.ask(self.app(), 8)) == 8
        wanted = self.app()
        assert self.ask(wanted, 1, gb=3) == []
        attempt = self.scheduler.view.attempt(wanted)
        assert attempt is not None
        self.attempt: AttemptView = attempt
        [self.wanted] = list(attempt.asks)
        self.holds = self.scheduler.view.holds

    def at(self, host: str) -> NodeView:
        node = self.scheduler.view.nodes.get(self.node(host))
        assert node is not None
        return node

    def hold(self, node: NodeView, kind: HoldKind) -> AskHold:
        return AskHold(node, self.attempt, kind, self.now, self.wanted, node.free_mb)

    def spare(self, node: NodeView) -> OpportunisticHold:
        return OpportunisticHold(node, self.attempt, HoldKind.OPPORTUNISTIC, self.now, 2, self.now - 20.0)


def test_each_kind_begins_and_ends_in_the_table_and_leaves_nothing_there() -> None:
    life = Held()
    holds, first = life.holds, life.first
    life.now += 6.0
    queue, spare = life.hold(life.second, HoldKind.QUEUE), life.spare(first)
    reserved = life.hold(first, HoldKind.RESERVED)
    began = [note for hold in (reserved, queue, spare) for note in holds.begin(hold)]
    holds.validate()
    assert [type(note) for note in began] == [Reserve, Keep], "that a queue drains is not told"
    assert "has waited 6.0 s" in began[0].reason and "for 20 s" in began[1].reason
    assert holds.of(life.attempt, life.wanted) == [reserved, queue] and holds.reserved_for(life.attempt) is reserved
    assert holds.opportunistic_of(life.attempt.id) == [spare] and first.opportunistic_hold is spare
    assert (first.hold, first.reserved) == (reserved, reserved)
    assert (life.second.hold, life.second.reserved) == (queue, None)
    ended = [note for hold in (reserved, queue, spare) for note in holds.end(hold, "because")]
    holds.validate()
    assert [(type(note), note.reason) for note in ended] == [(Unreserve, "because"), (KeepNoMore, "because")]
    assert not holds.reserved and not holds.opportunistic and holds.of(life.attempt, life.wanted) == []
    assert [node.hold or node.opportunistic_hold for node in (first, life.second)] == [None, None]
    assert holds.reserved_for(life.attempt) is None


def test_a_node_whose_queue_drains_for_one_is_reserved_for_another() -> None:
    life = Held()
    life.holds.begin(life.hold(life.first, HoldKind.QUEUE))
    reserved = life.hold(life.first, HoldKind.RESERVED)
    life.holds.begin(reserved)
    life.holds.validate()
    assert life.holds.of(life.attempt, life.wanted) == [reserved], "a node has one hold"


def test_a_reserved_node_is_not_to_be_found_and_one_whose_queue_drains_is() -> None:
    life = Held()
    life.holds.begin(life.hold(life.first, HoldKind.RESERVED))
    life.holds.begin(life.hold(life.second, HoldKind.QUEUE))
    assert life.first.cell is None and life.second.cell is not None
    for host in "ab":
        for _ in range(2):
            life.end(host)
    assert life.ask(life.app(), 2) == ["b", "b"]


@pytest.mark.parametrize("kind", [HoldKind.RESERVED, HoldKind.QUEUE])
@pytest.mark.parametrize("event", [NodeLeft, NodeSilent, AttemptEnded])
def test_a_hold_ends_with_its_node_and_with_its_attempt(
    kind: HoldKind, event: type[NodeLeft | NodeSilent] | type[AttemptEnded]
) -> None:
    life = Held()
    life.holds.begin(life.hold(life.first, kind))
    life.tell(AttemptEnded(life.attempt.id) if event is AttemptEnded else event(life.first.id))  # type: ignore[arg-type]
    assert life.first.hold is None and not life.holds.reserved
    assert life.holds.of(life.attempt, life.wanted) == []


def test_what_becomes_free_at_a_reserved_node_is_the_holders() -> None:
    life = Held()
    life.holds.begin(life.hold(life.first, HoldKind.RESERVED))
    life.ask(life.app(), 9)
    assert [life.end("a") for _ in range(3)] == [[], [], ["a"]]
    assert life.live[max(life.live)].resource.memory_mb == 3 * GB and life.first.hold is None
    assert named(life.tell(NodeBeat(NodeId("a", 1)))) == []
