"""The node's web server: Hadoop's REST answers for node, applications, containers, and the containers' logs."""

import asyncio
import html
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor as ThreadExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from aiohttp import web

from nm.container import Container
from nm.container_logs import LogFile, OpenLog, list_logs, open_log
from nm.container_runtime import Application, ContainerRuntime
from nm.container_states import Stage
from nm.heartbeat import NM_VERSION, NodeHealth
from yaqd.model import ApplicationId, BadIdentifier, ContainerId, NodeId, Resource

_CHUNK_BYTES = 256 << 10
_STAGE_NAMES = {
    Stage.NEW: "NEW",
    Stage.LOCALIZING: "LOCALIZING",
    Stage.SCHEDULED: "SCHEDULED",
    Stage.LAUNCHING: "SCHEDULED",
    Stage.ABORTING: "KILLING",
    Stage.RUNNING: "RUNNING",
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
        log_dirs: tuple[Path, ...],
        threads: ThreadExecutor,
        facts: Callable[[], NodeFacts],
        health: Callable[[], NodeHealth],
    ) -> None:
        self._runtime = runtime
        self._log_dirs = log_dirs
        self._threads = threads
        self._facts = facts
        self._health = health
        self._runner: web.AppRunner | None = None

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """The bound address. Raises OSError."""
        application = web.Application(client_max_size=1 << 16, middlewares=[_plain_headers])
        add = application.router.add_get
        for path in ("/ws/v1/node", "/ws/v1/node/", "/ws/v1/node/info"):
            add(path, self._info)
        add("/ws/v1/node/apps", self._applications)
        add("/ws/v1/node/apps/{app}", self._application)
        add("/ws/v1/node/containers", self._containers)
        add("/ws/v1/node/containers/{container}", self._container)
        add("/ws/v1/node/containers/{container}/logs", self._logs)
        add("/ws/v1/node/containers/{container}/logs/{file}", self._log)
        add("/ws/v1/node/containerlogs/{container}/{file}", self._log)
        add("/node/containerlogs/{container}/{user}", self._log_page)
        add("/node/containerlogs/{container}/{user}/{file}", self._log)
        for path in ("/", "/node"):
            add(path, _to_info)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.5)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port)
        await site.start()
        bound: tuple[str, int] = self._runner.addresses[0][:2]
        return bound

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    # Node, applications, containers -----------------------------------------------------------------------------------

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
                }
            }
        )

    async def _applications(self, request: web.Request) -> web.Response:
        apps = [_application_dict(a) for a in self._runtime.applications.values()]
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

    async def _containers(self, request: web.Request) -> web.Response:
        found = [await self._container_dict(c) for c in list(self._runtime.containers.values())]
        return web.json_response({"containers": {"container": found}})

    async def _container(self, request: web.Request) -> web.Response:
        container = self._runtime.containers.get(_parse(ContainerId, request.match_info["container"]))
        if container is None:
            raise _not_found(f"container {request.match_info['container']} is not on this node")
        return web.json_response({"container": await self._container_dict(container)})

    async def _container_dict(self, container: Container) -> dict[str, Any]:
        files = await self._in_thread(partial(list_logs, self._log_dirs, container.id))
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
            "containerLogFiles": [file.name for file in files or ()],
            "pid": container.process.pid if container.process is not None else None,
            "warmStart": container.is_warm,
            "physicalMemoryBytes": container.physical_bytes,
        }

    # Logs -------------------------------------------------------------------------------------------------------------

    async def _logs(self, request: web.Request) -> web.Response:
        container, files = await self._listing(request)
        entries = [
            {
                "fileName": file.name,
                "fileSize": str(file.size_bytes),
                "lastModifiedTime": time.strftime("%a %b %d %H:%M:%S +0000 %Y", time.gmtime(file.modified)),
            }
            for file in files
        ]
        listing = {
            "containerLogInfo": entries,
            "logAggregationType": "LOCAL",
            "containerId": str(container),
            "nodeId": str(self._facts().node_id),
        }
        return web.json_response({"containerLogsInfo": [listing]})

    async def _log_page(self, request: web.Request) -> web.Response:
        container, files = await self._listing(request)
        path = html.escape(f"/node/containerlogs/{container}/{quote(request.match_info['user'])}", quote=True)
        rows = "".join(
            f'<li><a href="{path}/{quote(file.name)}">{html.escape(file.name)}</a> {file.size_bytes} bytes</li>'
            for file in files
        )
        page = f"<!doctype html><title>Logs of {container}</title><h1>{container}</h1><ul>{rows}</ul>"
        return web.Response(text=page, content_type="text/html")

    async def _listing(self, request: web.Request) -> tuple[ContainerId, list[LogFile]]:
        container = _parse(ContainerId, request.match_info["container"])
        files: list[LogFile] | None = await self._in_thread(partial(list_logs, self._log_dirs, container))
        if files is None:
            raise _not_found(f"no logs of {container} on this node: they are deleted after their retention")
        return container, files

    async def _log(self, request: web.Request) -> web.StreamResponse:
        container = _parse(ContainerId, request.match_info["container"])
        name = request.match_info["file"]
        log: OpenLog | None = await self._in_thread(partial(open_log, self._log_dirs, container, name))
        if log is None:
            raise _not_found(f"no log file of this name for {container} on this node")
        try:
            start, end = _range(request, log.size_bytes)
            response = web.StreamResponse(headers={"X-Content-Type-Options": "nosniff"})
            response.content_type = "text/plain"
            response.charset = "utf-8"
            response.content_length = end - start
            await response.prepare(request)
            while start < end:
                chunk = await self._in_thread(partial(log.read, min(_CHUNK_BYTES, end - start), start))
                if not chunk:
                    raise ConnectionResetError("the log became shorter")
                await response.write(chunk)
                start += len(chunk)
            return response
        finally:
            log.close()

    def _in_thread(self, work: Callable[[], Any]) -> Awaitable[Any]:
        return asyncio.get_running_loop().run_in_executor(self._threads, work)


def _range(request: web.Request, size: int) -> tuple[int, int]:
    """`start` and `end` in bytes as on Hadoop's log pages (negative: from the end), or `size` as in its REST."""
    try:
        start = int(request.query.get("start", "0"))
        end = int(request.query.get("end", str(size)))
        first = request.query.get("size")
        if first is not None:
            start, end = (0, int(first)) if int(first) >= 0 else (int(first), size)
    except ValueError:
        raise web.HTTPBadRequest(text="start, end and size are numbers of bytes\n") from None
    start = max(0, size + start) if start < 0 else min(start, size)
    end = max(0, size + end) if end < 0 else min(end, size)
    return start, max(start, end)


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


async def _to_info(request: web.Request) -> web.Response:
    raise web.HTTPFound("/ws/v1/node/info")


@web.middleware
async def _plain_headers(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Log contents are anybody's: browsers must not take them for something to run."""
    try:
        response = await handler(request)
    except web.HTTPException as error:
        error.headers["X-Content-Type-Options"] = "nosniff"
        raise
    if not response.prepared:
        response.headers["X-Content-Type-Options"] = "nosniff"
    return response
