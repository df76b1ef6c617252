"""Random lives of a cluster with node queues, with what must hold after each event."""

import math

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from rm.scheduler.decisions import Allocate
from rm.scheduler.events import (
    ApplicationSubmitted,
    Asked,
    Estimated,
    NodeBeat,
    NodeJoined,
    NodeQueueReported,
    QueueingChanged,
    QueuesRefreshed,
    WaitingTolerated,
)
from rm.scheduler.node_queues.spec import QueueingSpec
from tests.rm.rm_random_life import HOSTS, RACKS, SchedulerLife, spec
from tests.rm.rm_world import BOUNDS, DEFAULT, DOMINANT, World
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId, NodeId, Resource
from yaqd.policies.asks.rows import AskRow

#: stays without a queue: it never reports one
STOCK = NodeId("h3", 1)


class QueueingLife(SchedulerLife):
    """The same events, and what nodes and estimates add to them."""

    @initialize(
        calculator=st.sampled_from([DOMINANT, DEFAULT]),
        bound=st.integers(1, 4),
        free_share=st.sampled_from([0.0, 0.1, 1.0]),
        default=st.sampled_from([None, 5.0]),
        order=st.sampled_from(["fifo", "srjf", "lrtf", "sjf", "ejf"]),
        unaware_wait_s=st.sampled_from([math.inf, 0.0]),
    )
    def start_with_queues(
        self, calculator: str, bound: int, free_share: float, default: float | None, order: str, unaware_wait_s: float
    ) -> None:
        self.calculator, self.order = calculator, order
        self.bound = bound
        self.queueing = QueueingSpec(
            bound=bound, free_share=free_share, default_estimate_s=default, unaware_wait_s=unaware_wait_s
        )
        tree, limits = spec(calculator=calculator, order=order), {"reserve_after_s": 5.0, "reservation_s": 20.0}
        self.world = World(tree, bounds=BOUNDS, validates=False, queueing=self.queueing, **limits)
        self.scheduler = self.world.scheduler
        self.estimated: set[tuple[ApplicationId, int]] = set()
        self.now = 0.0
        self.nodes: dict[NodeId, Resource] = {}
        self.drained: set[NodeId] = set()
        self.apps: list[ApplicationId] = []
        self.attempts: list[ApplicationAttemptId] = []
        self.live: dict[ContainerId, Allocate] = {}
        self.wanted: dict[tuple[ApplicationAttemptId, int], int] = {}
        self.made = 0
        # Something to begin with, or few lives would get as far as a queue.
        for number in range(2):
            self.nodes[NodeId(HOSTS[number], 1)] = Resource(4096, 4)
            self.tell(NodeJoined(NodeId(HOSTS[number], 1), RACKS[number], Resource(4096, 4)))
            self.tell(NodeQueueReported(NodeId(HOSTS[number], 1), 4, 0, float(number)))
        for user in ("ann", "bob"):
            self.made += 1
            self.apps.append(ApplicationId(1, self.made))
            self.tell(ApplicationSubmitted(self.apps[-1], "root.b" if user == "ann" else "y", user, 0))
            self.start_attempt(self.apps[-1], 1)
            self.estimated.add((self.apps[-1], 1))
            self.tell(Estimated(self.apps[-1], 1, 10.0))

    def start(self, calculator: str) -> None:
        """Replaced by the rule above."""

    def check_allocation(self, given: Allocate) -> None:
        leaf = self.scheduler.view.containers[given.container_id].application.leaf
        for queue, limit in leaf.limited_above:
            held = queue.used + queue.sent.used
            assert self.scheduler.view.calculator.fits(held, limit), "what waits counts against a maximum capacity"
        if given.queued is None:
            super().check_allocation(given)
            return
        assert given.container_id not in self.live and given.node_id not in self.drained
        self.live[given.container_id] = given
        key = (given.container_id.attempt_id, given.priority)
        self.wanted[key] -= 1
        assert self.wanted[key] >= 0, "never more than was asked for"
        node = self.scheduler.view.nodes.get(given.node_id)
        assert node is not None and node.queue is not None and given.node_id != STOCK, "only to nodes that queue"
        assert len(node.queue.waiting) <= self.bound and node.queue.length <= self.bound, "never beyond the bound"
        assert not given.is_master, "masters never wait"
        known = (given.container_id.application_id, given.priority) in self.estimated
        assert known or self.queueing.default_estimate_s is not None, "nothing waits whose end nobody knows"
        assert math.isfinite(given.queued.expected_wait_s), "nothing waits where nothing ends"
        attempt = self.scheduler.view.attempt(given.container_id.attempt_id)
        tolerates = attempt is not None and attempt.tolerates_waiting
        assert tolerates or self.queueing.unaware_wait_s > 0.0, "nothing waits whose master takes it for running"

    def check_user_limit(self, given: Allocate) -> None:
        """For what is in use: what waits is bounded with the queues."""
        live, self.live = self.live, {c: g for c, g in self.live.items() if not self.waits(c)}
        super().check_user_limit(given)
        self.live = live

    def waits(self, container_id: ContainerId) -> bool:
        return any(container_id in queue.waiting for queue in self.scheduler.node_queues.all())

    @precondition(lambda self: self.attempts)
    @rule(data=st.data())
    def master_says_that_it_tolerates_waiting(self, data: st.DataObject) -> None:
        self.tell(WaitingTolerated(data.draw(st.sampled_from(self.attempts))))

    @precondition(lambda self: self.nodes)
    @rule(
        data=st.data(),
        running=st.integers(-3, 8),
        queued=st.sampled_from([-5, 0, 0, 1, 2, 10**9]),
        wait=st.sampled_from([0.0, 1.0, 2.0, 7.5, 7.5, -1.0, math.inf, math.nan, 1e300]),
        names=st.booleans(),
    )
    def node_reports(self, data: st.DataObject, running: int, queued: int, wait: float, names: bool) -> None:
        node_id = data.draw(st.sampled_from(sorted(self.nodes)))
        if node_id != STOCK:
            here = sorted(c for c, held in self.scheduler.view.containers.items() if held.node_id == node_id)
            some = st.frozensets(st.sampled_from(here)) if here and names else st.just(frozenset())
            waiting, started = (data.draw(some), data.draw(some)) if names else (None, frozenset())
            self.tell(NodeQueueReported(node_id, running, queued, wait, waiting, started))
            self.tell(NodeBeat(node_id))

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), hosts=st.lists(st.sampled_from(HOSTS), unique=True, max_size=2))
    def master_asks_for_many(self, data: st.DataObject, hosts: list[str]) -> None:
        attempt_id = data.draw(st.sampled_from(self.attempts))
        self.wanted[(attempt_id, 1)] = 12
        self.tell(Asked(attempt_id, tuple(AskRow(1, -1, name, Resource(1024, 1), 12) for name in [*hosts, "*"])))

    @precondition(lambda self: self.apps)
    @rule(
        data=st.data(),
        priority=st.integers(0, 3),
        estimate=st.sampled_from([None, 0.0, 5.0, 100.0, -1.0, math.inf, math.nan]),
    )
    def estimate_is_known(self, data: st.DataObject, priority: int, estimate: float | None) -> None:
        app_id = data.draw(st.sampled_from(self.apps))
        is_finite = estimate is not None and 0.0 <= estimate < math.inf
        (self.estimated.add if is_finite else self.estimated.discard)((app_id, priority))
        self.tell(Estimated(app_id, priority, estimate))

    @rule(bound=st.integers(0, 4), is_on=st.sampled_from([True, True, False]))
    def settings_change(self, bound: int, is_on: bool) -> None:
        self.bound = bound if is_on else 0
        self.queueing = QueueingSpec(bound=bound, default_estimate_s=self.queueing.default_estimate_s)
        self.tell(QueueingChanged(self.queueing if is_on else None))

    @rule(capacity_of_a=st.sampled_from([20, 50, 80]))
    def queues_change(self, capacity_of_a: int) -> None:
        """Users' limits stay: what a refresh lets go of waits for the next heartbeat."""
        self.tell(QueuesRefreshed(spec(capacity_of_a, self.calculator, order=self.order)))

    @invariant()
    def no_node_is_overcommitted(self) -> None:
        """Beyond a node's size there is only what was sent to wait there."""
        calculator = self.scheduler.view.calculator
        for node in self.scheduler.view.nodes.all():
            over = (node.free * -1).floored()
            if node.queue is None:
                assert calculator.fits(over, over * 0), node.id
            elif self.queueing.bound == self.bound:
                assert calculator.fits(over, node.queue.excess), node.id

    @invariant()
    def headroom_is_honest(self) -> None:
        for app in self.scheduler.view.applications.values():
            if app.attempt is not None:
                left = self.scheduler.view.headroom(app.attempt)
                assert left.memory_mb >= 0 and left.vcores >= 0
