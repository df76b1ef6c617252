"""The capacity policy: which ask gets room on which node. It reads a `ClusterView` and changes nothing, except where a
node's next look along a long line goes on (`rm.scheduler.assign.sweep`).

Two questions, two generators. `for_ask`: an ask came in, where is there room for it? (Nobody who waits could use that
room, or it would be taken.) `for_node`: a node has room, who comes first? Queues come by how much of their guarantee
they use, as Hadoop's CapacityScheduler orders them. In a leaf queue applications come by its ordering policy. In an
application asks come by priority. Each generator yields one pick at a time. It is resumed after the owner has carried
the pick out or refused it.

An ask that prefers places waits for them (delay scheduling, Zaharia et al., EuroSys 2010). It passes up as many offers
as `node-locality-delay` says, and never more than there are nodes. It passes up none when no preferred place is in the
cluster.

Against starvation of large containers by small ones nodes are reserved (`rm.scheduler.holds.choice`).
"""

import math
from collections.abc import Callable, Iterator
from functools import partial

from rm.scheduler.assign.found import Pass, Pick
from rm.scheduler.assign.sweep import CHEAP, DEAR, Look
from rm.scheduler.assign.walk import begin, first_in_leaf
from rm.scheduler.holds.choice import HoldChoice, has_room_before_queue
from rm.scheduler.node_queues.shares import Shares
from rm.scheduler.queues.user_limits import may_take
from rm.scheduler.view.cluster import ClusterView
from rm.scheduler.view.node import AskHold, NodeView
from rm.scheduler.view.records import AppView, AttemptView, QueueView
from yaqd.model import ANY_HOST, Resource
from yaqd.policies.asks.placement import satisfies
from yaqd.policies.asks.rows import Locality
from yaqd.policies.asks.table import Ask

#: preferred places looked at to see whether any is in the cluster
_PLACES_LOOKED_AT = 8


class CapacityPolicy:
    def __init__(self, *, reserve_after_s: float, reservation_s: float, reserved_share: float) -> None:
        self._reserve_after_s = reserve_after_s
        self.choice = HoldChoice(reserve_after_s, reservation_s, self.locality)
        #: largest part of the nodes that may be reserved at a time (at least one node may)
        self._reserved_share = reserved_share

    def for_ask(self, view: ClusterView, attempt: AttemptView, ask: Ask, hosts: list[str]) -> Iterator[Pick]:
        """Yield places for an ask, as long as it wants any: on hosts, then in its racks, then anywhere.

        `hosts`: names whose rows are new; those of them that are hosts are looked at.
        """
        leaf, shape = attempt.app.leaf, ask.capability
        accepts: Callable[[NodeView], bool] | None = attempt.accepts if attempt.blacklist else None
        if ask.placement is not None:
            accepts = partial(_accepts, view, attempt, ask)
        room = 0
        for place, locality in self._places(view, ask, hosts):
            while ask.pending and place in ask.counts:
                if room <= 0 and (room := view.room(leaf, shape)) <= 0:
                    return
                if leaf.limits_users and not may_take(view, attempt.app):
                    return
                node = view.nodes.emptiest(shape, accepts, place)
                if node is None:
                    break
                room -= 1
                yield Pick(attempt, ask, node, locality)

    def _places(self, view: ClusterView, ask: Ask, hosts: list[str]) -> Iterator[tuple[str, Locality]]:
        """Yield where to look next, as long as something is pending."""
        for host in hosts:
            if host in ask.counts and host != ANY_HOST and not host.startswith("/"):
                yield host, Locality.NODE
        if not ask.pending:
            return
        if not ask.prefers_places:
            if ask.allows(ANY_HOST):
                yield ANY_HOST, Locality.NONE
            return
        for rack in [n for n in ask.counts if n.startswith("/") and ask.allows(n)]:
            if view.nodes.has_place(rack) and self._has_waited(view, ask, Locality.RACK):
                yield rack, Locality.RACK
        if ask.allows(ANY_HOST) and self._has_waited(view, ask, Locality.OFF_SWITCH):
            yield ANY_HOST, Locality.OFF_SWITCH

    def for_node(self, view: ClusterView, node: NodeView, now: float) -> Iterator[Pick | AskHold | Pass]:
        """Yield who gets what this node has free, until nothing more fits or nobody wants it."""
        passed: list[Ask] = []
        begin(node)
        while view.root.waiting:
            reserved = node.reserved
            if reserved is not None:
                attempt, ask = reserved.attempt, reserved.ask
                if not view.calculator.fits(ask.capability, node.free) and not has_room_before_queue(view, ask, node):
                    return
                locality = self.locality(view, attempt, ask, node) or Locality.OFF_SWITCH
                if not view.has_room(attempt.app.leaf, ask.capability) or not may_take(view, attempt.app):
                    return
                yield Pick(attempt, ask, node, locality)
                continue
            chosen = self._first(view, node, now, passed)
            for ask in passed:
                yield Pass(ask)
            passed.clear()
            if chosen is None:
                return
            yield chosen
            if isinstance(chosen, AskHold):
                return
            if node.sweep is not None:
                node.sweep.given(chosen.attempt, chosen.ask.capability)

    def _first(self, view: ClusterView, node: NodeView, now: float, passed: list[Ask]) -> Pick | AskHold | None:
        """Return who comes first for this node as it is now. `passed` gains the asks that were offered it and wait."""
        reserved_max = max(1, int(len(view.nodes) * self._reserved_share))
        may_reserve = not node.is_draining and len(view.holds.reserved) < reserved_max
        if not may_reserve and (node.free_mb <= 0 or (view.calculator.counts_vcores and node.free_cores <= 0)):
            return None
        counts_vcores, reserve_after_s = view.calculator.counts_vcores, self._reserve_after_s

        def is_worth_it(queue: QueueView) -> bool:
            """May something that waits below the queue fit, or have waited long enough?"""
            who = queue.who_waits()
            if who.least_mb <= node.free_mb and (not counts_vcores or who.least_cores <= node.free_cores):
                return True
            return may_reserve and now - who.since >= reserve_after_s

        if not is_worth_it(view.root):
            return None
        judge = _FreeRoom(self, view, node, passed)
        for leaf in leaves_by_need(view, view.root, is_worth_it):
            if leaf.undecided and any(judge.takes_size(leaf, shape) for shape, _ in leaf.lines):
                return None
            starves = may_reserve and now - leaf.who_waits().since >= reserve_after_s
            chosen: Pick | AskHold | None = self.choice.reserved(view, leaf, node, now) if starves else None
            if chosen is None:
                chosen = first_in_leaf(node, node, leaf, judge)
            if chosen is not None:
                return chosen
        return None

    def locality(self, view: ClusterView, attempt: AttemptView, ask: Ask, node: NodeView) -> Locality | None:
        """Return how near the node is to what the ask wants; None when it should not be taken (yet)."""
        if ask.placement is not None and not _accepts(view, attempt, ask, node):
            return None
        if not ask.prefers_places:
            return Locality.NONE if ask.allows(ANY_HOST) else None
        if node.id.host in ask.counts:
            return Locality.NODE
        if ask.allows(node.rack) and self._has_waited(view, ask, Locality.RACK):
            return Locality.RACK
        if ask.allows(ANY_HOST) and self._has_waited(view, ask, Locality.OFF_SWITCH):
            return Locality.OFF_SWITCH
        return None

    def _has_waited(self, view: ClusterView, ask: Ask, level: Locality) -> bool:
        """Tell whether the ask has passed enough offers to take a place of this level."""
        missed, is_anywhere = ask.missed, level is Locality.OFF_SWITCH
        table, spec = view.nodes, view.spec
        nodes, delay = len(table), spec.node_locality_delay
        if is_anywhere and spec.rack_locality_additional_delay > 0:
            delay = min(delay, nodes) + spec.rack_locality_additional_delay
        if missed >= delay or missed >= nodes:
            return True
        has_place, looked_at = table.has_place, 0
        for name in ask.counts:
            if name != ANY_HOST and (is_anywhere or name[0] != "/"):
                if has_place(name):
                    return False
                looked_at += 1
                if looked_at == _PLACES_LOOKED_AT:
                    break
        return True


class _FreeRoom:
    """Judges who gets what a node has free."""

    def __init__(self, policy: CapacityPolicy, view: ClusterView, node: NodeView, passed: list[Ask]) -> None:
        self._policy = policy
        self._view = view
        self._node = node
        self._passed = passed

    def takes_size(self, leaf: QueueView, shape: Resource) -> bool:
        node, view = self._node, self._view
        fits = view.calculator.fits_among(shape, node.free_mb, node.free_cores, node.free_extras)
        return fits and view.too_full(leaf, shape) is None

    def is_in_turn(self, leaf: QueueView, app: AppView) -> bool:
        return may_take(self._view, app)

    def offer(self, attempt: AttemptView, ask: Ask, look: Look) -> Pick | None:
        node, placement = self._node, ask.placement
        if placement is not None and placement in look.refused:
            look.cost += CHEAP
            return None
        if ask.strict and ask.insists_on_others(node.id.host, node.rack):
            look.cost += CHEAP
            self._passed.append(ask)
            return None
        locality = self._policy.locality(self._view, attempt, ask, node)
        if locality is not None:
            return Pick(attempt, ask, node, locality)
        self._passed.append(ask)
        if placement is None:
            look.passes += 1
            return None
        look.cost += DEAR
        look.refused |= {placement}
        return None


def _accepts(view: ClusterView, attempt: AttemptView, ask: Ask, node: NodeView) -> bool:
    constraint = ask.placement.constraint if ask.placement is not None else None
    return attempt.accepts(node) and satisfies(constraint, node, attempt.app.asking, view.tags)


def leaves_by_need(
    view: ClusterView, queue: QueueView, is_worth_it: Callable[[QueueView], bool] | None = None
) -> Iterator[QueueView]:
    """Yield the leaf queues below with somebody waiting, the furthest below its guarantee first.

    Queues that are not worth it are left out with all below them.
    """
    if queue.is_leaf:
        yield queue
        return

    total, share_among = view.nodes.total, view.calculator.share_among
    if view.shares.are_kept:
        yield from leaves_by_deficit(view, view.shares, queue, is_worth_it)
        return

    def need(child: QueueView) -> tuple[float, str]:
        share = share_among(child.used_mb, child.used_cores, child.used_extras, total)
        guarantee = child.spec.absolute_capacity
        return (share / guarantee if guarantee > 0 else share * 1e9, child.path)

    waiting = [child for child in queue.children if child.waiting and (is_worth_it is None or is_worth_it(child))]
    if len(waiting) > 1:
        waiting.sort(key=need)
    for child in waiting:
        if child.children:
            yield from leaves_by_need(view, child, is_worth_it)
        else:
            yield child


def has_turn(view: ClusterView, shares: Shares, queue: QueueView) -> bool:
    """Tell whether the queue needs most among its siblings that want something. What waits at nodes and what is owed
    count."""
    if queue.parent is None:
        return True
    need = _need(view, shares, queue.parent, None, with_sent=True)
    return need.get(queue.path, -math.inf) <= min(need.values(), default=math.inf)


def _need(
    view: ClusterView,
    shares: Shares,
    queue: QueueView,
    is_worth_it: Callable[[QueueView], bool] | None,
    *,
    with_sent: bool,
) -> dict[str, float]:
    total, share = view.nodes.total, view.calculator.share_among

    wanting = [child for child in queue.children if child.waiting and (is_worth_it is None or is_worth_it(child))]
    if not with_sent:
        held = [(child.spec.path, child.used_mb, child.used_cores, child.used_extras) for child in wanting]
        return shares.need(queue, {path: share(mb, cores, extras, total) for path, mb, cores, extras in held})
    if len(wanting) == 1:  # whatever it holds, it comes first
        return shares.need(queue, {wanting[0].spec.path: 0.0})
    soon = _soon(view, shares, queue)
    return shares.need(queue, {child.spec.path: soon[child.spec.path] for child in wanting})


def _soon(view: ClusterView, shares: Shares, queue: QueueView) -> dict[str, float]:
    """Return by path what part of the cluster each queue below will hold once what waits at nodes has started."""
    total, share = view.nodes.total, view.calculator.share_among
    used, sent = {}, {}
    for child in queue.children:
        path, waiting = child.spec.path, child.sent
        used[path] = share(child.used_mb, child.used_cores, child.used_extras, total)
        sent[path] = share(waiting.used_mb, waiting.used_cores, waiting.used_extras, total)
    return shares.soon(used, sent)


def leaves_by_deficit(
    view: ClusterView,
    shares: Shares,
    queue: QueueView,
    is_worth_it: Callable[[QueueView], bool] | None = None,
    *,
    with_sent: bool = False,
) -> Iterator[QueueView]:
    """Yield leaf queues as `leaves_by_need` does, with what each queue is owed counted.

    `with_sent`: what waits for the queues at nodes counts as well.
    """
    need = _need(view, shares, queue, is_worth_it, with_sent=with_sent)
    waiting = [child for child in queue.children if child.spec.path in need]
    if len(waiting) > 1:
        waiting.sort(key=lambda child: (need[child.spec.path], child.spec.path))
    for child in waiting:
        if child.children:
            yield from leaves_by_deficit(view, shares, child, is_worth_it, with_sent=with_sent)
        else:
            yield child
