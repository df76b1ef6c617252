"""What the node queue is told and what it decides: values."""

from collections.abc import Mapping
from dataclasses import field

from nm.node_queue.settings import NodeQueueSettings
from yaqd.model import ApplicationId, ContainerId, ExecutionType, ExitStatus, Resource
from yaqd.model.values import value
from yaqd.policies.queueing.facts import JobFacts, TaskFacts


@value()
class Arrived:
    """A container whose files are on the node and that may start from now on."""

    container_id: ContainerId
    resource: Resource
    execution_type: ExecutionType
    #: None: nothing but its job is known
    facts: TaskFacts | None = None
    #: an application master, which no queue may hold up
    is_master: bool = False


@value()
class Ended:
    """A container that no longer runs or no longer wants to, wherever it stood."""

    container_id: ContainerId


@value()
class Began:
    """The program of a container that had its turn was held, and runs from now on."""

    container_id: ContainerId


@value()
class Updated:
    """A container whose size or execution type was changed by the ResourceManager."""

    container_id: ContainerId
    resource: Resource
    execution_type: ExecutionType


@value()
class CapacityChanged:
    capacity: Resource


@value()
class OpportunisticLimit:
    """The ResourceManager's word on how many opportunistic containers may wait here."""

    max_length: int


@value()
class SettingsChanged:
    settings: NodeQueueSettings


@value()
class EstimateChanged:
    """How long a newcomer would wait is this node's own policy, whoever orders the rest."""

    #: a name in WAITS (yaqd.policies.queueing.wait); UnknownPolicy otherwise
    wait: str


@value()
class JobReport:
    """What the ResourceManager knows of a job by now."""

    job: ApplicationId
    facts: JobFacts
    #: when it was submitted, on the clock of TaskFacts.job_arrival; None: as was said before
    arrival: float | None = None
    #: by priority, s; None there: no finite one. They hold for what waits, runs and comes; others stand as they are
    estimates: Mapping[int, float | None] = field(default_factory=dict)


@value()
class JobsReported:
    jobs: tuple[JobReport, ...]


@value()
class MastersExpected:
    """Application masters that are to come: nothing that waits starts in the room that they need."""

    rooms: Mapping[ApplicationId, Resource] = field(default_factory=dict)


@value()
class Tick:
    """The time that `NodeQueue.next_tick` said has come."""


Event = (
    Arrived
    | Began
    | Ended
    | Updated
    | CapacityChanged
    | OpportunisticLimit
    | SettingsChanged
    | EstimateChanged
    | JobsReported
    | MastersExpected
    | Tick
)


@value()
class Launch:
    container_id: ContainerId


@value()
class Refuse:
    """The container waits no longer and must end without having run."""

    container_id: ContainerId
    status: ExitStatus
    reason: str


@value()
class Preempt:
    """The running container must end; it holds its resources until its `Ended`."""

    container_id: ContainerId
    status: ExitStatus
    reason: str


Decision = Launch | Refuse | Preempt


@value()
class NodeQueueStatistics:
    #: containers that hold resources
    running: int
    #: containers that wait
    queued: int
    #: resources held
    used: Resource
    #: the part of each that is opportunistic
    opportunistic_running: int
    opportunistic_queued: int
    opportunistic_used: Resource
    #: opportunistic containers that may wait
    opportunistic_max: int
