"""The NodeManager's settings: every key it reads, typed and checked once at start."""

import os
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from nm.localizer.archives import ArchiveLimits
from nm.node_queue import NodeQueueSettings, OpportunisticPolicy
from nm.resources.gpu_settings import gpu_devices
from nm.resources.gpus import GPU
from nm.resources.memory_limit import MemoryLimits
from nm.shuffle.limits import ShuffleLimits
from yaqd.config import Configuration, compat
from yaqd.config.reach import WILDCARDS, is_loopback, is_set
from yaqd.config.resource_types import node_resources, resource_types
from yaqd.model import Resource
from yaqd.policies.queueing.order import Ordering
from yaqd.policies.queueing.wait import WAITS
from yaqd.policies.registry import UnknownPolicy

_HOSTNAME = "yarn.nodemanager.hostname"
_ADDRESS = "yarn.nodemanager.address"
_DEFAULT_MEMORY_MB = 8192
_DEFAULT_VCORES = 8
MB = 1 << 20


class ThrottleKind(Enum):
    """How applications are held to their cores, as yaq.nm.throttle names it."""

    #: by control groups where they can be bounded, else by signals
    AUTO = "auto"
    SIGNALS = "signals"
    #: they are not, and the node says so
    OFF = "off"


@dataclass(frozen=True, slots=True)
class NodeQueueOptions:
    """What the node's queue is made with."""

    #: containers that may wait for resources
    max_length: int
    #: False launches without looking at free resources
    by_resources: bool
    #: opportunistic containers that may wait; 0: none is taken
    opportunistic_max: int
    policy: OpportunisticPolicy
    #: as long as no ResourceManager orders other ones
    settings: NodeQueueSettings
    #: how it is estimated how long a newcomer would wait: a name in WAITS (yaqd.policies.queueing.wait)
    wait: str
    #: what a container is granted at least, as far as this node's configuration says
    smallest: Resource

    @classmethod
    def read(cls, conf: Configuration) -> "NodeQueueOptions":
        """Raises ConfigError."""
        return cls(
            max_length=conf.get_int("yaq.nm.queue.max-length", minimum=0),
            by_resources=conf.get_bool("yaq.nm.queue.enabled"),
            opportunistic_max=max(0, conf.get_int("yarn.nodemanager.opportunistic-containers-max-queue-length")),
            policy=_opportunistic_policy(conf),
            settings=read_queue_settings(conf),
            wait=read_wait_estimate(conf),
            smallest=Resource(
                conf.get_int("yarn.scheduler.minimum-allocation-mb", minimum=1),
                conf.get_int("yarn.scheduler.minimum-allocation-vcores", minimum=1),
            ),
        )


@dataclass(frozen=True, slots=True)
class NodeWays:
    """How the node reports and starts containers, as far as that differs from a stock node's ways."""

    #: heartbeat at once when a container ends, as stock nodes do (ContainerImpl's `sendOutofBandHeartBeat`)
    out_of_turn: bool
    #: for how long a program counts as starting, and is held where others start and the processors are busy
    start_moment_s: float

    @classmethod
    def read(cls, conf: Configuration) -> "NodeWays":
        """Raises ConfigError."""
        return cls(
            out_of_turn=conf.get_bool("yaq.nm.out-of-turn-heartbeats"),
            start_moment_s=_seconds(conf, "yaq.nm.containers.start-moment", 0),
        )


@dataclass(frozen=True, slots=True)
class NodeSettings:
    #: host that other processes reach this node by; part of the node's identity
    host: str
    #: interface that the servers listen on
    bind_host: str
    #: container service port; 0 takes a free one
    port: int
    web_port: int
    shuffle_port: int
    #: the ResourceManager's tracker service
    tracker: tuple[str, int]
    #: offered to containers
    resource: Resource
    #: numbers of the GPUs among it
    gpus: tuple[int, ...]
    local_dirs: tuple[Path, ...]
    log_dirs: tuple[Path, ...]
    env_whitelist: tuple[str, ...]
    admin_env: Mapping[str, str]
    user_home: str
    heartbeat_timeout_s: float
    own_ways: NodeWays
    #: under a ResourceManager with `yaq.compat=stock`: as its files say, else as a stock node does
    stock_ways: NodeWays
    queue: NodeQueueOptions
    kill_delay_s: float
    #: a failed container is not run again sooner
    retry_interval_min_s: float
    monitor_interval_s: float
    memory_limits: MemoryLimits
    stderr_tail_bytes: int
    #: seconds a finished container's work folder stays
    delete_delay_s: float
    log_retain_s: float
    debug_copies: bool
    disk_check_interval_s: float
    #: percent of a disk's bytes in use from which it takes no containers
    disk_max_percent: float
    cache_target_bytes: int
    localizer_threads: int
    archive_limits: ArchiveLimits
    #: each container has a control group where cgroup v2 can be written
    control_groups: bool
    #: applications are held to the cores that the ResourceManager gives them
    throttle: ThrottleKind
    #: tasks run in the kernel's scheduling class for batch work
    batch_class: bool
    warm_start: bool
    warm_preload: tuple[str, ...]
    shuffle_limits: ShuffleLimits
    shuffle_index_cache_bytes: int

    @classmethod
    def read(cls, conf: Configuration) -> "NodeSettings":
        """Raises ConfigError with the key, its place and the remedy. Blocking."""
        host, bind_host, port = _place(conf)
        _, web_port = conf.get_address("yarn.nodemanager.webapp.address")
        resource, gpus = _resource(conf)
        return cls(
            host=host,
            bind_host=bind_host,
            port=port,
            web_port=web_port,
            shuffle_port=conf.get_int("mapreduce.shuffle.port", minimum=0, maximum=65535),
            tracker=_tracker(conf, host),
            resource=resource,
            gpus=gpus,
            local_dirs=_folders(conf, "yarn.nodemanager.local-dirs"),
            log_dirs=_folders(conf, "yarn.nodemanager.log-dirs"),
            env_whitelist=(*conf.get_list("yarn.nodemanager.env-whitelist"), "YAQ_PYTHON"),
            admin_env=_assignments(conf, "yarn.nodemanager.admin-env"),
            user_home=conf.get("yarn.nodemanager.user-home-dir") or "/home/",
            heartbeat_timeout_s=_seconds(conf, "yaq.nm.heartbeat.timeout-ms", 100),
            own_ways=NodeWays.read(conf),
            stock_ways=NodeWays.read(conf.with_overrides({compat.KEY: compat.STOCK})),
            queue=NodeQueueOptions.read(conf),
            retry_interval_min_s=_seconds(conf, "yarn.nodemanager.container-retry-minimum-interval-ms", 0),
            kill_delay_s=_seconds(conf, "yarn.nodemanager.sleep-delay-before-sigkill.ms", 0),
            monitor_interval_s=_seconds(conf, "yarn.nodemanager.resource-monitor.interval-ms", 50),
            memory_limits=_memory_limits(conf),
            stderr_tail_bytes=conf.get_size_bytes("yarn.nodemanager.container.stderr.tail.bytes", minimum=0),
            delete_delay_s=conf.get_int("yarn.nodemanager.delete.debug-delay-sec", minimum=0),
            log_retain_s=conf.get_int("yarn.nodemanager.log.retain-seconds", minimum=0),
            debug_copies=conf.get_bool("yarn.nodemanager.log-container-debug-info.enabled"),
            disk_check_interval_s=_seconds(conf, "yarn.nodemanager.disk-health-checker.interval-ms", 10),
            disk_max_percent=conf.get_float(
                "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage", minimum=0, maximum=100
            ),
            cache_target_bytes=conf.get_int("yarn.nodemanager.localizer.cache.target-size-mb", minimum=0) * MB,
            localizer_threads=conf.get_int("yarn.nodemanager.localizer.fetch.thread-count", minimum=1, maximum=64),
            archive_limits=_archive_limits(conf),
            control_groups=conf.get_bool("yaq.nm.containers.cgroups"),
            throttle=_throttle(conf),
            batch_class=conf.get_bool("yaq.nm.containers.batch-class"),
            warm_start=conf.get_bool("yaq.nm.warm-start.enabled"),
            warm_preload=tuple(conf.get_list("yaq.nm.warm-start.preload")),
            shuffle_limits=_shuffle_limits(conf),
            shuffle_index_cache_bytes=conf.get_int("mapreduce.reduce.shuffle.indexcache.mb", minimum=0) * MB,
        )


def node_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the daemon's own environment as containers may inherit it; YAQ_PYTHON defaults to this interpreter."""
    return {"YAQ_PYTHON": sys.executable, **environ}


def _place(conf: Configuration) -> tuple[str, str, int]:
    """By which name others reach the node, where it listens, and the port of its container service. Blocking."""
    host, port = conf.get_address(_ADDRESS)
    bind_host = (conf.get("yarn.nodemanager.bind-host") or "").strip() or host
    is_unnamed = not is_set(conf, _HOSTNAME, _ADDRESS) and not is_loopback(bind_host)
    return (socket.gethostname() or "localhost") if is_unnamed or host in WILDCARDS else host, bind_host, port


def _tracker(conf: Configuration, host: str) -> tuple[str, int]:
    """Raises ConfigError where that ResourceManager could not reach this node. Blocking."""
    key = "yarn.resourcemanager.resource-tracker.address"
    tracker = conf.get_address(key)
    is_here = tracker[0] in WILDCARDS or is_loopback(tracker[0])
    if not is_here and is_loopback(host) and not is_set(conf, _HOSTNAME, _ADDRESS):
        problem = f"is this machine alone, and the ResourceManager is at {tracker[0]}, which could not reach this node"
        remedy = "set it to the name that others reach this machine by (0.0.0.0: its own name, and all its addresses)"
        raise conf.error(_HOSTNAME, problem, remedy)
    return tracker


def _resource(conf: Configuration) -> tuple[Resource, tuple[int, ...]]:
    """What the node offers, and which GPUs that is."""
    detect = conf.get_bool("yarn.nodemanager.resource.detect-hardware-capabilities")
    memory = conf.get_int("yarn.nodemanager.resource.memory-mb", minimum=-1)
    vcores = conf.get_int("yarn.nodemanager.resource.cpu-vcores", minimum=-1)
    if memory < 0:
        physical_mb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // MB
        memory = physical_mb * 8 // 10 if detect else _DEFAULT_MEMORY_MB
    if vcores < 0:
        vcores = len(os.sched_getaffinity(0)) if detect else _DEFAULT_VCORES
    types = resource_types(conf)
    further = node_resources(conf, types)
    gpus = gpu_devices(conf, [kind.name for kind in types], further.pop(GPU, 0))
    if gpus:
        further[GPU] = len(gpus)
    return Resource(memory, vcores, further), gpus


def _seconds(conf: Configuration, key: str, minimum_ms: int) -> float:
    return conf.get_duration_ms(key, minimum=minimum_ms) / 1000


def _memory_limits(conf: Configuration) -> MemoryLimits:
    return MemoryLimits(
        check_physical=conf.get_bool("yarn.nodemanager.pmem-check-enabled"),
        check_virtual=conf.get_bool("yarn.nodemanager.vmem-check-enabled"),
        virtual_ratio=conf.get_float("yarn.nodemanager.vmem-pmem-ratio", minimum=1),
    )


def _archive_limits(conf: Configuration) -> ArchiveLimits:
    return ArchiveLimits(
        max_bytes=conf.get_size_bytes("yaq.nm.localizer.archive.max-bytes", minimum=1),
        max_entries=conf.get_int("yaq.nm.localizer.archive.max-entries", minimum=1),
    )


def _shuffle_limits(conf: Configuration) -> ShuffleLimits:
    return ShuffleLimits(
        connections_max=conf.get_int("mapreduce.shuffle.max.connections", minimum=0),
        keep_alive=conf.get_bool("mapreduce.shuffle.connection-keep-alive.enable"),
        keep_alive_timeout_s=conf.get_int("mapreduce.shuffle.connection-keep-alive.timeout", minimum=1),
    )


def _opportunistic_policy(conf: Configuration) -> OpportunisticPolicy:
    key = "yarn.nodemanager.opportunistic-containers-queue-policy"
    name = (conf.get(key) or "").strip().upper()
    if name not in OpportunisticPolicy.__members__:
        raise conf.error(key, f"{name} is no policy", f"write one of {', '.join(OpportunisticPolicy.__members__)}")
    return OpportunisticPolicy[name]


def _throttle(conf: Configuration) -> ThrottleKind:
    key = "yaq.nm.throttle"
    name = (conf.get(key) or "").strip().lower()
    kinds = {kind.value: kind for kind in ThrottleKind}
    if name not in kinds:
        raise conf.error(
            key, f"{name} is no way to hold applications to their cores", f"write one of {', '.join(kinds)}"
        )
    return kinds[name]


def read_queue_settings(conf: Configuration) -> NodeQueueSettings:
    """Raises ConfigError."""
    key = "yaq.nm.queue.order"
    strategy = (conf.get(key) or "").strip().lower()
    if strategy == "fifo":
        return NodeQueueSettings()
    starve_s = conf.get_duration_ms("yaq.nm.queue.starve-ms", minimum=0) / 1000
    try:
        return NodeQueueSettings(ordering=Ordering(strategy, starve_s))
    except UnknownPolicy as error:
        raise conf.error(key, str(error), "write one of them") from None


def read_wait_estimate(conf: Configuration) -> str:
    """Raises ConfigError."""
    return conf.get_named("yaq.nm.queue.wait-estimate", WAITS.check)


def _folders(conf: Configuration, key: str) -> tuple[Path, ...]:
    folders = []
    for text in conf.get_list(key):
        path = Path(text.removeprefix("file://"))
        if not path.is_absolute():
            raise conf.error(key, f"{text} is not an absolute path", "give the full path")
        folders.append(path)
    if not folders:
        raise conf.error(key, "names no folder", "name at least one")
    return tuple(folders)


def _assignments(conf: Configuration, key: str) -> dict[str, str]:
    pairs = {}
    for item in conf.get_list(key):
        name, separator, value = item.partition("=")
        if not separator or not name.isidentifier():
            raise conf.error(key, f"{item} is not NAME=VALUE")
        pairs[name] = value
    return pairs
