"""What the scheduler decides: values, carried out by the daemon or by the simulator.

What it only notes for people to read, about business of its own, is nobody's to carry out.
"""

from collections import deque
from collections.abc import Collection, Iterator
from itertools import repeat, starmap

from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId, ExecutionType, NodeId, Resource
from yaqd.model.stages import StagesOrder
from yaqd.model.training import CoresOrder
from yaqd.model.values import value
from yaqd.policies.asks.rows import Locality


@value()
class NodeQueuePlace:
    """Where a container waits that was given more than its node has free."""

    #: how long it should wait, s; inf: nobody knew
    expected_wait_s: float
    #: how many were waiting there
    behind: int
    #: why there
    rule: str
    #: how long it should run, s; None: its end was not known
    estimate_s: float | None = None
    #: when the node said that it had room, scheduler's seconds: `expected_wait_s` is then the ResourceManager's own
    #: estimate, as that room was given away; None: the node had none
    room_said_at: float | None = None


@value()
class Allocate:
    """Give this container. Already charged to node, queue and application when it is returned."""

    container_id: ContainerId
    node_id: NodeId
    resource: Resource
    #: the ask's priority and request id: masters match containers by them
    priority: int
    allocation_request_id: int
    execution_type: ExecutionType
    locality: Locality
    #: the attempt's own master, which the ResourceManager starts itself
    is_master: bool
    reason: str
    #: allocation tags
    tags: tuple[str, ...] = ()
    #: None: there was free room for it
    queued: NodeQueuePlace | None = None
    #: since when its task waits that has lost its place at another node, scheduler's seconds; None: it has lost none
    waits_since: float | None = None


@value()
class Reserve:
    """Keep what becomes free on this node for an ask that has waited too long for a node with enough room."""

    node_id: NodeId
    attempt_id: ApplicationAttemptId
    priority: int
    allocation_request_id: int
    reason: str


@value()
class Unreserve:
    node_id: NodeId
    attempt_id: ApplicationAttemptId
    reason: str


@value()
class Keep:
    """Let nobody else's opportunistic containers go to this node, until so many of the attempt's have been sent
    there."""

    node_id: NodeId
    attempt_id: ApplicationAttemptId
    containers: int
    reason: str


@value()
class KeepNoMore:
    node_id: NodeId
    attempt_id: ApplicationAttemptId
    reason: str


@value()
class AcceptApplication:
    application_id: ApplicationId
    #: full path of the leaf queue
    queue: str


@value()
class RefuseApplication:
    application_id: ApplicationId
    reason: str


@value()
class Update:
    """The container has this size and type from now on. Already charged when it is returned."""

    container_id: ContainerId
    resource: Resource
    execution_type: ExecutionType


@value()
class Warn:
    """Tell the container's master that it will be killed unless enough is given back before."""

    container_id: ContainerId
    reason: str


@value()
class Preempt:
    """Kill the container: its time is up."""

    container_id: ContainerId
    reason: str
    #: its diagnostics name the reason, where Hadoop would not have killed it
    tells_why: bool = False


@value()
class CoresTargeted:
    """The attempt's workers use so many cores from now on, all nodes together."""

    attempt_id: ApplicationAttemptId
    order: CoresOrder
    #: predicted normalized fall of its loss with them, until the next division
    gain: float


@value()
class StagesOrdered:
    """The attempt's idle containers go on like this."""

    attempt_id: ApplicationAttemptId
    order: StagesOrder


Decision = Warn | Preempt | Allocate | Update | AcceptApplication | RefuseApplication | CoresTargeted | StagesOrdered
#: about nodes that are held for somebody
Note = Reserve | Unreserve | Keep | KeepNoMore
#: what comes of an event
Outcome = Decision | Note


@value()
class LogEntry:
    #: the scheduler's time, s
    at: float
    #: class name of the event that led to it
    event: str
    decision: Outcome


class DecisionLog:
    """The last decisions, oldest first. Entries are made when they are read: most never are."""

    def __init__(self, entries_max: int) -> None:
        self._entries: deque[tuple[float, str, Outcome]] = deque(maxlen=entries_max)
        #: decisions since the start, also those no longer kept
        self.count = 0

    def note(self, at: float, event: str, decisions: Collection[Outcome]) -> None:
        """Log what one event led to; `at`: the scheduler's time, s."""
        if self._entries.maxlen:
            self._entries.extend(zip(repeat(at), repeat(event), decisions))
        self.count += len(decisions)

    def __iter__(self) -> Iterator[LogEntry]:
        return starmap(LogEntry, self._entries)

    def __len__(self) -> int:
        return len(self._entries)
