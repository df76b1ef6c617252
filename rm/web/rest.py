"""Hadoop's REST answers about the cluster, its applications and nodes, read only (RMWebServices, WebServices).

Everything is made anew per request from the records. Errors have Hadoop's `RemoteException` shape. A list of all
applications is written in pieces, so that it neither fills the memory nor holds the event loop up.
"""

import asyncio
import json
from collections.abc import Callable
from itertools import islice
from typing import Any, Final, Protocol, Self, TypeVar

from aiohttp import web

from rm.applications.former_attempts import every_attempt
from rm.applications.records import Application, Attempt, RmContainer
from rm.cluster import Cluster
from rm.nodes.tracker import RM_VERSION
from rm.services.reports import Reports
from rm.web.callers import WebCallers
from rm.web.cluster_rest import ClusterRest
from rm.web.filters import ApplicationFilter, BadParameter, deselected, words
from rm.web.metrics import metrics_json
from rm.web.problems import problem
from rm.web.records import application_json, attempt_json, container_json, node_json, timeouts_json
from yaqd.model import ApplicationAttemptId, ApplicationId, BadIdentifier, ContainerId, NodeId, NodeState

BASE: Final = "/ws/v1/cluster"
#: applications described before others get their turn on the event loop
_BATCH: Final = 50


def _absent_app(app_id: ApplicationId) -> str:
    """As Hadoop's pages have it."""
    return f"app with id: {app_id} not found"


class Rest:
    def __init__(self, cluster: Cluster, reports: Reports, callers: WebCallers, *, started_ms: int) -> None:
        self._cluster = cluster
        self._reports = reports
        self._callers = callers
        self._started_ms = started_ms

    def add_routes(self, router: web.UrlDispatcher) -> None:
        for path in (BASE, f"{BASE}/", f"{BASE}/info"):
            router.add_get(path, self.info)
        router.add_get(f"{BASE}/metrics", self.metrics)
        router.add_get(f"{BASE}/apps", self.apps)
        router.add_get(f"{BASE}/apps/{{id}}", self.app)
        router.add_get(f"{BASE}/apps/{{id}}/state", self.app_state)
        router.add_get(f"{BASE}/apps/{{id}}/queue", self.app_queue)
        router.add_get(f"{BASE}/apps/{{id}}/priority", self.app_priority)
        router.add_get(f"{BASE}/apps/{{id}}/timeouts", self.app_timeouts)
        router.add_get(f"{BASE}/apps/{{id}}/timeouts/{{type}}", self.app_timeout)
        router.add_get(f"{BASE}/apps/{{id}}/appattempts", self.attempts)
        router.add_get(f"{BASE}/apps/{{id}}/appattempts/{{attempt}}", self.attempt)
        router.add_get(f"{BASE}/apps/{{id}}/appattempts/{{attempt}}/containers", self.containers)
        router.add_get(f"{BASE}/apps/{{id}}/appattempts/{{attempt}}/containers/{{container}}", self.container)
        router.add_get(f"{BASE}/nodes", self.nodes)
        router.add_get(f"{BASE}/nodes/{{id}}", self.node)
        router.add_get(f"{BASE}/decisions", self.decisions)
        ClusterRest(self._cluster, self._callers).add_routes(router, BASE)

    async def info(self, request: web.Request) -> web.Response:
        info = {
            "id": self._started_ms,
            "startedOn": self._started_ms,
            "state": "STARTED",
            "haState": "ACTIVE",
            "rmStateStoreName": "yaqd SQLite",
            "resourceManagerVersion": RM_VERSION,
            "resourceManagerBuildVersion": f"{RM_VERSION} (yaqd)",
            "resourceManagerVersionBuiltOn": "",
            "hadoopVersion": RM_VERSION,
            "hadoopBuildVersion": f"{RM_VERSION} (yaqd)",
            "hadoopVersionBuiltOn": "",
            "haZooKeeperConnectionState": "There is no ResourceManager HA here.",
        }
        return web.json_response({"clusterInfo": info})

    async def metrics(self, request: web.Request) -> web.Response:
        return web.json_response({"clusterMetrics": metrics_json(self._cluster)})

    async def apps(self, request: web.Request) -> web.StreamResponse:
        user = self._callers.user(request)
        try:
            wanted, left_out = ApplicationFilter.read(request.query), deselected(request.query)
        except BadParameter as error:
            raise problem(400, "BadRequestException", f"java.lang.Exception: {error}") from None
        # Before the first byte goes out: it may turn out that it is not yet known who may see what.
        accepted = (app for app in self._cluster.applications.values() if wanted.accepts(app))
        found = list(islice(self._callers.viewable(accepted, user), wanted.limit))
        if not found:
            return web.json_response({"apps": {}})
        response = web.StreamResponse()
        response.content_type, response.charset = "application/json", "utf-8"
        await response.prepare(request)
        await response.write(b'{"apps": {"app": [')
        for start in range(0, len(found), _BATCH):
            batch = ", ".join(
                json.dumps(self._application(*entry, left_out)) for entry in found[start : start + _BATCH]
            )
            await response.write(((", " if start else "") + batch).encode())
            await asyncio.sleep(0)
        await response.write(b"]}}")
        return response

    async def app(self, request: web.Request) -> web.Response:
        app = self._find_app(request)
        may_view = self._callers.may_view(app, self._callers.user(request))
        try:
            left_out = deselected(request.query)
        except BadParameter as error:
            raise problem(400, "BadRequestException", f"java.lang.Exception: {error}") from None
        return web.json_response({"app": self._application(app, may_view, left_out)})

    async def app_state(self, request: web.Request) -> web.Response:
        return web.json_response({"state": self.visible_app(request).state.name})

    async def app_queue(self, request: web.Request) -> web.Response:
        return web.json_response({"queue": self.visible_app(request).queue})

    async def app_priority(self, request: web.Request) -> web.Response:
        return web.json_response({"priority": self.visible_app(request).priority})

    async def app_timeouts(self, request: web.Request) -> web.Response:
        report = self._reports.application(self.visible_app(request))
        return web.json_response({"timeouts": {"timeout": timeouts_json(report)}})

    async def app_timeout(self, request: web.Request) -> web.Response:
        report, wanted = self._reports.application(self.visible_app(request)), request.match_info["type"]
        found = next((one for one in timeouts_json(report) if one["type"] == wanted), None)
        if found is None:
            raise problem(404, "NotFoundException", f"java.lang.Exception: there is no timeout {wanted[:64]}")
        return web.json_response({"timeout": found})

    async def attempts(self, request: web.Request) -> web.Response:
        found = [attempt_json(attempt) for attempt in every_attempt(self.visible_app(request))]
        return web.json_response({"appAttempts": {"appAttempt": found} if found else {}})

    async def attempt(self, request: web.Request) -> web.Response:
        return web.json_response({"appAttempt": attempt_json(self._attempt(request))})

    async def containers(self, request: web.Request) -> web.Response:
        attempt = self._attempt(request)
        live = attempt.containers | ({attempt.master.id: attempt.master} if attempt.master is not None else {})
        found = [self._described(live[container]) for container in sorted(live)]
        # As Jersey writes a class that no resolver names: bare, and a list of one as the one.
        return web.json_response({"container": found[0] if len(found) == 1 else found} if found else {})

    async def container(self, request: web.Request) -> web.Response:
        attempt = self._attempt(request)
        container_id = _parse(ContainerId, request.match_info["container"])
        known = {c.id: c for c in attempt.ended} | attempt.containers
        if attempt.master is not None:
            known[attempt.master.id] = attempt.master
        container = known.get(container_id) or known.get(container_id.counted_down)
        if container is None:
            raise _absent("Container", container_id)
        return web.json_response(self._described(container))

    async def nodes(self, request: web.Request) -> web.Response:
        states = words(request.query, "states", str.upper)
        for name in sorted(states - NodeState.__members__.keys()):
            text = f"No enum constant org.apache.hadoop.yarn.api.records.NodeState.{name[:60]}"
            raise problem(400, "BadRequestException", f"java.lang.IllegalArgumentException: {text}")
        wanted = (node for node in self._cluster.nodes.values() if not states or node.state.name in states)
        found = [node_json(node, self._cluster) for node in wanted]
        return web.json_response({"nodes": {"node": found} if found else {}})

    async def node(self, request: web.Request) -> web.Response:
        node_id = _parse(NodeId, request.match_info["id"])
        node = self._cluster.nodes.get(node_id)
        if node is None:
            raise problem(404, "NotFoundException", f"java.lang.Exception: nodeId, {node_id}, is not found")
        return web.json_response({"node": node_json(node, self._cluster)})

    async def decisions(self, request: web.Request) -> web.Response:
        """Answer the scheduler's last decisions, newest last; not one of Hadoop's pages."""
        if not self._callers.may_view_all(self._callers.user(request)):
            raise problem(403, "ForbiddenException", "only administrators see the scheduler's decisions")
        entries = [
            {
                "at": entry.at,
                "event": entry.event,
                "decision": type(entry.decision).__name__,
                "text": str(entry.decision),
            }
            for entry in list(self._cluster.scheduler.facts.log)[-200:]
        ]
        return web.json_response({"decisions": entries})

    # ---- what a path names

    def _application(self, app: Application, may_view: bool, left_out: frozenset[str]) -> dict[str, Any]:
        shown = application_json(app, self._reports, self._cluster, may_view=may_view)
        return {name: value for name, value in shown.items() if name not in left_out} if left_out else shown

    def _described(self, container: RmContainer) -> dict[str, Any]:
        user, now_ms = container.attempt.app.user, self._cluster.clock.wall_ms()
        return container_json(container, user, now_ms, self._cluster.resource_types)

    def _find_app(self, request: web.Request, absent: Callable[[ApplicationId], str] = _absent_app) -> Application:
        app_id = _parse(ApplicationId, request.match_info["id"])
        app = self._cluster.applications.get(app_id)
        if app is None:
            raise problem(404, "NotFoundException", f"java.lang.Exception: {absent(app_id)}")
        return app

    def visible_app(self, request: web.Request, absent: Callable[[ApplicationId], str] = _absent_app) -> Application:
        """Find an application that the caller may view. `absent`: what is said of one that is not there."""
        app, user = self._find_app(request, absent), self._callers.user(request)
        if not self._callers.may_view(app, user):
            raise problem(403, "ForbiddenException", f"User {user} cannot perform operation VIEW_APP on {app.id}")
        return app

    def may_view(self, request: web.Request, app: Application) -> bool:
        """Tell whether the caller may view the application."""
        return self._callers.may_view(app, self._callers.user(request))

    def _attempt(self, request: web.Request) -> Attempt:
        app = self.visible_app(request)
        attempt_id = _parse(ApplicationAttemptId, request.match_info["attempt"])
        attempt = next((attempt for attempt in every_attempt(app) if attempt.id == attempt_id), None)
        if attempt is None:
            raise _absent("ApplicationAttempt", attempt_id)
        return attempt


class _Identifier(Protocol):
    @classmethod
    def parse(cls, text: str) -> Self: ...


_Id = TypeVar("_Id", bound=_Identifier)


def _parse(kind: type[_Id], text: str) -> _Id:
    try:
        return kind.parse(text)
    except BadIdentifier as error:
        raise problem(400, "BadRequestException", f"java.lang.IllegalArgumentException: {error}") from None


def _absent(kind: str, identifier: ContainerId | ApplicationAttemptId) -> web.HTTPException:
    name = f"org.apache.hadoop.yarn.exceptions.{kind}NotFoundException"
    return problem(404, "NotFoundException", f"{name}: {kind} with id '{identifier}' doesn't exist in RM.")
