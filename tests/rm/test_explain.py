"""What the ResourceManager says about waiting: over its REST resources, in the words of the command line."""

import asyncio
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rm.applications.records import RmContainer
from rm.node_queues.task_records import TaskRecords
from rm.scheduler.events import QueueingChanged
from rm.scheduler.opportunistic.room import Fits, has_place
from rm.scheduler.view.node import AskHold, HoldKind, NodeQueue
from rm.scheduler.why import reasons
from rm.scheduler.why.reasons import why_waits
from rm.store.state_store import StateStore
from tests.rm.rm_commands import command, get, report_queue
from tests.rm.rm_harness import ManualClock, ask, cluster
from tests.rm.rm_proxied import ENABLED, OPPORTUNISTIC, loaded, placed, proxied
from tests.rm.rm_queueing import ON, OURS, beat, given, queueing_node
from yaqd.cli.applications.explain import _show_decisions
from yaqd.cli.exits import CommandError
from yaqd.model import ApplicationId, ExecutionType, Resource
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb


@pytest.mark.slow
async def test_a_waiting_job_is_explained_from_ask_to_end() -> None:
    clock = ManualClock()
    async with cluster(ON, clock=clock) as rm:
        node = await queueing_node(rm)
        app_id, master = await rm.running(node, application_name="report")
        containers = given(await master.allocate(ask(9)))
        for container_id in containers:
            node.run(container_id)
        await report_queue(node, containers[3:])
        found = (await get(rm, f"/ws/v1/yaq/explain/{app_id}"))["explanation"]
        assert isinstance(found, dict)
        assert (found["askedFor"], found["waitingCount"], found["queueing"]) == (3, 3, True)
        [wanted] = found["asks"]
        assert wanted["estimateS"] == 10.0 and "1 of 1 queues at nodes are as long as their bounds" in wanted["why"]
        last = found["waiting"][-1]
        assert last["container"] == str(containers[5]) and last["node"] == str(node.id)
        assert [len(entry["behind"]) for entry in found["waiting"]] == [0, 1, 2], "as they would start"
        assert last["behind"] == [str(c) for c in containers[3:5]] and last["expectedStartInS"] == 7.5
        assert last["rule"].startswith("nothing is free") and last["wereAhead"] == 2
        placed = [entry for entry in found["decisions"] if entry["container"] == last["container"]]
        assert [(entry["reason"], entry["estimateS"]) for entry in placed] == [(last["rule"], 10.0)]
        text = await command(rm, "explain", str(app_id))
        assert "wants: 3 more containers, 3 wait at nodes" in text and f"2: {containers[3]} ..." in text
        assert "runs 10.0s" in text
        lines = text.splitlines()
        [row] = [line for line in lines if line.startswith(str(containers[5]))]
        [rule] = [line for line in lines if line.startswith("(1) nothing is free")]
        assert "(1)" in row and rule.endswith(last["rule"]) and len(row) < 140

        # a node that is late says nothing new: what it said goes on, for as long as it may be believed
        clock.seconds += 2.0
        found = json.loads(await command(rm, "explain", str(app_id), "--json"))
        last = found["waiting"][-1]
        assert (last["expectedStartInS"], last["waitedS"], last["nodeSilentS"]) == (5.5, 3.0, None)
        clock.seconds += 4.0
        text = await command(rm, "explain", str(app_id))
        [row] = [line for line in text.splitlines() if line.startswith(str(containers[5]))]
        assert "its node has not been heard of for 6.0s" in row and "  -  " in row
        assert "SILENT 6.0s" in await command(rm, "top", "--once")

        for container_id in containers[:4]:
            node.end(container_id)
        await beat(node, running=3, queued=2, times=(1500, 12_000))
        found = json.loads(await command(rm, "explain", str(app_id), "--json"))
        assert found["accuracy"]["meanEstimateS"] > 0 and found["accuracy"]["meanRanS"] == 12.0
        waited = [entry for entry in found["ended"] if entry["expectedWaitS"] is not None]
        assert [entry["container"] for entry in waited] == [str(containers[3])] and waited[0]["waitedS"] == 1.5
        text = await command(rm, "explain", str(app_id))
        assert "Of the last 4 containers that ended" in text


async def test_what_is_not_there_is_said_in_one_line() -> None:
    async with cluster({"yaq.queue.enabled": "false"}) as rm:
        with pytest.raises(CommandError, match=r"^Application with id 'application_1_0001' doesn't exist in RM\. "):
            await command(rm, "explain", "application_1_0001")
        node = await rm.node()
        app_id, master = await rm.running(node)
        await master.allocate(ask(20))
        assert "yaq.queue.enabled is false" in await command(rm, "explain", str(app_id))
    with pytest.raises(CommandError, match="does not answer"):
        await command(rm, "top")


async def test_the_reason_names_what_is_in_the_way() -> None:
    limits = {
        "yarn.scheduler.capacity.root.default.maximum-capacity": "100",
        "yaq.queue.enabled": "true",
        "yaq.queue.bound": "2",
    }
    async with cluster(limits) as rm:
        node = await rm.node(memory_mb=4096, vcores=4, capabilities=OURS)
        await beat(node)
        app_id, master = await rm.running(node)
        await master.allocate(ask(9))
        view = rm.manager.scheduler.view
        attempt = view.applications[app_id].attempt
        assert attempt is not None
        [waiting] = [a for a in attempt.asks if a.pending]
        assert "nobody knows how long it runs" in why_waits(view, attempt, waiting).reason
        second = await rm.submit(application_name="other")
        await rm.until(lambda: second in view.applications and view.applications[second].attempt is not None)
        found = (await get(rm, f"/ws/v1/yaq/explain/{second}"))["explanation"]
        assert isinstance(found, dict)
        [wanted] = found["asks"]
        assert wanted["isMaster"] and "application masters never wait at nodes" in wanted["why"]
        assert wanted["shortestWaitS"] is None


@pytest.mark.slow
@pytest.mark.parametrize("enabled", ["true", "false"])
async def test_masters_that_leave_no_room_are_named_as_the_reason(enabled: str) -> None:
    dominant = "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
    settings = {"yaq.queue.enabled": enabled, "yarn.scheduler.capacity.resource-calculator": dominant}
    async with cluster(settings) as rm:
        jobs = []
        for _ in range(2):
            node = await rm.node(memory_mb=65536, vcores=1, capabilities=OURS)
            await beat(node)
            jobs.append(await rm.running(node))
        for _, master in jobs:
            await master.allocate(ask(3))
        view = rm.manager.scheduler.view

        async def said(app_id: ApplicationId) -> str:
            found = json.loads(await command(rm, "explain", str(app_id), "--json"))
            return str(found["asks"][0]["why"])

        held = "2 application masters hold <memory:2048, vCores:2> of <memory:131072, vCores:2>, so that no node"
        for app_id, _ in jobs:
            why = await said(app_id)
            assert why.startswith(held) and "until one ends (yarn.scheduler.capacity.maximum-am-resource-percent" in why
        await rm.node(memory_mb=512, vcores=8)
        assert (await said(jobs[0][0])).startswith(held), "a node that is too small is none"
        await rm.node(memory_mb=65536, vcores=2)
        await rm.until(lambda: any(not held.is_master for held in view.containers.values()))
        assert "masters hold" not in await said(jobs[0][0]), "a task holds the rest, and will end"


@pytest.mark.slow
async def test_a_wait_is_said_of_nodes_that_are_heard_of_and_of_asks_that_may_wait() -> None:
    clock = ManualClock()
    async with cluster(ON, clock=clock) as rm:
        silent, live = await queueing_node(rm), await rm.node(memory_mb=4096, vcores=4, capabilities=OURS)
        await beat(live)
        app_id, master = await rm.running(silent)
        await master.allocate(ask(20))

        async def said() -> dict[str, object]:
            found = json.loads(await command(rm, "explain", str(app_id), "--json"))
            [wanted] = found["asks"]
            return dict(wanted)

        await beat(silent, running=4, queued=3, wait_ms=5000)
        await beat(live, running=4, queued=3, wait_ms=77_000)
        before = await said()
        assert before["shortestWaitS"] == pytest.approx(5.0) and "2 of 2 queues" in str(before["why"])
        clock.seconds += 14.8
        await beat(live, running=4, queued=3, wait_ms=77_000)
        wanted = await said()
        assert wanted["shortestWaitS"] == pytest.approx(77.0)
        assert "1 of 1 queues" in str(wanted["why"]) and "1 more have not been heard of lately" in str(wanted["why"])
        assert "a container waits 1m17s" in await command(rm, "explain", str(app_id))

        spec = rm.manager.queueing.settings.spec
        assert spec is not None
        for other in (replace(spec, default_estimate_s=None), None):
            rm.manager.cluster.schedule(QueueingChanged(other))
            wanted = await said()
            assert wanted["shortestWaitS"] is None and "queues at nodes" not in str(wanted["why"])
            assert ("nobody knows how long it runs" in str(wanted["why"])) is (other is not None)
            assert "shortest" not in await command(rm, "explain", str(app_id))


async def test_what_must_not_wait_says_who_is_ahead_and_whether_a_node_is_held_for_it() -> None:
    async with cluster({**ON, "yaq.queue.default-estimate": ""}) as rm:
        node = await queueing_node(rm)
        app_id, master = await rm.running(node)
        other, second = await rm.running(node)
        await master.allocate(ask(20))
        await second.allocate(ask(1))
        scheduler = rm.manager.scheduler
        attempt = scheduler.view.applications[app_id].attempt
        assert attempt is not None
        [waiting] = [a for a in attempt.asks if a.pending]
        [queue] = scheduler.node_queues.all()
        scheduler.view.holds.begin(AskHold(queue.node, attempt, HoldKind.QUEUE, 0.0, waiting))
        held = f"{node.id} is held for it: nothing else is sent to wait there"
        assert why_waits(scheduler.view, attempt, waiting).reason.endswith(held)
        scheduler.view.holds.release(queue.node)
        reason = why_waits(scheduler.view, attempt, waiting).reason
        assert "nobody knows how long it runs" in reason
        ahead = f"{other} of its queue comes before it, no node is held for it yet"
        assert reason.endswith(ahead), "the other job has less left"


def test_decisions_are_listed_with_the_newest_last_and_containers_hide_no_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    kinds = ["AcceptApplication", "Reserve", *["Allocate"] * 12, "Unreserve"]
    entries = [
        {"agoS": float(90 - at), "decision": kind, "container": f"c{at}", "node": "n", "reason": f"why {at}"}
        for at, kind in enumerate(kinds)
    ]
    _show_decisions(entries)
    rows = capsys.readouterr().out.strip().splitlines()[1:]
    assert [int(row.split()[-1]) for row in rows] == [1, *range(4, 15)], "ten containers, and what else was decided"


@pytest.mark.slow
async def test_what_a_proxy_placed_is_explained_by_what_it_said() -> None:
    async with cluster({**ENABLED, **ON}) as rm:
        node = await rm.node(memory_mb=4096, vcores=4, capabilities=OURS)
        await loaded(node, queued=1, wait_ms=2000)
        proxy, _ = await proxied(rm, node)
        containers = [placed(proxy.app, -number, node.id) for number in (1, 2, 3)]
        why = [
            pb.ProxyPlacement(container_id=containers[0].id, rule="the best by wait", estimate_ms=4000, wait_ms=2500),
            pb.ProxyPlacement(container_id=containers[1].id, rule="x" * 10_000, wait_ms=-7, estimate_ms=-1, behind=-3),
        ]
        why[0].behind = 1
        kept = pb.PendingStage(priority=19, count=5)
        await proxy.allocate(*containers, placements=(*why, *why), kept=(kept,))
        for container in containers[:2]:
            node.run(convert.container_id(container.id))
        await report_queue(node, [convert.container_id(container.id) for container in containers[:1]])
        found = json.loads(await command(rm, "explain", str(proxy.app), "--json"))
        first, second = found["waiting"]
        assert (first["rule"], first["expectedWaitS"], first["wereAhead"]) == ("the best by wait", 2.5, 1)
        assert first["isAtNode"] and first["executionType"] == "OPPORTUNISTIC" and first["behind"] == []
        assert (len(second["rule"]), second["expectedWaitS"], second["wereAhead"]) == (300, None, 0)
        assert found["askedFor"] == 5 and "the proxy at its master's node keeps them" in found["asks"][0]["why"]
        assert "where they start at once as far as is known" in found["asks"][0]["why"]
        reasons = {entry["container"]: entry["reason"] for entry in found["decisions"]}
        assert "the proxy at its master's node chose the node" in reasons.values(), "a stock proxy says nothing"
        text = await command(rm, "explain", str(proxy.app))
        assert "5 of priority 19 (opportunistic; runs 10.0s): the proxy at its master's node keeps them" in text

        node.end(convert.container_id(containers[0].id))
        await beat(node, times=(3000, 6000))
        found = json.loads(await command(rm, "explain", str(proxy.app), "--json"))
        [ended] = found["ended"]
        assert (ended["estimateS"], ended["ranS"]) == (4.0, 6.0), "as the proxy expected when it placed it"
        assert (ended["expectedWaitS"], ended["waitedS"], ended["rule"]) == (2.5, 3.0, "the best by wait")


@pytest.mark.slow
async def test_how_right_estimates_were_outlives_the_application_and_a_restart(tmp_path: Path) -> None:
    store = tmp_path / "state.sqlite"
    async with cluster(ON, store=store) as rm:
        node = await queueing_node(rm)
        app_id, master = await rm.running(node, application_name="report")
        containers = given(await master.allocate(ask(2)))
        for container_id in containers:
            node.run(container_id)
        await beat(node, running=3)
        for container_id in containers:
            node.end(container_id)
        await beat(node, running=1, times=(0, 12_000))
        await master.finish()
        before = json.loads(await command(rm, "explain", str(app_id), "--json"))
        assert (before["state"], before["finalState"]) == ("FINISHED", "SUCCEEDED")
        assert before["accuracy"]["tasks"] == 2 and before["decisions"]
    broken = "application_1_0001", json.dumps([["c", "n", 1, None, None, "r", 0.0, "x"], 7, [], ["c"]])
    with sqlite3.connect(store) as database:
        database.executemany(
            "INSERT INTO task_records VALUES (?, ?)", [broken, ("no id", "[]"), ("application_1_0002", "")]
        )
    async with cluster(ON, store=store) as rm:
        after = json.loads(await command(rm, "explain", str(app_id), "--json"))
        assert (after["state"], after["finalState"]) == ("FINISHED", "SUCCEEDED")
        assert (after["ended"], after["accuracy"]) == (before["ended"], before["accuracy"])
        assert after["decisions"] == [] and rm.manager.queueing.records.of(ApplicationId(1, 1)) == []
        text = await command(rm, "explain", str(app_id))
        assert "Of the last 2 containers that ended" in text
        assert "final state: SUCCEEDED\n" in text


@pytest.mark.slow
async def test_an_opportunistic_ask_waits_and_says_for_what() -> None:
    async with cluster({**OPPORTUNISTIC, **ON}) as rm:
        node = await rm.node(memory_mb=4096, vcores=4, capabilities=OURS)
        app_id, master = await rm.running(node)
        wanted = ask(3)
        wanted.execution_type_request.execution_type = common.OPPORTUNISTIC
        await master.allocate(wanted)
        said = json.loads(await command(rm, "explain", str(app_id), "--json"))["asks"]
        assert [(a["containers"], a["executionType"]) for a in said] == [(3, "OPPORTUNISTIC")]
        assert said[0]["why"].startswith("none of 1 nodes lets opportunistic containers wait")
        await loaded(node, queued=5, capacity=5, wait_ms=1000)
        await master.allocate()
        [said] = json.loads(await command(rm, "explain", str(app_id), "--json"))["asks"]
        assert said["why"] == "the queues at all 1 nodes that let opportunistic containers wait are full"
        await loaded(node, queued=4, capacity=5, wait_ms=1000)
        assert "gets a container when its master calls next" in await command(rm, "explain", str(app_id))
        [container_id] = given(await master.allocate())
        [waiting] = json.loads(await command(rm, "explain", str(app_id), "--json"))["waiting"]
        assert (waiting["container"], waiting["wereAhead"], waiting["isAtNode"]) == (str(container_id), 4, False)
        assert "not started by its master yet" in await command(rm, "explain", str(app_id))


async def test_records_are_stored_a_few_at_a_time_and_those_of_the_last_applications_alone(tmp_path: Path) -> None:
    path, clock = tmp_path / "state.sqlite", ManualClock()
    store = StateStore(path)
    store.load()
    store.start(asyncio.get_running_loop())
    records = TaskRecords(store, clock.now())
    for number in range(1, 231):
        attempt = SimpleNamespace(app=SimpleNamespace(id=ApplicationId(1, number)))
        allocation = SimpleNamespace(priority=1, queued=None, reason="r", execution_type=ExecutionType.GUARANTEED)
        container = SimpleNamespace(
            attempt=attempt, allocation=allocation, id=f"c{number}", node_id="n", estimate_s=2.0
        )
        records.note(cast(RmContainer, container), common.TaskTimes(run_ms=3000))
    saved = []
    for _ in range(40):
        clock.seconds += 1.0
        records.save_due(clock.now())
        await asyncio.sleep(0)
        saved.append(len(records._stored))
    assert saved[28:32] == [0, 10, 20, 30], "every half a minute, and ten of them a second"
    records.save()
    await asyncio.to_thread(store.close)
    with closing(sqlite3.connect(path)) as database:
        found = {name for (name,) in database.execute("SELECT application FROM task_records")}
    assert found == {str(ApplicationId(1, number)) for number in range(31, 231)}


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (common.GUARANTEED, "no node has room for it: 4 of 4 queues"),
        (common.OPPORTUNISTIC, "the queues at all 4 nodes"),
    ],
)
async def test_many_kinds_of_asks_cost_one_answer_no_more_than_those_that_it_tells(
    kind: "common.ExecutionType", why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    wait = NodeQueue.expected_wait

    def waits_counted(queue: NodeQueue) -> float:
        nonlocal looks
        looks += 1
        return wait(queue)

    def places_counted(queue: NodeQueue, need: Resource, fits: Fits) -> bool:
        nonlocal looks
        looks += 1
        return has_place(queue, need, fits)

    async with cluster({**OPPORTUNISTIC, **ON}) as rm:
        nodes = [await queueing_node(rm) for _ in range(4)]
        app_id, master = await rm.running(nodes[0])
        for node in nodes:
            await loaded(node, queued=9, capacity=9, wait_ms=9000)
        asks = [ask(100, request_id=number) for number in range(300)]
        for wanted in asks:
            wanted.execution_type_request.execution_type = kind
        await master.allocate(*asks)
        with monkeypatch.context() as patch:
            patch.setattr(NodeQueue, "expected_wait", waits_counted)
            patch.setattr(reasons, "has_place", places_counted)
            found: Any = (await get(rm, f"/ws/v1/yaq/explain/{app_id}"))["explanation"]
        assert found["askedFor"] >= 29_900 and len(found["asks"]) == 50
        assert all(one["why"].startswith(why) for one in found["asks"])
        assert 0 < looks <= 10 * len(nodes), "each node is looked at for all asks of a size together"
