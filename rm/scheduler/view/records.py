"""The records of which the cluster view is made: queues, applications, attempts, containers held.

`rm.scheduler.view.cluster.ClusterView` keeps them right; nobody else changes them.
"""

import math
import sys
from collections.abc import Iterator

from rm.scheduler.queues.spec import QueueSpec
from rm.scheduler.view.tally import Tally
from rm.scheduler.view.user import UserView
from rm.scheduler.view.who_waits import WhoWaits
from yaqd.model import ApplicationAttemptId, ApplicationId, NodeId, Resource
from yaqd.policies.asks.placement import AskingApplication, TaggedNode
from yaqd.policies.asks.table import AskKey, AskTable

#: serving order of applications in a leaf queue; ends in the application's sequence number, which is unique
OrderKey = tuple[float, float, int]
#: size of container that is waited for, and whose attempts they are; "" for all users where none is limited
Line = tuple[Resource, str]


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
        #: room is kept until it is decided who gets it (`rm.scheduler.stages`)
        self.undecided = False
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
        """Note that somebody's lines, asks or reservation in this leaf queue have changed."""
        for queue in self.above:
            queue._who_waits = None

    def who_waits(self) -> "WhoWaits":
        """Return what is to be known of those who wait here and below, worked out when something has changed."""
        if self._who_waits is None:
            self._who_waits = self._look_who_waits()
        return self._who_waits

    def _look_who_waits(self) -> "WhoWaits":
        since, mb, cores = math.inf, sys.maxsize, sys.maxsize
        waiting = [child for child in self.children if child.waiting]
        if len(waiting) == 1:
            return waiting[0].who_waits()
        for child in waiting:
            below = child.who_waits()
            since, mb, cores = min(since, below.since), min(mb, below.least_mb), min(cores, below.least_cores)
        attempts, last = self.attempts, None
        for (shape, _), line in self.lines.items():
            if shape is not last:
                last = shape
                if shape.memory_mb < mb:
                    mb = shape.memory_mb
                if shape.vcores < cores:
                    cores = shape.vcores
            attempt = attempts[line[0][-1]]
            if attempt.reserved_at is None:
                head = attempt.asks.first(shape).waiting_since
                if head < since:
                    since = head
        return WhoWaits(since, mb, cores)

    def upwards(self) -> Iterator["QueueView"]:
        """Yield this queue, its parent, … the root."""
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

    __slots__ = ("asking", "attempt", "id", "leaf", "owner", "priority", "sent", "sequence", "user")

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
        self.asking = AskingApplication(app_id, tags)
        self.leaf = leaf
        self.user = user
        #: its user in this leaf queue
        self.owner = leaf.users.get(user) or UserView(user)
        #: a higher number is served first
        self.priority = priority
        #: order of submission
        self.sequence = sequence
        self.attempt: AttemptView | None = None
        #: what of it waits at nodes: it is in `used` as well
        self.sent = Tally()


class AttemptView:
    """An attempt that may be given containers."""

    __slots__ = (
        "app",
        "asks",
        "blacklist",
        "carried",
        "epoch",
        "filed_at",
        "filed_shapes",
        "id",
        "master",
        "moved",
        "moved_at",
        "reserved_at",
        "sequence",
        "stage",
        "tolerates_waiting",
    )

    def __init__(self, attempt_id: ApplicationAttemptId, app: AppView, epoch: int, rows_max: int) -> None:
        self.id = attempt_id
        self.app = app
        self.asks = AskTable(rows_max)
        self.blacklist: set[str] = set()
        #: an ask whose rows have not all come, and the names that came
        self.carried: dict[AskKey, list[str]] = {}
        self.epoch = epoch
        #: its master knows that containers which it has started may wait at their nodes
        self.tolerates_waiting = False
        #: number of the last container id made
        self.sequence = 0
        #: priority of the asks that are served first; None: the lowest one
        self.stage: int | None = None
        #: what the master takes of the masters' share; None while it is not admitted
        self.master: Resource | None = None
        #: where the leaf queue has it filed, or had when it wanted something last
        self.filed_at: OrderKey | None = None
        self.filed_shapes: list[Resource] = []
        #: where room is kept for it (`rm.scheduler.holds.table`)
        self.reserved_at: NodeId | None = None
        #: nodes held for it and given up since it was given something last
        self.moved = 0
        #: when the last of them was given up, scheduler's seconds
        self.moved_at = -math.inf

    def gave_up(self, now: float) -> None:
        """Note that a node that was held for it is no good place any more."""
        self.moved += 1
        self.moved_at = now

    def accepts(self, node: TaggedNode) -> bool:
        return not self.blacklist or (node.id.host not in self.blacklist and node.rack not in self.blacklist)


def build_queues(spec: QueueSpec, parent: QueueView | None = None) -> QueueView:
    queue = QueueView(spec, parent)
    queue.children = [build_queues(child, queue) for child in spec.children]
    return queue
