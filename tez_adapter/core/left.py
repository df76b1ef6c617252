"""What is left of the job, for those who decide whose turn it is: they see asks and containers, and no plan.

A stage that has not been asked for yet is part of the rest as much as the one that runs. How long tasks run is the mean
of those that ended well. Before one has, it is what the user says. Else it is open, for whoever knows earlier runs.
A task runs from when a container has it, also while that starts.
"""

from collections.abc import Sequence

from tez_adapter.core.dag import EdgeSpec
from tez_adapter.core.records import Vertex
from yaqd.policies.queueing.left import StageLeft


def stages_left(vertices: Sequence[Vertex], sources: Sequence[Sequence[EdgeSpec]], now: float) -> tuple[StageLeft, ...]:
    """Return what is left of each vertex that is not complete; `sources`: the edges into each."""
    return tuple(
        _stage(vertex, tuple(vertices[edge.source].spec.priority for edge in sources[vertex.index]), now)
        for vertex in vertices
        if not vertex.complete or vertex.spec.serves
    )


def _stage(vertex: Vertex, after: tuple[int, ...], now: float) -> StageLeft:
    tasks = max(0, min(vertex.limit, vertex.spec.tasks) - vertex.over)
    mean_s = vertex.runs.mean if vertex.runs.count else vertex.spec.task_s
    running = len({attempt.task for attempt in vertex.running})
    if mean_s is None:
        return StageLeft(vertex.spec.priority, tasks, after=after, running=running, name=vertex.spec.name)
    # Of a task with two attempts the further one counts; one that has outrun the mean is about to end.
    further: dict[int, float] = {}
    for attempt in vertex.running.values():
        left_s = mean_s - (now - attempt.began if attempt.began is not None else 0.0)
        left_s = min(mean_s, max(0.0, left_s))
        further[attempt.id.task] = min(left_s, further.get(attempt.id.task, mean_s))
    waiting = max(0, tasks - len(further))
    work_s = waiting * mean_s + sum(further.values())
    longest_s = mean_s if waiting else max(further.values(), default=0.0)
    return StageLeft(vertex.spec.priority, tasks, mean_s, work_s, longest_s, after, running, vertex.spec.name)
