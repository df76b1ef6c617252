"""An exploration as somebody sees it who looks: its terms, its trials, their curves. Metrics are the user's own."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from yaqd.policies.explore.facts import Terms, Trials, TrialState, Why
from yaqd.policies.explore.metric import Metric

#: states by the words that users see
STATES: Mapping[TrialState, str] = {
    TrialState.FRESH: "FRESH",
    TrialState.RUNNING: "RUNNING",
    TrialState.PARKED: "WAITING",
    TrialState.ENDED: "ENDED",
}


@dataclass(frozen=True, slots=True)
class TrialView:
    """One trial. A fresh one has no values yet where its generator has not proposed it."""

    number: int
    params: Mapping[str, Any]
    state: TrialState
    #: the metric after each epoch
    values: tuple[float, ...] = ()
    #: slot time so far, s
    spent_s: float = 0.0
    why: Why | None = None
    value: float = math.nan
    bound: float = math.nan
    #: the slot in which it runs, or is held stopped
    slot: int | None = None
    #: held stopped in memory, not as a checkpoint
    is_stopped: bool = False
    #: times that it was begun, the first one among them
    begun: int = 0
    #: why its program failed; "" where it did not
    failure: str = ""
    #: epochs, from 1, whose reports break a limit
    broken: tuple[int, ...] = ()
    #: when it first began and when it reported last, s since the exploration's begin; NaN: it has not
    begun_s: float = math.nan
    reported_s: float = math.nan

    def best(self, metric: Metric) -> float | None:
        """Return its best metric that is a number and keeps the limits."""
        return best_of(self.values, self.broken, metric)


def best_of(values: Sequence[float], broken: Collection[int], metric: Metric) -> float | None:
    """Return the best of a trial's metrics that count as numbers and keep the limits; None: there is none."""
    numbers = ((epoch, value) for epoch, value in enumerate(values, 1) if math.isfinite(metric.risen(value)))
    known = [value for epoch, value in numbers if epoch not in broken]
    return (min if metric.is_better_low else max)(known, default=None)


@dataclass(frozen=True, slots=True)
class ExplorationView:
    """A whole exploration; times are seconds since its begin."""

    name: str
    metric_name: str
    metric: Metric
    #: in the user's orientation
    target: float | None
    kill: float | None
    epochs: int
    slots: int
    max_time_s: float
    policy: str
    generator: str
    level: str
    boundary: int
    now_s: float
    is_over: bool
    #: why it ended, in words
    ending: str = ""
    #: the trial that reached the target
    winner: int | None = None
    reached_s: float | None = None
    trials: tuple[TrialView, ...] = ()
    notices: tuple[str, ...] = ()
    #: what the application is called where it runs on a cluster
    application: str = ""
    #: the text of the space; "" where there is none
    space: str = ""
    #: conditions on other metrics, as they were written
    limits: tuple[str, ...] = ()
    #: when it began, epoch s; pauses before it was resumed count as none
    started: float = math.nan

    @property
    def terms(self) -> Terms:
        """What the policy was told."""
        risen = self.metric.risen
        return Terms(
            None if self.target is None else risen(self.target),
            self.epochs,
            self.slots,
            self.max_time_s if self.max_time_s > 0 else math.inf,
            None if self.kill is None else risen(self.kill),
            self.boundary,
        )

    @property
    def has_reported(self) -> bool:
        """Whether any trial has reported the metric."""
        return any(trial.values for trial in self.trials)

    @property
    def best(self) -> TrialView | None:
        """The trial that reached the target; without one the best that keeps the limits."""
        if self.winner is not None:
            return next((trial for trial in self.trials if trial.number == self.winner), None)
        known = [(found, trial) for trial in self.trials if (found := trial.best(self.metric)) is not None]
        if not known:
            return None
        return (min if self.metric.is_better_low else max)(known, key=lambda pair: pair[0])[1]

    def as_trials(self) -> Trials:
        """Return the trials as policies see them, so that predictions can be made of them."""
        trials, target = Trials(len(self.trials), max(1, self.epochs)), self.terms.target
        for row, trial in enumerate(self.trials):
            values = [
                self.metric.counted(value, target, held=epoch not in trial.broken)
                for epoch, value in enumerate(trial.values[: trials.epochs], 1)
            ]
            if values:
                trials.start(row)
                for value in values:
                    trials.report(row, value, trial.spent_s / len(values))
            trials.states[row] = trial.state
        return trials


def clean(values: Sequence[float]) -> list[float | None]:
    """Return numbers as JSON has them: NaN and infinities are null."""
    return [float(value) if np.isfinite(value) else None for value in values]
