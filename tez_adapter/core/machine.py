"""The job's state machine: events in, decisions out.

`handle` is the only entry. It knows no clock, no socket and no file: times come with each event (seconds on any
steady clock), and what it returns is for the application master to carry out in order. What the job still
wants from the ResourceManager is not a decision but a view, `asks()`: absolute counts, as the allocate
protocol wants them.

Containers outlive attempts: a task process asks for its next task when one is done, and a container that came
for a map may go on with a reduce. So a container matches any vertex whose resource fits in it, earlier vertices
first, and what the ResourceManager hands out beyond the need is released.
"""

from collections.abc import Callable

from tez_adapter.core import events as ev
from tez_adapter.core.dag import AttemptId, DagSpec
from tez_adapter.core.job import JobRecords
from tez_adapter.core.moves import Moves
from tez_adapter.core.nodes import HostFailures, UnusableNodes
from tez_adapter.core.notices import Notices
from tez_adapter.core.records import Attempt, Completion, Container, Task, Vertex, may_run
from tez_adapter.core.states import (
    AttemptEvent,
    AttemptState,
    ContainerEvent,
    ContainerState,
    JobState,
    TaskEvent,
    TaskState,
)
from tez_adapter.core.watch import Watch
from tez_adapter.core.wording import exit_text, verdict
from yaqd.model import ExitStatus, Resource

#: ends that were not the task's fault, as MapReduce reads them
_NOT_AT_FAULT = frozenset(
    {
        ExitStatus.ABORTED,
        ExitStatus.PREEMPTED,
        ExitStatus.KILLED_BY_RESOURCEMANAGER,
        ExitStatus.KILLED_BY_CONTAINER_SCHEDULER,
    }
)


class JobMachine(JobRecords):
    def __init__(self, spec: DagSpec) -> None:
        super().__init__(spec)
        self._moves = Moves(self.vertices)
        self._hosts = HostFailures(spec.limits)
        self._unusable = UnusableNodes(spec.limits)
        #: for the user
        self.notices = Notices(spec.limits)
        self._headroom: Resource | None = None
        self._watch = Watch(spec, self.vertices)
        self._by_priority = {v.spec.priority: v for v in self.vertices}
        self._idle: dict[str, None] = {}
        self._out: list[ev.Decision] = []
        self._now = 0.0
        self._handlers: dict[type, Callable[..., None]] = {
            ev.ContainerAllocated: self._on_allocated,
            ev.ContainerCompleted: self._on_completed,
            ev.LaunchFailed: self._on_launch_failed,
            ev.ContainerWaits: self._on_waits,
            ev.TaskRequested: self._on_task_requested,
            ev.AttemptReported: self._on_reported,
            ev.AttemptSucceeded: self._on_succeeded,
            ev.AttemptFailed: self._on_failed,
            ev.CommitRequested: self._on_commit,
            ev.FetchFailed: self._on_fetch_failed,
            ev.NodeLost: self._on_node_lost,
            ev.ClusterSeen: self._on_cluster,
            ev.KillRequested: self._on_kill,
            ev.AbortRequested: self._on_abort,
            ev.Tick: self._on_tick,
        }
        self._open_ready()

    # ---- the entry

    def handle(self, event: ev.Event, now: float) -> list[ev.Decision]:
        self._now = now
        self._out = []
        if self.state is JobState.RUNNING:
            self._handlers[type(event)](event)
            if self._idle and self.state is JobState.RUNNING:
                self._feed_idle()
            self._finish_if_complete()
        else:
            self._after_the_end(event)
        return self._out

    @property
    def anomalies(self) -> list[str]:
        """Illegal pairs of state and event, for the log; drained by the owner."""
        return self._moves.anomalies

    # ---- containers

    def _on_allocated(self, event: ev.ContainerAllocated) -> None:
        first = self._by_priority.get(event.priority)
        if event.container in self.containers or self._hosts.is_avoided(event.host) or first is None:
            self._out.append(ev.Release(event.container))
            return
        if self._unusable.park(event.container, event.node):
            return
        spare = first.spec.opportunistic > 0
        vertex = self._demand.vertex_for(event.resource, lambda v: may_run(v.spec, spare=spare))
        if vertex is None:
            self._out.append(ev.Release(event.container))
            return
        container = Container(
            event.container, event.node, event.host, event.resource, vertex.spec.reusable, self._now, spare=spare
        )
        self.containers[container.id] = container
        attempt = self._assign(vertex, container)
        self._out.append(ev.Launch(container.id, container.node, attempt.id))

    def _assign(self, vertex: Vertex, container: Container) -> Attempt:
        index = vertex.pending.take(container.host, vertex.failed_on)
        assert index is not None
        task = vertex.tasks[index]
        self._moves.task(task, TaskEvent.ASSIGNED)
        attempt_id = AttemptId(vertex.index, index, len(task.attempts))
        attempt = Attempt(attempt_id, container.id, container.node, container.host, self._now, self._now)
        task.attempts.append(attempt)
        vertex.running[attempt_id] = attempt
        container.attempt = attempt
        return attempt

    def _on_task_requested(self, event: ev.TaskRequested) -> None:
        container = self.containers.get(event.container)
        if container is None or container.state is ContainerState.STOPPING:
            self._out.append(ev.GiveExit(event.container))
            return
        if container.state is ContainerState.STARTING:
            self._moves.container(container, ContainerEvent.HEARD)
            self._unusable.started(container.node)
            self.notices.started(container.node)
        attempt = container.attempt
        if attempt is not None:
            self.vertices[attempt.id.vertex].tasks[attempt.id.task].disk_failures = 0
            if attempt.state is AttemptState.ASSIGNED:
                self._moves.attempt(attempt, AttemptEvent.FETCHED)
                attempt.began = attempt.moved = attempt.heard = self._now
            self._out.append(ev.GiveTask(container.id, attempt.id))
            return
        if container.state is ContainerState.BUSY:
            self._rest(container)

    def _rest(self, container: Container) -> None:
        self._moves.container(container, ContainerEvent.ATTEMPT_ENDED)
        container.idle_since = self._now
        self._idle[container.id] = None

    def _feed_idle(self) -> None:
        for container_id in list(self._idle):
            container = self.containers[container_id]
            avoided = self._hosts.is_avoided(container.host) or self._is_due_back(container)
            vertex = None if avoided else self._demand.vertex_for(container.resource, container.may_go_on_with)
            if vertex is not None:
                del self._idle[container_id]
                attempt = self._assign(vertex, container)
                self._moves.container(container, ContainerEvent.TASK_GIVEN)
                self._moves.attempt(attempt, AttemptEvent.FETCHED)
                attempt.began = attempt.heard = self._now
                self._out.append(ev.GiveTask(container_id, attempt.id))
            elif avoided or not self._demand.is_in_sight(container):
                self._dismiss(container)

    def _is_due_back(self, container: Container) -> bool:
        """Held for long, in a cluster that is full: the ResourceManager shall say who gets its room next."""
        is_full = self._headroom is not None and not container.resource.fits_in(self._headroom)
        return is_full and self._now - container.held_since > self.spec.limits.reuse_max_s

    def _dismiss(self, container: Container) -> None:
        """Its process is told to end when it asks (or asks again)."""
        self._idle.pop(container.id, None)
        self._moves.container(container, ContainerEvent.STOP)
        self._out.append(ev.GiveExit(container.id))

    def _stop(self, container: Container, reason: str) -> None:
        if container.state is not ContainerState.STOPPING:
            self._idle.pop(container.id, None)
            self._moves.container(container, ContainerEvent.STOP)
            self._out.append(ev.Stop(container.id, container.node, reason))

    def _on_completed(self, event: ev.ContainerCompleted) -> None:
        container = self.containers.pop(event.container, None)
        if container is None:
            self._unusable.completed(event.container)
            return
        self._idle.pop(container.id, None)
        attempt = container.attempt
        if attempt is None:
            return
        attempt.exit_status = event.exit_status
        if event.exit_status >= 0:
            self._unusable.started(container.node)
        if event.exit_status == ExitStatus.DISKS_FAILED:
            self._on_disks_full(attempt, event.diagnostics)
        elif event.exit_status in _NOT_AT_FAULT:
            self._end_attempt(attempt, event.diagnostics, at_fault=False)
        elif event.exit_status == ExitStatus.SUCCESS and not container.reusable:
            self._succeed(attempt)
        else:
            self._end_attempt(attempt, exit_text(container, event), at_fault=True)

    def _on_disks_full(self, attempt: Attempt, diagnostics: str) -> None:
        """The node's fault, not the task's; but where no node has room, waiting longer helps nobody."""
        vertex = self.vertices[attempt.id.vertex]
        task = vertex.tasks[attempt.id.task]
        self._unusable.disk_full(attempt.node, self._now)
        vertex.failed_on.setdefault(task.id.task, set()).add(attempt.host)
        task.disk_failures += 1
        is_hopeless = task.disk_failures >= self.spec.limits.disk_failures
        is_hopeless = is_hopeless and self._unusable.all_full(self._hosts.nodes)
        error = diagnostics.strip() or f"the disks of node {attempt.node} are full or broken"
        self.notices.disk_full(attempt.node, error)
        self._end_attempt(attempt, error, at_fault=False, fatal=is_hopeless)

    def _on_launch_failed(self, event: ev.LaunchFailed) -> None:
        container = self.containers.pop(event.container, None)
        if container is None:
            return
        self._idle.pop(container.id, None)
        self._out.append(ev.Release(container.id))
        if container.attempt is not None:
            error = f"node {container.node} did not start container {container.id}: {event.reason}"
            self._end_attempt(container.attempt, error, at_fault=event.refused)
        if not event.refused:
            self._unusable.silent(container.node, self._now)
            self.notices.unreachable(container.node, event.reason)

    def _on_waits(self, event: ev.ContainerWaits) -> None:
        container = self.containers.get(event.container)
        if container is not None and container.state is ContainerState.STARTING and container.attempt is not None:
            container.attempt.moved = self._now

    # ---- attempts

    def _on_reported(self, event: ev.AttemptReported) -> None:
        attempt = self.attempt(event.attempt)
        if attempt is not None and attempt.live:
            attempt.heard = self._now
            attempt.progress = min(1.0, max(0.0, event.progress))
            if event.moved:
                attempt.moved = self._now

    def _on_commit(self, event: ev.CommitRequested) -> None:
        attempt = self.attempt(event.attempt)
        granted = attempt is not None and attempt.live and self._moves.attempt(attempt, AttemptEvent.COMMIT)
        self._out.append(ev.AnswerCommit(event.attempt, granted))

    def _on_succeeded(self, event: ev.AttemptSucceeded) -> None:
        attempt = self.attempt(event.attempt)
        if attempt is None or not attempt.live:
            self._moves.illegal(event, "attempt", attempt.state if attempt else "unknown")
            return
        self._succeed(attempt)

    def _succeed(self, attempt: Attempt) -> None:
        vertex, task = self._close_attempt(attempt, AttemptEvent.DONE)
        attempt.progress = 1.0
        if not self._moves.task(task, TaskEvent.DONE):
            return
        task.fetch_failures = 0
        vertex.done += 1
        vertex.completions.append(Completion(attempt.id, attempt.node, attempt.host, True))
        self._open_ready()

    def _on_failed(self, event: ev.AttemptFailed) -> None:
        attempt = self.attempt(event.attempt)
        if attempt is None or not attempt.live:
            self._moves.illegal(event, "attempt", attempt.state if attempt else "unknown")
            return
        self._end_attempt(attempt, event.error, at_fault=True, fatal=event.fatal)
        if not event.process_lives:
            self._stop_process(attempt, "its process reported that it cannot go on")

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
            self._moves.task(task, TaskEvent.GIVE_UP)
            self._finish(JobState.FAILED, f"{verdict(vertex, task, attempt)}: {attempt.error}")
        elif self._moves.task(task, event):
            vertex.pending.add(task.id.task)

    def _close_attempt(self, attempt: Attempt, event: AttemptEvent) -> tuple[Vertex, Task]:
        vertex = self.vertices[attempt.id.vertex]
        self._moves.attempt(attempt, event)
        attempt.finished = self._now
        vertex.running.pop(attempt.id, None)
        container = self.containers.get(attempt.container)
        if container is not None and container.attempt is attempt:
            container.attempt = None
            if container.state is ContainerState.BUSY:
                self._rest(container)
        return vertex, vertex.tasks[attempt.id.task]

    # ---- lost outputs, lost nodes

    def _on_fetch_failed(self, event: ev.FetchFailed) -> None:
        reporter = self.attempt(event.reporter)
        if reporter is None or not reporter.live:
            return
        readers = len(self.vertices[reporter.id.vertex].running)
        enough = max(1, min(self.spec.limits.fetch_failures, readers))
        for source in event.sources:
            attempt = self.attempt(source)
            if attempt is None or attempt.state is not AttemptState.SUCCEEDED:
                continue
            task = self.vertices[source.vertex].tasks[source.task]
            task.fetch_failures += 1
            if task.fetch_failures >= enough and self.state is JobState.RUNNING:
                attempt.error = f"its output on {attempt.node} could not be fetched ({task.fetch_failures} reports)"
                task.failures += 1
                self._lose_output(attempt, AttemptEvent.FAIL)

    def _lose_output(self, attempt: Attempt, event: AttemptEvent) -> None:
        vertex = self.vertices[attempt.id.vertex]
        task = vertex.tasks[attempt.id.task]
        if task.state is not TaskState.SUCCEEDED or not self._moves.attempt(attempt, event):
            return
        vertex.done -= 1
        task.fetch_failures = 0
        vertex.completions.append(Completion(attempt.id, attempt.node, attempt.host, False))
        if event is AttemptEvent.FAIL:
            vertex.failed_on.setdefault(task.id.task, set()).add(attempt.host)
        self._retry(vertex, task, attempt, TaskEvent.OUTPUT_LOST)

    def _on_node_lost(self, event: ev.NodeLost) -> None:
        self._unusable.lost(event.node)
        running = outputs = 0
        for container in [c for c in self.containers.values() if c.node == event.node]:
            del self.containers[container.id]
            self._idle.pop(container.id, None)
            if container.attempt is not None:
                running += 1
                self._end_attempt(container.attempt, f"node {event.node} was lost", at_fault=False)
        for vertex in self.vertices:
            if all(target.complete for target in self._watch.targets(vertex)):
                continue
            for task in vertex.tasks:
                last = task.last
                if last is not None and task.state is TaskState.SUCCEEDED and last.node == event.node:
                    outputs += 1
                    last.error = f"node {event.node} was lost with its output"
                    self._lose_output(last, AttemptEvent.KILL)
        self.notices.lost(event.node, running, outputs)

    def _on_cluster(self, event: ev.ClusterSeen) -> None:
        self._headroom = event.headroom
        change = self._hosts.cluster_size(event.nodes)
        if change is not None:
            self._out.append(change)

    # ---- time

    def _on_tick(self, _: ev.Tick) -> None:
        self.notices.watch(self.live_attempts(), self._now)
        for attempt in list(self.live_attempts()):
            container = self.containers.get(attempt.container)
            if container is not None and self._watch.may_wait(attempt, container, self._now):
                container.asked_at = self._now
                self._out.append(ev.AskNode(container.id, container.node))
            hanging, silent = self._watch.hanging(attempt, self._now), self._watch.silent(attempt, self._now)
            if not (hanging or silent) or self.state is not JobState.RUNNING:
                continue
            if silent:
                self._unusable.silent(attempt.node, self._now)
            self._stop_process(attempt, "its task hangs")
            self._end_attempt(attempt, hanging or silent, at_fault=True)
        for container_id in list(self._idle):
            container = self.containers[container_id]
            if self._now - container.idle_since > self.spec.limits.idle_release_s:
                self._dismiss(container)
        for container_id in self._unusable.recovered(self._now):
            self._out.append(ev.Release(container_id))
        for vertex in self.vertices:
            victim = self._watch.victim(vertex, self._headroom, self._now)
            if victim is not None:
                self._stop_process(victim, f"{vertex.spec.name} tasks need its room")
                self._end_attempt(victim, f"made room for {vertex.spec.name} tasks", at_fault=False)

    def _stop_process(self, attempt: Attempt, reason: str) -> None:
        container = self.containers.get(attempt.container)
        if container is not None:
            self._stop(container, reason)

    # ---- the job

    def _open_ready(self) -> None:
        for vertex in self.vertices:
            if vertex.ready or not self._demand.is_ready(vertex):
                continue
            vertex.ready = True
            for task in vertex.tasks:
                if self._moves.task(task, TaskEvent.READY):
                    vertex.pending.add(task.id.task)

    def _finish_if_complete(self) -> None:
        if self.state is JobState.RUNNING and all(v.complete for v in self.vertices):
            self._finish(JobState.SUCCEEDED, "")

    def _on_kill(self, event: ev.KillRequested) -> None:
        self._finish(JobState.KILLED, event.reason)

    def _on_abort(self, event: ev.AbortRequested) -> None:
        self._finish(JobState.FAILED, event.reason)

    def _finish(self, state: JobState, diagnostics: str) -> None:
        if self.state is not JobState.RUNNING:
            return
        self.state = state
        for attempt in list(self.live_attempts()):
            self._moves.attempt(attempt, AttemptEvent.KILL)
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

    def _after_the_end(self, event: ev.Event) -> None:
        match event:
            case ev.ContainerAllocated():
                self._out.append(ev.Release(event.container))
            case ev.ContainerCompleted():
                self.containers.pop(event.container, None)
            case ev.TaskRequested():
                self._out.append(ev.GiveExit(event.container))
            case ev.CommitRequested():
                self._out.append(ev.AnswerCommit(event.attempt, False))
            case _:
                pass
