"""One call that runs a workload in a simulated cluster, and all the names that a caller needs."""

import math
from collections.abc import Callable
from typing import Final

from yaqd.sim.central import Central
from yaqd.sim.distributed import Distributed
from yaqd.sim.model import Model
from yaqd.sim.results import JobResult, SimResult
from yaqd.sim.scheduling.service import BUSY_SYSTEMS
from yaqd.sim.shape import ESTIMATES, SYSTEMS, ClusterShape, NodeFailure, Stuck, System, host_name
from yaqd.sim.sparrow import Sparrow
from yaqd.sim.workload import Workload, check
from yaqd.sim.yaq_c import YaqC

__all__ = [
    "ESTIMATES",
    "SYSTEMS",
    "ClusterShape",
    "JobResult",
    "NodeFailure",
    "SimResult",
    "Stuck",
    "System",
    "host_name",
    "simulate",
]

_MODELS: Final[dict[str, type[Model]]] = {
    "yarn": Central,
    "yarn-opportunistic": Central,
    "yaq-c": YaqC,
    "yaq-d": Distributed,
    "mercury": Distributed,
    "sparrow": Sparrow,
}


def simulate(
    shape: ClusterShape,
    workload: Workload,
    system: System,
    seed: int = 0,
    *,
    horizon_s: float = math.inf,
    skip_idle: bool = True,
    clock: Callable[[], int] | None = None,
) -> SimResult:
    """Run the workload to its end, or until `horizon_s`.

    `skip_idle=False` plays every heartbeat and changes nothing but the time it takes. With a `clock`, ns, the
    count `decision_ns` has what the ResourceManager's decisions took. Raises `ValueError` for a workload that
    no cluster could run and `Stuck` for one that this cluster cannot finish.
    """
    check(workload)
    if shape.calls.beat_s and (system.name not in BUSY_SYSTEMS or shape.failures):
        names = " and ".join(BUSY_SYSTEMS)
        raise ValueError(f"a ResourceManager whose calls take time is simulated for {names}, without failures of nodes")
    if shape.lived.hears_by_polls and not issubclass(_MODELS[system.name], Central):
        raise ValueError(f"hears_by_polls is for systems whose managers poll a ResourceManager, not for {system.name}")
    model = _MODELS[system.name](shape, workload, system, seed)
    if clock is None:
        return model.run(horizon_s=horizon_s, skip_idle=skip_idle)
    model.time_decisions(clock)
    result = model.run(horizon_s=horizon_s, skip_idle=skip_idle)
    result.counts["decision_ns"] = model.decided_ns()
    return result
