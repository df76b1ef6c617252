"""The records of a running cluster, and the two things that happen to all of them: decisions and the ends of
containers.

Everything here runs on the event loop's thread, is synchronous and does no I/O. What must happen outside is handed
to `perform` as an effect.
"""

import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from rm.applications.records import Application, Attempt, Completion, RmContainer
from rm.applications.states import AttemptEvent, ContainerEvent, ContainerStage
from rm.clock import Clock
from rm.effects import Effect, LaunchMaster
from rm.nodes.liveness import Liveness
from rm.nodes.node import RmNode
from rm.scheduler.decisions import Allocate, Decision, Note, Outcome
from rm.scheduler.events import ContainerEnded, SchedulerEvent
from rm.scheduler.queues.spec import QueueConfigError
from rm.scheduler.scheduler import Scheduler
from yaqd.config.resource_types import ResourceType
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId, ExitStatus, NodeId
from yaqd.policies.asks.table import TooManyAsks

log = logging.getLogger(__name__)

#: node state changes kept for masters that have not asked since
_NODE_CHANGES_KEPT: Final = 10_000


class Cluster:
    def __init__(
        self,
        scheduler: Scheduler,
        clock: Clock,
        perform: Callable[[Effect], None],
        *,
        allocation_expiry_s: float,
        resource_types: tuple[ResourceType, ...] = (),
    ) -> None:
        self.scheduler = scheduler
        #: countable resources beyond memory and cores
        self.resource_types = resource_types
        self.clock = clock
        self.perform = perform
        self.applications: dict[ApplicationId, Application] = {}
        self.nodes: dict[NodeId, RmNode] = {}
        #: containers that are not over
        self.containers: dict[ContainerId, RmContainer] = {}
        #: containers that their node has not reported yet
        self.unstarted: Liveness[ContainerId] = Liveness(allocation_expiry_s)
        #: called with a master's attempt and how its container ended; set by `Applications`
        self.on_master_ended: Callable[[Attempt, Completion], None] = _nobody
        #: containers whose increase their node has not confirmed
        self.unconfirmed: Liveness[ContainerId] = Liveness(allocation_expiry_s)
        #: what is done about each decision of the scheduler; set by the daemon (`rm.carrier`)
        self.carry_out: Callable[[Decision], None] = _nobody_carries
        #: hears of each event and its decisions, None where it was refused; set by the daemon
        self.record: Callable[[float, SchedulerEvent, list[Outcome] | None], None] = lambda now, event, decided: None
        #: called after each event; set by the daemon
        self.follow: Callable[[], None] = lambda: None
        #: nodes that became usable or unusable, numbered from 1
        self._node_changes: deque[tuple[int, RmNode]] = deque(maxlen=_NODE_CHANGES_KEPT)
        self.node_changes = 0
        self.containers_allocated = 0
        #: the longest division of cores among training jobs so far, s
        self.longest_division_s = 0.0

    # ---- look-ups

    def find_attempt(self, attempt_id: ApplicationAttemptId) -> Attempt | None:
        app = self.applications.get(attempt_id.application_id)
        if app is None:
            return None
        number = attempt_id.attempt
        for attempt in reversed(app.attempts):
            if attempt.id.attempt == number:
                return attempt
        return None

    @property
    def usable_nodes(self) -> int:
        return self.scheduler.facts.usable_nodes

    # ---- decisions

    def schedule(self, event: SchedulerEvent) -> None:
        """Tell the scheduler, and carry out what it decides. Raises as `Scheduler.handle`."""
        now = self.clock.now()
        try:
            outcomes = self.scheduler.handle(event, now)
        except (TooManyAsks, QueueConfigError):
            self.record(now, event, None)
            raise
        self.record(now, event, outcomes)
        for outcome in outcomes:
            if not isinstance(outcome, Note):
                self.carry_out(outcome)
        self.follow()

    def allocate(self, decision: Allocate) -> None:
        """Book a container that the scheduler gives."""
        node = self.nodes[decision.node_id]
        attempt = self.find_attempt(decision.container_id.attempt_id)
        if attempt is None:
            raise AssertionError(f"the scheduler gave {decision.container_id} to an attempt that is not there")
        container = RmContainer(decision, attempt, node.http_address, self.clock.wall_ms(), self.clock.now())
        self.containers[container.id] = container
        self.containers_allocated += 1
        node.containers[container.id] = container
        node.applications.add(attempt.app.id)
        attempt.app.nodes[node.id] = None
        self.unstarted.seen(container.id, self.clock.now())
        if decision.is_master:
            log.info("%s: allocated on %s for the master", container.id, node.id)
            attempt.master = container
            container.machine.advance(ContainerEvent.ACQUIRE)
            attempt.machine.advance(AttemptEvent.ALLOCATE)
            self.perform(LaunchMaster(attempt))
        else:
            log.debug("%s: allocated on %s (%s)", container.id, node.id, decision.reason)
            container.estimate_s = self.scheduler.facts.estimate(attempt.app.id, decision.priority)
            attempt.containers[container.id] = container
            attempt.allocated.append(container)

    # ---- containers

    def container_started(self, container: RmContainer, node: RmNode) -> None:
        """Note that the container's node reports it for the first time."""
        self.unstarted.forget(container.id)
        node.running.add(container.id)
        container.machine.advance(ContainerEvent.LAUNCH)

    def end_container(
        self, container: RmContainer, event: ContainerEvent, exit_status: int, diagnostics: str, *, kill: bool
    ) -> None:
        """Book the end of a container. `kill`: its node is told to stop it."""
        was_acquired = container.stage is not ContainerStage.ALLOCATED
        if container.is_over or not container.machine.advance(event):
            return
        allocation = container.allocation
        completion = Completion(
            container.id,
            exit_status,
            diagnostics,
            allocation.resource,
            allocation.execution_type,
            container.node_id,
            container.times_ms,
        )
        container.completion = completion
        container.finished_ms = self.clock.wall_ms()
        self.containers.pop(container.id, None)
        self.unstarted.forget(container.id)
        self.unconfirmed.forget(container.id)
        node = self.nodes.get(container.node_id)
        if node is not None:
            node.containers.pop(container.id, None)
            node.running.discard(container.id)
            if kill:
                node.orders.containers_to_kill[container.id] = None
        level = logging.DEBUG if exit_status == 0 or event is ContainerEvent.RELEASE else logging.INFO
        if log.isEnabledFor(level):
            log.log(level, "%s: %s on %s, exit %d", container.id, container.stage.name, container.node_id, exit_status)
        attempt = container.attempt
        self._book_end(attempt, container, completion, was_acquired)
        # A killed one is forgotten when its node has reported the end.
        if not kill and (allocation.is_master or not attempt.takes_containers):
            self.forget_id_on_node(container.id, container.node_id)
        self.schedule(ContainerEnded(container.id))

    def _book_end(self, attempt: Attempt, container: RmContainer, completion: Completion, was_acquired: bool) -> None:
        container.book_usage(container.finished_ms)
        attempt.ended.append(container)
        if completion.exit_status == ExitStatus.PREEMPTED:
            held_ms = max(0, container.finished_ms - container.created_ms)
            attempt.app.book_preempted(completion.resource, held_ms)
        if container.allocation.is_master:
            self.on_master_ended(attempt, completion)
            return
        attempt.containers.pop(container.id, None)
        if not was_acquired:
            attempt.allocated = [c for c in attempt.allocated if c is not container]
        if attempt.takes_containers:
            attempt.completions.append(completion)

    def forget_id_on_node(self, container_id: ContainerId, node_id: NodeId) -> None:
        """Let the node drop a container's record: whoever wanted to know of its end knows."""
        node = self.nodes.get(node_id)
        if node is not None:
            node.orders.containers_to_forget.append(container_id)

    # ---- nodes

    def note_node_change(self, node: RmNode) -> None:
        self.node_changes += 1
        self._node_changes.append((self.node_changes, node))

    def node_changes_since(self, number: int) -> list[RmNode]:
        """List the nodes whose state changed after change `number`, each once."""
        if number >= self.node_changes:
            return []
        return list({node.id: node for at, node in self._node_changes if at > number}.values())


def _nobody_carries(decision: Decision) -> None:
    raise AssertionError(f"nobody carries out {decision}")


def _nobody(attempt: Attempt, completion: Completion) -> None:
    raise AssertionError(f"nobody looks after the master of {attempt.id}")
