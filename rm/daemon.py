"""The ResourceManager assembled: servers, core, state store, launcher, ticker; and the one place that performs
effects.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Coroutine
from functools import partial

from rm.applications.am_launcher import MasterLauncher
from rm.applications.changes import Changes
from rm.applications.left_overs import LeftOvers, LeftOverSettings
from rm.applications.life import ApplicationLimits, Applications
from rm.applications.preemption import PreemptionMonitor
from rm.applications.quality import QualityMonitor
from rm.applications.records import Application
from rm.applications.silent_masters import SilentMasters
from rm.applications.stages import StagesMonitor
from rm.carrier import Carrier
from rm.clock import Clock, SystemClock
from rm.cluster import Cluster
from rm.effects import Effect, LaunchMaster
from rm.explain.applications import Explain
from rm.explain.nodes import ExplainNodes
from rm.large_pages import LargePages
from rm.logs.retention import LogRetention
from rm.logs.status import LogStatuses
from rm.node_queues.estimates import Estimates
from rm.node_queues.rebalancing import Rebalancer
from rm.node_queues.task_records import TaskRecords
from rm.node_queues.usage_monitor import UsageMonitor
from rm.node_queues.words import NodeQueueing
from rm.nodes.decommission import Decommission
from rm.nodes.drained import DrainedNodes
from rm.nodes.hosts import read_host_lists
from rm.nodes.life import Nodes
from rm.nodes.sizes import read_node_sizes
from rm.nodes.topology import Topology
from rm.nodes.tracker import NodeTracker, TrackerSettings
from rm.scheduler.scheduler import Scheduler
from rm.security.identities import Identities
from rm.security.tokens import TokenMint
from rm.services.admin import AdminService
from rm.services.application_master import ApplicationMasterService
from rm.services.changes import ChangeService
from rm.services.client import ClientService
from rm.services.delegation import DelegationService
from rm.services.distributed import DistributedSchedulingService
from rm.services.placement import PlacementRequests
from rm.services.reports import Reports
from rm.services.servers import Servers
from rm.services.updates import ContainerUpdates
from rm.settings.daemon import RmSettings, read_queues, read_refreshed
from rm.settings.live import LiveSettings
from rm.store.record_file import RecordFile
from rm.store.state_store import StateStore, StoredApplication
from rm.store.writes import StoreWrites
from rm.web.server import RmWeb
from yaqd.config import Configuration
from yaqd.config.reach import WILDCARDS
from yaqd.ipc import RpcError, server_limits
from yaqd.policies.guard import survive
from yaqd.proto import yarn_common_pb2 as common

log = logging.getLogger(__name__)

_TICK_S = 1.0
_TOKEN_ACTIVATION_FACTOR = 1.5


class ResourceManager:
    """Start it on a running event loop; the bound addresses are attributes after that."""

    def __init__(self, conf: Configuration, *, clock: Clock | None = None, tick_s: float = _TICK_S) -> None:
        self._conf = conf
        survive(log.error)
        self.settings = settings = RmSettings.read(conf)
        self._clock = clock or SystemClock()
        self._tick_s = tick_s
        self._ticker: asyncio.TimerHandle | None = None
        self._large_pages = LargePages()
        self.started_ms = self._clock.wall_ms()
        self.store = StateStore(settings.state_store)
        state = self.store.load()
        self._recovered = state.applications
        self._make_cluster()
        self.applications = Applications(self.cluster, self._application_limits(state.epoch))
        self.store_writes = StoreWrites(self.store, self.applications)
        self.nodes = Nodes(
            self.cluster,
            expiry_s=settings.node_expiry_s,
            topology=Topology.read(conf),
            heartbeat_s=settings.heartbeat_interval_ms / 1000,
        )
        self.nodes.sizes = read_node_sizes(conf)
        self.tokens = self._mint()
        self.queueing = NodeQueueing(
            self.cluster,
            settings.queues,
            Estimates(self.cluster, self.store),
            TaskRecords(self.store, self._clock.now()),
        )
        self.nodes.queueing = self.queueing
        self.tokens.task_facts = self.queueing.task_facts
        self.identities = Identities.read(conf, settings, self.store, self.scheduler.facts, self._clock)
        self.access = self.identities.access
        self._build_services()

    def _make_cluster(self) -> None:
        """Makes what is decided with, what it is decided of, and what records it."""
        settings, limits = self.settings, self.settings.scheduler_limits()
        queues = read_queues(self._conf)
        self.scheduler = Scheduler(queues, limits, clock=self._clock.now, note=log.warning)
        self.cluster = Cluster(
            self.scheduler,
            self._clock,
            self._perform,
            allocation_expiry_s=settings.allocation_expiry_s,
            resource_types=settings.resource_types,
        )
        self.record: RecordFile | None = None
        if settings.scheduler_record is not None:
            self.record = RecordFile.of(self._conf, settings.scheduler_record, queues, limits)
            self.cluster.record = self.record.note

    def _application_limits(self, epoch: int) -> ApplicationLimits:
        settings = self.settings
        return ApplicationLimits(
            settings.attempts_max,
            settings.completed_max,
            settings.master_expiry_s,
            self.started_ms,
            epoch,
            settings.priority_max,
        )

    def _mint(self) -> TokenMint:
        settings = self.settings
        return TokenMint(
            now=self._clock.now(),
            random=os.urandom,
            rm_identifier=self.started_ms,
            container_interval_s=settings.key_intervals.container_s,
            nm_interval_s=settings.key_intervals.nm_s,
            amrm_interval_s=settings.key_intervals.amrm_s,
            nm_activation_s=_TOKEN_ACTIVATION_FACTOR * settings.node_expiry_s,
            amrm_activation_s=_TOKEN_ACTIVATION_FACTOR * settings.master_expiry_s,
            container_lifetime_s=settings.allocation_expiry_s,
        )

    def _build_services(self) -> None:
        settings, conf = self.settings, self._conf
        self.servers = Servers.make(settings, server_limits(conf), self.identities, self.tokens.masters)
        self.retention = LogRetention.of(conf, self.cluster)
        self.left_overs = LeftOvers(conf, self.cluster, LeftOverSettings.read(conf))
        logs = LogStatuses(is_enabled=settings.log_aggregation, timeout_ms=settings.log_status_timeout_ms)
        self.preemption = PreemptionMonitor(self.cluster, settings.preemption)
        self._build_node_services(logs)
        self._build_master_services()
        self._build_administration()
        #: its web address is known when the web server listens
        self.reports = Reports(
            self.cluster, "", settings.cluster_id, logs, lambda: self.preemption.is_enabled, self.silent_masters
        )
        self.applications.page_url = self.reports.page_url
        self._register_methods()
        self.launcher: MasterLauncher | None = None
        self.web: RmWeb | None = None

    def _build_node_services(self, logs: LogStatuses) -> None:
        settings = self.settings
        self.decommission = Decommission(
            self.nodes,
            settings.hosts,
            DrainedNodes(self.store),
            timeout_s=settings.drain_timeout_s,
            untracked_s=settings.untracked_s,
        )
        tracker_settings = TrackerSettings(
            settings.heartbeat_interval_ms, self.started_ms, settings.bounds.minimum, settings.is_stock
        )
        self.tracker = NodeTracker(self.cluster, self.nodes, self.decommission, self.tokens, logs, tracker_settings)
        self.updates = ContainerUpdates(self.cluster, self.tokens, tells_nodes=settings.containers.tells_nodes)
        self.nodes.on_increased = self.updates.reported
        self.quality = QualityMonitor(self.cluster, self.tracker.cores, settings.quality)
        self.stages = StagesMonitor(self.cluster, settings.stages)
        self.cluster.follow = self.stages.follow
        carrier = Carrier(self.cluster, self.applications, self.updates, self.preemption, self.quality, self.stages)
        self.cluster.carry_out = carrier.carry_out

    def _build_master_services(self) -> None:
        settings = self.settings
        placement = PlacementRequests(self.cluster, settings.placement)
        self.masters = ApplicationMasterService(
            self.cluster,
            self.applications,
            self.tokens,
            self.store_writes.conclusion_stored,
            self.updates,
            placement,
            self.queueing,
        )
        self.applications.on_attempt_over = self.masters.forget
        self.silent_masters = SilentMasters(
            self.cluster,
            self.applications.masters,
            heartbeat_s=settings.heartbeat_interval_ms / 1000,
            node_expiry_s=settings.node_expiry_s,
        )

    def _build_administration(self) -> None:
        conf = self._conf
        self.admin = AdminService(
            self.cluster,
            self.nodes,
            self.decommission,
            self.preemption,
            self.quality,
            self.stages,
            self.queueing,
            read_queues=partial(read_refreshed, conf),
            read_hosts=lambda: read_host_lists(conf.reread()),
            read_sizes=lambda: read_node_sizes(conf.reread()),
            access=self.access,
            live=LiveSettings(conf, self.identities, self.applications),
        )

    def _register_methods(self) -> None:
        client = ClientService(
            self.cluster,
            self.applications,
            self.reports,
            self.tokens,
            self.store_writes.submission_stored,
            self.access,
            self.settings.tag_limits,
            only_viewable=self.settings.only_viewable,
        )
        client.register_on(self.servers.client)
        changes = Changes(self.cluster, self.applications)
        ChangeService(
            self.cluster, self.applications, changes, self.access, self.store_writes.submission_stored
        ).register_on(self.servers.client)
        DelegationService(self.identities.delegations, self.identities.delegation_store, self.access).register_on(
            self.servers.client
        )
        self.masters.register_on(self.servers.masters)
        if self.settings.containers.distributed:
            expiry_ms = int(self.settings.allocation_expiry_s * 1000)
            monitor = UsageMonitor(self.cluster, self.queueing)
            self.tracker.rebalancer = Rebalancer(self.cluster, lambda: self.queueing.settings.rebalance)
            DistributedSchedulingService(
                self.cluster,
                self.masters,
                monitor,
                self.queueing,
                epoch=self.applications.limits.epoch,
                expiry_ms=expiry_ms,
            ).register_on(self.servers.masters)
        self.tracker.register_on(self.servers.tracker)
        self.admin.register_on(self.servers.admin)

    # ---- start and stop

    async def start(self) -> None:
        """Listen. Raises ConfigError when an address cannot be had."""
        settings = self.settings
        loop = asyncio.get_running_loop()
        self.store.start(loop)
        self.launcher = MasterLauncher(
            self.applications,
            self.tokens,
            self._clock,
            launches_max=settings.launches_max,
            timeout_s=settings.launch_timeout_s,
            user=settings.user,
        )
        heartbeat_s = settings.heartbeat_interval_ms / 1000
        self.web = RmWeb(
            self.cluster,
            self.reports,
            settings.web,
            access=self.access,
            explain=Explain(
                self.cluster, self.queueing, self.silent_masters, self.tracker.cores, heartbeat_s=heartbeat_s
            ),
            nodes=ExplainNodes(self.cluster, self.queueing, heartbeat_s=heartbeat_s),
            started_ms=self.started_ms,
        )
        await self._listen("yarn.resourcemanager.webapp.address", self.web.start())
        host = settings.web.address_host
        self.reports.web_address = f"{socket.gethostname() if host in WILDCARDS else host}:{self.web.port}"
        self.identities.roll(self._clock.now())
        self._recover()
        await self._listen("yarn.resourcemanager.address", self.servers.client.start())
        await self._listen("yarn.resourcemanager.scheduler.address", self.servers.masters.start())
        await self._listen("yarn.resourcemanager.resource-tracker.address", self.servers.tracker.start())
        await self._listen("yarn.resourcemanager.admin.address", self.servers.admin.start())
        self._ticker = loop.call_later(self._tick_s, self._tick)
        self.quality.start(self._tick_s)
        if self.retention is not None:
            self.retention.start()
        self.left_overs.start()
        log.info("%s", self.ready_line())
        log.info("%s", self.reach_line())

    async def _listen(self, key: str, starting: Coroutine[None, None, None]) -> None:
        try:
            await starting
        except (RpcError, OSError) as error:
            reason = f"cannot be listened on ({error})"
            raise self._conf.error(key, reason, "stop what holds the port, or give another address") from error

    async def stop(self) -> None:
        """Stop serving and close the store; what was acknowledged is in it."""
        if self._ticker is not None:
            self._ticker.cancel()
            self._ticker = None
        self.quality.stop()
        self.stages.stop()
        for server in self.servers.all():
            await server.stop()
        if self.web is not None:
            await self.web.stop()
        if self.launcher is not None:
            await self.launcher.stop()
        if self.retention is not None:
            await self.retention.stop()
        await self.left_overs.stop()
        if self.launcher is not None:
            self.queueing.estimates.save()
            self.queueing.records.save()
        if self.record is not None:
            await asyncio.to_thread(self.record.close)
        await asyncio.to_thread(self.store.close)

    def ready_line(self) -> str:
        """Say where it listens, for programs; only after start."""
        assert self.web is not None
        return self.servers.ready_line(self.settings, self.web.port)

    def reach_line(self) -> str:
        """Say what is open to whom, for people; only after start."""
        assert self.web is not None
        return self.servers.reach_line(self.web.address, self.access)

    def _recover(self) -> None:
        """Take over what the last ResourceManager left in the store."""
        for stored in self._recovered:
            app = _application(stored)
            self.applications.recover(app, stored)
        if self._recovered:
            log.info("%d applications recovered from the state store", len(self._recovered))
        self._recovered = ()

    def _tick(self) -> None:
        """Once a second: who is silent, which keys roll."""
        now = self._clock.now()
        checks = (
            self.nodes.check_expiry,
            self.nodes.check_silence,
            self.decommission.forget_untracked,
            self.preemption.check,
            self.tracker.cores.check,
            self.applications.check_expiry,
            self.updates.check_expiry,
            self.tokens.roll,
            self.queueing.estimates.save_due,
            self.queueing.records.save_due,
            self.queueing.check,
            self.identities.roll,
            self._large_pages.keep_up,
        )
        for check in checks:
            try:
                check(now)
            except Exception:
                log.exception("a periodic check failed; it is tried again")
        self._ticker = asyncio.get_running_loop().call_later(self._tick_s, self._tick)

    # ---- effects: the one place that acts

    def _perform(self, effect: Effect) -> None:
        """Carry an effect out, its outcome coming back as a later call on the event loop."""
        if isinstance(effect, LaunchMaster):
            assert self.launcher is not None
            # Later, so that a launch that fails at once does not end an attempt inside a decision.
            asyncio.get_running_loop().call_soon(self.launcher.launch, effect.attempt)
        else:
            self.store_writes.carry_out(effect)


def _application(stored: StoredApplication) -> Application:
    context = common.ApplicationSubmissionContext.FromString(stored.context)
    app = Application(stored.id, context, stored.user, stored.submitted_ms)
    app.launched_ms = stored.launched_ms
    app.take_use(stored.use)
    return app
