"""One exploration in simulated time: recorded curves and epoch times under a policy, in an order, on some slots.

The trace-driven simulator of HyperDrive's section 8.4.1. A trial of row r takes the recorded time for each epoch, then
reports the recorded metric. Suspending and taking up again cost nothing. The policy objects are those of a live
exploration. Of two epochs that end at once, the one that began first counts first.

A prediction depends on the row's own prefix alone, so each is made once for all orders and policies (`Cached`).
"""

from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final

import numpy as np

from yaqd.policies.curves.outlook import Outlook, Reach
from yaqd.policies.curves.samples import Floats, Ints
from yaqd.policies.explore.facts import Action, ExplorePolicy, Guide, Terms, Trials, TrialState, Why
from yaqd.sim.workloads.exploration import Recorded

_RUNNING: Final = int(TrialState.RUNNING)
#: rows that are predicted together with one that is asked for
_BATCH: Final = 64
#: targets whose predictions are kept; one that rises has many
_TARGETS: Final = 4


@dataclass(frozen=True, slots=True)
class Explored:
    """What came of an exploration."""

    #: until the first report of the target, or until the pool ended without it
    time_s: float
    is_lost: bool
    #: the row that reached the target; -1: none did
    winner: int
    #: trials that ran, epochs that ended, and verdicts that parked a trial
    started: int
    epochs: int
    parked: int
    #: verdicts by reason
    reasons: dict[Why, int] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Lap:
    """A stretch of a trial in a slot; the end is that of its last whole epoch."""

    number: int
    begin_s: float
    end_s: float
    epochs: int


@dataclass(slots=True)
class Log:
    """What ran when; filled where somebody asks for it."""

    laps: list[Lap] = field(default_factory=list)


def explore(
    recorded: Recorded,
    order: Ints,
    terms: Terms,
    policy: ExplorePolicy,
    guide: Guide | None = None,
    log: Log | None = None,
) -> Explored:
    """Run one exploration until the target is reported or the pool ends.

    `order`: rows in the generator's order; trial n is row `order[n]`. Raises ValueError where the policy starts what
    cannot start, or more than there are slots.
    """
    return _Exploration(recorded, order, terms, policy, guide, log).to_the_end()


class _Exploration:
    def __init__(
        self, recorded: Recorded, order: Ints, terms: Terms, policy: ExplorePolicy, guide: Guide | None, log: Log | None
    ) -> None:
        self._recorded = recorded
        self._rows = [int(row) for row in order]
        self._terms = terms
        self._policy = policy
        self._log = log
        self._trials = Trials(len(self._rows), min(terms.epochs, recorded.epochs), guide)
        self._free = terms.slots
        #: (end of the epoch, tie-breaker, trial)
        self._ends: list[tuple[float, int, int]] = []
        self._begun = 0
        self._epochs = 0
        self._parked = 0
        self._since: dict[int, tuple[float, int]] = {}
        self._reasons: dict[Why, int] = {}

    def to_the_end(self) -> Explored:
        now = 0.0
        self._fill(now)
        while self._ends:
            now, _, number = heappop(self._ends)
            if self._ended(number, now):
                return self._result(now, self._rows[number])
            if self._free:
                self._fill(now)
        return self._result(now, -1)

    def _fill(self, now: float) -> None:
        """Let the policy start trials in free slots."""
        starts = self._policy.allocate(self._trials, self._free, now)
        if len(starts) > self._free:
            raise ValueError(f"the policy starts {len(starts)} trials in {self._free} slots")
        for start in starts:
            self._trials.start(start.number)
            self._free -= 1
            self._since[start.number] = (now, int(self._trials.counts[start.number]))
            self._begin(start.number, now)

    def _begin(self, number: int, now: float) -> None:
        self._begun += 1
        heappush(self._ends, (now + float(self._recorded.epoch_s[self._rows[number]]), self._begun, number))

    def _ended(self, number: int, now: float) -> bool:
        """End an epoch; return whether the target is there."""
        row, trials = self._rows[number], self._trials
        metric = float(self._recorded.values[row, trials.counts[number]])
        trials.report(number, metric, float(self._recorded.epoch_s[row]))
        self._epochs += 1
        self._policy.reported(trials, number, now)
        if self._terms.target is not None and metric >= self._terms.target:
            self._note(number, now)
            return True
        verdict = self._policy.iterated(trials, number, now)
        self._reasons[verdict.why] = self._reasons.get(verdict.why, 0) + 1
        if trials.settle(number, verdict) == _RUNNING:
            self._begin(number, now)
            return False
        self._parked += verdict.action is Action.PARK
        self._note(number, now)
        self._free += 1
        return False

    def _note(self, number: int, now: float) -> None:
        if self._log is not None:
            since, count = self._since[number]
            self._log.laps.append(Lap(number, since, now, int(self._trials.counts[number]) - count))

    def _result(self, now: float, winner: int) -> Explored:
        started = int((self._trials.states != TrialState.FRESH).sum())
        return Explored(now, winner < 0, winner, started, self._epochs, self._parked, self._reasons)


# ---------------------------------------------------------------------------------------------- foresight


class Cached:
    """Predictions of the rows of one set by one predictor."""

    def __init__(self, recorded: Recorded, reach: Reach) -> None:
        self._recorded = recorded
        self._reach = reach
        self._best = np.maximum.accumulate(recorded.values, axis=1)
        #: by target, then by (row, epochs seen)
        self._reached: dict[float, dict[tuple[int, int], Floats]] = {}
        #: by (row, epochs seen), of rows whose last metric was asked for
        self._outlooks: dict[tuple[int, int], Outlook] = {}

    def reached(self, row: int, count: int, target: float) -> Floats:
        """Return the chance that the row reaches the target by each epoch."""
        known = self._reached.get(target)
        if known is None:
            if len(self._reached) >= _TARGETS:
                self._reached.pop(next(iter(self._reached)))
            known = self._reached[target] = {}
        found = known.get((row, count))
        if found is None:
            self._predict(row, count, target, known)
            found = known[row, count]
        return found

    def _predict(self, row: int, count: int, target: float, known: dict[tuple[int, int], Floats]) -> None:
        """Predict the row, and with it those that look at least as good after as many epochs."""
        best = self._best[:, count - 1]
        like = np.flatnonzero(best >= best[row])
        like = like[np.argsort(best[like], kind="stable")]
        rows = [int(one) for one in like if (int(one), count) not in known and one != row][: _BATCH - 1]
        batch = np.array([row, *rows], dtype=np.int64)
        counts = np.full(len(batch), count)
        outlook = self._reach.outlook(self._recorded.values[batch, :count], counts, self._recorded.epochs)
        for one, chances in zip(batch.tolist(), outlook.reached(target), strict=True):
            known[one, count] = chances

    def ends_above(self, row: int, count: int, target: float) -> float:
        """Return the chance that the row's metric is above the target after the last epoch."""
        epochs = self._recorded.epochs
        found = self._outlooks.get((row, count))
        if found is None:
            found = self._reach.outlook(self._recorded.values[[row], :count], np.array([count]), epochs)
            self._outlooks[row, count] = found
        return float(found.at(epochs, target)[0])


class InOrder:
    """Foresight of an exploration whose trial n is row `order[n]`."""

    def __init__(self, cached: Cached, order: Ints) -> None:
        self._cached = cached
        self._rows = [int(row) for row in order]

    def reached(self, trials: Trials, numbers: Ints, target: float) -> Floats:
        """Return the chance that each trial has reached the target by each epoch."""
        rows, counts = self._rows, trials.counts
        return np.array([self._cached.reached(rows[int(one)], int(counts[one]), target) for one in numbers])

    def ends_above(self, trials: Trials, numbers: Ints, target: float) -> Floats:
        """Return the chance that each trial's metric is above the target after the last epoch."""
        rows, counts = self._rows, trials.counts
        return np.array([self._cached.ends_above(rows[int(one)], int(counts[one]), target) for one in numbers])
