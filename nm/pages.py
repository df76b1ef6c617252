"""The node's plain page for people: what it is, what runs on it, and where the logs are."""

from collections.abc import Iterable
from urllib.parse import quote

from aiohttp import web

from nm.containers.container import Container
from nm.heartbeat import NM_VERSION, NodeHealth
from nm.node_queue import NodeQueueSnapshot
from nm.node_queue_pages import place_text, places, queue_text
from yaqd.model import NodeId, Resource
from yaqd.web.page import facts, link, page, section, table, text
from yaqd.web.times import shown


def node_page(
    node: NodeId,
    resource: Resource,
    started_ms: int,
    health: NodeHealth,
    containers: Iterable[tuple[Container, str]],
    queue: NodeQueueSnapshot,
) -> web.Response:
    """Makes the node's page. `containers`: each with the name of its state."""
    pairs = [
        ("resources", text(resource)),
        ("health", text("healthy" if health.is_healthy else "unhealthy")),
        ("report", text(health.report)),
        ("started", text(shown(started_ms))),
        ("queue", text(queue_text(queue))),
        ("version", text(NM_VERSION)),
        ("more", link("/ws/v1/node/info", "REST")),
    ]
    waiting = places(queue)
    rows = [
        (
            text(container.id),
            text(container.grant.user),
            text(state),
            text(container.grant.execution_type.name),
            text(container.grant.resource),
            text(place_text(waiting.get(container.id))),
            link(f"/node/containerlogs/{container.id}/{quote(container.grant.user, safe='')}", "logs"),
        )
        for container, state in containers
    ]
    heads = ("container", "user", "state", "type", "resources", "queue", "logs")
    return page(f"Node {node}", facts(pairs), section("Containers", table(heads, rows)))
