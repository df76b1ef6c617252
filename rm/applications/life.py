"""The life of applications and of their attempts, from submission to the last node's clean-up.

Order of obligations: a submission is stored before it is acknowledged, and an end before it is told. Both come back as
calls (`application_stored`, `conclusion_stored`) when the store has them.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rm.applications.former_attempts import lost_with_the_daemon, record_of
from rm.applications.kept_containers import hand_over, outlives
from rm.applications.lifetimes import asked_lifetime_s, given_lifetime_s
from rm.applications.master_asks import master_rows
from rm.applications.no_master_yet import attempt_diagnostics, crash_diagnostics
from rm.applications.records import Application, Attempt, Completion, Conclusion
from rm.applications.retired import Retired
from rm.applications.states import STORED_EVENT, AppEvent, AppStage, AttemptEvent, ContainerEvent
from rm.cluster import Cluster
from rm.effects import NoteAttempt, StoreAttempt, StoreConclusion, StoreSubmission
from rm.nodes.liveness import Liveness
from rm.scheduler.decisions import AcceptApplication, RefuseApplication
from rm.scheduler.events import ApplicationSubmitted, AttemptEnded, AttemptStarted
from rm.store.state_store import StoredApplication
from yaqd.model import (
    ApplicationAttemptId,
    ApplicationId,
    ExitStatus,
    FinalApplicationStatus,
    YarnApplicationState,
)
from yaqd.policies.asks.rows import AskRow
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common

log = logging.getLogger(__name__)

#: what a diagnostics text is cut to, in characters
DIAGNOSTICS_MAX: Final = 64 * 1024

#: attempts of one application, also those whose failures do not count
_ATTEMPTS_IN_ALL_MAX: Final = 100

#: ends of a master's container that are not the master's fault
_INNOCENT: Final = frozenset(
    {
        ExitStatus.PREEMPTED,
        ExitStatus.ABORTED,
        ExitStatus.DISKS_FAILED,
        ExitStatus.KILLED_BY_RESOURCEMANAGER,
    }
)


@dataclass(frozen=True, slots=True)
class ApplicationLimits:
    #: `yarn.resourcemanager.am.max-attempts`
    attempts_max: int
    #: `yarn.resourcemanager.max-completed-applications`
    completed_max: int
    #: `yarn.am.liveness-monitor.expiry-interval-ms`, in s
    master_expiry_s: float
    #: the ResourceManager's start, epoch ms: part of every application id
    cluster_timestamp: int
    #: how often a ResourceManager was started on this state store
    epoch: int
    #: `yarn.cluster.max-application-priority`
    priority_max: int


class SubmissionRefused(ValueError):
    """The application cannot be taken; the message says why."""


class Applications:
    def __init__(self, cluster: Cluster, limits: ApplicationLimits) -> None:
        self.cluster = cluster
        self.limits = limits
        #: priorities above it count as it; an administrator may change it
        self.priority_max = limits.priority_max
        self.masters: Liveness[ApplicationAttemptId] = Liveness(limits.master_expiry_s)
        #: masters that have unregistered and should be gone soon
        self.finishing: Liveness[ApplicationAttemptId] = Liveness(limits.master_expiry_s)
        #: called when an attempt is over; set by the daemon
        self.on_attempt_over: Callable[[ApplicationAttemptId], None] = lambda attempt_id: None
        #: where an application is looked at; set by the daemon
        self.page_url: Callable[[Application], str] = lambda app: f"/cluster/app/{app.id}"
        self._last_id = 0
        #: applications whose lifetime ends some time
        self._mortal: dict[ApplicationId, Application] = {}
        self._retired = Retired(cluster, limits.completed_max)
        cluster.on_master_ended = self._master_ended

    # ---- submission

    def new_id(self) -> ApplicationId:
        self._last_id += 1
        return ApplicationId(self.limits.cluster_timestamp, self._last_id)

    def submit(self, context: common.ApplicationSubmissionContext, user: str) -> Application:
        """Take an application in; it counts once `application_stored` has been called. Raises `SubmissionRefused`."""
        app_id = convert.application_id(context.application_id)
        if app_id.cluster_timestamp == self.limits.cluster_timestamp and not 0 < app_id.id <= self._last_id:
            raise SubmissionRefused(f"{app_id} was not made by this ResourceManager: call getNewApplication first")
        app = Application(app_id, context, user, self.cluster.clock.wall_ms())
        self.settle_terms(app)
        self.cluster.applications[app_id] = app
        app.machine.advance(AppEvent.SUBMIT)
        log.info("%s: submitted by %s to queue %s: %s", app_id, user, app.queue, app.name)
        self.cluster.perform(StoreSubmission(app))
        return app

    def settle_terms(self, app: Application) -> None:
        """Make what was asked for in priority and lifetime what the cluster and the queue allow."""
        leaf = self.cluster.scheduler.facts.queue(app.queue)
        asked = app.context.priority.priority
        if not app.context.HasField("priority"):
            asked = leaf.spec.default_priority if leaf is not None else 0
        app.priority = min(asked, self.priority_max)
        lifetime_s = given_lifetime_s(leaf.spec if leaf is not None else None, asked_lifetime_s(app.context))
        if lifetime_s > 0:
            self.expire_at(app, app.submitted_ms + lifetime_s * 1000)

    def expire_at(self, app: Application, expires_ms: int) -> None:
        """Set, or move, the end of its lifetime."""
        app.expires_ms = expires_ms
        self._mortal[app.id] = app

    def application_stored(self, app: Application) -> None:
        """Note that the store has the submission."""
        app.machine.advance(AppEvent.STORED)
        if app.stage is AppStage.SUBMITTED:
            self._enter_scheduler(app)

    def application_not_stored(self, app: Application) -> None:
        """Forget a submission that the store could not take: it was never there."""
        self.cluster.applications.pop(app.id, None)
        self._mortal.pop(app.id, None)

    def recover(self, app: Application, stored: StoredApplication) -> None:
        """Take over an application from the state store: list it when it is over, else try again."""
        self.cluster.applications[app.id] = app
        app.earlier_attempts, app.former = stored.attempts, stored.former
        change = stored.change
        if change is not None:
            app.queue = change.queue
        queue = self.cluster.scheduler.facts.queue(app.queue)
        app.queue = queue.path if queue is not None else app.queue
        self.settle_terms(app)
        if change is not None:
            app.priority = change.priority
            if change.expires_ms is not None:
                self.expire_at(app, change.expires_ms)
        if stored.conclusion is not None:
            self._mortal.pop(app.id, None)
            app.conclusion = stored.conclusion
            app.machine.state = AppStage[stored.conclusion.state.name]
            self._retired.recall(app)
        self._settle_former(app)
        if stored.conclusion is not None:
            return
        app.machine.advance(AppEvent.SUBMIT)
        app.machine.advance(AppEvent.STORED)
        if app.is_unmanaged:
            self._conclude_failed(app, f"Application {app.id} was lost: the ResourceManager restarted under its master")
            return
        log.info("%s: the ResourceManager restarted; it is tried again after %d attempts", app.id, stored.attempts)
        self._enter_scheduler(app)

    def _settle_former(self, app: Application) -> None:
        """Its last attempt has ended with the ResourceManager that made it, unless that saw its end."""
        lost = lost_with_the_daemon(app, self.cluster.clock.wall_ms())
        if lost is not None:
            number, record = lost
            app.former = {**app.former, number: record}
            self.cluster.perform(NoteAttempt(app, number, record))

    def _enter_scheduler(self, app: Application) -> None:
        submitted = ApplicationSubmitted(app.id, app.queue, app.user, app.priority, frozenset(app.tags))
        self.cluster.schedule(submitted)

    def refused(self, decision: RefuseApplication) -> None:
        """Note that the scheduler does not take the application."""
        app = self.cluster.applications[decision.application_id]
        self._conclude_failed(app, f"Failed to submit {app.id} to YARN : {decision.reason}")

    def accepted(self, decision: AcceptApplication) -> None:
        """Note that the application is in a queue, and wants its master."""
        app = self.cluster.applications[decision.application_id]
        app.queue = decision.queue
        app.machine.advance(AppEvent.ACCEPT)
        self._start_attempt(app)

    # ---- attempts

    def _start_attempt(self, app: Application, heir_of: Attempt | None = None) -> None:
        number = app.earlier_attempts + len(app.attempts) + 1
        attempt_id = ApplicationAttemptId(app.id, number)
        attempt = Attempt(attempt_id, app, self.cluster.clock.wall_ms())
        attempt.node_changes_seen = self.cluster.node_changes
        app.attempts.append(attempt)
        if heir_of is not None:
            hand_over(heir_of, attempt)
        self.cluster.perform(StoreAttempt(app, number))
        self.cluster.perform(NoteAttempt(app, number, record_of(attempt)))
        if app.is_unmanaged:
            attempt.machine.advance(AttemptEvent.ATTACH)
            self.masters.seen(attempt_id, self.cluster.clock.now())
            rows: tuple[AskRow, ...] = ()
        else:
            attempt.machine.advance(AttemptEvent.SCHEDULE)
            rows = master_rows(app.context)
        self.cluster.schedule(AttemptStarted(attempt_id, rows, self.limits.epoch))

    def master_launched(self, attempt: Attempt) -> None:
        """Note that the node has accepted the master's container."""
        if attempt.is_over:
            return
        attempt.machine.advance(AttemptEvent.LAUNCH)
        app = attempt.app
        app.launched_ms = app.launched_ms or self.cluster.clock.wall_ms()
        if not attempt.is_registered:
            self.masters.seen(attempt.id, self.cluster.clock.now())

    def master_launch_failed(self, attempt: Attempt, reason: str) -> None:
        if not attempt.is_over:
            diagnostics = f"Error launching {attempt.id}. Got exception: {reason}"
            self._attempt_failed(attempt, diagnostics, counts=True)

    def registered(self, attempt: Attempt) -> None:
        attempt.machine.advance(AttemptEvent.REGISTER)
        attempt.app.machine.advance(AppEvent.REGISTER)
        self.masters.seen(attempt.id, self.cluster.clock.now())

    def unregistered(self, attempt: Attempt, status: FinalApplicationStatus, diagnostics: str, url: str) -> None:
        """Note that the master says that the application is over."""
        attempt.machine.advance(AttemptEvent.UNREGISTER)
        attempt.final_status = status
        attempt.diagnostics = diagnostics[:DIAGNOSTICS_MAX]
        attempt.tracking_url = url
        self.masters.forget(attempt.id)
        app = attempt.app
        self._conclude(app, YarnApplicationState.FINISHED, status, attempt.diagnostics, url)
        if app.is_unmanaged:
            self._finish_attempt(attempt)
        else:
            self.finishing.seen(attempt.id, self.cluster.clock.now())

    def _master_ended(self, attempt: Attempt, completion: Completion) -> None:
        """The master's container is over."""
        if attempt.is_over:
            return
        if attempt.state.name == "FINISHING":
            self._finish_attempt(attempt)
            return
        diagnostics = crash_diagnostics(completion, self.page_url(attempt.app))
        self._attempt_failed(attempt, diagnostics, counts=completion.exit_status not in _INNOCENT)

    def _finish_attempt(self, attempt: Attempt) -> None:
        self._end_attempt(attempt, AttemptEvent.END)
        attempt.app.master_is_gone = True
        if attempt.app.stage is AppStage.FINISHING:
            attempt.app.machine.advance(AppEvent.MASTER_GONE)
            self._retired.retire(attempt.app)

    def fail_attempt(self, attempt: Attempt, diagnostics: str) -> None:
        """Fail an attempt that somebody asked to fail; another one may follow."""
        if attempt.takes_containers:
            self._attempt_failed(attempt, diagnostics, counts=True)

    def _attempt_failed(self, attempt: Attempt, diagnostics: str, *, counts: bool) -> None:
        attempt.diagnostics = diagnostics[:DIAGNOSTICS_MAX]
        attempt.counts = counts
        attempt.final_status = FinalApplicationStatus.FAILED
        app = attempt.app
        limit = self.attempts_max(app)
        failures = self._failures(app) + counts
        is_tried_again = not app.is_unmanaged and failures < limit and len(app.attempts) < _ATTEMPTS_IN_ALL_MAX
        keeps = is_tried_again and app.context.keep_containers_across_application_attempts
        self._end_attempt(attempt, AttemptEvent.FAIL, keeps=keeps)
        log.warning("%s: failed (%d of %d): %s", attempt.id, failures, limit, diagnostics[:500])
        if is_tried_again:
            app.machine.advance(AppEvent.RETRY)
            self._start_attempt(app, attempt if keeps else None)
            return
        times = f"{failures} times"
        if limit < self.limits.attempts_max:
            times += f" (global limit ={self.limits.attempts_max}; local limit is ={limit})"
        text = f"Application {app.id} failed {times} due to {attempt.diagnostics}. Failing the application."
        if app.is_unmanaged:
            text = f"Unmanaged application {app.id} failed due to {attempt.diagnostics}. Failing the application."
        self._conclude_failed(app, text)

    def attempts_max(self, app: Application) -> int:
        """Return the smaller of what the cluster allows and what the application asked for."""
        wanted = app.context.maxAppAttempts
        return min(wanted, self.limits.attempts_max) if wanted > 0 else self.limits.attempts_max

    def _failures(self, app: Application) -> int:
        """Failed attempts that count, within the application's validity interval where it has one."""
        interval = app.context.attempt_failures_validity_interval
        since = self.cluster.clock.wall_ms() - interval if interval > 0 else 0
        return sum(1 for a in app.attempts if a.state.name == "FAILED" and a.counts and a.finished_ms >= since)

    def _end_attempt(self, attempt: Attempt, event: AttemptEvent, *, keeps: bool = False) -> None:
        """`keeps`: what runs goes on, and stays with the attempt for its heir."""
        before = attempt.state
        if not attempt.machine.advance(event):
            return
        attempt.book_end(before, self.cluster.clock.wall_ms())
        self.cluster.perform(NoteAttempt(attempt.app, attempt.id.attempt, record_of(attempt)))
        self.masters.forget(attempt.id)
        self.finishing.forget(attempt.id)
        self.cluster.schedule(AttemptEnded(attempt.id))
        why = f"Container killed: {attempt.id} is over"
        for container in [c for c in attempt.containers.values() if not (keeps and outlives(c))]:
            status = ExitStatus.KILLED_AFTER_APP_COMPLETION
            self.cluster.end_container(container, ContainerEvent.KILL, status, why, kill=True)
        if attempt.master is not None:
            status = ExitStatus.KILLED_BY_RESOURCEMANAGER
            if not attempt.master.is_over:
                self.cluster.end_container(attempt.master, ContainerEvent.KILL, status, why, kill=True)
        attempt.allocated = []
        if not keeps:
            for completion in (*attempt.told_completions, *attempt.completions):
                self.cluster.forget_id_on_node(completion.container_id, completion.node_id)
            attempt.completions, attempt.told_completions = [], []
        self.on_attempt_over(attempt.id)

    # ---- ends

    def kill(self, app: Application, diagnostics: str) -> None:
        """End an application whatever it is doing; a second call changes nothing."""
        if app.is_concluded or app.is_over:
            return
        log.info("%s: %s", app.id, diagnostics)
        attempt = app.attempt
        if attempt is not None and not attempt.is_over:
            attempt.diagnostics = attempt_diagnostics(self.cluster.scheduler.facts, attempt)
            attempt.final_status = FinalApplicationStatus.KILLED
            self._end_attempt(attempt, AttemptEvent.KILL)
        self._conclude(app, YarnApplicationState.KILLED, FinalApplicationStatus.KILLED, diagnostics, "N/A")

    def _conclude_failed(self, app: Application, diagnostics: str) -> None:
        self._conclude(app, YarnApplicationState.FAILED, FinalApplicationStatus.FAILED, diagnostics, "N/A")

    def _conclude(
        self, app: Application, state: YarnApplicationState, status: FinalApplicationStatus, text: str, url: str
    ) -> None:
        before = app.stage
        if not app.machine.advance(AppEvent.CONCLUDE):
            return
        app.stage_before_saving = before
        self._mortal.pop(app.id, None)
        text = text[:DIAGNOSTICS_MAX]
        app.conclusion = Conclusion(state, status, text, url, self.cluster.clock.wall_ms())
        self.cluster.perform(StoreConclusion(app))

    def conclusion_stored(self, app: Application) -> None:
        """Tell everybody the end, which the store has (or cannot take, which has been logged)."""
        if app.conclusion is None:
            return
        state = app.conclusion.state
        event = AppEvent.STORED_FINISHED
        if state is not YarnApplicationState.FINISHED:
            event = STORED_EVENT[FinalApplicationStatus[state.name]]
        app.machine.advance(event)
        log.info("%s: %s, %s", app.id, state.name, app.conclusion.final_status.name)
        if app.stage is AppStage.FINISHING and app.master_is_gone:
            app.machine.advance(AppEvent.MASTER_GONE)
        if app.is_over:
            self._retired.retire(app)

    # ---- other changes

    def check_expiry(self, now: float) -> None:
        """End attempts whose masters are silent, and clean up after masters that do not go."""
        for attempt_id in self.masters.expired(now):
            attempt = self.cluster.find_attempt(attempt_id)
            if attempt is not None and not attempt.is_over:
                limit = f"{self.masters.limit_s:g}"
                reason = f"ApplicationMaster for attempt {attempt_id} timed out after {limit} s without a heartbeat"
                self._attempt_failed(attempt, reason, counts=True)
        for attempt_id in self.finishing.expired(now):
            attempt = self.cluster.find_attempt(attempt_id)
            if attempt is not None and not attempt.is_over:
                self._finish_attempt(attempt)
        self._end_lifetimes()

    def _end_lifetimes(self) -> None:
        now_ms = self.cluster.clock.wall_ms()
        for app in [app for app in self._mortal.values() if (app.expires_ms or 0) <= now_ms]:
            self.kill(app, "Application is killed by ResourceManager as it has exceeded the lifetime period.")
