"""Queues at the nodes as the ResourceManager sees them: how long each is, how long one waits there, where is room.

A node with a queue may be given more than fits, up to its bound. So a task that ends there is followed by another
without a heartbeat in between (Yaq, Rasley et al., EuroSys 2016, section 3.1). What waits is charged to its node and to
its application, so a node's free resources go below zero. It is not charged to user and queues: their shares and limits
hold for what is in use. Their parts of the nodes' queues are counted beside (`sent`).

Two counts say how many wait. One is the node's own as of its last report, with what it was given since. The other is
what is charged here beyond its size. The larger one counts. So a container that its master has not started yet is not
forgotten when the node reports. A node that says too little is given no more than its bound.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from rm.scheduler.asks.jobs import Jobs
from rm.scheduler.events import NodeQueueReported
from rm.scheduler.node_queues.open_queues import OpenQueues
from rm.scheduler.node_queues.queued import QueuedContainers
from rm.scheduler.node_queues.refusals import NoWait
from rm.scheduler.node_queues.slots import Slots
from rm.scheduler.node_queues.soonest import Soonest
from rm.scheduler.node_queues.spec import QueueingSpec, Tuning
from rm.scheduler.view.calculators import Calculator
from rm.scheduler.view.held import Held, QueuedAtNode
from rm.scheduler.view.node import NodeQueue, NodeView
from rm.scheduler.view.records import AppView, AttemptView
from yaqd.model import ApplicationId, ContainerId, NodeId, Resource
from yaqd.policies.asks.rows import Locality
from yaqd.policies.asks.table import Ask
from yaqd.policies.queueing.lost_places import LostPlaces
from yaqd.policies.queueing.place_scores import Affinity
from yaqd.policies.queueing.polling import PollGaps
from yaqd.policies.queueing.tuning import BoundTuner

_NO_AFFINITY: Final = Affinity()
#: no task is taken to run for less, s
_SHORTEST_S: Final = 0.001


class NodeQueues:
    """All queues; empty, and refusing everything, without a spec."""

    def __init__(
        self,
        spec: QueueingSpec | None,
        calculator: Calculator,
        charged: Mapping[ContainerId, Held],
        count: Callable[[AppView, Resource, int], None],
        least: Resource,
    ) -> None:
        """`charged`: all containers; `count`: one of an application's waits and is not in use (1), or no more (-1).
        `least`: the smallest container that is given."""
        self.spec = spec
        self._calculator = calculator
        self._charged = charged
        self._count_sent = count
        self._sent = QueuedContainers(calculator, charged, count)
        self._slots = Slots(calculator, least)
        #: how many may wait at all nodes together
        self.bounds = 0
        self._queues: dict[NodeId, NodeQueue] = {}
        self.soonest = Soonest(self._queues, charged, self.estimate)
        #: those with room
        self.open = OpenQueues(spec)
        #: how the last self-tuned bound began, and one that nobody uses
        self._like: tuple[Tuning, BoundTuner] | None = None
        self.jobs = Jobs()
        #: since when tasks wait that must be placed again
        self.lost_places = LostPlaces()
        #: in which intervals masters call
        self.polls = PollGaps()

    @property
    def number(self) -> int:
        """Nodes with a queue."""
        return len(self._queues)

    def all(self) -> list[NodeQueue]:
        return list(self._queues.values())

    def change(self, spec: QueueingSpec | None) -> None:
        """Go by another configuration; what waits stays where it is."""
        self.spec = spec
        self.open.change(spec)
        for queue in self._queues.values():
            queue.is_listed = False
            if spec is None:
                queue.reported_at = None  # what it reports is not read until it is told to queue again
                queue.room, queue.keeps_room = None, False
            self._set_bound(queue)
            self.open.enter(queue)

    # ---- estimates

    def estimate(self, app_id: ApplicationId, priority: int) -> float | None:
        """Return how long a container of this priority runs, s; None when that has no end as far as anybody knows."""
        found = self.jobs.estimate(app_id, priority)
        if found is None and self.spec is not None:
            return self.spec.default_estimate_s
        return found

    def may_wait(self, attempt: AttemptView, ask: Ask) -> bool:
        return self.why_not_wait(attempt, ask) is None

    def why_not_wait(self, attempt: AttemptView, ask: Ask) -> NoWait | None:
        """Return why a container of the ask is sent to wait nowhere; None: it may wait."""
        spec = self.spec
        if spec is None:
            return NoWait.OFF
        if ask.is_master:
            return NoWait.MASTER
        if attempt.app.leaf.path in spec.leaves_without or attempt.app.leaf.spec.orders_stages:
            return NoWait.LEAF
        if self.wait_limit(attempt) <= 0.0:
            return NoWait.UNAWARE
        app_id, priority = attempt.id.application_id, ask.key[0]
        if self.lost_places and ask.pending <= self.lost_places.overdue(app_id, priority):
            return NoWait.OVERDUE
        return NoWait.ENDLESS if self.estimate(app_id, priority) is None else None

    def wait_limit(self, attempt: AttemptView) -> float:
        """Return how long its containers may wait, s: none is sent where it is expected to wait as long."""
        if self.spec is None:
            return 0.0
        return self.spec.overdue_s if attempt.tolerates_waiting else min(self.spec.overdue_s, self.spec.unaware_wait_s)

    def place_lost(self, attempt: AttemptView, priority: int, since: float, now: float) -> None:
        """Note that a container is to be placed again, which waited since then at nodes."""
        is_overdue = self.spec is not None and now - since >= self.wait_limit(attempt)
        self.jobs.of(attempt.id.application_id).given_back += 1
        self.lost_places.lost(attempt.id.application_id, priority, min(since, now), now, is_overdue=is_overdue)

    # ---- nodes

    def get(self, node_id: NodeId) -> NodeQueue | None:
        return self._queues.get(node_id)

    def reported(self, queue: NodeQueue, event: NodeQueueReported, now: float) -> None:
        """Take in what a node says of its queue."""
        queue.opportunistic_max, queue.is_silent = event.opportunistic_max, False
        queue.opportunistic_given, queue.opportunistic_s = 0, 0.0
        wait_s = event.wait_s
        if not 0.0 <= wait_s < math.inf:
            wait_s = math.inf
        if self.spec is not None and event.queues_any:
            self._take_in(queue, event, wait_s, now)
        else:
            queue.running, queue.queued = max(0, event.running), max(0, event.queued)
            queue.wait_s = wait_s
            queue.given = 0

    def _take_in(self, queue: NodeQueue, event: NodeQueueReported, wait_s: float, now: float) -> None:
        """Take in what a node says whose queue is filled from now on, as far as it can be.

        There are as many reports as heartbeats, and most say little that is new: what that costs is what all nodes
        together cost where nothing waits.
        """
        if not queue.is_filled:
            queue.is_filled, self._queues[queue.node.id] = True, queue
            queue.foresee = self._foresee
            self._set_bound(queue)
        is_new = not queue.is_heard or queue.is_told_more(event) or queue.most != event.most
        if queue.most != event.most:
            queue.most = event.most
            self._set_bound(queue)
        queue.keeps_room = event.keeps_room
        queue.room = event.free.smaller(queue.node.total) if event.free is not None else None
        queue.room_s = event.room_s
        if is_new:
            self._count(queue, event)
            queue.told_waiting, queue.is_heard = event.waiting, True
        bound = queue.bound
        if queue.tuner is not None:
            bound = queue.tuned(queue.tuner, self.polls.median(now), event, now)
        queue.reported_at = now
        if queue.ends_in == math.inf:
            queue.ends_in = None  # estimates may have come
        if is_new or wait_s != queue.wait_s or bound != queue.bound:
            queue.wait_s, queue.bound = wait_s, bound
            if bound != queue.counted:
                self._count_bound(queue, bound)
            self.open.enter(queue)
        elif bound:
            self.open.enter_again(queue)

    def silent(self, node: NodeView) -> None:
        """Note that what the node said last is too old. Nothing more waits there until it reports."""
        node.queue.is_silent = True
        if node.queue.is_filled:
            self.open.enter(node.queue)

    def _count(self, queue: NodeQueue, event: NodeQueueReported) -> None:
        """Count how many run and wait there, and which. Most reports say the same as the last one, but for the wait."""
        node, started = queue.node, event.started
        if queue.started is not started and queue.started != started:
            queue.started = started
        is_within = node.free_mb >= 0 and node.free_cores >= 0 and not node.free_extras
        if queue.waiting or event.waiting or not is_within:  # else nothing waits, and nothing should
            if event.waiting is not None:
                self._sent.as_told(queue, event.waiting, started)
            self.resized(node)
        running, queued = event.running, event.queued
        queue.running, queue.queued = running if running > 0 else 0, queued if queued > 0 else 0
        queue.given = 0
        # Tasks shorter than a heartbeat have ended when the node reports: what was charged within its size counts too.
        # What runs beyond it, as a master may that starts at once, has no slot: it counts here as waiting.
        within, waiting = queue.running, queue.waiting
        if waiting and started:
            within = max(0, within - len(started.intersection(waiting)))
        if queue.queued:
            queue.was_full = True
        else:
            within = max(queue.slots, within, len(node.containers) - len(waiting))
        queue.slots = self._slots.believed(node, within)
        queue.at_node = queue.queued
        queue.count_added()

    def _foresee(self, queue: NodeQueue) -> float:
        """Return when something ends at a node that says it has room, s; 0: one more like the last one has room.

        Ends of all that is charged, each at its own rate; inf where none is known.
        """
        node, rate = queue.node, 0.0
        if not node.containers:
            return 0.0
        last = node.containers[next(reversed(node.containers))]
        if self._calculator.fits_among(last, node.free_mb, node.free_cores, node.free_extras):
            return 0.0
        for container_id in node.containers:
            if container_id not in queue.waiting:
                held = self._charged[container_id]
                estimate = None if held.is_master else self.estimate(held.application.id, held.priority)
                if estimate is not None:
                    rate += 1.0 / (estimate if estimate > _SHORTEST_S else _SHORTEST_S)
        return 1.0 / rate if rate else math.inf

    def _count_bound(self, queue: NodeQueue, bound: int) -> None:
        self.bounds += bound - queue.counted
        queue.counted = bound

    def _set_bound(self, queue: NodeQueue) -> None:
        spec, host = self.spec, queue.node.id.host
        fixed = spec.bound_of(host) if spec is not None else 0
        queue.tuner = self._new_tuner(spec.tuning_of(host)) if spec is not None and fixed is None else None
        queue.bound = queue.within(fixed) if fixed is not None else 0
        self._count_bound(queue, queue.bound)

    def _new_tuner(self, tuning: Tuning) -> BoundTuner:
        """Begin a tuner. Most nodes begin as the one before."""
        if self._like is None or self._like[0] is not tuning:
            self._like = tuning, tuning.begin()
        return self._like[1].another()

    def bound_of(self, node_id: NodeId) -> int:
        """Return how many may wait there now."""
        queue = self._queues.get(node_id)
        return queue.bound if queue is not None else 0

    def ran(self, node: NodeView, seconds: float) -> None:
        """Note that a container of this node ended well after so long, s."""
        if node.queue.tuner is not None:
            node.queue.tuner.ran(seconds)

    def resized(self, node: NodeView) -> None:
        """Note that what a node holds, or its size, changed at once."""
        if node.queue.is_filled:
            self._sent.resized(node.queue)

    def left(self, node: NodeView) -> None:
        queue = self._queues.pop(node.id, None)
        if queue is not None:
            for container_id in list(queue.waiting):
                self._sent.start(queue, container_id)
            self.open.remove(queue)
            self._count_bound(queue, 0)
            queue.is_filled = False

    # ---- room

    @property
    def nearness(self) -> Affinity | None:
        """Return what nodes are worth that differ by nothing but how near they are; None: what else a node has of the
        same stage matters, too."""
        affinity = self.spec.affinity if self.spec is not None else _NO_AFFINITY
        return affinity if affinity.interference <= 0.0 else None

    def affinity(self, queue: NodeQueue, near: Locality, app_id: ApplicationId, priority: int) -> float:
        """Return how suitable the node is for a task of this stage, apart from its load."""
        affinity = self.spec.affinity if self.spec is not None else _NO_AFFINITY
        alike = 0
        if affinity.interference > 0.0:
            held = [self._charged[container_id] for container_id in queue.node.containers]
            alike = sum(1 for one in held if one.priority == priority and one.application.id == app_id)
        return affinity.worth(near, alike, queue.slots)

    # ---- containers

    def is_waiting(self, node_id: NodeId, container_id: ContainerId) -> bool:
        queue = self._queues.get(node_id)
        return queue is not None and container_id in queue.waiting

    def given(self, node: NodeView) -> None:
        """Note that a container, already charged, was given of what the node has free."""
        queue = node.queue
        if queue.bound and not queue.wait_s:
            self.open.enter(queue)

    def sent(self, node: NodeView, container_id: ContainerId, attempt: AttemptView, ask: Ask) -> None:
        """Note that a container, already charged, was sent to wait."""
        queue = node.queue
        assert queue.is_filled, f"the queue of {node.id} is not filled"
        estimate = self.estimate(attempt.id.application_id, ask.key[0]) or 0.0
        self._sent.wait(queue, container_id, QueuedAtNode(attempt.app, ask.capability, estimate))
        queue.given += 1
        if len(queue.waiting) > queue.at_node:
            queue.added_s += estimate
        self.open.enter(queue)

    def sent_opportunistic(self, queue: NodeQueue, app_id: ApplicationId, priority: int) -> None:
        """Note that an opportunistic container was sent to wait, which is charged to nobody."""
        estimate = self.estimate(app_id, priority)
        queue.opportunistic_given += 1
        queue.opportunistic_s += math.inf if estimate is None else estimate

    def start(self, node_id: NodeId, container_id: ContainerId) -> None:
        """Count the container, about to be discharged, as any other if it waited until now."""
        queue = self._queues.get(node_id)
        if queue is not None and container_id in queue.waiting:
            self._sent.start(queue, container_id)

    def ended(self, node: NodeView) -> None:
        """Note that a container of this node, already discharged, is over. Another one should have started."""
        queue = node.queue
        if queue.is_filled:
            queue.is_heard = False
            self._sent.trim(queue)
            queue.count_added()
            self.open.enter(queue)

    def recall(self, app: AppView) -> tuple[tuple[NodeQueue, ContainerId], ...]:
        """Count what the application has waiting as started, while its queue is changed. Return which containers they
        were."""
        found = tuple((q, c) for q in self._queues.values() for c, sent in q.waiting.items() if sent.app is app)
        for queue, container_id in found:
            self._count_sent(app, queue.waiting[container_id].resource, -1)
        return found

    def send_again(self, sent: Iterable[tuple[NodeQueue, ContainerId]]) -> None:
        for queue, container_id in sent:
            waiting = queue.waiting[container_id]
            self._count_sent(waiting.app, waiting.resource, 1)

    def validate(self) -> None:
        """Assert every invariant."""
        bounds = 0
        for name, queue in self._queues.items():
            assert queue.node.queue is queue and queue.is_filled, name
            assert set(queue.waiting) <= set(queue.node.containers), name
            bounds += queue.counted
            assert queue.excess == sum((sent.resource for sent in queue.waiting.values()), Resource()), name
            assert min(queue.given, queue.queued, queue.running) >= 0, name
            self.open.validate(queue)
        assert bounds == self.bounds
