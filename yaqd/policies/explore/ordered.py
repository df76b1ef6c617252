"""Policies that start fresh trials in order and never suspend one: Default, Bandit, EarlyTerm, median and patience.

The paper gives Bandit and EarlyTerm no kill threshold. Where the user said one they end what is below it, as POP does.
"""

from math import inf
from typing import Final

import numpy as np

from yaqd.policies.curves.samples import Floats, Ints
from yaqd.policies.explore.facts import Action, Foresight, Start, Terms, Trials, Verdict, Why

#: of the paper's Bandit and EarlyTerm (section 7.6)
SLACK: Final = 0.5
LEAST_CHANCE: Final = 0.05


class Default:
    """Run each trial to its end, in order (section 6.4)."""

    def __init__(self, terms: Terms, foresight: Foresight) -> None:
        self.terms: Final = terms
        self.foresight: Final = foresight

    def allocate(self, trials: Trials, free: int, now: float) -> list[Start]:
        """Start fresh trials."""
        return [Start(number, Why.NEXT) for number in trials.fresh(free)]

    def reported(self, trials: Trials, number: int, now: float) -> None:
        """Take no notice."""

    def foresee(self, trials: Trials, numbers: Ints, metrics: Floats) -> None:
        """Predict nothing."""

    def iterated(self, trials: Trials, number: int, now: float) -> Verdict:
        """Go on until the last epoch."""
        count = int(trials.counts[number])
        if count >= self.terms.epochs:
            return Verdict(Action.TERMINATE, Why.DONE, count, self.terms.epochs)
        return self.judged(trials, number, count)

    def judged(self, trials: Trials, number: int, count: int) -> Verdict:
        """Judge a trial that has epochs left."""
        return Verdict(Action.CONTINUE, Why.NEXT)

    def killed(self, trials: Trials, number: int) -> Verdict | None:
        """Return a verdict of a trial that has learnt nothing; None of others, and where no threshold is said."""
        kill, best = self.terms.kill, float(trials.best[number])
        return Verdict(Action.TERMINATE, Why.NOT_LEARNING, best, kill) if kill is not None and best < kill else None

    def waits(self, count: int) -> Verdict | None:
        """Return a verdict between two boundaries, None at one."""
        if count % self.terms.boundary:
            return Verdict(Action.CONTINUE, Why.BETWEEN, count, self.terms.boundary)
        return None


class Bandit(Default):
    """Go on at a boundary while jobBest * (1 + slack) > globalBest: TuPAQ's action elimination."""

    def __init__(self, terms: Terms, foresight: Foresight, slack: float = SLACK) -> None:
        super().__init__(terms, foresight)
        self._slack = slack

    def judged(self, trials: Trials, number: int, count: int) -> Verdict:
        """Compare the trial's best with the best of all."""
        waits = self.waits(count) or self.killed(trials, number)
        if waits is not None:
            return waits
        best = float(trials.best[number])
        # of a metric below zero too, the slack is to its favour
        held = best + self._slack * abs(best)
        if held > trials.best_of_all or trials.best_of_all == -inf:
            return Verdict(Action.CONTINUE, Why.NEAR_BEST, held, trials.best_of_all)
        return Verdict(Action.TERMINATE, Why.FAR_FROM_BEST, held, trials.best_of_all)


class EarlyTerm(Default):
    """End a trial at a boundary where P(last metric > globalBest) is below a bound.

    The predictive termination criterion (Domhan et al., IJCAI 2015).
    """

    def __init__(self, terms: Terms, foresight: Foresight, least: float = LEAST_CHANCE) -> None:
        super().__init__(terms, foresight)
        self._least = least

    def judged(self, trials: Trials, number: int, count: int) -> Verdict:
        """Predict the last metric and hold it to the best of all."""
        waits = self.waits(count) or self.killed(trials, number)
        if waits is not None:
            return waits
        numbers = np.array([number], dtype=np.int64)
        chance = float(self.foresight.ends_above(trials, numbers, trials.best_of_all)[0])
        if chance < self._least:
            return Verdict(Action.TERMINATE, Why.UNLIKELY, chance, self._least)
        return Verdict(Action.CONTINUE, Why.LIKELY, chance, self._least)


class Median(Default):
    """End a trial whose best metric is below the median of the other trials' running means at the same epoch.

    As Vizier (Golovin et al., KDD 2017, section 3.2.2) and Ray's `MedianStoppingRule` have it.
    """

    def __init__(self, terms: Terms, foresight: Foresight, grace: int = 1, least: int = 5) -> None:
        """`grace`: epochs without judgement. `least`: other trials that a median needs."""
        super().__init__(terms, foresight)
        self._grace = int(grace)
        self._least = int(least)
        self._means: Floats = np.zeros((0, 0))

    def reported(self, trials: Trials, number: int, now: float) -> None:
        """Extend the running mean of the trial."""
        if self._means.shape != trials.values.shape:
            self._means = np.full(trials.values.shape, np.nan)
        count = int(trials.counts[number])
        self._means[number, count - 1] = trials.values[number, :count].mean()

    def judged(self, trials: Trials, number: int, count: int) -> Verdict:
        """Compare the trial's best with the others' means after as many epochs."""
        if count < self._grace:
            return Verdict(Action.CONTINUE, Why.EARLY, count, self._grace)
        others = self._means[:, count - 1]
        known = others[~np.isnan(others)]
        # its own running mean is no other's
        if known.size <= self._least:
            return Verdict(Action.CONTINUE, Why.EARLY, known.size - 1, self._least)
        middle = _median_without(np.sort(known), float(others[number]))
        best = float(trials.best[number])
        if best < middle:
            return Verdict(Action.TERMINATE, Why.BELOW_MEDIAN, best, middle)
        return Verdict(Action.CONTINUE, Why.ABOVE_MEDIAN, best, middle)


def _median_without(ordered: Floats, own: float) -> float:
    """Return the median of ordered values, one of them left out."""
    at = int(np.searchsorted(ordered, own))
    left = len(ordered) - 1

    def value(place: int) -> float:
        return float(ordered[place if place < at else place + 1])

    return (value((left - 1) // 2) + value(left // 2)) / 2.0


class Patience(Default):
    """End a trial that has not risen by `rise` for `patience` epochs."""

    def __init__(self, terms: Terms, foresight: Foresight, patience: int = 5, rise: float = 0.001) -> None:
        super().__init__(terms, foresight)
        self._patience = int(patience)
        self._rise = rise
        #: by trial: the metric that it last rose to, and the epoch of that
        self._rose: dict[int, tuple[float, int]] = {}

    def judged(self, trials: Trials, number: int, count: int) -> Verdict:
        """Count the epochs since the trial rose."""
        metric = trials.metric(number)
        level, since = self._rose.get(number, (-inf, 0))
        if metric > level + self._rise:
            self._rose[number] = (metric, count)
            since = count
        stalled = count - since
        if stalled >= self._patience:
            return Verdict(Action.TERMINATE, Why.STALLED, stalled, self._patience)
        return Verdict(Action.CONTINUE, Why.RISING, stalled, self._patience)
