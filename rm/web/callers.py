"""Who asks the ResourceManager over HTTP, and what the access lists let them see."""

from dataclasses import dataclass

from aiohttp import web

from rm.access import Access
from rm.application import Application
from yaqd.web.identity import SimpleIdentity


@dataclass(frozen=True, slots=True)
class WebCallers:
    identity: SimpleIdentity
    access: Access

    def user(self, request: web.Request) -> str:
        """Raises HTTPBadRequest for a name that cannot be one."""
        return self.identity.user(request)

    def may_view(self, app: Application, user: str) -> bool:
        return self.access.may_view(user, app)

    def may_view_all(self, user: str) -> bool:
        return not self.access.enabled or self.access.is_administrator(user)
