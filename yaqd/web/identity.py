"""Who asks over HTTP, as far as anybody says.

This is Hadoop's simple authentication (PseudoAuthenticationHandler, StaticUserWebFilter): a caller says its name with
`user.name` and gets a cookie that says it again; one who says nothing is `hadoop.http.staticuser.user`. It proves
nothing, and nothing may be let past it that the name alone would not be let past over RPC.
"""

import base64
import hmac
import re
from collections.abc import Callable
from typing import Final
from urllib.parse import parse_qsl, quote

from aiohttp import web
from aiohttp.typedefs import Handler

_COOKIE: Final = "hadoop.auth"
#: AuthenticationFilter.AUTH_TOKEN_VALIDITY
_COOKIE_LIFETIME_MS: Final = 36_000_000
_COOKIE_CHARS_MAX: Final = 1024
_USER: Final = re.compile(r"[^\s\x00-\x1f\x7f;,\"&=]{1,128}\Z")


class SimpleIdentity:
    def __init__(self, *, static_user: str, secret: bytes, now_ms: Callable[[], int]) -> None:
        """`static_user` is whoever gives no name; `secret` signs the cookies, `now_ms` (epoch) ends them."""
        self._static_user = static_user
        self._secret = secret
        self._now_ms = now_ms

    def user(self, request: web.Request) -> str:
        """Raises HTTPBadRequest for a name that cannot be one."""
        said = request.query.get("user.name")
        if said is None:
            return self._remembered(request.cookies.get(_COOKIE, "")) or self._static_user
        if not _USER.match(said):
            raise web.HTTPBadRequest(text="user.name is not the name of a user\n")
        return said

    @web.middleware
    async def remember(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Gives a caller that says its name the cookie that says it next time."""
        response = await handler(request)
        said = request.query.get("user.name", "")
        if not response.prepared and _USER.match(said):
            name = quote(said, safe="")
            content = f"u={name}&p={name}&t=simple-dt&e={self._now_ms() + _COOKIE_LIFETIME_MS}"
            cookie = f'{_COOKIE}="{content}&s={self._signature(content)}"; Path=/; HttpOnly'
            response.headers.add("Set-Cookie", cookie)
        return response

    def _remembered(self, cookie: str) -> str | None:
        content, _, signature = cookie.strip('"')[:_COOKIE_CHARS_MAX].rpartition("&s=")
        if not hmac.compare_digest(self._signature(content).encode(), signature.encode(errors="replace")):
            return None
        said = dict(parse_qsl(content))
        if not said.get("e", "").isdigit() or int(said["e"]) < self._now_ms():
            return None
        return said.get("u")

    def _signature(self, content: str) -> str:
        made = hmac.digest(self._secret, content.encode(errors="replace"), "sha256")
        return base64.b64encode(made).decode("ascii")


@web.middleware
async def answer_options(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answers OPTIONS: Hadoop's AuthenticatedURL asks so before each first request, to be told who it is."""
    if request.method != "OPTIONS":
        return await handler(request)
    return web.Response(headers={"Allow": "OPTIONS, GET, HEAD"})
