"""What `yaq explain` says of nodes that are kept: to whom they are kept for, and to those who are sent elsewhere."""

import json
from typing import Any

import pytest

from tests.rm.rm_commands import command
from tests.rm.rm_harness import FakeMaster, FakeNode, Harness, ManualClock, ask, cluster
from tests.rm.rm_proxied import OPPORTUNISTIC, loaded
from tests.rm.rm_queueing import ON, OURS, given
from yaqd.model import ApplicationId
from yaqd.proto import yarn_common_pb2 as common

STARVE_S = 20.0
SETTINGS = {**OPPORTUNISTIC, **ON, "yaq.queue.starve-ms": f"{STARVE_S:g}s"}


def spare(number: int) -> common.ResourceRequest:
    wanted = ask(number)
    wanted.execution_type_request.execution_type = common.OPPORTUNISTIC
    return wanted


async def stock(rm: Harness, node: FakeNode) -> tuple[ApplicationId, FakeMaster]:
    """An application whose master does not know of waiting."""
    app_id = await rm.submit()
    master = await rm.launched(app_id, node)
    await master.register(tolerates_waiting=False)
    return app_id, master


async def told(rm: Harness, app_id: ApplicationId) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(await command(rm, "explain", str(app_id), "--json"))
    return found


@pytest.mark.slow
async def test_a_kept_node_is_said_to_its_application_and_to_those_who_wait_elsewhere() -> None:
    clock = ManualClock()
    async with cluster(SETTINGS, clock=clock) as rm:
        node = await rm.node(memory_mb=2048, vcores=2, capabilities=OURS)
        await loaded(node, queued=3, capacity=9, wait_ms=9000)
        starved, master = await stock(rm, node)
        other, aware = await rm.running(node)
        assert not given(await master.allocate(spare(2))), "two masters fill the node, and it may not wait for long"
        found = await told(rm, starved)
        assert (found["keptNodes"], found["keptForOthers"]) == ([], 0)

        clock.seconds += STARVE_S + 1
        await loaded(node, queued=3, capacity=9, wait_ms=9000)
        await master.allocate()
        assert not given(await aware.allocate(spare(4))), "nobody else's go there"
        clock.seconds += 2.0
        found = await told(rm, starved)
        [kept] = found["keptNodes"]
        assert kept == {"node": str(node.id), "sinceS": 2.0, "containers": 1, "starvedS": STARVE_S + 1}
        assert found["keptForOthers"] == 0
        text = await command(rm, "explain", str(starved))
        assert f"node {node.id} has been held for it for 2.0s, for 1 container more: nobody else's" in text
        assert "it had been given none for 21.0s (yaq.queue.starve-ms) and its master does not say" in text

        found = await told(rm, other)
        assert (found["keptNodes"], found["keptForOthers"]) == ([], 1)
        assert found["asks"][0]["why"] == (
            "all 1 nodes that let opportunistic containers wait are held for other applications"
        )
        text = await command(rm, "explain", str(other))
        assert "1 node is held for other applications" in text and "held for it" not in text
        assert (await told(rm, await rm.submit()))["keptForOthers"] == 0, "it wants no such containers"

        await master.allocate(spare(0))
        found = await told(rm, starved)
        assert found["keptNodes"] == []
        decided = [(entry["decision"], entry["node"]) for entry in found["decisions"] if "Keep" in entry["decision"]]
        assert decided == [("Keep", str(node.id)), ("KeepNoMore", str(node.id))], "it stays in the log"
        assert (await told(rm, other))["keptForOthers"] == 0
        text = await command(rm, "explain", str(starved))
        assert "given no opportunistic container for 21 s" in text and "waits for a node any more" in text
