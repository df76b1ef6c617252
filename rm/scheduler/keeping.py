"""Large asks are not starved by small ones: whom a node is kept for.

An ask that has waited `reserve_after_s` gets the next node that is large enough reserved, and what becomes free there
is kept for it, as Hadoop's reservations do, but not at the first miss, so that a passing shortage idles no node. The
first in a line comes first, but for those who never take the node. What may wait in the nodes' queues is left to them
for longer, and no node that the ask does not prefer is kept before that.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from rm.scheduler.asks import Ask
from rm.scheduler.decisions import Locality
from rm.scheduler.nodes import NodeView
from rm.scheduler.sweep import CHEAP, Look, attempts_first, first_attempt
from rm.scheduler.view import AttemptView, ClusterView, OrderKey, QueueView
from yaqd.model import Resource
from yaqd.model.values import value

if TYPE_CHECKING:
    from rm.scheduler.queueing import NodeQueues

#: after so many times what an ask waits until a node is kept for it, it has one kept also where it may wait at nodes
#: (it may be too large for what ends there, or the waits too long for its master), and one that it does not prefer (no
#: node that it prefers may ever have room)
_PATIENCE: Final = 6.0


@value()
class Keep:
    """Reserve this node for this ask."""

    attempt: AttemptView
    ask: Ask
    node: NodeView


@value()
class _NotYet:
    """Nothing is kept for this attempt, nor for anybody behind it."""

    attempt: AttemptView


class Keeping:
    def __init__(
        self, reserve_after_s: float, locality: Callable[[ClusterView, AttemptView, Ask, NodeView], Locality | None]
    ) -> None:
        """`locality`: how near a node is to what an ask wants, None where it should not be taken (yet)."""
        self._reserve_after_s = reserve_after_s
        self._locality = locality

    def for_whom(
        self,
        view: ClusterView,
        leaf: QueueView,
        shape: Resource,
        whose: str,
        node: NodeView,
        now: float,
    ) -> Keep | None:
        """For whom of a line the node is to be kept: for the first who ever takes it, once he has waited too long."""
        line = leaf.lines[(shape, whose)]
        if leaf.attempts[line[0][-1]].reservation is not None or not view.calculator.fits(shape, node.total):
            return None
        offer: Callable[[AttemptView, Ask, Look], Keep | _NotYet | None] = partial(self._keep, view, node, now)
        find = partial(attempts_first, node, node, leaf, shape, offer)
        found: tuple[OrderKey, Keep | _NotYet] | None = first_attempt(
            node, (leaf.path, (shape, whose)), line, None, find
        )
        if found is None:
            return None
        if node.sweep is not None:
            node.sweep.given(found[1].attempt, shape)
        return found[1] if isinstance(found[1], Keep) else None

    def _keep(
        self, view: ClusterView, node: NodeView, now: float, attempt: AttemptView, ask: Ask, look: Look
    ) -> Keep | _NotYet | None:
        """None: the node is nothing for the ask, so that it may be kept for one behind it."""
        if ask.placement is not None or (ask.strict and ask.insists_on_others(node.id.host, node.rack)):
            look.cost += CHEAP  # what an ask may stand beside changes meanwhile
            return None
        waited_s = now - ask.waiting_since
        if attempt.reservation is not None or waited_s < self._reserve_after_s:
            return _NotYet(attempt)
        queues = view.node_queues
        if queues is not None and node.queue is not None and waited_s < _PATIENCE * self._reserve_after_s:
            has_queue = queues.soonest.has_queue(ask.capability, view.calculator.fits, now)
            if has_queue and queues.may_wait(attempt, ask):
                return _NotYet(attempt)  # it waits at nodes instead
        if not view.has_room(attempt.app.leaf, ask.capability):
            return _NotYet(attempt)
        if ask.left and now < ask.left.get(node.id, 0.0):
            look.cost += CHEAP
            return None
        if not self._takes(view, attempt, ask, node, now):
            look.passes += 1
            return None
        return Keep(attempt, ask, node) if self.comes_soon(view, attempt, ask, node, now) else _NotYet(attempt)

    def comes_soon(self, view: ClusterView, attempt: AttemptView, ask: Ask, node: NodeView, now: float) -> bool:
        """May the node be kept for the ask, or does room come sooner at another one with a queue?"""
        queues = view.node_queues
        return queues is None or queues.soonest.is_good(
            attempt, ask, node, partial(self._suits, view, queues, attempt, ask, now), now
        )

    def is_lost(
        self, view: ClusterView, attempt: AttemptView, ask: Ask, node: NodeView, since: float, now: float
    ) -> bool:
        """Is the node, kept for the ask since then, to be given up for another one with a queue?"""
        queues = view.node_queues
        return queues is not None and queues.soonest.is_lost(
            attempt, ask, node, since, partial(self._suits, view, queues, attempt, ask, now), now
        )

    def _takes(self, view: ClusterView, attempt: AttemptView, ask: Ask, node: NodeView, now: float) -> bool:
        """Is it a node that the ask prefers, or takes as it has waited for long enough?"""
        if self._locality(view, attempt, ask, node) is not None:
            return True
        if ask.placement is not None or now - ask.waiting_since < _PATIENCE * self._reserve_after_s:
            return False
        return not ask.insists_on_others(node.id.host, node.rack)

    def _suits(
        self, view: ClusterView, queues: "NodeQueues", attempt: AttemptView, ask: Ask, now: float, node: NodeView
    ) -> bool:
        """Does the ask take a place there, and has it one once all that has an end has ended?"""
        fits, total = view.calculator.fits, node.total
        if not fits(ask.capability + node.masters, total) or not attempt.accepts(node):
            return False
        if not self._takes(view, attempt, ask, node, now):
            return False
        return node.queue is None or fits(ask.capability + queues.soonest.endless(node.queue), total)
