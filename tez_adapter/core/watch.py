"""What only time shows: tasks that hang, processes that fall silent, sources that wait for ever for room."""

from typing import Final

from tez_adapter.core.counted import Counted
from tez_adapter.core.dag import DagSpec
from tez_adapter.core.records import Attempt, Container, Vertex
from tez_adapter.core.states import AttemptState, ContainerState
from yaqd.model import Resource

#: a node is asked so often within a time-out whether a container still waits there; a process whose start was missed
#: has at least the rest of it for its first request
_ASKED_TIMES: Final = 4


class Watch:
    def __init__(self, spec: DagSpec, vertices: list[Vertex], counted: Counted) -> None:
        self._limits = spec.limits
        self._vertices = vertices
        self._counted = counted
        self._targets = [[e.target for e in spec.edges if e.source == i] for i in range(len(vertices))]

    def targets(self, vertex: Vertex) -> list[Vertex]:
        """The vertices that read what this one leaves."""
        return [self._vertices[i] for i in self._targets[vertex.index]]

    def hanging(self, attempt: Attempt, now: float) -> str:
        """What the task has not done for too long; "" when all is well."""
        timeout_s = self._vertices[attempt.id.vertex].spec.timeout_s
        if timeout_s and now - attempt.moved > timeout_s:
            return f"no progress for {timeout_s:g} s (mapreduce.task.timeout); its process was ended"
        return ""

    def may_wait(self, attempt: Attempt, container: Container, now: float) -> bool:
        """Is it time to ask the node? A container that waits in its queue is not to blame for its silence."""
        timeout_s = self._vertices[attempt.id.vertex].spec.timeout_s
        if not timeout_s or container.state is not ContainerState.STARTING or container.attempt is not attempt:
            return False
        return now - max(attempt.moved, container.asked_at) > timeout_s / _ASKED_TIMES

    def silent(self, attempt: Attempt, now: float) -> str:
        """The same for its process: from its first request on it reports every second, whatever its task does."""
        silence_s = self._limits.silence_s
        if silence_s and attempt.state is not AttemptState.ASSIGNED and now - attempt.heard > silence_s:
            return f"its process on {attempt.node} was not heard for {silence_s:g} s (yaq.job.task.silence-ms)"
        return ""

    def victim(self, vertex: Vertex, headroom: Resource | None, now: float) -> Attempt | None:
        """The target attempt with least progress, when its sources have waited too long with no room anywhere."""
        starved = bool(vertex.pending) and not vertex.running and headroom is not None
        if not starved or headroom is None or self._counted.fits(vertex.spec.resource, headroom):
            vertex.starved_since = None
            return None
        if vertex.starved_since is None:
            vertex.starved_since = now
        if now - vertex.starved_since < self._limits.preempt_after_s:
            return None
        candidates = [a for target in self.targets(vertex) for a in target.running.values()]
        if not candidates:
            return None
        vertex.starved_since = None
        return min(candidates, key=lambda a: (a.progress, a.id))
