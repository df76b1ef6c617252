"""The one place where states change: by the tables, or not at all and with a note."""

from tez_adapter.core.records import Attempt, Container, Task, Vertex
from tez_adapter.core.states import (
    ATTEMPT_TABLE,
    CONTAINER_TABLE,
    TASK_TABLE,
    AttemptEvent,
    ContainerEvent,
    TaskEvent,
    advance,
)

#: illegal pairs remembered for the log
_ANOMALIES_MAX = 1000


class StateChanges:
    def __init__(self, vertices: list[Vertex]) -> None:
        self._vertices = vertices
        #: illegal pairs of state and event, for the log; drained by the owner
        self.anomalies: list[str] = []

    def task(self, task: Task, event: TaskEvent) -> bool:
        after = advance(TASK_TABLE, task.state, event)
        if after is None:
            self.illegal(event, f"task {task.id}", task.state)
            return False
        task.state = after
        return True

    def attempt(self, attempt: Attempt, event: AttemptEvent) -> bool:
        after = advance(ATTEMPT_TABLE, attempt.state, event)
        if after is None:
            self.illegal(event, f"attempt {attempt.id}", attempt.state)
            return False
        ended = self._vertices[attempt.id.vertex].ended
        if not attempt.live:
            ended[attempt.state] -= 1
        attempt.state = after
        if not attempt.live:
            ended[after] += 1
        return True

    def container(self, container: Container, event: ContainerEvent) -> bool:
        after = advance(CONTAINER_TABLE, container.state, event)
        if after is None:
            self.illegal(event, f"container {container.id}", container.state)
            return False
        container.state = after
        return True

    def illegal(self, event: object, subject: str, state: str) -> None:
        if len(self.anomalies) < _ANOMALIES_MAX:
            self.anomalies.append(f"{event} does not apply to {subject} in state {state}")
