"""What a local exploration knows of each trial beside its curve."""

import math
from dataclasses import dataclass, field

from tez_adapter.exploration.local.process import TrialProcess
from yaqd.ml.space import Params
from yaqd.policies.explore.facts import Why


@dataclass(slots=True)
class LocalTrial:
    """One trial. Times are seconds since the exploration's begin."""

    number: int
    params: Params | None = None
    #: in the user's orientation, by epoch
    values: list[float] = field(default_factory=list)
    why: Why = Why.NEXT
    value: float = math.nan
    bound: float = math.nan
    process: TrialProcess | None = None
    slot: int | None = None
    begun: int = 0
    killed: int = 0
    failure: str = ""
    #: epochs that were done when the process began, and those that it has reported since
    base: int = 0
    seen: int = 0
    #: the last iteration that this process reported
    iteration: int | None = None
    #: it was told to stop or to suspend; its process is ended then
    ends_at_s: float = math.inf
    #: metrics that were seen in its reports
    names: set[str] = field(default_factory=set)

    @property
    def holds_slot(self) -> bool:
        return self.process is not None and not self.process.is_stopped

    def judged(self, why: Why, value: float = math.nan, bound: float = math.nan) -> None:
        """Note why it runs, waits or has ended."""
        self.why, self.value, self.bound = why, value, bound
