"""Who may see containers and read their logs over HTTP where `yarn.acl.enable` is true.

For logs this is ContainerLogsUtils.checkAccess. Hadoop's NodeManager shows the containers themselves to everybody; here
the same list guards them, for their diagnostics hold output, and lists leave out what the caller may not see.

The application's owner, administrators, and whom the VIEW_APP list in its launch contexts names. The node knows owner
and list as long as it has containers of the application; after that administrators only, and everybody else is sent
to where aggregated logs are shown, which asks the list that was uploaded with them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from aiohttp import web

from nm.containers.runtime import ContainerRuntime
from nm.logs.pages import LogPages
from nm.web_settings import NodeWebSettings
from yaqd.model import ApplicationId, BadIdentifier, ContainerId
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
        named = _named(request)
        if not self._settings.acls or named is None:
            return await handler(request)
        application, container = named
        visible = await self.visible(request, (application,))
        if application in visible:
            return await handler(request)
        is_for_logs = _is_for_logs(request)
        if application not in self._runtime.applications:
            if container is not None and is_for_logs:
                self._logs.send_on(request, container)
            if container not in self._runtime.containers and not is_for_logs:
                return await handler(request)  # it is not found
        what = "the logs for " if is_for_logs else ""
        user = self._identity.user(request)
        raise web.HTTPForbidden(text=f"User [{user}] is not authorized to view {what}application {application}\n")

    async def check_owner(self, request: web.Request, application: ApplicationId, owner: str) -> None:
        """Checks access to an application of which the node may know no more than the owner. Raises HTTPForbidden."""
        if application in await self.visible(request, (application,)) or self._identity.user(request) == owner:
            return
        user = self._identity.user(request)
        raise web.HTTPForbidden(text=f"User [{user}] is not authorized to view application {application}\n")

    async def visible(self, request: web.Request, applications: Iterable[ApplicationId]) -> set[ApplicationId]:
        """Returns those applications that the caller may see. Raises HTTPBadRequest for a caller without a name."""
        asked = set(applications)
        if not self._settings.acls:
            return asked
        user = self._identity.user(request)
        lists = {application: self._lists(application) for application in asked}
        # Off the event loop: a list with groups asks the system's name service.
        return await asyncio.to_thread(lambda: {a for a, known in lists.items() if self._may_view(user, *known)})

    def _lists(self, application_id: ApplicationId) -> tuple[str | None, AccessControlList]:
        """The application's owner, None when the node no longer knows it, and who else may see it."""
        application = self._runtime.applications.get(application_id)
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


def _named(request: web.Request) -> tuple[ApplicationId, ContainerId | None] | None:
    """What the path names; None for what is no identifier, which handlers refuse."""
    try:
        if "container" in request.match_info:
            container = ContainerId.parse(request.match_info["container"])
            return container.application_id, container
        if "app" in request.match_info:
            return ApplicationId.parse(request.match_info["app"]), None
    except BadIdentifier:
        pass
    return None


def _is_for_logs(request: web.Request) -> bool:
    return request.path.startswith(_LOG_PATHS) or "/logs" in request.path
