"""Who asks the ResourceManager over HTTP, and what the access lists let them see."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from aiohttp import web

from rm.applications.records import Application
from rm.security.access import Access
from yaqd.web.identity import SimpleIdentity


@dataclass(frozen=True, slots=True)
class WebCallers:
    identity: SimpleIdentity
    access: Access
    #: lists leave out what the caller may not see, instead of hiding most of it
    only_viewable: bool

    def user(self, request: web.Request) -> str:
        """Raises HTTPBadRequest for a name that cannot be one."""
        return self.identity.user(request)

    def may_view(self, app: Application, user: str) -> bool:
        return self.access.may_view(user, app)

    def viewable(self, apps: Iterable[Application], user: str) -> Iterator[tuple[Application, bool]]:
        """Yields what a list shows of them, each with whether the caller may see all of it. Raises NotYetKnown."""
        for app in apps:
            may_view = self.may_view(app, user)
            if may_view or not self.only_viewable:
                yield app, may_view

    def may_view_all(self, user: str) -> bool:
        return not self.access.enabled or self.access.is_administrator(user)
