"""What the ResourceManager reads from its configuration: every key, typed and checked, once at the start."""

import getpass
import logging
import math
from dataclasses import dataclass
from pathlib import Path

from rm.applications.preemption import PreemptionSettings
from rm.applications.tags import TagLimits
from rm.node_queues.orderings import check_names
from rm.nodes.hosts import HostLists, read_host_lists
from rm.scheduler.limits import SchedulerLimits
from rm.scheduler.quality.spec import QualitySpec
from rm.scheduler.queues.spec import PREFIX, QueueConfigError, SchedulerSpec, parse_capacity_scheduler
from rm.scheduler.stages.spec import StagesSpec
from rm.scheduler.view.calculators import AllocationBounds
from rm.services.placement import PlacementSettings
from rm.settings.containers import ContainerSettings
from rm.settings.quality import read_quality
from rm.settings.queues import QueueSettings
from rm.settings.stages import read_stages, verify_weights
from rm.web.settings import RmWebSettings
from yaqd.config import ConfigError, Configuration
from yaqd.config.resource_types import ResourceType, require_dominant, resource_types
from yaqd.model import Resource
from yaqd.security.delegation import DelegationLimits
from yaqd.web.server import HttpLimits

log = logging.getLogger(__name__)

_SCHEDULER_CLASS = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler"


@dataclass(frozen=True, slots=True)
class RmAddresses:
    """Host and port of each RPC server."""

    client: tuple[str, int]
    scheduler: tuple[str, int]
    tracker: tuple[str, int]
    admin: tuple[str, int]


@dataclass(frozen=True, slots=True)
class KeyIntervals:
    """How often the keys that tokens are signed with are made anew, s."""

    container_s: float
    nm_s: float
    amrm_s: float


@dataclass(frozen=True, slots=True)
class RmSettings:
    addresses: RmAddresses
    web: RmWebSettings
    #: listen here instead of on the addresses' own hosts; empty: on those
    bind_host: str
    cluster_id: str
    #: the user this daemon runs as
    user: str
    bounds: AllocationBounds
    #: countable resources beyond memory and cores
    resource_types: tuple[ResourceType, ...]
    attempts_max: int
    completed_max: int
    #: highest priority that an application can have
    priority_max: int
    tag_limits: TagLimits
    heartbeat_interval_ms: int
    #: `yaq.compat` is stock, which nodes are told
    is_stock: bool
    node_expiry_s: float
    master_expiry_s: float
    allocation_expiry_s: float
    key_intervals: KeyIntervals
    #: masters started at a time
    launches_max: int
    launch_timeout_s: float
    #: None: in memory only
    state_store: Path | None
    reserve_after_s: float
    reservation_s: float
    reserved_share: float
    ask_rows_max: int
    containers: ContainerSettings
    decision_log_entries: int
    #: where the scheduler is recorded; None: nowhere
    scheduler_record: Path | None
    #: nodes upload logs
    log_aggregation: bool
    log_status_timeout_ms: int
    delegation: DelegationLimits
    acls: bool
    #: who may administrate; `*` means everybody
    administrators: str
    #: application lists leave out what the caller may not see
    only_viewable: bool
    preemption: PreemptionSettings
    #: how long masters alone keep a job from going on before one yields, s; inf: none does
    masters_yield_after_s: float
    queues: QueueSettings
    #: how cores of training jobs are divided; None: they are not
    quality: QualitySpec | None
    #: how leaf queues decide whose ordering policy is `clotho`
    stages: StagesSpec
    placement: PlacementSettings
    #: hosts that may, or may not, be nodes
    hosts: HostLists
    #: how long a drained node may take to end what it runs, s; negative: for ever
    drain_timeout_s: int
    #: how long a node that went and is in no list of hosts any more is still listed
    untracked_s: float

    @classmethod
    def read(cls, conf: Configuration) -> "RmSettings":
        """Raises ConfigError, which names key, value, file and line."""
        _check_scheduler_class(conf)
        return cls(
            addresses=_addresses(conf),
            web=_web(conf),
            bind_host=(conf.get("yarn.resourcemanager.bind-host") or "").strip(),
            cluster_id=(conf.get("yarn.resourcemanager.cluster-id") or "").strip(),
            user=getpass.getuser(),
            bounds=_bounds(conf, types := resource_types(conf)),
            resource_types=types,
            attempts_max=conf.get_int("yarn.resourcemanager.am.max-attempts", minimum=1),
            completed_max=conf.get_int("yarn.resourcemanager.max-completed-applications", minimum=0),
            priority_max=conf.get_int("yarn.cluster.max-application-priority"),
            tag_limits=_tag_limits(conf),
            heartbeat_interval_ms=conf.get_duration_ms(
                "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms", minimum=1
            ),
            is_stock=conf.is_stock,
            node_expiry_s=_seconds(conf, "yarn.nm.liveness-monitor.expiry-interval-ms"),
            master_expiry_s=_seconds(conf, "yarn.am.liveness-monitor.expiry-interval-ms"),
            allocation_expiry_s=_seconds(conf, "yarn.resourcemanager.rm.container-allocation.expiry-interval-ms"),
            key_intervals=_key_intervals(conf),
            launches_max=conf.get_int("yarn.resourcemanager.amlauncher.thread-count", minimum=1),
            launch_timeout_s=_seconds(conf, "yaq.rm.launch.timeout-ms"),
            state_store=_state_store(conf),
            reserve_after_s=_seconds(conf, "yaq.rm.scheduler.reserve-after-ms"),
            reservation_s=_seconds(conf, "yaq.rm.scheduler.reservation-ms"),
            reserved_share=conf.get_float("yaq.rm.scheduler.reserved-share", minimum=0.0, maximum=1.0),
            ask_rows_max=conf.get_int("yaq.rm.scheduler.resource-requests-max", minimum=1),
            containers=ContainerSettings.read(conf),
            decision_log_entries=conf.get_int("yaq.rm.scheduler.decision-log-entries", minimum=1),
            scheduler_record=Path(record) if (record := conf.get("yaq.rm.scheduler.record")) else None,
            log_aggregation=conf.get_bool("yarn.log-aggregation-enable"),
            log_status_timeout_ms=conf.get_duration_ms("yarn.log-aggregation-status.time-out.ms", minimum=0),
            delegation=_delegation(conf),
            acls=conf.get_bool("yarn.acl.enable"),
            administrators=conf.get("yarn.admin.acl") or "",
            only_viewable=conf.get_bool("yarn.webapp.filter-entity-list-by-user"),
            placement=PlacementSettings.read(conf),
            preemption=PreemptionSettings.read(conf),
            masters_yield_after_s=_yield_after_s(conf),
            queues=QueueSettings.read(conf),
            quality=read_quality(conf),
            stages=read_stages(conf),
            hosts=read_host_lists(conf),
            drain_timeout_s=conf.get_int("yarn.resourcemanager.nodemanager-graceful-decommission-timeout-secs"),
            untracked_s=_seconds(conf, "yarn.resourcemanager.node-removal-untracked.timeout-ms"),
        )

    def listen_host(self, address: tuple[str, int]) -> str:
        return self.bind_host or address[0]

    def scheduler_limits(self) -> SchedulerLimits:
        """Gathers what the scheduler is told of these."""
        return SchedulerLimits(
            self.bounds,
            ask_rows_max=self.ask_rows_max,
            decision_log_entries=self.decision_log_entries,
            reserve_after_s=self.reserve_after_s,
            reservation_s=self.reservation_s,
            reserved_share=self.reserved_share,
            opportunistic=self.containers.opportunistic,
            preemption=self.preemption.spec,
            quality=self.quality,
            stages=self.stages,
            at_asks=self.queues.at_asks,
            rules=self.queues.rules,
            queueing=self.queues.spec,
            job_starvation=self.queues.job_starvation,
            masters_yield_after_s=self.masters_yield_after_s,
        )


def _check_scheduler_class(conf: Configuration) -> None:
    key = "yarn.resourcemanager.scheduler.class"
    if conf.get(key, _SCHEDULER_CLASS) != _SCHEDULER_CLASS:
        raise conf.error(key, "not supported", f"set it to {_SCHEDULER_CLASS}")


def _seconds(conf: Configuration, key: str) -> float:
    return conf.get_duration_ms(key, minimum=1) / 1000


def _addresses(conf: Configuration) -> RmAddresses:
    return RmAddresses(
        client=conf.get_address("yarn.resourcemanager.address"),
        scheduler=conf.get_address("yarn.resourcemanager.scheduler.address"),
        tracker=conf.get_address("yarn.resourcemanager.resource-tracker.address"),
        admin=conf.get_address("yarn.resourcemanager.admin.address"),
    )


def _tag_limits(conf: Configuration) -> TagLimits:
    return TagLimits(
        conf.get_int("yarn.resourcemanager.application.max-tags", minimum=0),
        conf.get_int("yarn.resourcemanager.application.max-tag.length", minimum=1),
    )


def _key_intervals(conf: Configuration) -> KeyIntervals:
    return KeyIntervals(
        container_s=_seconds(conf, "yarn.resourcemanager.container-tokens.master-key-rolling-interval-secs"),
        nm_s=_seconds(conf, "yarn.resourcemanager.nm-tokens.master-key-rolling-interval-secs"),
        amrm_s=_seconds(conf, "yarn.resourcemanager.am-rm-tokens.master-key-rolling-interval-secs"),
    )


def _state_store(conf: Configuration) -> Path | None:
    store = (conf.get("yaq.rm.state-store.path") or "").strip()
    return None if store in ("", "memory") else Path(store)


def _delegation(conf: Configuration) -> DelegationLimits:
    return DelegationLimits(
        conf.get_duration_ms("yarn.resourcemanager.delegation.key.update-interval", minimum=1),
        conf.get_duration_ms("yarn.resourcemanager.delegation.token.renew-interval", minimum=1),
        conf.get_duration_ms("yarn.resourcemanager.delegation.token.max-lifetime", minimum=1),
    )


def _web(conf: Configuration) -> RmWebSettings:
    host, port = conf.get_address("yarn.resourcemanager.webapp.address")
    return RmWebSettings(
        host=(conf.get("yarn.resourcemanager.bind-host") or "").strip() or host,
        port=port,
        address_host=host,
        limits=HttpLimits(
            connections_max=conf.get_int("yaq.web.connections-max", minimum=1),
            idle_timeout_s=conf.get_duration_ms("hadoop.http.idle_timeout.ms", minimum=1) / 1000,
        ),
        static_user=(conf.get("hadoop.http.staticuser.user") or "").strip() or "dr.who",
        only_viewable=conf.get_bool("yarn.webapp.filter-entity-list-by-user"),
        proxy_timeout_s=conf.get_duration_ms("yarn.resourcemanager.proxy.connection.timeout", minimum=1) / 1000,
    )


def _yield_after_s(conf: Configuration) -> float:
    key = "yaq.rm.scheduler.masters-yield-after"
    if (conf.get(key) or "").strip() == "-1":
        return math.inf
    return conf.get_duration_ms(key, minimum=0) / 1000


def _bounds(conf: Configuration, types: tuple[ResourceType, ...]) -> AllocationBounds:
    least = Resource(
        conf.get_int("yarn.scheduler.minimum-allocation-mb", minimum=1),
        conf.get_int("yarn.scheduler.minimum-allocation-vcores", minimum=1),
        {kind.name: kind.minimum for kind in types if kind.minimum},
    )
    most = Resource(
        conf.get_int("yarn.scheduler.maximum-allocation-mb", minimum=least.memory_mb),
        conf.get_int("yarn.scheduler.maximum-allocation-vcores", minimum=least.vcores),
        {kind.name: kind.maximum for kind in types},
    )
    return AllocationBounds(least, most)


@dataclass(frozen=True, slots=True)
class RefreshedSettings:
    """What a refresh of the queues takes from the files as they are then."""

    spec: SchedulerSpec
    preemption: PreemptionSettings
    queues: QueueSettings
    quality: QualitySpec | None
    stages: StagesSpec


def read_refreshed(conf: Configuration) -> RefreshedSettings:
    """Reads what a refresh of the queues takes from the files as they are now. Blocking. Raises ConfigError.

    What does nothing there is logged, as at the start.
    """
    from yaqd.config.check import worth_logging

    fresh = conf.reread()
    verify_weights(fresh)
    queues = QueueSettings.read(fresh)
    found = RefreshedSettings(
        read_queues(fresh), PreemptionSettings.read(fresh), queues, read_quality(fresh), read_stages(fresh)
    )
    for finding in worth_logging(fresh):
        log.warning("%s", finding)
    return found


def read_queues(conf: Configuration) -> SchedulerSpec:
    """Reads the queues as `capacity-scheduler.xml` has them now. Blocking. Raises ConfigError."""
    queues = conf.capacity_scheduler()
    properties = {key: value for key, value in queues.items() if key.startswith(PREFIX)}
    try:
        spec = parse_capacity_scheduler(properties, QueueSettings.read(conf).job_order)
        if not spec.calculator.counts_vcores:
            require_dominant(conf, queues)
        check_names(conf, (queue.path for queue in spec.root.walk() if not queue.children))
        return spec
    except QueueConfigError as error:
        if error.key in queues:
            raise queues.error(error.key, "cannot be used", error.remedy) from None
        # what is missing stands nowhere: the list that names the queue does
        parent = error.key.removeprefix(PREFIX).rpartition(".")[0].rpartition(".")[0]
        origin = queues.origin(f"{PREFIX}{parent}.queues")
        file, line = (origin.file, origin.line) if origin is not None else (None, None)
        raise ConfigError(error.remedy, key=error.key, value=error.value, file=file, line=line) from None
