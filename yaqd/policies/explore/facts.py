"""What a policy of explorations is told, and what it answers.

An exploration trains many configurations of one program, each a trial, to find one whose metric reaches a target. The
metric is oriented to rise. An epoch is what lies between two reports of the metric.
"""

from dataclasses import dataclass
from enum import IntEnum
from math import inf, isfinite, nan
from typing import Final, Protocol

import numpy as np

from yaqd.policies.curves.samples import Bools, Floats, Ints

_BYTE: Final = np.int8


@dataclass(frozen=True, slots=True)
class Terms:
    """What the user said of an exploration, times in seconds."""

    #: the metric that is looked for; None: it rises when it is reached
    target: float | None
    #: a trial runs no more epochs
    epochs: int
    #: trials that run at once
    slots: int
    max_time_s: float = inf
    #: a trial whose metric stays below has learnt nothing; None: nobody knows
    kill: float | None = None
    #: epochs from one evaluation of a trial to the next, for policies that evaluate at boundaries
    boundary: int = 10


class TrialState(IntEnum):
    """What a trial does; FRESH ones have never run."""

    FRESH = 0
    RUNNING = 1
    PARKED = 2
    ENDED = 3


class Action(IntEnum):
    """What becomes of a trial that has ended an epoch."""

    CONTINUE = 1
    PARK = 2
    TERMINATE = 3


class Why(IntEnum):
    """Why a trial runs, waits or ends; in brackets what `Verdict.value` and `Verdict.bound` are then."""

    #: its turn in the order of the generator, or of the guide
    NEXT = 1
    #: too early to judge (epochs so far, epochs of the first look)
    EARLY = 2
    #: between two boundaries (epochs so far, boundary)
    BETWEEN = 3
    #: it ran all its epochs (epochs so far, epochs)
    DONE = 4
    #: it has learnt nothing (best metric, kill threshold)
    NOT_LEARNING = 5
    #: near enough to the best trial (best metric times the slack, best of all)
    NEAR_BEST = 6
    #: far behind the best trial (the same)
    FAR_FROM_BEST = 7
    #: its curve may still reach what is asked (chance, least chance)
    LIKELY = 8
    #: its curve will hardly reach it (chance, least chance)
    UNLIKELY = 9
    #: promising, so it keeps its slot (chance, threshold)
    PROMISING = 10
    #: takes turns with others (chance, threshold)
    OPPORTUNISTIC = 11
    #: among the best of its rung (metric, cut-off)
    ABOVE_CUT = 12
    #: below the best of its rung (metric, cut-off)
    BELOW_CUT = 13
    #: waits until its rung decides (epochs so far, epochs of the rung)
    AT_RUNG = 14
    #: at least the median of the others' running means (best metric, median)
    ABOVE_MEDIAN = 15
    #: below it (the same)
    BELOW_MEDIAN = 16
    #: rose lately (epochs since it rose, patience)
    RISING = 17
    #: has not risen for long (the same)
    STALLED = 18
    #: a slot's second is worth more here than elsewhere (target reached per second, best other's)
    WORTH_MOST = 19
    #: it is worth more elsewhere (the same)
    WORTH_LESS = 20
    #: nothing better waits
    ROOM = 21
    #: it reached what is looked for (metric, target), both as the user has them
    REACHED = 22
    #: its program failed (epochs so far, epochs)
    FAILED = 23
    #: its program ended by itself before its last epoch (the same)
    LEFT = 24


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a policy decides of a trial, and why; whoever shows it puts the reason into words."""

    action: Action
    why: Why
    #: the facts behind the reason, see `Why`
    value: float = nan
    bound: float = nan
    #: label of the trial: among trials that wait, the highest goes on first
    priority: float = 0.0


@dataclass(frozen=True, slots=True)
class Start:
    """A trial that is to run, fresh or parked, and why."""

    number: int
    why: Why
    value: float = nan
    bound: float = nan


class Guide(Protocol):
    """Says which fresh trials look best by their hyperparameters."""

    def order(self, trials: "Trials") -> Ints:
        """Return the numbers of the fresh trials, the best first."""
        ...


class Trials:
    """All trials of an exploration as arrays by number, in the generator's order."""

    def __init__(self, many: int, epochs: int, guide: Guide | None = None) -> None:
        """`guide`: orders fresh trials; without one they come by number."""
        self.epochs: Final = epochs
        self._guide: Final = guide
        #: (trials, epochs): the metric after each epoch, NaN where it has not run. An epoch without a finite number has
        #: the lowest of all trials' metrics, also of later ones; NaN while there is none
        self.values: Floats = np.full((many, epochs), nan)
        self.counts: Ints = np.zeros(many, dtype=np.int64)
        self.states = np.zeros(many, dtype=_BYTE)
        #: slot time so far, s
        self.spent_s: Floats = np.zeros(many)
        #: highest finite metric so far, -inf before there is one
        self.best: Floats = np.full(many, -inf)
        #: as the last verdict labelled it
        self.priority: Floats = np.zeros(many)
        self.best_of_all = -inf
        self._lowest = inf
        #: epochs without a finite number: trials and epochs; which trials' newest one is such
        self._odd: tuple[list[int], list[int]] = ([], [])
        self._is_odd = np.zeros(many, dtype=np.bool_)
        self._cursor = 0
        #: epochs that have ended and what they took, s
        self._ended = 0
        self._whole_s = 0.0
        #: how long a slot stood still for a suspension, s, in the mean of `_suspensions`
        self.suspend_s = 0.0
        self._suspensions = 0

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def has_fresh(self) -> bool:
        """Whether a trial has never run."""
        while self._cursor < len(self.states) and self.states[self._cursor]:
            self._cursor += 1
        return self._cursor < len(self.states)

    def fresh(self, many: int = 1) -> list[int]:
        """Return the numbers of the next fresh trials, `many` at most; they stay fresh until they start."""
        if many < 1 or not self.has_fresh:
            return []
        if self._guide is not None:
            return [int(number) for number in self._guide.order(self)[:many]]
        if many == 1:
            return [self._cursor]
        return [self._cursor + int(at) for at in np.flatnonzero(self.states[self._cursor :] == 0)[:many]]

    def in_state(self, state: TrialState) -> Bools:
        """Return which trials are in a state."""
        return np.asarray(self.states == state)

    def epoch_s(self, number: int) -> float:
        """Return the mean duration of a trial's epochs, s; of all trials' where it has ended none."""
        count = int(self.counts[number])
        return float(self.spent_s[number]) / count if count else self.mean_epoch_s

    @property
    def mean_epoch_s(self) -> float:
        """The mean duration of an epoch over all that have ended, s; 1 before one has."""
        return self._whole_s / self._ended if self._ended else 1.0

    def suspended(self, took_s: float) -> None:
        """Note how long a trial's suspension took, s."""
        self._suspensions += 1
        self.suspend_s += (took_s - self.suspend_s) / self._suspensions

    def start(self, number: int) -> None:
        """Note that a trial runs. Raises ValueError where it runs or has ended."""
        if self.states[number] not in (TrialState.FRESH, TrialState.PARKED):
            raise ValueError(f"trial {number} is {TrialState(int(self.states[number])).name} and cannot start")
        self.states[number] = TrialState.RUNNING

    def report(self, number: int, metric: float, took_s: float) -> None:
        """Note the metric after one more epoch; what is no finite number is worse than any.

        Raises ValueError where the trial does not run or has run all its epochs.
        """
        count = int(self.counts[number])
        if self.states[number] != TrialState.RUNNING or count >= self.epochs:
            raise ValueError(f"trial {number} reports epoch {count + 1} of {self.epochs} and does not run")
        self.counts[number] = count + 1
        self.spent_s[number] += took_s
        self._ended += 1
        self._whole_s += took_s
        self._is_odd[number] = not isfinite(metric)
        if self._is_odd[number]:
            self._odd[0].append(number)
            self._odd[1].append(count)
            self.values[number, count] = self._lowest if isfinite(self._lowest) else nan
            return
        self.values[number, count] = metric
        if metric < self._lowest:
            self._lowest = metric
            self.values[self._odd] = metric
        if metric > self.best[number]:
            self.best[number] = metric
            if metric > self.best_of_all:
                self.best_of_all = metric

    def metric(self, number: int) -> float:
        """Return a trial's newest metric as it is held to others: -inf where it is no finite number."""
        return -inf if self._is_odd[number] else float(self.values[number, self.counts[number] - 1])

    def score(self, number: int) -> float:
        """Return a trial's highest metric: the lowest of all trials' where none of what it reported is a finite number.

        -inf where it has reported nothing, and where nobody has reported a finite number.
        """
        best = float(self.best[number])
        is_odd = best == -inf and self.counts[number] > 0 and isfinite(self._lowest)
        return self._lowest if is_odd else best

    def settle(self, number: int, verdict: Verdict) -> TrialState:
        """Carry a verdict out; return the trial's state. A trial that has run all its epochs ends."""
        self.priority[number] = verdict.priority
        state = TrialState.RUNNING
        if verdict.action is Action.TERMINATE or self.counts[number] >= self.epochs:
            state = TrialState.ENDED
        elif verdict.action is Action.PARK:
            state = TrialState.PARKED
        self.states[number] = state
        return state


class Foresight(Protocol):
    """What is known of the epochs to come; predictors answer through `foresight.py`."""

    def reached(self, trials: Trials, numbers: Ints, target: float) -> Floats:
        """Return (numbers, epochs): the chance that each trial has reached the target by each epoch."""
        ...

    def ends_above(self, trials: Trials, numbers: Ints, target: float) -> Floats:
        """Return the chance that each trial's metric is above the target after the last epoch."""
        ...

    def prime(self, trials: Trials, numbers: Ints, metrics: Floats) -> None:
        """Predict at once what will be asked when these trials have reported these metrics. It changes no answer."""
        ...


class ExplorePolicy(Protocol):
    """The up-calls of a policy; an object lives as long as one exploration.

    Section 6.4 of the paper calls them AllocateJobs, ApplicationStat and OnIterationFinish.
    """

    def allocate(self, trials: Trials, free: int, now: float) -> list[Start]:
        """Return which trials start or go on in free slots, `free` at most."""
        ...

    def reported(self, trials: Trials, number: int, now: float) -> None:
        """Take notice of a metric that a trial reported."""
        ...

    def foresee(self, trials: Trials, numbers: Ints, metrics: Floats) -> None:
        """Predict many trials at once that are about to report these metrics. It changes no answer."""
        ...

    def iterated(self, trials: Trials, number: int, now: float) -> Verdict:
        """Judge a trial that has ended an epoch."""
        ...


def aim(terms: Terms, trials: Trials, rise: float = 0.02) -> float:
    """Return the target; where nobody said one, a little above the best metric so far.

    `rise`: how much above, as a part of what lies between the worst and the best trial.
    """
    if terms.target is not None:
        return terms.target
    known = trials.best[np.isfinite(trials.best)]
    if not known.size:
        return inf
    best = float(known.max())
    return best + rise * max(best - float(known.min()), 1e-9)
