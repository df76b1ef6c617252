"""What the proxy reads from the configuration."""

import math
from dataclasses import dataclass

from nm.distributed import DistributedLimits
from yaqd.config import Configuration
from yaqd.policies.queueing.place_scores import PLACES, Affinity

_ENABLED = "yarn.nodemanager.amrmproxy.enabled"
_DISTRIBUTED = "yarn.nodemanager.distributed-scheduling.enabled"
_ADDRESS = "yarn.nodemanager.amrmproxy.address"
_RM = "yarn.resourcemanager.scheduler.address"
_ACTIVATION_FACTOR = 1.5


@dataclass(frozen=True, slots=True)
class ProxySettings:
    #: interface and port it listens on; port 0 takes a free one
    address: tuple[str, int]
    #: the ResourceManager's scheduler service
    rm_address: tuple[str, int]
    #: opportunistic containers are placed here; False passes everything on
    distributed: bool
    limits: DistributedLimits
    #: a new key for the masters' tokens after this, s
    key_interval_s: float
    key_activation_s: float
    #: a master that is silent for so long is gone, s
    master_expiry_s: float

    @classmethod
    def read(cls, conf: Configuration) -> "ProxySettings | None":
        """Reads the settings; None where the configuration wants no proxy. Raises ConfigError."""
        distributed = conf.get_bool(_DISTRIBUTED)
        if not (distributed or conf.get_bool(_ENABLED)):
            return None
        address, rm_address = conf.get_address(_ADDRESS), conf.get_address(_RM)
        if address == rm_address:
            raise conf.error(_RM, "is this node's own proxy", "give the NodeManager the ResourceManager's address")
        interval = conf.get_duration_ms("yarn.resourcemanager.am-rm-tokens.master-key-rolling-interval-secs", minimum=1)
        expiry = conf.get_duration_ms("yarn.am.liveness-monitor.expiry-interval-ms", minimum=1)
        return cls(
            address=address,
            rm_address=rm_address,
            distributed=distributed,
            limits=read_limits(conf),
            key_interval_s=interval / 1000,
            key_activation_s=min(_ACTIVATION_FACTOR * expiry, interval / 2) / 1000,
            master_expiry_s=expiry / 1000,
        )


def read_limits(conf: Configuration) -> DistributedLimits:
    """Raises ConfigError."""
    wait_ms = conf.get_int("yaq.distributed.max-wait-ms", minimum=-1)
    return DistributedLimits(
        per_beat=conf.get_int("yarn.resourcemanager.opportunistic.max.container-allocation.per.am.heartbeat"),
        tasks_max=conf.get_int("yaq.distributed.max-tasks-per-job", minimum=-1),
        wait_max_s=wait_ms / 1000 if wait_ms >= 0 else math.inf,
        typical_s=conf.get_int("yaq.distributed.typical-task-ms", minimum=1) / 1000,
        # the ResourceManager's keys: there is one policy for who waits where
        placement=conf.get_named("yaq.queue.placement", PLACES.check),
        affinity=Affinity(interference=conf.get_float("yaq.queue.interference", minimum=0.0)),
    )
