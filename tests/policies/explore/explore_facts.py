"""Trials for tests of exploration policies, and foresight that is exact or given."""

from collections.abc import Mapping, Sequence

import numpy as np

from yaqd.policies.curves.samples import Floats, Ints
from yaqd.policies.explore.facts import Action, ExplorePolicy, Terms, Trials, TrialState, Verdict

EPOCHS = 10


def terms(target: float | None = 0.9, epochs: int = EPOCHS, slots: int = 2, **more: float | int | None) -> Terms:
    """Return terms with a boundary of 5 epochs where nothing else is said."""
    return Terms(target, epochs, slots, **({"boundary": 5} | more))  # type: ignore[arg-type]


class TrueForesight:
    """Knows the curves: the chance of a target is 1 from the epoch on that has it, 0 before."""

    def __init__(self, curves: Floats) -> None:
        self._curves = curves

    def reached(self, trials: Trials, numbers: Ints, target: float) -> Floats:
        return np.maximum.accumulate(self._curves[numbers] >= target, axis=1).astype(np.float64)

    def ends_above(self, trials: Trials, numbers: Ints, target: float) -> Floats:
        return np.asarray(self._curves[numbers, -1] > target).astype(np.float64)

    def prime(self, trials: Trials, numbers: Ints, metrics: Floats) -> None:
        pass


class GivenForesight:
    """Says of each trial the chance that it was given, reached in the next epoch or never."""

    def __init__(self, chances: Mapping[int, float]) -> None:
        self.chances = dict(chances)

    def reached(self, trials: Trials, numbers: Ints, target: float) -> Floats:
        ahead = np.arange(trials.epochs) >= trials.counts[numbers][:, None]
        return np.where(ahead, self.ends_above(trials, numbers, target)[:, None], 0.0)

    def ends_above(self, trials: Trials, numbers: Ints, target: float) -> Floats:
        return np.array([self.chances.get(int(number), 0.0) for number in numbers])

    def prime(self, trials: Trials, numbers: Ints, metrics: Floats) -> None:
        pass


def run_epochs(policy: ExplorePolicy, trials: Trials, number: int, metrics: Sequence[float]) -> list[Verdict]:
    """Report epochs of a trial, started if it is not running, until it stops; return the verdicts."""
    if trials.states[number] != TrialState.RUNNING:
        trials.start(number)
    verdicts = []
    for metric in metrics:
        trials.report(number, metric, 1.0)
        policy.reported(trials, number, 0.0)
        verdicts.append(policy.iterated(trials, number, 0.0))
        if trials.settle(number, verdicts[-1]) != TrialState.RUNNING:
            break
    return verdicts


def actions(verdicts: Sequence[Verdict]) -> list[Action]:
    return [verdict.action for verdict in verdicts]
