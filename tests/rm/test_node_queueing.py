"""Queues at nodes between a real ResourceManager, nodes and masters: what is said, to whom, and what comes of it."""

from functools import partial
from pathlib import Path

import pytest

from tests.rm.rm_harness import ManualClock, ask, cluster
from tests.rm.rm_queueing import OFF, ON, OURS, beat, given, left, queueing_node, token_of
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto.protocols import ResourceTracker


async def test_a_master_is_given_more_than_fits_and_the_node_is_told() -> None:
    async with cluster(ON) as rm:
        node = await rm.node(memory_mb=4096, vcores=4, capabilities=OURS)
        told = (await beat(node)).yaq_orders
        assert (told.settings.enabled, told.settings.order, told.settings.max_queued) == (True, "srjf", 3)
        app_id, master = await rm.running(node, application_name="sleep")
        response = await master.allocate(ask(9))
        # 4 GB less the master's leave room for three; three more wait.
        assert len(given(response)) == 6
        assert response.limit.memory == 0
        usage = (await rm.report(app_id)).app_resource_Usage
        assert (usage.num_used_containers, usage.used_resources.memory) == (4, 4096), "what waits is not in use"
        assert (usage.yaq_waiting, usage.yaq_waiting_resources.memory) == (3, 3072)
        assert usage.needed_resources.memory == 10 * 1024 and 0 < usage.cluster_usage_percentage <= 100
        token = token_of(response.allocated_containers[5])
        assert token.yaq_task.estimate_ms == 10_000 and token.yaq_task.leaf_queue == "root.default"
        app = rm.manager.cluster.applications[app_id]
        assert token.yaq_task.job_arrival_ms == app.submitted_ms
        # An unknown field survives a stock reader only at the end (number 10001, wire type 2).
        tail = token.yaq_task.SerializeToString()
        wire = response.allocated_containers[5].container_token.identifier
        assert wire.endswith(bytes([0x8A, 0xF1, 0x04, len(tail)]) + tail)
        orders = (await beat(node, running=4, queued=3)).yaq_orders
        [job] = orders.jobs
        assert convert.application_id(job.application_id) == app_id and job.arrival_ms == app.submitted_ms
        assert job.remaining_tasks == 9
        # Nothing has changed since: nothing is said.
        assert not (await beat(node, running=4, queued=3)).HasField("yaq_orders")


@pytest.mark.parametrize("most", [0, 1, 2, 9, -7])
async def test_a_node_is_given_no_more_to_wait_than_it_takes(most: int) -> None:
    async with cluster(ON) as rm:
        node = await rm.node(memory_mb=4096, vcores=4, capabilities=OURS)
        await node.register(capabilities=OURS, queue_max=most)
        told = await beat(node)
        bound = min(3, max(0, most))
        assert told.yaq_orders.settings.max_queued == bound
        _, master = await rm.running(node, application_name="sleep")
        assert len(given(await master.allocate(ask(9)))) == 3 + bound


@pytest.mark.parametrize("places", ["*", "127.0.0.1"])
async def test_nothing_waits_where_a_master_leaves_no_room_for_it(places: str) -> None:
    async with cluster(ON) as rm:
        node = await queueing_node(rm)
        _, master = await rm.running(node, application_name="sleep")
        near = [ask(4, memory_mb=3500, name=places)] if places != "*" else []
        near = [*near, ask(4, memory_mb=3500, name="/default-rack")] if near else []
        assert not given(await master.allocate(ask(4, memory_mb=3500), *near)), "before the master has ended"
        await beat(node, running=1)
        assert not given(await master.allocate())
        others = await master.allocate(ask(4, memory_mb=3000, priority=2))
        assert len(given(others)) == 4, "one has room beside it, and three wait for that one's end"


async def test_policies_of_others_that_raise_end_no_resource_manager(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "angry_policies.py").write_text(
        "from yaqd.policies.queueing.place_scores import PlaceStrategy\n"
        "def angry(*args): return 1 / 0\n"
        "place = PlaceStrategy(angry)\n"
    )
    info = tmp_path / "angry_policies-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: angry-policies\nVersion: 1\n")
    functions = ("job_order", "bound", "estimate")
    lines = [f"[yaqd.{kind}]\nangry = angry_policies:angry\n" for kind in functions]
    (info / "entry_points.txt").write_text("".join((*lines, "[yaqd.place]\nangry = angry_policies:place\n")))
    monkeypatch.syspath_prepend(tmp_path)
    keys = ("job-order", "bound-policy", "estimates", "placement")
    angry = {f"yaq.queue.{key}": "angry" for key in keys}
    async with cluster({"yaq.queue.enabled": "true", **angry}) as rm:
        node = await queueing_node(rm)
        _, master = await rm.running(node, application_name="job 1")
        first = given(await master.allocate(ask(9)))
        assert len(first) == 3
        for container_id in first:
            node.run(container_id)
        await beat(node, running=4)
        node.end(first[0])
        await beat(node, running=3, times=(20, 7000))
        assert len(given(await master.allocate())) > 1, "one where it is free, and others wait"
    said = [record.getMessage() for record in caplog.records if "gives way to" in record.getMessage()]
    assert {text.split(" policy")[0] for text in said} >= {"job-order", "bound", "estimate", "place"}
    assert len(said) == len(set(said)), "once of each"


async def test_nodes_are_told_how_long_a_container_may_wait_whose_master_does_not_know() -> None:
    async with cluster({**ON, "yaq.queue.max-wait-unaware": "700ms"}) as rm:
        node = await queueing_node(rm)
        for tolerates_waiting in (False, True):
            master = await rm.launched(await rm.submit(), node)
            await master.register(tolerates_waiting=tolerates_waiting)
            response = await master.allocate(ask(1))
            facts = token_of(response.allocated_containers[0]).yaq_task
            assert facts.HasField("most_wait_ms") is not tolerates_waiting
            assert facts.most_wait_ms == (0 if tolerates_waiting else 700)


@pytest.mark.parametrize("queues", [True, False])
async def test_a_node_that_misses_heartbeats_is_silent_until_it_is_heard_of(queues: bool) -> None:
    clock = ManualClock()
    async with cluster({**ON, "yaq.queue.enabled": str(queues).lower()}, clock=clock) as rm:
        node = await queueing_node(rm)
        await beat(node, running=0)
        queue = rm.manager.scheduler.view.nodes.all()[0].queue
        assert queue.is_filled == queues == bool(rm.manager.nodes.heard)
        for later_s, is_silent in ((4.9, False), (0.2, True), (9.0, True)):
            clock.seconds += later_s
            rm.manager.nodes.check_silence(clock.now())
            assert queue.is_silent is (queues and is_silent)
        await beat(node, running=0)
        assert queue is None or not queue.is_silent


async def test_what_ended_teaches_how_long_the_others_run() -> None:
    async with cluster({**ON, "yaq.queue.default-estimate": ""}) as rm:
        node = await queueing_node(rm)
        _, master = await rm.running(node, application_name="job 17")
        response = await master.allocate(ask(9))
        first = given(response)
        assert len(first) == 3, "nothing waits whose end nobody knows"
        assert not token_of(response.allocated_containers[0]).yaq_task.HasField("estimate_ms")
        for container_id in first:
            node.run(container_id)
        await beat(node, running=4)
        node.end(first[0])
        orders = (await beat(node, running=3, times=(20, 7000))).yaq_orders
        assert [(e.priority, e.estimate_ms) for e in orders.jobs[0].estimates] == [(1, 7000)]
        assert orders.jobs[0].remaining_work_ms == 8 * 7000
        assert orders.jobs[0].critical_path_ms == 7000, "all of one priority"
        assert len(given(await master.allocate())) == 4, "one takes the free place, three wait"
        # The next run of the job is known from the start, in another number.
        await master.finish()
        for container_id in list(node.running):
            node.end(container_id, 143)
        await beat(node)
        _, second = await rm.running(node, application_name="job 18")
        response = await second.allocate(ask(1))
        scheduler = rm.manager.scheduler
        app_id = next(iter(scheduler.view.applications))
        assert scheduler.node_queues.estimate(app_id, 1) == 7.0


async def test_a_master_that_knows_its_plan_is_believed_and_the_node_hears_of_it() -> None:
    async with cluster(ON) as rm:
        node = await queueing_node(rm)
        _, master = await rm.running(node)

        async def heard() -> tuple[int, int, int]:
            [job] = (await beat(node)).yaq_orders.jobs
            return job.remaining_tasks, job.remaining_work_ms, job.critical_path_ms

        await master.allocate(ask(2))
        assert await heard() == (2, 0, 0), "as far as it has asked, and no container has ended"
        plan = left((1, 2, 8000, ()), (2, 5, 3000, (1,)), (3, 1, 1000, (2,)))
        await master.allocate(left=plan)
        assert await heard() == (8, 32_000, 12_000)
        assert not (await beat(node)).HasField("yaq_orders")
        await master.allocate(left=left((1, 2, -8000, ()), (9, 1 << 30, 1 << 62, (1, 9)), (3, 1, 2000, ())))
        assert await heard() == (10_000_003, 20_000_006_000, 2000), "nonsense is bounded"
        await master.allocate(ask(9), left=left((1, 1, 1, ())))
        assert await heard() == (11, 0, 0), "one that says less than it asks for is not"


@pytest.mark.parametrize("told_first", [True, False])
async def test_how_long_a_process_ran_that_never_had_a_task_says_nothing_of_its_stage(told_first: bool) -> None:
    async with cluster(ON) as rm:
        node = await queueing_node(rm)
        app_id, master = await rm.running(node)
        plan = left((1, 3, 0, ()))
        worked, idle, last = given(await master.allocate(ask(3), left=plan))
        for container_id in (worked, idle, last):
            node.run(container_id)
        await beat(node, running=4)
        plan.without_task.append(convert.container_id_pb(idle))
        if told_first:
            await master.allocate(left=plan)
        node.end(idle)
        await beat(node, running=3, times=(0, 300))
        if not told_first:
            await master.allocate(left=plan)
        estimate = partial(rm.manager.scheduler.node_queues.estimate, app_id, 1)
        assert estimate() == 10.0, "as configured"
        node.end(worked)
        await beat(node, running=2, times=(0, 6000))
        assert estimate() == 10.0, "its master may still say that it had none"
        await master.allocate()
        assert estimate() == 6.0
        node.end(last)
        await beat(node, running=1, times=(0, 4000))
        await master.finish()
        node.end(next(iter(node.running)))
        await beat(node)
        assert (await rm.report(app_id)).yarn_application_state == common.FINISHED
        known = rm.manager.queueing.estimates._known.dump()
        assert {(count, mean_s) for _, count, mean_s in known} == {(2, 5.0)}, "the last one's end was learnt from too"


async def test_a_master_that_knows_of_queues_hears_how_long_its_containers_waited() -> None:
    async with cluster(ON) as rm:
        node = await queueing_node(rm)
        for tolerates_waiting in (False, True):
            master = await rm.launched(await rm.submit(), node)
            await master.register(tolerates_waiting=tolerates_waiting)
            [container_id] = given(await master.allocate(ask(1)))
            node.run(container_id)
            await beat(node, running=1)
            node.end(container_id)
            await beat(node, times=(1500, -4000 if tolerates_waiting else 4000))
            [ended] = (await master.allocate()).completed_container_statuses
            assert ended.HasField("yaq_times") is tolerates_waiting, "a stock one sees nothing unknown"
            assert ended.yaq_times.queued_ms == (1500 if tolerates_waiting else 0) and ended.yaq_times.run_ms == 0


async def test_estimates_outlive_the_resource_manager(tmp_path: Path) -> None:
    settings = {**ON, "yaq.queue.default-estimate": ""}
    async with cluster(settings, store=tmp_path / "store") as rm:
        node = await queueing_node(rm)
        _, master = await rm.running(node, application_name="nightly 2026-01-01")
        [container_id] = given(await master.allocate(ask(1)))
        node.run(container_id)
        await beat(node)
        node.end(container_id)
        await beat(node, times=(0, 4000))
        await master.finish()
    async with cluster(settings, store=tmp_path / "store") as rm:
        node = await queueing_node(rm)
        _, master = await rm.running(node, application_name="nightly 2026-01-02")
        assert len(given(await master.allocate(ask(9)))) == 6


@pytest.mark.parametrize(("capabilities", "is_on"), [((), True), (("yaq-1",), True), (OURS, False)])
async def test_nobody_else_hears_of_it(capabilities: tuple[str, ...], is_on: bool) -> None:
    """Stock nodes, our nodes that do not queue, and all nodes while it is off."""
    async with cluster(ON if is_on else OFF) as rm:
        node = await rm.node(memory_mb=4096, vcores=4, capabilities=capabilities)
        await beat(node)
        _, master = await rm.running(node)
        response = await master.allocate(ask(9))
        assert len(given(response)) == 3
        assert not token_of(response.allocated_containers[0]).HasField("yaq_task")
        assert not (await beat(node, running=4)).HasField("yaq_orders")


async def test_a_container_that_waited_too_long_is_placed_again_when_its_master_asks() -> None:
    async with cluster(ON) as rm:
        node = await queueing_node(rm)
        _, master = await rm.running(node)
        containers = given(await master.allocate(ask(6)))
        for container_id in containers:
            node.run(container_id)
        await beat(node, running=4, queued=3)
        node.end(containers[5], -102, "waited too long")
        await beat(node, running=4, queued=2)
        response = await master.allocate()
        [completed] = response.completed_container_statuses
        assert completed.exit_status == -102
        assert given(response) == [], "the master asks again, nothing is given twice"
        assert len(given(await master.allocate(ask(1)))) == 1
        assert len(rm.manager.scheduler.view.containers) == 7


async def test_a_lost_node_ends_what_waited_there_once() -> None:
    clock = ManualClock()
    async with cluster({**ON, "yarn.nm.liveness-monitor.expiry-interval-ms": "5000"}, clock=clock) as rm:
        kept = await rm.node(memory_mb=1024, vcores=1)
        _, master = await rm.running(kept)
        node = await queueing_node(rm)
        containers = given(await master.allocate(ask(7)))
        assert len(containers) == 7
        for container_id in containers[:5]:
            node.run(container_id)  # two of them its master has not started yet
        await beat(node, running=4, queued=1)
        clock.seconds += 4
        await kept.beat()
        clock.seconds += 4
        await rm.until(lambda: len(rm.manager.scheduler.view.nodes) == 1)
        response = await master.allocate()
        ended = [convert.container_id(s.container_id) for s in response.completed_container_statuses]
        assert sorted(ended) == sorted(containers)
        assert {s.exit_status for s in response.completed_container_statuses} == {-100}
        assert not (await master.allocate()).completed_container_statuses


@pytest.mark.parametrize("is_lost", [False, True])
async def test_the_next_token_says_how_long_its_task_has_waited(is_lost: bool) -> None:
    clock = ManualClock()
    async with cluster({**ON, "yarn.nm.liveness-monitor.expiry-interval-ms": "5000"}, clock=clock) as rm:
        other = await rm.node(memory_mb=1024, vcores=1)
        _, master = await rm.running(other)
        node = await queueing_node(rm)
        containers = given(await master.allocate(ask(6)))
        for container_id in containers:
            node.run(container_id)
        request = node.heartbeat()
        request.node_status.yaq_queue.running, request.node_status.yaq_queue.queued = 4, 2
        for status in request.node_status.containersStatuses:
            if convert.container_id(status.container_id) in containers[4:]:
                status.container_sub_state = common.CSS_SCHEDULED
        node.response_id = (await node.tracker.call(ResourceTracker.nodeHeartbeat, request)).response_id
        clock.seconds += 4
        await other.beat()
        if is_lost:
            clock.seconds += 4
            await rm.until(lambda: len(rm.manager.scheduler.view.nodes) == 1)
            node = await queueing_node(rm)
        else:
            node.end(containers[4], -102, "waited too long")
            node.end(containers[5], -102, "killed while it ran")
            node.ended[containers[4]].yaq_times.queued_ms = 4000
            node.ended[containers[5]].yaq_times.run_ms = 2000
            await beat(node, running=4)
        clock.seconds += 1
        await master.allocate()
        containers_again = (await master.allocate(ask(2))).allocated_containers
        waited = sorted(token_of(container).yaq_task.waited_ms for container in containers_again)
        assert waited == ([9000, 9000] if is_lost else [0, 5000])


async def test_lies_are_bounded_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async with cluster(ON) as rm:
        node = await queueing_node(rm)
        _, master = await rm.running(node)
        await beat(node, running=-7, queued=-3, wait_ms=-5)
        assert len(given(await master.allocate(ask(9)))) == 3, "a wait that cannot be is one without end"
        await beat(node, running=2**31 - 1, queued=2**31 - 1, wait_ms=2**62)
        assert given(await master.allocate()) == []
        await beat(node, running=4, queued=0)
        assert len(given(await master.allocate())) == 3
        assert sum("reports a queue that cannot be" in r.message for r in caplog.records) == 1


async def test_a_storm_of_asks_is_answered_within_the_bounds() -> None:
    async with cluster(ON) as rm:
        node = await queueing_node(rm)
        _, master = await rm.running(node)
        assert len(given(await master.allocate(ask(100_000)))) == 6
        assert given(await master.allocate()) == given(await master.allocate()) == []
        assert (await beat(node, running=4, queued=3)).yaq_orders.jobs[0].remaining_tasks == 100_000


async def test_what_a_master_never_starts_gives_its_place_in_the_queue_back() -> None:
    clock = ManualClock()
    limit = "yarn.resourcemanager.rm.container-allocation.expiry-interval-ms"
    async with cluster({**ON, limit: "5000"}, clock=clock) as rm:
        node = await queueing_node(rm)
        _, master = await rm.running(node)
        assert len(given(await master.allocate(ask(6)))) == 6
        await beat(node, running=1)
        view = rm.manager.scheduler.view
        clock.seconds += 6
        await rm.until(lambda: len(view.containers) == 1)
        assert view.root.sent.used.memory_mb == 0
        await beat(node, running=1)  # else it is silent
        assert len(given(await master.allocate(ask(6)))) == 6
