"""Taking containers back for queues below their guarantee, as Hadoop's ProportionalCapacityPreemptionPolicy does.

Every few seconds: what should each queue hold if the cluster were divided anew among those who want something, by their
guarantees? Queues that hold more than their guarantee, and more than that, are to give up a part of the difference. The
last containers of their last applications go first, and masters last. A container chosen for longer than the grace
period is killed. Until then its master knows and may hand it over. Others may end by themselves meanwhile, so that it
is no longer chosen. Nothing here changes the view, and the only memory is since when a container has been chosen.
"""

from collections.abc import Callable, Container, Iterator
from functools import partial, reduce
from math import ceil
from typing import Final

from rm.scheduler.decisions import Preempt, Warn
from rm.scheduler.preemption.claims import Claims, at_once
from rm.scheduler.preemption.spec import PreemptionSpec
from rm.scheduler.queues.user_limits import user_limit
from rm.scheduler.view.calculators import Calculator
from rm.scheduler.view.cluster import ClusterView
from rm.scheduler.view.held import Held
from rm.scheduler.view.records import AppView, QueueView
from yaqd.model import ContainerId, NodeId, Resource

_Line = list[tuple[ContainerId, Held]]

#: rounds of one distribution; each hands out all there is but what is lost by rounding
_ROUNDS_MAX: Final = 200


class _Share:
    """One queue while a division is worked out."""

    def __init__(self, view: ClusterView, queue: QueueView) -> None:
        total, spec = view.nodes.total, queue.spec
        self.queue = queue
        self.children: list[_Share] = [_Share(view, child) for child in queue.children]
        self.used = queue.used
        self.guaranteed = _times(total, spec.absolute_capacity)
        self.maximum = _times(total, spec.absolute_maximum)
        self.pending: Resource = _wanted(view, queue) if queue.is_leaf else _sum([c.pending for c in self.children])
        #: what may, and what may not, be taken of what it holds above its guarantee
        self.preemptable, self.untouchable = self._extras(view.calculator, total)
        self.ideal = Resource()
        self.to_give = Resource()

    def _extras(self, calculator: Calculator, total: Resource) -> tuple[Resource, Resource]:
        extra = self.used - self.guaranteed
        if calculator.share(extra, total) <= 0:
            extra = Resource()
        if not self.children:
            return (Resource(), extra) if self.queue.spec.preemption_disabled else (extra, Resource())
        below = _sum([c.preemptable for c in self.children])
        if calculator.share(below, total) >= calculator.share(extra, total):
            return extra, Resource()
        return below, extra - below

    def accept(self, offered: Resource) -> Resource:
        """Take as much of the offer as it can use; return what it takes."""
        room = _least(offered, self.maximum - self.ideal, self.used + self.pending - self.ideal)
        if not self.children:
            # Nobody is to lose anything for a queue that has its guarantee.
            most = self.guaranteed + (self.used - self.guaranteed).floored()
            room = _least(room, most - self.ideal)
        taken = room.floored()
        self.ideal = self.ideal + taken
        return taken


class Preemption:
    def __init__(self, spec: PreemptionSpec) -> None:
        self.spec = spec
        #: containers whose masters were told -> since when they have been chosen
        self._noticed: dict[ContainerId, float] = {}
        #: where nodes are filled beyond their size
        self._claims = Claims()

    def decide(self, view: ClusterView, now: float) -> Iterator[Warn | Preempt]:
        """Yield a `Warn` for each container to be told of, and a `Preempt` for each whose time is up."""
        for container_id in [c for c in self._noticed if c not in view.containers]:
            del self._noticed[container_id]
        spec, waits, is_due = self.spec, bool(view.root.waiting), False
        if view.shares.are_kept:
            self._claims.look(view, spec.interval_s, now)
            waits = bool(self._claims)
            is_due = self._claims.are_due(view, spec.interval_s, now)
            view.shares.serve_first(self._claims.of(view) if is_due and not spec.observe_only else ())
        if not waits or spec.observe_only:
            self._forget_old(now)
            return
        if is_due:
            spec = at_once(spec)
            for container_id, queue in list(self._claims.in_the_way(view)):
                yield Preempt(container_id, f"it has not run, and {queue} has more than its guarantee")
        for container_id, queue in self._choose(view, spec):
            since = self._noticed.get(container_id)
            if since is None:
                self._noticed[container_id] = now
                yield Warn(container_id, f"{queue} is above its guarantee and others are below theirs")
            elif now - since >= spec.wait_s:
                del self._noticed[container_id]
                yield Preempt(container_id, f"{queue} did not give it back in {now - since:.1f} s")
        self._forget_old(now)

    def _forget_old(self, now: float) -> None:
        """Forget those that have long not been chosen. They get a new notice when they are again."""
        for container_id in [c for c, since in self._noticed.items() if since + 2 * self.spec.wait_s < now]:
            del self._noticed[container_id]

    def _choose(self, view: ClusterView, spec: PreemptionSpec) -> Iterator[tuple[ContainerId, str]]:
        allowed = _times(view.nodes.total, spec.per_round)
        givers = list(_givers(view, spec, allowed, self._claims if view.shares.are_kept else None))
        if not givers:
            return
        held: dict[int, list[tuple[ContainerId, Held]]] = {}
        for container_id, charge in view.containers.items():
            if view.node_queues.is_waiting(charge.node_id, container_id):
                continue  # it holds nothing of its queue's yet
            held.setdefault(charge.application.sequence, []).append((container_id, charge))
        budget = [allowed]
        prefer = partial(_preferred, self._noticed, self._claims.places(view)) if view.shares.are_kept else list
        for share, to_get in givers:
            for container_id in _containers_of(view, share.queue, to_get, held, budget, prefer):
                yield container_id, share.queue.path


def _givers(
    view: ClusterView, spec: PreemptionSpec, allowed: Resource, claims: Claims | None
) -> Iterator[tuple[_Share, Resource]]:
    """Yield leaf queues, by path, and what to choose of each."""
    root = _Share(view, view.root)
    root.ideal = root.guaranteed
    leaves: list[_Share] = []
    _divide_below(view, root, allowed, leaves)
    of = view.calculator.share
    total = view.nodes.total
    for share in sorted(leaves, key=lambda s: s.queue.path):
        if share.queue.spec.preemption_disabled or (claims is not None and claims.is_owed(share.queue.path)):
            continue
        most = of(share.guaranteed, total) * (1.0 + spec.ignored_over_capacity)
        if of(share.used, total) > most and of(share.to_give, total) > 0:
            yield share, _times_up(share.to_give, spec.natural_termination)


def _divide_below(view: ClusterView, parent: _Share, allowed: Resource, leaves: list[_Share]) -> None:
    """Give every queue below its ideal share of the parent's, and say what it has to give back."""
    if not parent.children:
        leaves.append(parent)
        return
    total, of = view.nodes.total, view.calculator.share
    left = parent.ideal
    with_guarantee = [c for c in parent.children if of(c.guaranteed, total) > 0]
    left = _distribute(view, with_guarantee, left, by_guarantee=True)
    without = [c for c in parent.children if of(c.guaranteed, total) <= 0]
    _distribute(view, without, left, by_guarantee=False)
    needed = _sum([(c.used - c.ideal).floored() for c in parent.children if of(c.used, total) > of(c.ideal, total)])
    factor = 1.0
    if of(needed, total) > of(allowed, total):
        factor = of(allowed, total) / of(needed, total)
    for child in parent.children:
        keep = _least(child.used + child.pending, child.guaranteed)
        if of(child.ideal, total) > of(keep, total):
            keep = child.ideal
        if of(child.used, total) > of(keep, total):
            child.to_give = _times((child.used - keep).floored(), factor)
        _divide_below(view, child, allowed, leaves)


def _distribute(view: ClusterView, shares: list[_Share], left: Resource, *, by_guarantee: bool) -> Resource:
    """Divide among those who want more than they have, the furthest below its guarantee first; return what is left."""
    total, of = view.nodes.total, view.calculator.share
    needy = []
    for share in shares:
        is_above = of(share.used, total) > of(share.guaranteed, total)
        share.ideal = share.guaranteed + share.untouchable if is_above else share.used
        left = left - share.ideal
        if of(share.ideal, total) < of(share.used + share.pending, total):
            needy.append(share)

    def met(share: _Share) -> float:
        return of(share.ideal, total) / max(of(share.guaranteed, total), 1e-12)

    for _ in range(_ROUNDS_MAX):
        if not needy or of(left, total) <= 0:
            break
        weights = _sum([s.guaranteed for s in needy])
        least = min(met(s) for s in needy)
        taken = Resource()
        for share in [s for s in needy if met(s) <= least]:
            part = of(share.guaranteed, weights) if by_guarantee else 1.0 / len(needy)
            got = share.accept(_least(_times_up(left.floored(), part), left - taken))
            if of(got, total) <= 0:
                needy.remove(share)
            taken = taken + got
        left = left - taken
    return left


def _containers_of(
    view: ClusterView,
    leaf: QueueView,
    to_get: Resource,
    held: dict[int, list[tuple[ContainerId, Held]]],
    budget: list[Resource],
    prefer: Callable[[_Line], _Line],
) -> Iterator[ContainerId]:
    """Yield the leaf queue's last containers, until they make up `to_get` or the budget for this time is spent."""
    masters: list[tuple[ContainerId, Held]] = []
    kept_for_masters = Resource()
    apps = sorted({a.sequence: a for a in _applications(leaf, held)}.values(), key=view.order_key, reverse=True)
    line = [item for app in apps for item in sorted(held.get(app.sequence, []), key=_last_first)]
    for container_id, charge in prefer(line):
        if charge.is_master:
            masters.append((container_id, charge))
            kept_for_masters = kept_for_masters + charge.resource
        elif _is_wanted(view, to_get, charge.resource) and charge.resource.fits_in(budget[0]):
            to_get, budget[0] = to_get - charge.resource, budget[0] - charge.resource
            yield container_id
    most = _times(view.nodes.total, leaf.spec.absolute_capacity * leaf.spec.maximum_am_share)
    of, total = view.calculator.share, view.nodes.total
    for container_id, charge in masters:
        if of(kept_for_masters, total) <= of(most, total):
            return
        if _is_wanted(view, to_get, charge.resource) and charge.resource.fits_in(budget[0]):
            to_get, budget[0] = to_get - charge.resource, budget[0] - charge.resource
            kept_for_masters = kept_for_masters - charge.resource
            yield container_id


def _preferred(noticed: Container[ContainerId], places: dict[NodeId, int], line: _Line) -> _Line:
    """Put first those that are chosen already, then those at nodes where so many wait for them. Else the order stays.

    A choice that changed from look to look would never be carried out.
    """
    told, near, others = [], [], []
    for container_id, charge in line:
        waits = places.get(charge.node_id, 0)
        if container_id in noticed:
            told.append((container_id, charge))
        elif waits > 0 and not charge.is_master:
            near.append((container_id, charge))
        else:
            others.append((container_id, charge))
            continue
        places[charge.node_id] = waits - 1
    return told + near + others


def _applications(leaf: QueueView, held: dict[int, list[tuple[ContainerId, Held]]]) -> Iterator[AppView]:
    for charges in held.values():
        app = charges[0][1].application
        if app.leaf is leaf and app.attempt is not None:
            yield app


def _last_first(item: tuple[ContainerId, Held]) -> tuple[int, int]:
    container_id, charge = item
    return -charge.priority, -container_id.id


def _is_wanted(view: ClusterView, to_get: Resource, held: Resource) -> bool:
    """Tell whether the container has any of what is still to be got, of the resources that count.

    As Hadoop's CapacitySchedulerPreemptionUtils unless `conservative-drf` is set: one type that is short is enough.
    """
    got = _least(to_get.floored(), held)
    return got.memory_mb > 0 or (view.calculator.counts_vcores and not got.is_zero())


def _wanted(view: ClusterView, leaf: QueueView) -> Resource:
    return _pending(view, leaf) + (leaf.sent.used if view.shares.are_kept else Resource())


def _pending(view: ClusterView, leaf: QueueView) -> Resource:
    """Add up what admitted applications want, as far as their users' limits let them have it."""
    by_user: dict[str, Resource] = {}
    for attempt in leaf.attempts.values():
        if attempt.master is not None and attempt.filed_shapes:
            wanted = _sum([ask.capability * ask.pending for ask in attempt.asks])
            by_user[attempt.app.user] = by_user.get(attempt.app.user, Resource()) + wanted
    if not leaf.limits_users:
        return _sum(list(by_user.values()))
    limit = user_limit(view, leaf)
    return _sum([_least(wanted, limit - leaf.users[user].used).floored() for user, wanted in by_user.items()])


def _times(amount: Resource, fraction: float, whole: Callable[[float], int] = int) -> Resource:
    extras = {name: part for name, count in amount.extras.items() if (part := whole(count * fraction))}
    return Resource(whole(amount.memory_mb * fraction), whole(amount.vcores * fraction), extras)


def _times_up(amount: Resource, fraction: float) -> Resource:
    return _times(amount, fraction, ceil)


def _least(first: Resource, *others: Resource) -> Resource:
    return reduce(Resource.smaller, others, first)


def _sum(amounts: list[Resource]) -> Resource:
    return sum(amounts, Resource())
