"""Choose the node that is held, and for whom.

All kinds go by how soon room comes, as far as is known: for guaranteed containers until something ends on the node
(`room_comes`), for opportunistic ones until all that waits there has started (`room.expected_wait`). To measure both by
the second was tried: newcomers then began 12 s later in place of 6 (tests/rm/test_newcomers.py). Of two nodes that are
nearly as good either will do, since what nodes say is a heartbeat old. The kinds differ in who is due, and when.

Reserved room. Small asks do not starve large ones: when an ask has waited for `reserve_after_s`, the next node that is
large enough is reserved for it. (Hadoop reserves at the first miss; here a passing shortage idles no node.) The first
ask in a line comes first, unless it never takes the node. An ask that may wait in the nodes' queues waits there for
longer, and so does one that prefers other nodes.

Queues that drain. A node whose queue is filled never shows room, so that its queue drains for an ask that must not wait
in it. What runs on one node may end in a second, on another in an hour.

Masters. They never wait in a node's queue, and what waits there does not delay them. The node that is held for a master
is told so. It starts nothing that waits in that room, and says what those that run leave free. The master goes there as
soon as that is enough. Room is kept until the master is known to have started, so that nothing takes it while the
master is on its way. Where that goes wrong, as where the node registers anew, it starts beyond what is free.

Opportunistic containers. `rm.scheduler.opportunistic.starved` says whose masters are given none because all queues are
long.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Final

from rm.scheduler.assign.sweep import CHEAP, Look
from rm.scheduler.assign.walk import first_in_line
from rm.scheduler.node_queues.soonest import as_good_as, room_comes
from rm.scheduler.opportunistic.room import backlog, expected_wait, runs_at_once
from rm.scheduler.opportunistic.unplaced import Want
from rm.scheduler.queues.user_limits import may_take
from rm.scheduler.view.cluster import ClusterView
from rm.scheduler.view.node import AskHold, HoldKind, NodeView, OpportunisticHold
from rm.scheduler.view.records import AttemptView, QueueView
from yaqd.model import NodeId
from yaqd.policies.asks.rows import Locality
from yaqd.policies.asks.table import Ask

#: times `reserve_after_s` after which an ask has a node reserved in two more cases. It may wait at nodes: but it may be
#: too large for what ends there, or the waits too long for its master. It does not prefer the node: but no node that it
#: prefers may ever have room
_PATIENCE: Final = 6.0
#: who has waited so long takes any node where something ends, s
_PATIENCE_S: Final = 10.0
#: times the starvation threshold for which a node is held when nobody knows when its queue is empty
_UNKNOWN: Final = 10.0


class HoldChoice:
    """Chooses nodes for guaranteed containers."""

    def __init__(
        self,
        reserve_after_s: float,
        reservation_s: float,
        locality: Callable[[ClusterView, AttemptView, Ask, NodeView], Locality | None],
    ) -> None:
        """`reservation_s`: how long room is reserved on a node where nothing ends. `locality`: how near a node is to
        what an ask wants, None where it should not be taken (yet)."""
        self.reserve_after_s = reserve_after_s
        self.reservation_s = reservation_s
        self._locality = locality

    def reserved(self, view: ClusterView, leaf: QueueView, node: NodeView, now: float) -> AskHold | None:
        """Reserve the node for the first ask that ever takes it, once that has waited for too long."""
        judge, calculator = _Reserving(self, view, node, now), view.calculator
        for name, line in leaf.lines.items():
            first = leaf.attempts[line[0][-1]]
            if calculator.fits_among(name[0], node.free_mb, node.free_cores, node.free_extras):
                continue  # it needs no reservation here
            if first.reserved_at is not None or not calculator.fits(name[0], node.total):
                continue
            if name[1] and not may_take(view, first.app):
                continue
            found = first_in_line(node, node, leaf, name, line, judge)
            if found is not None:
                return found[1]
        return None

    def comes_soon(self, view: ClusterView, hold: AskHold, now: float) -> bool:
        """Tell whether the node may be held: room does not come much sooner at another one with a queue."""
        queues, queue, attempt, ask = view.node_queues, hold.node.queue, hold.attempt, hold.ask
        if not queue.is_filled:
            return True
        suits = partial(self.suits, view, hold, now)
        queues.soonest.refresh(now)
        is_held = hold.node.hold is not None and hold.node.hold.is_for(attempt, ask)
        wait_s = room_comes(queue, is_held=is_held) if suits(hold.node) else math.inf
        least_s = queues.soonest.elsewhere(hold, suits)
        if least_s is None or wait_s <= as_good_as(least_s):
            return True
        return wait_s < math.inf and now - max(ask.waiting_since, attempt.moved_at) >= _PATIENCE_S

    def suits(self, view: ClusterView, hold: AskHold, now: float, node: NodeView) -> bool:
        """Tell whether the ask takes a place at this node, and has one there once all that has an end has ended."""
        attempt, ask, fits, total = hold.attempt, hold.ask, view.calculator.fits, node.total
        if not fits(ask.capability + node.masters, total) or not attempt.accepts(node):
            return False
        if not self.takes(view, attempt, ask, node, now):
            return False
        queues, queue = view.node_queues, node.queue
        return not queue.is_filled or fits(ask.capability + queues.soonest.endless(queue), total)

    def takes(self, view: ClusterView, attempt: AttemptView, ask: Ask, node: NodeView, now: float) -> bool:
        """Tell whether the ask prefers the node, or takes it as it has waited for long enough."""
        if self._locality(view, attempt, ask, node) is not None:
            return True
        if ask.placement is not None or now - ask.waiting_since < _PATIENCE * self.reserve_after_s:
            return False
        return not ask.insists_on_others(node.id.host, node.rack)


class _Reserving:
    """Offers the node to asks that have waited for too long."""

    def __init__(self, choice: HoldChoice, view: ClusterView, node: NodeView, now: float) -> None:
        self._choice = choice
        self._view = view
        self._node = node
        self._now = now

    def offer(self, attempt: AttemptView, ask: Ask, look: Look) -> AskHold | None:
        """Reserve the node for the ask. An ask that is not due yet keeps those behind it from having it reserved."""
        choice, view, node, now = self._choice, self._view, self._node, self._now
        if ask.placement is not None or (ask.strict and ask.insists_on_others(node.id.host, node.rack)):
            look.cost += CHEAP  # what an ask may stand beside changes meanwhile
            return None
        hold: AskHold | None = None
        if self._is_due(attempt, ask):
            if ask.left and now < ask.left.get(node.id, 0.0):
                look.cost += CHEAP
                return None
            if not choice.takes(view, attempt, ask, node, now):
                look.passes += 1
                return None
            kind, until = HoldKind.RESERVED, now + choice.reservation_s
            hold = AskHold(node, attempt, kind, now, ask, node.free_mb, until=until)
            if not choice.comes_soon(view, hold, now):
                hold = None
        look.ends = True
        if node.sweep is not None:
            node.sweep.given(attempt, ask.capability)
        return hold

    def _is_due(self, attempt: AttemptView, ask: Ask) -> bool:
        """Tell whether the ask has waited for long enough, has nothing reserved, and may have what it asks for."""
        choice, view, now = self._choice, self._view, self._now
        waited_s = now - ask.waiting_since
        if attempt.reserved_at is not None or waited_s < choice.reserve_after_s:
            return False
        if attempt.app.leaf.spec.orders_stages and not may_leave_too_little(view, self._node, ask):
            return False  # it would be served out of the turn that its queue decides on
        queues = view.node_queues
        if self._node.queue.is_filled and waited_s < _PATIENCE * choice.reserve_after_s:
            has_queue = queues.soonest.has_queue(ask.capability, view.calculator.fits, now)
            if has_queue and queues.may_wait(attempt, ask):
                return False  # it waits at nodes instead
        return view.has_room(attempt.app.leaf, ask.capability)


def may_leave_too_little(view: ClusterView, node: NodeView, ask: Ask) -> bool:
    """Tell whether something that ends on the node may leave too little room for the ask: something smaller, or masters
    that stay."""
    held, fits = view.containers, view.calculator.fits
    if not fits(ask.capability + node.masters, node.total):
        return True
    return any(not fits(ask.capability, size) and not held[one].is_master for one, size in node.containers.items())


def has_room_before_queue(view: ClusterView, ask: Ask, node: NodeView) -> bool:
    """Tell whether the node has room for this master, were it not for what waits there."""
    room = node.queue.room
    return ask.is_master and room is not None and view.calculator.fits(ask.capability, room)


def opportunistic_holds(
    want: Want, nodes: Iterable[NodeView], last: Mapping[NodeId, float], missing: int, starve_s: float, now: float
) -> Iterator[OpportunisticHold]:
    """Choose nodes for as many containers as are `missing`.

    Each is held for as many as run there at once, so that others keep their part of a small cluster. Where nobody knows
    how long nodes' queues take, the node comes first that was held longest ago by `last`.
    """

    def nearness(node: NodeView) -> tuple[float, float, int, NodeId]:
        return expected_wait(node.queue), last.get(node.id, -math.inf), backlog(node.queue), node.id

    for node in sorted(nodes, key=nearness):
        if missing <= 0:
            return
        wait_s, at_once = expected_wait(node.queue), runs_at_once(node.queue)
        until = now + (starve_s + 2.0 * wait_s if wait_s < math.inf else _UNKNOWN * starve_s)
        kind, left = HoldKind.OPPORTUNISTIC, min(at_once, missing)
        yield OpportunisticHold(node, want.attempt, kind, now, left, want.since, until=until)
        missing -= at_once
