"""Where idle containers go on, as a ResourceManager orders it whose queue decides about stages.

A container goes on with its own vertex, that of its last attempt, without a word. Any other vertex is the
ResourceManager's to name. It hears how many containers wait for that, and answers with vertices in turn. A container
whose vertex has not opened by then is meant for it, and takes its tasks once they may start. Where no order comes in
time a container goes on as it would without any.
"""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import islice

from tez_adapter.core.events import Turn
from tez_adapter.core.job import JobRecords
from tez_adapter.core.records import Container, Vertex
from tez_adapter.core.states import ContainerState
from yaqd.model.stages import StagesOrder


class StageOrders:
    def __init__(self, job: JobRecords, turn: Turn) -> None:
        self._job = job
        self._turn = turn
        self._by_priority = {vertex.spec.priority: vertex for vertex in job.vertices}
        #: whether orders decide at present
        self.decides = False
        #: orders heard so far
        self.heard = 0
        self._heard_at = -math.inf

    # ---- what a container may take

    def for_new(self, vertex: Vertex) -> Sequence[Vertex]:
        """Return whose tasks a new container may take, the first first. `vertex`: the one that it came for."""
        return (vertex, *self._job.vertices) if self.decides else self._job.vertices

    def for_idle(self, container: Container) -> Sequence[Vertex]:
        """Return whose tasks an idle container may take as it is, the first first."""
        if not self.decides:
            return self._job.vertices
        meant_for = self._meant_for(container)
        if meant_for is not None:
            return (self._job.vertices[container.vertex], meant_for)
        if self._turn.now - max(container.undecided_since, self._heard_at) > self._job.spec.limits.order_wait_s:
            return self._job.vertices
        return (self._job.vertices[container.vertex],)

    def is_undecided(self, container: Container) -> bool:
        """Return whether an idle container waits for the ResourceManager's word."""
        return self.decides and container.meant_for is None

    def _meant_for(self, container: Container) -> Vertex | None:
        if container.meant_for is None:
            return None
        vertex = self._job.vertices[container.meant_for]
        if self._job.demand.startable(vertex):
            return vertex
        container.meant_for = None  # others have taken all of its tasks
        container.undecided_since = self._turn.now
        return None

    # ---- the ResourceManager's word

    def forget(self) -> None:
        """Forget all orders: another ResourceManager has them anew, or knows none."""
        self.decides = False
        for container in self._job.containers.values():
            container.meant_for = None

    def hear(self, order: StagesOrder, idle: Sequence[Container]) -> list[Container]:
        """Take an order. Returns those of the idle containers that are to be given back."""
        self.heard += 1
        if not order.decides:
            self.forget()
            return []
        self.decides = True
        undecided = [container for container in idle if container.meant_for is None]
        waiting = len(undecided)
        meant = Counter(container.meant_for for container in idle)
        for priority, count in order.shares:
            vertex = self._by_priority.get(priority)
            if vertex is None or not undecided:
                continue
            # no more than it has tasks for
            count = max(0, min(count, self._job.demand.startable(vertex) - meant[vertex.index]))
            fitting = (each for each in undecided if self._job.demand.suits(vertex, each))
            for container in islice(fitting, count):
                container.meant_for = vertex.index
                meant[vertex.index] += 1
            undecided = [each for each in undecided if each.meant_for is None]
        if order.limit is not None or len(undecided) < waiting:
            self._heard_at = self._turn.now  # after an order that places nothing, none is waited for longer
        if order.limit is None:
            return []
        held = sum(each.state is not ContainerState.STOPPING for each in self._job.containers.values())
        return undecided[: max(0, held - order.limit)]
