"""One exploration in simulated time: recorded curves and epoch times under a policy, in an order, on some slots.

The trace-driven simulator of HyperDrive's section 8.4.1. A trial of row r takes the recorded time for each epoch, then
reports the recorded metric. Suspending and taking up again cost nothing. The policy objects are those of a live
exploration. Of two epochs that end at once, the one that began first counts first.
"""

from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final

from yaqd.policies.curves.samples import Ints
from yaqd.policies.explore.facts import Action, ExplorePolicy, Guide, Terms, Trials, TrialState, Why
from yaqd.sim.workloads.exploration import Recorded

_RUNNING: Final = int(TrialState.RUNNING)


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
        took_s = self._recorded.took_s(self._rows[number], int(self._trials.counts[number]))
        heappush(self._ends, (now + took_s, self._begun, number))

    def _ended(self, number: int, now: float) -> bool:
        """End an epoch; return whether the target is there."""
        row, trials = self._rows[number], self._trials
        epoch = int(trials.counts[number])
        metric = float(self._recorded.values[row, epoch])
        trials.report(number, metric, self._recorded.took_s(row, epoch))
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
