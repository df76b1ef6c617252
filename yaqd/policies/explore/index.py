"""Ours: a slot goes to the trial with the best chance of the target for each second that it is expected to need.

- The index of a trial is the best, over all horizons, of P(target within the horizon) / E[slot seconds until then].
- A fresh trial is worth what a look at all trials so far, and then running the best of them as they looked, would have
  brought for each second: the reservation price of Weitzman's boxes (Econometrica 1979), learnt on the way.
- Nobody ends before its last epoch. A trial that is worth a tenth less than what waits is parked. It comes back when
  nothing better waits.
- The longer suspensions take beside the epochs that a trial has left, the more another must be worth to take its slot.
- Trials without any chance do not take slots from each other; the one with the best metric goes first.
- A trial is looked at first after a twentieth of its epochs, at least three, then after each. One below the kill
  threshold waits behind all others.
"""

from math import ceil, inf
from typing import Final

import numpy as np

from yaqd.policies.curves.samples import Bools, Floats, Ints, picked
from yaqd.policies.explore.facts import Action, Foresight, Start, Terms, Trials, TrialState, Verdict, Why, aim
from yaqd.policies.explore.ordered import Default

#: epochs before the first look: this part of all, and at least so many
FIRST_PART: Final = 0.05
FIRST_LEAST: Final = 3
#: trials and hits that count as seen before the first one
PRIOR_TRIALS: Final = 20.0
PRIOR_HITS: Final = 0.5
#: of trials that have learnt nothing: their index counts this part, so that they come after all that learn
_DULL: Final = 1e-6
#: an index up to this is of a trial without any chance
HOPELESS: Final = 1e-15
#: part by which another must be worth more to take a slot: a process ends for it and one begins
STAY: Final = 0.1


def indices(reached: Floats, counts: Ints, epoch_s: Floats) -> tuple[Floats, Floats]:
    """Return each trial's best chance of the target per second of slot time, over all horizons, and that chance.

    `reached`: (trials, epochs), chance of the target by each epoch; 0 chance that it was reached already. A trial stops
    where it reaches the target, so later seconds count with the chance that it is still on its way.
    """
    ahead = np.arange(1, reached.shape[1] + 1) - counts[:, None]
    chance = np.where(ahead > 0, reached, 0.0)
    before = np.concatenate((np.zeros((len(chance), 1)), chance[:, :-1]), axis=1)
    needed = np.cumsum(np.where(ahead > 0, 1.0 - before, 0.0), axis=1)
    rates = np.where(needed > 0.0, chance / np.maximum(needed, 1e-9), 0.0)
    best = rates.argmax(axis=1)[:, None]
    return picked(rates, best)[:, 0] / np.maximum(epoch_s, 1e-9), picked(chance, best)[:, 0]


def reservation(chances: Floats, costs_s: Floats, looks: float, look_s: float) -> float:
    """Return the worth of a fresh trial: the most targets per second that looking and running the best would bring.

    `chances`, `costs_s`: what running each trial on would bring and take, as it looked first. `looks`: trials that were
    looked at, those without a chance too, each for `look_s`. The best set to run has the best rates.
    """
    order = np.argsort(-chances / np.maximum(costs_s, 1e-9), kind="stable")
    rates = np.cumsum(chances[order]) / (looks * look_s + np.cumsum(costs_s[order]))
    return float(rates.max(initial=0.0))


def _highest(values: Floats, many: int) -> Ints:
    """Return where the highest values are, the earlier of equal ones first."""
    if many == 1 and values.size:
        return np.array([values.argmax()])
    return np.argsort(-values, kind="stable")[:many]


def _hopeless(best: Floats | float) -> Floats:
    """Return what trials without any chance are worth: the one with the best metric goes first."""
    return np.asarray(HOPELESS * (0.5 + np.arctan(best) / np.pi))


class Index(Default):
    """Give slots by the index."""

    def __init__(
        self,
        terms: Terms,
        foresight: Foresight,
        first: int | None = None,
        prior_trials: float = PRIOR_TRIALS,
        prior_hits: float = PRIOR_HITS,
        stay: float = STAY,
    ) -> None:
        """`first`: epochs of the first look; None: a twentieth of all, at least three.

        `prior_trials`, `prior_hits`: trials that count as looked at before the first, and targets that these bring.
        `stay`: part by which another must be worth more to take a slot.
        """
        super().__init__(terms, foresight)
        looks = max(FIRST_LEAST, ceil(FIRST_PART * terms.epochs)) if first is None else int(first)
        self._first = max(1, min(looks, terms.epochs))
        self._prior_trials = prior_trials
        self._prior_hits = prior_hits
        self._stay = stay
        self._target = -inf
        self._index: Floats = np.zeros(0)
        #: by trial: chance of the target as of the last look, epochs that had run then
        self._chance: Floats = np.zeros(0)
        self._looked: Ints = np.zeros(0, dtype=np.int64)
        #: which trials were judged at all; what running each on would bring and take, s, as it looked first
        self._judged: Bools = np.zeros(0, dtype=bool)
        self._first_chance: Floats = np.zeros(0)
        self._first_cost_s: Floats = np.zeros(0)
        self._many = 0
        #: those whose first look showed a chance, the best rate first, so that sorting them again is quick
        self._by_rate: Ints = np.zeros(0, dtype=np.int64)
        #: what a fresh one is worth, until another was looked at
        self._fresh: float | None = None

    def allocate(self, trials: Trials, free: int, now: float) -> list[Start]:
        """Start what is worth most, fresh trials or parked ones."""
        self._raise_target(trials)
        fresh = trials.fresh(free)
        new = self._fresh_worth(trials)
        if len(fresh) < free:
            self._look_at_parked(trials)
        parked = np.flatnonzero(trials.states == TrialState.PARKED)
        order = parked[_highest(self._index[parked], free)].tolist()
        starts: list[Start] = []
        while len(starts) < free and (fresh or order):
            best = float(self._index[order[0]]) if order else -inf
            if order and (best >= new or not fresh):
                starts.append(Start(order.pop(0), Why.WORTH_MOST if best > _DULL * new else Why.ROOM, best, new))
            else:
                starts.append(Start(fresh.pop(0), Why.NEXT, new, best))
        return starts

    def foresee(self, trials: Trials, numbers: Ints, metrics: Floats) -> None:
        """Predict those that will be looked at, with one call of the predictor."""
        counts = trials.counts[numbers] + 1
        due = (counts >= self._first) & (counts < trials.epochs) & np.isfinite(metrics)
        if self.terms.kill is not None:
            due &= np.maximum(trials.best[numbers], metrics) >= self.terms.kill
        if due.any():
            self.foresight.prime(trials, numbers[due], metrics[due])

    def judged(self, trials: Trials, number: int, count: int) -> Verdict:
        """Hold the trial to what waits."""
        if count < self._first:
            return Verdict(Action.CONTINUE, Why.EARLY, count, self._first)
        self._raise_target(trials)
        fresh = trials.has_fresh
        if self._looked[number] < count:
            if fresh and not self._learns(trials, number):
                self._note_dull(trials, number)
            else:
                self._look(trials, np.array([number], dtype=np.int64))
        if not fresh:
            self._look_at_parked(trials)
        own, other = float(self._index[number]), self._best_other(trials, fresh)
        kill = self.terms.kill
        if own >= other * (1.0 - self._stays(trials, number)) or other <= HOPELESS:
            why = Why.WORTH_MOST if max(own, other) > HOPELESS else Why.ROOM
            return Verdict(Action.CONTINUE, why, own, other, float(self._chance[number]))
        if kill is not None and trials.best[number] < kill:
            return Verdict(Action.PARK, Why.NOT_LEARNING, float(trials.best[number]), kill)
        return Verdict(Action.PARK, Why.WORTH_LESS, own, other, float(self._chance[number]))

    def _stays(self, trials: Trials, number: int) -> float:
        """Return the part by which another must be worth more; long suspensions beside what is left add to it."""
        left_s = (trials.epochs - int(trials.counts[number])) * trials.epoch_s(number)
        return min(1.0, self._stay + trials.suspend_s / max(left_s, 1e-9))

    def _look_at_parked(self, trials: Trials) -> None:
        """Predict those that were put behind all others unseen."""
        parked = np.flatnonzero(trials.states == TrialState.PARKED)
        self._look(trials, parked[self._looked[parked] < trials.counts[parked]])

    def _best_other(self, trials: Trials, fresh: bool) -> float:
        """Return what the best trial that waits is worth."""
        parked = self._index[trials.states == TrialState.PARKED]
        best = float(parked.max()) if parked.size else -inf
        return max(best, self._fresh_worth(trials)) if fresh else best

    def _fresh_worth(self, trials: Trials) -> float:
        """Return what a fresh trial is worth: targets reached per second of slot time."""
        if self._fresh is None:
            able = self._by_rate
            epoch_s = trials.mean_epoch_s
            hits = self._prior_hits
            chances = np.append(self._first_chance[able], hits)
            costs_s = np.append(self._first_cost_s[able], hits * trials.epochs / 2 * epoch_s)
            looks = self._prior_trials + self._many
            self._fresh = reservation(chances, costs_s, looks, self._first * epoch_s)
        return self._fresh

    def _raise_target(self, trials: Trials) -> None:
        """Grow with the trials; look at all of them again where the target has risen."""
        if len(self._index) != len(trials):
            self._index, self._chance, self._first_chance, self._first_cost_s = np.zeros((4, len(trials)))
            self._looked = np.zeros(len(trials), dtype=np.int64)
            self._judged = np.zeros(len(trials), dtype=bool)
        target = aim(self.terms, trials)
        if target != self._target:
            self._target = target
            known = np.flatnonzero(self._judged & (trials.states != TrialState.ENDED))
            self._judged[known] = False
            self._first_chance[known] = 0.0
            self._by_rate = self._by_rate[self._first_chance[self._by_rate] > 0.0]
            self._many -= len(known)
            self._look(trials, known)

    def _learns(self, trials: Trials, number: int) -> bool:
        return self.terms.kill is None or bool(trials.best[number] >= self.terms.kill)

    def _judge(self, numbers: Ints, chances: Floats, costs_s: Floats) -> None:
        """Note how trials look that nobody looked at before."""
        new = ~self._judged[numbers]
        if new.any():
            first = numbers[new]
            self._judged[first] = True
            self._first_chance[first], self._first_cost_s[first] = chances[new], costs_s[new]
            self._many += len(first)
            self._fresh = None
            able = np.append(self._by_rate, first[self._first_chance[first] > 0.0])
            rates = self._first_chance[able] / np.maximum(self._first_cost_s[able], 1e-9)
            self._by_rate = able[np.argsort(-rates, kind="stable")]

    def _note_dull(self, trials: Trials, number: int) -> None:
        """Put a trial that has learnt nothing behind all others, without a prediction."""
        self._judge(np.array([number]), np.zeros(1), np.zeros(1))
        self._index[number] = float(_hopeless(trials.best[number]))
        self._chance[number] = 0.0
        # so that it is predicted once nothing else waits
        self._looked[number] = trials.counts[number] - 1

    def _look(self, trials: Trials, numbers: Ints) -> None:
        """Predict trials and note what each is worth."""
        if not numbers.size:
            return
        counts = trials.counts[numbers]
        reached = self.foresight.reached(trials, numbers, self._target)
        index, chance = indices(reached, counts, trials.spent_s[numbers] / np.maximum(counts, 1))
        if self.terms.kill is not None:
            dull = trials.best[numbers] < self.terms.kill
            index, chance = np.where(dull, index * _DULL, index), np.where(dull, 0.0, chance)
        self._judge(numbers, chance, chance / np.maximum(index, 1e-300))
        self._index[numbers] = index + _hopeless(trials.best[numbers])
        self._chance[numbers] = reached[:, -1]
        self._looked[numbers] = counts

    def iterated(self, trials: Trials, number: int, now: float) -> Verdict:
        """Judge the trial; one that has run all its epochs has no chance any more."""
        if trials.counts[number] >= self.terms.epochs:
            self._raise_target(trials)
            self._judge(np.array([number]), np.zeros(1), np.zeros(1))
            self._looked[number] = trials.counts[number]
            self._index[number] = self._chance[number] = 0.0
        return super().iterated(trials, number, now)
