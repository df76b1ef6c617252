"""Room that a node keeps for application masters that are to come, from what waits there."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nm.daemon import NodeManager
from nm.node_queue import Ended, Event, MastersExpected, Preempt
from nm.node_queue_wire import NodeQueueCommands
from tests.nm.nm_cluster import FakeResourceManager, Master, application, container_id, launch_context
from tests.nm.nm_ordered_queue import ONE, SLOT, THREE, TWO, TWO_SLOTS, order, queue_of, run, settings
from tests.nm.nm_queue_life import OPPORTUNISTIC, Watcher, came, durations, events, numbers, queue, started
from yaqd.model import ContainerSubState, Resource
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server

#: no core: by memory alone
ROOM = Resource(100, 1)


def expected(*apps: int, room: Resource = ROOM) -> MastersExpected:
    return MastersExpected({application(app): room for app in apps})


def test_what_ends_next_is_followed_by_nothing_until_the_master_has_come() -> None:
    node = queue(2)
    for number in range(1, 6):
        node.handle(came(number, 5), 0)
    assert node.free_for_masters() is None
    assert node.handle(expected(9), 1) == [] and node.free_for_masters() == Resource(0, 98)
    assert node.handle(Ended(container_id(1)), 2) == [], "two wait, and none of them starts"
    assert node.free_for_masters() == Resource(100, 99)
    assert started(node.handle(Ended(container_id(2)), 3)) == [3], "beside the room that is kept"
    assert started(node.handle(came(1, app=9, is_master=True), 4)) == [1]
    assert node.free_for_masters() is None and node.statistics().used == Resource(200, 2)
    assert node.handle(expected(9), 5) == [], "told late: it is here, and nothing is kept for it"
    assert started(node.handle(Ended(container_id(3)), 6)) == [4]


def test_the_only_slot_of_a_node_stays_free_for_a_master_and_is_given_up_with_it() -> None:
    node = queue()
    for number in (1, 2):
        node.handle(came(number, 5), 0)
    node.handle(expected(9), 1)
    assert node.handle(Ended(container_id(1)), 2) == [] and node.statistics().running == 0
    assert node.handle(came(3, 1), 2) == [], "nor does what comes now"
    assert started(node.handle(MastersExpected(), 3)) == [3]


def test_a_newcomer_is_expected_to_start_behind_the_master() -> None:
    node = queue(2)
    for number, estimate in enumerate((5, 9, 7), start=1):
        node.handle(came(number, estimate), 0)
    assert (node.snapshot(0).waiting[0].expected_s, node.snapshot(0).wait_s) == (5, 9)
    node.handle(expected(9), 0)
    assert (node.snapshot(0).waiting[0].expected_s, node.snapshot(0).wait_s) == (9, 16)


def test_it_says_when_the_room_is_there_whatever_a_newcomer_would_wait() -> None:
    node = queue(2)
    node.handle(came(1, app=8, is_master=True), 0)
    for number, estimate in enumerate((5, 9), start=1):
        node.handle(came(number, estimate), 0)
    node.handle(expected(9), 0)
    assert node.snapshot(1).wait_s == math.inf, "two masters fill the node: nothing starts behind them"
    assert node.room_comes(1) == 4
    node.handle(expected(9, room=Resource(150, 1)), 1)
    assert node.room_comes(1) == math.inf
    node.handle(expected(9), 1)
    assert node.room_comes(5.5) == 0, "it should have ended"
    assert node.room_comes(15.5) == math.inf, "nobody believes that any more"
    node.handle(Ended(container_id(1)), 16)
    assert node.room_comes(16) == 0 and node.snapshot(16).wait_s == math.inf


def test_opportunistic_ones_count_as_room_that_is_there() -> None:
    node = queue(2)
    node.handle(came(1, 5), 0)
    node.handle(came(2, 50, kind=OPPORTUNISTIC), 0)
    node.handle(expected(9), 0)
    assert node.room_comes(0) == 0
    node.handle(expected(8, 9), 0)
    assert node.room_comes(0) == 5


def test_opportunistic_ones_do_not_start_in_a_masters_room_and_those_that_run_make_room_for_it() -> None:
    node = queue(2)
    node.handle(came(1, 5), 0)
    assert started(node.handle(came(2, 5, kind=OPPORTUNISTIC), 0)) == [2]
    node.handle(came(3, 5, kind=OPPORTUNISTIC), 0)
    node.handle(expected(9), 1)
    assert node.free_for_masters() == Resource(100, 99), "as good as free"
    assert node.handle(Ended(container_id(2)), 2) == []
    node.handle(MastersExpected(), 3)
    node.handle(expected(9), 3)
    decided = node.handle(came(1, app=9, is_master=True), 4)
    assert [type(d) for d in decided if isinstance(d, Preempt)] == [Preempt]


rooms = st.dictionaries(st.integers(1, 3).map(application), st.integers(0, 200).map(lambda m: Resource(m, 1)))
more = st.one_of(events, st.builds(lambda n: came(n, 1.0, app=2, is_master=True), numbers), rooms.map(MastersExpected))


@given(st.lists(st.tuples(more, st.integers(0, 3)), max_size=60), durations)
def test_whatever_is_kept_nothing_is_lost_or_doubled_and_no_master_waits(
    sequence: list[tuple[Event, int]], _: float | None
) -> None:
    watcher, now = Watcher(), 100.0
    for event, pause in sequence:
        now += pause
        watcher.see(event, now)
    watcher.see(MastersExpected(), now)
    waiting = [a.resource for a, _ in watcher.waiting.values()]
    room = watcher.capacity - watcher.used()
    assert not waiting or watcher.running or not any(one.fits_in(room) for one in waiting)


def test_an_absurd_order_keeps_no_more_than_it_says() -> None:
    message = server.NodeQueueOrders()
    room = message.masters.rooms.add()
    room.application_id.CopyFrom(convert.application_id_pb(application(9)))
    convert.put_resource(room.resource, Resource(-5, -5))
    [event] = NodeQueueCommands(max_length=9).events(message)
    node = queue()
    node.handle(event, 0)
    assert started(node.handle(came(1, 5), 0)) == [1], "what is below nothing is nothing"


@pytest.fixture
async def node(rm: FakeResourceManager, start_node: Callable[..., Any]) -> NodeManager:
    rm.capabilities = ["counts-vcores", "yaq-queue"]
    node: NodeManager = await start_node(TWO_SLOTS)
    return node


async def test_a_node_says_what_is_free_for_the_master_and_starts_it_before_what_waits(
    rm: FakeResourceManager, node: NodeManager, master: Master
) -> None:
    assert "master-rooms" in rm.registrations[0].yaq_capabilities.understands
    await order(rm, settings())
    for one in (ONE, TWO, THREE):
        await run(master, one, "sleep 1000")
    await rm.until(lambda: queue_of(rm).queued == 1)
    assert not queue_of(rm).HasField("free")
    orders = server.NodeQueueOrders()
    room = orders.masters.rooms.add()
    room.application_id.CopyFrom(convert.application_id_pb(application(9)))
    convert.put_resource(room.resource, SLOT)
    await order(rm, orders)
    assert queue_of(rm).HasField("free") and queue_of(rm).free.memory == 0
    assert queue_of(rm).room_ms == -1, "nobody knows how long they run"
    await master.stop(ONE)
    await rm.end_of(ONE)
    await rm.until(lambda: queue_of(rm).free.memory == SLOT.memory_mb)
    assert queue_of(rm).room_ms == 0
    assert rm.sub_state(THREE) == ContainerSubState.SCHEDULED, "it would have started"
    arrives, other = container_id(1, 9), Master(rm, node, app=9)
    fields = {"resource": SLOT, "containerType": common.APPLICATION_MASTER}
    await other.run(arrives, launch_context("sleep 1000"), **fields)
    await rm.until(lambda: rm.sub_state(arrives) == ContainerSubState.RUNNING)
    assert rm.sub_state(THREE) == ContainerSubState.SCHEDULED and not queue_of(rm).HasField("free")
    await master.stop(TWO)
    await rm.until(lambda: rm.sub_state(THREE) == ContainerSubState.RUNNING)
    await other.client.close()


async def keep_room(rm: FakeResourceManager, node: NodeManager, master: Master) -> None:
    await order(rm, settings())
    await run(master, ONE, "sleep 1000", resource=Resource(1000, 1))
    await run(master, TWO, "sleep 1000")
    orders = server.NodeQueueOrders()
    room = orders.masters.rooms.add()
    room.application_id.CopyFrom(convert.application_id_pb(application(9)))
    convert.put_resource(room.resource, Resource(1000, 1))
    await order(rm, orders)
    assert node.runtime.free_for_masters() is not None


async def test_a_node_that_hears_nothing_more_keeps_no_room(
    rm: FakeResourceManager, node: NodeManager, master: Master
) -> None:
    await keep_room(rm, node, master)

    def fails(_: server.NodeHeartbeatResponse) -> None:
        rm.orders.clear()
        raise OSError("no answer")

    rm.orders.append(fails)
    await rm.until(lambda: node.runtime.free_for_masters() is None)
    assert node.runtime.queue_settings.enabled, "it goes on as it was told otherwise"


async def test_a_node_that_registers_anew_keeps_no_room(
    rm: FakeResourceManager, node: NodeManager, master: Master
) -> None:
    """It may be with another ResourceManager, which orders nothing."""
    await keep_room(rm, node, master)
    registered = len(rm.registrations)
    rm.orders.append(lambda response: setattr(response, "nodeAction", server.RESYNC))
    await rm.until(lambda: len(rm.registrations) > registered)
    await rm.until(lambda: node.runtime.free_for_masters() is None)
