"""Which addresses the web servers answer, told from their routers. Nothing is started for it."""

from collections.abc import Callable
from typing import Any

from aiohttp import web


def web_addresses() -> dict[str, list[str]]:
    """By server, `METHODS /path` with `{names}` for what varies."""
    return {"ResourceManager": _addresses(_resource_manager), "NodeManager": _addresses(_node_manager)}


def _resource_manager(router: web.UrlDispatcher) -> None:
    from rm.web.pages import Pages
    from rm.web.proxy import WebProxy
    from rm.web.rest import Rest

    nobody: Any = None
    WebProxy(nobody, nobody, nobody, timeout_s=1).add_routes(router)
    Rest(nobody, nobody, nobody, started_ms=0).add_routes(router)
    Pages(nobody, nobody, nobody).add_routes(router)


def _node_manager(router: web.UrlDispatcher) -> None:
    from nm.log_pages import LogPages
    from nm.web import NodeWeb

    web_server = object.__new__(NodeWeb)
    web_server.add_routes(router)
    object.__new__(LogPages).register_on(router)


def _addresses(add: Callable[[web.UrlDispatcher], None]) -> list[str]:
    router = web.UrlDispatcher()
    add(router)
    methods: dict[str, set[str]] = {}
    for route in router.routes():
        resource = route.resource
        assert resource is not None
        methods.setdefault(resource.canonical, set()).add(route.method)
    return [f"{_shown(methods[path])} {path}" for path in sorted(methods)]


def _shown(methods: set[str]) -> str:
    return "GET, HEAD, PUT" if "*" in methods else ", ".join(sorted(methods))
