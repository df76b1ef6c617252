"""POP, as the paper has it (HyperDrive, sections 7.1, 7.2 and 7.6).

At each boundary a trial is predicted. Poor ones end: below the kill threshold, or with a confidence below 0.05. A
threshold parts the others: promising trials keep their slots, opportunistic ones take turns.

Three things the paper leaves open are fixed here. The chance P(m) is that of having reached the target by epoch m, so
it never falls. Promising trials have the effective slots rounded up, the highest confidence first. A trial that has not
been predicted yet is opportunistic.
"""

from math import ceil
from typing import Final

import numpy as np

from yaqd.policies.curves.samples import Bools, Floats, Ints
from yaqd.policies.explore.facts import Action, Foresight, Start, Terms, Trials, TrialState, Verdict, Why, aim
from yaqd.policies.explore.ordered import LEAST_CHANCE, Default

_ROUNDING: Final = 1e-9


def remaining(reached: Floats, counts: Ints, epoch_s: Floats, left_s: float) -> tuple[Floats, Floats]:
    """Return each trial's confidence p and expected remaining time, s (equations 7.1 to 7.3).

    `reached`: (trials, epochs), chance of the target by each epoch. The sum of m * p_m stops where it would exceed
    `left_s`, which is then the expected time.
    """
    ahead = np.arange(1, reached.shape[1] + 1) - counts[:, None]
    future = np.where(ahead > 0, reached, 0.0)
    parts = np.maximum(np.diff(future, prepend=0.0, axis=1), 0.0)
    times = np.cumsum(parts * np.maximum(ahead, 0), axis=1) * epoch_s[:, None]
    within = times <= left_s
    confidence = np.where(within, parts, 0.0).sum(axis=1)
    expected = np.where(within.all(axis=1), times[:, -1], left_s)
    return confidence, expected


def threshold(confidence: Floats, satisfying: Bools, slots: int) -> tuple[float, float]:
    """Return the confidence that makes the effective slots most, and these slots (section 7.2).

    Desired slots are the trials with at least that confidence, deserved ones `slots` times it. (inf, 0) without trials.
    """
    known = np.sort(confidence[satisfying & (confidence > 0.0)])[::-1]
    if not known.size:
        return float("inf"), 0.0
    desired = np.searchsorted(-known, -known, side="right")
    effective = np.minimum(desired, slots * known)
    best = int(np.argmax(effective))
    return float(known[best]), float(effective[best])


class Pop(Default):
    """Promising trials keep their slots, opportunistic ones take turns, poor ones end."""

    def __init__(self, terms: Terms, foresight: Foresight, least: float = LEAST_CHANCE) -> None:
        super().__init__(terms, foresight)
        self._least = least
        #: by trial: confidence and expected remaining time as of its last boundary
        self._confidence: Floats = np.zeros(0)
        self._expected_s: Floats = np.zeros(0)
        #: when a trial was suspended; those that wait go on in this order
        self._since: Floats = np.zeros(0)
        self._turns = 0
        self._left_s = terms.max_time_s

    def _grow(self, trials: Trials) -> None:
        if len(self._confidence) != len(trials):
            self._confidence, self._expected_s = np.zeros(len(trials)), np.full(len(trials), np.inf)
            self._since = np.zeros(len(trials))

    def allocate(self, trials: Trials, free: int, now: float) -> list[Start]:
        """Let promising trials that wait go on, then start fresh ones, then those that waited longest."""
        self._grow(trials)
        starts = [self._started(number, Why.PROMISING) for number in self._promising_waiting(trials)[:free]]
        starts += [Start(number, Why.NEXT) for number in trials.fresh(free - len(starts))]
        if len(starts) < free:
            taken = {start.number for start in starts}
            waiting = np.flatnonzero(trials.states == TrialState.PARKED)
            turn = [int(number) for number in waiting[np.argsort(self._since[waiting], kind="stable")]]
            more = [number for number in turn if number not in taken][: free - len(starts)]
            starts += [self._started(number, Why.OPPORTUNISTIC) for number in more]
        return starts

    def _started(self, number: int, why: Why) -> Start:
        return Start(number, why, float(self._confidence[number]))

    def _promising(self, trials: Trials) -> tuple[Ints, float]:
        """Return the promising trials, the highest confidence first, and the threshold."""
        active = trials.states != TrialState.ENDED
        satisfying = active & (self._expected_s < self.terms.max_time_s)
        least, slots = threshold(self._confidence, satisfying, self.terms.slots)
        found = np.flatnonzero(satisfying & (self._confidence >= least))
        order = found[np.argsort(-self._confidence[found], kind="stable")]
        return order[: ceil(slots - _ROUNDING)], least

    def _promising_waiting(self, trials: Trials) -> list[int]:
        found, _ = self._promising(trials)
        return [int(number) for number in found if trials.states[number] == TrialState.PARKED]

    def judged(self, trials: Trials, number: int, count: int) -> Verdict:
        """Evaluate the trial at a boundary (section 7.6)."""
        self._grow(trials)
        waits = self.waits(count)
        if waits is not None:
            return waits
        killed = self.killed(trials, number)
        if killed is not None:
            self._confidence[number] = 0.0
            return killed
        confidence = self._predicted(trials, number)
        if confidence < self._least:
            self._confidence[number] = 0.0
            return Verdict(Action.TERMINATE, Why.UNLIKELY, confidence, self._least)
        found, least = self._promising(trials)
        if number in found:
            return Verdict(Action.CONTINUE, Why.PROMISING, confidence, least, confidence)
        self._turns += 1
        self._since[number] = self._turns
        return Verdict(Action.PARK, Why.OPPORTUNISTIC, confidence, least)

    def iterated(self, trials: Trials, number: int, now: float) -> Verdict:
        """Judge the trial with the time that is left."""
        self._left_s = self.terms.max_time_s - now
        return super().iterated(trials, number, now)

    def _predicted(self, trials: Trials, number: int) -> float:
        numbers = np.array([number], dtype=np.int64)
        reached = self.foresight.reached(trials, numbers, aim(self.terms, trials))
        epoch_s = np.array([trials.epoch_s(number)])
        confidence, expected = remaining(reached, trials.counts[numbers], epoch_s, self._left_s)
        self._confidence[number], self._expected_s[number] = float(confidence[0]), float(expected[0])
        return float(confidence[0])
