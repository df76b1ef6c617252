"""The containers a job holds: which attempt goes into which, which of them rest, which are given back.

Containers outlive attempts: a task process asks for its next task when one is done. A container that came for a map may
go on with a reduce. So a container matches any vertex whose resource fits in it, earlier vertices first, unless the
ResourceManager decides about stages (`stage_orders`).
"""

from collections.abc import Sequence
from typing import Final

from tez_adapter.core import events as ev
from tez_adapter.core.dag import AttemptId
from tez_adapter.core.events import Turn
from tez_adapter.core.job import JobRecords
from tez_adapter.core.nodes import HostFailures
from tez_adapter.core.records import Attempt, Container, Vertex
from tez_adapter.core.stage_orders import StageOrders
from tez_adapter.core.states import AttemptEvent, ContainerEvent, ContainerState, TaskEvent
from yaqd.model.stages import StagesOrder

#: a job with fewer containers needs each for its tasks
_LENDS_FROM: Final = 4


class HeldContainers:
    """What ends an attempt is the machine's to know."""

    def __init__(self, job: JobRecords, hosts: HostFailures, turn: Turn) -> None:
        self._job = job
        self._hosts = hosts
        self._turn = turn
        self.orders = StageOrders(job, turn)
        #: held by nobody's attempt, in the order they came to rest
        self._idle: dict[str, None] = {}
        #: launched and not heard of yet, in the order of their launch: at their node they may wait behind others
        self._unheard: dict[str, None] = {}
        #: containers to give back, where the cluster is full, for what the job runs beside its tasks
        self.to_lend = 0
        #: told to end without ever having been given a task, until that is told on
        self._without_task: list[str] = []

    def take_without_task(self) -> list[str]:
        """Take the containers told to end since the last call that had never been given a task."""
        taken, self._without_task = self._without_task, []
        return taken

    # ---- one comes, is heard, goes

    def launch(self, vertex: Vertex, container: Container) -> None:
        """Start a container that has come, with a task of this vertex."""
        self._job.containers[container.id] = container
        attempt = self._assign(vertex, container)
        self._unheard[container.id] = None
        self._turn.out.append(ev.Launch(container.id, container.node, attempt.id))

    def heard(self, container: Container) -> None:
        self._unheard.pop(container.id, None)
        self._job.changes.container(container, ContainerEvent.HEARD)

    def forget(self, container_id: str) -> Container | None:
        """Forget a container that is over. Returns None where it was not held."""
        self._idle.pop(container_id, None)
        return self._job.containers.pop(container_id, None)

    # ---- tasks for them

    def _assign(self, vertex: Vertex, container: Container) -> Attempt:
        index = vertex.pending.take(container.host, vertex.failed_on)
        assert index is not None
        task = vertex.tasks[index]
        self._job.changes.task(task, TaskEvent.ASSIGNED)
        attempt_id = AttemptId(vertex.index, index, self._job.next_number(task))
        attempt = Attempt(attempt_id, container.id, container.node, container.host, self._turn.now, self._turn.now)
        task.attempts.append(attempt)
        vertex.running[attempt_id] = attempt
        container.attempt, container.vertex = attempt, vertex.index
        return attempt

    def rest(self, container: Container) -> None:
        self._job.changes.container(container, ContainerEvent.ATTEMPT_ENDED)
        container.idle_since = container.undecided_since = self._turn.now
        self._idle[container.id] = None

    def feed_idle(self) -> None:
        """Give those that rest a task, or back."""
        for container_id in list(self._idle):
            container = self._job.containers[container_id]
            avoided = self._hosts.is_avoided(container.host) or self._is_due_back(container) or self._is_lent(container)
            among = () if avoided else self.orders.for_idle(container)
            vertex = self._job.demand.vertex_for(container.resource, container.may_go_on_with, among)
            waiting = self._waiting_for(container, vertex, among)
            if waiting is not None:
                self._give(container, self._take_over(waiting, container))
            elif vertex is not None:
                self._give(container, self._assign(vertex, container))
            elif avoided or not self._job.demand.is_in_sight(container):
                self.dismiss(container)

    def _give(self, container: Container, attempt: Attempt) -> None:
        del self._idle[container.id]
        container.meant_for = None
        self._job.changes.container(container, ContainerEvent.TASK_GIVEN)
        self._job.changes.attempt(attempt, AttemptEvent.FETCHED)
        attempt.began = attempt.moved = attempt.heard = self._turn.now
        container.had_task = True
        self._turn.out.append(ev.GiveTask(container.id, attempt.id))

    def _waiting_for(self, container: Container, vertex: Vertex | None, among: Sequence[Vertex]) -> Attempt | None:
        """An attempt of a vertex among these, before this one, whose own container has not come up yet.

        A container that waits in its node's queue would otherwise see the job's other containers go on with reduces.
        These hold the room that it waits for, and themselves wait for its map.
        """
        before = len(self._job.vertices) if vertex is None else vertex.index
        if not before or not among:
            return None
        for container_id in list(self._unheard):
            waiting = self._job.containers.get(container_id)
            if waiting is None or waiting.state is not ContainerState.STARTING:
                del self._unheard[container_id]
                continue
            attempt = waiting.attempt
            if attempt is None or attempt.id.vertex >= before:
                continue
            found = self._job.vertices[attempt.id.vertex]
            fits = found in among and self._job.demand.suits(found, container)
            if fits and container.host not in found.failed_on.get(attempt.id.task, ()):
                return attempt
        return None

    def _take_over(self, attempt: Attempt, container: Container) -> Attempt:
        """The container that was started for it gets another task when it comes up, or is told to end."""
        waiting = self._job.containers[attempt.container]
        waiting.attempt = None
        container.attempt, container.vertex = attempt, attempt.id.vertex
        attempt.container, attempt.node, attempt.host = container.id, container.node, container.host
        return attempt

    # ---- the ResourceManager's word

    def obey(self, order: StagesOrder) -> None:
        """Take an order about stages: idle containers are meant for vertices, or given back."""
        for container in self.orders.hear(order, [self._job.containers[name] for name in self._idle]):
            self.dismiss(container)

    def undecided(self) -> int:
        """Count the idle containers that wait for the ResourceManager's word where to go on."""
        return sum(self.orders.is_undecided(self._job.containers[name]) for name in self._idle)

    # ---- given back

    def release_idle(self) -> None:
        """Dismiss containers that have rested for too long."""
        for container_id in list(self._idle):
            container = self._job.containers[container_id]
            if self._turn.now - container.idle_since > self._job.spec.limits.idle_release_s:
                self.dismiss(container)

    def _is_due_back(self, container: Container) -> bool:
        """Held for long, in a cluster that is full: the ResourceManager shall say who gets its room next.

        Where its orders decide it says so by them.
        """
        if self.orders.decides:
            return False
        return self._is_full(container) and self._turn.now - container.held_since > self._job.spec.limits.reuse_max_s

    def _is_lent(self, container: Container) -> bool:
        """Given back, once for each that is wanted, by a job that has some left."""
        if not self.to_lend or len(self._job.containers) < _LENDS_FROM or not self._is_full(container):
            return False
        self.to_lend -= 1
        return True

    def _is_full(self, container: Container) -> bool:
        """Whether the cluster has no room for another one like it, as far as the ResourceManager says."""
        return self._job.headroom is not None and not self._job.counted.fits(container.resource, self._job.headroom)

    def dismiss(self, container: Container) -> None:
        """Have the container's process told to end when it asks (or asks again)."""
        self._idle.pop(container.id, None)
        self._job.changes.container(container, ContainerEvent.STOP)
        if not container.had_task:
            self._without_task.append(container.id)
        self._turn.out.append(ev.GiveExit(container.id))

    def stop(self, container: Container, reason: str) -> None:
        if container.state is not ContainerState.STOPPING:
            self._idle.pop(container.id, None)
            self._job.changes.container(container, ContainerEvent.STOP)
            self._turn.out.append(ev.Stop(container.id, container.node, reason))

    def stop_process(self, attempt: Attempt, reason: str) -> None:
        container = self._job.containers.get(attempt.container)
        if container is not None:
            self.stop(container, reason)
