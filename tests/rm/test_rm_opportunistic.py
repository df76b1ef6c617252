"""Opportunistic containers in the ResourceManager: where they go, what they do not take, what nodes are told."""

import pytest
from rm_harness import FakeNode, Harness, ask, cluster

from rm.scheduler import spare_search
from rm.scheduler.calculators import AllocationBounds
from rm.scheduler.decisions import Allocate, Decision, Locality
from rm.scheduler.events import (
    ApplicationSubmitted,
    Asked,
    AskRow,
    AttemptEnded,
    AttemptStarted,
    ContainerEnded,
    Estimated,
    NodeDraining,
    NodeJoined,
    NodeLeft,
    NodeLoaded,
    NodeResized,
    NodeSilent,
    PlaceLost,
    SchedulerEvent,
    UpdateAsked,
    WaitingTolerated,
)
from rm.scheduler.node_load import LoadOrder, NodeLoad
from rm.scheduler.opportunistic import OpportunisticLimits
from rm.scheduler.queueing_spec import QueueingSpec
from rm.scheduler.queues import PREFIX, parse_capacity_scheduler
from rm.scheduler.scheduler import Scheduler, SchedulerLimits
from rm.scheduler.spare_places import takes
from yaqd.model import ApplicationAttemptId, ApplicationId, ExecutionType, NodeId, Resource
from yaqd.policies.queueing.place_scores import Affinity
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Client
from yaqd.proto.protocols import ResourceTracker

GB = 1024
SPARE = ExecutionType.OPPORTUNISTIC
ENABLED = {"yarn.resourcemanager.opportunistic-container-allocation.enabled": "true"}


class Life:
    """A scheduler with one application, and short words for events; recounted after each."""

    def __init__(self, limits: OpportunisticLimits | None, queueing: QueueingSpec | None = None) -> None:
        queues = parse_capacity_scheduler({PREFIX + "root.queues": "default", PREFIX + "root.default.capacity": "100"})
        bounds = AllocationBounds(Resource(GB, 1), Resource(8 * GB, 4))
        self.scheduler = Scheduler(queues, SchedulerLimits(bounds, opportunistic=limits, queueing=queueing))
        self.attempt = ApplicationAttemptId(ApplicationId(1, 1), 1)
        self.now = 0.0
        self.tell(ApplicationSubmitted(self.attempt.application_id, "default", "user", 0))
        self.tell(AttemptStarted(self.attempt, ()))

    def tell(self, event: SchedulerEvent) -> list[Decision]:
        decisions = self.scheduler.handle(event, self.now)
        self.scheduler.validate()
        return decisions

    def node(
        self,
        host: str,
        *,
        length: int = 0,
        capacity: int | None = 10,
        rack: str = "/r1",
        gb: int = 4,
        wait_ms: int = -1,
    ) -> NodeId:
        node = NodeId(host, 1)
        self.tell(NodeJoined(node, rack, Resource(gb * GB, 8)))
        self.tell(NodeLoaded(node, length, wait_ms, capacity))
        return node

    def ask(self, count: int, *names: str, gb: int = 1, kind: ExecutionType = SPARE, strict: bool = False) -> list[str]:
        """The hosts given for so many containers, preferring these names."""
        relax = not strict
        rows = tuple(AskRow(1, -1, n, Resource(gb * GB, 1), count, True, kind) for n in names)
        rows += (AskRow(1, -1, "*", Resource(gb * GB, 1), count, relax, kind),)
        return [d.node_id.host for d in self.tell(Asked(self.attempt, rows)) if isinstance(d, Allocate)]

    def beat(self) -> list[Allocate]:
        """The master's next heartbeat, without asks."""
        return [d for d in self.tell(Asked(self.attempt, ())) if isinstance(d, Allocate)]


def test_takes_nobodys_room() -> None:
    life = Life(OpportunisticLimits())
    life.node("a")
    assert life.ask(6) == ["a"] * 6  # 4 GB: more than fit
    assert life.scheduler.view.root.used == Resource() and life.scheduler.view.nodes.all()[0].free.memory_mb == 4 * GB
    assert life.ask(4, kind=ExecutionType.GUARANTEED) == ["a"] * 4


def test_goes_to_the_shortest_queue_and_counts_what_it_has_sent() -> None:
    life = Life(OpportunisticLimits())
    life.node("a", length=3)
    life.node("b", length=1)
    # b until as many wait there as on a, then in turn
    assert life.ask(5) == ["b", "b", "a", "b", "a"]


@pytest.mark.parametrize("queueing", [None, QueueingSpec()])
def test_of_a_storm_who_want_the_same_look_for_a_node_once(
    monkeypatch: pytest.MonkeyPatch, queueing: QueueingSpec | None
) -> None:
    life = Life(OpportunisticLimits(), queueing)
    node = life.node("a", length=10)
    looks = []
    find = life.scheduler.opportunistic._find
    monkeypatch.setattr(life.scheduler.opportunistic, "_find", lambda *given: looks.append(1) or find(*given))
    rows = [AskRow(1, number, "*", Resource((1 + number % 2) * GB, 1), 1, True, SPARE) for number in range(3000)]
    assert life.tell(Asked(life.attempt, tuple(rows))) == [] == life.beat()
    assert len(looks) == 4, "two sizes, twice"
    life.tell(NodeLoaded(node, 7, 0, 10))
    assert len(life.beat()) == 3, "none is forgotten"


def insisting(number: int, host: str, rack: str = "/r1") -> tuple[AskRow, ...]:
    """Rows of an ask for one container on this host; `number`: of the request."""
    size = Resource(GB, 1)
    return tuple(AskRow(1, number, name, size, 1, name == host, SPARE) for name in (host, rack, "*"))


@pytest.mark.parametrize("queueing", [None, QueueingSpec()])
def test_asks_that_insist_on_hosts_that_take_nothing_hide_no_others(queueing: QueueingSpec | None) -> None:
    life = Life(OpportunisticLimits(), queueing)
    life.node("a")
    rows = [row for number in range(1500) for row in insisting(number, f"gone-{number}")]
    rows.append(AskRow(1, 1500, "*", Resource(GB, 1), 3, True, SPARE))
    assert life.tell(Asked(life.attempt, tuple(rows))) == []
    assert [d.allocation_request_id for d in life.beat()] == [1500] * 3
    life.tell(Asked(life.attempt, insisting(0, "a")))
    assert [d.allocation_request_id for d in life.beat()] == [0], "the first are looked at again after the last"


@pytest.mark.parametrize("queueing", [None, QueueingSpec()])
def test_a_call_looks_at_so_many_nodes_and_the_next_one_goes_on_there(
    monkeypatch: pytest.MonkeyPatch, queueing: QueueingSpec | None
) -> None:
    monkeypatch.setattr(spare_search, "_LOOKS_MAX", 60)
    looked: list[str] = []

    def seen(load: NodeLoad, need: Resource, most_s: float) -> bool:
        looked.append(load.node.id.host)
        return takes(load, need, most_s)

    monkeypatch.setattr(spare_search, "takes", seen)
    life = Life(OpportunisticLimits(), queueing)
    hosts = [f"h{number:02}" for number in range(50)]
    for host in hosts:
        life.node(host, length=10, rack="/r" + host[1])
    rows = tuple(row for number, host in enumerate(hosts) for row in insisting(number, host, "/r" + host[1]))
    life.tell(Asked(life.attempt, rows))
    assert looked == hosts[:30], "those that somebody wanted, and none else"
    life.beat()
    assert looked == [*hosts, *hosts[:10]], "from there on, and begins again"
    looked.clear()
    life.scheduler.opportunistic.attempt_ended(life.attempt)
    rows = tuple(row for number, host in enumerate(hosts) for row in insisting(number, "/r0", host))
    life.tell(Asked(life.attempt, rows))
    assert looked.count("h09") <= 2, "a rack that takes nothing is looked at once a call"


def test_what_its_master_takes_for_running_goes_where_it_starts_soon() -> None:
    unaware = QueueingSpec(unaware_wait_s=2.0)
    for spec, given_to in ((unaware, "short"), (QueueingSpec(), "unknown")):
        life = Life(OpportunisticLimits(), spec)
        for host, wait_ms in (("late", 3000), ("never", -1), ("unknown", 0), ("short", 1900)):
            life.node(host, length=1, wait_ms=wait_ms)
        assert life.ask(1) == [given_to]
    life = Life(OpportunisticLimits(), unaware)
    node = life.node("a", length=1, wait_ms=1200)
    life.tell(Estimated(life.attempt.application_id, 1, 0.5))
    assert life.ask(3) == ["a", "a"], "each makes the next one wait longer"
    assert life.beat() == []
    life.tell(NodeLoaded(node, 0, 0, 10))
    assert len(life.beat()) == 1, "there is room"
    life.tell(WaitingTolerated(life.attempt))
    life.tell(NodeLoaded(node, 9, 90_000, 10))
    assert life.ask(1) == ["a"]


def test_a_node_that_is_silent_gets_nothing_and_is_published_to_nobody() -> None:
    life = Life(OpportunisticLimits(choice_s=1e9), QueueingSpec())
    silent, other = life.node("a", length=1, wait_ms=1000), life.node("b", length=5, wait_ms=9000)
    assert [load.node.id for load in life.scheduler.opportunistic.ranked(0.0)] == [silent, other]
    life.tell(NodeSilent(silent))
    assert life.ask(1) == ["b"] and life.ask(1, "a", strict=True) == []
    assert [load.node.id for load in life.scheduler.opportunistic.ranked(0.0)] == [other]
    life.tell(NodeLoaded(silent, 1, 1000, 10))
    assert [d.node_id for d in life.beat()] == [silent]


def test_what_came_back_late_waits_nowhere_for_as_long_again() -> None:
    life = Life(OpportunisticLimits(), QueueingSpec(unaware_wait_s=2.0))
    life.node("a", length=1, wait_ms=1000)
    (first,) = life.tell(Asked(life.attempt, (AskRow(1, -1, "*", Resource(GB, 1), 1, True, SPARE),)))
    assert isinstance(first, Allocate)
    life.now = 6.0
    life.tell(PlaceLost(life.attempt.application_id, 1, 0.0))
    life.tell(ContainerEnded(first.container_id))
    life.tell(NodeLoaded(first.node_id, 1, 1000, 10))
    assert life.ask(1) == []
    life.now = 12.0
    (again,) = life.beat()
    assert again.waits_since == 0.0


def test_where_nodes_are_filled_they_wait_by_the_rule_of_all_that_waits() -> None:
    queues = ("near", 2, 9000), ("long", 3, 1000), ("short", 1, 3000)
    for spec, given_to in ((None, ["near"]), (QueueingSpec(), ["long"])):
        life = Life(OpportunisticLimits(), spec)
        for host, length, wait_ms in queues:
            life.node(host, length=length, wait_ms=wait_ms)
        assert life.ask(1, "near") == given_to, "Hadoop's goes to a wanted host however long it waits there"
    for interference, given_to in ((0.0, ["long"] * 2), (2.0, ["long", "short"])):
        life = Life(OpportunisticLimits(), QueueingSpec(affinity=Affinity(interference=interference)))
        for host, length, wait_ms in queues[1:]:
            life.node(host, length=length, wait_ms=wait_ms)
        assert life.ask(2) == given_to
    life = Life(OpportunisticLimits(), QueueingSpec())
    for host in "abc":
        life.node(host)
    assert life.ask(6) == ["a", "b", "c", "a", "b", "c"]


def test_idle_nodes_are_filled_evenly() -> None:
    life = Life(OpportunisticLimits())
    for host in "abc":
        life.node(host)
    assert life.ask(6) == ["a", "b", "c", "a", "b", "c"]


def test_full_silent_and_unwilling_nodes_are_left_out_until_they_have_room() -> None:
    life = Life(OpportunisticLimits(choice_s=0.0))
    full = life.node("full", length=2, capacity=2)
    life.node("unwilling", capacity=0)
    life.tell(NodeJoined(NodeId("silent", 1), "/r1", Resource(4 * GB, 8)))
    assert life.ask(1) == []
    assert life.scheduler.opportunistic.waits(life.attempt)
    life.tell(NodeLoaded(full, 1, -1, 2))
    (given,) = life.beat()
    assert (
        given.node_id == full and given.execution_type is SPARE and not life.scheduler.opportunistic.waits(life.attempt)
    )


def test_nodes_that_are_about_to_go_get_none() -> None:
    life = Life(OpportunisticLimits())
    going = life.node("a")
    life.node("b", length=5)
    life.tell(NodeDraining(going))
    assert life.ask(2) == ["b", "b"]
    life.tell(NodeResized(going, Resource(4 * GB, 8)))  # it stays after all
    life.now += 1
    assert life.ask(1) == ["a"]


def test_prefers_hosts_then_racks_then_anything() -> None:
    life = Life(OpportunisticLimits())
    life.node("a", length=5, rack="/r1")
    life.node("b", length=0, rack="/r2")
    decisions = life.tell(
        Asked(life.attempt, tuple(AskRow(1, -1, n, Resource(GB, 1), 1, True, SPARE) for n in ("a", "/r1", "*")))
    )
    assert [(d.node_id.host, d.locality) for d in decisions if isinstance(d, Allocate)] == [("a", Locality.NODE)]
    assert life.ask(1, "elsewhere", "/r2") == ["b"]
    assert life.ask(1, "elsewhere", "/nowhere", strict=True) == []


def test_bounded_per_heartbeat_and_to_the_best_nodes() -> None:
    life = Life(OpportunisticLimits(nodes_used=1, per_heartbeat=2))
    life.node("a", length=1, capacity=None)
    life.node("b")
    assert life.ask(5) == ["b", "b"]
    assert [len(life.beat()) for _ in range(3)] == [2, 1, 0]


def test_by_wait_time_leaves_out_nodes_that_do_not_know_theirs() -> None:
    life = Life(OpportunisticLimits(order=LoadOrder.QUEUE_WAIT_TIME))
    life.node("a")
    slow = life.node("b")
    life.tell(NodeLoaded(slow, 0, 5000, 10))
    assert life.ask(1) == ["b"]


def test_what_ended_or_left_is_forgotten() -> None:
    life = Life(OpportunisticLimits())
    node = life.node("a")
    life.ask(2)
    first, second = life.scheduler.opportunistic.containers
    life.tell(ContainerEnded(first))
    life.tell(NodeLeft(node))
    life.tell(NodeJoined(node, "/r1", Resource(4 * GB, 8), (second,)))
    assert list(life.scheduler.opportunistic.containers) == [second]
    life.tell(NodeLoaded(node, 20, -1, 10))
    life.ask(3)
    assert life.scheduler.opportunistic.waits(life.attempt)
    life.tell(AttemptEnded(life.attempt))
    assert not life.scheduler.opportunistic.waits(life.attempt)


def test_promoted_when_there_is_room_and_demoted_at_once() -> None:
    life = Life(OpportunisticLimits())
    life.node("a")
    life.ask(4, kind=ExecutionType.GUARANTEED)
    guaranteed = list(life.scheduler.view.containers)
    life.ask(1)
    (spare,) = life.scheduler.opportunistic.containers
    assert life.tell(UpdateAsked(spare, Resource(GB, 1), ExecutionType.GUARANTEED)) == []
    updates = life.tell(UpdateAsked(guaranteed[0], Resource(GB, 1), SPARE))
    # the demoted one's room goes to the one that has waited
    assert [(d.container_id, d.execution_type) for d in updates] == [  # type: ignore[union-attr]
        (guaranteed[0], SPARE),
        (spare, ExecutionType.GUARANTEED),
    ]
    assert set(life.scheduler.opportunistic.containers) == {guaranteed[0]}
    assert spare in life.scheduler.view.containers


def test_without_the_switch_everything_is_guaranteed() -> None:
    life = Life(None)
    life.node("a", gb=2)
    decisions = life.tell(Asked(life.attempt, (AskRow(1, -1, "*", Resource(GB, 1), 3, True, SPARE),)))
    assert [d.execution_type for d in decisions if isinstance(d, Allocate)] == [ExecutionType.GUARANTEED] * 2


@pytest.mark.parametrize(("lengths", "limit"), [([], 15), ([0, 0], 5), ([10, 10], 10), ([0, 20], 15), ([4, 8], 8)])
def test_queue_limit_is_the_mean_and_a_deviation_within_bounds(lengths: list[int], limit: int) -> None:
    life = Life(OpportunisticLimits())
    for number, length in enumerate(lengths):
        life.node(f"n{number}", length=length)
    assert life.scheduler.opportunistic.queue_limit(50.0) == limit


def test_queue_limit_is_worked_out_once_in_an_interval() -> None:
    life = Life(OpportunisticLimits(choice_s=2.0))
    life.node("a", length=0)
    opportunistic = life.scheduler.opportunistic
    assert opportunistic.queue_limit(50.0) == 5
    life.node("b", length=20)
    assert [opportunistic.queue_limit(at) for at in (51.9, 52.0)] == [5, 15]
    life.node("c", length=0)
    assert opportunistic.queue_limit(10.0) == 15, "the clock was set back: as good as an interval"


# ---- over the wire


async def loaded(node: FakeNode, **fields: int) -> server.NodeHeartbeatResponse:
    """A heartbeat that tells of the node's queue."""
    request = node.heartbeat()
    status = server.OpportunisticContainersStatus(**{"opport_queue_capacity": 5, **fields})  # type: ignore[arg-type]
    request.node_status.opportunistic_containers_status.CopyFrom(status)
    response = await node.tracker.call(ResourceTracker.nodeHeartbeat, request)
    node.response_id = response.response_id
    return response


def spare_ask(count: int) -> common.ResourceRequest:
    request = ask(count)
    request.execution_type_request.execution_type = common.OPPORTUNISTIC
    request.execution_type_request.enforce_execution_type = True
    return request


async def container_report(rm: Harness, container: common.Container) -> common.ContainerReport:
    request = pb.GetContainerReportRequest(container_id=container.id)
    return (await rm.client.call(Client.getContainerReport, request)).container_report


async def test_the_type_is_in_grant_token_report_and_completion() -> None:
    async with cluster(ENABLED) as rm:
        node = await rm.node(memory_mb=2048)
        _, master = await rm.running(node)
        limit = (await loaded(node)).container_queuing_limit
        assert (limit.max_queue_length, limit.max_queue_wait_time_in_ms) == (5, -1)
        response = await master.allocate(spare_ask(3))
        assert [c.execution_type for c in response.allocated_containers] == [common.OPPORTUNISTIC] * 3
        first = response.allocated_containers[0]
        token = server.ContainerTokenIdentifier.FromString(first.container_token.identifier)
        assert token.executionType == common.OPPORTUNISTIC and token.containerType == common.TASK
        assert response.limit.memory == 1024, "what they hold is still there for guaranteed ones"
        assert (await container_report(rm, first)).executionType == common.OPPORTUNISTIC
        node.run(convert.container_id(first.id))
        await node.beat()
        node.end(convert.container_id(first.id), -108, "Container Killed to make room for Guaranteed Container.")
        await node.beat()
        (end,) = (await master.allocate()).completed_container_statuses
        assert (end.exit_status, end.executionType) == (-108, common.OPPORTUNISTIC)


async def test_off_by_default_as_in_hadoop() -> None:
    async with cluster() as rm:
        node = await rm.node(memory_mb=2048)
        _, master = await rm.running(node)
        response = await master.allocate(spare_ask(3))
        assert [c.execution_type for c in response.allocated_containers] == [common.GUARANTEED]
        assert not (await loaded(node)).HasField("container_queuing_limit")


@pytest.mark.parametrize("is_enforced", [False, True])
@pytest.mark.parametrize("wanted", [common.GUARANTEED, common.OPPORTUNISTIC])
@pytest.mark.parametrize("settings", [ENABLED, {}])
async def test_asks_get_their_type_where_it_is_given_whether_they_enforce_it_or_not(
    is_enforced: bool, wanted: "common.ExecutionTypeProto", settings: dict[str, str]
) -> None:
    async with cluster(settings) as rm:
        node = await rm.node(memory_mb=4096)
        _, master = await rm.running(node)
        await loaded(node)
        request = ask(1)
        request.execution_type_request.execution_type = wanted
        request.execution_type_request.enforce_execution_type = is_enforced
        (granted,) = (await master.allocate(request)).allocated_containers
        assert granted.execution_type == (wanted if settings else common.GUARANTEED)
