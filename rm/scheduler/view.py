"""The cluster as scheduling sees it, kept up to date event by event: nodes, queues, applications, what they hold and
want.

A policy reads it; only `rm.scheduler.scheduler` changes it. Every total is kept incrementally, and `validate`
recomputes each one from scratch. A leaf queue files its waiting attempts by the size of container they wait for,
each file in serving order: what a freed node can give is then found by looking at the heads of the files that fit,
however many wait.
"""

import math
import sys
from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass

from rm.scheduler.asks import Ask, AskTable
from rm.scheduler.job_order import rank
from rm.scheduler.jobs import Jobs
from rm.scheduler.nodes import NodeTable, NodeView
from rm.scheduler.placement import Application, TagStore
from rm.scheduler.queueing import NodeQueues
from rm.scheduler.queues import QueueSpec, SchedulerSpec
from rm.scheduler.tally import Tally
from rm.scheduler.users import UserView, set_fixed_limits, user_limit
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId, NodeId, Resource
from yaqd.model.values import value

#: serving order of applications in a leaf queue; ends in the application's sequence number, which is unique
OrderKey = tuple[float, float, int]
#: size of container that is waited for, and whose attempts they are; "" for all users where none is limited
Line = tuple[Resource, str]


@value()
class Held:
    """A container that is charged."""

    node_id: NodeId
    resource: Resource
    application: "AppView"
    is_master: bool
    #: the ask's; a lower number matters more
    priority: int = 0


@dataclass(slots=True)
class Reservation:
    """Room kept on a node for an ask of an attempt."""

    attempt: "AttemptView"
    ask: Ask
    node: NodeView
    #: scheduler's seconds
    since: float


@value()
class WhoWaits:
    """Those who wait in a queue: enough to tell that nothing can be done for any of them."""

    #: since when nothing was given to the one who has waited longest of all who are first in their line and have no
    #: reservation, scheduler's seconds; inf: there is nobody
    since: float
    #: the least memory, and the fewest cores, that anybody waits for
    least_mb: int
    least_cores: int


class QueueView(Tally):
    """A queue's use. Leaf queues also hold applications and their waiting attempts."""

    def __init__(self, spec: QueueSpec, parent: "QueueView | None") -> None:
        super().__init__()
        self.spec = spec
        self.parent = parent
        self.children: list[QueueView] = []
        #: containers that wait at nodes, here and below: they are not in `used`
        self.sent = Tally()
        #: attempts that wait for something, here and below
        self.waiting = 0
        #: the most this queue may hold; None: the whole cluster
        self.limit: Resource | None = None
        #: this queue, its parent, … the root, and those of them that have a limit
        self.above: tuple[QueueView, ...] = ()
        self.limited_above: tuple[tuple[QueueView, Resource], ...] = ()
        self.applications: dict[ApplicationId, AppView] = {}
        #: by sequence number
        self.attempts: dict[int, AttemptView] = {}
        self.lines: dict[Line, list[OrderKey]] = {}
        #: answer of `who_waits`; None: something has changed since
        self._who_waits: WhoWaits | None = None
        #: what admitted masters hold or are about to
        self.masters_used = Resource()
        self.masters = 0
        #: attempts that wait for the masters' share: -priority and sequence number, in order
        self.inactive: list[tuple[int, int]] = []
        self.users: dict[str, UserView] = {}
        #: can a user reach a limit here? Then lines are kept for each user
        self.limits_users = False
        #: the most one user may hold whatever the others do, and the part of the cluster that it is
        self.user_limit = Resource()
        self.fixed_share = 0.0
        #: what the queue is guaranteed, the part that is, and the use up to which a user is surely below its limit
        self.guarantee = Resource()
        self.guaranteed_share = 0.0
        self.sure_mb = self.sure_cores = -1
        #: the part of the cluster that a user may hold as things are; None: to be worked out
        self.limit_share: float | None = None
        #: users who wait for something, and what they hold
        self.active_users = 0
        self.active = Tally()
        #: sum of the users' parts of the cluster, where a limit depends on it, and users whose part has changed since
        self.sums_shares = False
        self.summed_shares = 0.0
        self.unsummed: dict[UserView, None] = {}

    @property
    def path(self) -> str:
        return self.spec.path

    @property
    def is_leaf(self) -> bool:
        return not self.spec.children

    def turns_changed(self) -> None:
        """Somebody's lines, asks or reservation in this leaf queue are other than they were."""
        for queue in self.above:
            queue._who_waits = None

    def who_waits(self) -> "WhoWaits":
        """What is to be known of those who wait here and below, worked out when something has changed."""
        if self._who_waits is None:
            self._who_waits = self._look_who_waits()
        return self._who_waits

    def _look_who_waits(self) -> "WhoWaits":
        since, mb, cores = math.inf, sys.maxsize, sys.maxsize
        for child in self.children:
            if child.waiting:
                below = child.who_waits()
                since, mb, cores = min(since, below.since), min(mb, below.least_mb), min(cores, below.least_cores)
        attempts = self.attempts
        for (shape, _), line in self.lines.items():
            if shape.memory_mb < mb:
                mb = shape.memory_mb
            if shape.vcores < cores:
                cores = shape.vcores
            attempt = attempts[line[0][-1]]
            if attempt.reservation is None:
                head = attempt.asks.first(shape).waiting_since
                if head < since:
                    since = head
        return WhoWaits(since, mb, cores)

    def upwards(self) -> Iterator["QueueView"]:
        """This queue, its parent, … the root."""
        queue: QueueView | None = self
        while queue is not None:
            yield queue
            queue = queue.parent

    def walk(self) -> Iterator["QueueView"]:
        yield self
        for child in self.children:
            yield from child.walk()


class AppView(Tally):
    """An unfinished application."""

    __slots__ = ("asking", "attempt", "id", "leaf", "owner", "priority", "sequence", "user")

    def __init__(
        self,
        app_id: ApplicationId,
        leaf: QueueView,
        user: str,
        priority: int,
        sequence: int,
        tags: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__()
        self.id = app_id
        #: how placement constraints know it
        self.asking = Application(app_id, tags)
        self.leaf = leaf
        self.user = user
        #: its user in this leaf queue
        self.owner = leaf.users.get(user) or UserView(user)
        #: a higher number is served first
        self.priority = priority
        #: order of submission
        self.sequence = sequence
        self.attempt: AttemptView | None = None


class AttemptView:
    """An attempt that may be given containers."""

    __slots__ = (
        "app",
        "asks",
        "blacklist",
        "epoch",
        "filed_at",
        "filed_shapes",
        "id",
        "master",
        "reservation",
        "sequence",
    )

    def __init__(self, attempt_id: ApplicationAttemptId, app: AppView, epoch: int, rows_max: int) -> None:
        self.id = attempt_id
        self.app = app
        self.asks = AskTable(rows_max)
        self.blacklist: set[str] = set()
        self.epoch = epoch
        #: number of the last container id made
        self.sequence = 0
        #: what the master takes of the masters' share; None while it is not admitted
        self.master: Resource | None = None
        #: where the leaf queue has it filed
        self.filed_at: OrderKey | None = None
        self.filed_shapes: list[Resource] = []
        self.reservation: Reservation | None = None

    def accepts(self, node: NodeView) -> bool:
        return not self.blacklist or (node.id.host not in self.blacklist and node.rack not in self.blacklist)


class ClusterView:
    """Everything a decision may depend on, beside the event and the time."""

    def __init__(self, spec: SchedulerSpec, *, least: Resource, ask_rows_max: int) -> None:
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
        self.reservations: dict[NodeId, Reservation] = {}
        #: what is left of each application; None where nobody asks
        self.jobs: Jobs | None = None
        #: what waits at the nodes; None where nothing ever may
        self.node_queues: NodeQueues | None = None
        self._ask_rows_max = ask_rows_max
        self.set_limits()

    # ---- queries

    def find_queue(self, name: str) -> QueueView | None:
        """By full path, or by last name when only one queue has it."""
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
        """May the queue, and every queue above it, hold this much more?"""
        mb, cores = need.memory_mb, need.vcores
        for queue, limit in leaf.limited_above:
            if need.extras or queue.used_extras:
                if not self.calculator.fits(queue.used + need, limit):
                    return False
            elif queue.used_mb + mb > limit.memory_mb or (
                self._counts_vcores and queue.used_cores + cores > limit.vcores
            ):
                return False
        return True

    def room(self, leaf: QueueView, need: Resource) -> int:
        """How many more containers of this size fit in the queue and every queue above it, as far as it is known: there
        may be room for more when these are given, and there is none when it is 0 or less.
        """
        mb, cores = need.memory_mb, need.vcores
        least = sys.maxsize
        for queue, limit in leaf.limited_above:
            if need.extras or queue.used_extras or mb <= 0 or cores <= 0:
                return int(self.has_room(leaf, need))
            least = min(least, (limit.memory_mb - queue.used_mb) // mb)
            if self._counts_vcores:
                least = min(least, (limit.vcores - queue.used_cores) // cores)
        return least

    def headroom(self, attempt: AttemptView) -> Resource:
        """What the attempt could still be given if it were alone."""
        left = self.nodes.total - self.root.used
        for queue, limit in attempt.app.leaf.limited_above:
            left = left.smaller(limit - queue.used)
        leaf = attempt.app.leaf
        if leaf.limits_users:
            left = left.smaller(user_limit(self, leaf) - attempt.app.owner.used)
        return left.floored()

    def order_key(self, app: AppView) -> OrderKey:
        if app.leaf.spec.ordering == "fair":
            # By memory, as Hadoop's FairOrderingPolicy; a share of the cluster would move as nodes come and go.
            return (app.used_mb, -app.priority, app.sequence)
        if self.jobs is not None and app.leaf.spec.orders_jobs:
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
        self.nodes.change_free(node, amount, -1)
        self._count(app, amount, 1)

    def discharge(self, container_id: ContainerId) -> Held | None:
        """Take the charge back; None when there is none."""
        held = self.containers.get(container_id)
        if held is None:
            return None
        if self.node_queues is not None:
            self.node_queues.start(held.node_id, container_id)
        del self.containers[container_id]
        amount, app = held.resource, held.application
        node = self.nodes.get(held.node_id)
        if node is not None and node.containers.pop(container_id, None) is not None:
            self.nodes.change_free(node, amount, 1)
        self._count(app, amount, -1)
        return held

    def _count(self, app: AppView, amount: Resource, sign: int) -> None:
        """The application has one container more (sign 1) or less (-1)."""
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
        """The application holds so much more, or less, of its queues."""
        leaf, owner = app.leaf, app.owner
        for tally in (owner, *leaf.above):
            tally.book(change, containers)
        if owner.waiting:
            leaf.active.book(change, 0)
        self._user_changed(app)

    def _user_changed(self, app: AppView) -> None:
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
        """Its containers that have not ended keep their charge and, through it, the application's record."""
        del self.applications[app.id]
        del app.leaf.applications[app.id]
        app.owner.applications -= 1
        self._drop_idle_user(app)

    def count_master(self, attempt: AttemptView, need: Resource, sign: int) -> None:
        """The attempt's master begins, or ceases, to count against the shares for masters."""
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
            queue._who_waits = None
            queue.limited_above = tuple((q, q.limit) for q in queue.above if q.limit is not None)
            if queue.is_leaf:
                set_fixed_limits(self, queue)


def build_queues(spec: QueueSpec, parent: QueueView | None = None) -> QueueView:
    queue = QueueView(spec, parent)
    queue.children = [build_queues(child, queue) for child in spec.children]
    return queue
