"""Masters that yield: where masters alone leave no room for what jobs want, the youngest goes and another job goes on.

A cluster that shrinks may be left with masters that fill it, each waiting for room that only the end of another would
make. None of them ends by itself. A job stands still when it wants containers, holds none, and would find no room for
any even if all but masters ended. The end of such a job's master may give another one what it waits for. Where that
lasts, the youngest of those masters is ended. Its attempt does not count, as always when a container is preempted.

A node may be reserved for a job for which masters leave no room there. What is free on it is given to nobody else, so
it is no room for the others.

Whoever yielded is let start again when there is room for its master beside what the other wants. It also starts again
when the other has ended, wants nothing any more, or stands still all the same. Before that it would bring the other to
a standstill again. A master that wants nothing works by itself, as far as anybody knows, and is left alone.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from rm.scheduler.decisions import Preempt
from rm.scheduler.queues.user_limits import known_limit_share, masters_held
from rm.scheduler.view.cluster import ClusterView
from rm.scheduler.view.held import Held, Yielded
from rm.scheduler.view.node import NodeView
from rm.scheduler.view.records import AppView, AttemptView, QueueView
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId, Resource
from yaqd.policies.asks.table import Ask

#: asks of an attempt, jobs that stand still and masters that are looked at
_ASKS_MAX: Final = 64
_JOBS_MAX: Final = 200
_MASTERS_MAX: Final = 200
#: nodes with room for a master that are looked at
_NODES_MAX: Final = 8

_Master = tuple[ContainerId, Held]


class Yielding:
    def __init__(self, after_s: float) -> None:
        """`after_s`: how long a standstill lasts before a master yields, s; inf: none ever does."""
        self.after_s = after_s
        #: jobs that would go on if a master ended -> since when, scheduler's seconds
        self._since: dict[ApplicationAttemptId, float] = {}
        #: who yielded to a job that wants and holds nothing -> since when, scheduler's seconds
        self._idle: dict[ApplicationId, float] = {}

    def decide(self, view: ClusterView, elsewhere: Iterable[ContainerId], now: float) -> Iterator[Preempt]:
        """Yield the kill of the master that makes way now, if any. `elsewhere`: containers that are not in the view's
        books."""
        room = Room(view)
        still = [attempt for attempt in _waiting(view) if not room.is_for(attempt)]
        if still:
            others = {container_id.application_id for container_id in elsewhere}
            still = [attempt for attempt in still if attempt.app.id not in others]
        youngest, helped = _helpful(view, still)
        self._since = {one.id: self._since.get(one.id, now) for one in helped}
        if youngest is None or now - min(self._since.values()) < self.after_s:
            return
        (container_id, held), first = youngest, min(helped, key=_age)
        wanted = next(_wanted(first)).capability
        view.yielded[held.application.id] = Yielded(first.app.id, wanted, held.resource)
        self._since.clear()
        why = f"application masters alone leave no room, and {first.app.id} goes on without it"
        yield Preempt(container_id, why, tells_why=True)

    def settle(self, view: ClusterView, now: float) -> bool:
        """Forget those who may start again; return True where there were some."""
        idle = {app_id for app_id, yielded in view.yielded.items() if _is_idle(view, yielded)}
        self._idle = {app_id: self._idle.get(app_id, now) for app_id in sorted(idle)}
        settled = [
            app_id
            for app_id, yielded in view.yielded.items()
            if not _is_needed(view, app_id, yielded) or now - self._idle.get(app_id, now) >= self.after_s
        ]
        for app_id in settled:
            del view.yielded[app_id]
        return bool(settled)


class Room:
    """What masters leave, as things are or as if one of them ended or began."""

    def __init__(self, view: ClusterView, change: Held | None = None) -> None:
        """`change`: so much more is held where it says, or less where it is negative."""
        self._view = view
        self._change = change
        #: by path: what masters hold of a queue and those below it
        self._held: dict[str, Resource] = {}

    def is_for(self, attempt: AttemptView) -> bool:
        """Tell whether one of its asks would be given something, once all but masters have ended."""
        leaf = attempt.app.leaf
        return self._has_turn(attempt.app) and any(
            self._queues_take(leaf, ask.capability) and self._a_node_takes(attempt, ask.capability, ask)
            for ask in islice(_wanted(attempt), _ASKS_MAX)
        )

    def is_for_size(self, attempt: AttemptView, wanted: Resource) -> bool:
        """Tell the same of a container of this size for which it does not ask."""
        if not self._has_turn(attempt.app) or not self._queues_take(attempt.app.leaf, wanted):
            return False
        return self._a_node_takes(attempt, wanted, None)

    def _a_node_takes(self, attempt: AttemptView, wanted: Resource, ask: Ask | None) -> bool:
        return any(self._takes(attempt, wanted, ask, node) for node in self._view.nodes.all())

    def _takes(self, attempt: AttemptView, wanted: Resource, ask: Ask | None, node: NodeView) -> bool:
        if node.is_draining or not self._is_beside_masters(wanted, node) or self._is_kept_in_vain(node):
            return False
        return attempt.accepts(node) and (ask is None or not ask.insists_on_others(node.id.host, node.rack))

    def _is_beside_masters(self, wanted: Resource, node: NodeView) -> bool:
        masters, change = node.masters, self._change
        if change is not None and change.node_id == node.id:
            masters = masters + change.resource
        return self._view.calculator.fits(wanted + masters, node.total)

    def _is_kept_in_vain(self, node: NodeView) -> bool:
        """Tell whether the node is reserved for an ask that masters leave no room here; nobody else is given it."""
        hold, change = node.reserved, self._change
        if hold is None or (change is not None and change.application is hold.attempt.app):
            return False  # what is reserved for an attempt ends with its master
        app, size = hold.attempt.app, hold.size
        gets_it = self._has_turn(app) and self._queues_take(app.leaf, size) and self._is_beside_masters(size, node)
        return not gets_it

    def _queues_take(self, leaf: QueueView, shape: Resource) -> bool:
        fits = self._view.calculator.fits
        return all(fits(self._held_of(queue) + shape, limit) for queue, limit in leaf.limited_above)

    def _held_of(self, queue: QueueView) -> Resource:
        found = self._held.get(queue.path)
        if found is None:
            found = sum((masters_held(self._view, leaf) for leaf in queue.walk() if leaf.is_leaf), Resource())
            if self._change is not None and queue in self._change.application.leaf.above:
                found = found + self._change.resource
            self._held[queue.path] = found
        return found

    def _has_turn(self, app: AppView) -> bool:
        """Tell whether its user is below the limit with masters alone, as `rm.scheduler.queues.user_limits.may_take`
        does."""
        view, change = self._view, self._change
        if not app.leaf.limits_users:
            return True
        held = masters_held(view, app.leaf, app.user)
        if change is not None and change.application.leaf is app.leaf and change.application.user == app.user:
            held = held + change.resource
        return view.calculator.share(held, view.nodes.total) <= known_limit_share(view, app.leaf)


def _waiting(view: ClusterView) -> list[AttemptView]:
    """List attempts that want something and hold nothing but their masters, the oldest first, as many as are looked
    at."""
    leaves = [queue for queue in view.queues.values() if queue.is_leaf and queue.waiting]
    attempts = [attempt for leaf in leaves for attempt in leaf.attempts.values() if attempt.filed_shapes]
    found = [one for one in attempts if one.id not in view.masters_wanted and not _holds(one.app)]
    return sorted(found, key=_age)[:_JOBS_MAX]


def _holds(app: AppView) -> bool:
    """Tell whether it holds anything but its master."""
    attempt = app.attempt
    has_master = attempt is not None and attempt.master is not None and not attempt.master.is_zero()
    return app.containers > has_master


def _wanted(attempt: AttemptView) -> Iterator[Ask]:
    for ask in attempt.asks:
        if ask.pending and not ask.is_master:
            yield ask


def _helpful(view: ClusterView, still: list[AttemptView]) -> tuple[_Master | None, list[AttemptView]]:
    """Find the youngest master of those that stand still without which others of them would go on, and which ones."""
    if len(still) < 2:
        return None, []
    ours = {attempt.app.id: attempt for attempt in still}
    masters = [one for one in view.containers.items() if one[1].is_master and one[1].application.id in ours]
    masters.sort(key=lambda one: _age(ours[one[1].application.id]), reverse=True)
    for master in masters[:_MASTERS_MAX]:
        held = master[1]
        room = Room(view, Held(held.node_id, held.resource * -1, held.application, is_master=True))
        helped = [attempt for attempt in still if attempt.app is not held.application and room.is_for(attempt)]
        if helped:
            return master, helped
    return None, []


def _age(attempt: AttemptView) -> tuple[int, int]:
    return -attempt.app.priority, attempt.app.sequence


def _is_needed(view: ClusterView, app_id: ApplicationId, yielded: Yielded) -> bool:
    """Tell whether the other would stand still again, and goes on until then."""
    app, other = view.applications.get(app_id), view.applications.get(yielded.to)
    if app is None or other is None:
        return False
    attempt = other.attempt
    if attempt is None:
        return True
    if _is_room_for_both(view, app, attempt, yielded):
        return False
    return _holds(other) or next(_wanted(attempt), None) is None or Room(view).is_for(attempt)


def _is_room_for_both(view: ClusterView, app: AppView, other: AttemptView, yielded: Yielded) -> bool:
    """Tell whether there is room for its master and for what the other wants, were it not for anything but masters."""
    fits, master = view.calculator.fits, yielded.master
    nodes = filter(lambda one: not one.is_draining and fits(one.masters + master, one.total), view.nodes.all())
    return any(
        Room(view, Held(node.id, master, app, is_master=True)).is_for_size(other, yielded.wanted)
        for node in islice(nodes, _NODES_MAX)
    )


def _is_idle(view: ClusterView, yielded: Yielded) -> bool:
    other = view.applications.get(yielded.to)
    attempt = other.attempt if other is not None else None
    return attempt is not None and not _holds(attempt.app) and next(_wanted(attempt), None) is None
