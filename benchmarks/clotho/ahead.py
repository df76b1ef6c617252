"""How much better each decision of the shipped weights could be: one that knows all durations tries what else there is.

At each decision the stages of the five jobs with the highest scores are tried, each to the end of all jobs, as the
weights decide from there on. The best is taken. Durations are known in advance, which nobody has. So somebody who knows
gains that much at least. No row goes by it, and no measured seed is used.

    python -m benchmarks.clotho.ahead --sequences 6
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

import numpy as np

from benchmarks.clotho.room import SEED, graphs_of, parser_of, print_rows
from benchmarks.options import progress
from yaqd.config.stage_weights import shipped_weights
from yaqd.policies.clotho.weights import unpack
from yaqd.policies.curves.samples import Floats
from yaqd.sim.stages.compiled.network import Mind, choose_learned, mind_of, room_for, score
from yaqd.sim.stages.compiled.run import decide_all, learned_run, look, run_learned, step
from yaqd.sim.stages.compiled.state import ACTIVE, FREE, LEFT, Live, Plan, live_of, plan_of
from yaqd.sim.stages.compiled.world import give
from yaqd.sim.stages.measuring import lower_by
from yaqd.sim.stages.rules import DECIMA, Rules
from yaqd.sim.workloads.graphs import GraphLoad, GraphSet, draw_load

#: row -> jobs, mean gap between arrivals in s, slots
ROWS: Final = {"stream": (50, 19.4, 50), "batch": (20, 0.0, 50), "paper": (10, 0.0, 100)}
_JOBS_TRIED: Final = 5


class Ahead:
    """A run in which each decision is tried."""

    def __init__(self, load: GraphLoad, weights: Floats, rules: Rules) -> None:
        self._load = load
        self._plan: Plan = plan_of(load, rules)
        self._live, self._tried = live_of(self._plan, load), live_of(self._plan, load)
        self._mind, self._tried_mind = (
            mind_of(weights, self._plan, skips=True),
            mind_of(weights, self._plan, skips=True),
        )
        self._next_job, self._now_s = 0, 0.0
        self.decisions = self.changed = 0

    def mean_s(self) -> float:
        """Run to the end; return the mean completion time."""
        live = self._live
        while live.counts[LEFT]:
            self._now_s, self._next_job, asks = step(self._plan, live, self._next_job)
            if self._now_s == inf:
                raise ValueError("some jobs never end")
            if asks:
                for source in [-1, *live.active[: live.counts[ACTIVE]].tolist()]:
                    self._give_away(source)
        return self._mean_s(live)

    def _mean_s(self, live: Live) -> float:
        return float((live.jobs["done_s"] - self._load.arrive_s).mean()) if not live.counts[LEFT] else inf

    def _give_away(self, source: int) -> None:
        plan, live, mind = self._plan, self._live, self._mind
        while idle := int(live.counts[FREE] if source < 0 else live.jobs[source]["idle"]):
            look(plan, live, mind)
            stage, many = choose_learned(plan, live, mind, source, idle)
            if stage < 0:
                return
            ways = [(int(stage), int(many)), *self._others(source, idle, int(stage))]
            if len(ways) > 1:
                self.decisions += 1
                costs = [self._cost(source, *way) for way in ways]
                best = int(np.argmin(costs))
                self.changed += best > 0
                stage, many = ways[best]
            give(plan, live, source, stage, many, self._now_s)

    def _others(self, source: int, idle: int, chosen: int) -> list[tuple[int, int]]:
        """Return what else may be chosen: of each job its best stage, of those the best."""
        plan, live, mind, found = self._plan, self._live, self._mind, list[tuple[float, int]]()
        for job in live.active[: live.counts[ACTIVE]].tolist():
            stages = range(int(plan.jobs[job]["first"]), int(plan.jobs[job + 1]["first"]))
            scored = [
                (score(plan, live, mind, job, stage, source, idle), -stage)
                for stage in stages
                if live.stages[stage]["claimable"]
            ]
            found += [max(scored)] if scored else []
        best = [-stage for _, stage in sorted(found, reverse=True)[:_JOBS_TRIED]]
        return [(stage, room_for(plan, live, stage, source, idle)) for stage in best if stage != chosen]

    def _cost(self, source: int, stage: int, many: int) -> float:
        plan, live, mind = self._plan, self._tried, self._tried_mind
        for now, tried in ((self._live, live), (self._mind, mind)):
            _copy(now, tried)
        give(plan, live, source, stage, many, self._now_s)
        decide_all(plan, live, mind, self._now_s)
        run_learned(plan, live, mind, self._next_job)
        return self._mean_s(live)


def _copy(arrays: Live | Mind, to: Live | Mind) -> None:
    for one, other in zip(arrays, to, strict=True):
        if isinstance(one, np.ndarray):
            np.copyto(other, one)


@dataclass(frozen=True, slots=True)
class Gained:
    """A row: mean completion times in s, and by what part the second is below the first, with its standard error."""

    row: str
    sequences: int
    shipped_s: float
    ahead_s: float
    lower: float
    error: float
    #: decisions that had another way, and those where it was better
    decisions: int
    changed: int

    def __str__(self) -> str:
        return (
            f"{self.row}, {self.sequences} sequences: shipped {self.shipped_s:.1f} s, each decision tried "
            f"{self.ahead_s:.1f} s ({self.lower:.1%} +- {self.error:.1%} below), "
            f"{self.changed} of {self.decisions} decisions changed"
        )


def gained(row: str, graphs: GraphSet, sequences: int) -> Gained:
    """Measure a row."""
    jobs, gap_s, slots = ROWS[row]
    rules = Rules(slots, DECIMA.move_s, DECIMA.warm_s)
    weights = unpack(shipped_weights()).flat()
    each, decisions, changed = list[tuple[float, float]](), 0, 0
    for at in range(sequences):
        load = draw_load(graphs, SEED + at, jobs, gap_s)
        run = Ahead(load, weights, rules)
        each.append((learned_run(load, weights, rules).mean_s, run.mean_s()))
        decisions, changed = decisions + run.decisions, changed + run.changed
        progress(f"{row} {at + 1}: shipped {each[-1][0]:.1f} s, each decision tried {each[-1][1]:.1f} s")
    shipped, ahead = np.array(each).T
    lower, error = lower_by(ahead, shipped)
    return Gained(row, sequences, float(shipped.mean()), float(ahead.mean()), lower, error, decisions, changed)


def main(words: Sequence[str] | None = None) -> int:
    parser = parser_of("ahead", __doc__, list(ROWS), 6)
    given = parser.parse_args(words)
    graphs = graphs_of(parser, given)
    print_rows(given, list(ROWS), lambda row: gained(row, graphs, given.sequences))
    return 0


if __name__ == "__main__":
    sys.exit(main())
