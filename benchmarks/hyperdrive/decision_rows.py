"""How long a decision takes: from a report to the answer, and the choice of the next trial where one is parked.

10,000 trials, 500 slots, the default policy with the library of shapes. Row `decision`: processor time of the 99th
percentile of single reports. Row `decision-many`: 1,000 reports at once, predicted in one call. Both go through the
machine of the job manager, as its service hears them. Curves are drawn: two thirds learn something, so that nearly
every report asks the predictor.
"""

import gc
import time
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from benchmarks.options import Options
from benchmarks.report import Row, make_row
from tez_adapter.core.exploration import events as ev
from tez_adapter.core.exploration.machine import ExplorationMachine
from tez_adapter.core.exploration.rules import Rules
from tez_adapter.core.exploration.together import foresee
from yaqd.policies.curves.reach import LibraryReach
from yaqd.policies.curves.samples import Ints
from yaqd.policies.explore.facts import Terms, Trials, TrialState
from yaqd.policies.explore.foresight import Predicted
from yaqd.policies.explore.metric import Metric
from yaqd.policies.explore.policies import EXPLORE

TRIALS: Final = 10_000
SLOTS: Final = 500
MANY: Final = 1_000
EPOCHS: Final = 100
ROWS: Final = {"decision": "5 ms", "decision-many": "500 ms"}
_POLICY: Final = "index"
_REPORTS: Final = 2_000
_ROUNDS: Final = 10


class Exploration:
    """The machine of a job manager with trials in all stages: half of them have run, `slots` run now."""

    def __init__(self, trials: int, slots: int, seed: int = 1) -> None:
        rng = np.random.default_rng(seed)
        rate = rng.uniform(0.01, 0.3, trials)[:, None]
        rise = rng.uniform(0.0, 0.7, trials)[:, None]
        noise = rng.normal(0.0, 0.005, (trials, EPOCHS))
        self._values = 0.1 + rise * -np.expm1(-rate * np.arange(1.0, EPOCHS + 1)) + noise
        terms = Terms(0.85, EPOCHS, slots, kill=0.15)
        self.trials = Trials(trials, EPOCHS)
        policy = EXPLORE[_POLICY](terms, Predicted(LibraryReach()))
        self._rng, self._ended = rng, list[ev.Event]()
        for number in range(trials // 2):
            self.trials.start(number)
            for metric in self._values[number, : int(rng.integers(3, EPOCHS // 2))]:
                self.trials.report(number, float(metric), 60.0)
            policy.iterated(self.trials, number, 0.0)
            self.trials.states[number] = TrialState.PARKED
        self.machine = ExplorationMachine(policy, self.trials, Rules(terms, Metric(), "accuracy"))
        for number in range(slots):
            self._carry_out(self.machine.handle(ev.SlotCame(str(number), "host"), 0.0))

    def _carry_out(self, outcome: ev.Outcome) -> None:
        """Do what a job manager does, but for processes: those that are to leave have left at once."""
        for decision in outcome.decisions:
            if isinstance(decision, ev.Propose):
                self._ended.append(ev.ParamsCame(decision.number, {}))
        while self._ended:
            self._carry_out(self.machine.handle(self._ended.pop(0), 0.0))

    def running(self, many: int) -> Ints:
        """Return the numbers of running trials with epochs left, at random."""
        able = np.flatnonzero((self.trials.states == TrialState.RUNNING) & (self.trials.counts < EPOCHS - 1))
        return np.sort(self._rng.choice(able, min(many, len(able)), replace=False))

    def reports(self, numbers: Ints) -> float:
        """Report one epoch of each trial; return the seconds of processor time until all is decided."""
        events = [self._event(number) for number in numbers.tolist()]
        began = time.process_time()
        foresee(self.machine, events)
        outcomes = [self.machine.handle(event, 0.0) for event in events]
        took = time.process_time() - began
        for event, outcome in zip(events, outcomes, strict=True):
            if outcome.answer.order is not ev.Order.CONTINUE:
                self._ended.append(ev.TrialOver(event.number, event.lap))
            self._carry_out(outcome)
        return took

    def _event(self, number: int) -> ev.TrialReported:
        count = int(self.trials.counts[number])
        metric, lap = float(self._values[number, count]), self.machine.run(number).lap
        return ev.TrialReported(number, lap, count, metric, 60.0, {"accuracy": metric}, True)


def measure(options: Options) -> tuple[list[Row], dict[str, Mapping[str, Any]]]:
    """Return the rows asked for, and what belongs beside each."""
    rows: list[Row] = []
    beside: dict[str, Mapping[str, Any]] = {}
    trials = max(100, int(TRIALS * options.scale))
    slots = max(10, int(SLOTS * options.scale))
    for row_id, most in ROWS.items():
        if not options.wants(row_id):
            continue
        is_single = row_id == "decision"
        # as many slots as report at once; nobody else can
        wide = slots if is_single else max(slots, int(MANY * options.scale))
        found = []
        for run in range(options.runs):
            exploration = Exploration(trials, wide, run + 1)
            # as a daemon does when it starts (`yaqd.ipc.loop.run`), so that no collection looks at what is imported
            gc.collect()
            gc.freeze()
            if is_single:
                taken = [exploration.reports(exploration.running(1)) for _ in range(_REPORTS)]
                found.append(1000 * float(np.percentile(taken, 99)))
            else:
                taken = [exploration.reports(exploration.running(wide)) for _ in range(_ROUNDS)]
                found.append(1000 * float(np.max(taken)))
        rows.append(make_row(row_id, found, None, "ms", higher_is_better=False))
        what = "p99 of single reports" if is_single else f"{wide} reports at once, the longest of {_ROUNDS}"
        beside[row_id] = {"at most": most, "settings": f"{trials} trials, {wide} slots, {EPOCHS} epochs; {what}"}
    return rows, beside
