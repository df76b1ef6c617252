"""An application as one node knows it: whose it is, and which of its containers are here."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from yaqd.model import ApplicationId, ContainerId


@dataclass(slots=True, eq=False)
class Application:
    id: ApplicationId
    user: str
    #: who may see and change it, by kind; what its first container says holds for all, as in Hadoop
    acls: Mapping[str, str]
    containers: set[ContainerId] = field(default_factory=set)
    #: the ResourceManager has said that it is over: nothing starts any more
    is_ending: bool = False
