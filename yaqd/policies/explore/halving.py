"""Successive halving: ASHA by stopping and by promoting, and Hyperband.

ASHA: Li et al., "A system for massively parallel hyperparameter tuning", MLSys 2020; the stopping kind is Ray Tune's
`AsyncHyperBandScheduler`. Hyperband: Li et al., JMLR 2018, Algorithm 1.
"""

from bisect import insort
from dataclasses import dataclass, field
from math import ceil, floor, inf, log
from typing import Final

import numpy as np

from yaqd.policies.explore.facts import Action, Foresight, Start, Terms, Trials, TrialState, Verdict, Why
from yaqd.policies.explore.ordered import Default

#: Ray's own defaults
GRACE: Final = 1
ETA: Final = 4
#: Hyperband's
HYPERBAND_ETA: Final = 3
#: a logarithm that comes out a little below a whole number is that number
_ROUNDING: Final = 1e-9


def rungs(epochs: int, grace: int, eta: int) -> list[int]:
    """Return the epochs at which trials are held to each other, the last one below `epochs`.

    Raises ValueError where `grace` or `eta` can make none.
    """
    if grace < 1 or eta < 2:
        raise ValueError(f"grace {grace} and eta {eta}: grace is at least 1 epoch, eta at least 2")
    found = []
    at = grace
    while at < epochs:
        found.append(at)
        at *= eta
    return found


def quantile(ordered: list[float], part: float) -> float:
    """Return a quantile of ordered values by straight lines between them, as `numpy.percentile` does.

    It is -inf below the first finite value.
    """
    at = (len(ordered) - 1) * part
    low = int(at)
    if ordered[low] == -inf:
        return -inf
    above = ordered[min(low + 1, len(ordered) - 1)]
    return ordered[low] + (above - ordered[low]) * (at - low)


class AshaStop(Default):
    """End a trial at a rung where its metric is below the best 1 / eta of those that came there before.

    Nothing waits, so the first trials at a rung always pass.
    """

    def __init__(self, terms: Terms, foresight: Foresight, grace: int = GRACE, eta: int = ETA) -> None:
        super().__init__(terms, foresight)
        self._part = 1.0 - 1.0 / eta
        self._seen: dict[int, list[float]] = {at: [] for at in rungs(terms.epochs, int(grace), int(eta))}

    def judged(self, trials: Trials, number: int, count: int) -> Verdict:
        """Hold the metric to the rung's cut-off, then note it there."""
        seen = self._seen.get(count)
        if seen is None:
            return Verdict(Action.CONTINUE, Why.BETWEEN, count, 0.0)
        metric = trials.metric(number)
        cut = quantile(seen, self._part) if seen else metric
        insort(seen, metric)
        if metric < cut:
            return Verdict(Action.TERMINATE, Why.BELOW_CUT, metric, cut)
        return Verdict(Action.CONTINUE, Why.ABOVE_CUT, metric, cut)


def leftovers(trials: Trials, free: int, taken: set[int]) -> list[Start]:
    """Return parked trials that go on where a pool has no fresh ones left, the highest metric first.

    The papers draw fresh configurations for ever. Without this, slots would idle and a pool end with the target in it.
    """
    if free < 1 or trials.has_fresh:
        return []
    parked = [int(number) for number in np.flatnonzero(trials.states == TrialState.PARKED) if int(number) not in taken]
    parked.sort(key=lambda number: -trials.best[number])
    return [Start(number, Why.ROOM, float(trials.best[number])) for number in parked[:free]]


class AshaPromote(Default):
    """Suspend a trial at each rung; one among the best 1 / eta of its rung goes on (Algorithm 2).

    The highest rung is looked at first. Where none can be promoted, a fresh one starts.
    """

    def __init__(self, terms: Terms, foresight: Foresight, grace: int = GRACE, eta: int = ETA) -> None:
        super().__init__(terms, foresight)
        self._eta = int(eta)
        #: by epochs of the rung: metric and number of all that came there, and those that went on
        self._rungs: dict[int, list[tuple[float, int]]] = {at: [] for at in rungs(terms.epochs, int(grace), self._eta)}
        self._promoted: dict[int, set[int]] = {at: set() for at in self._rungs}

    def allocate(self, trials: Trials, free: int, now: float) -> list[Start]:
        """Promote as many as may be, then start fresh trials."""
        starts: list[Start] = []
        for at in sorted(self._rungs, reverse=True):
            if len(starts) == free:
                break
            starts += self._promotable(trials, at, free - len(starts))
        starts += [Start(number, Why.NEXT) for number in trials.fresh(free - len(starts))]
        return starts + leftovers(trials, free - len(starts), {start.number for start in starts})

    def _promotable(self, trials: Trials, at: int, most: int) -> list[Start]:
        came, promoted = self._rungs[at], self._promoted[at]
        best = sorted(came, key=lambda one: (-one[0], one[1]))[: len(came) // self._eta]
        found: list[Start] = []
        for metric, number in best:
            if len(found) == most:
                break
            if number not in promoted and trials.states[number] == TrialState.PARKED:
                promoted.add(number)
                found.append(Start(number, Why.ABOVE_CUT, metric, best[-1][0]))
        return found

    def judged(self, trials: Trials, number: int, count: int) -> Verdict:
        """Suspend the trial at a rung."""
        came = self._rungs.get(count)
        if came is None:
            return Verdict(Action.CONTINUE, Why.BETWEEN, count, 0.0)
        metric = trials.metric(number)
        came.append((metric, number))
        for lower, promoted in self._promoted.items():
            if lower < count:  # a leftover goes past rungs that did not promote it: none may any more
                promoted.add(number)
        return Verdict(Action.PARK, Why.AT_RUNG, count, count, metric)


@dataclass(slots=True)
class _Bracket:
    """One run of successive halving: its trials in the present rung, and what they reached."""

    epochs: int
    waiting: list[int]
    running: set[int] = field(default_factory=set)
    came: list[tuple[float, int]] = field(default_factory=list)


class Hyperband(Default):
    """Run brackets of successive halving one after the other, from many trials with few epochs to few with all.

    A rung ends when all its trials came there, and the best 1 / eta go on. Slots that a bracket cannot use begin the
    next one.
    """

    def __init__(self, terms: Terms, foresight: Foresight, eta: int = HYPERBAND_ETA) -> None:
        super().__init__(terms, foresight)
        if eta < 2:
            raise ValueError(f"eta {eta}: at least 2")
        self._eta = int(eta)
        self._most = floor(log(terms.epochs) / log(self._eta) + _ROUNDING)
        self._next = self._most
        self._brackets: list[_Bracket] = []
        self._of: dict[int, _Bracket] = {}

    def allocate(self, trials: Trials, free: int, now: float) -> list[Start]:
        """Start what brackets have waiting, the oldest bracket first, then begin new ones."""
        starts: list[Start] = []
        self._drop_ended(trials)
        for bracket in self._brackets:
            self._take(trials, bracket, free, starts)
        while len(starts) < free:
            taken = [number for bracket in self._brackets for number in bracket.waiting]
            begun = self._begin(trials, len(taken) + len(starts))
            if begun is None:
                break
            self._take(trials, begun, free, starts)
        return starts + leftovers(trials, free - len(starts), set(self._of))

    def _drop_ended(self, trials: Trials) -> None:
        """Wait no more for trials that ended unasked, as their program failed or had no more epochs."""
        for bracket in list(self._brackets):
            held = np.array([*bracket.running, *bracket.waiting], dtype=np.int64)
            ended = {int(number) for number in held[trials.states[held] == TrialState.ENDED]}
            if ended:
                bracket.running -= ended
                bracket.waiting = [number for number in bracket.waiting if number not in ended]
                for number in ended:
                    del self._of[number]
                self._close_rung(bracket, trials)

    def _take(self, trials: Trials, bracket: _Bracket, free: int, starts: list[Start]) -> None:
        while bracket.waiting and len(starts) < free:
            number = bracket.waiting.pop(0)
            bracket.running.add(number)
            self._of[number] = bracket
            # a winner whose exploration is resumed runs already
            if trials.states[number] != TrialState.RUNNING:
                starts.append(Start(number, Why.NEXT))

    def _begin(self, trials: Trials, booked: int) -> _Bracket | None:
        """Return the next bracket; None where no fresh trial is left for it."""
        many = ceil((self._most + 1) / (self._next + 1) * self._eta**self._next)
        fresh = [number for number in trials.fresh(many + booked) if number not in self._of][:many]
        if not fresh:
            return None
        bracket = _Bracket(max(1, floor(self.terms.epochs / self._eta**self._next + _ROUNDING)), fresh)
        for number in fresh:
            self._of[number] = bracket
        self._brackets.append(bracket)
        self._next = self._next - 1 if self._next else self._most
        return bracket

    def judged(self, trials: Trials, number: int, count: int) -> Verdict:
        """Suspend the trial at its rung."""
        bracket = self._of.get(number)
        if bracket is None or number not in bracket.running:
            return Verdict(Action.CONTINUE, Why.ROOM)
        if count < bracket.epochs:
            return Verdict(Action.CONTINUE, Why.BETWEEN, count, bracket.epochs)
        metric = trials.metric(number)
        self._came(bracket, metric, number, trials)
        return Verdict(Action.PARK, Why.AT_RUNG, count, bracket.epochs, metric)

    def iterated(self, trials: Trials, number: int, now: float) -> Verdict:
        """Go on until the rung; note a trial that ran all its epochs."""
        count = int(trials.counts[number])
        if count >= self.terms.epochs and number in self._of and number in self._of[number].running:
            self._came(self._of[number], trials.metric(number), number, trials)
        return super().iterated(trials, number, now)

    def _came(self, bracket: _Bracket, metric: float, number: int, trials: Trials) -> None:
        bracket.running.discard(number)
        bracket.came.append((metric, number))
        self._close_rung(bracket, trials)

    def _close_rung(self, bracket: _Bracket, trials: Trials) -> None:
        """Where all came, let the best go on; a bracket whose last rung is over is over itself."""
        if bracket.running or bracket.waiting:
            return
        if bracket.epochs >= self.terms.epochs:
            self._brackets.remove(bracket)
            return
        able = [one for one in bracket.came if trials.states[one[1]] != TrialState.ENDED]
        best = sorted(able, key=lambda one: (-one[0], one[1]))[: len(bracket.came) // self._eta]
        bracket.epochs = min(self.terms.epochs, bracket.epochs * self._eta)
        bracket.waiting = [number for _, number in best]
        for _, number in bracket.came:
            if number not in bracket.waiting:
                del self._of[number]
        bracket.came = []
        if not best:
            self._brackets.remove(bracket)
