"""Hadoop's CapacityScheduler at a node's heartbeat: which ask gets one container there, or has the node reserved.

`CapacityScheduler.allocateContainersToNode`, `ParentQueue`, `LeafQueue` and `RegularContainerAllocator` of Hadoop 3.4,
step by step, so that decisions fall as there. It knows no node labels and kills nothing. What is found is carried out
by `rm.scheduler.assign.stock_assigner`; here only the counts of offers change.

An ask that prefers places waits for them by offers: each heartbeat of a node that could serve it counts, whether or not
the node is a preferred one. A node without room for the ask that comes first is reserved for it at once.
"""

from collections.abc import Iterator
from enum import Enum, auto
from heapq import merge
from typing import Final

from rm.scheduler.assign.found import Found
from rm.scheduler.assign.stock_amounts import NOTHING, Amounts, f32
from rm.scheduler.assign.stock_limits import (
    Limits,
    QueueSizes,
    Reservation,
    Reservations,
    StockLimits,
    UsageRatios,
)
from rm.scheduler.queues.spec import SchedulerSpec
from rm.scheduler.view.cluster import ClusterView
from rm.scheduler.view.node import NodeView
from rm.scheduler.view.records import AppView, AttemptView, QueueView
from rm.scheduler.view.user import UserView
from yaqd.model import ANY_HOST, ApplicationAttemptId, Resource
from yaqd.policies.asks.placement import satisfies
from yaqd.policies.asks.rows import Locality
from yaqd.policies.asks.table import Ask, AskKey

_OFF_SWITCH: Final = (Locality.OFF_SWITCH, Locality.NONE)


class Skip(Enum):
    """Why nothing was found."""

    #: the attempt's next ask may have the node
    ASK = auto()
    #: so may the next attempt
    ATTEMPT = auto()
    #: nobody behind it in its queue: their turns are kept
    LEAF = auto()
    #: nor may another queue have what this one could still take
    QUEUE_LIMIT = auto()


class StockRules:
    def __init__(self, view: ClusterView, largest: Resource) -> None:
        """`largest`: the largest container that may be asked for."""
        self._view, self._largest = view, largest
        self.reservations: Final = Reservations()
        self.ratios: Final = UsageRatios(view, self.reservations)
        #: nodes that were offered to each ask since it got a container at a place that it prefers. An ask that ends and
        #: begins again keeps the number, as in Hadoop
        self._offers: dict[ApplicationAttemptId, dict[AskKey, int]] = {}
        #: of what queues and of how large a cluster, and what they come to
        self._sized: tuple[SchedulerSpec, Resource] = view.spec, view.nodes.total
        self._sizes: dict[str, QueueSizes] = {}

    def forget(self, attempt: AttemptView) -> None:
        """Forget the offers to an attempt that has ended."""
        self._offers.pop(attempt.id, None)

    def look(self, node: NodeView) -> Found | None:
        """Return who gets something on a node that is not reserved."""
        limits = self._limits()
        if not limits.amounts.fits(limits.amounts.least, node.free):
            return None
        found = self._in_queue(self._view.root, node, limits, limits.root())
        return found if isinstance(found, Found) else None

    def look_reserved(self, one: Reservation, ask: Ask) -> Found | None:
        """Return what becomes of the reservation: its container, or the reservation again. None: nothing changes.

        Neither limits nor the order of queues are asked, as the reservation counts as held already.
        """
        limits = self._limits()
        if not one.attempt.accepts(one.node):
            return None
        self._offer(one.attempt, ask, 1)
        found = self._at(one.attempt, ask, one.node, limits, limits.root(), one)
        return found if isinstance(found, Found) else None

    def _limits(self) -> StockLimits:
        sized = self._view.spec, self._view.nodes.total
        if sized[0] is not self._sized[0] or sized[1] != self._sized[1]:
            self._sized, self._sizes = sized, {}
        return StockLimits(self._view, self.reservations, self.ratios, self._sizes)

    # ---- queues

    def _in_queue(self, queue: QueueView, node: NodeView, limits: StockLimits, own: Limits) -> Found | Skip:
        if not queue.waiting:
            return Skip.LEAF
        if queue.is_leaf:
            return self._in_leaf(queue, node, limits, own)
        if not limits.has_room(queue, own, self.reservations.in_queue(queue)):
            return Skip.LEAF
        why = Skip.LEAF
        for child in limits.in_turn(queue):
            below = limits.of_child(child, queue, own)
            found = self._in_queue(child, node, limits, below)
            if isinstance(found, Found):
                return found
            if found is Skip.QUEUE_LIMIT:
                why = found
                unused = below.headroom if child.is_leaf else below.blocked
                own.blocked = own.blocked + limits.amounts.larger(unused, NOTHING)
        return why

    def _in_leaf(self, leaf: QueueView, node: NodeView, limits: StockLimits, own: Limits) -> Found | Skip:
        asks_queue, user_limit = True, limits.user_limit(leaf)
        full: set[UserView] = set()
        for attempt in self._in_turn(leaf):
            app = attempt.app
            reserved = self.reservations.of_app(app)
            if asks_queue and not limits.has_room(leaf, own, reserved):
                return Skip.LEAF
            asks_queue = asks_queue and not reserved.is_zero()
            if not attempt.asks.pending or (app.owner in full and reserved.is_zero()):
                continue
            if not limits.lets_user(app, own, user_limit):
                full.add(app.owner)
                continue
            found = self._for_attempt(attempt, node, limits, own)
            if found is not Skip.ATTEMPT:
                return found
        return Skip.LEAF

    def _in_turn(self, leaf: QueueView) -> list[AttemptView]:
        """List the attempts whose masters may run, in the order of the leaf queue."""
        ordering = leaf.spec.ordering

        def key(attempt: AttemptView) -> tuple[float, ...]:
            app = attempt.app
            if ordering == "fair":
                return (app.used_mb, app.sequence)
            return (-app.priority, app.sequence) if ordering == "fifo" else self._view.order_key(app)

        return sorted((one for one in leaf.attempts.values() if one.master is not None), key=key)

    # ---- asks

    def _for_attempt(self, attempt: AttemptView, node: NodeView, limits: StockLimits, own: Limits) -> Found | Skip:
        for ask in _by_priority(attempt):
            if ask.placement is not None and not self._satisfied(attempt.app, ask, node):
                continue
            if not limits.amounts.fits(ask.capability, own.headroom + self.reservations.of_app(attempt.app)):
                return Skip.QUEUE_LIMIT
            if not attempt.accepts(node):
                return Skip.ATTEMPT
            self._offer(attempt, ask, 1)
            found = self._at(attempt, ask, node, limits, own, None)
            if found is Skip.ASK:
                self._offer(attempt, ask, -1)
                continue
            if not isinstance(found, Found):
                return found
            if not found.is_off_switch:
                self._offer(attempt, ask, -self._offered(attempt, ask))
            return self._checked(found, limits)
        return Skip.ATTEMPT

    def _satisfied(self, app: AppView, ask: Ask, node: NodeView) -> bool:
        constraint = ask.placement.constraint if ask.placement is not None else None
        return satisfies(constraint, node, app.asking, self._view.tags)

    def _checked(self, found: Found, limits: StockLimits) -> Found:
        """Ask the limits once more, as Hadoop does when it commits."""
        freed = found.freed.size if found.freed is not None else NOTHING
        if limits.accepts(found.attempt.app, found.ask.capability, freed):
            return found
        return Found(found.attempt, found.ask, found.node, found.locality, found.is_reserved, is_refused=True)

    def _at(
        self,
        attempt: AttemptView,
        ask: Ask,
        node: NodeView,
        limits: StockLimits,
        own: Limits,
        reserved: Reservation | None,
    ) -> Found | Skip:
        """Return what the ask gets on the node, at the best level that it may have by now."""
        counts, host, rack = ask.counts, node.id.host, node.rack
        if host in counts and rack in counts:
            found = self._container(attempt, ask, node, Locality.NODE, limits, own, reserved)
            if found is not None:
                return found
        if rack in counts:
            if rack in ask.strict:
                return Skip.ASK
            if self._takes_rack(attempt, ask):
                found = self._container(attempt, ask, node, Locality.RACK, limits, own, reserved)
                if found is not None:
                    return found
        if not ask.pending or ANY_HOST in ask.strict:
            return Skip.ASK
        if reserved is None and not self._takes_any(attempt, ask):
            return Skip.ATTEMPT
        anywhere = Locality.OFF_SWITCH if ask.prefers_places else Locality.NONE
        return self._container(attempt, ask, node, anywhere, limits, own, reserved) or Skip.ATTEMPT

    def _takes_rack(self, attempt: AttemptView, ask: Ask) -> bool:
        return min(len(self._view.nodes), self._view.spec.node_locality_delay) < self._offered(attempt, ask)

    def _takes_any(self, attempt: AttemptView, ask: Ask) -> bool:
        """Tell whether the ask has been offered enough nodes to take one that it does not prefer."""
        if not ask.prefers_places:
            return True
        nodes, spec, offered = len(self._view.nodes), self._view.spec, self._offered(attempt, ask)
        if spec.rack_locality_additional_delay > -1:
            return offered > min(nodes, spec.node_locality_delay + spec.rack_locality_additional_delay)
        factor = min(f32(f32(len(ask.counts) - 1) / nodes), 1.0)
        return min(float(nodes), f32(ask.pending * factor)) < offered

    def _container(
        self,
        attempt: AttemptView,
        ask: Ask,
        node: NodeView,
        locality: Locality,
        limits: StockLimits,
        own: Limits,
        reserved: Reservation | None,
    ) -> Found | None:
        """Return a container at this level, or a reservation; None: the next level may be tried."""
        amounts, size = limits.amounts, ask.capability
        if not amounts.fits(size, node.total):
            return None
        wants_more = self._wants_more(attempt, ask, amounts)
        need = amounts.larger(size - own.headroom, own.to_free)
        must_free = amounts.is_positive(need)
        if amounts.fits(size, node.free):
            freed = None
            if reserved is None and (must_free or not wants_more):
                freed = self._to_free(attempt, ask, need if must_free else size, amounts)
                if freed is None:
                    return None
            return Found(attempt, ask, node, locality, False, freed)
        if reserved is None and (must_free or not wants_more):
            return None
        return Found(attempt, ask, node, locality, True)

    def _wants_more(self, attempt: AttemptView, ask: Ask, amounts: Amounts) -> bool:
        """Tell whether the ask has fewer reservations than it wants containers; some more after many vain offers."""
        reserved, more = len(self.reservations.of(attempt, ask)), 0
        if reserved:
            largest = self._largest
            node_factor = amounts.ratio(ask.capability, largest)
            least_factor = amounts.ratio(largest - amounts.least, largest)
            renewed = self.reservations.renewed(attempt, ask)
            more = int(f32(renewed / reserved) * f32(1.0 - min(node_factor, least_factor)))
        return more + ask.pending - reserved > 0

    def _to_free(self, attempt: AttemptView, ask: Ask, need: Resource, amounts: Amounts) -> Reservation | None:
        return next((one for one in self.reservations.hashed(attempt, ask) if amounts.fits(need, one.size)), None)

    def _offer(self, attempt: AttemptView, ask: Ask, change: int) -> None:
        offers = self._offers.setdefault(attempt.id, {})
        offers[ask.key] = ask.missed = offers.get(ask.key, 0) + change

    def _offered(self, attempt: AttemptView, ask: Ask) -> int:
        return self._offers.get(attempt.id, {}).get(ask.key, 0)


def _by_priority(attempt: AttemptView) -> Iterator[Ask]:
    asks = attempt.asks
    return merge(*[asks.of_shape(shape) for shape in asks.shapes()], key=lambda ask: ask.key)
