"""How much room there is above the shipped weights: weights fitted to ONE sequence each, by random trials.

Nobody can have such weights, as they know the sequence. No row goes by them, and no measured seed is used. Weighted
fair sharing has its best exponent over all sequences in hindsight.

    python -m benchmarks.clotho.headroom --sequences 12
"""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.clotho.room import SEED, graphs_of, parser_of, print_rows
from benchmarks.options import progress
from yaqd.config.stage_weights import Objective, shipped_weights
from yaqd.policies.clotho.weights import unpack
from yaqd.policies.curves.samples import Floats
from yaqd.sim.stages.compiled.run import learned_run
from yaqd.sim.stages.measuring import WEIGHTED, best_of, lower_by
from yaqd.sim.stages.rules import Rules
from yaqd.sim.stages.settings import SETTINGS
from yaqd.sim.stages.training.begin import scales
from yaqd.sim.workloads.graphs import GraphLoad, GraphSet

#: row -> (setting, weights that the trials begin with)
ROWS: Final[dict[str, tuple[str, Objective]]] = {
    "batch": ("batch", "mean"),
    "paper": ("paper", "mean"),
    "makespan": ("paper", "makespan"),
}
#: of a move, against the trainer's own: what it is at most and at least, and how it changes
_LARGEST, _SMALLEST, _GROWS, _SHRINKS = 2.0, 0.02, 1.5, 0.95


@dataclass(frozen=True, slots=True)
class Room:
    """A row: means in s, and by what part they are below weighted fair sharing's, with standard errors."""

    row: str
    sequences: int
    trials: int
    weighted: str
    weighted_s: float
    shipped_s: float
    fitted_s: float
    shipped_lower: float
    shipped_error: float
    fitted_lower: float
    fitted_error: float

    def __str__(self) -> str:
        shipped, fitted = (
            f"{mean_s:.1f} s ({abs(lower):.1%} +- {error:.1%} {'above' if lower < 0 else 'below'})"
            for mean_s, lower, error in (
                (self.shipped_s, self.shipped_lower, self.shipped_error),
                (self.fitted_s, self.fitted_lower, self.fitted_error),
            )
        )
        of_all = f"{self.row}, {self.sequences} sequences: {self.weighted} {self.weighted_s:.1f} s"
        return f"{of_all}, shipped {shipped}, fitted in {self.trials} trials {fitted}"


def climb(start: Floats, cost: Callable[[Floats], float], trials: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return what `start` costs, and the least that random moves from it come to: what is no worse is kept.

    Moves are in turn of linear scores alone and of all weights. They grow when one is kept, and shrink otherwise.
    """
    best, first = start, cost(start)
    least, sizes, ways = first, [1.0, 1.0], scales()
    for trial in range(trials):
        which = trial % 2
        tried = best + sizes[which] * ways[which] * rng.normal(size=len(start))
        found = cost(tried)
        grows = found < least
        if found <= least:
            best, least = tried, found
        sizes[which] = float(np.clip(sizes[which] * (_GROWS if grows else _SHRINKS), _SMALLEST, _LARGEST))
    return first, least


def _cost(load: GraphLoad, rules: Rules, makespan: bool) -> Callable[[Floats], float]:
    def cost(weights: Floats) -> float:
        try:
            found = learned_run(load, weights, rules)
        except ValueError:  # some jobs never end
            return float("inf")
        return found.makespan_s if makespan else found.mean_s

    return cost


def room(row: str, graphs: GraphSet, sequences: int, trials: int, until_s: float) -> Room:
    """Measure a row. `until_s`: no further sequence begins after that, of `time.monotonic`; two do in any case."""
    name, objective = ROWS[row]
    setting, makespan = SETTINGS[name], objective == "makespan"
    start = unpack(shipped_weights(objective)).flat()
    loads, each = [setting.load(graphs, SEED + at) for at in range(sequences)], list[tuple[float, float]]()
    for at, load in enumerate(loads):
        if len(each) >= 2 and time.monotonic() > until_s:
            break
        each.append(climb(start, _cost(load, setting.rules, makespan), trials, np.random.default_rng((SEED, at))))
        progress(f"{row} {at + 1}: shipped {each[-1][0]:.1f} s, fitted {each[-1][1]:.1f} s")
    shipped, fitted = np.array(each).T
    weighted = best_of(WEIGHTED, loads[: len(each)], setting.rules, makespan)
    weighted_s, shipped_s, fitted_s = (float(values.mean()) for values in (weighted.each, shipped, fitted))
    lower, error = lower_by(shipped, weighted.each)
    most, spread = lower_by(fitted, weighted.each)
    return Room(row, len(each), trials, weighted.name, weighted_s, shipped_s, fitted_s, lower, error, most, spread)


def main(words: Sequence[str] | None = None) -> int:
    parser = parser_of("headroom", __doc__, list(ROWS), 60)
    parser.add_argument("--trials", type=int, default=600, help="for each sequence (default 600)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="for each row: no sequence begins later")
    given = parser.parse_args(words)
    if given.trials < 0:
        parser.error("--trials must be at least 0")
    graphs = graphs_of(parser, given)
    print_rows(
        given,
        list(ROWS),
        lambda row: room(row, graphs, given.sequences, given.trials, time.monotonic() + given.seconds),
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
