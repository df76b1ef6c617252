"""What the ResourceManager's web server is told."""

from dataclasses import dataclass

from yaqd.web.server import HttpLimits


@dataclass(frozen=True, slots=True)
class RmWebSettings:
    #: where to listen
    host: str
    port: int
    #: the host of the configured address, which application masters take for the proxy's
    address_host: str
    limits: HttpLimits
    #: who asks without saying who
    static_user: str
    #: lists leave out what the caller may not see (yarn.webapp.filter-entity-list-by-user)
    only_viewable: bool
    #: how long a master may take to be reached, and then between two pieces of its answer
    proxy_timeout_s: float
