"""A container as the ResourceManager knows it, from allocation to the end."""

from collections.abc import Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from rm.scheduler.decisions import Allocate
from rm.transitions import Machine
from yaqd.model import ContainerId, ExecutionType, NodeId, Resource
from yaqd.model.values import value

if TYPE_CHECKING:
    from rm.applications.attempt import Attempt


class _Member(Enum):
    """Hashed by identity, in C: Enum's own hash is a call, and each step of a container looks two members up."""

    __hash__ = object.__hash__


class ContainerStage(_Member):
    #: the scheduler has charged it, its master does not know it yet
    ALLOCATED = auto()
    #: its master has it
    ACQUIRED = auto()
    #: its node has reported it
    RUNNING = auto()
    COMPLETED = auto()
    #: never started in time
    EXPIRED = auto()
    #: given back by its master
    RELEASED = auto()
    #: ended by the ResourceManager, or lost with its node
    KILLED = auto()


class ContainerEvent(_Member):
    ACQUIRE = auto()
    LAUNCH = auto()
    FINISH = auto()
    EXPIRE = auto()
    RELEASE = auto()
    KILL = auto()


_S, _E = ContainerStage, ContainerEvent

CONTAINER_TRANSITIONS: Final[Mapping[tuple[ContainerStage, ContainerEvent], ContainerStage]] = {
    (_S.ALLOCATED, _E.ACQUIRE): _S.ACQUIRED,
    (_S.ALLOCATED, _E.EXPIRE): _S.EXPIRED,
    (_S.ALLOCATED, _E.RELEASE): _S.RELEASED,
    (_S.ALLOCATED, _E.KILL): _S.KILLED,
    (_S.ACQUIRED, _E.LAUNCH): _S.RUNNING,
    (_S.ACQUIRED, _E.FINISH): _S.COMPLETED,
    (_S.ACQUIRED, _E.EXPIRE): _S.EXPIRED,
    (_S.ACQUIRED, _E.RELEASE): _S.RELEASED,
    (_S.ACQUIRED, _E.KILL): _S.KILLED,
    (_S.RUNNING, _E.LAUNCH): _S.RUNNING,
    (_S.RUNNING, _E.FINISH): _S.COMPLETED,
    (_S.RUNNING, _E.RELEASE): _S.RELEASED,
    (_S.RUNNING, _E.KILL): _S.KILLED,
}


@value()
class Completion:
    """The end of a container, as its master is told."""

    container_id: ContainerId
    exit_status: int
    diagnostics: str
    resource: Resource
    execution_type: ExecutionType
    node_id: NodeId
    #: how long it waited at its node and ran there, ms, as that said; None: it did not
    times_ms: tuple[int, int] | None = None


class RmContainer:
    """One container."""

    __slots__ = (
        "allocation",
        "attempt",
        "booked_ms",
        "completion",
        "confirmed",
        "created_at",
        "created_ms",
        "estimate_s",
        "finished_ms",
        "http_address",
        "id",
        "machine",
        "node_id",
        "times_ms",
        "update_wanted",
        "version",
    )

    def __init__(
        self, allocation: Allocate, attempt: "Attempt", http_address: str, created_ms: int, created_at: float = 0.0
    ) -> None:
        self.id = allocation.container_id
        #: whose container it is
        self.attempt = attempt
        self.node_id = allocation.node_id
        #: the decision it comes from: resource, priority, request id, execution type, whether it is a master's;
        #: replaced when the container is updated
        self.allocation = allocation
        #: counts its updates
        self.version = 0
        #: number of the kind of update that its master asked for last, a ContainerUpdateType
        self.update_wanted: int | None = None
        #: what its node is known to have; less than allocated while an increase is on its way there
        self.confirmed = allocation.resource
        #: `host:port` of the node's web server
        self.http_address = http_address
        self.machine = Machine(self.id, CONTAINER_TRANSITIONS, ContainerStage.ALLOCATED)
        self.created_ms = created_ms
        #: on the clock that only goes forward, s
        self.created_at = created_at
        #: how long one like it ran as far as was known when it was placed, s; None: nothing was known
        self.estimate_s: float | None = None
        #: up to when its use is in its application's totals, epoch ms
        self.booked_ms = created_ms
        self.finished_ms = 0
        #: how long it waited at its node and ran there, as that says when it is over; None: it does not
        self.times_ms: tuple[int, int] | None = None
        self.completion: Completion | None = None

    @property
    def stage(self) -> ContainerStage:
        return self.machine.state

    @property
    def is_started(self) -> bool:
        """Its node has reported it running."""
        return self.machine.state is ContainerStage.RUNNING

    def book_usage(self, now_ms: int) -> None:
        """Add what it has held since the last booking to its application's totals."""
        held_ms = max(0, now_ms - self.booked_ms)
        self.booked_ms += held_ms
        app = self.attempt.app
        app.memory_mb_ms += self.allocation.resource.memory_mb * held_ms
        app.vcore_ms += self.allocation.resource.vcores * held_ms
        for name, amount in self.allocation.resource.extras.items():
            app.further_ms[name] = app.further_ms.get(name, 0) + amount * held_ms

    @property
    def is_over(self) -> bool:
        return self.completion is not None
