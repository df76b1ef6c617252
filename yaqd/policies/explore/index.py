"""Ours: a slot goes to the trial with the best chance of the target for each second that it is expected to need.

- The index of a trial is the best, over all horizons, of P(target within the horizon) / E[slot seconds until then].
- A fresh trial is worth p_hit / (cost of a look + p_hit * T). What part of the trials hit (p_hit) and how long these
  need (T) are learnt on the way, from what is predicted of all trials that were looked at.
- Nobody ends before its last epoch. A trial that is worth less than what waits is parked. It comes back when nothing
  better waits.
- A trial is looked at after its third epoch, then after each. One below the kill threshold waits behind all others.
"""

from math import inf
from typing import Final

import numpy as np

from yaqd.policies.curves.samples import Bools, Floats, Ints
from yaqd.policies.explore.facts import Action, Foresight, Start, Terms, Trials, TrialState, Verdict, Why, aim
from yaqd.policies.explore.ordered import Default

#: epochs before the first look
FIRST_LOOK: Final = 3
#: trials and hits that count as seen before the first one
PRIOR_TRIALS: Final = 20.0
PRIOR_HITS: Final = 0.5
#: of trials that have learnt nothing: their index counts this part, so that they come after all that learn
_DULL: Final = 1e-6
#: of trials without any chance the one with the fewest epochs goes first
_HOPELESS: Final = 1e-15


def indices(reached: Floats, counts: Ints, epoch_s: Floats) -> Floats:
    """Return each trial's best chance of the target per second of slot time, over all horizons.

    `reached`: (trials, epochs), chance of the target by each epoch; 0 chance that it was reached already. A trial stops
    where it reaches the target, so later seconds count with the chance that it is still on its way.
    """
    ahead = np.arange(1, reached.shape[1] + 1) - counts[:, None]
    chance = np.where(ahead > 0, reached, 0.0)
    before = np.concatenate((np.zeros((len(chance), 1)), chance[:, :-1]), axis=1)
    needed = np.cumsum(np.where(ahead > 0, 1.0 - before, 0.0), axis=1)
    rates = np.where(needed > 0.0, chance / np.maximum(needed, 1e-9), 0.0)
    return np.asarray(rates.max(axis=1) / np.maximum(epoch_s, 1e-9))


def epochs_to_go(reached: Floats, counts: Ints) -> tuple[Floats, Floats]:
    """Return the chance that each trial ever reaches the target, and the epochs it then needs in the mean."""
    ahead = np.maximum(np.arange(1, reached.shape[1] + 1) - counts[:, None], 0)
    parts = np.maximum(np.diff(np.where(ahead > 0, reached, 0.0), prepend=0.0, axis=1), 0.0)
    chance = parts.sum(axis=1)
    return chance, np.asarray((parts * ahead).sum(axis=1) / np.maximum(chance, 1e-12))


class Index(Default):
    """Give slots by the index."""

    def __init__(
        self,
        terms: Terms,
        foresight: Foresight,
        first: int = FIRST_LOOK,
        prior_trials: float = PRIOR_TRIALS,
        prior_hits: float = PRIOR_HITS,
        stay: float = 0.0,
    ) -> None:
        """`first`: epochs of the first look. `stay`: part by which another must be worth more to take a slot."""
        super().__init__(terms, foresight)
        self._first = max(1, min(int(first), terms.epochs))
        self._prior_trials = prior_trials
        self._prior_hits = prior_hits
        self._stay = stay
        self._target = -inf
        self._index: Floats = np.zeros(0)
        #: by trial as of the last look: chance of the target, that times the epochs to go, epochs then run
        self._chance: Floats = np.zeros(0)
        self._to_go: Floats = np.zeros(0)
        self._looked: Ints = np.zeros(0, dtype=np.int64)
        #: which trials were judged at all
        self._judged: Bools = np.zeros(0, dtype=bool)
        self._many = 0

    def allocate(self, trials: Trials, free: int, now: float) -> list[Start]:
        """Start what is worth most, fresh trials or parked ones."""
        self._raise_target(trials)
        fresh = trials.fresh(free)
        new = self._fresh_worth(trials)
        if len(fresh) < free:
            self._look_at_parked(trials)
        parked = np.flatnonzero(trials.states == TrialState.PARKED)
        order = parked[np.argsort(-self._index[parked], kind="stable")][:free].tolist()
        starts: list[Start] = []
        while len(starts) < free and (fresh or order):
            best = float(self._index[order[0]]) if order else -inf
            if order and (best >= new or not fresh):
                starts.append(Start(order.pop(0), Why.WORTH_MOST if best > _DULL * new else Why.ROOM, best, new))
            else:
                starts.append(Start(fresh.pop(0), Why.NEXT, new, best))
        return starts

    def foresee(self, trials: Trials, numbers: Ints) -> None:
        """Look at all trials that have ended an epoch, with one call of the predictor."""
        self._raise_target(trials)
        self._look(trials, numbers[self._is_due(trials, numbers)])

    def judged(self, trials: Trials, number: int, count: int) -> Verdict:
        """Hold the trial to what waits."""
        if count < self._first:
            return Verdict(Action.CONTINUE, Why.EARLY, count, self._first)
        self._raise_target(trials)
        fresh = trials.has_fresh
        if self._looked[number] < count:
            if fresh and not self._learns(trials, number):
                self._note_dull(number, count)
            else:
                self._look(trials, np.array([number], dtype=np.int64))
        if not fresh:
            self._look_at_parked(trials)
        own, other = float(self._index[number]), self._best_other(trials, fresh)
        kill = self.terms.kill
        if own >= other * (1.0 - self._stay):
            return Verdict(Action.CONTINUE, Why.WORTH_MOST, own, other, float(self._chance[number]))
        if kill is not None and trials.best[number] < kill:
            return Verdict(Action.PARK, Why.NOT_LEARNING, float(trials.best[number]), kill)
        return Verdict(Action.PARK, Why.WORTH_LESS, own, other, float(self._chance[number]))

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
        hits = self._prior_hits + float(self._chance.sum())
        part = hits / (self._prior_trials + self._many)
        rest = self._prior_hits * trials.epochs / 2 + float(self._to_go.sum())
        return part / ((self._first + part * rest / hits) * trials.mean_epoch_s)

    def _raise_target(self, trials: Trials) -> None:
        """Grow with the trials; look at all of them again where the target has risen."""
        if len(self._index) != len(trials):
            self._index, self._chance, self._to_go = np.zeros((3, len(trials)))
            self._looked = np.zeros(len(trials), dtype=np.int64)
            self._judged = np.zeros(len(trials), dtype=bool)
        target = aim(self.terms, trials)
        if target != self._target:
            self._target = target
            known = np.flatnonzero(self._judged & (trials.states != TrialState.ENDED))
            self._look(trials, known)

    def _learns(self, trials: Trials, number: int) -> bool:
        return self.terms.kill is None or bool(trials.best[number] >= self.terms.kill)

    def _is_due(self, trials: Trials, numbers: Ints) -> Bools:
        counts = trials.counts[numbers]
        due = (counts >= self._first) & (counts < trials.epochs) & (self._looked[numbers] < counts)
        if self.terms.kill is not None:
            due &= trials.best[numbers] >= self.terms.kill
        return np.asarray(due)

    def _note_dull(self, number: int, count: int) -> None:
        """Put a trial that has learnt nothing behind all others, without a prediction."""
        self._many += int(not self._judged[number])
        self._judged[number] = True
        self._index[number] = _HOPELESS / (1 + count)
        self._chance[number] = self._to_go[number] = 0.0
        # so that it is predicted once nothing else waits
        self._looked[number] = count - 1

    def _look(self, trials: Trials, numbers: Ints) -> None:
        """Predict trials and note what each is worth."""
        if not numbers.size:
            return
        counts = trials.counts[numbers]
        reached = self.foresight.reached(trials, numbers, self._target)
        index = indices(reached, counts, trials.spent_s[numbers] / np.maximum(counts, 1))
        chance, to_go = epochs_to_go(reached, counts)
        if self.terms.kill is not None:
            dull = trials.best[numbers] < self.terms.kill
            index, chance = np.where(dull, index * _DULL, index), np.where(dull, 0.0, chance)
        self._many += int((~self._judged[numbers]).sum())
        self._judged[numbers] = True
        self._index[numbers] = index + _HOPELESS / (1 + counts)
        self._chance[numbers], self._to_go[numbers] = chance, chance * to_go
        self._looked[numbers] = counts

    def iterated(self, trials: Trials, number: int, now: float) -> Verdict:
        """Judge the trial; one that has run all its epochs has no chance any more."""
        if trials.counts[number] >= self.terms.epochs:
            self._raise_target(trials)
            self._many += int(not self._judged[number])
            self._judged[number] = True
            self._looked[number] = trials.counts[number]
            self._index[number] = self._chance[number] = self._to_go[number] = 0.0
        return super().iterated(trials, number, now)
