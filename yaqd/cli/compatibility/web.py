"""Which addresses the web servers answer, told from their routers. Nothing is started for it."""

import re
from collections.abc import Callable
from typing import Any, Final

from aiohttp import web

#: of RMWebServices and NMWebServices of Hadoop 3.4, what varies in braces without its name
_HADOOPS: Final[dict[str, tuple[str, str]]] = {
    "ResourceManager": (
        "/ws/v1/cluster",
        """
        GET /, GET /info, GET /metrics, GET /userinfo, GET /appstatistics
        GET /scheduler, GET /scheduler-overview, GET /scheduler/activities, GET /scheduler/app-activities/{}
        GET /scheduler/bulk-activities, POST /scheduler/logs, GET /queues/{}/access
        GET /scheduler-conf, PUT /scheduler-conf, GET /scheduler-conf/format, GET /scheduler-conf/version
        POST /scheduler-conf/validate
        GET /nodes, GET /nodes/{}, GET /nodes/{}/get-labels, POST /nodes/{}/replace-labels, POST /nodes/{}/resource
        GET /get-node-labels, GET /get-rm-node-labels, GET /get-node-to-labels, GET /label-mappings
        POST /add-node-labels, POST /remove-node-labels, POST /replace-node-to-labels
        GET /apps, POST /apps, POST /apps/new-application, GET /apps/{}
        GET /apps/{}/state, PUT /apps/{}/state, GET /apps/{}/queue, PUT /apps/{}/queue
        GET /apps/{}/priority, PUT /apps/{}/priority
        GET /apps/{}/timeouts, GET /apps/{}/timeouts/{}, PUT /apps/{}/timeout
        GET /apps/{}/appattempts, GET /apps/{}/appattempts/{}, GET /apps/{}/appattempts/{}/containers
        GET /apps/{}/appattempts/{}/containers/{}, POST /containers/{}/signal/{}
        POST /delegation-token, DELETE /delegation-token, POST /delegation-token/expiration
        POST /reservation/new-reservation, POST /reservation/submit, POST /reservation/update
        POST /reservation/delete, GET /reservation/list
        """,
    ),
    "NodeManager": (
        "/ws/v1/node",
        """
        GET /, GET /info, GET /apps, GET /apps/{}, GET /containers, GET /containers/{}
        GET /containers/{}/logs, GET /containers/{}/logs/{}, GET /containerlogs/{}/{}
        GET /auxiliaryservices, PUT /auxiliaryservices, GET /resources/{}, PUT /yarn/sysfs/{}/{}
        """,
    ),
}
#: fields of Hadoop's answers that the answers here do not have, by what they tell of
NOT_TOLD: Final[dict[str, tuple[str, ...]]] = {
    "the scheduler": ("health",),
    "the metrics": (
        "rmSchedulerBusyPercent",
        "containerAssignedPerSecond",
        "rmEventQueueSize",
        "schedulerEventQueueSize",
    ),
    "an application": (
        "preemptedResourceMB",
        "preemptedResourceVCores",
        "numNonAMContainerPreempted",
        "numAMContainerPreempted",
    ),
    "an attempt": ("exportPorts",),
}
_NAME: Final = re.compile(r"{[^}]*}")


def hadoops_rest() -> dict[str, list[str]]:
    """Return what Hadoop's REST has, by server, as `METHOD /path` with `{}` for what varies."""
    found = {}
    for server, (base, text) in _HADOOPS.items():
        entries = [entry.split() for entry in re.split(r"[,\n]", text) if entry.strip()]
        found[server] = [f"{method} {base}{path}" for method, path in entries]
    return found


def not_served() -> dict[str, list[str]]:
    """Return those addresses of `hadoops_rest` that the servers here answer with 404 or 405."""
    found = {}
    for server, addresses in web_addresses().items():
        split = (address.rpartition(" ") for address in addresses)
        served = {f"{method} {_NAME.sub('{}', path)}" for methods, _, path in split for method in methods.split(", ")}
        found[server] = [entry for entry in hadoops_rest()[server] if entry not in served]
    return found


def web_addresses() -> dict[str, list[str]]:
    """Return the addresses by server, as `METHODS /path` with `{names}` for what varies."""
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
    from nm.logs.pages import LogPages
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
