"""The cluster as scheduling sees it, kept up to date event by event: nodes, queues, applications, what they hold and
want.

A policy reads it; only `rm.scheduler.scheduler` changes it. Every total is kept incrementally, and `validate`
recomputes each one from scratch. A leaf queue files its waiting attempts by the size of container they wait for, each
file in serving order. What a freed node can give is then found by looking at the heads of the files that fit, however
many wait.
"""

import sys
from bisect import bisect_left, insort
from collections.abc import Callable, Mapping

from rm.scheduler.asks.job_order import is_cut_off, rank
from rm.scheduler.holds.table import Holds
from rm.scheduler.node_queues.shares import Shares
from rm.scheduler.node_queues.spec import QueueingSpec
from rm.scheduler.node_queues.table import NodeQueues
from rm.scheduler.queues.spec import SchedulerSpec
from rm.scheduler.queues.user_limits import set_fixed_limits, user_limit
from rm.scheduler.view.held import Held, Yielded
from rm.scheduler.view.node import NodeView
from rm.scheduler.view.node_table import NodeTable
from rm.scheduler.view.records import AppView, AttemptView, OrderKey, QueueView, build_queues
from rm.scheduler.view.user import UserView
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId, NodeId, Resource
from yaqd.policies.asks.placement import TagStore


class ClusterView:
    """Everything a decision may depend on, beside the event and the time."""

    def __init__(
        self, spec: SchedulerSpec, *, least: Resource, ask_rows_max: int, queueing: QueueingSpec | None = None
    ) -> None:
        """`least`: the smallest container; `queueing`: how node queues are filled, None: they are not."""
        self.spec = spec
        self.calculator = spec.calculator
        self._counts_vcores = spec.calculator.counts_vcores
        #: the smallest container
        self.least = Resource(max(1, least.memory_mb), max(1, least.vcores))
        self.nodes = NodeTable(spec.calculator, self.least.memory_mb)
        self.root = build_queues(spec.root)
        self.queues = {q.path: q for q in self.root.walk()}
        self.applications: dict[ApplicationId, AppView] = {}
        self.containers: dict[ContainerId, Held] = {}
        self.tags = TagStore()
        #: attempts whose masters may start and have got no container yet
        self.masters_wanted: set[ApplicationAttemptId] = set()
        #: applications whose masters may not start meanwhile, as others go on without them
        self.yielded: dict[ApplicationId, Yielded] = {}
        #: what waits at the nodes
        self.node_queues = NodeQueues(queueing, spec.calculator, self.containers, self.count_sent, least)
        #: nodes that are held for somebody
        self.holds = Holds(self.nodes, self.node_queues.open.enter_again)
        #: what is left of each application
        self.jobs = self.node_queues.jobs
        #: leaf queues that decide by stages (`rm.scheduler.stages`)
        self.stage_leaves: list[QueueView] = []
        #: what each queue has been given in time, where containers wait at nodes
        self.shares = Shares(spec.calculator, self.nodes)
        #: nodes that Hadoop's own rules have reserved, and for whom, where these rules are used
        self.reserved_for: Mapping[NodeId, ApplicationAttemptId] = {}
        #: hears of each application that holds more or less, where rules need every step
        self.hears_of_use: Callable[[AppView], None] | None = None
        self._ask_rows_max = ask_rows_max
        self.set_limits()

    # ---- queries

    @property
    def keeps_room(self) -> bool:
        """Is room kept for a leaf queue that has not yet decided who gets it?"""
        return any(leaf.undecided and leaf.waiting for leaf in self.stage_leaves)

    def find_queue(self, name: str) -> QueueView | None:
        """Find a queue by its full path, or by its last name when only one queue has it."""
        queue = self.queues.get(name)
        if queue is not None:
            return queue
        found = [q for q in self.queues.values() if q.spec.name == name]
        return found[0] if len(found) == 1 else None

    def attempt(self, attempt_id: ApplicationAttemptId) -> AttemptView | None:
        app = self.applications.get(attempt_id.application_id)
        attempt = app.attempt if app is not None else None
        return attempt if attempt is not None and attempt.id == attempt_id else None

    def has_room(self, leaf: QueueView, need: Resource) -> bool:
        """Tell whether the queue, and every queue above it, may hold this much more. What waits for it at nodes counts
        as held."""
        return self.too_full(leaf, need) is None

    def too_full(self, leaf: QueueView, need: Resource) -> QueueView | None:
        """Return the lowest of these queues that may not; None: all may."""
        mb, cores = need.memory_mb, need.vcores
        for queue, limit in leaf.limited_above:
            sent = queue.sent
            if need.extras or queue.used_extras or sent.used_extras:
                if not self.calculator.fits(queue.used + sent.used + need, limit):
                    return queue
            elif queue.used_mb + sent.used_mb + mb > limit.memory_mb or (
                self._counts_vcores and queue.used_cores + sent.used_cores + cores > limit.vcores
            ):
                return queue
        return None

    def room(self, leaf: QueueView, need: Resource) -> int:
        """Count how many more containers of this size fit in the queue and every queue above it, as far as is known.

        There is room for none when it is 0 or less. Once these are given there may be room for more.
        """
        mb, cores = need.memory_mb, need.vcores
        least = sys.maxsize
        for queue, limit in leaf.limited_above:
            sent = queue.sent
            if need.extras or queue.used_extras or sent.used_extras or mb <= 0 or cores <= 0:
                return int(self.has_room(leaf, need))
            least = min(least, (limit.memory_mb - queue.used_mb - sent.used_mb) // mb)
            if self._counts_vcores:
                least = min(least, (limit.vcores - queue.used_cores - sent.used_cores) // cores)
        return least

    def headroom(self, attempt: AttemptView) -> Resource:
        """Return what the attempt could still be given if it were alone."""
        left = self.nodes.total - self.root.used
        for queue, limit in attempt.app.leaf.limited_above:
            left = left.smaller(limit - queue.used - queue.sent.used)
        leaf = attempt.app.leaf
        if leaf.limits_users:
            left = left.smaller(user_limit(self, leaf) - attempt.app.owner.used)
        return left.floored()

    def order_key(self, app: AppView) -> OrderKey:
        if app.leaf.spec.ordering == "fair":
            # By memory, as Hadoop's FairOrderingPolicy; a share of the cluster would move as nodes come and go.
            return (app.used_mb, -app.priority, app.sequence)
        if app.leaf.spec.orders_jobs and self.jobs.are_counted:
            if is_cut_off(self.jobs, self.node_queues.spec, app):
                return (-app.priority - 0.5, 0.0, app.sequence)
            return (-app.priority, rank(self.jobs, app), app.sequence)
        return (-app.priority, 0.0, app.sequence)

    # ---- changes

    def new_attempt(self, attempt_id: ApplicationAttemptId, app: AppView, epoch: int) -> AttemptView:
        attempt = AttemptView(attempt_id, app, epoch, self._ask_rows_max)
        app.attempt = attempt
        app.leaf.attempts[app.sequence] = attempt
        return attempt

    def charge(
        self, container_id: ContainerId, app: AppView, node: NodeView, amount: Resource, master: bool, priority: int = 0
    ) -> None:
        self.containers[container_id] = Held(node.id, amount, app, master, priority)
        node.containers[container_id] = amount
        if master:
            node.masters = node.masters + amount
        self.nodes.change_free(node, amount, -1)
        self._count(app, amount, 1)

    def discharge(self, container_id: ContainerId) -> Held | None:
        """Take the charge back; None when there is none."""
        held = self.containers.get(container_id)
        if held is None:
            return None
        self.node_queues.start(held.node_id, container_id)
        del self.containers[container_id]
        amount, app = held.resource, held.application
        node = self.nodes.get(held.node_id)
        if node is not None and node.containers.pop(container_id, None) is not None:
            if held.is_master:
                node.masters = node.masters - amount
            self.nodes.change_free(node, amount, 1)
        self._count(app, amount, -1)
        return held

    def _count(self, app: AppView, amount: Resource, sign: int) -> None:
        """Count that the application has one container more (sign 1) or less (-1)."""
        if amount.extras:
            change = amount * sign
            app.book(change, sign)
            self.book(app, change, sign)
            return
        leaf, owner = app.leaf, app.owner
        mb, cores = amount.memory_mb * sign, amount.vcores * sign
        for tally in (app, owner, *leaf.above):
            tally.used_mb += mb
            tally.used_cores += cores
            tally.containers += sign
        if owner.waiting:
            leaf.active.used_mb += mb
            leaf.active.used_cores += cores
        self._user_changed(app)

    def book(self, app: AppView, change: Resource, containers: int) -> None:
        """Book that the application holds so much more, or less, of its queues."""
        leaf, owner = app.leaf, app.owner
        for tally in (owner, *leaf.above):
            tally.book(change, containers)
        if owner.waiting:
            leaf.active.book(change, 0)
        self._user_changed(app)

    def count_sent(self, app: AppView, amount: Resource, sign: int) -> None:
        """Count that one of the application's containers waits at its node and is not in use (sign 1), or the other way
        round."""
        leaf, owner = app.leaf, app.owner
        holders: tuple[UserView | QueueView, ...] = (owner, *leaf.above)
        if amount.extras:
            change = amount * sign
            for tally in holders:
                tally.sent.book(change, sign)
            app.sent.book(change, sign)
            self.book(app, change * -1, -sign)
            return
        mb, cores, waiting = amount.memory_mb * sign, amount.vcores * sign, app.sent
        waiting.used_mb += mb
        waiting.used_cores += cores
        waiting.containers += sign
        for tally in holders:
            tally.used_mb -= mb
            tally.used_cores -= cores
            tally.containers -= sign
            sent = tally.sent
            sent.used_mb += mb
            sent.used_cores += cores
            sent.containers += sign
        if owner.waiting:
            leaf.active.used_mb -= mb
            leaf.active.used_cores -= cores
        self._user_changed(app)

    def _user_changed(self, app: AppView) -> None:
        if self.hears_of_use is not None:
            self.hears_of_use(app)
        leaf = app.leaf
        leaf.limit_share = None
        if leaf.sums_shares:
            leaf.unsummed[app.owner] = None
        if not app.owner.containers:
            self._drop_idle_user(app)

    def enter(self, app: AppView) -> None:
        """Take the application into the books and into its leaf queue."""
        self.applications[app.id] = app
        app.leaf.applications[app.id] = app
        app.leaf.users[app.user] = app.owner
        app.owner.applications += 1

    def leave(self, app: AppView) -> None:
        """Take the application out of the books. Its containers that have not ended keep their charge, and so its
        record."""
        del self.applications[app.id]
        del app.leaf.applications[app.id]
        app.owner.applications -= 1
        self._drop_idle_user(app)

    def count_master(self, attempt: AttemptView, need: Resource, sign: int) -> None:
        """Count the attempt's master against the shares for masters (sign 1), or no longer (-1)."""
        for held in (attempt.app.leaf, attempt.app.owner):
            held.masters += sign
            held.masters_used = held.masters_used + need * sign

    def _drop_idle_user(self, app: AppView) -> None:
        if not app.owner.applications and not app.owner.containers and not app.owner.sent.containers:
            app.leaf.users.pop(app.user, None)

    def file(self, attempt: AttemptView) -> None:
        """Put the attempt into its leaf queue's lines as its asks and its use now say."""
        leaf = attempt.app.leaf
        leaf.turns_changed()
        key = self.order_key(attempt.app)
        shapes = attempt.asks.shapes()
        if key == attempt.filed_at and shapes == attempt.filed_shapes:
            return
        self.unfile(attempt)
        whose = attempt.app.user if leaf.limits_users else ""
        for shape in shapes:
            insort(leaf.lines.setdefault((shape, whose), []), key)
        attempt.filed_at, attempt.filed_shapes = key, shapes
        if shapes:
            self._count_waiting(attempt.app, 1)

    def use_changed(self, attempt: AttemptView) -> None:
        """File the attempt anew where what it holds or goes by has changed, but not what it wants.

        An attempt that wants nothing stands nowhere. It gets a place with its next ask.
        """
        if attempt.filed_shapes and self.order_key(attempt.app) != attempt.filed_at:
            self.file(attempt)

    def reorder(self, app_id: ApplicationId) -> None:
        """File the application's attempt anew, as what is left of it has changed, where jobs are in order of that."""
        app = self.applications.get(app_id)
        if app is None or not app.leaf.spec.orders_jobs:
            return
        if app.attempt is not None and app.attempt.filed_at is not None:
            self.file(app.attempt)

    def unfile(self, attempt: AttemptView) -> None:
        leaf, key = attempt.app.leaf, attempt.filed_at
        if key is None:
            return
        leaf.turns_changed()
        whose = attempt.app.user if leaf.limits_users else ""
        for shape in attempt.filed_shapes:
            line = leaf.lines[(shape, whose)]
            del line[bisect_left(line, key)]
            if not line:
                del leaf.lines[(shape, whose)]
        if attempt.filed_shapes:
            self._count_waiting(attempt.app, -1)
        attempt.filed_at, attempt.filed_shapes = None, []

    def _count_waiting(self, app: AppView, change: int) -> None:
        leaf, owner = app.leaf, app.owner
        was_active = owner.waiting > 0
        owner.waiting += change
        if was_active is not (owner.waiting > 0):
            leaf.active_users += change
            leaf.active.book(owner.used * change, 0)
            leaf.limit_share = None
        for queue in leaf.above:
            queue.waiting += change

    def set_limits(self) -> None:
        """Recompute what queues and users may hold, after the cluster or the configuration changed.

        No attempt may be filed while `limits_users` changes, which only another configuration can bring about.
        """
        total = self.nodes.total
        for queue in self.queues.values():
            part = queue.spec.absolute_maximum
            if part >= 1.0:
                queue.limit = None
            else:
                extras = {n: most for n, v in total.extras.items() if (most := int(v * part))}
                queue.limit = Resource(int(total.memory_mb * part), int(total.vcores * part), extras)
            queue.above = tuple(queue.upwards())
            queue.turns_changed()
            queue.limited_above = tuple((q, q.limit) for q in queue.above if q.limit is not None)
            if queue.is_leaf:
                set_fixed_limits(self, queue)
