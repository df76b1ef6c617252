"""What bounds the scheduler, and by which settings it goes."""

from dataclasses import dataclass
from enum import StrEnum

from rm.scheduler.asks.job_starvation import JobStarvation
from rm.scheduler.node_queues.spec import QueueingSpec
from rm.scheduler.opportunistic.placing import OpportunisticLimits
from rm.scheduler.preemption.spec import PreemptionSpec
from rm.scheduler.quality.spec import QualitySpec
from rm.scheduler.stages.spec import StagesSpec
from rm.scheduler.view.calculators import AllocationBounds


class Rules(StrEnum):
    """By which rules containers are given away at nodes' heartbeats."""

    YAQ = "yaq"
    #: those of Hadoop's CapacityScheduler; nothing is given at asks, nothing waits at nodes
    STOCK = "stock"


@dataclass(frozen=True, slots=True)
class SchedulerLimits:
    """Bounds and delays of the scheduler itself."""

    bounds: AllocationBounds
    #: resource requests one attempt may have pending
    ask_rows_max: int = 200_000
    decision_log_entries: int = 2_000
    #: how long an ask waits for a large enough node before one is reserved for it, s
    reserve_after_s: float = 5.0
    #: how long a reservation lasts before it is tried elsewhere, s
    reservation_s: float = 120.0
    #: largest part of the nodes reserved at a time
    reserved_share: float = 0.1
    #: None: asks for opportunistic containers get guaranteed ones
    opportunistic: OpportunisticLimits | None = None
    preemption: PreemptionSpec = PreemptionSpec()
    #: False gives containers away at nodes' heartbeats alone, as Hadoop's scheduler does by default
    at_asks: bool = True
    #: None: no node is given more than fits
    queueing: QueueingSpec | None = None
    #: where a leaf queue's ordering policy is an order of jobs
    job_starvation: JobStarvation = JobStarvation()
    #: how long masters alone keep a job from going on before one yields, s; inf: none does
    masters_yield_after_s: float = 20.0
    #: None: no cores are divided among training jobs
    quality: QualitySpec | None = None
    #: where a leaf queue's ordering policy is `clotho`
    stages: StagesSpec = StagesSpec()
    rules: Rules = Rules.YAQ
