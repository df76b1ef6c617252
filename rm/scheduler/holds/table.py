"""Nodes that are held for somebody: one table of all holds, one place where a hold begins and one where it ends.

A node has at most one hold of its free room and its queue (`NodeView.hold`). It has at most one of what it takes of
opportunistic containers (`NodeView.opportunistic_hold`). `rm.scheduler.holds.choice` says which node is held for whom,
and `rm.scheduler.holds.ends` when it is given up, and why. A node that an operator drains is held for nobody.
"""

from collections.abc import Callable

from rm.scheduler.decisions import Keep, KeepNoMore, Note, Reserve, Unreserve
from rm.scheduler.view.node import AskHold, Hold, HoldKind, NodeQueue, NodeView, OpportunisticHold
from rm.scheduler.view.node_table import NodeTable
from rm.scheduler.view.records import AttemptView
from yaqd.model import ApplicationAttemptId, NodeId
from yaqd.policies.asks.table import Ask, AskKey


class Holds:
    """All holds."""

    def __init__(self, nodes: NodeTable, reopened: Callable[[NodeQueue], None]) -> None:
        """`reopened` hears that a node is held no more."""
        self._nodes = nodes
        self._reopened = reopened
        self.reserved: dict[NodeId, AskHold] = {}
        self.opportunistic: dict[NodeId, OpportunisticHold] = {}
        #: reserved rooms and queues by attempt and ask, in the order in which they began
        self._of_attempts: dict[ApplicationAttemptId, dict[AskKey, list[AskHold]]] = {}

    def of(self, attempt: AttemptView, ask: Ask) -> list[AskHold]:
        """List the nodes that are held for the ask, those that were held first before others."""
        return self._of_attempts.get(attempt.id, {}).get(ask.key, [])

    def of_attempt(self, attempt: AttemptView) -> list[AskHold]:
        """List the nodes that are held for asks of the attempt."""
        return [hold for holds in self._of_attempts.get(attempt.id, {}).values() for hold in holds]

    def opportunistic_of(self, attempt_id: ApplicationAttemptId) -> list[OpportunisticHold]:
        """List the nodes that are held for opportunistic containers of the attempt."""
        return [hold for hold in self.opportunistic.values() if hold.attempt.id == attempt_id]

    def reserved_for(self, attempt: AttemptView) -> AskHold | None:
        """Return the hold of the node where room is reserved for the attempt."""
        return self.reserved[attempt.reserved_at] if attempt.reserved_at is not None else None

    def begin(self, hold: Hold) -> tuple[Note, ...]:
        """Hold the node from now on."""
        node, attempt = hold.node, hold.attempt
        if isinstance(hold, OpportunisticHold):
            node.opportunistic_hold = self.opportunistic[node.id] = hold
            starved = f"given no opportunistic container for {hold.since - hold.starved_since:.0f} s"
            return (Keep(node.id, attempt.id, hold.left, f"{starved}, its master does not know of waiting"),)
        self.release(node)
        self._of_attempts.setdefault(attempt.id, {}).setdefault(hold.ask.key, []).append(hold)
        node.hold = hold
        if hold.kind is HoldKind.QUEUE:
            return ()
        self._nodes.leave(node)
        self.reserved[node.id] = hold
        attempt.reserved_at = node.id
        attempt.app.leaf.turns_changed()
        waited_s = hold.since - hold.ask.waiting_since
        why = f"{hold.size} has waited {waited_s:.1f} s, so what ends on this node leaves room for it"
        return (Reserve(node.id, attempt.id, *hold.ask.key, why),)

    def end(self, hold: Hold, why: str) -> tuple[Note, ...]:
        """Let all have the node again; `why` is for the decision log."""
        node, attempt = hold.node, hold.attempt
        if isinstance(hold, OpportunisticHold):
            node.opportunistic_hold = None
            del self.opportunistic[node.id]
            return (KeepNoMore(node.id, attempt.id, why),)
        self._forget(hold)
        self._reopened(node.queue)
        if hold.kind is HoldKind.QUEUE:
            return ()
        self._nodes.enter(node)
        del self.reserved[node.id]
        attempt.reserved_at = None
        attempt.app.leaf.turns_changed()
        return (Unreserve(node.id, attempt.id, why),)

    def release(self, node: NodeView) -> AskHold | None:
        """End and return the hold of the node's queue, if there is one. Its caller lets the queue be found again."""
        hold = node.hold
        if hold is None or hold.kind is not HoldKind.QUEUE:
            return None
        self._forget(hold)
        return hold

    def _forget(self, hold: AskHold) -> None:
        hold.node.hold = None
        asks = self._of_attempts[hold.attempt.id]
        asks[hold.ask.key].remove(hold)
        if not asks[hold.ask.key]:
            del asks[hold.ask.key]
            if not asks:
                del self._of_attempts[hold.attempt.id]

    def validate(self) -> None:
        """Assert every invariant."""
        for attempt_id, asks in self._of_attempts.items():
            assert asks and all(asks.values())
            for key, hold in [(key, hold) for key, holds in asks.items() for hold in holds]:
                assert (hold.attempt.id, hold.ask.key) == (attempt_id, key) and hold.node.hold is hold
                assert hold.kind is HoldKind.RESERVED or hold.node.queue.is_filled
                assert hold.is_wanted and not hold.node.is_draining, hold
        held = [node.hold for node in self._nodes.all() if node.hold is not None]
        assert len(held) == sum(len(holds) for asks in self._of_attempts.values() for holds in asks.values())
        reserved = {hold.node.id: hold for hold in held if hold.kind is HoldKind.RESERVED}
        assert reserved == self.reserved
        assert all(hold.attempt.reserved_at == hold.node.id and hold.ask.pending > 0 for hold in reserved.values())
        for node in self._nodes.all():
            assert self.opportunistic.get(node.id) is node.opportunistic_hold
        for node_id, kept in self.opportunistic.items():
            assert self._nodes.get(node_id) is kept.node and kept.left > 0
