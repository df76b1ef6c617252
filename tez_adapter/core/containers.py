"""The containers a job holds: which attempt goes into which, which of them rest, which are given back.

Containers outlive attempts: a task process asks for its next task when one is done, and a container that came
for a map may go on with a reduce. So a container matches any vertex whose resource fits in it, earlier vertices
first.
"""

from tez_adapter.core import events as ev
from tez_adapter.core.dag import AttemptId, DagSpec
from tez_adapter.core.job import JobRecords
from tez_adapter.core.moves import Moves
from tez_adapter.core.nodes import HostFailures
from tez_adapter.core.records import Attempt, Container, Vertex
from tez_adapter.core.states import AttemptEvent, ContainerEvent, ContainerState, TaskEvent
from yaqd.model import Resource


class JobContainers(JobRecords):
    """Records and what is done with their containers; what ends an attempt is the machine's to know."""

    def __init__(self, spec: DagSpec) -> None:
        super().__init__(spec)
        self._moves = Moves(self.vertices)
        self._hosts = HostFailures(spec.limits)
        self._headroom: Resource | None = None
        #: held by nobody's attempt, in the order they came to rest
        self._idle: dict[str, None] = {}
        #: of the event at hand: its decisions so far, and its time
        self._out: list[ev.Decision] = []
        self._now = 0.0

    def _assign(self, vertex: Vertex, container: Container) -> Attempt:
        index = vertex.pending.take(container.host, vertex.failed_on)
        assert index is not None
        task = vertex.tasks[index]
        self._moves.task(task, TaskEvent.ASSIGNED)
        attempt_id = AttemptId(vertex.index, index, len(task.attempts))
        attempt = Attempt(attempt_id, container.id, container.node, container.host, self._now, self._now)
        task.attempts.append(attempt)
        vertex.running[attempt_id] = attempt
        container.attempt = attempt
        return attempt

    def _rest(self, container: Container) -> None:
        self._moves.container(container, ContainerEvent.ATTEMPT_ENDED)
        container.idle_since = self._now
        self._idle[container.id] = None

    def _feed_idle(self) -> None:
        for container_id in list(self._idle):
            container = self.containers[container_id]
            avoided = self._hosts.is_avoided(container.host) or self._is_due_back(container)
            vertex = None if avoided else self._demand.vertex_for(container.resource, container.may_go_on_with)
            if vertex is not None:
                del self._idle[container_id]
                attempt = self._assign(vertex, container)
                self._moves.container(container, ContainerEvent.TASK_GIVEN)
                self._moves.attempt(attempt, AttemptEvent.FETCHED)
                attempt.began = attempt.heard = self._now
                self._out.append(ev.GiveTask(container_id, attempt.id))
            elif avoided or not self._demand.is_in_sight(container):
                self._dismiss(container)

    def _is_due_back(self, container: Container) -> bool:
        """Held for long, in a cluster that is full: the ResourceManager shall say who gets its room next."""
        is_full = self._headroom is not None and not container.resource.fits_in(self._headroom)
        return is_full and self._now - container.held_since > self.spec.limits.reuse_max_s

    def _dismiss(self, container: Container) -> None:
        """Its process is told to end when it asks (or asks again)."""
        self._idle.pop(container.id, None)
        self._moves.container(container, ContainerEvent.STOP)
        self._out.append(ev.GiveExit(container.id))

    def _stop(self, container: Container, reason: str) -> None:
        if container.state is not ContainerState.STOPPING:
            self._idle.pop(container.id, None)
            self._moves.container(container, ContainerEvent.STOP)
            self._out.append(ev.Stop(container.id, container.node, reason))

    def _stop_process(self, attempt: Attempt, reason: str) -> None:
        container = self.containers.get(attempt.container)
        if container is not None:
            self._stop(container, reason)
