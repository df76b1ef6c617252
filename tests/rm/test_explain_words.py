"""Words of `yaq explain` and `yaq top` that could be taken for others: how old what they go by is, what is unknown."""

import asyncio
import copy
import json

import pytest
from click.testing import CliRunner

from rm.node_queues.task_records import _read, accuracy
from tests.rm.rm_commands import command, report_queue
from tests.rm.rm_harness import ManualClock, ask, cluster
from tests.rm.rm_queueing import ON, OURS, beat, given, queueing_node
from yaqd.cli.nodes import list_nodes
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto.protocols import ResourceTracker


@pytest.mark.slow
async def test_what_waits_where_there_was_just_room_is_not_said_to_wait_for_nothing() -> None:
    clock = ManualClock()
    async with cluster(ON, clock=clock) as rm:
        node = await queueing_node(rm)
        app_id, master = await rm.running(node)
        await beat(node, running=1, wait_ms=0)
        clock.seconds += 0.3
        containers = given(await master.allocate(ask(9)))
        found = json.loads(await command(rm, "explain", str(app_id), "--json"))
        assert [(one["expectedWaitS"], one["roomSaidAgoS"]) for one in found["waiting"]] == [(None, 0.3)] * 3
        assert all(one["rule"].endswith(" (its node had room at its last report)") for one in found["waiting"])
        assert all(one["expectedWaitS"] is None for one in found["decisions"])
        [wanted] = found["asks"]
        # of three that run for 10 s one ends in a third of that, and three more wait before it
        assert wanted["shortestWaitS"] == pytest.approx(10.0 / 3 + 30.0, abs=0.01) and wanted["shortestSaidAgoS"] == 0.3
        for container_id in containers:
            node.run(container_id)
        await report_queue(node, containers[3:])
        for container_id in containers:
            node.end(container_id)
        await beat(node, running=1, times=(1500, 12_000))
        seen = json.loads(await command(rm, "explain", str(app_id), "--json"))["accuracy"]
        assert (seen["withWait"], seen["afterRoom"], seen["meanWaitedAfterRoomS"]) == (0, 3, 1.5)
        text = await command(rm, "explain", str(app_id))
        assert "3 waited 1.5s in the mean at nodes that had room at their last report, 300ms before" in text
        assert "expected to wait" not in text


@pytest.mark.slow
async def test_what_waits_although_there_was_free_room_for_it_is_counted() -> None:
    async with cluster(ON) as rm:
        node = await queueing_node(rm)
        app_id, master = await rm.running(node)
        early, *rest = given(await master.allocate(ask(9)))
        for container_id in (early, *rest):
            node.run(container_id)
        late = [early, *rest[3:]]  # the first that was sent to wait came to the node before one that had room
        for container_id, status in node.running.items():
            status.container_sub_state = common.CSS_SCHEDULED if container_id in late else common.CSS_RUNNING
        await report_queue(node, late)
        waiting = json.loads(await command(rm, "explain", str(app_id), "--json"))["waiting"]
        seen = [(one["givenRoom"], one["expectedWaitS"] is None) for one in waiting]
        assert seen[0] == (True, True) and (True, False) not in seen and seen.count((False, False)) >= 1
        for container_id in rest[:3]:
            node.end(container_id)
        await beat(node, running=3, times=(20, 4000))
        node.end(early)
        await beat(node, running=2, times=(30_500, 4000))
        found = json.loads(await command(rm, "explain", str(app_id), "--json"))
        ended = [(one["givenRoom"], one["waitedS"]) for one in found["ended"]]
        assert ended == [(True, 0.02), (True, 0.02), (False, 0.02), (True, 30.5)]
        assert (found["accuracy"]["roomTaken"], found["accuracy"]["meanWaitedRoomTakenS"]) == (1, 30.5)
        said = "1 waited 30.5s in the mean although there was free room when they were given"
        assert said in await command(rm, "explain", str(app_id))


async def test_the_list_of_nodes_says_which_containers_run_and_which_wait() -> None:
    async with cluster(ON) as rm:
        node = await queueing_node(rm)
        _, master = await rm.running(node)
        containers = given(await master.allocate(ask(9)))
        for container_id in containers:
            node.run(container_id)
        await report_queue(node, containers[3:])
        stock = await rm.node(memory_mb=1024, vcores=1)
        await stock.beat()
        address = f"yarn.resourcemanager.address=127.0.0.1:{rm.manager.servers.client.port}"

        async def listed(*words: str) -> str:
            # a copy: click remembers in a command how it was called first, and the reference reads that
            result = await asyncio.to_thread(CliRunner().invoke, copy.copy(list_nodes), [*words, "-D", address])
            if result.exception is not None:
                raise result.exception
            return result.output

        waiting = {found["id"]: found["waiting"] for found in json.loads(await listed("--json"))}
        assert waiting == {str(node.id): 3, str(stock.id): None}
        [row] = [line for line in (await listed()).splitlines() if line.startswith(str(node.id))]
        assert "4 run, 3 wait" in row and "4096/4096" in row
        request = node.heartbeat()
        request.node_status.yaq_queue.queued = 2**31 - 1
        await node.tracker.call(ResourceTracker.nodeHeartbeat, request)
        assert "0 run, 7 wait" in await listed(), "no more than there are"


async def test_a_node_that_reports_how_long_one_waits_is_believed() -> None:
    async with cluster(ON) as rm:
        node = await queueing_node(rm)
        app_id, master = await rm.running(node)
        await beat(node, running=4, wait_ms=2500)
        await master.allocate(ask(9))
        found = json.loads(await command(rm, "explain", str(app_id), "--json"))
        assert found["waiting"][0]["roomSaidAgoS"] is None and found["waiting"][0]["expectedWaitS"] == 2.5


async def test_an_ask_says_when_one_of_it_was_given_last_and_not_that_all_waited_since() -> None:
    clock = ManualClock()
    async with cluster(ON, clock=clock) as rm:
        node = await queueing_node(rm)
        app_id, master = await rm.running(node)
        await master.allocate(ask(9))
        clock.seconds += 1.0
        await beat(node, running=4, queued=3, wait_ms=0)
        clock.seconds += 0.25
        text = await command(rm, "explain", str(app_id))
        assert "runs 10.0s), none given for 1.2s: no node has room" in text or "none given for 1.3s" in text
        # the room that its node said it had is given: one of three that run for 10 s ends in a third of that
        assert "at the node where it is shortest a container waits 3.3s" in text


@pytest.mark.slow
@pytest.mark.parametrize("enabled", ["true", "false"])
async def test_a_master_that_leaves_no_room_for_its_own_containers_is_said_to(enabled: str) -> None:
    async with cluster({"yaq.queue.enabled": enabled}) as rm:
        node = await rm.node(memory_mb=1536, vcores=4, capabilities=OURS)
        await beat(node)
        app_id, master = await rm.running(node)
        assert (await rm.report(app_id)).diagnostics == "", "it wants nothing"
        await master.allocate(ask(3))
        said = f"its own application master holds <memory:1024, vCores:1> of <memory:1536, vCores:4> at {node.id}"
        text = await command(rm, "explain", str(app_id))
        assert f"{said}, and no other node is large enough: it can never run beside it" in text
        assert "for it until it ends" not in text
        assert said in (await rm.report(app_id)).diagnostics
        other = await rm.node(memory_mb=1536, vcores=4, capabilities=OURS)
        await other.beat()
        await rm.until(lambda: bool(rm.manager.scheduler.view.applications[app_id].attempt))
        text = await command(rm, "explain", str(app_id))
        assert "its own application master" not in text and (await rm.report(app_id)).diagnostics == ""


@pytest.mark.slow
async def test_what_is_held_when_its_turn_has_come_is_no_part_of_its_wait_nor_of_its_run() -> None:
    async with cluster(ON) as rm:
        node = await queueing_node(rm)
        app_id, master = await rm.running(node)
        await beat(node, running=4, wait_ms=2500)
        first, *others = given(await master.allocate(ask(9)))
        for container_id in (first, *others):
            node.run(container_id)
            node.running[container_id].container_sub_state = common.CSS_SCHEDULED
        node.running[first].yaq_times.held_ms = 1200
        await report_queue(node, others)
        waiting = json.loads(await command(rm, "explain", str(app_id), "--json"))["waiting"]
        held = {one["container"]: one["heldS"] for one in waiting}
        assert held.pop(str(first)) == pytest.approx(1.2, abs=1.0) and set(held.values()) == {None}
        text = await command(rm, "explain", str(app_id))
        [row] = [line for line in text.splitlines() if line.startswith(str(first))]
        assert "any moment" in row and "its turn has come, it has waited for a processor for 1." in row
        node.running[first].yaq_times.starts_in_ms = 60_000
        await beat(node, running=4)
        [entry] = [
            one
            for one in json.loads(await command(rm, "explain", str(app_id), "--json"))["waiting"]
            if one["container"] == str(first)
        ]
        assert entry["expectedStartInS"] == pytest.approx(60, abs=5)
        text = await command(rm, "explain", str(app_id))
        [row] = [line for line in text.splitlines() if line.startswith(str(first))]
        assert "any moment" not in row

        for container_id in (first, *others):
            node.end(container_id)
        node.ended[first].yaq_times.held_ms, node.ended[others[0]].yaq_times.held_ms = 2000, 1000
        node.ended[others[1]].yaq_times.held_ms = -(2**62)
        await beat(node, running=1, times=(2500, 12_000))
        found = json.loads(await command(rm, "explain", str(app_id), "--json"))
        assert [one["heldS"] for one in found["ended"]] == [2.0, 1.0, 0.0, *[None] * (len(others) - 2)]
        seen = found["accuracy"]
        assert (seen["held"], seen["meanHeldS"], seen["meanRanS"]) == (2, 1.5, 12.0)
        assert seen["meanWaitedS"] == 2.5
        assert "2 had their turn and were held for 1.5s in the mean" in await command(rm, "explain", str(app_id))


def test_what_was_expected_is_compared_with_when_the_program_started() -> None:
    names = "c", "n", 1, None, 3.0, "r", 2.0, 10.0, None
    [held, not_held, unknown] = _read(json.dumps([[*names, 1.5], [*names, 0.0], [*names, None]]))
    seen = accuracy([held, not_held, unknown])
    assert (seen["withWait"], seen["meanWaitedS"], seen["meanWaitErrorS"]) == (3, 2.0, round((0.5 + 1 + 1) / 3, 3))


@pytest.mark.slow
async def test_an_estimate_is_what_was_known_when_the_container_was_placed() -> None:
    async with cluster({**ON, "yaq.queue.default-estimate": ""}) as rm:
        node = await queueing_node(rm)
        app_id, master = await rm.running(node, application_name="new")
        await beat(node, running=1)
        containers = given(await master.allocate(ask(3)))
        for container_id in containers:
            node.run(container_id)
        await beat(node, running=4)
        for run_ms, container_id in zip((4000, 8000, 6000), containers, strict=True):
            node.end(container_id)
            await beat(node, running=3, times=(0, run_ms))
        found = json.loads(await command(rm, "explain", str(app_id), "--json"))
        assert [one["estimateS"] for one in found["ended"]] == [None] * 3, "of siblings it was learnt later"
        assert found["accuracy"]["withEstimate"] == 0
        assert "expected to run" not in await command(rm, "explain", str(app_id))
        [known] = given(await master.allocate(ask(1)))
        node.run(known)
        await beat(node, running=2)
        node.end(known)
        await beat(node, running=1, times=(0, 9000))
        found = json.loads(await command(rm, "explain", str(app_id), "--json"))
        assert (found["ended"][-1]["estimateS"], found["ended"][-1]["ranS"]) == (pytest.approx(6.0, abs=1.0), 9.0)
        assert found["accuracy"]["withEstimate"] == 1


async def test_top_says_that_nobody_knows_how_many_fit() -> None:
    async with cluster(ON) as rm:
        node = await queueing_node(rm)
        lines = (await command(rm, "top", "--once")).splitlines()
        assert " 0/- " in lines[1] and lines[2].startswith("running N/-: how many fit is known once")
        await beat(node, running=4, queued=1)
        text = await command(rm, "top", "--once")
        assert " 4/4 " in text and "how many fit" not in text


def test_records_of_an_earlier_release_are_read() -> None:
    row = ["c", "n", 1, 4.0, 2.5, "r", 3.0, 6.0]
    [old], [new], none = _read(json.dumps([row])), _read(json.dumps([[*row, 0.5]])), _read(json.dumps([row[:-1]]))
    assert (old.room_said_ago_s, new.room_said_ago_s, list(none)) == (None, 0.5, [])
    assert accuracy([old, new])["afterRoom"] == 1
    [newest] = _read(json.dumps([[*row, 0.5, 1.5]]))
    assert (new.held_s, newest.held_s, accuracy([old, new, newest])["held"]) == (None, 1.5, 1)
    [given_room] = _read(json.dumps([[*row, None, None, True]]))
    assert (newest.was_given_room, given_room.was_given_room) == (False, True)
    assert accuracy([newest, given_room])["roomTaken"] == 1 and not list(_read(json.dumps([[*row, None, None, 1]])))


@pytest.mark.parametrize(("vcores", "said"), [(1, "(1024 MB, 1 core; "), (2, "(1024 MB, 2 cores; ")])
async def test_one_core_is_no_cores(vcores: int, said: str) -> None:
    async with cluster(ON) as rm:
        app_id, master = await rm.running(await queueing_node(rm))
        await master.allocate(ask(20, vcores=vcores))
        assert f"of priority 1 {said}" in await command(rm, "explain", str(app_id))


async def test_what_waited_in_vain_is_said_apart_from_what_ended_well() -> None:
    async with cluster(ON) as rm:
        node = await queueing_node(rm)
        app_id, master = await rm.running(node)
        await beat(node, running=4, wait_ms=2000)
        containers = given(await master.allocate(ask(6)))
        for container_id in containers:
            node.run(container_id)
        *well, back = containers
        await report_queue(node, [back])
        node.end(back, -102, "waited too long")
        node.ended[back].yaq_times.queued_ms = 5000
        for container_id in well[:2]:
            node.end(container_id)
            node.ended[container_id].yaq_times.run_ms = 1000
        await beat(node, running=4)
        found = json.loads(await command(rm, "explain", str(app_id), "--json"))
        assert [one["container"] for one in found["gaveBack"]] == [str(back)]
        assert str(back) not in [one["container"] for one in found["ended"]] and len(found["ended"]) == 2
        seen = found["accuracy"]
        assert (seen["tasks"], seen["gaveBack"], seen["meanWaitedGaveBackS"]) == (2, 1, 5.0)
        text = await command(rm, "explain", str(app_id))
        assert "1 of its containers waited at nodes in vain, for 5.0s in the mean" in text
        assert "Of the last 2 containers that ended" in text
