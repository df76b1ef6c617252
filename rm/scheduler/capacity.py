"""The capacity policy: which ask gets room on which node. It reads a `ClusterView` and changes nothing.

Two questions, two generators. `for_ask`: an ask came in, where is there room for it? (Nobody who waits could use
that room, or it would be taken.) `for_node`: a node has room, who comes first? Queues by how much of their guarantee
they use, as Hadoop's CapacityScheduler orders them; in a leaf queue applications by its ordering policy; in an
application asks by priority. Each yields one pick at a time and is resumed after the owner has carried it out or
refused it.

An ask that prefers places waits for them (delay scheduling, Zaharia et al., EuroSys 2010): as many passed offers as
`node-locality-delay` says, never more than there are nodes, and not at all when no preferred place is in the
cluster.

Against starvation of large containers by small ones: an ask that has waited `reserve_after_s` gets the next node
that is large enough reserved, and what becomes free there is kept for it, as Hadoop's reservations do, but after a
time and not at the first miss, so that a passing shortage idles no node.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

from rm.scheduler.asks import Ask
from rm.scheduler.decisions import Locality
from rm.scheduler.nodes import NodeView
from rm.scheduler.placement import Placement, satisfies
from rm.scheduler.users import may_take
from rm.scheduler.view import AttemptView, ClusterView, OrderKey, QueueView
from yaqd.model import ANY_HOST, Resource
from yaqd.model.values import value

#: applications of one line that may refuse a node before the line is given up for this time
_REFUSALS_MAX = 32
#: asks of one attempt that are looked at for a node, those included that are like one it has refused
_ASKS_LOOKED_AT = 2000
#: preferred places looked at to see whether any is in the cluster
_PLACES_LOOKED_AT = 8


@value()
class Pick:
    """Give this ask a container on this node."""

    attempt: AttemptView
    ask: Ask
    node: NodeView
    locality: Locality


@value()
class Keep:
    """Reserve this node for this ask."""

    attempt: AttemptView
    ask: Ask
    node: NodeView


@value()
class Pass:
    """This ask was offered the node and waits for a better place."""

    ask: Ask


class CapacityPolicy:
    def __init__(self, *, reserve_after_s: float, reserved_share: float) -> None:
        self._reserve_after_s = reserve_after_s
        #: largest part of the nodes that may be reserved at a time (at least one node may)
        self._reserved_share = reserved_share

    def for_ask(self, view: ClusterView, attempt: AttemptView, ask: Ask, hosts: list[str]) -> Iterator[Pick]:
        """Places for an ask: on those of `hosts` (names whose rows are new) that are hosts, in its racks, anywhere."""
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
        """Where to look next, as long as something is pending."""
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

    def for_node(self, view: ClusterView, node: NodeView, now: float) -> Iterator[Pick | Keep | Pass]:
        """Who gets what this node has free, until nothing more fits or nobody wants it."""
        while view.root.waiting:
            reservation = view.reservations.get(node.id)
            if reservation is not None:
                attempt, ask = reservation.attempt, reservation.ask
                if not view.calculator.fits(ask.capability, node.free):
                    return
                locality = self.locality(view, attempt, ask, node) or Locality.OFF_SWITCH
                if not view.has_room(attempt.app.leaf, ask.capability) or not may_take(view, attempt.app):
                    return
                yield Pick(attempt, ask, node, locality)
                continue
            chosen: Pick | Keep | None = None
            for leaf in leaves_by_need(view, view.root):
                found = self._in_leaf(view, leaf, node, now)
                for result in found:
                    if isinstance(result, Pass):
                        yield result
                    else:
                        chosen = result
                if chosen is not None:
                    break
            if chosen is None:
                return
            yield chosen
            if isinstance(chosen, Keep):
                return

    def _in_leaf(self, view: ClusterView, leaf: QueueView, node: NodeView, now: float) -> Iterator[Pick | Keep | Pass]:
        """Passes, then at most one pick or reservation."""
        best: tuple[tuple[OrderKey, tuple[int, int]], Pick] | None = None
        for (shape, whose), line in leaf.lines.items():
            if whose and not may_take(view, leaf.attempts[line[0][-1]].app):
                continue
            if not view.calculator.fits(shape, node.free):
                kept = self._starving(view, leaf, shape, line, node, now)
                if kept is not None:
                    yield kept
                    return
                continue
            if not view.has_room(leaf, shape):
                continue
            for key in islice(line, _REFUSALS_MAX):
                attempt = leaf.attempts[key[-1]]
                if best is not None and key > best[0][0]:
                    break
                pick: Pick | None = None
                for outcome in self._first_ask(view, attempt, shape, node):
                    if isinstance(outcome, Pass):
                        yield outcome
                    else:
                        pick = outcome
                if pick is not None:
                    rank = (key, pick.ask.key)
                    if best is None or rank < best[0]:
                        best = (rank, pick)
                    break
        if best is not None:
            yield best[1]

    def _first_ask(
        self, view: ClusterView, attempt: AttemptView, shape: Resource, node: NodeView
    ) -> Iterator[Pick | Pass]:
        """The attempt's first ask of this shape that takes the node, after those that pass."""
        if not attempt.accepts(node):
            return
        refused: set[Placement] = set()
        refusals = 0
        for ask in islice(attempt.asks.of_shape(shape), _ASKS_LOOKED_AT):
            if ask.placement is not None and ask.placement in refused:
                continue
            locality = self.locality(view, attempt, ask, node)
            if locality is not None:
                yield Pick(attempt, ask, node, locality)
                return
            yield Pass(ask)
            refusals += 1
            if refusals >= _REFUSALS_MAX:
                return
            if ask.placement is not None:
                refused.add(ask.placement)

    def _starving(
        self, view: ClusterView, leaf: QueueView, shape: Resource, line: list[OrderKey], node: NodeView, now: float
    ) -> Keep | None:
        if not view.calculator.fits(shape, node.total):
            return None
        if len(view.reservations) >= max(1, int(len(view.nodes) * self._reserved_share)):
            return None
        attempt = leaf.attempts[line[0][-1]]
        if attempt.reservation is not None or not attempt.accepts(node) or not view.has_room(leaf, shape):
            return None
        ask = next(attempt.asks.of_shape(shape))
        if ask.placement is not None:
            return None  # what it may stand beside changes meanwhile
        if node.queue is not None and view.node_queues is not None and view.node_queues.may_wait(attempt, ask):
            return None  # it waits at nodes instead
        if now - ask.waiting_since < self._reserve_after_s or self.locality(view, attempt, ask, node) is None:
            return None
        return Keep(attempt, ask, node)

    def locality(self, view: ClusterView, attempt: AttemptView, ask: Ask, node: NodeView) -> Locality | None:
        """How near the node is to what the ask wants, None when it should not be taken (yet)."""
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
        """Has the ask passed enough offers to take a place of this level?"""
        nodes = len(view.nodes)
        delay = min(view.spec.node_locality_delay, nodes)
        if level is Locality.OFF_SWITCH and view.spec.rack_locality_additional_delay > 0:
            delay = min(delay + view.spec.rack_locality_additional_delay, nodes)
        if ask.missed >= delay:
            return True
        preferred = (n for n in ask.counts if n != ANY_HOST and (level is Locality.OFF_SWITCH or n[0] != "/"))
        return not any(view.nodes.has_place(n) for n in islice(preferred, _PLACES_LOOKED_AT))


def _accepts(view: ClusterView, attempt: AttemptView, ask: Ask, node: NodeView) -> bool:
    constraint = ask.placement.constraint if ask.placement is not None else None
    return attempt.accepts(node) and satisfies(constraint, node, attempt.app.asking, view.tags)


def leaves_by_need(view: ClusterView, queue: QueueView) -> Iterator[QueueView]:
    """Leaf queues below with somebody waiting, the furthest below its guarantee first."""
    if queue.is_leaf:
        yield queue
        return

    def need(child: QueueView) -> tuple[float, str]:
        share = view.calculator.share(child.used, view.nodes.total)
        guarantee = child.spec.absolute_capacity
        return (share / guarantee if guarantee > 0 else share * 1e9, child.path)

    for child in sorted((c for c in queue.children if c.waiting), key=need):
        yield from leaves_by_need(view, child)
