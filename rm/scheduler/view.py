"""The cluster as scheduling sees it, kept up to date event by event: nodes, queues, applications, what they hold and
want.

A policy reads it; only `rm.scheduler.scheduler` changes it. Every total is kept incrementally, and `validate`
recomputes each one from scratch. A leaf queue files its waiting attempts by the size of container they wait for,
each file in serving order: what a freed node can give is then found by looking at the heads of the files that fit,
however many wait.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass

from rm.scheduler.asks import Ask, AskTable
from rm.scheduler.nodes import NodeTable, NodeView
from rm.scheduler.queues import QueueSpec, SchedulerSpec
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId, NodeId, Resource

#: serving order of applications in a leaf queue; ends in the application's sequence number, which is unique
OrderKey = tuple[float, float, int]


@dataclass(frozen=True, slots=True)
class Held:
    """A container that is charged."""

    node_id: NodeId
    resource: Resource
    application: "AppView"
    is_master: bool


@dataclass(slots=True)
class Reservation:
    """Room kept on a node for an ask of an attempt."""

    attempt: "AttemptView"
    ask: Ask
    node: NodeView
    #: scheduler's seconds
    since: float


class QueueView:
    """A queue's use. Leaf queues also hold applications and their waiting attempts."""

    def __init__(self, spec: QueueSpec, parent: "QueueView | None") -> None:
        self.spec = spec
        self.parent = parent
        self.children: list[QueueView] = []
        self.used = Resource()
        self.containers = 0
        #: attempts that wait for something, here and below
        self.waiting = 0
        #: the most this queue may hold; None: the whole cluster
        self.limit: Resource | None = None
        self.applications: dict[ApplicationId, AppView] = {}
        #: by sequence number
        self.attempts: dict[int, AttemptView] = {}
        self.lines: dict[Resource, list[OrderKey]] = {}
        #: what admitted masters hold or are about to
        self.masters_used = Resource()
        self.masters = 0
        #: attempts that wait for the masters' share: -priority and sequence number, in order
        self.inactive: list[tuple[int, int]] = []

    @property
    def path(self) -> str:
        return self.spec.path

    @property
    def is_leaf(self) -> bool:
        return not self.spec.children

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


class AppView:
    """An unfinished application."""

    __slots__ = ("attempt", "containers", "id", "leaf", "priority", "sequence", "used", "user")

    def __init__(self, app_id: ApplicationId, leaf: QueueView, user: str, priority: int, sequence: int) -> None:
        self.id = app_id
        self.leaf = leaf
        self.user = user
        #: a higher number is served first
        self.priority = priority
        #: order of submission
        self.sequence = sequence
        self.used = Resource()
        self.containers = 0
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

    def __init__(self, spec: SchedulerSpec, *, step_mb: int, ask_rows_max: int) -> None:
        self.spec = spec
        self.calculator = spec.calculator
        self.nodes = NodeTable(spec.calculator, step_mb)
        self.root = build_queues(spec.root)
        self.queues = {q.path: q for q in self.root.walk()}
        self.applications: dict[ApplicationId, AppView] = {}
        self.containers: dict[ContainerId, Held] = {}
        self.reservations: dict[NodeId, Reservation] = {}
        self._ask_rows_max = ask_rows_max

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
        return all(q.limit is None or self.calculator.fits(q.used + need, q.limit) for q in leaf.upwards())

    def headroom(self, attempt: AttemptView) -> Resource:
        """What the attempt could still be given if it were alone."""
        memory, vcores = self.nodes.total.memory_mb, self.nodes.total.vcores
        memory -= self.root.used.memory_mb
        vcores -= self.root.used.vcores
        for queue in attempt.app.leaf.upwards():
            if queue.limit is not None:
                memory = min(memory, queue.limit.memory_mb - queue.used.memory_mb)
                vcores = min(vcores, queue.limit.vcores - queue.used.vcores)
        return Resource(max(0, memory), max(0, vcores))

    def masters_limit(self, leaf: QueueView) -> Resource:
        """What masters may hold: a share of the most the queue can grow to."""
        share = leaf.spec.absolute_maximum * leaf.spec.maximum_am_share
        return Resource(int(self.nodes.total.memory_mb * share), int(self.nodes.total.vcores * share))

    def order_key(self, app: AppView) -> OrderKey:
        if app.leaf.spec.ordering == "fair":
            # By memory, as Hadoop's FairOrderingPolicy; a share of the cluster would move as nodes come and go.
            return (app.used.memory_mb, -app.priority, app.sequence)
        return (-app.priority, 0.0, app.sequence)

    # ---- changes

    def new_attempt(self, attempt_id: ApplicationAttemptId, app: AppView, epoch: int) -> AttemptView:
        attempt = AttemptView(attempt_id, app, epoch, self._ask_rows_max)
        app.attempt = attempt
        app.leaf.attempts[app.sequence] = attempt
        return attempt

    def charge(self, container_id: ContainerId, app: AppView, node: NodeView, amount: Resource, master: bool) -> None:
        self.containers[container_id] = Held(node.id, amount, app, master)
        node.containers[container_id] = amount
        self.nodes.set_free(node, node.free - amount)
        app.used = app.used + amount
        app.containers += 1
        for queue in app.leaf.upwards():
            queue.used = queue.used + amount
            queue.containers += 1

    def discharge(self, container_id: ContainerId) -> Held | None:
        """Take the charge back; None when there is none."""
        held = self.containers.pop(container_id, None)
        if held is None:
            return None
        amount, app = held.resource, held.application
        node = self.nodes.get(held.node_id)
        if node is not None and node.containers.pop(container_id, None) is not None:
            self.nodes.set_free(node, node.free + amount)
        app.used = app.used - amount
        app.containers -= 1
        for queue in app.leaf.upwards():
            queue.used = queue.used - amount
            queue.containers -= 1
        return held

    def file(self, attempt: AttemptView) -> None:
        """Put the attempt into its leaf queue's lines as its asks and its use now say."""
        leaf = attempt.app.leaf
        key = self.order_key(attempt.app)
        shapes = attempt.asks.shapes()
        if key == attempt.filed_at and shapes == attempt.filed_shapes:
            return
        self.unfile(attempt)
        for shape in shapes:
            insort(leaf.lines.setdefault(shape, []), key)
        attempt.filed_at, attempt.filed_shapes = key, shapes
        self._count_waiting(leaf, bool(shapes))

    def unfile(self, attempt: AttemptView) -> None:
        leaf, key = attempt.app.leaf, attempt.filed_at
        if key is None:
            return
        for shape in attempt.filed_shapes:
            line = leaf.lines[shape]
            del line[bisect_left(line, key)]
            if not line:
                del leaf.lines[shape]
        self._count_waiting(leaf, -bool(attempt.filed_shapes))
        attempt.filed_at, attempt.filed_shapes = None, []

    def _count_waiting(self, leaf: QueueView, change: int) -> None:
        if change:
            for queue in leaf.upwards():
                queue.waiting += change

    def set_limits(self) -> None:
        """Recompute what queues may hold, after the cluster or the configuration changed."""
        total = self.nodes.total
        for queue in self.queues.values():
            part = queue.spec.absolute_maximum
            if part >= 1.0:
                queue.limit = None
            else:
                extras = {n: int(v * part) for n, v in total.extras.items()}
                queue.limit = Resource(int(total.memory_mb * part), int(total.vcores * part), extras)


def build_queues(spec: QueueSpec, parent: QueueView | None = None) -> QueueView:
    queue = QueueView(spec, parent)
    queue.children = [build_queues(child, queue) for child in spec.children]
    return queue
