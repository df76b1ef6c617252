"""What one user may hold of a leaf queue, as Hadoop's UsersManager computes it.

A user may be given another container while it holds no more than its limit, so it may end up above it by one. The users
who want something share equally what they hold together and a little more. The limit is that equal part, or
`minimum-user-limit-percent` of the queue if that is more. It is never more than the queue's capacity times
`user-limit-factor`. Where the percentage is 100 only this last bound can ever bind, and it is a constant. Sums over
users are kept only where the percentage is less.
"""

import sys
from collections.abc import Set
from math import ceil
from typing import Final, Protocol

from rm.scheduler.view.calculators import Calculator
from rm.scheduler.view.node_table import NodeTable
from rm.scheduler.view.records import AppView, AttemptView, QueueView
from yaqd.model import ApplicationAttemptId, Resource
from yaqd.model.resources import NO_EXTRAS

#: sums of shares are kept as floating point numbers; smaller differences do not begin another step of memory
_TOLERANCE: Final = 1e-6


class LimitedCluster(Protocol):
    """What limits depend on beside the queue."""

    @property
    def calculator(self) -> Calculator: ...
    @property
    def nodes(self) -> NodeTable: ...
    @property
    def least(self) -> Resource: ...
    @property
    def masters_wanted(self) -> Set[ApplicationAttemptId]: ...


def needs_shares(leaf: QueueView) -> bool:
    """Tell whether a limit of this queue depends on what its users hold."""
    return leaf.spec.minimum_user_limit < 1.0


def is_limited(leaf: QueueView) -> bool:
    """Tell whether a user of this queue can reach a limit before the queue reaches its own."""
    spec = leaf.spec
    if needs_shares(leaf):
        return True
    return spec.user_limit_factor >= 0 and spec.absolute_capacity * spec.user_limit_factor < spec.absolute_maximum


def fixed_limit(view: LimitedCluster, leaf: QueueView) -> Resource:
    """Return the most a user may hold whatever the others do: capacity times factor, or all that the queue may hold."""
    spec = leaf.spec
    if spec.user_limit_factor < 0 or spec.absolute_capacity <= 0:
        return _up(view, view.nodes.total, spec.absolute_maximum)
    capacity = _larger(view, _part(view.nodes.total, spec.absolute_capacity), view.least)
    return _up(view, capacity, spec.user_limit_factor)


def set_fixed_limits(view: LimitedCluster, leaf: QueueView) -> None:
    """Work out all of the limit that does not depend on what users hold.

    `sure_mb` and `sure_cores`: a user that holds no more of either may be given a container whatever the others hold.
    The limit is at least `minimum-user-limit-percent` of the guarantee, less the unit that rounding down may cost.
    """
    total, share = view.nodes.total, view.calculator.share
    leaf.limits_users, leaf.sums_shares = is_limited(leaf), needs_shares(leaf)
    leaf.user_limit = fixed_limit(view, leaf)
    leaf.guarantee = _larger(view, _part(total, leaf.spec.absolute_capacity), view.least)
    leaf.guaranteed_share = share(leaf.guarantee, total)
    sure = leaf.fixed_share = share(leaf.user_limit, total)
    if needs_shares(leaf):
        units = (total.memory_mb, total.vcores, *total.extras.values())
        coarsest = max((1.0 / unit for unit in units if unit > 0), default=1.0)
        sure = min(sure, leaf.guaranteed_share * leaf.spec.minimum_user_limit - coarsest)
    leaf.sure_mb = int(sure * total.memory_mb) - 1
    leaf.sure_cores = int(sure * total.vcores) - 1 if view.calculator.counts_vcores else sys.maxsize
    sum_shares(view, leaf)


def sum_shares(view: LimitedCluster, leaf: QueueView) -> None:
    """Add up the users' parts of the cluster anew, where a limit depends on them."""
    leaf.unsummed.clear()
    leaf.limit_share = None
    total, share = view.nodes.total, view.calculator.share_among
    for user in leaf.users.values():
        user.share = share(user.used_mb, user.used_cores, user.used_extras, total) if needs_shares(leaf) else 0.0
    leaf.summed_shares = sum([user.share for user in leaf.users.values()])


def user_shares(view: LimitedCluster, leaf: QueueView) -> float:
    """Add up the users' parts of the cluster, brought up to date for those whose use has changed."""
    if leaf.unsummed:
        total, share = view.nodes.total, view.calculator.share_among
        for user in leaf.unsummed:
            now = share(user.used_mb, user.used_cores, user.used_extras, total)
            leaf.summed_shares += now - user.share
            user.share = now
        leaf.unsummed.clear()
    return leaf.summed_shares


def user_limit(view: LimitedCluster, leaf: QueueView) -> Resource:
    """Return what a user who wants something may hold before it is passed over."""
    if not needs_shares(leaf):
        return leaf.user_limit
    total, least, spec = view.nodes.total, view.least, leaf.spec
    capacity = leaf.guarantee
    consumed = _up(view, total, user_shares(view, leaf))
    if view.calculator.share(consumed, total) >= view.calculator.share(capacity, total):
        capacity = consumed + least
    active = max(1, leaf.active_users)
    wanted = leaf.active.used + least
    shared = {n: -(-v // active) for n, v in wanted.extras.items()} if wanted.extras else wanted.extras
    equal = Resource(-(-wanted.memory_mb // active), -(-wanted.vcores // active), shared)
    percent = _part(capacity, spec.minimum_user_limit)
    limit = _up(view, _larger(view, equal, percent), 1.0)
    return min(limit, leaf.user_limit, key=lambda amount: view.calculator.share(amount, total))


def limit_share(view: LimitedCluster, leaf: QueueView) -> float:
    """Return the part of the cluster that `user_limit` is. Where only memory and cores are counted, plain numbers
    do."""
    if not needs_shares(leaf):
        return leaf.fixed_share
    total, least, active, share = view.nodes.total, view.least, leaf.active, view.calculator.share_among
    if total.extras or active.used_extras:
        return view.calculator.share(user_limit(view, leaf), total)
    step, core_step, held = least.memory_mb, least.vcores, user_shares(view, leaf)
    mb, cores = leaf.guarantee.memory_mb, leaf.guarantee.vcores
    consumed_mb = ceil(total.memory_mb * held / step - _TOLERANCE) * step
    consumed_cores = ceil(total.vcores * held / core_step - _TOLERANCE) * core_step
    if share(consumed_mb, consumed_cores, NO_EXTRAS, total) >= leaf.guaranteed_share:
        mb, cores = consumed_mb + step, consumed_cores + core_step
    percent, users = leaf.spec.minimum_user_limit, leaf.active_users or 1
    mb, cores = int(mb * percent), int(cores * percent)
    equal_mb, equal_cores = -(-(active.used_mb + step) // users), -(-(active.used_cores + core_step) // users)
    if share(equal_mb, equal_cores, NO_EXTRAS, total) >= share(mb, cores, NO_EXTRAS, total):
        mb, cores = equal_mb, equal_cores
    mb, cores = ceil(mb / step - _TOLERANCE) * step, ceil(cores / core_step - _TOLERANCE) * core_step
    return min(share(mb, cores, NO_EXTRAS, total), leaf.fixed_share)


def may_take(view: LimitedCluster, app: AppView) -> bool:
    """Tell whether the application's user may be given one more container."""
    leaf, owner = app.leaf, app.owner
    if not leaf.limits_users:
        return True
    if owner.used_mb <= leaf.sure_mb and owner.used_cores <= leaf.sure_cores and not owner.used_extras:
        return True
    share = view.calculator.share_among(owner.used_mb, owner.used_cores, owner.used_extras, view.nodes.total)
    if leaf.limit_share is None and share <= least_limit_share(view, leaf):
        return True
    return share <= known_limit_share(view, leaf)


def least_limit_share(view: LimitedCluster, leaf: QueueView) -> float:
    """Return what `limit_share` surely is: an equal part of what active users hold and a little more.

    All else can only add to that. It costs no look at all users, and is enough for who holds no more than the others
    do.
    """
    active, users, least = leaf.active, leaf.active_users or 1, view.least
    if not leaf.sums_shares or active.used_extras:
        return 0.0
    mb, cores = -(-(active.used_mb + least.memory_mb) // users), -(-(active.used_cores + least.vcores) // users)
    return min(view.calculator.share_among(mb, cores, NO_EXTRAS, view.nodes.total), leaf.fixed_share)


def known_limit_share(view: LimitedCluster, leaf: QueueView) -> float:
    """Return `limit_share`, worked out anew only when something has changed."""
    limit = leaf.limit_share
    if limit is None:
        limit = leaf.limit_share = limit_share(view, leaf)
    return limit


# ---- masters


def masters_limit(view: LimitedCluster, leaf: QueueView) -> Resource:
    """Return what masters may hold: a part of what the queue could grow to now, and at least of its guarantee."""
    total = view.nodes.total
    guarantee = _part(total, leaf.spec.absolute_capacity)
    room = total
    for queue in reversed(list(leaf.upwards())[:-1]):
        assert queue.parent is not None
        left = room - queue.parent.used + queue.used
        room = left.smaller(queue.limit or total)
    usable = room if view.calculator.fits(guarantee, room) else guarantee
    return _up(view, usable, leaf.spec.maximum_am_share)


def user_masters_limit(view: LimitedCluster, leaf: QueueView) -> Resource:
    """Return what the masters of one user may hold."""
    spec = leaf.spec
    part = spec.maximum_am_share
    if spec.user_limit_factor >= 0:
        users = sum(1 for user in leaf.users.values() if user.waiting or (user.applications and not user.masters))
        part *= max(spec.minimum_user_limit, 1.0 / max(1, users)) * spec.user_limit_factor
    total = view.nodes.total
    limit = _up(view, _part(total, spec.absolute_capacity), part)
    return min(limit, masters_limit(view, leaf), key=lambda amount: view.calculator.share(amount, total))


def masters_held(view: LimitedCluster, leaf: QueueView, user: str | None = None) -> Resource:
    """Add up what the masters of a leaf queue, or of one user in it, have been given."""
    given = [
        one.master
        for one in leaf.attempts.values()
        if one.master is not None and one.id not in view.masters_wanted and user in (None, one.app.user)
    ]
    return sum(given, Resource())


def master_need(attempt: AttemptView) -> Resource | None:
    """Return what the attempt's master asks for; None when it runs outside the cluster."""
    return next((a.capability for a in attempt.asks if a.is_master and a.pending), None)


def _part(amount: Resource, fraction: float) -> Resource:
    extras = amount.extras
    if extras:
        extras = {n: part for n, v in extras.items() if (part := int(v * fraction))}
    return Resource(int(amount.memory_mb * fraction), int(amount.vcores * fraction), extras)


def _larger(view: LimitedCluster, one: Resource, other: Resource) -> Resource:
    total = view.nodes.total
    return one if view.calculator.share(one, total) >= view.calculator.share(other, total) else other


def _up(view: LimitedCluster, amount: Resource, fraction: float) -> Resource:
    """Return that part of the amount, in whole steps of the smallest container."""
    step, cores = view.least.memory_mb, view.least.vcores
    memory = ceil(amount.memory_mb * fraction / step - _TOLERANCE) * step
    extras = _part(amount, fraction).extras if amount.extras else amount.extras
    return Resource(memory, ceil(amount.vcores * fraction / cores - _TOLERANCE) * cores, extras)
