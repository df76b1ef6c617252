"""How leaf queues whose ordering policy is `clotho` decide."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class StagesSpec:
    """`yaq.clotho.*`"""

    #: clotho, or a name in STAGES (yaqd.policies.clotho.policies)
    policy: str = "weighted-fair"
    #: of the learned policy, `.npz` in base64
    weights: str = field(default="", repr=False)
    #: least time between two decisions of a queue, s
    interval_s: float = 0.05
    #: what it costs a container to go to another job, s: one ends, and another starts
    move_s: float = 2.0
