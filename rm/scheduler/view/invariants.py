"""What must be true of the scheduler's view after every event, recomputed the slow way."""

from rm.scheduler.queues.user_limits import least_limit_share, limit_share, needs_shares, user_limit, user_shares
from rm.scheduler.view.cluster import ClusterView
from rm.scheduler.view.records import QueueView
from yaqd.model import ContainerId, Resource


def validate(view: ClusterView) -> None:
    """Assert that every incrementally kept total is what a recount gives, and that no limit is exceeded."""
    view.nodes.validate()
    for node in view.nodes.all():
        if view.calculator.counts_vcores and not node.queue.is_filled:
            assert node.free.vcores >= 0 or node.free.memory_mb < 0 or _shrunk(view), f"{node.id}: cores overcommitted"
        for container_id in node.containers:
            assert view.containers[container_id].node_id == node.id
        masters = [amount for name, amount in node.containers.items() if view.containers[name].is_master]
        assert node.masters == _sum(masters), (node.id, node.masters, masters)
    _validate_charges(view)
    view.tags.validate()
    view.holds.validate()
    view.shares.validate()
    for queue in view.queues.values():
        _validate_queue(view, queue)


def _sent(view: ClusterView) -> set[ContainerId]:
    """Return what waits at nodes; its sums are checked."""
    sent: set[ContainerId] = set()
    by_leaf: dict[str, Resource] = {}
    for node_queue in view.node_queues.all():
        sent |= node_queue.waiting.keys()
        for container_id in node_queue.waiting:
            held = view.containers[container_id]
            path = held.application.leaf.path
            by_leaf[path] = by_leaf.get(path, Resource()) + held.resource
    for queue in view.queues.values():
        below = _sum([by_leaf.get(leaf.path, Resource()) for leaf in queue.walk() if leaf.is_leaf])
        assert queue.sent.used == below, (queue.path, queue.sent.used, below)
    return sent


def _shrunk(view: ClusterView) -> bool:
    """Tell whether a node was made smaller under its containers: then it may be overcommitted."""
    return any(n.free.memory_mb < 0 for n in view.nodes.all())


def _validate_charges(view: ClusterView) -> None:
    by_app: dict[int, Resource] = {}
    sent_by_app: dict[int, list[Resource]] = {}
    by_leaf: dict[str, Resource] = {}
    by_user: dict[tuple[str, str], list[Resource]] = {}
    sent = _sent(view)
    for container_id, held in view.containers.items():
        app = held.application
        by_app[app.sequence] = by_app.get(app.sequence, Resource()) + held.resource
        assert app.leaf.users[app.user] is app.owner
        if container_id in sent:
            sent_by_app.setdefault(app.sequence, []).append(held.resource)
            continue
        by_leaf[app.leaf.path] = by_leaf.get(app.leaf.path, Resource()) + held.resource
        by_user.setdefault((app.leaf.path, app.user), []).append(held.resource)
    for leaf in [q for q in view.queues.values() if q.is_leaf]:
        _validate_users(view, leaf, by_user)
    for app in view.applications.values():
        assert app.used == by_app.get(app.sequence, Resource()), app.id
        waiting = sent_by_app.get(app.sequence, [])
        assert (app.sent.used, app.sent.containers) == (_sum(waiting), len(waiting)), app.id
    for queue in view.queues.values():
        below = Resource()
        for leaf in [q for q in queue.walk() if q.is_leaf]:
            below = below + by_leaf.get(leaf.path, Resource())
        assert queue.used == below, (queue.path, queue.used, below)


def _validate_users(view: ClusterView, leaf: QueueView, charged: dict[tuple[str, str], list[Resource]]) -> None:
    for name, user in leaf.users.items():
        amounts = charged.get((leaf.path, name), [])
        assert (user.used, user.containers) == (_sum(amounts), len(amounts)), (leaf.path, name)
        assert user.applications == sum(1 for app in leaf.applications.values() if app.owner is user)
        assert user.applications or user.containers or user.sent.containers, f"{name} has nothing in {leaf.path}"
        own = [a for a in leaf.attempts.values() if a.app.owner is user]
        assert user.waiting == sum(1 for a in own if a.filed_shapes)
        assert user.masters_used == _sum([a.master for a in own if a.master is not None])
    _validate_limit(view, leaf)
    active = [user for user in leaf.users.values() if user.waiting]
    assert (leaf.active_users, leaf.active.used) == (len(active), _sum([user.used for user in active])), leaf.path
    if needs_shares(leaf):
        shares = sum([view.calculator.share(user.used, view.nodes.total) for user in leaf.users.values()])
        assert abs(user_shares(view, leaf) - shares) < 1e-6, (leaf.path, leaf.summed_shares, shares)


def _validate_limit(view: ClusterView, leaf: QueueView) -> None:
    """Assert that what is remembered of the users' limit is what it comes to now."""
    limit = view.calculator.share(user_limit(view, leaf), view.nodes.total)
    assert abs(limit_share(view, leaf) - limit) < 1e-6, (leaf.path, limit_share(view, leaf), limit)
    assert least_limit_share(view, leaf) <= limit_share(view, leaf), leaf.path
    assert leaf.limit_share is None or abs(leaf.limit_share - limit) < 1e-6, leaf.path
    sure = view.calculator.share(Resource(leaf.sure_mb, leaf.sure_cores), view.nodes.total)
    assert sure <= limit, (leaf.path, sure, limit)


def _sum(amounts: list[Resource]) -> Resource:
    total = Resource()
    for amount in amounts:
        total = total + amount
    return total


def _validate_queue(view: ClusterView, queue: QueueView) -> None:
    waiting = [a for q in queue.walk() for a in q.attempts.values() if a.filed_shapes]
    assert queue.waiting == len(waiting), (queue.path, queue.waiting, len(waiting))
    filed = sorted(k for line in queue.lines.values() for k in line)
    expected = []
    for attempt in queue.attempts.values():
        attempt.asks.validate()
        if attempt.filed_at is None:
            continue
        assert attempt.filed_shapes == attempt.asks.shapes(), attempt.id
        if attempt.filed_shapes:  # what wants nothing stands in no line
            assert attempt.filed_at == view.order_key(attempt.app), (attempt.filed_at, view.order_key(attempt.app))
        expected += [attempt.filed_at] * len(attempt.filed_shapes)
    assert filed == sorted(expected), queue.path
    remembered = queue.who_waits()
    queue.turns_changed()
    assert remembered == queue.who_waits(), queue.path
    assert all(line == sorted(line) and line for line in queue.lines.values())
    inactive = sorted((-a.app.priority, a.app.sequence) for a in queue.attempts.values() if a.master is None)
    assert queue.inactive == inactive, queue.path
    masters = [a.master for a in queue.attempts.values() if a.master is not None]
    assert queue.masters == len(masters)
    assert queue.masters_used == _sum(masters)
