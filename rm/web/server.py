"""The ResourceManager's web server put together: REST, pages, proxy, and what holds for all of them."""

import secrets
from collections.abc import Awaitable, Callable
from functools import partial

from aiohttp import web

from rm.cluster import Cluster
from rm.explain.applications import Explain
from rm.explain.nodes import ExplainNodes
from rm.security.access import Access
from rm.services.reports import Reports
from rm.web.callers import WebCallers
from rm.web.pages import Pages
from rm.web.proxy import WebProxy
from rm.web.rest import Rest
from rm.web.settings import RmWebSettings
from rm.web.yaq_rest import YaqRest
from yaqd.ipc.later import NotYetKnown, again
from yaqd.web.identity import SimpleIdentity, answer_options
from yaqd.web.server import HttpServer


@web.middleware
async def _when_known(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Answer once it is known what decides whether the caller may see it."""
    try:
        return await handler(request)
    except NotYetKnown as missing:
        return await again(partial(handler, request), missing)


class RmWeb:
    def __init__(
        self,
        cluster: Cluster,
        reports: Reports,
        settings: RmWebSettings,
        *,
        access: Access,
        explain: Explain,
        nodes: ExplainNodes,
        started_ms: int,
    ) -> None:
        self._settings = settings
        identity = SimpleIdentity(
            static_user=settings.static_user, secret=secrets.token_bytes(32), now_ms=cluster.clock.wall_ms
        )
        self._callers = WebCallers(identity, access, settings.only_viewable)
        self._rest = Rest(cluster, reports, self._callers, started_ms=started_ms)
        self._yaq = YaqRest(explain, nodes, self._rest)
        self._pages = Pages(cluster, reports, self._callers)
        self._proxy = WebProxy(cluster.applications.get, reports, self._callers, timeout_s=settings.proxy_timeout_s)
        self._http = HttpServer(
            self._add_routes, settings.limits, middlewares=[identity.remember, answer_options, _when_known]
        )
        #: what is bound; only after start
        self.address = ("", 0)

    async def start(self) -> None:
        """Raises OSError."""
        await self._proxy.start(self._settings.address_host)
        self.address = await self._http.start(self._settings.host, self._settings.port)

    @property
    def port(self) -> int:
        return self.address[1]

    async def stop(self) -> None:
        await self._http.stop()
        await self._proxy.stop()

    def _add_routes(self, router: web.UrlDispatcher) -> None:
        self._proxy.add_routes(router)
        self._rest.add_routes(router)
        self._yaq.add_routes(router)
        self._pages.add_routes(router)
