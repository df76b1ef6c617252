"""The job's state machine: events in, decisions out.

`handle` is the only entry. It knows no clock, no socket and no file: times come with each event (seconds on any
steady clock), and what it returns is for the application master to carry out in order. What the job still
wants from the ResourceManager is not a decision but a view, `asks()`: absolute counts, as the allocate
protocol wants them.

What the ResourceManager hands out beyond the need is released; what is wanted and of no use is so a bounded number of
times, since it is asked for again. `containers` says what is done with those held, `retry_or_fail` what follows from an
end. Here is which event asks for which.
"""

from collections.abc import Callable, Sequence

from tez_adapter.core import events as ev
from tez_adapter.core.containers import HeldContainers
from tez_adapter.core.dag import DagSpec
from tez_adapter.core.events import Turn
from tez_adapter.core.job import JobRecords
from tez_adapter.core.nodes import HostFailures, UnusableNodes
from tez_adapter.core.notices import Notices
from tez_adapter.core.records import Attempt, Container, Vertex, may_run
from tez_adapter.core.restored import DoneAttempt, restore
from tez_adapter.core.retry_or_fail import JobEndings
from tez_adapter.core.states import (
    EXIT_NO_ROOM,
    AttemptEvent,
    AttemptState,
    ContainerState,
    JobState,
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


class JobMachine:
    def __init__(self, spec: DagSpec, *, restored: Sequence[DoneAttempt] = (), first_number: int = 0) -> None:
        """`restored`: finished by former job managers; `first_number`: of own attempts. Raises ValueError."""
        self.spec = spec
        self._turn = Turn()
        self._job = job = JobRecords(spec, first_number)
        self.vertices, self.containers = job.vertices, job.containers
        # what can be read off the records
        self.asks, self.wanted, self.left, self.progress = job.asks, job.wanted, job.left, job.progress
        self.attempt, self.live_attempts = job.attempt, job.live_attempts
        self.inputs, self.given_up_for, self.outputs_for = job.inputs, job.given_up_for, job.outputs_for
        self._hosts = HostFailures(spec.limits)
        self._unusable = UnusableNodes(spec.limits)
        self.held = HeldContainers(job, self._hosts, self._turn)
        self._endings = JobEndings(job, self.held, self._hosts, self._unusable, self._turn)
        #: for the user
        self.notices = Notices(spec.limits)
        self._watch = Watch(spec, job.vertices, job.counted, job.containers)
        self._by_priority = {v.spec.priority: v for v in job.vertices}
        #: tasks that serve nobody end a job by themselves; one that only serves ends by `JobCompleted`
        self._may_complete = not all(v.serves for v in spec.vertices)
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
            ev.AttemptReturned: self._on_returned,
            ev.VertexLimited: self._on_limited,
            ev.CommitRequested: self._on_commit,
            ev.FetchReported: self._on_fetch_failed,
            ev.NodeLost: self._on_node_lost,
            ev.ClusterSeen: self._on_cluster,
            ev.ResourcesCounted: self._on_counted,
            ev.StagesOrdered: self._on_ordered,
            ev.KillRequested: self._on_kill,
            ev.AbortRequested: self._on_abort,
            ev.JobCompleted: self._on_job_completed,
            ev.ProgressTold: self._on_progress,
            ev.Tick: self._on_tick,
        }
        restore(job, restored)
        self._endings.open_ready()

    # ---- the entry

    def handle(self, event: ev.Event, now: float) -> list[ev.Decision]:
        self._turn.begin(now)
        if self.state is JobState.RUNNING:
            self._handlers[type(event)](event)
            if self.state is JobState.RUNNING:
                self.held.feed_idle()
            self._finish_if_complete()
        else:
            self._after_the_end(event)
        return self._turn.out

    @property
    def state(self) -> JobState:
        return self._job.state

    @property
    def anomalies(self) -> list[str]:
        """Illegal pairs of state and event, for the log; drained by the owner."""
        return self._job.changes.anomalies

    # ---- containers

    def _on_allocated(self, event: ev.ContainerAllocated) -> None:
        first = self._by_priority.get(event.priority)
        if event.container in self.containers or first is None or self._keeps_off(first, event.host):
            self._turn.out.append(ev.Release(event.container))
            return
        if self._unusable.park(event.container, event.node):
            return
        spare = first.spec.opportunistic > 0
        among = self.held.orders.for_new(first)
        vertex = self._job.demand.vertex_for(event.resource, lambda v: may_run(v.spec, spare=spare), among)
        if vertex is None:
            self._turn.out.append(ev.Release(event.container))
            self._note_too_small(first, event)
            return
        self._too_small.pop(event.priority, None)
        self._hosts.came_elsewhere()
        container = Container(
            event.container, event.node, event.host, event.resource, vertex.spec.reusable, self._turn.now, spare=spare
        )
        self.held.launch(vertex, container)

    def _keeps_off(self, vertex: Vertex, host: str) -> bool:
        """Whether a container that came on this host is one to give back: the job avoids it, and may go on so."""
        if not self._hosts.is_avoided(host):
            return False
        change = self._hosts.came_anyway(host) if self._job.demand.is_wanted(vertex) else None
        if change is None:
            return True
        self._turn.out.append(change)
        self.notices.not_avoided(host, self.spec.limits.avoided_max)
        return False

    def _note_too_small(self, vertex: Vertex, event: ev.ContainerAllocated) -> None:
        """Unless it was only one too many: asked for again, another one like it would come, and so on for ever."""
        if not self._job.demand.is_wanted(vertex):
            return
        count = self._too_small[event.priority] = self._too_small.get(event.priority, 0) + 1
        if count >= self.spec.limits.too_small_max:
            self._endings.finish(JobState.FAILED, too_small_text(vertex.spec, event.resource, count))

    def _on_task_requested(self, event: ev.TaskRequested) -> None:
        container = self.containers.get(event.container)
        if container is None or container.state is ContainerState.STOPPING:
            self._turn.out.append(ev.GiveExit(event.container))
            return
        if container.state is ContainerState.STARTING:
            self.held.heard(container)
            self._unusable.started(container.node)
            self.notices.started(container.node)
        attempt = container.attempt
        if attempt is not None:
            task = self.vertices[attempt.id.vertex].tasks[attempt.id.task]
            task.refusals = 0
            if attempt.state is AttemptState.ASSIGNED:
                container.disk_failures_before, task.disk_failures = task.disk_failures, 0
                self._job.changes.attempt(attempt, AttemptEvent.FETCHED)
                attempt.began = attempt.moved = attempt.heard = self._turn.now
            container.had_task = True
            self._turn.out.append(ev.GiveTask(container.id, attempt.id))
            return
        if container.state is ContainerState.BUSY:
            self.held.rest(container)

    def _on_completed(self, event: ev.ContainerCompleted) -> None:
        container = self.held.forget(event.container)
        if container is None:
            self._unusable.completed(event.container)
            return
        attempt = container.attempt
        if attempt is None:
            return
        has_no_room = container.had_task and event.exit_status == EXIT_NO_ROOM
        attempt.exit_status = ExitStatus.DISKS_FAILED if has_no_room else event.exit_status
        if attempt.began is None and event.ran_s is not None and event.ran_s > 0:
            # a task that speaks to nobody: what its container waited at its node is not its own time
            attempt.began = max(attempt.started, self._turn.now - event.ran_s)
        if event.exit_status >= 0 and not has_no_room:
            self._unusable.started(container.node)
        if has_no_room:  # that it asked for its task has not shown that there is room
            self.vertices[attempt.id.vertex].tasks[attempt.id.task].disk_failures += container.disk_failures_before
        if attempt.exit_status == ExitStatus.DISKS_FAILED:
            self._on_disks_full(attempt, _NO_ROOM if has_no_room else event.diagnostics)
        elif event.exit_status in _NOT_AT_FAULT:
            self._endings.end_attempt(attempt, event.diagnostics, at_fault=False)
        elif event.exit_status == ExitStatus.SUCCESS and not container.reusable:
            self._endings.succeed(attempt)
        else:
            self._endings.end_attempt(attempt, exit_text(container, event), at_fault=True)

    def _on_disks_full(self, attempt: Attempt, diagnostics: str) -> None:
        """The node's fault, not the task's; but where no node has room, waiting longer helps nobody."""
        vertex = self.vertices[attempt.id.vertex]
        task = vertex.tasks[attempt.id.task]
        self._unusable.disk_full(attempt.node, self._turn.now)
        vertex.failed_on.setdefault(task.id.task, set()).add(attempt.host)
        task.disk_failures += 1
        is_hopeless = task.disk_failures >= self.spec.limits.disk_failures
        is_hopeless = is_hopeless and self._unusable.all_full(self._hosts.nodes)
        error = diagnostics.strip() or f"the disks of node {attempt.node} are full or broken"
        self.notices.disk_full(attempt.node, error)
        self._endings.end_attempt(attempt, error, at_fault=False, fatal=is_hopeless)

    def _on_launch_failed(self, event: ev.LaunchFailed) -> None:
        container = self.held.forget(event.container)
        if container is None:
            return
        self._turn.out.append(ev.Release(container.id))
        if container.attempt is not None:
            error = f"node {container.node} did not start container {container.id}: {event.reason}"
            at_fault = event.refused and not (event.not_now and self._is_excused(container.attempt))
            self._endings.end_attempt(container.attempt, error, at_fault=at_fault)
        if not event.refused:
            self._unusable.silent(container.node, self._turn.now)
            self.notices.unreachable(container.node, event.reason)

    def _is_excused(self, attempt: Attempt) -> bool:
        """Its node takes nothing at present: not the task's fault, unless it goes on for too long."""
        self._unusable.busy(attempt.node, self._turn.now)
        task = self.vertices[attempt.id.vertex].tasks[attempt.id.task]
        task.refusals += 1
        return task.refusals <= self.spec.limits.refusals

    def _on_waits(self, event: ev.ContainerWaits) -> None:
        container = self.containers.get(event.container)
        if container is not None and container.state is ContainerState.STARTING and container.attempt is not None:
            container.attempt.moved = container.waited_at = self._turn.now

    # ---- attempts

    def _on_reported(self, event: ev.AttemptReported) -> None:
        attempt = self.attempt(event.attempt)
        if attempt is not None and attempt.live:
            attempt.heard = self._turn.now
            attempt.progress = min(1.0, max(0.0, event.progress))
            if event.moved:
                attempt.moved = self._turn.now

    def _on_commit(self, event: ev.CommitRequested) -> None:
        attempt = self.attempt(event.attempt)
        granted = attempt is not None and attempt.live and self._job.changes.attempt(attempt, AttemptEvent.COMMIT)
        self._turn.out.append(ev.AnswerCommit(event.attempt, granted))

    def _on_succeeded(self, event: ev.AttemptSucceeded) -> None:
        attempt = self.attempt(event.attempt)
        if attempt is None or not attempt.live:
            self._job.changes.illegal(event, "attempt", attempt.state if attempt else "unknown")
            return
        self._endings.succeed(attempt)

    def _on_failed(self, event: ev.AttemptFailed) -> None:
        attempt = self.attempt(event.attempt)
        if attempt is None or not attempt.live:
            self._job.changes.illegal(event, "attempt", attempt.state if attempt else "unknown")
            return
        self._endings.end_attempt(attempt, event.error, at_fault=True, fatal=event.fatal)
        # its process could go on; but idle it would take the same task again, where another node may fare better
        self.held.stop_process(attempt, "its task failed")

    def _on_returned(self, event: ev.AttemptReturned) -> None:
        attempt = self.attempt(event.attempt)
        if attempt is None or not attempt.live:
            return
        container = self.containers.get(attempt.container)
        self._endings.end_attempt(attempt, "given back", at_fault=False)
        if container is not None and container.state is ContainerState.IDLE:
            self.held.dismiss(container)

    def _on_limited(self, event: ev.VertexLimited) -> None:
        self.vertices[event.vertex].limit = max(0, event.tasks)

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
                self._endings.lose_output(attempt, AttemptEvent.FAIL)

    def _on_node_lost(self, event: ev.NodeLost) -> None:
        self._unusable.lost(event.node)
        self._endings.excuse(event.node)
        running = 0
        for container in [c for c in self.containers.values() if c.node == event.node]:
            self.held.forget(container.id)
            if container.attempt is not None:
                running += 1
                self._endings.end_attempt(container.attempt, f"node {event.node} was lost", at_fault=False)
        outputs = self._endings.lose_node(event.node)
        self.notices.lost(event.node, running, outputs)

    def _on_cluster(self, event: ev.ClusterSeen) -> None:
        self._job.headroom = event.headroom
        change = self._hosts.cluster_size(event.nodes)
        if change is not None:
            self._turn.out.append(change)

    def _on_counted(self, event: ev.ResourcesCounted) -> None:
        self._job.counted.cores = event.cores
        self._too_small.clear()
        self.held.orders.forget()

    def _on_ordered(self, event: ev.StagesOrdered) -> None:
        self.held.obey(event.order)

    # ---- time

    def _on_tick(self, _: ev.Tick) -> None:
        self.notices.watch(self.live_attempts(), self._turn.now)
        for attempt in list(self.live_attempts()):
            container = self.containers.get(attempt.container)
            if container is not None and self._watch.may_wait(attempt, container, self._turn.now):
                container.asked_at = self._turn.now
                self._turn.out.append(ev.AskNode(container.id, container.node))
            hanging, silent = self._watch.hanging(attempt, self._turn.now), self._watch.silent(attempt, self._turn.now)
            if not (hanging or silent) or self.state is not JobState.RUNNING:
                continue
            if silent:
                self._unusable.silent(attempt.node, self._turn.now)
                attempt.out_of_reach = True
            self.held.stop_process(attempt, "its task hangs")
            self._endings.end_attempt(attempt, hanging or silent, at_fault=True)
        self.held.release_idle()
        for container_id in self._unusable.recovered(self._turn.now):
            self._turn.out.append(ev.Release(container_id))
        for vertex in self.vertices:
            for container in self._watch.unheard(vertex, self._job.headroom, self._turn.now):
                container.asked_at = self._turn.now
                self._turn.out.append(ev.AskNode(container.id, container.node))
            victim = self._watch.victim(vertex, self._job.headroom, self._turn.now)
            if victim is not None:
                self.held.stop_process(victim, f"{vertex.spec.name} tasks need its room")
                self._endings.end_attempt(victim, f"made room for {vertex.spec.name} tasks", at_fault=False)

    # ---- the job

    def _finish_if_complete(self) -> None:
        if self._may_complete and self.state is JobState.RUNNING and all(v.complete for v in self.vertices):
            self._endings.finish(JobState.SUCCEEDED, given_up_text(self.vertices))

    def _on_kill(self, event: ev.KillRequested) -> None:
        self._endings.finish(JobState.KILLED, event.reason)

    def _on_abort(self, event: ev.AbortRequested) -> None:
        self._endings.finish(JobState.FAILED, event.reason)

    def _on_job_completed(self, event: ev.JobCompleted) -> None:
        self._endings.finish(JobState.SUCCEEDED, event.text)

    def _on_progress(self, event: ev.ProgressTold) -> None:
        self._job.told = min(1.0, max(0.0, event.part))

    def _after_the_end(self, event: ev.Event) -> None:
        match event:
            case ev.ContainerAllocated():
                self._turn.out.append(ev.Release(event.container))
            case ev.ContainerCompleted():
                self.held.forget(event.container)
            case ev.TaskRequested():
                self._turn.out.append(ev.GiveExit(event.container))
            case ev.CommitRequested():
                self._turn.out.append(ev.AnswerCommit(event.attempt, False))
            case _:
                pass
