"""What a node queue says of itself (`nm.node_queue.snapshot`), as values, which stay apart from what is compiled."""

from yaqd.model import ContainerId
from yaqd.model.values import value


@value()
class WaitingView:
    container_id: ContainerId
    #: how long it has waited here, s
    waited_s: float
    #: until its program starts, s; inf: never, as things stand
    expected_s: float


@value()
class NodeQueueSnapshot:
    #: containers that hold resources
    running: int
    #: containers that wait
    queued: int
    #: until the program of a newcomer of the usual size would start, s; 0: there is room for it; inf: never
    wait_s: float
    #: in the order in which they would start, the first ones only
    waiting: tuple[WaitingView, ...]
