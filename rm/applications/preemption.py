"""Carries out what the scheduler takes back: masters are told with their next answer, containers whose time is up are
killed with Hadoop's exit status and words.
"""

import logging
from dataclasses import dataclass
from typing import Final

from rm.applications.records import Attempt
from rm.applications.states import ContainerEvent, ContainerStage
from rm.cluster import Cluster
from rm.scheduler.decisions import Preempt, Warn
from rm.scheduler.events import MastersDue, PreemptionDue, PreemptionRefreshed
from rm.scheduler.preemption.spec import PreemptionSpec
from yaqd.config import Configuration
from yaqd.model import ANY_HOST, ContainerId, ExitStatus, Resource
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common

log = logging.getLogger(__name__)

PREEMPTED: Final = "Container preempted by scheduler"
_PREFIX: Final = "yarn.resourcemanager.monitor.capacity.preemption."
_POLICY: Final = "org.apache.hadoop.yarn.server.resourcemanager.monitor.capacity.ProportionalCapacityPreemptionPolicy"
#: Hadoop's Priority.UNDEFINED
_NO_PRIORITY: Final = -1


@dataclass(frozen=True, slots=True)
class PreemptionSettings:
    is_enabled: bool
    spec: PreemptionSpec

    @classmethod
    def read(cls, conf: Configuration) -> "PreemptionSettings":
        """Read the settings. Blocking. Raises ConfigError.

        Whether there is preemption stands in `yarn-site.xml`. How it is done may stand in `capacity-scheduler.xml` too,
        as in Hadoop.
        """
        key = "yarn.resourcemanager.scheduler.monitor.policies"
        policies = [p.strip() for p in (conf.get(key) or "").split(",") if p.strip()]
        enabled = conf.get_bool("yarn.resourcemanager.scheduler.monitor.enable")
        if enabled and [p for p in policies if p != _POLICY]:
            raise conf.error(key, "not supported", f"set it to {_POLICY}")

        how = conf.capacity_scheduler()

        def share(name: str) -> float:
            return how.get_float(_PREFIX + name, minimum=0.0)

        return cls(
            enabled and bool(policies),
            PreemptionSpec(
                interval_s=how.get_duration_ms(_PREFIX + "monitoring_interval", minimum=1) / 1000,
                wait_s=how.get_duration_ms(_PREFIX + "max_wait_before_kill", minimum=0) / 1000,
                per_round=share("total_preemption_per_round"),
                ignored_over_capacity=share("max_ignored_over_capacity"),
                natural_termination=share("natural_termination_factor"),
                observe_only=how.get_bool(_PREFIX + "observe_only"),
            ),
        )


class PreemptionMonitor:
    def __init__(self, cluster: Cluster, settings: PreemptionSettings) -> None:
        self._cluster = cluster
        self._settings = settings
        self._last = cluster.clock.now()

    @property
    def is_enabled(self) -> bool:
        return self._settings.is_enabled

    def refresh(self, settings: PreemptionSettings) -> None:
        """Go by these from now on, as Hadoop's SchedulingMonitorManager when queues are refreshed."""
        was_enabled = self._settings.is_enabled
        if settings != self._settings:
            log.info("preemption between queues is %s: %s", "on" if settings.is_enabled else "off", settings.spec)
        self._settings = settings
        starts_anew = not (was_enabled and settings.is_enabled)
        self._cluster.schedule(PreemptionRefreshed(settings.spec, starts_anew))

    def check(self, now: float) -> None:
        """Look, when it is time to: masters yield whether queues take from each other or not."""
        if now - self._last < self._settings.spec.interval_s:
            return
        self._last = now
        self._cluster.schedule(MastersDue())
        if self._settings.is_enabled:
            self._cluster.schedule(PreemptionDue())

    def warn(self, decision: Warn) -> None:
        """Have a container's master hear of it with its next answer."""
        container = self._cluster.containers.get(decision.container_id)
        if container is not None:
            log.info("%s: may be preempted: %s", container.id, decision.reason)
            if not container.allocation.is_master:
                container.attempt.notices[container.id] = container.allocation.resource

    def kill(self, decision: Preempt) -> None:
        """End a container whose time is up."""
        container = self._cluster.containers.get(decision.container_id)
        if container is None or container.stage is ContainerStage.ALLOCATED:
            return  # its master does not know it yet: ending it now would leave the two counting differently
        log.info("%s: preempted: %s", container.id, decision.reason)
        words = f"{PREEMPTED}: {decision.reason}" if decision.tells_why else PREEMPTED
        self._cluster.end_container(container, ContainerEvent.KILL, ExitStatus.PREEMPTED, words, kill=True)


def preemption_message(attempt: Attempt, least: Resource) -> common.PreemptionMessage | None:
    """Return what the master is told, once; None without news.

    It may give these containers back, or as much in others (Hadoop's negotiable contract). Hadoop's CapacityScheduler
    never fills the strict one.
    """
    told: dict[ContainerId, Resource] = {c: r for c, r in attempt.notices.items() if c in attempt.containers}
    attempt.notices = {}
    if not told:
        return None
    message = common.PreemptionMessage()
    for container_id in told:
        convert.put_container_id(message.contract.container.add().id, container_id)
    memory = sum(amount.memory_mb for amount in told.values())
    request = message.contract.resource.add().resource
    request.priority.priority = _NO_PRIORITY
    request.resource_name = ANY_HOST
    convert.put_resource(request.capability, least)
    request.num_containers = -(-memory // max(1, least.memory_mb))
    request.relax_locality = True
    return message
