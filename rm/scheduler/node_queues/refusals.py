"""Why something does not wait at a node: what checks return, and `rm.scheduler.why` puts into words."""

from enum import Enum, auto


class NoWait(Enum):
    """Why an ask's containers are sent to wait at no node."""

    #: no node's queue is filled
    OFF = auto()
    #: application masters never wait
    MASTER = auto()
    #: its leaf queue is one of those whose containers never wait
    LEAF = auto()
    #: its master would take a container that waits for one that runs
    UNAWARE = auto()
    #: containers of it have waited at nodes for as long as they may
    OVERDUE = auto()
    #: nobody knows how long it runs: it would take a slot for good
    ENDLESS = auto()


class NoRoom(Enum):
    """Why nothing more is sent to wait in a node's queue."""

    #: as many wait as may
    FULL = auto()
    #: its node's last report is too old
    SILENT = auto()
    #: its node is held for somebody
    HELD = auto()
    #: an operator drains its node
    DRAINING = auto()
    #: a newcomer would wait for longer than anything may
    LONG = auto()
