"""What Hadoop's CapacityScheduler lets a queue and a user hold, its reservations counted as held.

`LeafQueue`, `ParentQueue` and `UsersManager` of Hadoop 3.4, without node labels, users' weights and queues' priorities.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from rm.scheduler.assign.stock_amounts import NOTHING, Amounts, f32
from rm.scheduler.view.cluster import ClusterView
from rm.scheduler.view.node import NodeView
from rm.scheduler.view.records import AppView, AttemptView, QueueView
from rm.scheduler.view.user import UserView
from yaqd.model import ApplicationAttemptId, NodeId, Resource
from yaqd.policies.asks.table import Ask, AskKey

#: of NodeId.hashCode
_PRIME: Final = 493217
_SEED: Final = 8501
_INT: Final = 0xFFFFFFFF


@dataclass(slots=True, eq=False)
class Reservation:
    """A node that does as if the attempt had a container of this size there already, and gives nothing to others."""

    node: NodeView
    attempt: AttemptView
    #: as it was; the attempt may have given it up since, and asked for the same again
    ask: Ask
    size: Resource

    @property
    def wanted(self) -> Ask | None:
        """The ask of the same priority and id that the attempt has now, if it still wants a container."""
        ask = self.attempt.asks.get(self.ask.key)
        return ask if ask is not None and ask.pending else None


class Reservations:
    """All reservations; a node has at most one, an ask may have several."""

    def __init__(self) -> None:
        self.at: dict[NodeId, Reservation] = {}
        #: the same for who only asks for whom
        self.attempts: dict[NodeId, ApplicationAttemptId] = {}
        self._of_asks: dict[tuple[ApplicationAttemptId, AskKey], list[Reservation]] = {}
        #: the most that each ask has had at a time since it had none
        self._most: dict[tuple[ApplicationAttemptId, AskKey], int] = {}
        self._sums: dict[AppView, Resource] = {}
        #: how often reserved nodes were offered in vain since the ask's last reservation began or ended
        self._renewed: dict[tuple[ApplicationAttemptId, AskKey], int] = {}

    def add(self, one: Reservation) -> None:
        name = one.attempt.id, one.ask.key
        self.at[one.node.id] = one
        self.attempts[one.node.id] = one.attempt.id
        there = self._of_asks.setdefault(name, [])
        there.append(one)
        self._most[name] = max(self._most.get(name, 0), len(there))
        self._sums[one.attempt.app] = self.of_app(one.attempt.app) + one.size
        self._renewed[name] = 0

    def remove(self, one: Reservation) -> None:
        name, app = (one.attempt.id, one.ask.key), one.attempt.app
        del self.at[one.node.id], self.attempts[one.node.id]
        self._of_asks[name].remove(one)
        if not self._of_asks[name]:
            del self._of_asks[name], self._most[name]
        self._renewed.pop(name, None)
        self._sums[app] = self._sums[app] - one.size
        if self._sums[app].is_zero():
            del self._sums[app]

    def renew(self, one: Reservation) -> None:
        """Note that the node was offered again and had no room yet."""
        name = one.attempt.id, one.ask.key
        self._renewed[name] = self._renewed.get(name, 0) + 1

    def renewed(self, attempt: AttemptView, ask: Ask) -> int:
        return self._renewed.get((attempt.id, ask.key), 0)

    def of(self, attempt: AttemptView, ask: Ask) -> list[Reservation]:
        return self._of_asks.get((attempt.id, ask.key), [])

    def hashed(self, attempt: AttemptView, ask: Ask) -> list[Reservation]:
        """Return the ask's reservations in the order of Hadoop's hash map, by which the first that will do is freed."""
        slots = 16
        while self._most.get((attempt.id, ask.key), 0) > slots * 3 // 4:
            slots *= 2
        return sorted(self.of(attempt, ask), key=lambda one: _hash(one.node.id) & (slots - 1))

    def of_attempt(self, attempt: AttemptView) -> list[Reservation]:
        return [one for one in self.at.values() if one.attempt is attempt]

    def of_app(self, app: AppView) -> Resource:
        return self._sums.get(app, NOTHING)

    def in_queue(self, queue: QueueView) -> Resource:
        """Return what applications of the queue, and of those below it, have reserved."""
        if not self._sums:
            return NOTHING
        return _sum([amount for app, amount in self._sums.items() if queue in app.leaf.above])

    def of_user(self, owner: UserView) -> Resource:
        """Return what a user of a leaf queue has reserved there."""
        if not self._sums:
            return NOTHING
        return _sum([amount for app, amount in self._sums.items() if app.owner is owner])

    def of_active(self, leaf: QueueView) -> Resource:
        """Return what users of the leaf queue have reserved who wait for something."""
        return _sum([amount for app, amount in self._sums.items() if app.leaf is leaf and app.owner.waiting])


class UsageRatios:
    """The users' parts of the cluster, by leaf queue, summed as Hadoop sums them: by 32 bit differences."""

    def __init__(self, view: ClusterView, reservations: Reservations) -> None:
        self._view, self._reservations = view, reservations
        self._sums: dict[str, float] = {}
        self._users: dict[UserView, float] = {}
        self._total = NOTHING

    def changed(self, app: AppView) -> None:
        """Hear that the application's user holds more or less."""
        self._refresh()
        self._count(app.leaf, app.owner)

    def of(self, leaf: QueueView) -> float:
        self._refresh()
        return self._sums.get(leaf.path, 0.0)

    def _refresh(self) -> None:
        """Work all out anew where the cluster has another size."""
        total = self._view.nodes.total
        if total == self._total:
            return
        self._total = total
        self._sums.clear()
        self._users.clear()
        for leaf in self._view.queues.values():
            for owner in leaf.users.values():
                self._count(leaf, owner)

    def _count(self, leaf: QueueView, owner: UserView) -> None:
        amounts = Amounts(self._total, self._view.least, counts_vcores=self._view.calculator.counts_vcores)
        ratio = amounts.ratio(owner.used + self._reservations.of_user(owner), self._total)
        difference = f32(ratio - self._users.get(owner, 0.0))
        self._sums[leaf.path] = f32(self._sums.get(leaf.path, 0.0) + difference)
        if ratio:
            self._users[owner] = ratio
        else:
            self._users.pop(owner, None)


@dataclass(slots=True)
class Limits:
    """What a queue may grow to, as its parent says, and what is left of it."""

    limit: Resource
    headroom: Resource
    #: what queues before it could not use
    blocked: Resource = NOTHING
    #: what must be unreserved before anything is given
    to_free: Resource = NOTHING


@dataclass(frozen=True, slots=True)
class QueueSizes:
    """What a queue is guaranteed and may hold at most, by its percentages alone."""

    capacity: float
    guarantee: Resource
    most: Resource


class StockLimits:
    """Answers for one look at a node, in which the cluster does not change."""

    def __init__(
        self, view: ClusterView, reservations: Reservations, ratios: UsageRatios, sizes: dict[str, QueueSizes]
    ) -> None:
        """`sizes`: by path, filled here; they hold for as long as the cluster has this size and these queues."""
        self._view, self._reservations, self._ratios, self._sizes = view, reservations, ratios, sizes
        self.amounts = Amounts(view.nodes.total, view.least, counts_vcores=view.calculator.counts_vcores)
        self._user_limits: dict[str, Resource] = {}

    def sizes(self, queue: QueueView) -> QueueSizes:
        found = self._sizes.get(queue.spec.path)
        if found is None:
            capacity, total = _capacity(queue), self.amounts.total
            most = self.amounts.part(total, _maximum(queue))
            found = self._sizes[queue.spec.path] = QueueSizes(capacity, self.amounts.part(total, capacity), most)
        return found

    def used(self, queue: QueueView) -> Resource:
        return queue.used + self._reservations.in_queue(queue)

    def user_used(self, owner: UserView) -> Resource:
        return owner.used + self._reservations.of_user(owner)

    def root(self) -> Limits:
        return Limits(self.amounts.total, self.amounts.total)

    def of_child(self, child: QueueView, parent: QueueView, limits: Limits) -> Limits:
        """Return the child's limits: what is left to the parent, and what the child holds."""
        limits.limit = self.amounts.smaller(limits.limit, self.sizes(parent).most)
        left = limits.limit - limits.blocked - self.used(parent)
        limit = self.amounts.down(left + self.used(child))
        return Limits(limit, limit)

    def has_room(self, queue: QueueView, limits: Limits, reserved: Resource) -> bool:
        """Tell whether the queue is below its limit, or would be without `reserved`. Its headroom is set."""
        limit, used = self.amounts.smaller(self.sizes(queue).most, limits.limit), self.used(queue)
        limits.headroom = limit - used
        if self.amounts.compare(used, limit) < 0:
            return True
        return self.amounts.compare(reserved, NOTHING) > 0 and self.amounts.compare(used - reserved, limit) < 0

    def lets_user(self, app: AppView, limits: Limits, user_limit: Resource) -> bool:
        """Tell whether the application's user may hold more, perhaps by giving up what it has reserved."""
        limits.to_free = NOTHING
        used = self.user_used(app.owner)
        if self.amounts.compare(used, user_limit) <= 0:
            return True
        if self.amounts.compare(used - self._reservations.of_app(app), user_limit) > 0:
            return False
        limits.to_free = used - user_limit
        return True

    def accepts(self, app: AppView, need: Resource, freed: Resource) -> bool:
        """Tell whether the limits of the user, of the queue and of those above it bear what was found."""
        amounts, leaf = self.amounts, app.leaf
        if amounts.compare(self.user_used(app.owner) - freed, self.user_limit(leaf)) > 0:
            return False
        return all(amounts.fits(self.used(queue) + need - freed, self.sizes(queue).most) for queue in leaf.above)

    def user_limit(self, leaf: QueueView) -> Resource:
        """Return what each user of the leaf queue who waits for something may hold."""
        found = self._user_limits.get(leaf.spec.path)
        if found is None:
            found = self._user_limits[leaf.spec.path] = self._user_limit(leaf)
        return found

    def _user_limit(self, leaf: QueueView) -> Resource:
        amounts, spec, least = self.amounts, leaf.spec, self._view.least
        guarantee = self.sizes(leaf).guarantee
        capacity = amounts.larger(guarantee, least)
        consumed = amounts.up_part(amounts.total, self._ratios.of(leaf))
        current = capacity if amounts.compare(consumed, capacity) < 0 else consumed + least
        held = leaf.active.used + self._reservations.of_active(leaf)
        percent = f32(spec.minimum_user_limit * 100)
        limit = amounts.larger(
            amounts.divided(held + least, leaf.active_users), amounts.hundredth(amounts.part(current, percent))
        )
        if spec.user_limit_factor == -1 or guarantee.is_zero():
            most = amounts.down(self.sizes(leaf).most)
        else:
            most = amounts.part(capacity, f32(spec.user_limit_factor))
        return amounts.up(amounts.smaller(limit, most))

    def in_turn(self, parent: QueueView) -> list[QueueView]:
        """List the queues below, the one that uses least of its guarantee first."""
        return sorted((child for child in parent.children), key=self._turn)

    def _turn(self, queue: QueueView) -> tuple[bool, float, float]:
        amounts, sizes = self.amounts, self.sizes(queue)
        capacity = sizes.capacity
        of = amounts.larger(sizes.guarantee, amounts.least) if capacity else amounts.total
        return capacity <= 0, amounts.quotient(self.used(queue), of), -capacity


def _hash(node: NodeId) -> int:
    """Return what Java's HashMap makes of a NodeId."""
    text = 0
    for letter in node.host:
        text = (31 * text + ord(letter)) & _INT
    found = _PRIME * (_PRIME * _SEED + text) + node.port & _INT
    return found ^ found >> 16


def _capacity(queue: QueueView) -> float:
    """Return the guaranteed part of the cluster, with the rounding of 32 bits."""
    own = f32(f32(queue.spec.capacity * 100) / 100)
    return own if queue.parent is None else f32(own * _capacity(queue.parent))


def _maximum(queue: QueueView) -> float:
    own = f32(f32(queue.spec.maximum_capacity * 100) / 100)
    return own if queue.parent is None else f32(own * _maximum(queue.parent))


def _sum(amounts: Iterable[Resource]) -> Resource:
    total = NOTHING
    for amount in amounts:
        total = total + amount
    return total
