"""What the web proxy decides, without any I/O: where a request under `/proxy/` goes, and what passes in each direction.

Sources: Hadoop's WebAppProxyServlet, ProxyUriUtils, AmIpFilter. The proxy reaches only the address that the
application's master has registered, whatever the rest of the path says. Unlike Hadoop's it follows no redirects itself:
it hands them to the browser, those within the application under the proxy's own path.
"""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from yarl import URL

from yaqd.model import ApplicationId, BadIdentifier

PREFIX: Final = "/proxy"
USER_COOKIE: Final = "proxy-user"
#: a request that has been through this proxy says so; the value is the proxy's own, so that nobody can refuse others
LOOP_HEADER: Final = "X-Yaqd-Proxied-By"

_REDIRECTED: Final = f"{PREFIX}/redirect/"
_PLAIN: Final = re.compile(r"[\x21-\x7e]*\Z")
_NO_URL: Final = ("", "N/A")

#: WebAppProxyServlet.PASS_THROUGH_HEADERS
_TO_MASTER: Final = frozenset(
    (
        "user-agent",
        "accept",
        "accept-encoding",
        "accept-language",
        "accept-charset",
        "content-type",
        "origin",
        "access-control-request-method",
        "access-control-request-headers",
    )
)
#: What concerns one connection, what aiohttp sets itself, and what would bind the browser's view of this whole server.
_NOT_TO_BROWSER: Final = frozenset(
    (
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "date",
        "server",
        "set-cookie",
        "location",
        "alt-svc",
        "clear-site-data",
        "service-worker-allowed",
        "strict-transport-security",
    )
)


class BadPath(ValueError):
    """Not a path below `/proxy/`."""


class RedirectLoop(Exception):
    """The master sends the proxy back to the proxy: it does not know the proxy's address as such."""


@dataclass(frozen=True, slots=True)
class ProxyPath:
    app: ApplicationId
    #: as it came, without the leading slash
    rest: str


def parse_path(raw_path: str) -> ProxyPath:
    """Parse `/proxy/<app>[/<rest>]` or `/proxy/redirect/<app>[/<rest>]`. Raises BadPath with Hadoop's words."""
    if not _PLAIN.match(raw_path):
        raise BadPath("Your path appears to be formatted incorrectly.")
    tail = raw_path.removeprefix(_REDIRECTED) if raw_path.startswith(_REDIRECTED) else raw_path[len(PREFIX) + 1 :]
    name, _, rest = tail.partition("/")
    try:
        return ProxyPath(ApplicationId.parse(name), rest)
    except BadIdentifier:
        raise BadPath(f"{name[:120]} appears to be formatted incorrectly.") from None


def tracking_address(registered: str) -> URL | None:
    """Return the address an application gave for itself, None when it gave none that a browser could open.

    One without a scheme is `host:port[/path]` (ProxyUriUtils.getUriFromAMUrl).
    """
    said = registered.strip()
    if said in _NO_URL or not _PLAIN.match(said):
        return None
    try:
        url = URL(said if "://" in said else f"http://{said}")
        port = url.port
    except ValueError:
        return None
    if url.scheme not in ("http", "https") or not url.host or not port or is_off_limits(url.host):
        return None
    return url.with_user(None)


def is_off_limits(host: str) -> bool:
    """Return whether it is a link-local IP address.

    Clouds hand a machine's own credentials to whoever asks there from it.
    """
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_link_local
    except ValueError:
        return False


def target(address: URL, rest: str, raw_query: str) -> URL:
    """Return the address with the request's path and query behind it; its authority is never anything else."""
    path = address.raw_path
    if rest:
        path = f"{path.rstrip('/')}/{rest}"
    query = "&".join(part for part in (address.raw_query_string, raw_query) if part)
    return URL.build(
        scheme=address.scheme,
        authority=address.raw_authority,
        path=path,
        query_string=query,
        fragment=address.raw_fragment,
        encoded=True,
    )


def to_master(headers: Iterable[tuple[str, str]], user_quoted: str, mark: str) -> dict[str, str]:
    passed = {name: value for name, value in headers if name.lower() in _TO_MASTER}
    if not any(name.lower() == "accept-encoding" for name in passed):
        passed["Accept-Encoding"] = "identity"
    return {**passed, "Cookie": f"{USER_COOKIE}={user_quoted}", LOOP_HEADER: mark}


def to_browser(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers if name.lower() not in _NOT_TO_BROWSER]


def relocate(location: str, asked: URL, address: URL, app: ApplicationId) -> str:
    """Return where the browser goes when the master answers with a redirect. Raises RedirectLoop."""
    base = f"{PREFIX}/{app}"
    try:
        url = asked.join(URL(location))
    except ValueError:
        return base + "/"
    if url.raw_path.startswith(f"{_REDIRECTED}{app}"):
        raise RedirectLoop
    if url.scheme not in ("http", "https"):
        return base + "/"
    if (url.scheme, url.host, url.port) != (address.scheme, address.host, address.port):
        return str(url)
    path = url.raw_path
    if path != base and not path.startswith(base + "/"):
        path = f"{base}/{path.removeprefix(address.raw_path.rstrip('/')).lstrip('/')}"
    query = f"?{url.raw_query_string}" if url.raw_query_string else ""
    fragment = f"#{url.raw_fragment}" if url.raw_fragment else ""
    return path + query + fragment
