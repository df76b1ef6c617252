"""How attempts, outputs and the job end, and what follows from it: another try, the next vertex, the verdict."""

from tez_adapter.core import events as ev
from tez_adapter.core.containers import JobContainers
from tez_adapter.core.dag import DagSpec
from tez_adapter.core.nodes import UnusableNodes
from tez_adapter.core.records import Attempt, Completion, Task, Vertex
from tez_adapter.core.states import AttemptEvent, AttemptState, ContainerState, JobState, TaskEvent, TaskState
from tez_adapter.core.wording import verdict


class JobEndings(JobContainers):
    """Which event ended what is the machine's to know."""

    def __init__(self, spec: DagSpec) -> None:
        super().__init__(spec)
        self._unusable = UnusableNodes(spec.limits)

    def _succeed(self, attempt: Attempt) -> None:
        vertex, task = self._close_attempt(attempt, AttemptEvent.DONE)
        attempt.progress = 1.0
        if not self._changes.task(task, TaskEvent.DONE):
            return
        task.fetch_failures = 0
        vertex.done += 1
        if attempt.began is not None:
            vertex.runs.add(self._now - attempt.began)
        vertex.completions.append(Completion(attempt.id, attempt.node, attempt.host, True))
        self._open_ready()

    def _end_attempt(self, attempt: Attempt, error: str, *, at_fault: bool, fatal: bool = False) -> None:
        """A live attempt ends without success: its task tries again, or the job has failed."""
        event = AttemptEvent.FAIL if at_fault else AttemptEvent.KILL
        vertex, task = self._close_attempt(attempt, event)
        attempt.error = error
        if at_fault:
            task.failures += 1
            vertex.failed_on.setdefault(task.id.task, set()).add(attempt.host)
            self._host_failed(attempt.host)
        self._retry(vertex, task, attempt, TaskEvent.TRY_AGAIN, fatal=fatal)

    def _host_failed(self, host: str) -> None:
        change = self._hosts.failed(host)
        if change is not None:
            self._out.append(change)

    def _retry(self, vertex: Vertex, task: Task, attempt: Attempt, event: TaskEvent, *, fatal: bool = False) -> None:
        if fatal or task.failures >= vertex.spec.max_attempts:
            self._changes.task(task, TaskEvent.GIVE_UP)
            vertex.given_up += 1
            if vertex.given_up * 100 > vertex.spec.failures_max_percent * vertex.spec.tasks:
                self._finish(JobState.FAILED, f"{verdict(vertex, task, attempt)}: {attempt.error}")
            else:
                self._open_ready()
        elif self._changes.task(task, event):
            vertex.pending.add(task.id.task)

    def _close_attempt(self, attempt: Attempt, event: AttemptEvent) -> tuple[Vertex, Task]:
        vertex = self.vertices[attempt.id.vertex]
        self._changes.attempt(attempt, event)
        attempt.finished = self._now
        vertex.running.pop(attempt.id, None)
        container = self.containers.get(attempt.container)
        if container is not None and container.attempt is attempt:
            container.attempt = None
            if container.state is ContainerState.BUSY:
                self._rest(container)
        return vertex, vertex.tasks[attempt.id.task]

    def _lose_output(self, attempt: Attempt, event: AttemptEvent) -> None:
        vertex = self.vertices[attempt.id.vertex]
        task = vertex.tasks[attempt.id.task]
        if task.state is not TaskState.SUCCEEDED or not self._changes.attempt(attempt, event):
            return
        vertex.done -= 1
        task.fetch_failures = 0
        vertex.completions.append(Completion(attempt.id, attempt.node, attempt.host, False))
        if event is AttemptEvent.FAIL:
            vertex.failed_on.setdefault(task.id.task, set()).add(attempt.host)
        self._retry(vertex, task, attempt, TaskEvent.OUTPUT_LOST)

    def _excuse(self, node: str) -> None:
        """The node is lost: whoever failed there for being out of reach was killed with it, and counts no more."""
        for vertex in self.vertices:
            for task in vertex.tasks:
                for attempt in task.attempts:
                    if attempt.out_of_reach and attempt.node == node and attempt.state is AttemptState.FAILED:
                        self._changes.attempt(attempt, AttemptEvent.EXCUSE)
                        attempt.error = f"node {node} was lost: {attempt.error}"
                        task.failures -= 1

    def _open_ready(self) -> None:
        for vertex in self.vertices:
            if vertex.ready or not self._demand.is_ready(vertex):
                continue
            vertex.ready = True
            for task in vertex.tasks:
                if self._changes.task(task, TaskEvent.READY):
                    vertex.pending.add(task.id.task)

    def _finish(self, state: JobState, diagnostics: str) -> None:
        if self.state is not JobState.RUNNING:
            return
        self.state = state
        for attempt in list(self.live_attempts()):
            self._changes.attempt(attempt, AttemptEvent.KILL)
            attempt.finished = self._now
        for vertex in self.vertices:
            vertex.running.clear()
        for container in list(self.containers.values()):
            container.attempt = None
            if container.state is ContainerState.IDLE:
                self._dismiss(container)
            else:
                self._stop(container, f"the job is over: {state}")
        self._out += [ev.Release(container_id) for container_id in self._unusable.clear()]
        self._out.append(ev.Finish(state, diagnostics))
