"""What a running ResourceManager says to commands and over REST."""

import asyncio
import copy

from aiohttp import ClientSession
from click.testing import CliRunner

from tests.rm.rm_harness import FakeNode, Harness
from yaqd.cli.applications.explain import explain
from yaqd.cli.top import top
from yaqd.model import ContainerId
from yaqd.proto import convert
from yaqd.proto.protocols import ResourceTracker


async def get(rm: Harness, path: str) -> dict[str, object]:
    assert rm.manager.web is not None
    async with ClientSession() as session, session.get(f"http://127.0.0.1:{rm.manager.web.port}{path}") as response:
        found: dict[str, object] = await response.json()
        return found


async def command(rm: Harness, *words: str) -> str:
    """What a command prints; the cluster goes on meanwhile."""
    assert rm.manager.web is not None
    address = f"yarn.resourcemanager.webapp.address=127.0.0.1:{rm.manager.web.port}"
    # a copy: click remembers in a command how it was called first, and the reference reads that
    run = copy.copy({"explain": explain, "top": top}[words[0]])
    result = await asyncio.to_thread(CliRunner().invoke, run, [*words[1:], "-D", address])
    if result.exception is not None:
        raise result.exception
    return result.output


async def report_queue(node: FakeNode, waiting: list[ContainerId]) -> None:
    """A heartbeat that lists who waits there."""
    request = node.heartbeat()
    said = request.node_status.yaq_queue
    said.running, said.queued, said.wait_ms = 4, len(waiting), 10_000
    for place, container_id in enumerate(waiting, 1):
        entry = said.waiting.add(waited_ms=1000, expected_ms=2500 * place)
        convert.put_container_id(entry.container_id, container_id)
    response = await node.tracker.call(ResourceTracker.nodeHeartbeat, request)
    node.response_id = response.response_id
