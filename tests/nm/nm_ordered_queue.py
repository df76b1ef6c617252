"""A node of two slots whose node queue follows the orders of a ResourceManager."""

from pathlib import Path
from typing import Any

from tests.nm.nm_cluster import FakeResourceManager, Master, container_id, launch_context
from yaqd.model import Resource
from yaqd.proto import yarn_server_pb2 as server

ONE, TWO, THREE, FOUR = map(container_id, range(1, 5))
SLOT = Resource(500, 1)
TWO_SLOTS = {
    "yarn.nodemanager.resource.memory-mb": "1000",
    "yarn.nodemanager.container-retry-minimum-interval-ms": "1",
}


def settings(**fields: Any) -> server.NodeQueueOrders:
    fields = {"enabled": True, "max_queued": 4, "order": "stf", **fields}
    return server.NodeQueueOrders(settings=server.NodeQueueSettings(**fields))


async def order(rm: FakeResourceManager, orders: server.NodeQueueOrders) -> None:
    """Returns when the node has them: a heartbeat sent after the answer that brought them."""
    rm.orders.append(lambda response: response.yaq_orders.CopyFrom(orders))
    await rm.until(lambda: not rm.orders)
    answered = len(rm.heartbeats)
    await rm.until(lambda: len(rm.heartbeats) > answered)


def known(estimate_ms: int | None = None, arrival_ms: int = 1000) -> server.TaskFacts:
    facts = server.TaskFacts(job_arrival_ms=arrival_ms, leaf_queue="root.default")
    if estimate_ms is not None:
        facts.estimate_ms = estimate_ms
    return facts


async def run(
    master: Master, container: Any, command: str, facts: server.TaskFacts | None = None, resource: Resource = SLOT
) -> None:
    fields = {"resource": resource, **({"yaq_task": facts} if facts is not None else {})}
    await master.run(container, launch_context(command), **fields)


def queue_of(rm: FakeResourceManager) -> server.NodeQueue:
    return rm.heartbeats[-1].node_status.yaq_queue


def read_all(folder: Path, *names: str) -> str:
    return "".join((folder / name).read_text() for name in names)
