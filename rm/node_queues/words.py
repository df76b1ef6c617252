"""The ResourceManager's words with nodes about their queues: what they report is taken in, what they need is told.

Only nodes that said `yaq-queue` hear of it. A node needs more than a container's token: how to order, what is left of
each job that it has containers of, revised estimates. That goes with its heartbeat's answer when it has changed since
the node was told, each job once however often it changed.
"""

import logging
import math
from collections.abc import Collection
from typing import Final

from rm.applications.records import Attempt, RmContainer
from rm.cluster import Cluster
from rm.node_queues.chosen import CORE_FULL, ChosenBounds
from rm.node_queues.core_time import CoreTime
from rm.node_queues.estimates import Estimates
from rm.node_queues.reports import YAQ_QUEUE, node_queue_report
from rm.node_queues.task_records import TaskRecords
from rm.node_queues.told import Told
from rm.nodes.named_hosts import NamedHosts
from rm.nodes.node import RmNode
from rm.scheduler.events import LeftTold, PlaceLost, QueueingChanged
from rm.settings.queues import QueueSettings
from yaqd.model import ContainerId, ExitStatus
from yaqd.policies.asks.rows import AskRow
from yaqd.policies.queueing.left import STAGES_MAX, told
from yaqd.policies.queueing.limits import LONGEST_S
from yaqd.policies.queueing.order import Ordering
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server

log = logging.getLogger(__name__)

#: of one answer; further jobs are in the next one
_JOBS_MAX: Final = 500


def _never_ran(status: common.ContainerStatus) -> bool:
    """It waited, and its node gave it up."""
    is_given_up = status.exit_status in (ExitStatus.PREEMPTED, ExitStatus.KILLED_BY_CONTAINER_SCHEDULER)
    return is_given_up and status.HasField("yaq_times") and status.yaq_times.run_ms <= 0


class NodeQueueing:
    def __init__(self, cluster: Cluster, settings: QueueSettings, estimates: Estimates, records: TaskRecords) -> None:
        self._cluster = cluster
        self.settings = settings
        self.estimates = estimates
        self.estimates.use(settings.estimates)
        #: when the files were read again; 0: not since the start
        self._files_read_ms = 0
        self._chosen = ChosenBounds()
        self._core_time = CoreTime()
        #: what became of containers
        self.records = records
        #: settings of hosts that are not there
        self.named_hosts = NamedHosts(lambda: (node_id.host for node_id in cluster.nodes), cluster.clock.now())
        self.named_hosts.read(settings.named_hosts)

    @property
    def is_on(self) -> bool:
        return self.settings.spec is not None

    @property
    def has_core_time(self) -> bool:
        """Tell whether the ResourceManager has time for queues that find their bounds themselves."""
        return self._core_time.is_there

    @property
    def fills(self) -> bool:
        """Tell whether nodes are given more than fits."""
        return self.is_on and self.has_core_time

    @property
    def _are_estimates_used(self) -> bool:
        """By queues at nodes, or by the order of jobs alone."""
        return self.is_on or self._cluster.scheduler.facts.counts_jobs

    def refresh(self, settings: QueueSettings) -> None:
        """Go by these from now on; nodes hear of them at their next heartbeat."""
        self._files_read_ms = max(self._files_read_ms + 1, self._cluster.clock.wall_ms())
        rules = self.settings.rules
        if settings.rules is not rules:
            log.warning("yaq.rm.scheduler.rules is %s: the next start takes it, until then %s", settings.rules, rules)
            settings = settings.with_rules(rules)
        self.named_hosts.read(settings.named_hosts)
        if settings == self.settings:
            return
        was_on, self.settings, self._core_time = self.is_on, settings, CoreTime()
        self.estimates.use(settings.estimates)
        log.info("queues at nodes are %s, by the settings as they are now", "on" if self.is_on else "off")
        self._fill()
        if self.is_on and not was_on:
            self._expect_all()

    def _fill(self) -> None:
        """Have the scheduler fill queues from now on, or no more."""
        settings = self.settings
        spec = settings.spec if self.fills else None
        self._cluster.schedule(QueueingChanged(spec, settings.job_starvation, settings.at_asks))

    def _expect_all(self) -> None:
        """What has been asked for already was asked for when nobody wanted to know how long it runs."""
        for app in list(self._cluster.applications.values()):
            scheduled = self._cluster.scheduler.facts.application(app.id)
            if scheduled is not None and scheduled.attempt is not None:
                self.estimates.expect(app, {ask.key[0] for ask in scheduled.attempt.asks if not ask.is_master})

    # ---- what nodes say

    def check(self, now: float) -> None:
        """Look at what comes with time: settings of hosts that do not come, and how busy this process is."""
        self.named_hosts.check(now)
        if self._gives_way and self._core_time.look(now):
            log.info("queues at nodes: %s", "they may form" if self.has_core_time else CORE_FULL)
            self._fill()

    @property
    def _gives_way(self) -> bool:
        """Tell whether a full core may do without: nobody but the scheduler fills queues, or goes by what waits."""
        spec = self.settings.spec
        return spec is not None and spec.gives_way and not self._cluster.scheduler.facts.gives_opportunistic

    def reported(self, node: RmNode, status: server.NodeStatus, gap_s: float | None = None) -> None:
        """Take in what a node reports, before its containers' ends are booked: the report already counts them.

        `gap_s`: since its last heartbeat.
        """
        facts, now = self._cluster.scheduler.facts, self._cluster.clock.now()
        queue, gives_opportunistic = facts.node_queue(node.id), facts.gives_opportunistic
        node.is_heeded = gives_opportunistic or (self.fills and queue is not None and queue.is_heeded(now))
        if node.is_heeded:
            report = node_queue_report(
                *(node, status), fills_queues=self.fills, gives_opportunistic=gives_opportunistic, gap_s=gap_s
            )
            if report is not None:
                self._cluster.schedule(report)
                self._chosen.look(facts.places, facts.node_queues, now)
        busy = self._in_use(node)
        if self.fills and queue is not None and queue.is_filled:
            running = queue.running / queue.slots if queue.slots else 0.0
            # Before the node was seen full nobody knows how many run at once.
            busy = running if queue.queued else min(running, busy)
        node.use.observe(busy, now)

    def _in_use(self, node: RmNode) -> float:
        """The part of it that is given away, by the scarcest of what the scheduler counts."""
        facts = self._cluster.scheduler.facts
        known = facts.node(node.id)
        return 0.0 if known is None else facts.calculator.share(known.total - known.free, known.total)

    def ended(self, node: RmNode, container: RmContainer, status: common.ContainerStatus) -> None:
        """Take in that a node reports a container's end."""
        if self.is_on and YAQ_QUEUE in node.capabilities and _never_ran(status):
            self._place_lost(container)
            self.records.note(container, status.yaq_times, gave_back=True)
        if YAQ_QUEUE in node.capabilities and status.HasField("yaq_times"):
            container.times_ms = max(0, status.yaq_times.queued_ms), max(0, status.yaq_times.run_ms)
        if status.exit_status != ExitStatus.SUCCESS or container.allocation.is_master:
            return
        is_told = YAQ_QUEUE in node.capabilities and status.HasField("yaq_times")
        times = status.yaq_times if is_told else None
        if times is not None:
            self._core_time.ran(max(0, times.run_ms) / 1000)
        if times is not None and (self.fills or container.allocation.queued is not None):
            self.records.note(container, times)
        self.estimates.ended(container, times, is_used=self._are_estimates_used)

    def lost(self, node: RmNode, kept: Collection[ContainerId] = ()) -> None:
        """Take in that a node is lost, before its containers are booked as lost, apart from those kept.

        What waited there waits elsewhere.
        """
        if not self.is_on or YAQ_QUEUE not in node.capabilities:
            return
        waiting, _ = node.named.read(node.status)
        for container in node.containers.values():
            if container.id in waiting and container.id not in kept:
                self._place_lost(container)

    def _place_lost(self, container: RmContainer) -> None:
        allocation = container.allocation
        if not allocation.is_master:
            since = allocation.waits_since if allocation.waits_since is not None else container.created_at
            self._cluster.schedule(PlaceLost(container.attempt.app.id, allocation.priority, since))

    # ---- what masters ask

    def expect(self, attempt: Attempt, rows: tuple[AskRow, ...]) -> None:
        """Hear that these rows are about to be asked for."""
        if rows and self._are_estimates_used:
            self.estimates.expect(attempt.app, {row.priority for row in rows})

    def left_told(self, attempt: Attempt, left: common.JobLeft) -> None:
        """Take in what a master says is left of its job.

        Stages that it has not asked for yet may be known as well.
        """
        self.estimates.without_task(attempt, map(convert.container_id, left.without_task))
        if self._are_estimates_used:
            stages = tuple(told(stage) for stage in left.stages[:STAGES_MAX])
            self.estimates.expect(attempt.app, {stage.priority for stage in stages})
            self._cluster.schedule(LeftTold(attempt.id, stages, left.idle))

    # ---- what nodes are told

    def task_facts(self, container: RmContainer) -> server.TaskFacts | None:
        """Return the facts for the container's token; None for a node that must not see any."""
        node = self._cluster.nodes.get(container.node_id)
        if not self.fills or node is None or YAQ_QUEUE not in node.capabilities:
            return None
        app = container.attempt.app
        facts = server.TaskFacts(job_arrival_ms=app.submitted_ms, leaf_queue=app.queue)
        if not container.allocation.is_master:
            estimate_s = self._cluster.scheduler.facts.estimate(app.id, container.allocation.priority)
            if estimate_s is not None:
                facts.estimate_ms = _ms(estimate_s)
            most_wait_ms = self.most_wait_ms(container.attempt)
            if most_wait_ms is not None:
                facts.most_wait_ms = most_wait_ms
            if container.allocation.waits_since is not None:
                facts.waited_ms = _ms(max(0.0, self._cluster.clock.now() - container.allocation.waits_since))
        return facts

    def most_wait_ms(self, attempt: Attempt) -> int | None:
        """Return how long a container of a master that is not aware of waiting may wait at a node, ms.

        None: its master knows better, or nothing is sent to wait.
        """
        spec, scheduled = self.settings.spec, self._cluster.scheduler.facts.attempt(attempt.id)
        if spec is None or scheduled is None or scheduled.tolerates_waiting:
            return None
        return _ms(spec.unaware_wait_s)

    def put_orders(self, node: RmNode, response: server.NodeHeartbeatResponse) -> None:
        """Put what the node has not been told yet into its answer."""
        is_asked = self.is_on or node.queue_told is not None
        if YAQ_QUEUE not in node.capabilities or not (is_asked or self._files_read_ms):
            return
        told = node.queue_told = node.queue_told or Told()
        if told.files_read_ms != self._files_read_ms:
            told.files_read_ms = response.yaq_orders.files_read_ms = self._files_read_ms
        facts = self._cluster.scheduler.facts
        queue, told_for = facts.node_queue(node.id), (self.settings, facts.bound_of(node.id))
        # for as long as the core is full nodes keep what they were told: what waits there goes on waiting
        if told.settings_for != told_for and self.has_core_time and (self.is_on or told.settings is not None):
            told.settings_for = told_for
            settings = self._settings_of(node)
            if settings != told.settings:
                told.settings = settings
                response.yaq_orders.settings.CopyFrom(settings)
        # where nothing waits that is for the node's word how long a newcomer would: it goes with the next that is read
        if self.fills and (node.is_heeded or (queue is not None and not queue.is_quiet)):
            self._put_jobs(node, told, response)
        self._put_masters(node, told, response)

    def _put_masters(self, node: RmNode, told: Told, response: server.NodeHeartbeatResponse) -> None:
        """Again where it says that it keeps no room: an answer of this ResourceManager did not come, or was waited for
        in vain."""
        masters = self._cluster.scheduler.facts.masters_to_come(node.id) if self.is_on else {}
        if masters == told.masters and (not masters or node.status.yaq_queue.HasField("free")):
            return
        told.masters = masters
        message = response.yaq_orders.masters
        message.SetInParent()
        for app_id, resource in masters.items():
            room = message.rooms.add()
            room.application_id.CopyFrom(convert.application_id_pb(app_id))
            convert.put_resource(room.resource, resource)

    def _settings_of(self, node: RmNode) -> server.NodeQueueSettings:
        ordering = self.settings.orderings.at(node.id.host)
        settings = server.NodeQueueSettings(
            enabled=self.is_on,
            max_queued=self._cluster.scheduler.facts.bound_of(node.id),
            order=ordering.name,
            scope=ordering.scope,
            max_wait_ms=self.settings.max_wait_ms,
        )
        _put_starvation(settings, ordering)
        for path, own in self.settings.orderings.leaves.items():
            _put_starvation(settings.leaves.add(queue=path, order=own.name), own)
        return settings

    def _put_jobs(self, node: RmNode, told: Told, response: server.NodeHeartbeatResponse) -> None:
        facts = self._cluster.scheduler.facts
        here = {container.attempt.app.id: container.attempt.app for container in node.containers.values()}
        for gone in told.jobs.keys() - here.keys():
            del told.jobs[gone]
        left = _JOBS_MAX
        for app_id, app in here.items():
            version, scheduled = facts.job_version(app_id), facts.application(app_id)
            if told.jobs.get(app_id) == version or scheduled is None or not left:
                continue
            told.jobs[app_id] = version
            left -= 1
            left_of = facts.left_of(scheduled)
            message = response.yaq_orders.jobs.add(arrival_ms=app.submitted_ms)
            message.application_id.CopyFrom(convert.application_id_pb(app_id))
            if left_of.remaining_work is not None:
                message.remaining_work_ms = _ms(left_of.remaining_work)
            if left_of.remaining_tasks is not None:
                message.remaining_tasks = min(left_of.remaining_tasks, 0x7FFFFFFF)
            if left_of.critical_path is not None:
                message.critical_path_ms = _ms(left_of.critical_path)
            for priority, estimate_s in facts.estimates(app_id).items():
                message.estimates.add(priority=priority, estimate_ms=_ms(estimate_s))


def _put_starvation(message: server.NodeQueueSettings | server.LeafOrder, ordering: Ordering) -> None:
    if math.isfinite(ordering.starve_s):
        message.starve_ms = _ms(ordering.starve_s)
    if math.isfinite(ordering.starve_ratio):
        message.starve_ratio = ordering.starve_ratio


def _ms(seconds: float) -> int:
    """For a message: what is longer than a life is as good as that."""
    return round(1000 * min(seconds, LONGEST_S))
