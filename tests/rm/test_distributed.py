"""Proxies at the nodes: what they are told of the nodes, and how what they place is booked."""

import pytest

from nm.heartbeat import YAQ_QUEUE
from rm.daemon import ResourceManager
from rm.node_queues import reports
from tests.rm.rm_harness import LOOPBACK, Harness, ManualClock, ask, cluster, configuration
from tests.rm.rm_proxied import ENABLED, OPPORTUNISTIC, Proxy, loaded, placed, proxied
from yaqd.config import ConfigError
from yaqd.ipc.errors import ApplicationMasterNotRegistered, InvalidApplicationMasterRequest, NoSuchProtocol
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId, NodeId, Resource
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Client


async def states(rm: Harness, app_id: ApplicationId) -> dict[int, tuple[int, int]]:
    """Execution type and state of each container that the ResourceManager knows, by the number of its id."""
    attempt = convert.attempt_id_pb(ApplicationAttemptId(app_id, 1))
    response = await rm.client.call(Client.getContainers, pb.GetContainersRequest(application_attempt_id=attempt))
    return {c.container_id.id: (c.executionType, c.container_state) for c in response.containers}


async def test_registration_says_from_where_to_count_and_where_to_place() -> None:
    async with cluster(ENABLED) as rm:
        node = await rm.node()
        await loaded(node, queued=2)
        _, answer = await proxied(rm, node)
        assert answer.container_id_start == 0 and answer.container_token_expiry_interval == 600_000
        assert not answer.HasField("incr_container_resource")
        assert (answer.min_container_resource.memory, answer.max_container_resource.memory) == (1024, 8192)
        assert answer.register_response.queue == "root.default"
        (published,) = answer.nodes_for_scheduling
        assert convert.node_id(published.node_id) == node.id and published.rack_name == "/default-rack"
        assert published.http_address == f"{LOOPBACK}:8042" and published.node_partition == ""
        assert not published.HasField("yaq_free"), "a stock proxy sees nothing unknown"


async def test_what_a_proxy_places_is_booked_run_and_ended_like_any_other() -> None:
    async with cluster(ENABLED) as rm:
        node = await rm.node(memory_mb=2048)
        await loaded(node)
        proxy, _ = await proxied(rm, node)
        answer = await proxy.allocate(*(placed(proxy.app, -n, node.id) for n in (1, 2, 3)), asks=(ask(1),))
        given = answer.allocate_response.allocated_containers
        assert [c.id.id for c in given] == [2], "the guaranteed one alone: its room was not touched"
        known = await states(rm, proxy.app)
        assert {n: kind for n, (kind, _) in known.items() if n < 0} == dict.fromkeys((-1, -2, -3), common.OPPORTUNISTIC)
        container_id = ContainerId(ApplicationAttemptId(proxy.app, 1), -1)
        assert str(container_id).endswith("_01_1099511627775")
        node.run(container_id)
        await node.beat()
        node.end(container_id, -108, "Opportunistic container queue is full.")
        await node.beat()
        released = placed(proxy.app, -2, node.id).id
        ends = (await proxy.allocate(release=(released,))).allocate_response.completed_container_statuses
        assert {(s.container_id.id, s.exit_status, s.executionType) for s in ends} == {
            (-1, -108, common.OPPORTUNISTIC),
            (-2, -100, common.OPPORTUNISTIC),
        }


async def test_a_repeated_request_books_nothing_twice_and_used_ids_are_worth_nothing() -> None:
    async with cluster(ENABLED) as rm:
        node = await rm.node()
        await loaded(node)
        proxy, _ = await proxied(rm, node)
        first = await proxy.allocate(placed(proxy.app, -2, node.id))
        again = await proxy.allocate(placed(proxy.app, -2, node.id), repeat=True)
        assert again.allocate_response == first.allocate_response
        await proxy.allocate(release=(placed(proxy.app, -2, node.id).id,))
        await proxy.allocate(placed(proxy.app, -2, node.id), placed(proxy.app, -1, node.id))
        assert -1 not in await states(rm, proxy.app)
        assert len(rm.manager.scheduler.opportunistic.containers) == 0


@pytest.mark.parametrize("wrong", ["upward", "far below", "other attempt"])
async def test_ids_outside_the_range_are_refused(wrong: str) -> None:
    async with cluster(ENABLED) as rm:
        node = await rm.node()
        await loaded(node)
        proxy, _ = await proxied(rm, node)
        container = placed(proxy.app, {"upward": 7, "far below": -(1 << 40)}.get(wrong, -1), node.id)
        if wrong == "other attempt":
            container.id.app_attempt_id.attemptId = 2
        with pytest.raises(InvalidApplicationMasterRequest):
            await proxy.allocate(placed(proxy.app, -1, node.id), container)
        assert not rm.manager.scheduler.opportunistic.containers


async def test_what_cannot_be_booked_comes_back_ended() -> None:
    async with cluster(ENABLED) as rm:
        node = await rm.node()
        await loaded(node)
        proxy, _ = await proxied(rm, node)
        answer = await proxy.allocate(
            placed(proxy.app, -1, NodeId("nowhere", 1)),
            placed(proxy.app, -2, node.id, memory_mb=1 << 40),
            placed(proxy.app, -3, node.id, memory_mb=-5),
            placed(proxy.app, -4, node.id, kind=common.GUARANTEED),
            placed(proxy.app, -5, node.id),
        )
        ends = answer.allocate_response.completed_container_statuses
        assert {(s.container_id.id, s.exit_status) for s in ends} == {(n, -100) for n in (-1, -2, -3, -4)}
        assert [c.id for c in rm.manager.scheduler.opportunistic.containers] == [-5]


async def test_nothing_is_booked_before_the_master_has_registered() -> None:
    async with cluster(ENABLED) as rm:
        node = await rm.node()
        await loaded(node)
        app_id = await rm.submit()
        proxy = Proxy(await rm.launched(app_id, node), app_id)
        with pytest.raises(ApplicationMasterNotRegistered):
            await proxy.allocate(placed(app_id, -1, node.id))
        assert not rm.manager.scheduler.opportunistic.containers


@pytest.mark.parametrize("queues", ["true", "false"])
async def test_nodes_of_ours_are_told_waits_and_room_with_what_was_booked_in_them(queues: str) -> None:
    async with cluster({**ENABLED, "yaq.queue.enabled": queues}) as rm:
        node = await rm.node(memory_mb=3072, capabilities=("yaq-queue",))
        await loaded(node, queued=0, wait_ms=0)
        proxy, answer = await proxied(rm, node)
        (ours,) = answer.nodes_for_scheduling
        assert (ours.yaq_free.memory, ours.yaq_queued, ours.yaq_queue_max, ours.yaq_reads_tasks) == (2048, 0, 5, True)
        stock = await rm.node(memory_mb=4096, host="127.0.0.2")
        await loaded(node, queued=1, wait_ms=6000)
        await loaded(stock, queued=1)
        booked = [placed(proxy.app, -n, node.id) for n in (1, 2)]
        ours, other = (await proxy.allocate(*booked)).nodes_for_scheduling
        if ours.node_id.port != node.id.port:
            ours, other = other, ours
        assert (ours.yaq_free.memory, ours.yaq_queued, ours.yaq_wait_ms) == (0, 3, 12_000)
        assert (other.yaq_queued, other.yaq_reads_tasks, other.HasField("yaq_wait_ms")) == (1, False, False)
        await loaded(node, queued=1, wait_ms=-1)
        told = {n.node_id.port: n for n in (await proxy.allocate()).nodes_for_scheduling}[node.id.port]
        assert told.HasField("yaq_wait_ms") == (queues == "true"), "without estimates nothing is known to end"
        assert queues == "false" or told.yaq_wait_ms == -1


@pytest.mark.parametrize(("queues", "of_ours"), [("true", True), ("true", False), ("false", True)])
async def test_proxies_of_ours_hear_how_long_what_its_master_takes_for_running_may_wait(
    queues: str, of_ours: bool
) -> None:
    async with cluster({**ENABLED, "yaq.queue.enabled": queues, "yaq.queue.max-wait-unaware": "700ms"}) as rm:
        node = await rm.node(capabilities=("yaq-queue",) if of_ours else ())
        await loaded(node)
        is_told = queues == "true" and of_ours
        for tolerates_waiting in (False, True):
            app_id = await rm.submit()
            proxy = Proxy(await rm.launched(app_id, node), app_id)
            answers = (await proxy.register(tolerates_waiting=tolerates_waiting), await proxy.allocate())
            for answer in answers:
                assert answer.HasField("yaq_most_wait_ms") == (is_told and not tolerates_waiting)
                assert answer.yaq_most_wait_ms in (0, 700)


async def test_what_two_proxies_chose_for_the_same_short_queue_is_booked_for_one() -> None:
    async with cluster({**ENABLED, "yaq.queue.enabled": "true", "yaq.queue.max-wait-unaware": "2s"}) as rm:
        node = await rm.node(memory_mb=4096, capabilities=("yaq-queue",))
        await loaded(node)
        one, two = [(await proxied(rm, node))[0] for _ in range(2)]
        await loaded(node, queued=1, wait_ms=1500)

        async def chosen(proxy: Proxy, number: int, *, repeat: bool = False, takes_back: bool = True) -> list[int]:
            """The numbers of those that were not booked."""
            containers = [placed(proxy.app, -number, node.id)]
            answer = await proxy.allocate(*containers, repeat=repeat, takes_back=takes_back)
            assert not answer.allocate_response.completed_container_statuses
            return [message.id for message in answer.yaq_not_booked]

        assert await chosen(one, 1) == []
        assert [await chosen(two, 1), await chosen(two, 1, repeat=True)] == [[-1], [-1]]
        assert [c.id for c in rm.manager.scheduler.opportunistic.containers] == [-1]
        assert (await two.allocate(takes_back=True)).yaq_not_booked == [], "it was said of those that were sent"
        assert await chosen(two, 2, takes_back=False) == [], "a stock proxy's master would wait for it"
        await loaded(node, queued=1, wait_ms=1500)
        assert [await chosen(two, 3), len(rm.manager.scheduler.opportunistic.containers)] == [[], 3]


async def test_where_all_queues_are_long_one_is_kept_for_containers_that_must_not_wait() -> None:
    clock = ManualClock()
    async with cluster({**ENABLED, "yaq.queue.enabled": "true"}, clock=clock) as rm:
        home = await rm.node(memory_mb=8192, capabilities=("yaq-queue",))
        await loaded(home)
        unaware, _ = await proxied(rm, home)
        app_id = await rm.submit()
        aware = Proxy(await rm.launched(app_id, home), app_id)
        await aware.register(tolerates_waiting=True)
        other = await rm.node(memory_mb=8192, host="127.0.0.2", capabilities=("yaq-queue",))

        async def heard(proxy: Proxy, *containers: common.Container, wants: int = 0) -> tuple[set[NodeId], list[int]]:
            """Which nodes it hears of, and what was not booked."""
            kept = (pb.PendingStage(priority=19, count=wants),)
            answer = await proxy.allocate(*containers, kept=kept, takes_back=True)
            hosts = {convert.node_id(node.node_id) for node in answer.nodes_for_scheduling}
            return hosts, [message.id for message in answer.yaq_not_booked]

        for waited_s, kept in ((0.0, set()), (59.0, set()), (1.0, {other.id})):
            clock.seconds += waited_s
            await loaded(home, queued=3, wait_ms=20_000)
            await loaded(other, queued=3, wait_ms=10_000)
            assert await heard(unaware, wants=2) == ({home.id, other.id}, [])
            assert await heard(aware, wants=2) == ({home.id, other.id} - kept, [])
        assert await heard(aware, placed(aware.app, -1, other.id), wants=1) == ({home.id}, [-1])
        await loaded(other, queued=0, wait_ms=0)
        assert await heard(unaware, placed(unaware.app, -1, other.id), wants=1) == ({home.id, other.id}, [])
        assert await heard(aware) == ({home.id, other.id}, []), "one runs there at a time as far as anybody has seen"


@pytest.mark.parametrize("says_sizes", [True, False])
async def test_a_node_is_kept_for_a_proxy_only_where_what_it_keeps_fits(says_sizes: bool) -> None:
    clock = ManualClock()
    async with cluster({**ENABLED, "yaq.queue.enabled": "true"}, clock=clock) as rm:
        home = await rm.node(memory_mb=4096, capabilities=("yaq-queue",))
        await loaded(home)
        proxy, _ = await proxied(rm, home)
        large = await rm.node(memory_mb=8192, host="127.0.0.2", capabilities=("yaq-queue",))
        kept = [pb.PendingStage(priority=19, count=1), pb.PendingStage(priority=19, count=2)]
        convert.put_resource(kept[0].size, Resource(6144, 1))
        if says_sizes:
            convert.put_resource(kept[1].size, Resource(8192, 1))
        kept.append(pb.PendingStage(priority=3, count=0))
        for waited_s in (0.0, 60.0):
            clock.seconds += waited_s
            await loaded(home, queued=3, wait_ms=10_000)
            await loaded(large, queued=3, wait_ms=20_000)
            await proxy.allocate(kept=tuple(kept), takes_back=True)
        attempt = ApplicationAttemptId(proxy.app, 1)
        chosen = large if says_sizes else home
        held = rm.manager.scheduler.view.holds.opportunistic_of(attempt)
        assert [hold.node.id for hold in held] == [chosen.id]


@pytest.mark.parametrize(
    ("insisting", "kept_at"),
    [
        ((3, "127.0.0.2"), "far"),
        ((1, "127.0.0.2"), "home"),
        ((3, "127.0.0.9"), None),
        ((3,), None),
        ((-5, "127.0.0.2"), "home"),
        ((1 << 30, *(f"h{number}" for number in range(2000))), None),
    ],
)
async def test_a_node_is_kept_for_a_proxy_only_where_what_it_keeps_may_go(
    insisting: tuple[int, *tuple[str, ...]], kept_at: str | None
) -> None:
    clock = ManualClock()
    async with cluster({**ENABLED, "yaq.queue.enabled": "true"}, clock=clock) as rm:
        home = await rm.node(memory_mb=4096, capabilities=("yaq-queue",))
        await loaded(home)
        proxy, _ = await proxied(rm, home)
        far = await rm.node(memory_mb=4096, host="127.0.0.2", capabilities=("yaq-queue",))
        count, *places = insisting
        kept, bound = pb.PendingStage(priority=19, count=3), pb.BoundWish(count=count, places=places)
        for message in (kept, bound):
            convert.put_resource(message.size, Resource(1024, 1))
        for waited_s in (0.0, 60.0):
            clock.seconds += waited_s
            await loaded(home, queued=3, wait_ms=10_000)
            await loaded(far, queued=3, wait_ms=20_000)
            await proxy.allocate(kept=(kept,), takes_back=True, bound=(bound,))
        expected = {"far": [far.id], "home": [home.id], None: []}[kept_at]
        held = rm.manager.scheduler.view.holds.opportunistic_of(ApplicationAttemptId(proxy.app, 1))
        assert [hold.node.id for hold in held] == expected


async def test_what_waits_on_a_lost_node_ends_once_and_what_ran_there_is_told_no_more() -> None:
    async with cluster(ENABLED) as rm:
        home, lost = await rm.node(), await rm.node(host="127.0.0.2")
        for node in (home, lost):
            await loaded(node)
        app_id = await rm.submit()
        await rm.until(lambda: bool(home.started or lost.started))
        home, lost = (home, lost) if home.started else (lost, home)
        proxy = Proxy(await rm.launched(app_id, home), app_id)
        await proxy.register()
        await proxy.allocate(*(placed(app_id, -n, lost.id) for n in range(1, 6)))
        await lost.unregister()
        answer = await proxy.allocate()
        ends = answer.allocate_response.completed_container_statuses
        assert sorted((s.container_id.id, s.exit_status) for s in ends) == [(-n, -100) for n in range(5, 0, -1)]
        assert [convert.node_id(n.node_id) for n in answer.nodes_for_scheduling] == [home.id]
        assert not (await proxy.allocate()).allocate_response.completed_container_statuses
        assert not rm.manager.scheduler.opportunistic.containers


async def test_what_a_proxy_places_and_keeps_is_left_of_its_job() -> None:
    async with cluster({**ENABLED, "yaq.queue.enabled": "true", "yaq.queue.default-estimate": "5s"}) as rm:
        node = await rm.node(capabilities=("yaq-queue",))
        await loaded(node)
        proxy, _ = await proxied(rm, node)
        await node.beat()
        kept = (pb.PendingStage(priority=19, count=7), pb.PendingStage(priority=3, count=-4))
        await proxy.allocate(placed(proxy.app, -1, node.id), placed(proxy.app, -2, node.id), kept=kept)
        (job,) = (await node.beat()).yaq_orders.jobs
        assert job.remaining_tasks == 9
        container_id = ContainerId(ApplicationAttemptId(proxy.app, 1), -1)
        node.run(container_id)
        await node.beat()
        node.end(container_id)
        node.ended[container_id].yaq_times.queued_ms, node.ended[container_id].yaq_times.run_ms = 0, 3000
        await node.beat()
        await proxy.allocate(kept=(pb.PendingStage(priority=19, count=1 << 30),))
        (job,) = (await node.beat()).yaq_orders.jobs
        assert [(e.priority, e.estimate_ms) for e in job.estimates] == [(19, 3000)]
        assert job.remaining_tasks == 10_000_001


async def test_masters_at_other_nodes_still_talk_to_the_resource_manager_itself() -> None:
    async with cluster(ENABLED) as rm:
        node = await rm.node()
        _, master = await rm.running(node)
        assert len((await master.allocate(ask(1))).allocated_containers) == 1
        assert await master.finish()


async def test_off_by_default() -> None:
    async with cluster(OPPORTUNISTIC) as rm:
        node = await rm.node()
        app_id = await rm.submit()
        with pytest.raises(NoSuchProtocol):
            await Proxy(await rm.launched(app_id, node), app_id).register()


def test_needs_opportunistic_containers() -> None:
    settings = {"yarn.nodemanager.distributed-scheduling.enabled": "true"}
    with pytest.raises(ConfigError, match=r"opportunistic-container-allocation\.enabled"):
        ResourceManager(configuration(settings))


async def test_a_lying_node_cannot_spoil_the_list() -> None:
    async with cluster(ENABLED) as rm:
        node = await rm.node(capabilities=("yaq-queue",))
        await loaded(node, queued=-5, capacity=-3, wait_ms=-(1 << 62))
        proxy, answer = await proxied(rm, node)
        assert not answer.nodes_for_scheduling, "it takes none"
        await loaded(node, queued=0, wait_ms=(1 << 63) - 1)
        (published,) = (await proxy.allocate()).nodes_for_scheduling
        assert published.yaq_wait_ms == -1, "for ever"


def test_the_capability_is_the_one_that_nodes_name() -> None:
    assert reports.YAQ_QUEUE == YAQ_QUEUE
    assert server.NodeStatus.DESCRIPTOR.fields_by_name["yaq_queue"].number == 10001
