"""What the scheduler is told. Events are facts about the cluster; none of them asks for an answer by itself."""

from rm.scheduler.asks.job_starvation import JobStarvation
from rm.scheduler.decisions import NodeQueuePlace
from rm.scheduler.node_queues.spec import QueueingSpec
from rm.scheduler.preemption.spec import PreemptionSpec
from rm.scheduler.quality.spec import QualitySpec
from rm.scheduler.queues.spec import SchedulerSpec
from rm.scheduler.stages.spec import StagesSpec
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId, ExecutionType, NodeId, Resource
from yaqd.model.training import TrainingReport
from yaqd.model.values import value
from yaqd.policies.asks.rows import AskRow
from yaqd.policies.queueing.left import StageLeft


@value()
class NodeJoined:
    """A node offers itself. A node that is already known is taken for a new one only after `NodeLeft`."""

    node_id: NodeId
    rack: str
    total: Resource
    #: containers that it brings back from before it left, still charged
    containers: tuple[ContainerId, ...] = ()


@value()
class NodeLeft:
    """Lost, unhealthy or shut down. Its containers stay charged until each one's `ContainerEnded`."""

    node_id: NodeId


@value()
class NodeResized:
    node_id: NodeId
    total: Resource


@value()
class NodeDraining:
    """Nothing more goes to this node; it counts as large as what it holds until it leaves or is resized."""

    node_id: NodeId


@value()
class NodeSilent:
    """It has missed heartbeats: until it is heard of again nothing is sent to wait there."""

    node_id: NodeId


@value()
class NodeBeat:
    """A heartbeat: the node is a scheduling opportunity for asks that wait for a better place."""

    node_id: NodeId


@value()
class ApplicationSubmitted:
    """Answered by `AcceptApplication` or `RefuseApplication`."""

    application_id: ApplicationId
    queue: str
    user: str
    #: a higher number is served first
    priority: int
    #: given at submission; placement constraints may name them
    tags: frozenset[str] = frozenset()


@value()
class ApplicationEnded:
    application_id: ApplicationId


@value()
class AttemptStarted:
    """A new attempt that wants its master's container (none for a master that runs outside the cluster)."""

    attempt_id: ApplicationAttemptId
    master: tuple[AskRow, ...]
    #: the ResourceManager's epoch, above bit 40 of the container ids
    epoch: int = 0


@value()
class AttemptEnded:
    """Nothing more is given to this attempt. Its containers stay charged until each one's `ContainerEnded`."""

    attempt_id: ApplicationAttemptId


@value()
class Asked:
    attempt_id: ApplicationAttemptId
    rows: tuple[AskRow, ...]
    #: hosts or racks to avoid, and to avoid no longer
    blacklist_additions: tuple[str, ...] = ()
    blacklist_removals: tuple[str, ...] = ()
    #: of a call that is told in parts (`rm.scheduler.asks.intake.parts`): it has begun before, and goes on with more
    #: rows of this one's last ask
    continues: bool = False
    goes_on: bool = False


@value()
class UpdateAsked:
    """A master wants a container of its to have another size or execution type. Answered by `Update`, maybe later."""

    container_id: ContainerId
    #: normalized
    resource: Resource
    execution_type: ExecutionType


@value()
class Elapsed:
    """Time has passed: what comes with time alone is brought up to date, for a reader that goes by it next."""


@value()
class PassDue:
    """Each of these nodes, in this order, is offered one container: a pass of Hadoop's `schedule-asynchronously`.

    Only the simulator makes them.
    """

    nodes: tuple[NodeId, ...]


@value()
class ProxyPlaced:
    """A proxy at a master's node has put an opportunistic container on a node: it is to be booked there."""

    container_id: ContainerId
    node_id: NodeId
    resource: Resource
    priority: int
    allocation_request_id: int
    #: why there, as the proxy said; empty: it did not
    rule: str = ""
    #: where it waits; None: the proxy believed in free room, or said nothing
    place: NodeQueuePlace | None = None


@value()
class NodeQueueReported:
    """What a node says of its queue with a heartbeat."""

    node_id: NodeId
    running: int
    queued: int
    #: how long a newcomer would wait, s; inf: for ever, or the node does not know
    wait_s: float
    #: which of its containers wait, and which run; None: it does not say
    waiting: frozenset[ContainerId] | None = None
    started: frozenset[ContainerId] = frozenset()
    #: since the node's last heartbeat, s; None: that was its last report
    gap_s: float | None = None
    #: where it is told so it keeps room for masters
    keeps_room: bool = False
    #: it keeps room for a master that is to come, and what runs leaves so much free; None: it keeps none
    free: Resource | None = None
    #: until that is enough for the master, s; inf: nobody knows when, None: it does not say
    room_s: float | None = None
    #: it lets no more wait, whatever it is told; None: any number
    most: int | None = None
    #: opportunistic containers that may wait there; inf: the node sets no bound
    opportunistic_max: float = 0
    #: it queues any container; a stock node, which queues opportunistic ones alone, is given no more than fits
    queues_any: bool = True
    #: it tells at once that a container has ended, and not with its next heartbeat in turn
    tells_ends: bool = False
    #: what a container starts later for the node's sake that did not wait there, s: files, script, answered heartbeats
    refill_s: float = 0.0


@value()
class MasterCalled:
    """An application's master has called: how often they do is part of the gap between two refills of a node."""

    application_id: ApplicationId


@value()
class WaitingTolerated:
    """A master knows that containers which it has started may wait at their nodes."""

    attempt_id: ApplicationAttemptId


@value()
class BoundWish:
    """Containers that insist on places."""

    count: int
    #: None: not known
    size: Resource | None
    #: hosts and racks, any of which will do; none: not known
    places: frozenset[str]


@value()
class WantedElsewhere:
    """So many containers of each priority an application wants of proxies at the nodes, and has not got."""

    application_id: ApplicationId
    counts: tuple[tuple[int, int], ...]
    #: what any of them is to have that takes any place; none: not known of all
    sizes: frozenset[Resource] = frozenset()
    #: those of them that do not
    bound: tuple[BoundWish, ...] = ()


@value()
class LeftTold:
    """A master that knows its whole job says what is left of it, in place of what it said before."""

    attempt_id: ApplicationAttemptId
    stages: tuple[StageLeft, ...]
    #: containers that wait for word where to go on
    idle: int = 0


@value()
class Estimated:
    """How long containers of an application's priority are expected to run."""

    application_id: ApplicationId
    priority: int
    #: None: no end is known
    estimate_s: float | None


@value()
class TaskTimes:
    """A container ended well: how long it had waited at its node, and how long it had run."""

    application_id: ApplicationId
    priority: int
    queued_s: float
    run_s: float
    #: None: not known
    node_id: NodeId | None = None
    container_id: ContainerId | None = None


@value()
class PlaceLost:
    """A container that waited at a node went without having run; its master will ask for it again."""

    application_id: ApplicationId
    priority: int
    #: since when its task waits, at whatever nodes, scheduler's seconds
    since: float


@value()
class QueueingChanged:
    """Other settings for what waits at nodes; None: nothing is sent to wait any more."""

    spec: QueueingSpec | None
    #: when applications that wait go first; None: as before
    job_starvation: JobStarvation | None = None
    #: containers are given when asked for too; None: as before
    at_asks: bool | None = None


@value()
class ContainerEnded:
    """Completed, released, killed, expired or lost."""

    container_id: ContainerId


@value()
class PriorityChanged:
    application_id: ApplicationId
    priority: int


@value()
class ApplicationMoved:
    """To another leaf queue, which takes it; one that is not there or no leaf changes nothing."""

    application_id: ApplicationId
    queue: str


@value()
class QueuesRefreshed:
    spec: SchedulerSpec


@value()
class PreemptionRefreshed:
    """Other settings for what is taken back."""

    spec: PreemptionSpec
    #: nothing was, or is to be, taken back: who has been told counts no more
    starts_anew: bool


@value()
class PreemptionDue:
    """Time to look whether containers should be taken back. Answered by `Warn` and `Preempt`."""


@value()
class MastersDue:
    """Time to look whether a master should yield, or may start that did. Answered by `Preempt`, beside `Allocate`."""


@value()
class TrainingReported:
    """A master has told of its training: losses, and what it wants. Its first report is answered by `CoresTargeted`."""

    attempt_id: ApplicationAttemptId
    report: TrainingReport


@value()
class QualityDue:
    """Time to divide cores among training jobs. Answered by `CoresTargeted` for each job whose cores change."""

    #: processor time that nodes have told of each application, s
    used: tuple[tuple[ApplicationId, float], ...]


@value()
class QualityChanged:
    """Cores of training jobs are divided in another way; None: not any more."""

    spec: QualitySpec | None


@value()
class StagesDue:
    """Time for a leaf queue to decide by stages that has waited for it. Answered by `StagesOrdered` and `Allocate`."""


@value()
class StagesChanged:
    """Leaf queues decide by stages in another way."""

    spec: StagesSpec


SchedulerEvent = (
    StagesDue
    | StagesChanged
    | PreemptionDue
    | TrainingReported
    | QualityDue
    | QualityChanged
    | MastersDue
    | PreemptionRefreshed
    | NodeJoined
    | NodeLeft
    | NodeResized
    | NodeDraining
    | NodeBeat
    | NodeSilent
    | ApplicationSubmitted
    | ApplicationEnded
    | AttemptStarted
    | AttemptEnded
    | Asked
    | UpdateAsked
    | Elapsed
    | PassDue
    | MasterCalled
    | ProxyPlaced
    | WaitingTolerated
    | WantedElsewhere
    | LeftTold
    | NodeQueueReported
    | Estimated
    | TaskTimes
    | PlaceLost
    | QueueingChanged
    | ContainerEnded
    | PriorityChanged
    | ApplicationMoved
    | QueuesRefreshed
)
