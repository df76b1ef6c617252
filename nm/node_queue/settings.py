"""How a node queue behaves: what the ResourceManager orders, or the node's own where nobody orders anything."""

from dataclasses import dataclass
from typing import Final

from yaqd.policies.queueing.order import Ordering

#: containers that may always wait beyond what the ResourceManager asked for: its view of the node is a heartbeat old
SLACK: Final = 16


@dataclass(frozen=True, slots=True)
class NodeQueueSettings:
    """The default is a stock node's behaviour."""

    #: the ResourceManager fills the queue on purpose: guaranteed containers are ordered, bounded, and go back in time
    enabled: bool = False
    #: guaranteed containers that it means to have waiting here
    max_queued: int = 0
    #: of both lines when enabled, of the opportunistic one alone otherwise; None: by arrival
    ordering: Ordering | None = None
    #: a guaranteed container that has waited so long goes back, s; only when enabled
    max_wait_s: float = 60.0

    @property
    def hard_bound(self) -> int:
        """Guaranteed containers that may wait at all: what was sent on an old view of the node still finds a place."""
        return 2 * self.max_queued + SLACK
