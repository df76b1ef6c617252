"""What `yaq explain`, `yaq top` and `yaq ml list` ask for; not among Hadoop's pages, so under a name of our own."""

from typing import Final

from aiohttp import web

from rm.explain.applications import Explain
from rm.explain.nodes import ExplainNodes
from rm.services.lookups import no_such_application
from rm.web.rest import Rest

BASE: Final = "/ws/v1/yaq"


class YaqRest:
    def __init__(self, explain: Explain, nodes: ExplainNodes, rest: Rest) -> None:
        self._explain = explain
        self._nodes = nodes
        self._rest = rest

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_get(f"{BASE}/explain/{{id}}", self.explain)
        router.add_get(f"{BASE}/nodes", self.nodes)
        router.add_get(f"{BASE}/training", self.training)

    async def explain(self, request: web.Request) -> web.Response:
        """Answer the explanation of an application that the caller may view."""
        app = self._rest.visible_app(request, no_such_application)  # as the other commands say it
        return web.json_response({"explanation": self._explain.application(app)})

    async def training(self, request: web.Request) -> web.Response:
        """Answer the training jobs that the caller may view, and how long a division of their cores took at most."""
        training = self._explain.training
        jobs = training.all(lambda app: self._rest.may_view(request, app))
        return web.json_response({"jobs": jobs, "longestDivisionMs": training.longest_ms})

    async def nodes(self, request: web.Request) -> web.Response:
        return web.json_response({"nodes": self._nodes.all()})
