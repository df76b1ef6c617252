"""The leaf queues of a simulated cluster, as a ResourceManager reads them."""

from typing import Final

from rm.scheduler.queues.spec import PREFIX, SchedulerSpec, parse_capacity_scheduler
from yaqd.sim.shape import ClusterShape, System

_DOMINANT: Final = "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"


def scheduler_spec(shape: ClusterShape, system: System) -> SchedulerSpec:
    """Return the queues as capacity-scheduler.xml would have them."""
    lines = {
        "resource-calculator": _DOMINANT,
        "root.queues": ",".join(name for name, _ in shape.queues),
        "maximum-applications": "1000000",
    }
    for name, percent in shape.queues:
        path = f"root.{name}"
        lines[f"{path}.capacity"] = str(percent)
        lines[f"{path}.user-limit-factor"] = "-1"
        lines[f"{path}.ordering-policy"] = system.job_order
    lines["per-node-heartbeat.maximum-offswitch-assignments"] = str(system.off_switch_max)
    lines.update(shape.scheduler)
    return parse_capacity_scheduler({PREFIX + name: text for name, text in lines.items()})
