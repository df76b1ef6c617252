"""The job's state machine: events in, decisions out.

`handle` is the only entry. It knows no clock, no socket and no file: times come with each event (seconds on any
steady clock), and what it returns is for the application master to carry out in order. What the job still
wants from the ResourceManager is not a decision but a view, `asks()`: absolute counts, as the allocate
protocol wants them.

What the ResourceManager hands out beyond the need is released; what is wanted and of no use is so a bounded number of
times, since it is asked for again. What is done with the containers held is in
`containers`, what follows from an end in `endings`; here is which event asks for which.
"""

from collections.abc import Callable

from tez_adapter.core import events as ev
from tez_adapter.core.dag import DagSpec
from tez_adapter.core.endings import JobEndings
from tez_adapter.core.notices import Notices
from tez_adapter.core.records import Attempt, Container, Vertex, may_run
from tez_adapter.core.states import (
    EXIT_NO_ROOM,
    AttemptEvent,
    AttemptState,
    ContainerEvent,
    ContainerState,
    JobState,
    TaskState,
)
from tez_adapter.core.watch import Watch
from tez_adapter.core.wording import exit_text, given_up_text, too_small_text
from yaqd.model import ExitStatus

_NO_ROOM = (
    "it has no room for the folder of a task: No space left on device; free space there or name other folders in "
    "yarn.nodemanager.local-dirs and log-dirs"
)
#: ends that were not the task's fault, as MapReduce reads them
_NOT_AT_FAULT = frozenset(
    {
        ExitStatus.ABORTED,
        ExitStatus.PREEMPTED,
        ExitStatus.KILLED_BY_RESOURCEMANAGER,
        ExitStatus.KILLED_BY_CONTAINER_SCHEDULER,
    }
)


class JobMachine(JobEndings):
    def __init__(self, spec: DagSpec) -> None:
        super().__init__(spec)
        #: for the user
        self.notices = Notices(spec.limits)
        self._watch = Watch(spec, self.vertices, self._counted, self.containers)
        self._by_priority = {v.spec.priority: v for v in self.vertices}
        #: containers in a row, by priority, that were smaller than asked for
        self._too_small: dict[int, int] = {}
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
            ev.FetchReported: self._on_fetch_failed,
            ev.NodeLost: self._on_node_lost,
            ev.ClusterSeen: self._on_cluster,
            ev.ResourcesCounted: self._on_counted,
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
        return self._changes.anomalies

    # ---- containers

    def _on_allocated(self, event: ev.ContainerAllocated) -> None:
        first = self._by_priority.get(event.priority)
        if event.container in self.containers or first is None or self._keeps_off(first, event.host):
            self._out.append(ev.Release(event.container))
            return
        if self._unusable.park(event.container, event.node):
            return
        spare = first.spec.opportunistic > 0
        vertex = self._demand.vertex_for(event.resource, lambda v: may_run(v.spec, spare=spare))
        if vertex is None:
            self._out.append(ev.Release(event.container))
            self._note_too_small(first, event)
            return
        self._too_small.pop(event.priority, None)
        self._hosts.came_elsewhere()
        container = Container(
            event.container, event.node, event.host, event.resource, vertex.spec.reusable, self._now, spare=spare
        )
        self.containers[container.id] = container
        attempt = self._assign(vertex, container)
        self._unheard[container.id] = None
        self._out.append(ev.Launch(container.id, container.node, attempt.id))

    def _keeps_off(self, vertex: Vertex, host: str) -> bool:
        """Whether a container that came on this host is one to give back: the job avoids it, and may go on so."""
        if not self._hosts.is_avoided(host):
            return False
        change = self._hosts.came_anyway(host) if self._demand.is_wanted(vertex) else None
        if change is None:
            return True
        self._out.append(change)
        self.notices.not_avoided(host, self.spec.limits.avoided_max)
        return False

    def _note_too_small(self, vertex: Vertex, event: ev.ContainerAllocated) -> None:
        """Unless it was only one too many: asked for again, another one like it would come, and so on for ever."""
        if not self._demand.is_wanted(vertex):
            return
        count = self._too_small[event.priority] = self._too_small.get(event.priority, 0) + 1
        if count >= self.spec.limits.too_small_max:
            self._finish(JobState.FAILED, too_small_text(vertex.spec, event.resource, count))

    def _on_task_requested(self, event: ev.TaskRequested) -> None:
        container = self.containers.get(event.container)
        if container is None or container.state is ContainerState.STOPPING:
            self._out.append(ev.GiveExit(event.container))
            return
        if container.state is ContainerState.STARTING:
            self._unheard.pop(container.id, None)
            self._changes.container(container, ContainerEvent.HEARD)
            self._unusable.started(container.node)
            self.notices.started(container.node)
        attempt = container.attempt
        if attempt is not None:
            task = self.vertices[attempt.id.vertex].tasks[attempt.id.task]
            task.refusals = 0
            if attempt.state is AttemptState.ASSIGNED:
                container.disk_failures_before, task.disk_failures = task.disk_failures, 0
                self._changes.attempt(attempt, AttemptEvent.FETCHED)
                attempt.began = attempt.moved = attempt.heard = self._now
            container.had_task = True
            self._out.append(ev.GiveTask(container.id, attempt.id))
            return
        if container.state is ContainerState.BUSY:
            self._rest(container)

    def _on_completed(self, event: ev.ContainerCompleted) -> None:
        container = self.containers.pop(event.container, None)
        if container is None:
            self._unusable.completed(event.container)
            return
        self._idle.pop(container.id, None)
        attempt = container.attempt
        if attempt is None:
            return
        has_no_room = container.had_task and event.exit_status == EXIT_NO_ROOM
        attempt.exit_status = ExitStatus.DISKS_FAILED if has_no_room else event.exit_status
        if attempt.began is None and event.ran_s is not None and event.ran_s > 0:
            # a task that speaks to nobody: what its container waited at its node is not its own time
            attempt.began = max(attempt.started, self._now - event.ran_s)
        if event.exit_status >= 0 and not has_no_room:
            self._unusable.started(container.node)
        if has_no_room:  # that it asked for its task has not shown that there is room
            self.vertices[attempt.id.vertex].tasks[attempt.id.task].disk_failures += container.disk_failures_before
        if attempt.exit_status == ExitStatus.DISKS_FAILED:
            self._on_disks_full(attempt, _NO_ROOM if has_no_room else event.diagnostics)
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
            at_fault = event.refused and not (event.not_now and self._is_excused(container.attempt))
            self._end_attempt(container.attempt, error, at_fault=at_fault)
        if not event.refused:
            self._unusable.silent(container.node, self._now)
            self.notices.unreachable(container.node, event.reason)

    def _is_excused(self, attempt: Attempt) -> bool:
        """Its node takes nothing at present: not the task's fault, unless it goes on for too long."""
        self._unusable.busy(attempt.node, self._now)
        task = self.vertices[attempt.id.vertex].tasks[attempt.id.task]
        task.refusals += 1
        return task.refusals <= self.spec.limits.refusals

    def _on_waits(self, event: ev.ContainerWaits) -> None:
        container = self.containers.get(event.container)
        if container is not None and container.state is ContainerState.STARTING and container.attempt is not None:
            container.attempt.moved = container.waited_at = self._now

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
        granted = attempt is not None and attempt.live and self._changes.attempt(attempt, AttemptEvent.COMMIT)
        self._out.append(ev.AnswerCommit(event.attempt, granted))

    def _on_succeeded(self, event: ev.AttemptSucceeded) -> None:
        attempt = self.attempt(event.attempt)
        if attempt is None or not attempt.live:
            self._changes.illegal(event, "attempt", attempt.state if attempt else "unknown")
            return
        self._succeed(attempt)

    def _on_failed(self, event: ev.AttemptFailed) -> None:
        attempt = self.attempt(event.attempt)
        if attempt is None or not attempt.live:
            self._changes.illegal(event, "attempt", attempt.state if attempt else "unknown")
            return
        self._end_attempt(attempt, event.error, at_fault=True, fatal=event.fatal)
        # its process could go on; but idle it would take the same task again, where another node may fare better
        self._stop_process(attempt, "its task failed")

    # ---- lost outputs, lost nodes

    def _on_fetch_failed(self, event: ev.FetchReported) -> None:
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
                attempt.out_of_reach = True
                self._lose_output(attempt, AttemptEvent.FAIL)

    def _on_node_lost(self, event: ev.NodeLost) -> None:
        self._unusable.lost(event.node)
        self._excuse(event.node)
        running = outputs = 0
        for container in [c for c in self.containers.values() if c.node == event.node]:
            del self.containers[container.id]
            self._idle.pop(container.id, None)
            if container.attempt is not None:
                running += 1
                self._end_attempt(container.attempt, f"node {event.node} was lost", at_fault=False)
        for vertex in self.vertices:
            if vertex.spec.outputs_stay or all(target.complete for target in self._watch.targets(vertex)):
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

    def _on_counted(self, event: ev.ResourcesCounted) -> None:
        self._counted.cores = event.cores
        self._too_small.clear()

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
                attempt.out_of_reach = True
            self._stop_process(attempt, "its task hangs")
            self._end_attempt(attempt, hanging or silent, at_fault=True)
        for container_id in list(self._idle):
            container = self.containers[container_id]
            if self._now - container.idle_since > self.spec.limits.idle_release_s:
                self._dismiss(container)
        for container_id in self._unusable.recovered(self._now):
            self._out.append(ev.Release(container_id))
        for vertex in self.vertices:
            for container in self._watch.unheard(vertex, self._headroom, self._now):
                container.asked_at = self._now
                self._out.append(ev.AskNode(container.id, container.node))
            victim = self._watch.victim(vertex, self._headroom, self._now)
            if victim is not None:
                self._stop_process(victim, f"{vertex.spec.name} tasks need its room")
                self._end_attempt(victim, f"made room for {vertex.spec.name} tasks", at_fault=False)

    # ---- the job

    def _finish_if_complete(self) -> None:
        if self.state is JobState.RUNNING and all(v.complete for v in self.vertices):
            self._finish(JobState.SUCCEEDED, given_up_text(self.vertices))

    def _on_kill(self, event: ev.KillRequested) -> None:
        self._finish(JobState.KILLED, event.reason)

    def _on_abort(self, event: ev.AbortRequested) -> None:
        self._finish(JobState.FAILED, event.reason)

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
