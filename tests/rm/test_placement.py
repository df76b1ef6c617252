"""Scheduling requests with allocation tags: beside which others containers are put, and what is refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rm.scheduler.decisions import Allocate
from rm.scheduler.events import Asked, ContainerEnded
from tests.examples import examples
from tests.rm.rm_harness import FakeMaster, FakeNode, Harness, ask, cluster
from tests.rm.rm_world import GB, SLOT, World, hosts
from yaqd.ipc.errors import InvalidResourceRequest, YarnError
from yaqd.model import ApplicationAttemptId, Resource
from yaqd.policies.asks.placement import (
    ALL,
    NOT_SELF,
    SELF,
    Both,
    Constraint,
    ConstraintScope,
    Either,
    Placement,
    Single,
    Target,
)
from yaqd.policies.asks.rows import AskRow
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationMasterProtocol


class Cluster(World):
    """Two racks of two nodes with room for ten containers each."""

    def __init__(self) -> None:
        super().__init__()
        self.racks = {"a": "/1", "b": "/1", "c": "/2", "d": "/2"}
        self.nodes = [self.join(host, SLOT * 10, rack=rack) for host, rack in self.racks.items()]

    def app(self, *tags: str) -> ApplicationAttemptId:
        return self.begin(tags=tags)

    def put(
        self, app: ApplicationAttemptId, tag: str, count: int, constraint: Constraint | None = None, key: int = 1
    ) -> list[Allocate]:
        placement = Placement((tag,), constraint)
        row = AskRow(1, key, "*", Resource(GB, 1), count, placement=placement)
        return self.asks(app, row)

    def all_beat(self) -> list[Allocate]:
        return self.beats(*self.nodes)


def beside(tag: str, scope: ConstraintScope = ConstraintScope.NODE, namespace: str = SELF) -> Constraint:
    return Single(scope, 1, None, (Target(namespace, (tag,)),))


def away_from(tag: str, scope: ConstraintScope = ConstraintScope.NODE, namespace: str = SELF) -> Constraint:
    return Single(scope, 0, 0, (Target(namespace, (tag,)),))


def at_most(tag: str, count: int, scope: ConstraintScope = ConstraintScope.NODE) -> Constraint:
    """So many before it, so one more in all."""
    return Single(scope, 0, count, (Target(SELF, (tag,)),))


def test_anti_affinity_to_itself_spreads_one_to_a_node_and_keeps_the_rest() -> None:
    c = Cluster()
    app = c.app()
    given = c.put(app, "db", 6, away_from("db"))
    assert sorted(hosts(given)) == ["a", "b", "c", "d"]
    assert {d.tags for d in given} == {("db",)}
    assert c.all_beat() == [], "two wait"
    (later,) = [d for d in c.tell(ContainerEnded(given[0].container_id)) if isinstance(d, Allocate)]
    assert later.node_id == given[0].node_id


def test_anti_affinity_between_racks() -> None:
    c = Cluster()
    given = c.put(c.app(), "db", 6, away_from("db", ConstraintScope.RACK))
    assert sorted(c.racks[h] for h in hosts(given)) == ["/1", "/2"]


def test_affinity_follows_what_is_there() -> None:
    c = Cluster()
    app = c.app()
    assert c.put(app, "web", 3, beside("db"), key=2) == [], "there is nothing yet"
    (db,) = c.put(app, "db", 1)
    assert set(hosts(c.all_beat())) == {db.node_id.host}
    near = c.put(app, "cache", 12, beside("db", ConstraintScope.RACK), key=3)
    assert {c.racks[h] for h in hosts(near)} == {c.racks[db.node_id.host]}


def test_cardinality() -> None:
    c = Cluster()
    given = c.put(c.app(), "w", 20, at_most("w", 2))
    assert sorted(hosts(given)) == [h for h in "abcd" for _ in range(3)]


def test_and_or_and_what_is_never_true() -> None:
    c = Cluster()
    app = c.app()
    (x,) = c.put(app, "x", 1)
    (y,) = c.put(app, "y", 1, away_from("x"), key=2)
    both = c.put(app, "p", 4, Both((away_from("x"), away_from("y"), away_from("p"))), key=3)
    assert sorted(hosts(both)) == sorted({"a", "b", "c", "d"} - {x.node_id.host, y.node_id.host})
    either = c.put(app, "q", 4, Either((beside("x"), beside("y"))), key=4)
    assert set(hosts(either)) <= {x.node_id.host, y.node_id.host} and len(either) == 4
    assert c.put(app, "r", 1, Either(()), key=5) == []


def test_whose_containers_count() -> None:
    c = Cluster()
    mine, other = c.app(), c.app("blue")
    (theirs,) = c.put(other, "db", 1)
    assert c.put(mine, "a", 1, beside("db"), key=1) == [], "its own only"
    for number, namespace in enumerate((ALL, NOT_SELF, "app-tag/blue", f"app-id/{other.application_id}"), start=2):
        assert hosts(c.put(mine, "a", 1, beside("db", namespace=namespace), key=number)) == [theirs.node_id.host]
    for number, namespace in enumerate(("app-tag/red", "app-id/application_1_0009", "?"), start=10):
        assert c.put(mine, "a", 1, beside("db", namespace=namespace), key=number) == [], namespace
    assert c.put(other, "a", 1, beside("db", namespace=NOT_SELF)) == []


def test_constrained_asks_that_wait_keep_nobody_back() -> None:
    c = Cluster()
    app = c.app()
    for key in range(100):
        c.put(app, "db", 1, away_from("db"), key=key)
    row = AskRow(2, -1, "*", Resource(GB, 1), 50)
    assert len([d for d in c.tell(Asked(app, (row,))) if isinstance(d, Allocate)]) == 36
    ended = next(i for i, held in c.scheduler.view.containers.items() if held.priority == 2)
    (freed,) = [d for d in c.tell(ContainerEnded(ended)) if isinstance(d, Allocate)]
    assert freed.priority == 2


TAGS = ("x", "y")
CONSTRAINTS = st.recursive(
    st.builds(
        lambda scope, low, more, tag: Single(scope, low, None if more is None else low + more, (Target(SELF, (tag,)),)),
        st.sampled_from(list(ConstraintScope)),
        st.integers(0, 2),
        st.none() | st.integers(0, 2),
        st.sampled_from(TAGS),
    ),
    lambda inner: (
        st.builds(Both, st.lists(inner, max_size=2).map(tuple))
        | st.builds(Either, st.lists(inner, max_size=2).map(tuple))
    ),
    max_leaves=4,
)


@settings(max_examples=examples(60), deadline=None)
@given(
    asked=st.lists(st.tuples(st.sampled_from(TAGS), st.integers(1, 6), st.none() | CONSTRAINTS), max_size=5),
    endings=st.lists(st.integers(0, 1000), max_size=5),
)
def test_each_container_satisfied_its_constraint_when_it_was_placed(
    asked: list[tuple[str, int, Constraint | None]], endings: list[int]
) -> None:
    c = Cluster()
    app = c.app()
    wanted: dict[int, Constraint | None] = {}
    live: dict[Allocate, None] = {}

    def count(tag: str, host: str, scope: ConstraintScope) -> int:
        return sum(
            tag in d.tags
            and (d.node_id.host == host or (scope is ConstraintScope.RACK and c.racks[d.node_id.host] == c.racks[host]))
            for d in live
        )

    def holds(constraint: Constraint | None, host: str) -> bool:
        match constraint:
            case Both(children):
                return all(holds(child, host) for child in children)
            case Either(children):
                return any(holds(child, host) for child in children)
            case Single(scope, low, high, ((Target(_, (tag,))),)):
                number = count(tag, host, scope)
                return number >= low and (high is None or number <= high)
        return True

    def check(placed: list[Allocate]) -> None:
        for d in placed:
            assert holds(wanted[d.allocation_request_id], d.node_id.host)
            live[d] = None

    for key, (tag, number, constraint) in enumerate(asked):
        wanted[key] = constraint
        check(c.put(app, tag, number, constraint, key=key))
    check(c.all_beat())
    for pick in endings:
        if live:
            ended = list(live)[pick % len(live)]
            del live[ended]
            check([d for d in c.tell(ContainerEnded(ended.container_id)) if isinstance(d, Allocate)])


# ---- on the wire

HANDLER = "yarn.resourcemanager.placement-constraints.handler"


def simple(tag: str, low: int, high: int, scope: str = "node") -> common.PlacementConstraint:
    message = common.PlacementConstraint()
    message.simpleConstraint.scope = scope
    message.simpleConstraint.minCardinality, message.simpleConstraint.maxCardinality = low, high
    message.simpleConstraint.targetExpressions.add(targetType=common.ALLOCATION_TAG, targetValues=[tag])
    return message


def request(
    tag: str, count: int, constraint: common.PlacementConstraint | None = None, request_id: int = 1, memory_mb: int = GB
) -> common.SchedulingRequest:
    message = common.SchedulingRequest(allocationRequestId=request_id, allocationTags=[tag])
    message.priority.priority = 1
    message.resourceSizing.numAllocations = count
    message.resourceSizing.resources.memory, message.resourceSizing.resources.virtual_cores = memory_mb, 1
    if constraint is not None:
        message.placementConstraint.CopyFrom(constraint)
    return message


async def started(rm: Harness, node: FakeNode) -> FakeMaster:
    return await rm.launched(await rm.submit(), node)


async def register(master: FakeMaster, *constraints: tuple[str, common.PlacementConstraint]) -> None:
    message = pb.RegisterApplicationMasterRequest(host="am", rpc_port=1)
    for tag, constraint in constraints:
        message.placement_constraints.add(allocation_tags=[tag], placement_constraint=constraint)
    await master.rpc.call(ApplicationMasterProtocol.registerApplicationMaster, message)


async def allocate(
    master: FakeMaster, *requests: common.SchedulingRequest, asks: tuple[common.ResourceRequest, ...] = ()
) -> pb.AllocateResponse:
    message = pb.AllocateRequest(response_id=master.response_id, scheduling_requests=requests, ask=asks)
    response = await master.rpc.call(ApplicationMasterProtocol.allocate, message)
    master.response_id = response.response_id
    return response


async def test_disabled_refuses_both_in_hadoops_words() -> None:
    async with cluster() as rm:
        node = await rm.node()
        master = await started(rm, node)
        key = "yarn.resourcemanager.placement-constraints.handler"
        with pytest.raises(
            YarnError, match=f"placement constraints map in Register.*, but the configured {key} cannot"
        ):
            await register(master, ("foo", simple("foo", 0, 0)))
        await register(master)
        with pytest.raises(YarnError, match=r"SchedulingRequest in AllocateRequest for application=.*this allocate"):
            await allocate(master, request("foo", 1))


async def test_scheduler_places_by_the_registered_and_the_requests_own_constraint() -> None:
    async with cluster({HANDLER: "scheduler"}) as rm:
        first = await rm.node(host="127.0.0.1")
        master = await started(rm, first)
        await rm.node(host="127.0.0.2")
        await register(master, ("foo", simple("foo", 0, 0)))
        response = await allocate(master, request("foo", 1, request_id=1), request("foo", 2, request_id=2))
        assert len({c.nodeId.host for c in response.allocated_containers}) == 2
        assert [list(c.allocation_tags) for c in response.allocated_containers] == [["foo"], ["foo"]]
        home = response.allocated_containers[0].nodeId.host
        near = await allocate(master, request("bar", 1, simple("foo", 1, 2**31 - 1), request_id=3))
        assert len(near.allocated_containers) == 1
        assert near.allocated_containers[0].allocation_request_id == 3
        for _ in range(5):
            response = await allocate(master)
        assert not response.rejected_scheduling_requests, "the scheduler keeps the third"
        third = await rm.node(host="127.0.0.3")
        assert [c.nodeId.port for c in (await allocate(master)).allocated_containers] == [third.id.port]
        assert home


async def test_processor_gives_back_what_finds_no_place() -> None:
    async with cluster({HANDLER: "placement-processor"}) as rm:
        node = await rm.node()
        master = await started(rm, node)
        await register(master)
        response = await allocate(master, request("foo", 3, simple("foo", 0, 0)))
        assert len(response.allocated_containers) == 1
        assert not (await allocate(master)).rejected_scheduling_requests
        (rejected,) = (await allocate(master)).rejected_scheduling_requests
        assert rejected.reason == common.RRP_COULD_NOT_PLACE_ON_NODE
        assert rejected.request.resourceSizing.numAllocations == 2
        assert rejected.request.allocationRequestId == 1
        assert not (await allocate(master)).rejected_scheduling_requests, "once"
        await rm.node()
        assert not (await allocate(master)).allocated_containers, "it is not wanted any more"


async def test_bad_requests_are_refused_and_change_nothing() -> None:
    async with cluster({HANDLER: "scheduler"}) as rm:
        node = await rm.node()
        master = await started(rm, node)
        await register(master)
        with pytest.raises(YarnError, match="No ResourceSizing found in the scheduling request"):
            await allocate(master, common.SchedulingRequest(allocationRequestId=1))
        opportunistic = request("foo", 1)
        opportunistic.executionType.execution_type = common.OPPORTUNISTIC
        with pytest.raises(YarnError, match="Only GUARANTEED execution type is supported"):
            await allocate(master, opportunistic)
        with pytest.raises(YarnError, match="numAllocation in ResourceSizing field must be >= 0"):
            await allocate(master, request("foo", -1))
        with pytest.raises(InvalidResourceRequest):
            await allocate(master, request("foo", 1, memory_mb=100 * GB))
        never = request("foo", 2, simple("bar", 1, 5))
        await allocate(master, never)
        with pytest.raises(YarnError, match="we only allows changing numAllocations"):
            await allocate(master, request("foo", 1, simple("bar", 0, 0)))
        with pytest.raises(YarnError, match="there exists a SchedulingRequest with the same scheduler key"):
            await allocate(master, asks=(ask(1, request_id=1),))
        never.resourceSizing.numAllocations = 0
        await allocate(master, never)
        response = await allocate(master, request("foo", 1, simple("bar", 0, 0)))
        assert len(response.allocated_containers) == 1, "cancelled, then asked anew"


async def test_deep_and_strange_constraints_do_no_harm() -> None:
    async with cluster({HANDLER: "scheduler"}) as rm:
        node = await rm.node()
        master = await started(rm, node)
        await register(master)
        wide = common.PlacementConstraint()
        wide.compositeConstraint.compositeType = common.AND
        for _ in range(1001):
            wide.compositeConstraint.childConstraints.append(simple("x", 0, 0))
        with pytest.raises(YarnError, match="more than 1000 parts"):
            await allocate(master, request("foo", 1, wide))
        delayed = common.PlacementConstraint()
        delayed.compositeConstraint.compositeType = common.DELAYED_OR
        assert not (await allocate(master, request("foo", 1, delayed, 7))).allocated_containers
        attribute = simple("x", 0, 0)
        attribute.simpleConstraint.targetExpressions.add(
            targetType=common.NODE_ATTRIBUTE, targetKey="os", targetValues=["a"]
        )
        attribute.simpleConstraint.attributeOpCode = common.EQ
        assert not (await allocate(master, request("foo", 1, attribute, 8))).allocated_containers
        attribute.simpleConstraint.attributeOpCode = common.NE
        assert len((await allocate(master, request("foo", 1, attribute, 9))).allocated_containers) == 1
