"""A job's records and what can be read off them: what it still wants, how far it is, where its outputs are."""

from collections.abc import Iterator

from tez_adapter.core.counted import Counted
from tez_adapter.core.dag import AttemptId, DagSpec
from tez_adapter.core.demand import Ask, Demand
from tez_adapter.core.left import stages_left
from tez_adapter.core.records import Attempt, Completion, Container, Task, Vertex
from tez_adapter.core.state_changes import StateChanges
from tez_adapter.core.states import JobState, TaskState
from yaqd.model import Resource
from yaqd.policies.queueing.left import StageLeft


class JobRecords:
    """Only the machine and its parts change anything here."""

    def __init__(self, spec: DagSpec, first_number: int = 0) -> None:
        """`first_number`: of attempts, so that those of former job managers are told apart from its own."""
        self.spec = spec
        self.first_number = first_number
        self.state = JobState.RUNNING
        self.vertices = [Vertex(i, v) for i, v in enumerate(spec.vertices)]
        self.containers: dict[str, Container] = {}
        self.counted = Counted()
        #: what the ResourceManager says that the job could have beyond what it has; None: nothing yet
        self.headroom: Resource | None = None
        self.demand = Demand(spec, self.vertices, self.containers, self.counted)
        self.changes = StateChanges(self.vertices)
        #: how far the job is, 0..1, where its tasks only serve; None: nobody has said
        self.told: float | None = None

    def asks(self) -> list[Ask]:
        """List every row that the ResourceManager should know, in a fixed order."""
        return self.demand.asks() if self.state is JobState.RUNNING else []

    def wanted(self) -> tuple[int, ...]:
        """Count the containers still wanted, by vertex. It changes exactly when `asks` should be told again."""
        return self.demand.wanted() if self.state is JobState.RUNNING else ()

    def left(self, now: float) -> tuple[StageLeft, ...]:
        """Return what is still to do, by stage."""
        return stages_left(self.vertices, self.demand.sources, now) if self.state is JobState.RUNNING else ()

    def progress(self) -> float:
        """Return the job's progress, 0..1, every vertex weighing the same, those that only serve left out."""
        counted = [v.progress() for v in self.vertices if not v.spec.serves]
        if counted:
            return sum(counted) / len(counted)
        return 1.0 if self.told is None else self.told

    def attempt(self, attempt_id: AttemptId) -> Attempt | None:
        vertex, task, number = attempt_id
        if not 0 <= vertex < len(self.vertices) or not 0 <= task < len(self.vertices[vertex].tasks):
            return None
        return next((each for each in self.vertices[vertex].tasks[task].attempts if each.id.number == number), None)

    def next_number(self, task: Task) -> int:
        """Return the number of a task's next attempt."""
        return max(self.first_number, 0 if task.last is None else task.last.id.number + 1)

    def inputs(self, vertex: int) -> int:
        """Return how many source tasks feed one task of the vertex."""
        return sum(self.vertices[e.source].spec.tasks for e in self.demand.sources[vertex])

    def given_up_for(self, vertex: int) -> list[int]:
        """List the tasks of its source that the vertex has to do without."""
        edges = self.demand.sources[vertex] if 0 <= vertex < len(self.vertices) else []
        sources = [self.vertices[edge.source] for edge in edges]
        return [t.id.task for v in sources if v.given_up for t in v.tasks if t.state is TaskState.FAILED]

    def outputs_for(self, vertex: int) -> list[Completion]:
        """List what the vertex may fetch, in the order it came and went."""
        return self.vertices[vertex].readable if 0 <= vertex < len(self.vertices) else []

    def announce(self, attempt: Attempt, *, available: bool) -> None:
        """Tell all who read from an attempt's vertex that its output has come, or gone."""
        completion = Completion(attempt.id, attempt.node, attempt.host, available)
        self.vertices[attempt.id.vertex].completions.append(completion)
        for edge in self.spec.edges:
            if edge.source == attempt.id.vertex:
                self.vertices[edge.target].readable.append(completion)

    def live_attempts(self) -> Iterator[Attempt]:
        for vertex in self.vertices:
            yield from vertex.running.values()
