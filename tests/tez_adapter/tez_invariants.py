"""What holds of a job machine after every event, whatever came before."""

from tez_adapter.core.machine import JobMachine
from tez_adapter.core.states import AttemptState, ContainerState, JobState, TaskState


def validate(machine: JobMachine) -> None:
    for vertex in machine.vertices:
        states = [t.state for t in vertex.tasks]
        assert vertex.done == states.count(TaskState.SUCCEEDED)
        if machine.state is not JobState.RUNNING:
            continue
        for task in vertex.tasks:
            assert (task.id.task in vertex.pending) == (task.state is TaskState.PENDING)
            live = [a for a in task.attempts if a.live]
            assert len(live) == (1 if task.state is TaskState.RUNNING else 0), (
                "at most one attempt, and only of a running task"
            )
            assert task.failures <= vertex.spec.max_attempts
            assert task.failures == 0 or any(a.state is AttemptState.FAILED for a in task.attempts)
            if task.state is TaskState.SUCCEEDED:
                assert task.last is not None and task.last.state is AttemptState.SUCCEEDED
        announced = {}
        for entry in vertex.completions:
            announced[entry.attempt.task] = entry.attempt if entry.available else None
        assert {i for i, a in announced.items() if a} == {
            t.id.task for t in vertex.tasks if t.state is TaskState.SUCCEEDED
        }
    for container in machine.containers.values():
        if container.attempt is not None:
            assert container.attempt.live and container.attempt.container == container.id
        assert container.meant_for is None or container.state in (ContainerState.IDLE, ContainerState.STOPPING)
        assert (container.id in machine.held._idle) == (container.state is ContainerState.IDLE)
    for ask in machine.asks():
        assert ask.count > 0
