"""What a job wants and may have now: its asks, and the vertex that gets a container at hand.

Earlier vertices come first. A vertex whose sources still wait gets only a share of the containers. The share grows with
the sources that are done (as MapReduce ramps up its reduces): reduces must not take the room that maps need.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tez_adapter.core.counted import Counted
from tez_adapter.core.dag import DagSpec, EdgeSpec
from tez_adapter.core.records import Container, Vertex
from yaqd.model import ANY_HOST, DEFAULT_RACK, Resource


@dataclass(frozen=True, slots=True)
class Ask:
    """So many containers still wanted: one row of the allocate request."""

    priority: int
    name: str
    count: int
    resource: Resource
    #: may a container be taken because of this row though a smaller place was named?
    relax: bool = True
    #: containers that use what others leave idle
    opportunistic: bool = False


class Demand:
    """A view of the machine's records; it changes nothing."""

    def __init__(
        self, spec: DagSpec, vertices: list[Vertex], containers: dict[str, Container], counted: Counted
    ) -> None:
        self._vertices = vertices
        self._counted = counted
        self._containers = containers
        self._ramp_up = spec.limits.ramp_up
        #: the edges into each vertex
        self.sources: list[list[EdgeSpec]] = [
            [e for e in spec.edges if e.target == i] for i in range(len(spec.vertices))
        ]

    def asks(self) -> list[Ask]:
        """List what is wanted now, every row of it, ordered by vertex and name."""
        rows: list[Ask] = []
        for vertex, wanted in zip(self._vertices, self.wanted(), strict=True):
            if not wanted:
                continue
            spec = vertex.spec
            spare = int(wanted * spec.opportunistic)
            if 0 < spare < wanted:  # those anywhere, as MapReduce asks for them
                rows.append(Ask(spec.priority, ANY_HOST, spare, spec.resource, opportunistic=True))
                wanted -= spare
                spare = 0
            all_spare = spare > 0
            local = vertex.pending.by_host() if wanted == len(vertex.pending) else []
            for host, count in local:
                rows.append(Ask(spec.priority, host, count, spec.resource, opportunistic=all_spare))
            relax = not spec.only_on_hosts
            if local:
                rows.append(Ask(spec.priority, DEFAULT_RACK, wanted, spec.resource, relax, all_spare))
            rows.append(Ask(spec.priority, ANY_HOST, wanted, spec.resource, relax, all_spare))
        return rows

    def wanted(self) -> tuple[int, ...]:
        """Count the containers still wanted, by vertex. It changes exactly when the asks should be told again."""
        return tuple(min(len(v.pending), self._room_for(v)) for v in self._vertices)

    def vertex_for(self, room: Resource, accept: Callable[[Vertex], bool], among: Sequence[Vertex]) -> Vertex | None:
        """Return the first of these vertices whose task a container of this size should run."""
        for vertex in among:
            if self.is_wanted(vertex) and accept(vertex) and self._counted.fits(vertex.spec.resource, room):
                return vertex
        return None

    def is_wanted(self, vertex: Vertex) -> bool:
        """Return whether a container is asked for to run the vertex's tasks."""
        return bool(vertex.pending) and self._room_for(vertex) > 0

    def is_ready(self, vertex: Vertex) -> bool:
        """Return whether enough of what the vertex reads from is done."""
        return all(self._finished_share(e.source) >= e.slow_start for e in self.sources[vertex.index])

    def is_in_sight(self, container: Container) -> bool:
        """Return whether there is work that the container's process could get later."""
        return any((not v.ready or v.pending) and self.suits(v, container) for v in self._vertices)

    def suits(self, vertex: Vertex, container: Container) -> bool:
        """Return whether the container's process could run the vertex's tasks, were there some."""
        return container.may_go_on_with(vertex) and self._counted.fits(vertex.spec.resource, container.resource)

    def startable(self, vertex: Vertex) -> int:
        """Count the vertex's tasks that no container has yet, those that may not start yet included."""
        tasks = len(vertex.pending) if vertex.ready else vertex.spec.tasks - vertex.over
        return max(0, min(tasks, vertex.limit - len(vertex.running)))

    def _room_for(self, vertex: Vertex) -> int:
        """How many more of its tasks may start."""
        if vertex.limit < vertex.spec.tasks:
            return max(0, vertex.limit - len(vertex.running))
        edges = self.sources[vertex.index]
        if not any(self._vertices[e.source].pending for e in edges):
            return vertex.spec.tasks
        share = min(self._finished_share(e.source) for e in edges)
        allowed = int(share * self._ramp_up * len(self._containers))
        return max(0, allowed - len(vertex.running))

    def _finished_share(self, index: int) -> float:
        vertex = self._vertices[index]
        return vertex.over / vertex.spec.tasks if vertex.spec.tasks else 1.0
