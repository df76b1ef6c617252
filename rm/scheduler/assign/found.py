"""What a look for places finds; values stand apart from what is compiled (pyproject.toml)."""

from typing import Final

from rm.scheduler.assign.stock_limits import Reservation
from rm.scheduler.decisions import NodeQueuePlace
from rm.scheduler.view.node import NodeView
from rm.scheduler.view.records import AttemptView
from yaqd.model.values import value
from yaqd.policies.asks.rows import Locality
from yaqd.policies.asks.table import Ask

_OFF_SWITCH: Final = (Locality.OFF_SWITCH, Locality.NONE)


@value()
class Pick:
    """Give this ask a container on this node."""

    attempt: AttemptView
    ask: Ask
    node: NodeView
    locality: Locality


@value()
class Pass:
    """This ask was offered the node and waits for a better place."""

    ask: Ask


@value()
class OverAllocation:
    """Send a container for this ask to wait on this node."""

    attempt: AttemptView
    ask: Ask
    node: NodeView
    locality: Locality
    place: NodeQueuePlace


@value()
class Found:
    """A container for the ask on the node, or a reservation where there is no room."""

    attempt: AttemptView
    ask: Ask
    node: NodeView
    locality: Locality
    is_reserved: bool
    #: a reservation of the ask elsewhere that is given up for it
    freed: Reservation | None = None
    #: the limits do not bear it after all: it counts as given, and nothing is
    is_refused: bool = False

    @property
    def is_off_switch(self) -> bool:
        return self.locality in _OFF_SWITCH
