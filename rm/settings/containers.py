"""What the ResourceManager reads about opportunistic containers and container updates."""

from dataclasses import dataclass

from rm.scheduler.opportunistic.placing import OpportunisticLimits
from rm.scheduler.opportunistic.room import LoadOrder
from yaqd.config import Configuration

_ALLOCATION = "yarn.resourcemanager.opportunistic-container-allocation"
_DISTRIBUTED = "yarn.nodemanager.distributed-scheduling.enabled"
_QUEUING = "yarn.resourcemanager.nm-container-queuing"


@dataclass(frozen=True, slots=True)
class ContainerSettings:
    #: None: none are given
    opportunistic: OpportunisticLimits | None
    #: proxies at the nodes may place opportunistic containers
    distributed: bool
    #: updates go to the node without the master's help
    tells_nodes: bool

    @classmethod
    def read(cls, conf: Configuration) -> "ContainerSettings":
        """Raises ConfigError."""
        enabled, distributed = conf.get_bool(f"{_ALLOCATION}.enabled"), conf.get_bool(_DISTRIBUTED)
        if distributed and not enabled:
            raise conf.error(_DISTRIBUTED, "what it places are opportunistic containers", f"set {_ALLOCATION}.enabled")
        return cls(
            opportunistic=_opportunistic(conf) if enabled else None,
            distributed=distributed,
            tells_nodes=conf.get_bool("yarn.resourcemanager.auto-update.containers"),
        )


def _opportunistic(conf: Configuration) -> OpportunisticLimits:
    least = conf.get_int(f"{_QUEUING}.min-queue-length", minimum=0)
    return OpportunisticLimits(
        nodes_used=conf.get_int(f"{_ALLOCATION}.nodes-used", minimum=1),
        per_heartbeat=conf.get_int("yarn.resourcemanager.opportunistic.max.container-allocation.per.am.heartbeat"),
        order=LoadOrder[conf.get_choice(f"{_QUEUING}.load-comparator", LoadOrder.__members__)],
        choice_s=conf.get_duration_ms(f"{_QUEUING}.sorting-nodes-interval-ms", minimum=0) / 1000,
        deviations=conf.get_float(f"{_QUEUING}.queue-limit-stdev", minimum=0.0),
        queue_min=least,
        queue_max=conf.get_int(f"{_QUEUING}.max-queue-length", minimum=least),
    )
