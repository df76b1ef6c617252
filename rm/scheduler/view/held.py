"""What is charged, and what waits, in one value each; values stand apart from what is compiled (pyproject.toml)."""

from rm.scheduler.view.records import AppView
from yaqd.model import ApplicationId, NodeId, Resource
from yaqd.model.values import value


@value()
class Held:
    """A container that is charged."""

    node_id: NodeId
    resource: Resource
    application: AppView
    is_master: bool
    #: the ask's; a lower number matters more
    priority: int = 0


@value()
class QueuedAtNode:
    """A container that was sent to wait."""

    app: AppView
    resource: Resource
    #: s
    estimate: float


@value()
class Yielded:
    """An application whose master was ended so that another one can go on."""

    to: ApplicationId
    #: the size of what the other waited for, and of the master
    wanted: Resource
    master: Resource
