"""An application whose master was lost with its node: what its client, `yaq explain` and `yaq app status` say of it."""

import asyncio
import json
import re
from contextlib import closing

import pytest
from click.testing import CliRunner

from tests.rm.rm_commands import command
from tests.rm.rm_harness import LOOPBACK, Harness, ManualClock, ask, cluster
from tez_adapter.client.follow import SubmittedJob
from tez_adapter.client.rm_client import RmClient
from yaqd.cli.applications.commands import status
from yaqd.cli.applications.following import line_printer
from yaqd.cli.applications.wait_reason import why_it_waits
from yaqd.config import Configuration
from yaqd.model import ApplicationId


def client_conf(rm: Harness) -> Configuration:
    address = f"{LOOPBACK}:{rm.manager.servers.client.port}"
    return Configuration.load(overrides={"yarn.resourcemanager.address": address}, environ={})


async def app_status(rm: Harness, app_id: ApplicationId, *words: str) -> str:
    address = f"yarn.resourcemanager.address={LOOPBACK}:{rm.manager.servers.client.port}"
    result = await asyncio.to_thread(CliRunner().invoke, status, [str(app_id), *words, "-D", address])
    if result.exception is not None:
        raise result.exception
    return result.output


async def seen(rm: Harness, job: SubmittedJob, lines: list[str], show: object) -> list[str]:
    """What the waiting client writes at its next look."""
    assert callable(show)
    lines.clear()
    show(await asyncio.to_thread(job.status))
    return list(lines)


@pytest.mark.slow
async def test_a_master_lost_with_its_node_is_told_to_everybody_who_waits() -> None:
    async with cluster() as rm:
        node = await rm.node()
        app_id, _ = await rm.running(node)
        lines: list[str] = []
        show = line_printer(lines.append, patience_s=0.0)
        with closing(SubmittedJob(client_conf(rm), app_id)) as job:
            assert await seen(rm, job, lines, show) == []
            assert "attempt" not in await app_status(rm, app_id)
            [only] = json.loads(await app_status(rm, app_id, "--json"))["attempts"]
            assert (only["attempt"], only["state"], only["node"]) == (1, "RUNNING", str(node.id))

            await node.unregister()
            lost = rf"attempt 1 was lost with node {node.id} at \d\d:\d\d:\d\d; attempt 2 "
            waits = lost + "waits for its master's container"
            said, reason = await seen(rm, job, lines, show)
            assert re.fullmatch(waits, said) and reason.startswith("waiting: ")
            assert await seen(rm, job, lines, show) == [], "once"
            assert re.search(f"^{waits}$", await command(rm, "explain", str(app_id)), re.MULTILINE)
            text = await app_status(rm, app_id)
            [row] = [line for line in text.splitlines() if line.startswith("      1  FAILED")]
            assert str(node.id) in row and row.endswith("lost with its node")
            [row] = [line for line in text.splitlines() if line.startswith("      2  SCHEDULED")]
            assert "Application is added to the scheduler" in row

            other = await rm.node(host="127.0.0.2")
            await other.beat()
            second = await rm.launched(app_id, other, attempt=2)
            await second.register()
            found = json.loads(await command(rm, "explain", str(app_id), "--json"))["attempts"]
            assert [(a["attempt"], a["state"], a["node"]) for a in found] == [
                (1, "FAILED", str(node.id)),
                (2, "RUNNING", str(other.id)),
            ]
            assert "*lost* node" in found[0]["diagnostics"] and found[1]["endedAgoS"] is None
            assert re.search(f"^{lost}runs$", await command(rm, "explain", str(app_id)), re.MULTILINE)

            other.end(next(iter(other.running)), 3, "it fell\nover")
            await other.beat()


async def test_an_attempt_that_failed_by_itself_says_why() -> None:
    async with cluster({"yarn.resourcemanager.am.max-attempts": "3"}) as rm:
        node = await rm.node()
        app_id, _ = await rm.running(node)
        lines: list[str] = []
        show = line_printer(lines.append, patience_s=0.0)
        with closing(SubmittedJob(client_conf(rm), app_id)) as job:
            for attempt in (1, 2):
                container_id = next(c for c in node.started if c.attempt_id.attempt == attempt)
                if container_id not in node.running:
                    node.run(container_id)
                node.end(container_id, 3, "it fell\nover")
                await node.beat()
                await rm.launched(app_id, node, attempt=attempt + 1)
            first, second, *_ = await seen(rm, job, lines, show)
        assert re.match(
            rf"attempt 1 failed on node {node.id} at .*exitCode: 3 .*it fell over.*; attempt 2 followed", first
        )
        assert re.match(rf"attempt 2 failed on node {node.id} at .*; attempt 3 (waits|starts)", second)
        with RmClient(client_conf(rm)) as client:
            reports = await asyncio.to_thread(client.attempts, app_id)
        assert [str(one.node) for one in reports] == [str(node.id)] * 3


def web_conf(rm: Harness) -> Configuration:
    assert rm.manager.web is not None
    address = f"{LOOPBACK}:{rm.manager.web.port}"
    return Configuration.load(overrides={"yarn.resourcemanager.webapp.address": address}, environ={})


@pytest.mark.slow
@pytest.mark.parametrize(("node_s", "master_s", "lost_s"), [("20000", "600000", 20), ("90000", "60000", 60)])
async def test_a_master_whose_node_is_silent_is_told_to_everybody_who_waits(
    node_s: str, master_s: str, lost_s: int
) -> None:
    limits = {
        "yarn.nm.liveness-monitor.expiry-interval-ms": node_s,
        "yarn.am.liveness-monitor.expiry-interval-ms": master_s,
    }
    clock = ManualClock()
    async with cluster(limits, clock=clock) as rm:
        node = await rm.node()
        app_id, _ = await rm.running(node)
        lines: list[str] = []
        show = line_printer(lines.append, patience_s=0.0)
        with closing(SubmittedJob(client_conf(rm), app_id)) as job:
            clock.seconds += 2.9
            assert await seen(rm, job, lines, show) == []
            assert "not heard of" not in await command(rm, "explain", str(app_id))
            clock.seconds += 9.1
            said = f"its master runs on {node.id}, not heard of for 12 s; "
            said += f"the ResourceManager takes it for lost after {lost_s} s"
            assert await seen(rm, job, lines, show) == [f"waiting: {said}"]
            clock.seconds += 1
            assert await seen(rm, job, lines, show) == [], "the same a second later"
        said = said.replace("12 s", "13 s")
        assert said in (await command(rm, "explain", str(app_id))).splitlines()
        found = json.loads(await command(rm, "explain", str(app_id), "--json"))["masterSilent"]
        assert (found["node"], found["silentS"], found["lostAfterS"]) == (str(node.id), 13.0, lost_s)
        assert f"diagnostics: {said}" in await app_status(rm, app_id)
        assert await asyncio.to_thread(why_it_waits, web_conf(rm), app_id) == said
        await node.beat()
        assert (await rm.report(app_id)).diagnostics == ""


async def test_a_master_that_does_not_call_is_told_of_though_its_node_reports() -> None:
    clock = ManualClock()
    async with cluster(clock=clock) as rm:
        node = await rm.node()
        app_id, master = await rm.running(node)
        clock.seconds += 14
        await node.beat()
        assert (await rm.report(app_id)).diagnostics == ""
        clock.seconds += 6
        await node.beat()
        said = f"its master, on {node.id}, was not heard of for 20 s; "
        said += "the ResourceManager takes it for lost after 900 s"
        assert (await rm.report(app_id)).diagnostics == said
        await master.allocate()
        assert (await rm.report(app_id)).diagnostics == ""


@pytest.mark.slow
async def test_whoever_waits_is_told_what_explain_says_of_tasks_that_wait() -> None:
    async with cluster() as rm:
        node = await rm.node(memory_mb=2048)
        app_id, master = await rm.running(node)
        assert await asyncio.to_thread(why_it_waits, web_conf(rm), app_id) is None
        await master.allocate(ask(1, priority=5), ask(3, priority=20))
        await node.beat()
        await master.allocate()
        [wanted] = json.loads(await command(rm, "explain", str(app_id), "--json"))["asks"]
        said = await asyncio.to_thread(why_it_waits, web_conf(rm), app_id)
        assert said == f"3 containers of priority 20: {wanted['why']}"
        waiting = await rm.submit()
        [wanted] = json.loads(await command(rm, "explain", str(waiting), "--json"))["asks"]
        assert await asyncio.to_thread(why_it_waits, web_conf(rm), waiting) == wanted["why"]
        nobody = Configuration.load(overrides={"yarn.resourcemanager.webapp.address": "127.0.0.1:1"}, environ={})
        assert await asyncio.to_thread(why_it_waits, nobody, waiting) is None
