"""What `yaq node list` and `yaq app status` say of a node that is silent and of an application that waits."""

import asyncio
import copy
import json

import click
from click.testing import CliRunner

from tests.rm.rm_harness import Harness, ManualClock, ask, cluster
from tests.rm.rm_queueing import ON, beat, queueing_node
from yaqd.cli.applications.commands import app
from yaqd.cli.nodes import node as nodes


async def command(rm: Harness, group: click.Group, *words: str) -> str:
    assert rm.manager.web is not None
    addresses = {
        "yarn.resourcemanager.webapp.address": rm.manager.web.port,
        "yarn.resourcemanager.address": rm.manager.servers.client.port,
    }
    options = [word for key, port in addresses.items() for word in ("-D", f"{key}=127.0.0.1:{port}")]
    result = await asyncio.to_thread(CliRunner().invoke, copy.copy(group), [*words, *options])
    if result.exception is not None:
        raise result.exception
    return result.output


async def test_a_node_that_does_not_report_any_more_is_listed_as_silent() -> None:
    clock = ManualClock()
    async with cluster(ON, clock=clock) as rm:
        node = await queueing_node(rm)
        assert "silent" not in await command(rm, nodes, "list")
        clock.seconds += 30
        assert "RUNNING, silent for 30" in await command(rm, nodes, "list")
        [said] = json.loads(await command(rm, nodes, "list", "--json"))
        assert said["state"] == "RUNNING" and said["silent_s"] == 30
        await beat(node)
        [said] = json.loads(await command(rm, nodes, "list", "--json"))
        assert said["silent_s"] is None


async def test_what_waits_is_said_in_a_sentence_and_beside_what_is_in_use() -> None:
    async with cluster(ON) as rm:
        node = await queueing_node(rm)
        app_id, master = await rm.running(node, application_name="sleep")
        await master.allocate(ask(9))
        text = await command(rm, app, "status", str(app_id))
        assert "4 containers, <memory:4096, vCores:4>" in text
        assert "waits at nodes" in text and "3 containers, <memory:3072, vCores:3>" in text
        [shown] = json.loads(await command(rm, app, "list", "--json"))
        assert (shown["containers"], shown["used_mb"], shown["waiting"], shown["waiting_mb"]) == (4, 4096, 3, 3072)
        second = await rm.submit()
        await rm.until(lambda: bool(rm.manager.scheduler.view.masters_wanted))
        text = await command(rm, app, "status", str(second))
        assert "application masters never wait at nodes" in text and "AM Partition" not in text
        assert "AM Partition" in (await rm.report(second)).diagnostics, "as Hadoop's clients know it"


async def test_a_master_that_waits_is_told_of_nodes_that_are_silent() -> None:
    clock = ManualClock()
    async with cluster(ON, clock=clock) as rm:
        node = await queueing_node(rm)
        _, master = await rm.running(node, application_name="sleep")
        await master.allocate(ask(9))
        second = await rm.submit()
        await rm.until(lambda: bool(rm.manager.scheduler.view.masters_wanted))
        assert "heard of" not in await command(rm, app, "status", str(second))
        clock.seconds += 30
        assert "1 of 1 nodes have not been heard of lately" in await command(rm, app, "status", str(second))
