"""What clients are told about applications, attempts and queues, with the fields that Hadoop's clients read unasked.

Every report is made anew from the records: clients ask seldom, and nothing needs to be kept in step.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rm.applications.lifetimes import format_iso8601
from rm.applications.no_master_yet import attempt_diagnostics
from rm.applications.records import Application, Attempt
from rm.applications.silent_masters import SilentMasters
from rm.cluster import Cluster
from rm.logs.status import LogStatuses
from rm.scheduler.facts import QueueView
from rm.scheduler.queues.spec import QueueState
from rm.services.messages import wire
from rm.services.queue_statistics import queue_statistics
from yaqd.model import ApplicationAttemptId, FinalApplicationStatus, Resource, YarnApplicationAttemptState
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.security import Token

_NOT_KNOWN: Final = Resource(-1, -1)
_INT32_MAX: Final = 2**31 - 1
_INT64_MAX: Final = 2**63 - 1
#: node labels are off: an application asks for none, its master runs in the one partition
_NO_LABEL: Final = "<Not set>"
_NO_PARTITION: Final = "<DEFAULT_PARTITION>"
#: attempts that ended without saying where they are looked at (RMAppAttemptImpl.setTrackingUrlToRMAppPage)
_LOST: Final = (YarnApplicationAttemptState.FAILED, YarnApplicationAttemptState.KILLED)


def _has_failed(app: Application) -> bool:
    """It was concluded by us and not by its master, which may well have said that its work failed."""
    return app.conclusion is not None and app.conclusion.state.name != "FINISHED"


@dataclass(slots=True)
class Reports:
    cluster: Cluster
    #: `host:port` that browsers and masters can reach
    web_address: str
    cluster_id: str
    logs: LogStatuses
    #: whether containers are taken back for other queues at all, at present
    preempts: Callable[[], bool]
    silent_masters: SilentMasters

    # ---- applications

    def tracking_url(self, app: Application) -> str:
        """Return the URL through the proxy, from the beginning to after the end.

        An application that failed has its own page there.
        """
        if app.is_unmanaged:
            return self.original_url(app)
        return self.page_url(app) if _has_failed(app) else self._proxy_url(app)

    def original_url(self, app: Application) -> str:
        """Return the URL as the master gave it, "N/A" without one; the application's page where it failed."""
        if _has_failed(app):
            return self.page_url(app)
        if app.conclusion is not None and app.conclusion.tracking_url:
            return app.conclusion.tracking_url
        return (app.attempt.tracking_url if app.attempt is not None else "") or "N/A"

    def _proxy_url(self, app: Application) -> str:
        return f"http://{self.web_address}/proxy/{app.id}/"

    def page_url(self, app: Application) -> str:
        return f"http://{self.web_address}/cluster/app/{app.id}"

    def application(self, app: Application, *, amrm_token: Token | None = None) -> common.ApplicationReport:
        attempt, conclusion = app.attempt, app.conclusion
        message = common.ApplicationReport(
            user=app.user,
            queue=app.queue,
            name=app.name,
            host=attempt.host if attempt is not None else "N/A",
            rpc_port=attempt.rpc_port if attempt is not None else -1,
            yarn_application_state=wire(app.state),
            trackingUrl=self.tracking_url(app),
            originalTrackingUrl=self.original_url(app),
            diagnostics=self.diagnostics(app),
            startTime=app.submitted_ms,
            submitTime=app.submitted_ms,
            launchTime=app.launched_ms,
            finishTime=0,
            final_application_status=wire(FinalApplicationStatus.UNDEFINED),
            progress=attempt.progress if attempt is not None else 0.0,
            applicationType=app.type,
            applicationTags=app.tags,
            log_aggregation_status=self.logs.of(app, self.cluster.clock.wall_ms()),
            unmanaged_application=app.is_unmanaged,
            appNodeLabelExpression=_NO_LABEL,
            amNodeLabelExpression=_NO_PARTITION,
        )
        if conclusion is not None and app.state.is_final:
            message.finishTime = conclusion.finished_ms
            message.final_application_status = wire(conclusion.final_status)
            if conclusion.state.name == "FINISHED" or (attempt is None and app.earlier_attempts):
                message.progress = 1.0
        message.applicationId.CopyFrom(convert.application_id_pb(app.id))
        last = attempt.id if attempt is not None else ApplicationAttemptId(app.id, max(1, app.earlier_attempts))
        message.currentApplicationAttemptId.CopyFrom(convert.attempt_id_pb(last))
        message.priority.priority = app.priority
        message.app_resource_Usage.CopyFrom(self._usage(app))
        timeout = message.appTimeouts.add(application_timeout_type=common.APP_TIMEOUT_LIFETIME).application_timeout
        timeout.application_timeout_type = common.APP_TIMEOUT_LIFETIME
        timeout.expire_time, timeout.remaining_time = "UNLIMITED", -1
        if app.expires_ms is not None:
            timeout.expire_time = format_iso8601(app.expires_ms)
            left_ms = 0 if app.state.is_final else app.expires_ms - self.cluster.clock.wall_ms()
            timeout.remaining_time = max(0, left_ms // 1000)
        if amrm_token is not None:
            message.am_rm_token.CopyFrom(amrm_token.to_pb())
        return message

    def hidden(self, app: Application) -> common.ApplicationReport:
        """Return the report for those who may not see the application: that it is there, whose it is and how far."""
        message = self.application(app)
        message.host, message.rpc_port, message.progress = "N/A", -1, 0.0
        message.trackingUrl = message.originalTrackingUrl = message.diagnostics = "N/A"
        message.currentApplicationAttemptId.attemptId = -1
        message.ClearField("log_aggregation_status")
        usage = common.ApplicationResourceUsageReport(num_used_containers=-1, num_reserved_containers=-1)
        for field in (usage.used_resources, usage.reserved_resources, usage.needed_resources):
            convert.put_resource(field, _NOT_KNOWN)
        message.app_resource_Usage.CopyFrom(usage)
        return message

    def diagnostics(self, app: Application) -> str:
        """Return how the application ended, else why it waits."""
        if app.conclusion is not None:
            return app.conclusion.diagnostics
        return self._of_attempt(app.attempt) if app.attempt is not None else ""

    def _of_attempt(self, attempt: Attempt) -> str:
        silence = self.silent_masters.of(attempt)
        return str(silence) if silence is not None else attempt_diagnostics(self.cluster.scheduler.facts, attempt)

    def _put_totals(self, message: common.ApplicationResourceUsageReport, app: Application) -> None:
        """Of every resource type; what was preempted only where something was."""
        none = {kind.name: 0 for kind in self.cluster.resource_types}
        held = {"memory-mb": app.memory_mb_seconds, "vcores": app.vcore_seconds, **none, **app.further_seconds()}
        for name, total in held.items():
            message.application_resource_usage_map.add(key=name, value=total)
        lost = {"memory-mb": app.preempted_memory_mb_ms, "vcores": app.preempted_vcore_ms, **none}
        lost |= app.preempted_further_ms
        if any(lost.values()):
            for name, total in lost.items():
                message.application_preempted_resource_usage_map.add(key=name, value=total // 1000)

    def _usage(self, app: Application) -> common.ApplicationResourceUsageReport:
        if app.attempts and not app.is_over:
            app.attempts[-1].book_usage(self.cluster.clock.wall_ms())
        message = common.ApplicationResourceUsageReport(
            num_used_containers=-1,
            num_reserved_containers=-1,
            memory_seconds=app.memory_mb_seconds,
            vcore_seconds=app.vcore_seconds,
            preempted_memory_seconds=app.preempted_memory_mb_ms // 1000,
            preempted_vcore_seconds=app.preempted_vcore_ms // 1000,
        )
        self._put_totals(message, app)
        facts = self.cluster.scheduler.facts
        scheduled = facts.application(app.id)
        used = reserved = needed = _NOT_KNOWN
        if scheduled is not None and not app.is_concluded:
            sent = scheduled.sent
            used, reserved, needed = scheduled.used - sent.used, Resource(), scheduled.used
            message.num_used_containers = scheduled.containers - sent.containers
            message.num_reserved_containers = 0
            if sent.containers:
                message.yaq_waiting = sent.containers
                convert.put_resource(message.yaq_waiting_resources, sent.used)
            attempt = scheduled.attempt
            if attempt is not None:
                for ask in attempt.asks:
                    needed = needed + ask.capability * ask.pending
                most = Resource(_INT32_MAX << 20, _INT32_MAX, dict.fromkeys(needed.extras, _INT64_MAX))
                needed = needed.smaller(most)
                hold = facts.reserved_for(attempt)
                if hold is not None:
                    reserved = hold.size
                    message.num_reserved_containers = 1
            share = facts.share(used)
            message.cluster_usage_percentage = share * 100
            part = scheduled.leaf.spec.absolute_capacity
            message.queue_usage_percentage = share * 100 / part if part > 0 else 0.0
        convert.put_resource(message.used_resources, used)
        convert.put_resource(message.reserved_resources, reserved)
        convert.put_resource(message.needed_resources, needed)
        return message

    def _attempt_url(self, attempt: Attempt) -> str:
        if attempt.app.is_unmanaged:
            return attempt.tracking_url or "N/A"
        return self.page_url(attempt.app) if attempt.state in _LOST else self._proxy_url(attempt.app)

    def attempt(self, attempt: Attempt) -> common.ApplicationAttemptReport:
        is_lost = attempt.state in _LOST
        message = common.ApplicationAttemptReport(
            host=attempt.host,
            rpc_port=attempt.rpc_port,
            tracking_url=self._attempt_url(attempt),
            original_tracking_url=self.page_url(attempt.app) if is_lost else attempt.tracking_url or "N/A",
            diagnostics=self._of_attempt(attempt),
            yarn_application_attempt_state=wire(attempt.state),
            startTime=attempt.started_ms,
            finishTime=attempt.finished_ms,
        )
        message.application_attempt_id.CopyFrom(convert.attempt_id_pb(attempt.id))
        if attempt.master is not None:
            convert.put_container_id(message.am_container_id, attempt.master.id)
        return message

    # ---- queues

    def queue(
        self, queue: QueueView, *, children: bool, recursive: bool, shown: Callable[[Application], bool] | None
    ) -> common.QueueInfo:
        """Report a queue.

        `shown` says which applications of the queue, and those below it, are listed; None: none.
        """
        spec = queue.spec
        share = self.cluster.scheduler.facts.share(queue.used)
        guarantee = spec.absolute_capacity
        is_draining = spec.state is QueueState.STOPPED and any(q.applications for q in queue.walk())
        message = common.QueueInfo(
            queueName=spec.name,
            queuePath=spec.path,
            capacity=spec.capacity,
            maximumCapacity=spec.maximum_capacity,
            currentCapacity=share / guarantee if guarantee > 0 else 0.0,
            state=wire(QueueState.DRAINING if is_draining else spec.state),
            schedulerType="CapacityScheduler",
            weight=-1.0,
            maxParallelApps=_INT32_MAX,
            preemptionDisabled=not self.preempts() or spec.preemption_disabled,
            intraQueuePreemptionDisabled=True,
            defaultNodeLabelExpression="",
            accessibleNodeLabels=["*"],
        )
        message.queueStatistics.CopyFrom(queue_statistics(queue, self.cluster))
        if children:
            for child in queue.children:
                below = self.queue(child, children=recursive, recursive=recursive, shown=None)
                message.childQueues.append(below)
        if shown is not None:
            for app in (self.cluster.applications[app_id] for q in queue.walk() for app_id in q.applications):
                if shown(app):
                    message.applications.append(self.application(app))
        return message
