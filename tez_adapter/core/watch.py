"""What only time shows: tasks that hang, processes that fall silent, sources that wait for ever for room."""

from collections.abc import Mapping
from typing import Final

from tez_adapter.core.counted import Counted
from tez_adapter.core.dag import DagSpec
from tez_adapter.core.records import Attempt, Container, Vertex
from tez_adapter.core.states import AttemptState, ContainerState
from yaqd.model import Resource

#: where sources wait for what their own targets hold, nodes are asked so often, s, and believed for so long
_ASKED_EVERY_S: Final = 1.0
_BELIEVED_S: Final = 3.0
#: a node is asked so often within a time-out whether a container still waits there; a process whose start was missed
#: has at least the rest of it for its first request
_ASKED_TIMES: Final = 4


class Watch:
    def __init__(
        self, spec: DagSpec, vertices: list[Vertex], counted: Counted, containers: Mapping[str, Container]
    ) -> None:
        self._limits = spec.limits
        self._vertices = vertices
        self._containers = containers
        self._counted = counted
        self._targets = [[e.target for e in spec.edges if e.source == i] for i in range(len(vertices))]

    def targets(self, vertex: Vertex) -> list[Vertex]:
        """List the vertices that read what this one leaves."""
        return [self._vertices[i] for i in self._targets[vertex.index]]

    def hanging(self, attempt: Attempt, now: float) -> str:
        """Return what the task has not done for too long; "" when all is well."""
        timeout_s = self._vertices[attempt.id.vertex].spec.timeout_s
        if timeout_s and now - attempt.moved > timeout_s:
            return f"no progress for {timeout_s:g} s (mapreduce.task.timeout); its process was ended"
        return ""

    def may_wait(self, attempt: Attempt, container: Container, now: float) -> bool:
        """Return whether it is time to ask the node.

        A container that waits in the node's queue is not to blame for its silence.
        """
        timeout_s = self._vertices[attempt.id.vertex].spec.timeout_s
        if not timeout_s or container.state is not ContainerState.STARTING or container.attempt is not attempt:
            return False
        return now - max(attempt.moved, container.asked_at) > timeout_s / _ASKED_TIMES

    def silent(self, attempt: Attempt, now: float) -> str:
        """Return what is wrong when the attempt's process is silent for too long; "" when all is well.

        From its first request on it reports every second, whatever its task does.
        """
        silence_s = self._limits.silence_s
        if silence_s and attempt.state is not AttemptState.ASSIGNED and now - attempt.heard > silence_s:
            return f"its process on {attempt.node} was not heard for {silence_s:g} s (yaq.job.task.silence-ms)"
        return ""

    def unheard(self, vertex: Vertex, headroom: Resource | None, now: float) -> list[Container]:
        """List containers of which nodes are to be asked.

        None of the vertex's tasks has begun, and none may as long as its targets hold the room that these wait for.
        """
        started = [self._containers.get(attempt.container) for attempt in vertex.running.values()]
        found = [one for one in started if one is not None and one.state is ContainerState.STARTING]
        if len(found) < len(started) or not self._is_full_for(vertex, headroom) or not self._running_targets(vertex):
            return []
        return [one for one in found if now - one.asked_at >= _ASKED_EVERY_S]

    def victim(self, vertex: Vertex, headroom: Resource | None, now: float) -> Attempt | None:
        """Return the target attempt with least progress, when its sources have waited too long with no room anywhere.

        Sources that wait in the queues of nodes are helped only by the end of what runs there.
        """
        nodes = {attempt.node for attempt in vertex.running.values() if self._waits(attempt, now)}
        starved = all(self._waits(attempt, now) for attempt in vertex.running.values())
        if not starved or not (vertex.pending or nodes) or not self._is_full_for(vertex, headroom):
            vertex.starved_since = None
            return None
        if vertex.starved_since is None:
            vertex.starved_since = now
        if now - vertex.starved_since < self._limits.preempt_after_s:
            return None
        candidates = [a for a in self._running_targets(vertex) if vertex.pending or a.node in nodes]
        if not candidates:
            return None
        vertex.starved_since = None
        return min(candidates, key=lambda a: (a.node not in nodes, a.progress, a.id))

    def _running_targets(self, vertex: Vertex) -> list[Attempt]:
        return [attempt for target in self.targets(vertex) for attempt in target.running.values()]

    def _is_full_for(self, vertex: Vertex, headroom: Resource | None) -> bool:
        return headroom is not None and not self._counted.fits(vertex.spec.resource, headroom)

    def _waits(self, attempt: Attempt, now: float) -> bool:
        """Whether its container has not had its turn at the node, as that has said lately."""
        container = self._containers.get(attempt.container)
        if container is None or container.state is not ContainerState.STARTING:
            return False
        return now - container.waited_at <= _BELIEVED_S
