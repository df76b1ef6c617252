"""Masters that go where others wait: what the scheduler reads out of a node's words, and what the node is told."""

import math

import pytest

from rm.node_queues.reports import MASTER_ROOMS
from rm.scheduler.events import AttemptEnded, NodeBeat, NodeDraining, NodeQueueReported, QueueingChanged
from rm.scheduler.why.reasons import why_waits
from tests.rm.rm_harness import ask, cluster
from tests.rm.rm_life import Life, named
from tests.rm.rm_queueing import ON, OURS, given
from tests.rm.rm_world import GB
from yaqd.model import ApplicationAttemptId, ContainerId, Resource
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto.protocols import ResourceTracker


class Keeping(Life):
    """With a node of four slots that keeps room for masters, and says which containers wait there."""

    def __init__(self) -> None:
        super().__init__()
        self.at = self.node("a")

    def says(self, waiting: int, *, free_gb: int | None = None) -> list[str]:
        """The last ones wait."""
        held = list(self.live)
        runs, waits = frozenset(held[: len(held) - waiting]), frozenset(held[len(held) - waiting :])
        free = Resource(free_gb * GB, free_gb) if free_gb is not None else None
        self.tell(NodeQueueReported(self.at, len(runs), waiting, 1.0, waits, runs, None, True, free))
        return named(self.tell(NodeBeat(self.at)))

    def to_come(self) -> dict[int, Resource]:
        return {app.id: room for app, room in self.scheduler.facts.masters_to_come(self.at).items()}

    def why(self) -> str:
        """What keeps the last application's master."""
        attempt = list(self.scheduler.view.applications.values())[-1].attempt
        assert attempt is not None
        return why_waits(self.scheduler.view, attempt, next(iter(attempt.asks))).reason

    def waits(self) -> int:
        queue = self.scheduler.node_queues.get(self.at)
        assert queue is not None
        return len(queue.waiting)


def full() -> Keeping:
    """Four run and two wait, which is the bound, when a master comes."""
    life = Keeping()
    assert life.ask(life.app(), 6) == ["a"] * 4 + ["a*"] * 2
    assert life.says(2) == [] and life.to_come() == {}
    life.app(has_master=True)
    assert life.says(2) == [] and life.to_come() == {2: Resource(GB, 1)}, "also where no more may wait"
    return life


def test_a_master_goes_where_what_runs_leaves_room() -> None:
    life = full()
    assert life.says(2, free_gb=0) == []
    assert life.end("a") == [], "as before nothing follows it into the queue"
    assert life.waits() == 2, "nor does what waits start in the room that is kept"
    assert life.says(2, free_gb=1) == ["a"]
    [master] = [one for one in life.live.values() if one.is_master]
    assert master.queued is None and "before what waits" in master.reason
    assert life.waits() == 2 and life.to_come() == {2: Resource(GB, 1)}, "until it is known to have started"
    life.live = dict(sorted(life.live.items(), key=lambda item: not item[1].is_master))
    life.says(2)
    assert life.to_come() == {}


def test_room_that_the_node_does_not_keep_is_nobodys() -> None:
    life = full()
    life.end("a")
    assert life.says(1) == [], "it has started one that waited"
    assert [life.end("a"), life.end("a")] == [[], ["a"]], "so the master comes where all that waited have started"


@pytest.mark.parametrize("goes", ["attempt", "node", "enabled"])
def test_no_room_is_kept_for_a_master_that_does_not_come(goes: str) -> None:
    life = full()
    attempt = list(life.scheduler.view.applications.values())[1].attempt
    assert attempt is not None
    if goes == "attempt":
        life.tell(AttemptEnded(attempt.id))
        assert life.to_come() == {} and not life.scheduler.view.masters_wanted
    elif goes == "node":
        life.tell(NodeDraining(life.at))
        life.now += 6.0  # long enough for a node to be reserved
        assert life.says(2, free_gb=1) == [] and not life.scheduler.view.holds.reserved
        assert life.says(2, free_gb=1) == []
    else:
        life.tell(NodeQueueReported(life.at, 4, 2, 1.0))
        assert life.to_come() == {}, "the node does not keep any"


def test_lies_of_free_room_are_bounded_by_the_node() -> None:
    life = full()
    life.tell(NodeQueueReported(life.at, 4, 2, 1.0, None, frozenset(), None, True, Resource(1 << 30, 1 << 20)))
    queue = life.scheduler.node_queues.get(life.at)
    assert queue is not None and queue.room == Resource(4 * GB, 4)


def test_a_reserved_node_gives_its_room_to_the_master_as_well() -> None:
    life = full()
    life.now += 6.0
    assert life.says(2, free_gb=0) == []
    assert life.scheduler.view.holds.reserved and life.to_come() == {2: Resource(GB, 1)}
    held = "a:1 is held for it: what ends there leaves room for it, "
    said = ((7.4, held + "in 7 s by"), (math.inf, held + "where nobody knows"))
    for room_s, words in said:
        life.tell(NodeQueueReported(life.at, 4, 2, math.inf, None, frozenset(), None, True, Resource(), room_s))
        assert words in life.why()
    life.end("a")
    assert life.says(2, free_gb=1) == ["a"]
    assert not life.scheduler.view.holds.reserved


def test_where_queues_are_turned_off_a_reserved_node_gives_a_master_free_room_alone() -> None:
    life = full()
    life.now += 6.0
    assert life.says(2, free_gb=0) == [] and life.scheduler.view.holds.reserved
    life.end("a")
    runs = frozenset(list(life.live)[:3])
    life.tell(NodeQueueReported(life.at, 3, 2, 1.0, None, runs, None, True, Resource(GB, 1)))
    life.tell(QueueingChanged(None))
    assert named(life.tell(NodeBeat(life.at))) == [], "what waited has been charged for"
    assert life.to_come() == {}
    assert [life.end("a"), life.end("a")] == [[], ["a"]]


@pytest.mark.parametrize(
    ("room_ms", "room_s"), [(2500, 2.5), (0, 0.0), (None, None), (-1, math.inf), (-7, math.inf), (1 << 62, math.inf)]
)
async def test_a_node_says_when_room_is_there(room_ms: int | None, room_s: float | None) -> None:
    async with cluster(ON) as rm:
        node = await rm.node(memory_mb=4096, vcores=4, capabilities=(*OURS, MASTER_ROOMS))
        request = node.heartbeat()
        said = request.node_status.yaq_queue
        said.running, said.queued, said.wait_ms = 4, 3, 500
        convert.put_resource(said.free, Resource(1024, 1))
        if room_ms is not None:
            said.room_ms = room_ms
        await node.tracker.call(ResourceTracker.nodeHeartbeat, request)
        [queue] = rm.manager.scheduler.node_queues.all()
        assert queue.room_s == room_s


async def test_a_node_is_told_of_masters_to_come_again_where_it_keeps_no_room() -> None:
    async with cluster(ON) as rm:
        node = await rm.node(memory_mb=4096, vcores=4, capabilities=(*OURS, MASTER_ROOMS))
        _, master = await rm.running(node, application_name="sleep")
        containers = given(await master.allocate(ask(9)))
        for container_id in containers:
            node.run(container_id)

        async def told(free_mb: int | None = None) -> list[tuple[int, int]] | None:
            request = node.heartbeat()
            said = request.node_status.yaq_queue
            said.running, said.queued, said.wait_ms = 4, 3, 500
            if free_mb is not None:
                convert.put_resource(said.free, Resource(free_mb, free_mb // 1024))
            for status in request.node_status.containersStatuses:
                waits = convert.container_id(status.container_id) in containers[3:]
                status.container_sub_state = common.CSS_SCHEDULED if waits else common.CSS_RUNNING
            response = await node.tracker.call(ResourceTracker.nodeHeartbeat, request)
            node.response_id = response.response_id
            if not response.yaq_orders.HasField("masters"):
                return None
            return [(one.application_id.id, one.resource.memory) for one in response.yaq_orders.masters.rooms]

        assert await told() is None
        second = await rm.submit()
        await rm.until(lambda: bool(rm.manager.scheduler.view.masters_wanted))
        assert await told() == [(second.id, 1024)]
        assert await told(free_mb=0) is None, "it has been told and does it"
        assert await told() == [(second.id, 1024)], "it does not"
        node.end(containers[0], 0)
        assert await told(free_mb=1024) is None, "its room is kept until it has started"
        await rm.launched(second, node)
        node.run(ContainerId.make(ApplicationAttemptId(second, 1), 1))
        assert await told() == [], "the master runs"
