"""Who asks over HTTP, and what that lets them see.

This is Hadoop's simple authentication (PseudoAuthenticationHandler, StaticUserWebFilter): a caller says its name with
`user.name` and gets a cookie that says it again; one who says nothing is `hadoop.http.staticuser.user`. It proves
nothing, and nothing here lets anybody do what the name alone would not let them do over RPC.
"""

import base64
import hmac
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, quote, unquote

from aiohttp import web

from rm.access import Access
from rm.application import Application
from rm.cluster import Cluster

_COOKIE: Final = "hadoop.auth"
#: AuthenticationFilter.AUTH_TOKEN_VALIDITY
_COOKIE_LIFETIME_MS: Final = 36_000_000
_USER: Final = re.compile(r"[^\s\x00-\x1f\x7f;,\"&=]{1,128}\Z")


@dataclass(frozen=True, slots=True)
class WebCallers:
    cluster: Cluster
    access: Access
    #: whoever gives no name
    static_user: str
    #: signs the cookies
    secret: bytes

    def user(self, request: web.Request) -> str:
        """Raises HTTPBadRequest for a name that cannot be one."""
        said = request.query.get("user.name")
        if said is not None:
            if not _USER.match(said):
                raise web.HTTPBadRequest(text="user.name is not the name of a user\n")
            return said
        return self._remembered(request.cookies.get(_COOKIE, "")) or self.static_user

    def may_view(self, app: Application, user: str) -> bool:
        return self.access.may_view(user, app)

    def may_view_all(self, user: str) -> bool:
        return not self.access.enabled or self.access.is_administrator(user)

    def remember(self, request: web.Request, response: web.StreamResponse) -> None:
        """Give a caller that says its name the cookie that says it next time."""
        said = request.query.get("user.name")
        if said is None or not _USER.match(said):
            return
        expires_ms = self.cluster.clock.wall_ms() + _COOKIE_LIFETIME_MS
        name = quote(said, safe="")
        content = f"u={name}&p={name}&t=simple-dt&e={expires_ms}"
        response.headers.add("Set-Cookie", f'{_COOKIE}="{content}&s={self._signature(content)}"; Path=/; HttpOnly')

    def _remembered(self, cookie: str) -> str | None:
        content, _, signature = cookie.strip('"')[:1024].rpartition("&s=")
        if not hmac.compare_digest(self._signature(content).encode(), signature.encode()):
            return None
        said = dict(parse_qsl(content))
        if not said.get("e", "").isdigit() or int(said["e"]) < self.cluster.clock.wall_ms():
            return None
        return unquote(said.get("u", "")) or None

    def _signature(self, content: str) -> str:
        return base64.b64encode(hmac.digest(self.secret, content.encode(), "sha256")).decode("ascii")
