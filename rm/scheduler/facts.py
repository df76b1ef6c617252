"""What the rest of the ResourceManager may ask the scheduler, which is told things through `Scheduler.handle` alone.

Nothing here changes anything: a question that is asked, or is not, leads to the same decisions. What is handed out
(queues, applications, attempts, nodes, asks) is the scheduler's own, and is only read.
"""

from collections.abc import Iterator, Mapping

from rm.scheduler.asks.jobs import Jobs
from rm.scheduler.asks.updates import Updates
from rm.scheduler.decisions import DecisionLog
from rm.scheduler.opportunistic.placing import Opportunistic
from rm.scheduler.quality.job import TrainingJob
from rm.scheduler.quality.outlook import TrainingOutlook
from rm.scheduler.quality.training import Training
from rm.scheduler.queues.admission import refusal, why_inactive
from rm.scheduler.queues.user_limits import masters_limit, user_limit, user_masters_limit
from rm.scheduler.stages.leaf import LeafStages, Weighed
from rm.scheduler.stages.stages import Stages
from rm.scheduler.view.calculators import AllocationBounds, Calculator
from rm.scheduler.view.cluster import ClusterView
from rm.scheduler.view.node import AskHold, NodeQueue, NodeView, OpportunisticHold
from rm.scheduler.view.records import AppView, AttemptView, QueueView
from rm.scheduler.view.user import UserView
from rm.scheduler.why.reasons import NoNodeTakes, Reasons, own_master_alone
from yaqd.model import ANY_HOST, ApplicationAttemptId, ApplicationId, ContainerId, NodeId, Resource
from yaqd.policies.asks.table import Ask
from yaqd.policies.queueing.facts import JobFacts
from yaqd.policies.queueing.left import StageLeft

__all__ = ["AppView", "AttemptView", "Facts", "NodeQueue", "NodeView", "QueueView", "TrainingOutlook", "UserView"]


class Facts:
    """The scheduler's answers."""

    def __init__(
        self,
        view: ClusterView,
        opportunistic: Opportunistic,
        updates: Updates,
        bounds: AllocationBounds,
        log: DecisionLog,
        training: Training,
        stages: Stages,
        *,
        gives_opportunistic: bool,
    ) -> None:
        self._view = view
        self._queues = view.node_queues
        self._opportunistic = opportunistic
        self._updates = updates
        #: the last decisions
        self.log = log
        self._training = training
        self._stages = stages
        #: the smallest and the largest container
        self.bounds = bounds
        #: are opportunistic containers given as such?
        self.gives_opportunistic = gives_opportunistic

    # ---- sizes

    @property
    def calculator(self) -> Calculator:
        return self._view.calculator

    @property
    def total(self) -> Resource:
        """Of all nodes in use."""
        return self._view.nodes.total

    @property
    def has_free_node(self) -> bool:
        """Is there a node with room for the smallest container?"""
        return self._view.nodes.emptiest(self._view.least, None, ANY_HOST) is not None

    def share(self, held: Resource) -> float:
        """Return the part of all nodes that this is, by the scarcest of what is counted."""
        return self._view.calculator.share(held, self.total)

    # ---- queues

    @property
    def root(self) -> QueueView:
        return self._view.root

    def queue(self, name: str) -> QueueView | None:
        """Find a queue by its path, or by its last part where that names one leaf."""
        return self._view.find_queue(name)

    def refusal(self, app_id: ApplicationId, queue: str, user: str) -> str | None:
        """Say why the queue would take no new application of this user now; None when it would."""
        return refusal(self._view, app_id, queue, user)

    def masters_limit(self, leaf: QueueView) -> Resource:
        """Return what masters of the leaf may hold together."""
        return masters_limit(self._view, leaf)

    def user_masters_limit(self, leaf: QueueView) -> Resource:
        """Return what masters of one user may hold there."""
        return user_masters_limit(self._view, leaf)

    def user_limit(self, leaf: QueueView) -> Resource:
        """Return what one user may hold there."""
        return user_limit(self._view, leaf)

    def reserved_in(self, queue: QueueView) -> list[Resource]:
        """List the containers of the queue, and of those below it, for which nodes are reserved."""
        within = {leaf.path for leaf in queue.walk() if leaf.is_leaf}
        held = self._view.holds.reserved.values()
        return [one.size for one in held if one.attempt.app.leaf.path in within]

    # ---- applications

    def reserved_for(self, attempt: AttemptView) -> AskHold | None:
        """Return the hold of the node where room is reserved for the attempt."""
        return self._view.holds.reserved_for(attempt)

    def application(self, app_id: ApplicationId) -> AppView | None:
        """Find an application; None: the scheduler does not have it, or no longer."""
        return self._view.applications.get(app_id)

    def attempt(self, attempt_id: ApplicationAttemptId) -> AttemptView | None:
        return self._view.attempt(attempt_id)

    def headroom(self, attempt_id: ApplicationAttemptId) -> Resource:
        """Return what the attempt could still be given if it were alone; nothing for one that is not there."""
        attempt = self._view.attempt(attempt_id)
        return self._view.headroom(attempt) if attempt is not None else Resource()

    def why_inactive(self, attempt: AttemptView) -> str | None:
        """Say why its master may not start; None when it may."""
        return why_inactive(self._view, attempt)

    def why_alone(self, attempt: AttemptView) -> str | None:
        """Say why it can get nothing beside its master, where that is so."""
        return own_master_alone(self._view, attempt)

    def reasons(self, attempt: AttemptView, heard_since: float) -> Reasons:
        """Say why its asks wait. Reports of nodes older than `heard_since` are not gone by, scheduler's seconds."""
        return Reasons(self._view, attempt, heard_since)

    # ---- what is left of a job

    @property
    def counts_jobs(self) -> bool:
        """Does anything go by what is left of jobs?"""
        return self._view.jobs.are_counted

    @property
    def _jobs(self) -> Jobs:
        return self._view.jobs

    def estimate(self, app_id: ApplicationId, priority: int) -> float | None:
        """Return how long a container of this priority runs, s; None when that has no end as far as anybody knows."""
        return self._queues.estimate(app_id, priority)

    def estimates(self, app_id: ApplicationId) -> Mapping[int, float]:
        """Return the same of all its priorities that were told, s."""
        return self._jobs.estimates(app_id)

    def job_version(self, app_id: ApplicationId) -> int:
        """Return a number that moves whenever something about the job does; 0 when nothing is known of it."""
        return self._jobs.version(app_id)

    def left_of(self, app: AppView) -> JobFacts:
        """Return what is left of it, as its master says or as far as it has asked."""
        return self._jobs.facts(app)

    def held(self, app_id: ApplicationId) -> Mapping[int, int]:
        """Count its containers that are not over, by priority, without masters."""
        return self._jobs.held(app_id)

    def elsewhere(self, app_id: ApplicationId) -> Mapping[int, int]:
        """Return how many containers of each priority it still wants of proxies at the nodes."""
        return self._jobs.elsewhere(app_id)

    def stage_told(self, attempt_id: ApplicationAttemptId, priority: int) -> StageLeft | None:
        """Return what the attempt's master says of a stage that is not over; None: it says nothing of it."""
        return self._jobs.stage_told(attempt_id, priority)

    # ---- training jobs

    @property
    def divides_cores(self) -> bool:
        """Whether cores are divided among training jobs."""
        return self._training.spec is not None

    def training(self, app_id: ApplicationId) -> TrainingJob | None:
        """Return what is known of an application's training; None: it does not train, or its cores are its own."""
        return self._training.get(app_id)

    def training_jobs(self) -> list[TrainingJob]:
        """List the training jobs, those that came first before others."""
        return self._training.all()

    def training_outlooks(self) -> list[TrainingOutlook]:
        """Return how each of them goes on, as was predicted last."""
        return self._training.outlooks()

    # ---- stages

    @property
    def stages_due_at(self) -> float | None:
        """When a leaf queue decides that waits for its time, scheduler's seconds; None: none waits."""
        return self._stages.due_at

    def stages_of(self, leaf: QueueView) -> tuple[LeafStages, Weighed] | None:
        """Return what a leaf queue decides by stages, and how its applications stand; None: it does not."""
        return self._stages.get(leaf)

    # ---- nodes and their queues

    @property
    def usable_nodes(self) -> int:
        return len(self._view.nodes)

    def node(self, node_id: NodeId) -> NodeView | None:
        return self._view.nodes.get(node_id)

    def node_queue(self, node_id: NodeId) -> NodeQueue | None:
        """Return the node's queue; None: the node is not in use."""
        node = self._view.nodes.get(node_id)
        return node.queue if node is not None else None

    def node_queues(self) -> list[NodeQueue]:
        """List those of nodes whose queues are filled."""
        return self._queues.all()

    @property
    def places(self) -> int:
        """Return how many containers may wait at all nodes together."""
        return self._queues.bounds

    @property
    def fills_queues(self) -> bool:
        """Are nodes given more than fits?"""
        return self._queues.spec is not None

    def bound_of(self, node_id: NodeId) -> int:
        """Return how many may wait there now."""
        return self._queues.bound_of(node_id)

    def masters_to_come(self, node_id: NodeId) -> dict[ApplicationId, Resource]:
        """Return what masters to come hold or will hold at the node, by application.

        They are those for which room is kept there, and those that are not known to have started there.
        """
        node, rooms = self._view.nodes.get(node_id), dict[ApplicationId, Resource]()
        if node is None or not node.queue.keeps_room or not node.queue.length:
            return rooms
        hold = node.hold
        if hold is not None and hold.ask.is_master and hold.is_wanted:
            rooms[hold.attempt.app.id] = hold.size
        for container_id, resource in node.containers.items() if not node.masters.is_zero() else ():
            if container_id not in node.queue.started and self._view.containers[container_id].is_master:
                rooms[container_id.application_id] = resource
        return rooms

    def where(self, container_id: ContainerId) -> NodeId | None:
        """Return the node of a container that is charged; None: it is over, or charged to nobody."""
        held = self._view.containers.get(container_id)
        return held.node_id if held is not None else None

    # ---- opportunistic containers

    @property
    def queue_limit(self) -> int:
        """How many containers any node should let wait (Hadoop's QueueLimitCalculator)."""
        return self._opportunistic.queue_limit

    def ranked(self, attempt_id: ApplicationAttemptId | None = None) -> list[NodeQueue]:
        """List the nodes that take opportunistic containers, the least loaded first, as of the last `Elapsed`."""
        return self._opportunistic.ranked(attempt_id)

    def waits_for_node(self, attempt_id: ApplicationAttemptId) -> bool:
        """Tell whether it has opportunistic asks that a call of its master may place."""
        return self._opportunistic.waits(attempt_id)

    def opportunistic_asks(self, attempt_id: ApplicationAttemptId) -> Iterator[Ask]:
        return self._opportunistic.pending(attempt_id)

    def opportunistic_on(self, node_id: NodeId) -> list[ContainerId]:
        """List the opportunistic containers of the node that are not over."""
        held = self._opportunistic.containers.items()
        return [container_id for container_id, placed in held if placed.node_id == node_id]

    def no_node_takes(self, attempt: AttemptView) -> NoNodeTakes:
        """Say why its opportunistic asks wait."""
        return NoNodeTakes(self._opportunistic, attempt)

    def may_go(self, attempt: AttemptView, node_id: NodeId, need: Resource) -> bool:
        """Tell whether what somebody else placed for the attempt may go to the node.

        The node must be held for no other attempt. The wait there must be shorter than `wait_limit`.
        """
        return self._opportunistic.may_go(attempt, node_id, need)

    def wait_limit(self, attempt: AttemptView) -> float:
        """Return the limit of expected waits, s. Its opportunistic containers go only where a wait is shorter."""
        return self._opportunistic.wait_limit(attempt)

    def opportunistic_holds(self, attempt_id: ApplicationAttemptId) -> list[OpportunisticHold]:
        """List the nodes that are held for its opportunistic containers."""
        return self._view.holds.opportunistic_of(attempt_id)

    def opportunistic_holds_of_others(self, attempt_id: ApplicationAttemptId) -> int:
        """Count the nodes that are held for others."""
        held = self._view.holds.opportunistic.values()
        return sum(1 for hold in held if hold.attempt.id != attempt_id)

    def is_update_waiting(self, container_id: ContainerId, node_id: NodeId) -> bool:
        """Tell whether the container's master asked for a change of it that was not made yet."""
        return self._updates.is_waiting(container_id, node_id)
