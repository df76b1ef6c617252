"""The web proxy at `/proxy/<application>/`: applications' own pages under the ResourceManager's address.

Masters let only the proxy's address in (AmIpFilter) and read the user's name from its cookie. So the connection is made
from the address that their configuration makes of ours: the web address's host or, for loopback and the wildcard, what
this machine calls itself (WebAppUtils.getResolvedAddress). Answers are streamed; nothing is kept.
"""

import asyncio
import ipaddress
import logging
import secrets
import socket
from collections.abc import Callable
from typing import Final
from urllib.parse import quote

from aiohttp import (
    ClientError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
    ThreadedResolver,
    web,
)
from aiohttp.abc import ResolveResult
from yarl import URL

from rm.applications.records import Application
from rm.services.reports import Reports
from rm.web import proxying
from rm.web.callers import WebCallers
from rm.web.proxying import is_off_limits
from yaqd.model import ApplicationId
from yaqd.web.page import page, text

log = logging.getLogger(__name__)

_CONNECTIONS_MAX: Final = 64
_CONNECTIONS_PER_MASTER_MAX: Final = 16
#: one answer, however steadily it comes
_ANSWER_S_MAX: Final = 3600.0
_METHODS: Final = ("GET", "HEAD", "PUT")


class WebProxy:
    def __init__(
        self,
        find: Callable[[ApplicationId], Application | None],
        reports: Reports,
        callers: WebCallers,
        *,
        timeout_s: float,
    ) -> None:
        """`timeout_s`: how long a master may take to be reached, and then between two pieces of its answer."""
        self._find = find
        self._reports = reports
        self._callers = callers
        self._timeout_s = timeout_s
        self._mark = secrets.token_hex(16)
        self._session: ClientSession | None = None

    async def start(self, web_host: str) -> None:
        source = await _source_address(web_host)
        connector = TCPConnector(
            resolver=_Resolver(),
            limit=_CONNECTIONS_MAX,
            limit_per_host=_CONNECTIONS_PER_MASTER_MAX,
            force_close=True,
            local_addr=(source, 0) if source is not None else None,
            family=socket.AF_INET if source is not None else socket.AF_UNSPEC,
        )
        timeout_s = self._timeout_s
        self._session = ClientSession(
            connector=connector,
            cookie_jar=DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=("User-Agent", "Accept", "Content-Type"),
            timeout=ClientTimeout(total=_ANSWER_S_MAX, connect=timeout_s, sock_connect=timeout_s, sock_read=timeout_s),
        )

    async def stop(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_route("*", f"{proxying.PREFIX}/{{path:.*}}", self.answer)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer every request below `/proxy`, whatever its method."""
        if request.method not in _METHODS:
            raise web.HTTPMethodNotAllowed(request.method, _METHODS)
        try:
            path = proxying.parse_path(request.rel_url.raw_path)
        except proxying.BadPath as error:
            return _problem(404, str(error))
        app = self._find(path.app)
        if app is None:
            return _problem(404, f"Application {path.app} could not be found in RM or history server")
        user = self._callers.user(request)
        if not self._callers.may_view(app, user):
            return _problem(403, f"You (User {user}) are not authorized to view application {app.id}")
        address = proxying.tracking_address(self._reports.original_url(app))
        if address is None or address.raw_authority == self._reports.web_address:
            raise web.HTTPFound(f"/cluster/app/{app.id}")
        asked = proxying.target(address, path.rest, request.rel_url.raw_query_string)
        if app.is_concluded:
            raise web.HTTPFound(asked)
        if request.headers.get(proxying.LOOP_HEADER) == self._mark:
            return _problem(508, f"The address that {app.id} gave for itself, {address}, is that of this proxy")
        return await self._pass_on(request, app, address, asked, user)

    async def _pass_on(
        self, request: web.Request, app: Application, address: URL, asked: URL, user: str
    ) -> web.StreamResponse:
        assert self._session is not None
        headers = proxying.to_master(request.headers.items(), quote(user, safe=""), self._mark)
        try:
            async with asyncio.timeout(self._timeout_s):
                body = await request.read() if request.method == "PUT" else None
            asking = self._session.request(request.method, asked, headers=headers, data=body, allow_redirects=False)
            async with asking as answer:
                return await self._stream(request, answer, app, address)
        except proxying.RedirectLoop:
            log.error("%s: its master does not know this proxy by its address and sends it away", app.id)
            return _problem(502, f"{app.id} does not let this proxy in: see yarn.resourcemanager.webapp.address")
        except TimeoutError:
            return _problem(504, f"{app.id} does not answer at {address.raw_authority}")
        except (ClientError, OSError, ValueError) as error:
            log.info("%s: its page at %s cannot be had: %s", app.id, address.raw_authority, error)
            return _problem(502, f"{app.id} cannot be reached at {address.raw_authority}")

    async def _stream(
        self, request: web.Request, answer: ClientResponse, app: Application, address: URL
    ) -> web.StreamResponse:
        """Raises what the peer's misbehaviour raises until the answer has begun; later the connection is cut."""
        if answer.status < 200:
            return _problem(502, f"{app.id} answers what cannot be passed on")
        response = web.StreamResponse(status=answer.status)
        for name, value in proxying.to_browser(answer.headers.items()):
            response.headers.add(name, value)
        if "Location" in answer.headers:
            response.headers["Location"] = proxying.relocate(answer.headers["Location"], answer.url, address, app.id)
        await response.prepare(request)
        try:
            async for piece in answer.content.iter_any():
                await response.write(piece)
        except (ClientError, OSError, TimeoutError) as error:
            log.info("%s: its answer broke off: %s", app.id, error)
            if request.transport is not None:
                request.transport.abort()
        return response


class _Resolver(ThreadedResolver):
    """The system's, without the addresses that no name may lead to either."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = [result for result in await super().resolve(host, port, family) if not is_off_limits(result["host"])]
        if not found:
            raise OSError(f"{host} has no address that may be connected to")
        return found


def _problem(status: int, words: str) -> web.Response:
    return page(f"Error {status}", text(words), status=status)


async def _source_address(web_host: str) -> str | None:
    """The address that masters take for the proxy's; None (any) when this machine does not have it."""
    loop = asyncio.get_running_loop()
    host = socket.gethostname() if _is_local(web_host) else web_host
    try:
        found = await loop.getaddrinfo(host, None, family=socket.AF_INET, type=socket.SOCK_STREAM)
        address = str(found[0][4][0])
        with socket.socket() as probe:
            probe.bind((address, 0))
    except OSError as error:
        log.warning("the web proxy cannot speak from %s (%s): applications' pages may turn it away", host, error)
        return None
    return address


def _is_local(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return address.is_loopback or address.is_unspecified
