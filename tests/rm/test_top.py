"""What `yaq top` shows of nodes: over REST, in the words of the command line, as wide as a terminal is."""

import json
from io import StringIO

import pytest
from rich.console import Console

from rm.nodes.use import NodeUse
from tests.rm.rm_commands import command
from tests.rm.rm_harness import ask, cluster
from tests.rm.rm_queueing import ON, OURS, beat, given, queueing_node
from yaqd.cli.top import table

NODE = {
    "id": "127.0.0.1:33465",
    "state": "RUNNING",
    "silentS": None,
    "queues": True,
    "running": 4,
    "slots": 8,
    "queued": 2,
    "bound": 6,
    "waitS": 2.5,
    "isDraining": False,
    "memoryMb": 65536,
    "usedMb": 65536,
    "utilization": {"now": 0.5, "minute": 0.25, "fiveMinutes": 0.1},
}


async def test_top_shows_queues_and_use() -> None:
    async with cluster(ON) as rm:
        node = await queueing_node(rm)
        stock = await rm.node(host="127.0.0.1")
        await stock.beat()
        _, master = await rm.running(node if node.started else stock)
        await master.allocate(ask(20))
        await beat(node, running=2)
        [ours] = [n for n in json.loads(await command(rm, "top", "--json")) if n["id"] == str(node.id)]
        assert (ours["running"], ours["slots"]) == (2, None), "more may fit than has been seen"
        await beat(node, running=4, queued=3, wait_ms=2500)
        nodes = json.loads(await command(rm, "top", "--json"))
        ours = next(n for n in nodes if n["id"] == str(node.id))
        assert (ours["queued"], ours["bound"], ours["slots"], ours["waitS"]) == (3, 3, 4, 2.5)
        assert ours["utilization"]["now"] == 1.0 and 0 < ours["utilization"]["minute"] <= 1.0
        other = next(n for n in nodes if n["id"] == str(stock.id))
        assert (other["queues"], other["bound"], other["waitS"]) == (False, 0, None)
        text = await command(rm, "top", "--once")
        assert "4/4" in text and "2.5s" in text and str(stock.id) in text


@pytest.mark.parametrize("enabled", ["true", "false"])
async def test_a_node_whose_cores_are_all_given_away_is_busy(enabled: str) -> None:
    dominant = "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
    values = {"yaq.queue.enabled": enabled, "yarn.scheduler.capacity.resource-calculator": dominant}
    async with cluster(values) as rm:
        node = await rm.node(memory_mb=65536, vcores=2, capabilities=OURS)
        _, master = await rm.running(node)
        await beat(node, running=1)
        [found] = json.loads(await command(rm, "top", "--json"))
        assert found["utilization"]["now"] == 0.5
        [container_id] = given(await master.allocate(ask(9)))
        node.run(container_id)
        await beat(node, running=2)
        [found] = json.loads(await command(rm, "top", "--json"))
        assert found["utilization"]["now"] == 1.0 and found["usedMb"] < 65536 / 8


def test_use_fades_with_time() -> None:
    use = NodeUse()
    use.observe(1.0, 0.0)
    use.observe(0.0, 60.0)
    now, minute, five = use.shares()
    assert now == 0.0 and 0.3 < minute < 0.4 and 0.8 < five < 0.83
    use.observe(7.5, 30.0)  # the clock went back, and nothing is more than all
    assert use.shares()[0] == 1.0


def test_the_table_of_a_terminal_says_the_same() -> None:
    node = {**NODE, "id": "[::1]:1", "waitS": None, "isDraining": True}
    console = Console(width=200, record=True, file=StringIO())
    console.print(table([node], 200))
    text = console.export_text()
    assert "1 nodes, 4 running, 2 queued, 25.0% busy" in text
    assert "[::1]:1" in text and "DRAINS QUEUE" in text and "no end" in text and "#####..... 50.0%" in text


def test_a_narrow_terminal_shows_fewer_columns_and_those_whole() -> None:
    bars, size = "#", "memory MB"
    for width, missing in ((200, ()), (105, (bars,)), (90, (bars, size)), (80, (bars, size, "5 min"))):
        console = Console(width=width, record=True, file=StringIO())
        console.print(table([NODE], width))
        text = console.export_text()
        assert "127.0.0.1:33465" in text and "4/8" in text and "2.5s" in text and "50.0%" in text
        assert "1 min" in text and "25.0%" in text.splitlines()[-1], "how busy it has been goes before how large it is"
        assert "\u2026" not in text, text
        assert all(heading not in text for heading in missing), text
