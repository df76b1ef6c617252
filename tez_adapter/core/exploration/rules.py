"""What an exploration keeps to, beside what its policy decides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, nan

from yaqd.policies.explore.facts import Terms
from yaqd.policies.explore.metric import Limit, Metric, Solved


@dataclass(frozen=True, slots=True)
class Rules:
    #: as the policy has them, oriented to rise
    terms: Terms
    metric: Metric
    metric_name: str
    limits: tuple[Limit, ...] = ()
    solved: Solved | None = None
    #: that is looked for, in the user's orientation; NaN: nobody said one
    goal: float = nan
    #: a trial that runs makes a checkpoint so often, s
    checkpoint_every_s: float = inf
    #: a program that was told to stop is killed after so long, s
    stop_wait_s: float = 10.0
    #: one that was told to suspend, s
    suspend_wait_s: float = 60.0
    #: how long the end of an exploration waits for checkpoints of what runs, s
    end_wait_s: float = 30.0
    #: processes of one trial that may be lost before it has failed
    losses_max: int = 3
    #: memory of the trials that stand stopped in one container, MB
    frozen_mb: int = 0
    #: disk for the images of such trials in one container, MB
    images_mb: int = 0
    #: stop process groups in place also where there is a way to make a checkpoint
    freezes_first: bool = False
    #: the policy takes metrics to lie in 0 to 1
    takes_unit: bool = False
    #: trials in a row that fail before anything was reported; then the exploration has failed
    hopeless: int = 5

    def keeps_limits(self, metrics: Mapping[str, float]) -> bool:
        """Return whether a report keeps the limits."""
        return all(limit.holds(metrics) for limit in self.limits)

    def counted(self, value: float, metrics: Mapping[str, float]) -> float:
        """Return a report's metric as policies see it (`Metric.counted`)."""
        return self.metric.counted(value, self.terms.target, held=self.keeps_limits(metrics))

    def is_reached(self, shown: Sequence[float]) -> bool:
        """Return whether a trial whose last report keeps the limits is what is looked for. `shown`: its metrics."""
        if self.solved is not None:
            last = shown[-self.solved.window :]
            return all(isfinite(self.metric.risen(value)) for value in last) and self.solved.holds(last)
        risen, target = self.metric.risen(shown[-1]), self.terms.target
        return target is not None and isfinite(risen) and risen >= target
