"""How training jobs' cores are divided."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class QualitySpec:
    """`yaq.quality.*`"""

    #: a name in QUALITY (yaqd.policies.quality.policies)
    policy: str = "finish"
    #: by path of the leaf queue, where it is another one
    leaves: Mapping[str, str] = field(default_factory=dict)
    #: time between two divisions, s
    epoch_s: float = 1.0
    #: what a job gets is a multiple of this, thousandths of a core
    unit: int = 50
    #: thousandths of a core that are divided; None: what containers of other applications leave of the nodes' cores
    milli: int | None = None
    #: for how long a core that moves to a job with workers computes nothing, s: they start, and load their partitions
    move_s: float = 1.0
    #: how long a job may keep workers beyond what its cores allow, s
    hand_back_s: float = 15.0
