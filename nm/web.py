"""The node's web server: Hadoop's REST answers for node, applications, containers, and the containers' logs."""

import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from aiohttp import web

from nm.containers.application import Application
from nm.containers.container import Container
from nm.containers.runtime import ContainerRuntime
from nm.containers.states import Stage
from nm.heartbeat import NM_VERSION, NodeHealth
from nm.logs.access import LogAccess
from nm.logs.pages import LogPages
from nm.merger.web import MergerPage
from nm.node_queue_pages import SHOWN_MAX, places, queue_dict
from nm.pages import node_page
from nm.shuffle.node import ApplicationShuffle
from nm.web_settings import NodeWebSettings
from yaqd.model import ApplicationId, BadIdentifier, ContainerId, NodeId, Resource
from yaqd.web.identity import SimpleIdentity, answer_options
from yaqd.web.server import HttpServer

_STAGE_NAMES = {
    Stage.NEW: "NEW",
    Stage.LOCALIZING: "LOCALIZING",
    Stage.SCHEDULED: "SCHEDULED",
    Stage.LAUNCHING: "SCHEDULED",
    Stage.ABORTING: "KILLING",
    Stage.RUNNING: "RUNNING",
    Stage.RELAUNCHING: "RELAUNCHING",
    Stage.REPLACING: "REINITIALIZING",
    Stage.KILLING: "KILLING",
    Stage.COMPLETING: "EXITED_WITH_FAILURE",
    Stage.DONE: "DONE",
}


@dataclass(frozen=True, slots=True)
class NodeFacts:
    node_id: NodeId
    web_port: int
    resource: Resource
    check_physical: bool
    check_virtual: bool
    #: epoch ms
    started_ms: int


class NodeWeb:
    def __init__(
        self,
        *,
        runtime: ContainerRuntime,
        logs: LogPages,
        facts: Callable[[], NodeFacts],
        health: Callable[[], NodeHealth],
        shuffle: Callable[[], Awaitable[dict[str, Any]]],
        settings: NodeWebSettings,
        merger: MergerPage = MergerPage(None),
        shuffle_of: Callable[[ApplicationId], ApplicationShuffle | None] = lambda _: None,
    ) -> None:
        self._runtime = runtime
        self._logs = logs
        self._facts = facts
        self._health = health
        self._merger = merger
        self._shuffle = shuffle
        self._shuffle_of = shuffle_of
        identity = SimpleIdentity(
            static_user=settings.static_user, secret=secrets.token_bytes(32), now_ms=lambda: int(time.time() * 1000)
        )
        self._access = LogAccess(runtime, logs, identity, settings)
        self._http = HttpServer(
            self._routes, settings.limits, middlewares=[identity.remember, answer_options, self._access.check]
        )

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Starts the server and returns the bound address. Raises OSError."""
        return await self._http.start(host, port)

    async def stop(self) -> None:
        await self._http.stop()

    def _routes(self, router: web.UrlDispatcher) -> None:
        self.add_routes(router)
        self._logs.register_on(router)

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Adds all routes but the logs."""
        add = router.add_get
        for path in ("/ws/v1/node", "/ws/v1/node/", "/ws/v1/node/info"):
            add(path, self._info)
        add("/ws/v1/node/apps", self._applications)
        add("/ws/v1/node/apps/{app}", self._application)
        add("/ws/v1/node/apps/{app}/shuffle", self._application_shuffle)
        add("/ws/v1/node/containers", self._containers)
        add("/ws/v1/node/containers/{container}", self._container)
        add("/ws/v1/node/merger", self._merger_state)
        for path in ("/", "/node", "/node/node", "/node/allContainers"):
            add(path, self._node_page)

    # Node, applications, containers -----------------------------------------------------------------------------------

    async def _node_page(self, request: web.Request) -> web.Response:
        facts = self._facts()
        containers = [(c, _STAGE_NAMES[c.stage]) for c in await self._visible_containers(request)]
        queue = self._runtime.queue_snapshot(SHOWN_MAX)
        return node_page(facts.node_id, facts.resource, facts.started_ms, self._health(), containers, queue)

    async def _merger_state(self, request: web.Request) -> web.Response:
        return await self._merger.answer(request)

    async def _info(self, request: web.Request) -> web.Response:
        facts, health = self._facts(), self._health()
        live = [c for c in self._runtime.containers.values() if not c.is_done]
        memory_mb = sum(c.grant.resource.memory_mb for c in live)
        return web.json_response(
            {
                "nodeInfo": {
                    "healthReport": health.report,
                    "totalVmemAllocatedContainersMB": memory_mb,
                    "totalPmemAllocatedContainersMB": memory_mb,
                    "totalVCoresAllocatedContainers": sum(c.grant.resource.vcores for c in live),
                    "vmemCheckEnabled": facts.check_virtual,
                    "pmemCheckEnabled": facts.check_physical,
                    "lastNodeUpdateTime": int(time.time() * 1000),
                    "nodeHealthy": health.is_healthy,
                    "nodeManagerVersion": NM_VERSION,
                    "nodeManagerBuildVersion": f"{NM_VERSION} (yaqd)",
                    "nodeManagerVersionBuiltOn": "",
                    "hadoopVersion": NM_VERSION,
                    "hadoopBuildVersion": f"{NM_VERSION} (yaqd)",
                    "hadoopVersionBuiltOn": "",
                    "id": str(facts.node_id),
                    "nodeHostName": facts.node_id.host,
                    "nmStartupTime": facts.started_ms,
                    "resourceTypes": "memory-mb (unit=Mi), vcores",
                    "totalMemoryMB": facts.resource.memory_mb,
                    "totalVCores": facts.resource.vcores,
                    "queue": queue_dict(self._runtime.queue_snapshot(), self._runtime.queue_settings),
                    "shuffle": await self._shuffle(),
                }
            }
        )

    async def _applications(self, request: web.Request) -> web.Response:
        visible = await self._access.visible(request, self._runtime.applications)
        apps = [_application_dict(a) for a in self._runtime.applications.values() if a.id in visible]
        for parameter in ("state", "user"):
            wanted = request.query.get(parameter)
            if wanted is not None:
                apps = [a for a in apps if a[parameter] == wanted]
        return web.json_response({"apps": {"app": apps}})

    async def _application(self, request: web.Request) -> web.Response:
        application = self._runtime.applications.get(_parse(ApplicationId, request.match_info["app"]))
        if application is None:
            raise _not_found(f"application {request.match_info['app']} is not on this node")
        return web.json_response({"app": _application_dict(application)})

    async def _application_shuffle(self, request: web.Request) -> web.Response:
        """What was merged of its map outputs and why, also when it is over."""
        application = _parse(ApplicationId, request.match_info["app"])
        found = self._shuffle_of(application)
        if found is None:
            raise _not_found(f"of {application} this node has no map outputs")
        await self._access.check_owner(request, application, found.user)
        return web.json_response({"shuffle": {"id": str(application), **found.facts}})

    async def _containers(self, request: web.Request) -> web.Response:
        waiting = places(self._runtime.queue_snapshot(SHOWN_MAX))
        found = [await self._container_dict(c, waiting.get(c.id)) for c in await self._visible_containers(request)]
        return web.json_response({"containers": {"container": found}})

    async def _container(self, request: web.Request) -> web.Response:
        container = self._runtime.spelled(_parse(ContainerId, request.match_info["container"]))
        if container is None:
            raise _not_found(f"container {request.match_info['container']} is not on this node")
        waiting = places(self._runtime.queue_snapshot(SHOWN_MAX))
        return web.json_response({"container": await self._container_dict(container, waiting.get(container.id))})

    async def _visible_containers(self, request: web.Request) -> list[Container]:
        containers = list(self._runtime.containers.values())
        visible = await self._access.visible(request, {c.id.application_id for c in containers})
        return [c for c in containers if c.id.application_id in visible]

    async def _container_dict(self, container: Container, place: dict[str, Any] | None) -> dict[str, Any]:
        """`place` in the node queue; None: it does not wait there."""
        files = await self._logs.files(container.id)
        facts, grant = self._facts(), container.grant
        return {
            "id": str(container.id),
            "state": _STAGE_NAMES[container.stage],
            "exitCode": container.exit_status,
            "diagnostics": container.diagnostics,
            "user": grant.user,
            "totalMemoryNeededMB": grant.resource.memory_mb,
            "totalVCoresNeeded": grant.resource.vcores,
            "executionType": grant.execution_type.name,
            "containerLogsLink": f"http://{_host(facts)}/node/containerlogs/{container.id}/{quote(grant.user)}",
            "nodeId": str(facts.node_id),
            "containerLogFiles": [file.name for file in files],
            "pid": container.process.pid if container.process is not None else None,
            "warmStart": container.is_warm,
            "physicalMemoryBytes": container.physical_bytes,
            "peakMemoryBytes": container.peak_bytes,
            "cpuMilliseconds": round(1000 * container.cpu_s),
            "gpus": list(self._runtime.gpus.of(container.id)),
            "queue": place,
        }


def _application_dict(application: Application) -> dict[str, Any]:
    return {
        "id": str(application.id),
        "state": "FINISHING_CONTAINERS_WAIT" if application.is_ending else "RUNNING",
        "user": application.user,
        "containerids": [str(container) for container in sorted(application.containers)],
    }


def _host(facts: NodeFacts) -> str:
    return f"{facts.node_id.host}:{facts.web_port}"


def _parse(kind: Any, text: str) -> Any:
    try:
        return kind.parse(text)
    except BadIdentifier as error:
        raise web.HTTPBadRequest(text=f"{error}\n") from None


def _not_found(text: str) -> web.HTTPNotFound:
    return web.HTTPNotFound(text=f"{text}\n")
