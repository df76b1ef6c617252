"""Random lives of a cluster, with what must hold after each event."""

import math

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rm.scheduler.decisions import AcceptApplication, Allocate, Outcome
from rm.scheduler.events import (
    ApplicationEnded,
    ApplicationMoved,
    ApplicationSubmitted,
    Asked,
    AttemptEnded,
    AttemptStarted,
    ContainerEnded,
    NodeBeat,
    NodeDraining,
    NodeJoined,
    NodeLeft,
    NodeResized,
    PriorityChanged,
    QueuesRefreshed,
    SchedulerEvent,
)
from rm.scheduler.queues.spec import SchedulerSpec
from rm.scheduler.queues.user_limits import may_take
from rm.scheduler.view.cluster import ClusterView
from tests.rm.rm_world import BOUNDS, DEFAULT, DOMINANT, World, queues
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId, NodeId, Resource
from yaqd.policies.asks.rows import AskRow
from yaqd.policies.asks.table import AskKey

HOSTS = ("h0", "h1", "h2", "h3", "elsewhere")
RACKS = ("/r0", "/r1", "/nowhere")


def spec(
    capacity_of_a: int = 60, calculator: str = DOMINANT, factor_of_b: float = -1, order: str = "fifo"
) -> SchedulerSpec:
    values = {
        "root.queues": "a,b",
        "root.a.queues": "x,y",
        "root.a.capacity": str(capacity_of_a),
        "root.a.maximum-capacity": "80",
        "root.a.x.capacity": "50",
        "root.a.x.ordering-policy": "fair",
        "root.a.y.capacity": "50",
        "root.a.y.maximum-capacity": "70",
        "root.a.y.ordering-policy": order,
        "root.b.ordering-policy": order,
        "root.a.x.minimum-user-limit-percent": "25",
        "root.a.x.user-limit-factor": "2",
        "root.b.capacity": str(100 - capacity_of_a),
        "root.b.user-limit-factor": str(factor_of_b),
        "maximum-am-resource-percent": "0.5",
        "resource-calculator": calculator,
        "node-locality-delay": "3",
    }
    return queues(values)


def fingerprint(view: ClusterView) -> object:
    """All that a policy could change, as one comparable value."""
    return (
        [(n.id, n.free, n.cell, n.reserved is None, sorted(n.containers)) for n in view.nodes.all()],
        [(q.path, q.used, q.waiting, str(q.lines), q.inactive, q.masters_used) for q in view.queues.values()],
        [
            (
                a.id,
                a.used,
                a.priority,
                a.attempt and [(k.key, dict(k.counts), k.missed, k.waiting_since) for k in a.attempt.asks],
            )
            for a in view.applications.values()
        ],
        sorted(view.containers),
        sorted(view.holds.reserved),
    )


class SchedulerLife(RuleBasedStateMachine):
    """Events in any order; what was promised to masters is counted beside the scheduler."""

    def __init__(self) -> None:
        super().__init__()
        #: when each node beat last; asks with preferred places, and when others lost their last one
        self.beat_at: dict[NodeId, float] = {}
        self.preferring: set[tuple[ApplicationAttemptId, AskKey]] = set()
        self.open_since: dict[tuple[ApplicationAttemptId, AskKey], float] = {}

    @initialize(calculator=st.sampled_from([DOMINANT, DEFAULT]))
    def start(self, calculator: str) -> None:
        self.calculator = calculator
        tree = spec(calculator=calculator)
        self.world = World(tree, bounds=BOUNDS, validates=False, reserve_after_s=5.0, reservation_s=20.0)
        self.scheduler = self.world.scheduler
        self.now = 0.0
        self.nodes: dict[NodeId, Resource] = {}
        self.drained: set[NodeId] = set()
        self.apps: list[ApplicationId] = []
        self.attempts: list[ApplicationAttemptId] = []
        self.live: dict[ContainerId, Allocate] = {}
        #: per attempt and key: containers wanted in all less those given since
        self.wanted: dict[tuple[ApplicationAttemptId, int], int] = {}
        self.made = 0

    def tell(self, event: SchedulerEvent) -> list[Outcome]:
        self.now += 1.0
        self.world.now = self.now
        if isinstance(event, NodeBeat):
            self.beat_at[event.node_id] = self.now
        decisions = self.world.tell(event)
        for decision in decisions:
            if isinstance(decision, Allocate):
                self.check_allocation(decision)
        return decisions

    def check_allocation(self, given: Allocate) -> None:
        assert given.container_id not in self.live, "an id is given once"
        assert given.node_id in self.nodes, "only to nodes that are there"
        assert given.node_id not in self.drained, "not to nodes that are drained"
        assert given.container_id.attempt_id in self.attempts, "only to attempts that are alive"
        leaf = self.scheduler.view.applications[given.container_id.application_id].leaf
        fits = self.scheduler.view.calculator.fits
        assert all(q.limit is None or fits(q.used, q.limit) for q in leaf.upwards()), "no queue above its maximum"
        self.check_user_limit(given)
        self.live[given.container_id] = given
        if not given.is_master:
            key = (given.container_id.attempt_id, given.priority)
            self.wanted[key] = self.wanted.get(key, 0) - 1
            assert self.wanted[key] >= 0, "never more than was asked for"

    def check_user_limit(self, given: Allocate) -> None:
        """Before this container the user held no more than capacity times factor allows, whatever the others do."""
        view = self.scheduler.view
        app = view.applications[given.container_id.application_id]
        spec, total = app.leaf.spec, view.nodes.total
        if spec.user_limit_factor < 0 or not total.memory_mb:
            return
        before = Resource()
        for container_id in self.live:
            held = view.containers.get(container_id)
            if held is not None and held.application.owner is app.owner:
                before = before + held.resource
        most = Resource(int(total.memory_mb * spec.absolute_capacity), int(total.vcores * spec.absolute_capacity))
        share = max(view.calculator.share(most, total), view.calculator.share(BOUNDS.minimum, total))
        step = view.calculator.share(BOUNDS.minimum, total)
        assert view.calculator.share(before, total) <= share * spec.user_limit_factor + step + 1e-9

    # ---- what can happen

    @rule(number=st.integers(0, 5), size=st.sampled_from([(4096, 4), (8192, 8), (16384, 4), (1536, 1)]))
    def node_joins(self, number: int, size: tuple[int, int]) -> None:
        node_id = NodeId(HOSTS[number % 4], 1 + number // 4)
        if node_id not in self.nodes:
            self.nodes[node_id] = Resource(*size)
            self.tell(NodeJoined(node_id, RACKS[number % 2], Resource(*size)))

    @precondition(lambda self: self.nodes)
    @rule(data=st.data())
    def node_leaves(self, data: st.DataObject) -> None:
        node_id = data.draw(st.sampled_from(sorted(self.nodes)))
        del self.nodes[node_id]
        self.drained.discard(node_id)
        self.tell(NodeLeft(node_id))
        for container_id in [c for c, given in self.live.items() if given.node_id == node_id]:
            del self.live[container_id]
            self.tell(ContainerEnded(container_id))

    @precondition(lambda self: self.nodes)
    @rule(data=st.data(), back=st.booleans())
    def node_is_drained_or_let_back_in(self, data: st.DataObject, back: bool) -> None:
        node_id = data.draw(st.sampled_from(sorted(self.nodes)))
        if back:
            self.drained.discard(node_id)
            self.tell(NodeResized(node_id, self.nodes[node_id]))
        else:
            self.drained.add(node_id)
            self.tell(NodeDraining(node_id))

    @precondition(lambda self: self.nodes)
    @rule(data=st.data())
    def node_beats(self, data: st.DataObject) -> None:
        self.tell(NodeBeat(data.draw(st.sampled_from(sorted(self.nodes)))))

    @rule(
        queue=st.sampled_from(["x", "y", "root.b", "root", "none"]),
        priority=st.integers(0, 2),
        user=st.sampled_from(["ann", "bob", "cyd"]),
    )
    def application_arrives(self, queue: str, priority: int, user: str) -> None:
        self.made += 1
        app_id = ApplicationId(1, self.made)
        decision = self.tell(ApplicationSubmitted(app_id, queue, user, priority))[0]
        assert isinstance(decision, AcceptApplication) == (queue not in ("root", "none"))
        if isinstance(decision, AcceptApplication):
            self.apps.append(app_id)
            self.start_attempt(app_id, 1)

    def start_attempt(self, app_id: ApplicationId, number: int) -> None:
        attempt_id = ApplicationAttemptId(app_id, number)
        self.attempts.append(attempt_id)
        self.tell(AttemptStarted(attempt_id, (AskRow(0, -1, "*", Resource(1024, 1), 1),), epoch=3))

    @precondition(lambda self: self.attempts)
    @rule(
        data=st.data(),
        count=st.integers(0, 6),
        priority=st.integers(1, 3),
        memory_mb=st.sampled_from([100, 1024, 3000, 8192]),
        vcores=st.integers(1, 4),
        hosts=st.lists(st.sampled_from(HOSTS), unique=True, max_size=3),
        racks=st.lists(st.sampled_from(RACKS), unique=True, max_size=2),
        relax=st.booleans(),
        again=st.booleans(),
    )
    def master_asks(
        self,
        data: st.DataObject,
        count: int,
        priority: int,
        memory_mb: int,
        vcores: int,
        hosts: list[str],
        racks: list[str],
        relax: bool,
        again: bool,
    ) -> None:
        attempt_id = data.draw(st.sampled_from(self.attempts))
        amount = Resource(memory_mb, vcores)
        rows = tuple(AskRow(priority, -1, name, amount, count, relax or name != "*") for name in [*hosts, *racks, "*"])
        self.wanted[(attempt_id, priority)] = count
        self.tell(Asked(attempt_id, rows))
        self.check_counts(attempt_id, priority)
        if again:
            ask = self.scheduler.view.attempt(attempt_id).asks.get((priority, -1))  # type: ignore[union-attr]
            counts = dict(ask.counts) if ask is not None else {}
            self.tell(
                Asked(
                    attempt_id, tuple(AskRow(priority, -1, n, amount, c, relax or n != "*") for n, c in counts.items())
                )
            )
            self.check_counts(attempt_id, priority)

    def check_counts(self, attempt_id: ApplicationAttemptId, priority: int) -> None:
        """The scheduler lowers its rows as the master does, and repeated rows add nothing."""
        attempt = self.scheduler.view.attempt(attempt_id)
        assert attempt is not None
        ask = attempt.asks.get((priority, -1))
        assert (ask.pending if ask is not None else 0) == self.wanted[(attempt_id, priority)]

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), name=st.sampled_from([*HOSTS, *RACKS]), remove=st.booleans())
    def master_blacklists(self, data: st.DataObject, name: str, remove: bool) -> None:
        attempt_id = data.draw(st.sampled_from(self.attempts))
        self.tell(Asked(attempt_id, (), () if remove else (name,), (name,) if remove else ()))

    @precondition(lambda self: self.live)
    @rule(data=st.data(), long=st.booleans())
    def container_ends(self, data: st.DataObject, long: bool) -> None:
        self.now += 30.0 if long else 0.0
        container_id = data.draw(st.sampled_from(sorted(self.live)))
        del self.live[container_id]
        self.tell(ContainerEnded(container_id))

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), retry=st.booleans())
    def attempt_ends(self, data: st.DataObject, retry: bool) -> None:
        attempt_id = data.draw(st.sampled_from(self.attempts))
        self.attempts.remove(attempt_id)
        self.tell(AttemptEnded(attempt_id))
        if retry:
            self.start_attempt(attempt_id.application_id, attempt_id.attempt + 1)
        else:
            self.apps.remove(attempt_id.application_id)
            self.tell(ApplicationEnded(attempt_id.application_id))
        for container_id in [c for c in self.live if c.attempt_id == attempt_id]:
            del self.live[container_id]
            self.tell(ContainerEnded(container_id))

    @precondition(lambda self: self.apps)
    @rule(data=st.data(), priority=st.integers(0, 5))
    def priority_changes(self, data: st.DataObject, priority: int) -> None:
        self.tell(PriorityChanged(data.draw(st.sampled_from(self.apps)), priority))

    @precondition(lambda self: self.apps)
    @rule(data=st.data(), queue=st.sampled_from(["root.a.x", "root.a.y", "root.b", "root.a", "nowhere"]))
    def move(self, data: st.DataObject, queue: str) -> None:
        self.tell(ApplicationMoved(data.draw(st.sampled_from(self.apps)), queue))

    @rule(capacity_of_a=st.sampled_from([20, 50, 80]), factor=st.sampled_from([-1, 0.5, 1]))
    def queues_change(self, capacity_of_a: int, factor: float) -> None:
        self.tell(QueuesRefreshed(spec(capacity_of_a, self.calculator, factor)))
        # What a limit held back that is no more goes at the nodes' next heartbeats.
        for node in self.scheduler.view.nodes.all():
            self.tell(NodeBeat(node.id))

    # ---- what always holds

    @invariant()
    def totals_are_what_a_recount_gives(self) -> None:
        self.scheduler.validate()
        assert set(self.scheduler.view.containers) == set(self.live)

    @invariant()
    def no_node_is_overcommitted(self) -> None:
        for node in self.scheduler.view.nodes.all():
            assert node.free.memory_mb >= 0
            assert self.calculator == DEFAULT or node.free.vcores >= 0

    @invariant()
    def deciding_changes_nothing(self) -> None:
        view, policy = self.scheduler.view, self.scheduler._assigner.policy
        before = fingerprint(view)
        for node in view.nodes.all():
            next(policy.for_node(view, node, self.now + 60.0), None)
        for app in view.applications.values():
            if app.attempt is not None:
                for ask in app.attempt.asks:
                    next(policy.for_ask(view, app.attempt, ask, list(ask.counts)), None)
        assert fingerprint(view) == before

    @invariant()
    def what_fits_is_not_left_waiting(self) -> None:
        """Asks without preferred places wait only where no node, or no queue, has room.

        One whose last preferred place was used up finds other nodes' room at their heartbeats.
        """
        view = self.scheduler.view
        for app in view.applications.values():
            attempt = app.attempt
            if attempt is None or attempt.master is None or attempt.blacklist:
                continue
            for ask in attempt.asks:
                named = attempt.id, ask.key
                if ask.prefers_places:
                    self.preferring.add(named)
                elif named in self.preferring:
                    self.preferring.discard(named)
                    self.open_since[named] = self.now
                if not ask.pending or ask.prefers_places or not ask.allows("*"):
                    continue
                since = self.open_since.get(named, -math.inf)
                looked = [n for n in view.nodes.all() if self.beat_at.get(n.id, 0.0) > since]
                roomy = [n for n in looked if n.cell and view.calculator.fits(ask.capability, n.free)]
                if roomy and view.has_room(app.leaf, ask.capability) and may_take(view, app):
                    # Only a queue whose limit moved may wait, and only until the next heartbeat.
                    assert app.leaf.limits_users or any(q.limit is not None for q in app.leaf.upwards())
