"""Who may read containers' logs over HTTP where `yarn.acl.enable` is true (ContainerLogsUtils.checkAccess).

The application's owner, administrators, and whom the VIEW_APP list in its launch contexts names. The node knows owner
and list as long as it has containers of the application; after that administrators only, and everybody else is sent
to where aggregated logs are shown, which asks the list that was uploaded with them.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from aiohttp import web

from nm.container_runtime import ContainerRuntime
from nm.log_pages import LogPages
from nm.web_settings import NodeWebSettings
from yaqd.model import BadIdentifier, ContainerId
from yaqd.security.acl import AccessControlList
from yaqd.web.identity import SimpleIdentity

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_VIEW = "VIEW_APP"
#: where a container's logs lie, in REST and on pages
_LOG_PATHS = ("/ws/v1/node/containerlogs/", "/node/containerlogs/")


class LogAccess:
    def __init__(
        self, runtime: ContainerRuntime, logs: LogPages, identity: SimpleIdentity, settings: NodeWebSettings
    ) -> None:
        self._runtime = runtime
        self._logs = logs
        self._identity = identity
        self._settings = settings

    @web.middleware
    async def check(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Let the request through, send it on, or refuse it with 403."""
        if not self._settings.acls or not _is_for_logs(request):
            return await handler(request)
        try:
            container = ContainerId.parse(request.match_info["container"])
        except BadIdentifier:
            return await handler(request)
        user = self._identity.user(request)
        # Off the event loop: a list with groups asks the system's name service.
        allowed = await asyncio.to_thread(partial(self._may_view, user, *self._lists(container)))
        if allowed:
            return await handler(request)
        if container.application_id not in self._runtime.applications:
            self._logs.send_on(request, container)
        text = f"User [{user}] is not authorized to view the logs for application {container.application_id}\n"
        raise web.HTTPForbidden(text=text)

    def _lists(self, container: ContainerId) -> tuple[str | None, AccessControlList]:
        """The application's owner, None when the node no longer knows it, and who else may see it."""
        application = self._runtime.applications.get(container.application_id)
        if application is None:
            return None, AccessControlList()
        launches = (self._runtime.containers[c].launch for c in application.containers if c in self._runtime.containers)
        said = next((launch.acls[_VIEW] for launch in launches if _VIEW in launch.acls), " ")
        return application.user, AccessControlList.parse(said)

    def _may_view(self, user: str, owner: str | None, listed: AccessControlList) -> bool:
        settings = self._settings
        return (
            user in (owner, settings.daemon_user)
            or settings.administrators.allows(user, settings.groups_of)
            or listed.allows(user, settings.groups_of)
        )


def _is_for_logs(request: web.Request) -> bool:
    path = request.path
    return "container" in request.match_info and (path.startswith(_LOG_PATHS) or "/logs" in path)
