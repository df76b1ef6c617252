"""How attempts, outputs and the job end, and what follows from it: another try, the next vertex, the verdict."""

import math

from tez_adapter.core import events as ev
from tez_adapter.core.containers import HeldContainers
from tez_adapter.core.events import Turn
from tez_adapter.core.job import JobRecords
from tez_adapter.core.nodes import HostFailures, UnusableNodes
from tez_adapter.core.records import Attempt, Task, Vertex
from tez_adapter.core.states import AttemptEvent, AttemptState, ContainerState, JobState, TaskEvent, TaskState
from tez_adapter.core.wording import verdict


class JobEndings:
    """Which event ended what is the machine's to know."""

    def __init__(
        self, job: JobRecords, held: HeldContainers, hosts: HostFailures, unusable: UnusableNodes, turn: Turn
    ) -> None:
        self._job = job
        self._held = held
        self._hosts = hosts
        self._unusable = unusable
        self._turn = turn
        #: nodes that were lost, and when
        self._lost: dict[str, float] = {}
        self._outputs_lost = 0

    def succeed(self, attempt: Attempt) -> None:
        vertex, task = self._close_attempt(attempt, AttemptEvent.DONE)
        attempt.progress = 1.0
        if not self._job.changes.task(task, TaskEvent.DONE):
            return
        task.fetch_failures = 0
        vertex.done += 1
        if attempt.began is not None:
            vertex.runs.add(self._turn.now - attempt.began)
        self._job.announce(attempt, available=True)
        self.open_ready()

    def end_attempt(self, attempt: Attempt, error: str, *, at_fault: bool, fatal: bool = False) -> None:
        """End a live attempt without success: its task tries again, or the job has failed."""
        event = AttemptEvent.FAIL if at_fault else AttemptEvent.KILL
        vertex, task = self._close_attempt(attempt, event)
        attempt.error = error
        if at_fault:
            if vertex.spec.serves and self._has_served_long(attempt):
                task.failures = 0
            task.failures += 1
            vertex.failed_on.setdefault(task.id.task, set()).add(attempt.host)
            self._host_failed(attempt.host)
        self._retry(vertex, task, attempt, TaskEvent.TRY_AGAIN, fatal=fatal)

    def _has_served_long(self, attempt: Attempt) -> bool:
        return attempt.began is not None and self._turn.now - attempt.began >= self._job.spec.limits.forgive_after_s

    def _host_failed(self, host: str) -> None:
        change = self._hosts.failed(host)
        if change is not None:
            self._turn.out.append(change)

    def _retry(self, vertex: Vertex, task: Task, attempt: Attempt, event: TaskEvent, *, fatal: bool = False) -> None:
        if fatal or task.failures >= vertex.spec.max_attempts:
            self._job.changes.task(task, TaskEvent.GIVE_UP)
            vertex.given_up += 1
            if vertex.given_up * 100 > vertex.spec.failures_max_percent * vertex.spec.tasks:
                self.finish(JobState.FAILED, f"{verdict(vertex, task, attempt)}: {attempt.error}")
            else:
                self.open_ready()
        elif self._job.changes.task(task, event):
            vertex.pending.add(task.id.task)

    def _close_attempt(self, attempt: Attempt, event: AttemptEvent) -> tuple[Vertex, Task]:
        vertex = self._job.vertices[attempt.id.vertex]
        self._job.changes.attempt(attempt, event)
        attempt.finished = self._turn.now
        vertex.running.pop(attempt.id, None)
        container = self._job.containers.get(attempt.container)
        if container is not None and container.attempt is attempt:
            container.attempt = None
            if container.state is ContainerState.BUSY:
                self._held.rest(container)
        return vertex, vertex.tasks[attempt.id.task]

    def lose_output(self, attempt: Attempt, event: AttemptEvent) -> None:
        vertex = self._job.vertices[attempt.id.vertex]
        task = vertex.tasks[attempt.id.task]
        if task.state is not TaskState.SUCCEEDED or not self._job.changes.attempt(attempt, event):
            return
        vertex.done -= 1
        task.fetch_failures = 0
        self._job.announce(attempt, available=False)
        if event is AttemptEvent.FAIL:
            vertex.failed_on.setdefault(task.id.task, set()).add(attempt.host)
        self._retry(vertex, task, attempt, TaskEvent.OUTPUT_LOST)
        # what nobody needed when its node was lost is needed now
        for edge in self._job.demand.sources[vertex.index]:
            self._lose_outputs(self._job.vertices[edge.source])

    def lose_node(self, node: str) -> int:
        """Run tasks again whose output was on a lost node and is needed; return how many.

        Deepest first: a task that is to run again needs what it reads.
        """
        self._lost[node] = self._turn.now
        before = self._outputs_lost
        for vertex in reversed(self._job.vertices):
            self._lose_outputs(vertex)
        return self._outputs_lost - before

    def _lose_outputs(self, vertex: Vertex) -> None:
        targets = [self._job.vertices[edge.target] for edge in self._job.spec.edges if edge.source == vertex.index]
        if vertex.spec.outputs_stay or all(target.complete for target in targets):
            return
        for task in vertex.tasks:
            last = task.last
            if last is None or last.finished is None or task.state is not TaskState.SUCCEEDED:
                continue
            if last.finished <= self._lost.get(last.node, -math.inf):
                self._outputs_lost += 1
                last.error = f"node {last.node} was lost with its output"
                self.lose_output(last, AttemptEvent.KILL)

    def excuse(self, node: str) -> None:
        """Excuse attempts that failed on a lost node for being out of reach: they were killed and count no more."""
        for vertex in self._job.vertices:
            for task in vertex.tasks:
                for attempt in task.attempts:
                    if attempt.out_of_reach and attempt.node == node and attempt.state is AttemptState.FAILED:
                        self._job.changes.attempt(attempt, AttemptEvent.EXCUSE)
                        attempt.error = f"node {node} was lost: {attempt.error}"
                        task.failures -= 1

    def open_ready(self) -> None:
        for vertex in self._job.vertices:
            if vertex.ready or not self._job.demand.is_ready(vertex):
                continue
            vertex.ready = True
            for task in vertex.tasks:
                if task.state is TaskState.WAITING and self._job.changes.task(task, TaskEvent.READY):
                    vertex.pending.add(task.id.task)

    def finish(self, state: JobState, diagnostics: str) -> None:
        if self._job.state is not JobState.RUNNING:
            return
        self._job.state = state
        for attempt in list(self._job.live_attempts()):
            self._job.changes.attempt(attempt, AttemptEvent.KILL)
            attempt.finished = self._turn.now
        for vertex in self._job.vertices:
            vertex.running.clear()
        for container in list(self._job.containers.values()):
            container.attempt = None
            if container.state is ContainerState.IDLE:
                self._held.dismiss(container)
            else:
                self._held.stop(container, f"the job is over: {state}")
        self._turn.out += [ev.Release(container_id) for container_id in self._unusable.clear()]
        self._turn.out.append(ev.Finish(state, diagnostics))
