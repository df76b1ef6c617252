"""Plain pages for people, where links in reports, logs and commands lead: applications, one of them, nodes."""

from itertools import islice
from typing import Final
from urllib.parse import quote

from aiohttp import web

from rm.applications.former_attempts import every_attempt
from rm.applications.records import Application, Attempt
from rm.cluster import Cluster
from rm.services.reports import Reports
from rm.web.callers import WebCallers
from rm.web.records import final_status, logs_url
from rm.web.rest import BASE
from yaqd.model import ApplicationId, BadIdentifier
from yaqd.web.page import Html, facts, link, page, section, table, text
from yaqd.web.times import shown

#: the newest applications on the list; the REST answer has all
_LISTED_MAX: Final = 500


class Pages:
    def __init__(self, cluster: Cluster, reports: Reports, callers: WebCallers) -> None:
        self._cluster = cluster
        self._reports = reports
        self._callers = callers

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_get("/", self.home)
        for path in ("/cluster", "/cluster/", "/cluster/apps"):
            router.add_get(path, self.applications)
        router.add_get("/cluster/app/{id}", self.application)
        router.add_get("/cluster/nodes", self.nodes)

    async def home(self, request: web.Request) -> web.Response:
        raise web.HTTPFound("/cluster")

    async def applications(self, request: web.Request) -> web.Response:
        user = self._callers.user(request)
        total = sum(1 for _ in self._callers.viewable(self._cluster.applications.values(), user))
        listed = self._callers.viewable(reversed(self._cluster.applications.values()), user)
        rows = [
            (
                link(f"/cluster/app/{app.id}", app.id),
                text(app.user),
                text(app.name),
                text(app.type),
                text(app.queue),
                text(app.state.name),
                text(final_status(app)),
                text(shown(app.submitted_ms)),
            )
            for app, _ in islice(listed, _LISTED_MAX)
        ]
        heads = ("application", "user", "name", "type", "queue", "state", "final status", "submitted")
        what = f"the newest {len(rows)} of {total}" if total > len(rows) else f"{total}"
        links = facts([("applications", text(what)), ("nodes", link("/cluster/nodes", f"{len(self._cluster.nodes)}"))])
        return page("Applications", links, table(heads, rows))

    async def application(self, request: web.Request) -> web.Response:
        name, user = request.match_info["id"], self._callers.user(request)
        try:
            app = self._cluster.applications.get(ApplicationId.parse(name))
        except BadIdentifier:
            return page("Error 400", text(f"Invalid Application ID: {name[:120]}"), status=400)
        if app is None:
            return page("Error 404", text(f"Application not found: {name}"), status=404)
        if not self._callers.may_view(app, user):
            return page(
                "Error 403", text(f"You (User {user}) are not authorized to view application {app.id}"), status=403
            )
        heads = ("attempt", "state", "started", "finished", "node", "logs", "diagnostics")
        attempts = table(heads, [self._attempt(attempt) for attempt in every_attempt(app)])
        return page(f"Application {app.id}", self._facts(app), section("Attempts", attempts))

    def _facts(self, app: Application) -> Html:
        report = self._reports.application(app)
        usage = report.app_resource_Usage
        ended_early = app.state.is_final and final_status(app) != "SUCCEEDED"
        pairs = [
            ("name", text(app.name)),
            ("user", text(app.user)),
            ("queue", text(app.queue)),
            ("type", text(app.type)),
            ("tags", text(", ".join(app.tags))),
            ("priority", text(app.priority)),
            ("state", text(app.state.name)),
            ("final status", text(final_status(app))),
            ("progress", text("-" if ended_early else f"{report.progress:.0%}")),
            ("submitted", text(shown(app.submitted_ms))),
            ("launched", text(shown(app.launched_ms))),
            ("finished", text(shown(report.finishTime))),
            ("tracking", self._tracking(app, report.trackingUrl)),
            ("used over time", text(f"{usage.memory_seconds} MB-seconds, {usage.vcore_seconds} vcore-seconds")),
            ("diagnostics", text(report.diagnostics)),
            ("more", link(f"{BASE}/apps/{app.id}", "REST")),
        ]
        return facts(pairs)

    def _tracking(self, app: Application, url: str) -> Html:
        """Only where it leads to another page than this one."""
        return text("none") if self._reports.original_url(app) == "N/A" or "/proxy/" not in url else link(url, url)

    def _attempt(self, attempt: Attempt) -> tuple[Html, ...]:
        master = attempt.master
        node = logs = text("")
        if master is not None:
            node = link(f"http://{master.http_address}/node", master.node_id)
            logs = link(logs_url(master, quote(attempt.app.user, safe="")), "logs")
        times = text(shown(attempt.started_ms)), text(shown(attempt.finished_ms))
        return text(attempt.id), text(attempt.state.name), *times, node, logs, text(attempt.diagnostics)

    async def nodes(self, request: web.Request) -> web.Response:
        rows = [
            (
                link(f"http://{node.http_address}/node", node.id),
                text(node.rack),
                text(node.state.name),
                text(len(node.containers)),
                text(f"{node.used} of {node.total}"),
                text(node.health_report),
            )
            for node in self._cluster.nodes.values()
        ]
        heads = ("node", "rack", "state", "containers", "in use", "health")
        return page("Nodes", facts([("applications", link("/cluster/apps", "all"))]), table(heads, rows))
