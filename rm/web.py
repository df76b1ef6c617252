"""The ResourceManager's web port: Hadoop's REST shapes for the cluster, its applications and nodes, read only.

Everything is made anew per request from the records. Errors have Hadoop's `RemoteException` shape.
"""

from collections.abc import Callable
from typing import Any, Final

from aiohttp import web

from rm.application import Application
from rm.cluster import Cluster
from rm.node import RmNode
from rm.node_tracker import RM_VERSION
from rm.reports import Reports
from yaqd.model import ApplicationId, BadIdentifier, NodeId, NodeState, Resource

_BASE: Final = "/ws/v1/cluster"


class RmWeb:
    def __init__(self, cluster: Cluster, reports: Reports, *, host: str, port: int, started_ms: int) -> None:
        self._cluster = cluster
        self._reports = reports
        self._host, self._port = host, port
        self._started_ms = started_ms
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application(client_max_size=1 << 20)
        routes: dict[str, Callable[[web.Request], web.Response]] = {
            _BASE: self._info,
            f"{_BASE}/": self._info,
            f"{_BASE}/info": self._info,
            f"{_BASE}/metrics": self._metrics,
            f"{_BASE}/apps": self._apps,
            f"{_BASE}/apps/{{id}}": self._app,
            f"{_BASE}/nodes": self._nodes,
            f"{_BASE}/nodes/{{id}}": self._node,
            f"{_BASE}/decisions": self._decisions,
            "/": self._home,
            "/cluster/app/{id}": self._application_page,
            "/proxy/{id}": self._proxy,
            "/proxy/{id}/{path:.*}": self._proxy,
        }
        for path, handler in routes.items():
            app.router.add_get(path, _coroutine(handler))
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port).start()

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @property
    def port(self) -> int:
        """The bound port; only after start."""
        assert self._runner is not None
        return int(self._runner.addresses[0][1])

    # ---- pages

    def _info(self, request: web.Request) -> web.Response:
        info = {
            "id": self._started_ms,
            "startedOn": self._started_ms,
            "state": "STARTED",
            "haState": "ACTIVE",
            "rmStateStoreName": "yaqd SQLite",
            "resourceManagerVersion": RM_VERSION,
            "resourceManagerBuildVersion": "yaqd",
            "hadoopVersion": RM_VERSION,
            "hadoopBuildVersion": "yaqd",
            "haZooKeeperConnectionState": "ResourceManager HA is not enabled.",
        }
        return web.json_response({"clusterInfo": info})

    def _metrics(self, request: web.Request) -> web.Response:
        view = self._cluster.scheduler.view
        states = [app.state.name for app in self._cluster.applications.values()]
        nodes = [node.state for node in self._cluster.nodes.values()]
        used, total = view.root.used, view.nodes.total
        free = total - used
        metrics = {
            "appsSubmitted": len(states),
            "appsCompleted": states.count("FINISHED"),
            "appsPending": sum(states.count(s) for s in ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED")),
            "appsRunning": states.count("RUNNING"),
            "appsFailed": states.count("FAILED"),
            "appsKilled": states.count("KILLED"),
            "reservedMB": sum(r.ask.capability.memory_mb for r in view.reservations.values()),
            "availableMB": free.memory_mb,
            "allocatedMB": used.memory_mb,
            "reservedVirtualCores": sum(r.ask.capability.vcores for r in view.reservations.values()),
            "availableVirtualCores": free.vcores,
            "allocatedVirtualCores": used.vcores,
            "containersAllocated": view.root.containers,
            "containersReserved": len(view.reservations),
            "containersPending": sum(a.attempt.asks.pending for a in view.applications.values() if a.attempt),
            "totalMB": total.memory_mb,
            "totalVirtualCores": total.vcores,
            "totalNodes": len(nodes),
            "activeNodes": nodes.count(NodeState.RUNNING),
            "lostNodes": nodes.count(NodeState.LOST),
            "unhealthyNodes": nodes.count(NodeState.UNHEALTHY),
            "decommissioningNodes": nodes.count(NodeState.DECOMMISSIONING),
            "decommissionedNodes": nodes.count(NodeState.DECOMMISSIONED),
            "rebootedNodes": nodes.count(NodeState.REBOOTED),
            "shutdownNodes": nodes.count(NodeState.SHUTDOWN),
        }
        return web.json_response({"clusterMetrics": metrics})

    def _apps(self, request: web.Request) -> web.Response:
        states = {s.upper() for s in request.query.get("states", request.query.get("state", "")).split(",") if s}
        users, queues = request.query.getall("user", []), request.query.getall("queue", [])
        found = [
            self._application(app)
            for app in self._cluster.applications.values()
            if (not states or app.state.name in states)
            and (not users or app.user in users)
            and (not queues or app.queue in queues)
        ]
        limit = request.query.get("limit", "")
        if limit.isdigit():
            found = found[: int(limit)]
        return web.json_response({"apps": {"app": found} if found else {}})

    def _app(self, request: web.Request) -> web.Response:
        try:
            app_id = ApplicationId.parse(request.match_info["id"])
        except BadIdentifier as error:
            return _error(400, "BadRequestException", str(error))
        app = self._cluster.applications.get(app_id)
        if app is None:
            return _error(404, "NotFoundException", f"app with id: {app_id} not found")
        return web.json_response({"app": self._application(app)})

    def _nodes(self, request: web.Request) -> web.Response:
        states = {s.upper() for s in request.query.get("states", "").split(",") if s}
        found = [_node(node) for node in self._cluster.nodes.values() if not states or node.state.name in states]
        return web.json_response({"nodes": {"node": found} if found else {}})

    def _node(self, request: web.Request) -> web.Response:
        try:
            node_id = NodeId.parse(request.match_info["id"])
        except BadIdentifier as error:
            return _error(400, "BadRequestException", str(error))
        node = self._cluster.nodes.get(node_id)
        if node is None:
            return _error(404, "NotFoundException", f"nodeId, {node_id}, is not found")
        return web.json_response({"node": _node(node)})

    def _home(self, request: web.Request) -> web.Response:
        raise web.HTTPFound(f"{_BASE}/info")

    def _application_page(self, request: web.Request) -> web.Response:
        raise web.HTTPFound(f"{_BASE}/apps/{request.match_info['id']}")

    def _proxy(self, request: web.Request) -> web.Response:
        """Send the browser to the application's own page, while it has one, else to what is known of it."""
        try:
            app = self._cluster.applications.get(ApplicationId.parse(request.match_info["id"]))
        except BadIdentifier as error:
            return _error(400, "BadRequestException", str(error))
        if app is None:
            return _error(404, "NotFoundException", f"app with id: {request.match_info['id']} not found")
        url = self._reports.original_url(app)
        if not url.startswith(("http://", "https://")):
            raise web.HTTPFound(f"{_BASE}/apps/{app.id}")
        raise web.HTTPFound(url.rstrip("/") + "/" + request.match_info.get("path", ""))

    def _decisions(self, request: web.Request) -> web.Response:
        """The scheduler's last decisions, newest last; not one of Hadoop's pages."""
        entries = [
            {
                "at": entry.at,
                "event": entry.event,
                "decision": type(entry.decision).__name__,
                "text": str(entry.decision),
            }
            for entry in list(self._cluster.scheduler.log)[-200:]
        ]
        return web.json_response({"decisions": entries})

    # ---- records

    def _application(self, app: Application) -> dict[str, Any]:
        report = self._reports.application(app)
        usage = report.app_resource_Usage
        attempt = app.attempt
        finished = report.finishTime
        page: dict[str, Any] = {
            "id": str(app.id),
            "user": app.user,
            "name": app.name,
            "queue": app.queue,
            "state": app.state.name,
            "finalStatus": _final_status(app),
            "progress": report.progress * 100,
            "trackingUI": "UNASSIGNED"
            if report.trackingUrl == "N/A"
            else ("History" if finished else "ApplicationMaster"),
            "trackingUrl": report.trackingUrl,
            "diagnostics": report.diagnostics,
            "clusterId": app.id.cluster_timestamp,
            "applicationType": app.type,
            "applicationTags": ",".join(app.tags),
            "priority": app.priority,
            "startedTime": app.submitted_ms,
            "launchTime": app.launched_ms,
            "finishedTime": finished,
            "elapsedTime": (finished or self._cluster.clock.wall_ms()) - app.submitted_ms,
            "allocatedMB": usage.used_resources.memory,
            "allocatedVCores": usage.used_resources.virtual_cores,
            "reservedMB": usage.reserved_resources.memory,
            "reservedVCores": usage.reserved_resources.virtual_cores,
            "runningContainers": usage.num_used_containers,
            "memorySeconds": usage.memory_seconds,
            "vcoreSeconds": usage.vcore_seconds,
            "queueUsagePercentage": usage.queue_usage_percentage,
            "clusterUsagePercentage": usage.cluster_usage_percentage,
            "logAggregationStatus": "DISABLED",
            "unmanagedApplication": app.is_unmanaged,
        }
        if attempt is not None and attempt.master is not None:
            master = attempt.master
            page["amContainerLogs"] = f"http://{master.http_address}/node/containerlogs/{master.id}/{app.user}"
            page["amHostHttpAddress"] = master.http_address
            page["masterNodeId"] = str(master.node_id)
        return page


def _final_status(app: Application) -> str:
    if app.conclusion is None or not app.state.is_final:
        return "UNDEFINED"
    return app.conclusion.final_status.name


def _node(node: RmNode) -> dict[str, Any]:
    used = node.used
    free = (node.total - used).floored() if node.is_usable else Resource()
    return {
        "rack": node.rack,
        "state": node.state.name,
        "id": str(node.id),
        "nodeHostName": node.id.host,
        "nodeHTTPAddress": node.http_address,
        "lastHealthUpdate": node.health_reported_ms,
        "version": node.version,
        "healthReport": node.health_report,
        "numContainers": len(node.containers),
        "usedMemoryMB": used.memory_mb,
        "availMemoryMB": free.memory_mb,
        "usedVirtualCores": used.vcores,
        "availableVirtualCores": free.vcores,
        "numQueuedContainers": node.status.opportunistic_containers_status.wait_queue_length,
    }


def _error(status: int, exception: str, message: str) -> web.Response:
    body = {
        "exception": exception,
        "message": message,
        "javaClassName": f"org.apache.hadoop.yarn.webapp.{exception}",
    }
    return web.json_response({"RemoteException": body}, status=status)


def _coroutine(handler: Callable[[web.Request], web.Response]) -> Callable[[web.Request], Any]:
    async def answer(request: web.Request) -> web.Response:
        return handler(request)

    return answer
