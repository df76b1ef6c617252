"""When an application that waits is starved."""

import math
from dataclasses import dataclass
from typing import Final

#: the part of ST for which a job may be passed here: what is sent then may be passed at its node as well
_HERE: Final = 0.75
#: a job may besides be later by this part of the time that it would have taken in order of arrival. So what is starved
#: takes five sevenths of a queue at most, and the order has the rest
_SLACK: Final = 0.4


@dataclass(frozen=True, slots=True)
class JobStarvation:
    """When an application that waits goes before all that are not starved."""

    #: ST, s; inf: never
    starve_s: float = 60.0
    #: ST_r: times the work that is left, where that is known
    starve_ratio: float = 10.0
    #: ST of queues that decide by stages, s: their policies let a job wait for what all of them gain
    stages_starve_s: float = 600.0

    def limit(self, waited_s: float, passed_s: float, work_s: float | None, *, by_stages: bool = False) -> float:
        """Return for how long others may have passed a job by now, s.

        `waited_s`: how long it has waited so far. `passed_s`: for how long of that others passed it. `work_s`: the work
        that is left, s, None where nobody knows. `by_stages`: its queue decides by stages.
        """
        ratio = self.starve_ratio * work_s if work_s is not None else math.inf
        starve_s = self.stages_starve_s if by_stages else self.starve_s
        threshold_s = min(starve_s, ratio) if ratio > 0 else starve_s
        return _HERE * threshold_s + _SLACK * (waited_s - passed_s)
