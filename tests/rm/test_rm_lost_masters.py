"""An application whose master was lost with its node: what its client, `yaq explain` and `yaq app status` say of it."""

import asyncio
import json
import re
from contextlib import closing

from click.testing import CliRunner
from rm_harness import LOOPBACK, Harness, cluster
from test_rm_explain import command

from tez_adapter.follow import SubmittedJob
from tez_adapter.rm_client import RmClient
from yaqd.cli.applications import status
from yaqd.cli.following import line_printer
from yaqd.config import Configuration
from yaqd.model import ApplicationId


def client_conf(rm: Harness) -> Configuration:
    address = f"{LOOPBACK}:{rm.manager.client_server.port}"
    return Configuration.load(overrides={"yarn.resourcemanager.address": address}, environ={})


async def app_status(rm: Harness, app_id: ApplicationId, *words: str) -> str:
    address = f"yarn.resourcemanager.address={LOOPBACK}:{rm.manager.client_server.port}"
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
