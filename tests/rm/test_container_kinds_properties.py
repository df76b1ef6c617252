"""Random lives of guaranteed and opportunistic containers that change their size and type: nothing is overcommitted."""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rm.scheduler.decisions import Allocate, Outcome, Update
from rm.scheduler.events import (
    ApplicationSubmitted,
    Asked,
    AttemptEnded,
    AttemptStarted,
    ContainerEnded,
    NodeBeat,
    NodeJoined,
    NodeLeft,
    SchedulerEvent,
    UpdateAsked,
)
from rm.scheduler.opportunistic.placing import OpportunisticLimits
from rm.scheduler.view.calculators import AllocationBounds
from tests.examples import examples
from tests.rm.rm_world import DOMINANT, GB, World, queues
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId, ExecutionType, NodeId, Resource
from yaqd.policies.asks.rows import AskRow

GPU = "yarn.io/gpu"
BOUNDS = AllocationBounds(Resource(GB, 1), Resource(8 * GB, 4, {GPU: 4}))
NODES = [NodeId(f"h{n}", 1) for n in range(3)]
#: two queues, one of which may not have the whole cluster
QUEUES = {
    "root.queues": "a,b",
    "root.a.capacity": "50",
    "root.a.maximum-capacity": "60",
    "root.b.capacity": "50",
    "resource-calculator": DOMINANT,
}
sizes = st.builds(
    lambda gb, vcores, gpus: Resource(gb * GB, vcores, {GPU: gpus} if gpus else {}),
    *(st.integers(1, 4), st.integers(1, 3), st.integers(0, 2)),
)
kinds = st.sampled_from(ExecutionType)


class Kinds(RuleBasedStateMachine):
    """What every container was last said to be is kept beside the scheduler."""

    @initialize()
    def start(self) -> None:
        limits = OpportunisticLimits(choice_s=0.0)
        self.world = World(queues(QUEUES), bounds=BOUNDS, validates=False, opportunistic=limits)
        self.scheduler = self.world.scheduler
        self.attempts: list[ApplicationAttemptId] = []
        self.containers: dict[ContainerId, tuple[NodeId, Resource, ExecutionType]] = {}
        for number, queue in enumerate("ab", start=1):
            attempt = ApplicationAttemptId(ApplicationId(1, number), 1)
            self.tell(ApplicationSubmitted(attempt.application_id, queue, "user", 0))
            self.tell(AttemptStarted(attempt, ()))
            self.attempts.append(attempt)

    def tell(self, event: SchedulerEvent) -> list[Outcome]:
        self.world.now += 1.0
        decisions = self.world.tell(event)
        for decision in decisions:
            match decision:
                case Allocate():
                    assert decision.container_id not in self.containers
                    self.containers[decision.container_id] = (
                        *(decision.node_id, decision.resource, decision.execution_type),
                    )
                case Update(container_id, resource, kind):
                    self.containers[container_id] = (self.containers[container_id][0], resource, kind)
        return decisions

    @rule(node=st.sampled_from(NODES), gb=st.integers(2, 8), gpus=st.integers(0, 3))
    def node_joins(self, node: NodeId, gb: int, gpus: int) -> None:
        here = tuple(c for c, (where, _, _) in self.containers.items() if where == node)
        held = Resource()
        for container in here:
            if self.containers[container][2] is ExecutionType.GUARANTEED:
                held = held + self.containers[container][1]
        size = Resource(gb * GB, 8, {GPU: gpus} if gpus else {})
        if held.fits_in(size):
            self.tell(NodeJoined(node, "/r", size, here))

    @rule(node=st.sampled_from(NODES))
    def node_leaves(self, node: NodeId) -> None:
        self.tell(NodeLeft(node))

    @rule(node=st.sampled_from(NODES), length=st.integers(0, 5))
    def node_reports(self, node: NodeId, length: int) -> None:
        self.world.reports_opportunistic(node, length, -1, 4)
        self.tell(NodeBeat(node))

    @rule(who=st.integers(0, 1), count=st.integers(0, 4), size=sizes, kind=kinds, priority=st.integers(1, 2))
    def asks(self, who: int, count: int, size: Resource, kind: ExecutionType, priority: int) -> None:
        self.tell(Asked(self.attempts[who], (AskRow(priority, -1, "*", size, count, True, kind),)))

    @precondition(lambda self: self.containers)
    @rule(data=st.data(), size=sizes, kind=kinds)
    def asks_for_a_change(self, data: st.DataObject, size: Resource, kind: ExecutionType) -> None:
        container = data.draw(st.sampled_from(sorted(self.containers)))
        self.tell(UpdateAsked(container, self.scheduler.normalized(size), kind))

    @precondition(lambda self: self.containers)
    @rule(data=st.data())
    def container_ends(self, data: st.DataObject) -> None:
        container = data.draw(st.sampled_from(sorted(self.containers)))
        del self.containers[container]
        self.tell(ContainerEnded(container))

    @rule(who=st.integers(0, 1))
    def attempt_is_replaced(self, who: int) -> None:
        old = self.attempts[who]
        self.tell(AttemptEnded(old))
        self.attempts[who] = ApplicationAttemptId(old.application_id, old.attempt + 1)
        self.tell(AttemptStarted(self.attempts[who], ()))

    @invariant()
    def everything_is_booked_as_it_was_said(self) -> None:
        self.scheduler.validate()
        view, spare = self.scheduler.view, self.scheduler.opportunistic
        booked = {c: (h.node_id, h.resource, ExecutionType.GUARANTEED) for c, h in view.containers.items()}
        booked |= {c: (p.node_id, p.resource, ExecutionType.OPPORTUNISTIC) for c, p in spare.containers.items()}
        assert booked == self.containers

    @invariant()
    def guaranteed_containers_never_have_more_than_their_node(self) -> None:
        for node in self.scheduler.view.nodes.all():
            assert Resource().fits_in(node.free) and all(v >= 0 for v in node.free.extras.values()), node.free


Kinds.TestCase.settings = settings(
    max_examples=examples(60), stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestKinds = Kinds.TestCase
