"""Hadoop's REST answers about queues and about all applications together (RMWebServices)."""

import getpass
from collections import Counter
from itertools import product
from typing import Any, Final

from aiohttp import web

from rm.cluster import Cluster
from rm.scheduler.queues.admission import may_administer, may_submit
from rm.web.callers import WebCallers
from rm.web.filters import BadParameter, known_states, words
from rm.web.problems import problem
from rm.web.queue_info import QueueInfo
from yaqd.model import YarnApplicationState

_ANY_TYPE: Final = "*"


class ClusterRest:
    def __init__(self, cluster: Cluster, callers: WebCallers) -> None:
        self._cluster = cluster
        self._callers = callers

    def add_routes(self, router: web.UrlDispatcher, base: str) -> None:
        router.add_get(f"{base}/scheduler", self.scheduler)
        router.add_get(f"{base}/appstatistics", self.statistics)
        router.add_get(f"{base}/queues/{{queue}}/access", self.access)
        router.add_get(f"{base}/userinfo", self.user_info)

    async def scheduler(self, request: web.Request) -> web.Response:
        return web.json_response({"scheduler": {"schedulerInfo": QueueInfo(self._cluster).scheduler()}})

    async def statistics(self, request: web.Request) -> web.Response:
        """Answer how many applications are in each state, of one type or of all."""
        try:
            states = known_states(request.query, "states") or YarnApplicationState.__members__.keys()
        except BadParameter as error:
            raise problem(400, "BadRequestException", f"java.lang.Exception: {error}") from None
        types = sorted(words(request.query, "applicationTypes", str.lower)) or [_ANY_TYPE]
        if len(types) > 1:
            text = f"# of applicationTypes = {len(types)}, we temporarily support at most one applicationType"
            raise problem(400, "BadRequestException", f"java.lang.Exception: {text}")
        found = Counter[tuple[str, str]]()
        for app in self._cluster.applications.values():
            found[app.state.name, _ANY_TYPE] += 1
            found[app.state.name, app.type.lower()] += 1
        items = [{"state": s, "type": t, "count": found[s, t]} for s, t in product(states, types)]
        return web.json_response({"appStatInfo": {"statItem": items}})

    async def access(self, request: web.Request) -> web.Response:
        """Answer whether a user may submit to a queue, or administrate it."""
        access, query = self._callers.access, request.query
        caller = self._callers.user(request)
        user, wanted = query.get("user", "").strip(), query.get("queue-acl-type", "").strip()
        queue = self._cluster.scheduler.facts.queue(request.match_info["queue"])
        if queue is None:
            text = f"Specified queue={request.match_info['queue'][:256]} doesn't exist"
            raise problem(400, "BadRequestException", f"java.lang.Exception: {text}")
        if wanted not in ("SUBMIT_APPLICATIONS", "ADMINISTER_QUEUE") or not user:
            text = "user and queue-acl-type are needed, this one SUBMIT_APPLICATIONS or ADMINISTER_QUEUE"
            raise problem(400, "BadRequestException", f"java.lang.Exception: {text}")
        if caller != user and not access.is_administrator(caller):
            raise problem(403, "ForbiddenException", f"java.lang.Exception: User={caller} doesn't have access")
        may = may_submit if wanted == "SUBMIT_APPLICATIONS" else may_administer
        is_allowed = not access.enabled or may(queue, user, access.groups_of)
        why = "" if is_allowed else f"User={user} doesn't have access to queue={queue.path} with acl-type={wanted}"
        return web.json_response({"allowed": str(is_allowed).lower(), "user": user, "diagnostics": why})

    async def user_info(self, request: web.Request) -> web.Response:
        shown: dict[str, Any] = {"rmLoginUser": getpass.getuser(), "requestedUser": self._callers.user(request)}
        return web.json_response(shown)
